/* Who may see the previews of this gate's sandbox: tokens are the controller's to judge
 * (W_PREVIEW); what it called good is remembered here until it ends, by its hash and for one
 * service. */
#ifndef DURWARD_PREVIEW_SESSIONS_H
#define DURWARD_PREVIEW_SESSIONS_H

#include "compiler.h"
#include "slice.h"

struct gate;
struct msg;
struct preview_ask;
struct preview_sessions;

enum {
    PREVIEW_SESSIONS_MAX = 64, /* beyond, the one that ends first gives way */
    PREVIEW_ASKS_MAX = 64,     /* of the controller at once */
    PREVIEW_TEXT_MAX = 64,     /* of a token, a cookie's value */
};

struct preview_sessions *preview_sessions_new(struct gate *g);
void preview_sessions_free(struct preview_sessions *s); /* NULL is fine */
/* W_PREVIEWS: what may be seen from now on; who was let in to anything else is forgotten. -1: bad.
 */
int preview_sessions_may(struct preview_sessions *s, struct msg *m);
/* Inside; 0: it may not be seen. */
unsigned preview_sessions_port(const struct preview_sessions *s, const char *service);
/* Whoever was let in to it, or ("") to any. */
void preview_sessions_forget(struct preview_sessions *s, const char *service);
/* A cookie's value, or a token that was good before. */
bool preview_sessions_know(const struct preview_sessions *s, const char *service, bool cookie,
                           struct slice text);
/* A fresh cookie's value, good for so many seconds. -1: no randomness. */
int preview_sessions_begin(struct preview_sessions *s, const char *service, unsigned seconds,
                           char cookie[PREVIEW_TEXT_MAX]);
/* fn, never from within: for how many seconds it is good; 0: it is not. once: it is a link's, which
 * is used up by this. NULL: too many are asked for, or nobody is there. */
typedef void (*preview_ask_fn)(void *arg, unsigned seconds);
struct preview_ask *preview_ask_new(struct preview_sessions *s, const char *service, bool once,
                                    struct slice text, preview_ask_fn fn, void *arg);
void preview_ask_cancel(struct preview_ask *a); /* NULL is fine */
/* W_PREVIEW_SAID; -1: bad. */
int preview_sessions_message(struct preview_sessions *s, struct msg *m);
void preview_sessions_controller_gone(struct preview_sessions *s); /* nothing asked is answered */
/* Somebody sees one: the controller hears it once a second at most. */
void preview_sessions_used(struct preview_sessions *s);

#endif
