/* How a secret is made of others: which it needs, what is asked of which endpoint, what the answer
 * says. Pure: no I/O, no events; the clock is given. All in the vault. */
#ifndef DURWARD_DERIVED_H
#define DURWARD_DERIVED_H

#include "derived_spec.h"
#include "err.h"
#include "secret.h"
#include "token_fetch.h"

#include <time.h>

struct derived;

enum { DERIVED_INPUTS_MAX = 3 };

/* Takes over the texts of what derived_spec_get read. NULL: memory is out. */
struct derived *derived_new(struct derived_spec *spec);
void derived_free(struct derived *m); /* NULL is fine */

/* Name of the i-th secret it is made of; NULL past the end. */
const char *derived_input(const struct derived *m, size_t i);
/* Its value signs and is never released (aws_sign.h, tls_sign.h). */
bool derived_signs(const struct derived *m);
/* What whoever asks for such a value is told instead: what goes along with each signature. NULL:
 * the value is none, or memory is out. */
struct secret *derived_told(const struct derived *m, struct slice value);
/* Whose it is to be: the policy, by the channel that asks, and the sandbox, as that says. */
struct derived_whose {
    const char *policy, *sandbox;
};
enum { DERIVED_CERTIFY = 1 }; /* as scheme of a CA of SSH, without a text: the certificate itself */
/* A signature by one that is no AWS pair. scheme: of TLS; else 0. */
int derived_sign(const struct derived *m, const struct derived_whose *who, struct slice value,
                 uint32_t scheme, struct slice text, struct buf *out, struct err *err) WUNUSED;
/* Its value has changed: nothing that was made of the old one is kept. */
void derived_forget(const struct derived *m);
/* It has a refresh token that its endpoint may replace: the index of that input, else -1. */
int derived_refreshes(const struct derived *m);
/* The login of another program, in its file: the file has the access token while that is good. */
bool derived_is_login(const struct derived *m);
bool derived_may_refresh(const struct derived *m); /* else that is its program's alone */
/* Its endpoint, asked once more, may give another value before this one has ended. */
bool derived_renewable(const struct derived *m);
/* The access token of such a file, which the caller unrefs, and when it ends (seconds since the
 * epoch, 0: it does not say); NULL: there is none, or it is for another resource, or of another
 * token endpoint, than the configuration says. */
struct secret *derived_session(const struct derived *m, const struct secret *session,
                               int64_t *until);
/* The refresh token of such a file; NULL: it has none. And the file's session with another one. New
 * references. */
struct secret *derived_session_refresh(const struct secret *session);
struct secret *derived_session_with(const struct secret *session, const struct secret *refresh);
/* It has a value for each sandbox, from a reply (captured.h). */
bool derived_is_captured(const struct derived *m);
/* Such a one that stays with the home of the sandbox. */
bool derived_stays(const struct derived *m);
/* The claims of such a token that its sandbox may see, with blanks between; NULL: of none is said.
 */
const char *derived_claims(const struct derived *m);
/* May an agent sign this text for it with its key (as SSH writes it), and how? 0, or -1 with err.
 */
struct ssh_signing;
int derived_agent_may(const struct derived *m, struct slice key, uint32_t scheme, struct slice text,
                      struct ssh_signing *ret, struct err *err) WUNUSED;
/* No endpoint is asked: the inputs alone make the value. */
struct secret *derived_local(const struct derived *m, struct secret *const *inputs,
                             struct err *err);
bool derived_is_local(const struct derived *m);

/* Its value is kept behind an endpoint: as it is given, to be checked like that of any store. */
bool derived_is_stored(const struct derived *m);
/* Its input is a login, which may have ended early: 401 or 403 say so. */
bool derived_needs_login(const struct derived *m);
/* A login that can be prolonged with the token itself. */
bool derived_renews(const struct derived *m);
/* A login by a token that is given: when it cannot be prolonged (4xx) it serves as it is. */
bool derived_is_itself(const struct derived *m);

/* old: the value to prolong, or NULL. What to ask; free it with token_request_free in either case.
 * 0 or -1. */
int derived_request(const struct derived *m, struct secret *const *inputs, const struct secret *old,
                    time_t now, struct token_request *ret, struct err *err);

struct derived_answer {
    struct secret *value;   /* the caller unrefs */
    unsigned seconds;       /* how long it may be used */
    int64_t until;          /* its end, seconds since the epoch; 0: it does not say */
    struct secret *rotated; /* a new refresh token, or NULL */
};
/* The answer. Errors say nothing of what it held but an error code of RFC 6749 5.2. -1: there may
 * be a new refresh token all the same, in place of the one that was spent. */
int derived_reply(const struct derived *m, unsigned status, struct slice body, time_t now,
                  struct derived_answer *ret, struct err *err);

#endif
