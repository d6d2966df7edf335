/* Errors as values with context.
 *
 * A function that can fail takes `struct err *` last and returns 0 (or a non-NULL pointer) on
 * success, leaving the error untouched, and -1 (or NULL) on failure, with the error set. The
 * message is built where the facts are known and wrapped on the way up. Library code never logs.
 * Passing NULL is allowed and drops the message. */
#ifndef DURWARD_ERR_H
#define DURWARD_ERR_H

#include "compiler.h"

enum err_code {
    ERR_NONE = 0,
    ERR_SYS,      /* a system call failed; the text carries strerror */
    ERR_PARSE,    /* input is malformed or ambiguous */
    ERR_LIMIT,    /* a bound was reached */
    ERR_DENIED,   /* policy or permission says no */
    ERR_UNREADY,  /* not now: a peer is down or a prerequisite is missing */
    ERR_UPSTREAM, /* the far side misbehaved */
    ERR_FULL,     /* there are as many as there may be: later */
    ERR_INTERNAL, /* our own invariant or an allocation failed */
};

struct err {
    enum err_code code;
    char text[768];
};

/* Set the error; always returns -1 so that `return err_set(...)` reads well. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...) PRINTF(3, 4);
/* As err_set with ERR_SYS, with ": strerror(errno)" appended. */
int err_sys(struct err *e, const char *fmt, ...) PRINTF(2, 3);
/* Put "context: " before the present text; keeps the code. Always returns -1. */
int err_wrap(struct err *e, const char *fmt, ...) PRINTF(2, 3);

#ifdef __clang_analyzer__ /* which sees one file at a time: these always fail */
#define err_set(...)  (err_set(__VA_ARGS__), -1)
#define err_sys(...)  (err_sys(__VA_ARGS__), -1)
#define err_wrap(...) (err_wrap(__VA_ARGS__), -1)
#endif

#endif
