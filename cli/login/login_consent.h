/* The user's browser: sent to the authorization server, and back to this machine's loopback. */
#ifndef DURWARD_LOGIN_CONSENT_H
#define DURWARD_LOGIN_CONSENT_H

#include "login_flow.h"

/* A listener at 127.0.0.1; *port 0: any, which is told. The descriptor, or -1. */
int login_listen(unsigned *port, struct err *err);
/* Shows the URL (and opens it, if `browser`), and waits for the answer of this attempt: at the
 * listener, or, without a browser here, pasted into standard input. */
int login_consent(int listener, bool browser, const char *url, const struct login_server *s,
                  const struct login_attempt *a, char code[LOGIN_CODE_MAX + 1], struct err *err);

#endif
