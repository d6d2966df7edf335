/* The forms of login files that are no plain tree of texts. Internal to login_*.c. */
#ifndef DURWARD_LOGIN_SHAPES_H
#define DURWARD_LOGIN_SHAPES_H

#include "login_file.h"

/* { ENTRY: { PART: TEXT } }, of LOGIN_PIP and what follows it; "=current" names the entry that its
 * program uses. NULL with err. *lines: malloc'd; "{{secret ENTRY PART}}" in it is a secret's place.
 */
json_t *login_shape_of(enum login_syntax syntax, char *text, size_t n, const char *path,
                       char **lines, struct err *err);

#endif
