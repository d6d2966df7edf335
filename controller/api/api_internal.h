/* Shared by the API's files: api.c (who may ask, and how it is answered), api_routes.c (by whom),
 * api_stream.c (connections taken over from HTTP) and one file a kind of thing. */
#ifndef DURWARD_API_INTERNAL_H
#define DURWARD_API_INTERNAL_H

#include <event2/http.h>
#include <jansson.h>

#include "api.h"
#include "api_asked.h"
#include "bearer.h"
#include "execution.h"
#include "managed_sandbox.h"

struct stream;
struct feed;
struct console;
struct history;
struct command_sessions;

struct api_wait { /* a request whose answer the parent has to give */
    struct evhttp_request *req;
    STAILQ_ENTRY(api_wait) link;
};

STAILQ_HEAD(api_waits, api_wait);

/* By which way a request came: the console has fewer routes, over TLS a token decides. */
enum api_listener { LISTENER_SOCKET, LISTENER_CONSOLE, LISTENER_TLS };

struct tls_listener;
/* All, so that a wrong one is refused by our own table, in JSON. */
#define API_METHODS                                                                            \
    (EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_DELETE | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT | \
     EVHTTP_REQ_OPTIONS | EVHTTP_REQ_PATCH | EVHTTP_REQ_TRACE | EVHTTP_REQ_CONNECT)

struct api {
    struct controller *controller;
    struct evhttp *http;
    struct api_waits status, reload, metrics, verify, revoked;
    enum api_listener listener;  /* of the request that is being answered */
    const struct bearer *bearer; /* whose token it came with; NULL: the owner's, who may all */
    struct bearers *bearers;
    struct tls_listener *tls;      /* NULL: no such listener */
    struct evhttp *metrics_http;   /* NULL: no such listener */
    struct feed *feed;             /* the audit log as it is written, for those who watch */
    struct console *console;       /* NULL: no such listener */
    struct history *history;       /* questions to the log that are under way */
    struct command_sessions *kept; /* commands that outlive their client */
    LIST_HEAD(, stream) streams;
    LIST_HEAD(, tracer) tracers;     /* api_trace.c */
    LIST_HEAD(, transfer) transfers; /* archives on their way */
};

extern const char api_document[]; /* doc/openapi.json */

/* Sends and takes the reference. */
void api_reply(struct evhttp_request *req, int status, json_t *v);
void api_refuse(struct evhttp_request *req, int status, const char *code, const char *message);
/* What frames a request and says whose it is stands there once. Else it is answered, and the
 * connection ends. Of each listener the first question. */
bool api_head_clear(struct evhttp_request *req);
void api_send(struct evhttp_request *req, int status, const char *type, const void *p, size_t n);
void api_no_content(struct evhttp_request *req); /* 204 */
/* ERR_PARSE 400 bad_request, ERR_UNREADY 409 not_running, ERR_DENIED 409 conflict, ERR_LIMIT 413
 * too_large, else 500 internal. */
void api_refuse_err(struct evhttp_request *req, const struct err *err);
/* An errno of a file operation, as status and constant code. */
int api_errno(uint32_t e, const char **code);
void api_refuse_errno(struct evhttp_request *req, uint32_t e);
const char *api_errno_text(uint32_t e);
/* A question to the parent, answered in order; 503 when it cannot be asked. */
void api_ask_parent(struct api *a, struct evhttp_request *req, struct api_waits *q, uint16_t type);
struct evhttp_request *api_first_waiting(struct api_waits *q); /* taken off; NULL: none */
int api_answer_metrics(struct api *a, struct msg *m);
int api_answer_verified(struct api *a, struct msg *m);
int api_answer_log(struct api *a, struct msg *m);
struct history *history_new(void);    /* NULL: out of memory */
void history_free(struct history *h); /* NULL is fine */
/* Who asks, for the log: the kernel's word, a token's id and name, or the console. */
void api_who(const struct api *a, struct evhttp_request *req, char *to, size_t size);
/* The public key of the logger that runs, in hex; "": it was not told yet. */
const char *feed_key(const struct feed *f);
/* Answers, at once or later. */
void api_route(struct api *a, struct evhttp_request *req, enum api_listener listener);
struct feed *feed_new(struct api *a);
void transfers_free(struct api *a);   /* streams are dropped before */
void feed_free(struct feed *f);       /* NULL is fine; streams are dropped before */
void console_free(struct console *c); /* NULL is fine */
/* Without a policy: the only one there is. NULL with err. */
const char *api_only_policy(const struct config *c, struct err *err);

/* Templates that whoever asks sees, with their pools. */
json_t *api_templates_json(const struct api *a);
/* May who asks have one more sandbox? ERR_UNREADY. */
int api_check_sandboxes(const struct api *a, struct err *err);
/* What create and fork take alike: name, labels, env, times, on_idle, auto_resume; the rest is
 * NULL. */
int api_read_wish(const struct api *a, json_t *body, struct managed_sandbox_wish *w,
                  struct err *err);
/* What was not said, as the wish's policy has it: times, on_idle, and the image of what is new. The
 * same of a template, but for the image. */
void api_settle_wish(const struct controller *c, struct managed_sandbox_wish *w);
void api_settle_times(const struct config_sandbox *s, struct managed_sandbox_wish *w);
/* Does the reason say that it is never possible here (501)? */
bool api_unsupported(const char *why);
/* api_bearer.c: does it exist for whoever asks? */
bool api_sees(const struct api *a, const struct managed_sandbox *r);
struct managed_sandbox_sight
api_sight(const struct api *a); /* the same, for those who look for one */
bool api_sees_policy(const struct api *a, const char *policy);
bool api_sees_template(const struct api *a, const struct config_template *t);
bool api_sees_snapshot(const struct api *a, const struct snapshot *s);
struct managed_volume;
struct named_layer;
bool api_sees_volume(const struct api *a, const struct managed_volume *v);
/* Texts NAME:/path[:ro] that whoever asks may have in a sandbox of this policy. */
int api_check_volumes(const struct api *a, const json_t *list, const char *policy, struct err *err);
/* One that whoever asks sees and that is READY; else answers. */
struct managed_volume *api_find_volume(struct api *a, struct evhttp_request *req, const char *name);
/* The only policy that can be meant; NULL with err. */
const char *api_default_policy(const struct api *a, struct err *err);
/* What is made with a token has its labels: put into body's. ERR_PARSE: others are asked for. */
int api_own_labels(const struct api *a, json_t *body, json_t **labels, struct err *err);
void tls_listener_signer(struct tls_listener *d, int fd,
                         uint32_t channel); /* a channel to the signer; takes over fd */
/* The id of the token that was shown on this connection last; "" for none. */
const char *tls_listener_token(const struct api *a, struct bufferevent *bev);
void tls_listener_free(struct tls_listener *d); /* NULL is fine */
/* What came of a snapshot or volume; NULL: 503 with this code, and why. */
void api_answer_layer(struct evhttp_request *req, int status, const struct named_layer *l,
                      const char *why, const char *code);
/* One that is READY; else answers. */
struct snapshot *api_find_snapshot(struct api *a, struct evhttp_request *req, const char *name);

/* A connection that goes on as something else than HTTP requests. */
struct stream;
struct stream_ops {
    void (*read)(void *arg, struct evbuffer *in); /* bytes are here */
    void (*room)(void *arg);                      /* what was to be written is nearly out */
    void (*gone)(void *arg);                      /* the far end left, or the daemon ends */
};
enum { STREAM_HIGH = 1 << 20, STREAM_LOW = 256 << 10 }; /* bytes waiting to be written */
/* Take the request's connection over, with these bytes as the answer's head. NULL: out of memory
 * (the request is still to be answered). */
struct stream *stream_take(struct api *a, struct evhttp_request *req, const char *head,
                           const struct stream_ops *ops, void *arg);
struct evbuffer *stream_out(struct stream *s);
bool stream_full(struct stream *s);
void stream_pause(struct stream *s, bool pause); /* reading */
void stream_close(struct stream *s);             /* sends what waits; no op is called any more */
/* Does the request ask to become this? */
void stream_drop(struct stream *s); /* at once; `gone` is called */
/* End those whose token is not good any more. */
void streams_check(struct api *a);
bool stream_wanted(struct evhttp_request *req, const char *protocol);

#define HANDLER(name) void name(struct api *a, struct evhttp_request *req, struct asked *q)
#define HANDLER_IN(name) \
    void name(struct api *a, struct evhttp_request *req, struct asked *q, struct managed_sandbox *r)
HANDLER(api_metrics);
HANDLER(api_token_new);
HANDLER(api_tokens);
HANDLER(api_token_revoke);
void api_fleet_revoked(void *api, const char *id); /* another host has said so */
HANDLER(api_watch);
HANDLER(api_explain);
HANDLER(api_verify);
HANDLER(api_history);
HANDLER(api_case);
HANDLER(api_codes);
HANDLER(api_proposals);
HANDLER(api_proposal);
HANDLER(api_suppressions);
HANDLER(api_suppress);
HANDLER(api_suppression);
HANDLER(api_suppression_accept);
HANDLER(api_suppression_lift);
HANDLER(api_propose);
HANDLER(api_accept);
HANDLER(api_reject);
HANDLER_IN(api_trace);
HANDLER(api_policy);
HANDLER(api_console);
HANDLER(api_health);
HANDLER(api_status);
HANDLER(api_fleet);
HANDLER(api_reload);
HANDLER(api_policies);
HANDLER(api_events);
HANDLER(api_openapi);
HANDLER(api_issue);
HANDLER(api_revoke);
HANDLER(api_approvals);
HANDLER(api_approval);
HANDLER(api_approve);
HANDLER(api_disapprove);
HANDLER(api_create);
HANDLER(api_list);
HANDLER(api_templates);
HANDLER(api_template);
HANDLER(api_delete);
HANDLER_IN(api_show);
HANDLER_IN(api_change);
HANDLER_IN(api_pause);
HANDLER_IN(api_stop);
HANDLER_IN(api_resume);
HANDLER_IN(api_restore);
HANDLER_IN(api_fork);
HANDLER(api_snapshot);
HANDLER(api_snapshots);
HANDLER(api_snapshot_show);
HANDLER(api_snapshot_delete);
HANDLER(api_export);
HANDLER(api_volume);
HANDLER(api_volumes);
HANDLER(api_volume_show);
HANDLER(api_volume_delete);
HANDLER(api_volume_snapshot);
HANDLER(api_volume_restore);
HANDLER(api_volume_export);
HANDLER(api_import);
HANDLER_IN(api_execs);
HANDLER_IN(api_exec);
HANDLER_IN(api_attach);
HANDLER_IN(api_cancel);
HANDLER_IN(api_file_read);
HANDLER_IN(api_file_write);
HANDLER_IN(api_file_delete);
HANDLER_IN(api_file_list);
HANDLER_IN(api_file_stat);
HANDLER_IN(api_file_watch);
HANDLER_IN(api_batch);
HANDLER_IN(api_tar_read);
HANDLER_IN(api_tar_write);
HANDLER_IN(api_forward);
HANDLER_IN(api_services);
HANDLER_IN(api_preview);
HANDLER_IN(api_preview_revoke);

#endif
