/* What stands inside for a captured token whose program looks into it. */
#ifndef DURWARD_CAPTURED_TOKEN_H
#define DURWARD_CAPTURED_TOKEN_H

#include "slice.h"

enum {
    CAPTURED_CLAIM_MAX = 200,  /* bytes of one claim's text */
    CAPTURED_TOKEN_MAX = 2048, /* of what is made, with its NUL */
};

/* Of a JSON web token (RFC 7519): one whose head says that nothing signs it, with those claims of
 * the list (names, or JSON pointers, blanks between) that are a number, true, false or a plain
 * text, and the placeholder where the signature would be. A gate takes it where it takes the
 * placeholder. false: the value is no such token, it does not fit, or a claim holds what `secret`
 * finds; then the placeholder stands alone. */
bool captured_token(struct slice value, const char *claims, const char *placeholder,
                    bool (*secret)(void *arg, struct slice text), void *arg,
                    char to[CAPTURED_TOKEN_MAX]);

#endif
