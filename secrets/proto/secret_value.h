/* What a store may give as a secret's value. One check for all stores, so that a value with a
 * newline in its middle can never become two header fields. */
#ifndef DURWARD_SECRET_VALUE_H
#define DURWARD_SECRET_VALUE_H

#include "err.h"
#include "secret.h"

/* Files and commands end their one line with a newline: the value's length without it ("\n" or
 * "\r\n", once). */
size_t secret_value_trim(struct slice s);
/* 0, or -1 with an error that says what is wrong but nothing of the value: empty, over SECRET_MAX,
 * or with a byte below 0x20 or 0x7f (these cannot stand in a header; lines: ends
 * of lines and tabs may, it is a key). */
int secret_value_check(struct slice s, bool lines, struct err *err);
/* Trim and check what a store gave. Takes `raw` over; NULL with err when it may not be used. */
struct secret *secret_value_of(struct secret *raw, bool lines, struct err *err);

#endif
