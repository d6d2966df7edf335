/* The injector's side of the vault: values by name, kept as long as the vault allows. */
#ifndef DURWARD_SECRET_CLIENT_H
#define DURWARD_SECRET_CLIENT_H

#include "capture.h"
#include "err.h"
#include "secret.h"
#include "trace.h"

struct event_base;
struct ipc;
struct secret_client;
struct secret_wait;

enum {
    SECRET_CLIENT_WAIT_SECONDS = 2,    /* for a channel to a vault */
    SECRET_CLIENT_ANSWER_SECONDS = 35, /* for an answer; a command may take 30 */
    SECRET_CLIENT_RETRY_MS = 1000,     /* after a failure, for who can go on without, */
    SECRET_CLIENT_RETRY_MAX_MS = 30000,
    SECRET_CLIENT_SIGNS = 1024,         /* awaited at once, but for values */
    SECRET_CLIENT_SIGNATURE_MAX = 8192, /* or of the words that say why there is none */
};

/* value is NULL on failure (err says why, never anything of a value). To keep it, secret_ref it; a
 * value is for one request: the next one asks again, and is given it at once while the time lasts
 * that the vault said. */
typedef void (*secret_fn)(void *arg, struct secret *value, const struct err *err);

/* The next question to the vault is of this request: its steps are said there too. */
void secret_client_trace(struct secret_client *c, const struct trace *t);

struct secret_client *secret_client_new(struct event_base *base);
/* Waits are dropped without a call. Not from within a callback. NULL is fine. */
void secret_client_free(struct secret_client *c);
/* The channel to the vault, owned from here on; a new one replaces a dead one and is asked again
 * what the dead one owed. */
void secret_client_attach(struct secret_client *c, int vault_fd, uint32_t number);
/* Who is told of the number when that channel ends (peer_lost). */
void secret_client_lost_to(struct secret_client *c, struct ipc *parent);
/* fn is called when the vault says that a secret has another value now. */
typedef void (*secret_stale_fn)(void *arg, struct slice name);
void secret_client_on_stale(struct secret_client *c, secret_stale_fn fn, void *arg);
/* Calls fn at once (and returns NULL) when the value is at hand, else later. */
struct secret_wait *secret_client_get(struct secret_client *c, const char *name, secret_fn fn,
                                      void *arg);
/* The same for whoever goes on without it: what failed last is told at once, and asked for anew in
 * the background when its time is over (a second, doubled with each failure, half a minute at most)
 * or when it is said to have changed. */
struct secret_wait *secret_client_look(struct secret_client *c, const char *name, secret_fn fn,
                                       void *arg);
/* A signature of a secret that signs; n 0 with err on failure. */
struct aws_scope;
struct sign_wait;
typedef void (*sign_fn)(void *arg, struct slice signature, const struct err *err);
/* fn runs later, or at once (then NULL is returned) when there is no vault, or when payer, the
 * sandbox, has its part of what may be awaited (ERR_LIMIT). sandbox: whose, of a captured key; else
 * "". */
struct sign_wait *secret_client_sign(struct secret_client *c, const char *payer, const char *name,
                                     const char *sandbox, const char *key_id,
                                     const struct aws_scope *scope, sign_fn fn, void *arg);
/* The same for a text (secrets/vault/derived.h); scheme: of TLS, else 0. */
struct sign_wait *secret_client_sign_text(struct secret_client *c, const char *payer,
                                          const char *name, uint32_t scheme, struct slice text,
                                          sign_fn fn, void *arg);
/* Replies with new secrets (secrets/proto/capture.h), for this sandbox. body n 0 with err on
 * failure; values: those that were taken out of it. Cancelled like a signature. */
typedef void (*captured_fn)(void *arg, struct slice body, const struct slice *values, size_t n,
                            const struct err *err);
struct sign_wait *secret_client_capture(struct secret_client *c, const char *sandbox,
                                        const struct captured_field *fields, size_t n,
                                        enum captured_form form, struct slice body, captured_fn fn,
                                        void *arg);
/* One that was captured: as the body. */
struct sign_wait *secret_client_captured(struct secret_client *c, const char *sandbox,
                                         const char *name, captured_fn fn, void *arg);
/* What any sandbox of the policy has captured under that name, the newest first: as the values. */
struct sign_wait *secret_client_captured_all(struct secret_client *c, const char *payer,
                                             const char *name, captured_fn fn, void *arg);
/* A server refused the value that was sent, before its time: the vault makes another, where it can
 * and has not just done so. ok: there is one now, which secret_client_get has. NULL: it cannot be
 * asked, and fn does not run. Cancelled like a signature. */
bool secret_client_renewable(const struct secret_client *c, const char *name);
typedef void (*renewed_fn)(void *arg, bool ok);
struct sign_wait *secret_client_refused(struct secret_client *c, const char *payer,
                                        const char *name, const char *sent, renewed_fn fn,
                                        void *arg);
/* "SCHEME NAME", which is all that the vault says of a login: NAME. Empty where there is none, or
 * it is longer than most. */
struct slice secret_client_login_name(const struct secret *told, size_t most);
void secret_client_sign_cancel(struct sign_wait *w); /* fn will not run; NULL is fine */
void secret_client_cancel(struct secret_wait *w);    /* fn will not run; NULL is fine */

#endif
