/* Whose preview a name is, which tokens are good, and handing connections on. */
#include "previews.h"

#include "proc.h"
#include "previews_internal.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- names ---- */

unsigned previews_port(const struct controller *c, const struct managed_sandbox *r,
                       const char *service)
{
    const struct config_sandbox *s = config_policy_sandbox(c->config, r->policy);
    uint64_t port;
    if (!s->previews || config_preview(c->config) == NULL)
        return 0;
    for (unsigned i = 0; i < s->n_services; i++)
        if (strcmp(s->services[i].name, service) == 0)
            return s->services[i].port;
    bool plain = service[0] != '0' && slice_u64(slice_str(service), 65535, &port) == 0;
    return plain ? (unsigned)port : 0;
}

bool previews_url(const struct controller *c, const struct managed_sandbox *r, const char *service,
                  char url[PREVIEW_URL_MAX])
{
    const struct config_preview *v = config_preview(c->config);
    char at[HOST_TEXT_MAX + 16];
    if (previews_port(c, r, service) == 0)
        return false;
    snprintf(url, PREVIEW_URL_MAX, "%s://%s--%s.%s/", scheme_name(v->at.scheme), service, r->id,
             authority_text(&v->at, at, sizeof at));
    return true;
}

/* SERVICE--SANDBOX of a host below the domain. */
static bool split(const struct config_preview *v, const char *host,
                  char service[WIRE_SERVICE_MAX + 1], char id[SANDBOX_ID_MAX + 1])
{
    const char *dot = strchr(host, '.'), *mark = strstr(host, "--");
    if (dot == NULL || mark == NULL || mark > dot || strcmp(dot + 1, v->at.host) != 0)
        return false;
    size_t n = (size_t)(mark - host), m = (size_t)(dot - mark - 2);
    if (n == 0 || n > WIRE_SERVICE_MAX || m == 0 || m > SANDBOX_ID_MAX)
        return false;
    snprintf(service, WIRE_SERVICE_MAX + 1, "%.*s", (int)n, host);
    snprintf(id, SANDBOX_ID_MAX + 1, "%.*s", (int)m, mark + 2);
    return true;
}

struct managed_sandbox *previews_named(struct controller *c, const char *host,
                                       char service[WIRE_SERVICE_MAX + 1], unsigned *port)
{
    char id[SANDBOX_ID_MAX + 1];
    const struct config_preview *v = config_preview(c->config);
    if (v == NULL || !split(v, host, service, id))
        return NULL;
    struct managed_sandbox *r = managed_sandbox_find(c, id);
    *port = r ? previews_port(c, r, service) : 0;
    return *port ? r : NULL;
}

/* ---- tokens ---- */

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return t.tv_sec;
}

static void token_free(struct previews *p, struct preview_token *t)
{
    TAILQ_REMOVE(&p->tokens, t, link);
    p->n_tokens--;
    free(t);
}

/* The oldest of this sandbox beyond its share; those that have ended. */
static void make_room(struct previews *p, const char *id)
{
    struct preview_token *t, *next, *oldest = NULL;
    unsigned n = 0;
    for (t = TAILQ_FIRST(&p->tokens); t; t = next) {
        next = TAILQ_NEXT(t, link);
        if (t->ends <= now()) {
            token_free(p, t);
            continue;
        }
        if (strcmp(t->sandbox, id) != 0)
            continue;
        if (n++ == 0)
            oldest = t;
    }
    if (oldest && n >= PREVIEW_TOKENS_EACH)
        token_free(p, oldest);
}

static int issue(struct previews *p, const struct managed_sandbox *r, const char *service,
                 const struct preview_kind *kind, char text[SANDBOX_ID_MAX + 1], struct err *err)
{
    make_room(p, r->id);
    if (p->n_tokens >= PREVIEW_TOKENS_MAX)
        return err_set(err, ERR_UNREADY, "too many previews are open");
    struct preview_token *t = calloc(1, sizeof *t);
    if (t == NULL || sandbox_make_id(kind->prefix, text, err) < 0) {
        free(t);
        return err->code ? -1 : err_set(err, ERR_INTERNAL, "out of memory");
    }
    SHA256((const unsigned char *)text, strlen(text), t->hash);
    snprintf(t->sandbox, sizeof t->sandbox, "%s", r->id);
    snprintf(t->service, sizeof t->service, "%s", service);
    t->once = kind->once;
    t->port = previews_port(p->controller, r, service);
    t->ends = now() + kind->life;
    t->seconds = kind->seconds;
    TAILQ_INSERT_TAIL(&p->tokens, t, link);
    p->n_tokens++;
    return 0;
}

json_t *previews_issue(struct previews *p, const struct managed_sandbox *r, const char *service,
                       unsigned seconds, struct err *err)
{
    const struct preview_kind link = {"pl", true, PREVIEW_LINK_TTL, seconds};
    const struct preview_kind token = {"pt", false, seconds, seconds};
    char url[PREVIEW_URL_MAX], once[SANDBOX_ID_MAX + 1], kept[SANDBOX_ID_MAX + 1];
    char to[PREVIEW_URL_MAX + SANDBOX_ID_MAX + 32];
    int64_t at = time(NULL);
    if (!previews_url(p->controller, r, service, url)) {
        err_set(err, ERR_DENIED,
                config_preview(p->controller->config) == NULL
                    ? "this daemon has no listener of previews: add 'preview: 127.0.0.1:9466' to "
                      "'controller', and restart it"
                    : "the policy has no preview of that: it needs sandbox.previews, and a service "
                      "of that name "
                      "or a port");
        return NULL;
    }
    if (issue(p, r, service, &link, once, err) < 0 || issue(p, r, service, &token, kept, err) < 0)
        return NULL;
    snprintf(to, sizeof to, "%s?durward-preview=%s", url, once);
    controller_note(p->controller, r->id, "preview_opened", service);
    return json_pack("{s:s, s:I, s:s, s:s, s:s, s:I, s:I}", "service", service, "port",
                     (json_int_t)previews_port(p->controller, r, service), "url", url, "link", to,
                     "token", kept, "link_expires_at", (json_int_t)at + PREVIEW_LINK_TTL,
                     "expires_at", (json_int_t)at + seconds);
}

/* Seconds that it is good for; 0: it is not. One that is good once is used up. */
static unsigned judge(struct previews *p, const char *id, const char *service, bool once,
                      const char *text)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    struct preview_token *t, *found = NULL;
    SHA256((const unsigned char *)text, strlen(text), hash);
    TAILQ_FOREACH(t, &p->tokens, link)
    if (CRYPTO_memcmp(t->hash, hash, sizeof hash) == 0 && strcmp(t->sandbox, id) == 0 &&
        strcmp(t->service, service) == 0 && t->once == once && t->ends > now())
        found = t;
    if (found == NULL)
        return 0;
    unsigned seconds = once ? found->seconds : (unsigned)(found->ends - now());
    if (once)
        token_free(p, found);
    return seconds;
}

static int on_asked(struct previews *p, const char *id, struct ipc *gate, struct msg *m)
{
    uint32_t req;
    uint8_t once;
    char service[WIRE_SERVICE_MAX + 1], text[SANDBOX_ID_MAX + 1];
    struct msg answer;
    if (msg_get_u32(m, &req) < 0 || msg_get_str(m, service, sizeof service) < 0 ||
        msg_get_u8(m, &once) < 0 || once > 1 || msg_get_str(m, text, sizeof text) < 0 ||
        msg_end(m) < 0)
        return -1;
    struct managed_sandbox *r = managed_sandbox_find(p->controller, id);
    bool there = r && previews_port(p->controller, r, service);
    msg_init(&answer, W_PREVIEW_SAID);
    msg_put_u32(&answer, req);
    msg_put_u32(&answer, there ? judge(p, id, service, once != 0, text) : 0);
    ipc_send(gate, &answer); /* a gate that is gone needs none */
    return 0;
}

int previews_of_gate(void *controller, struct sandbox *s, struct ipc *gate, struct msg *m)
{
    struct controller *c = controller;
    struct err err = {0};
    if (c->previews == NULL)
        return -1;
    if (m->type == W_PREVIEW)
        return on_asked(c->previews, sandbox_id(s), gate, m);
    if (msg_end(m) < 0)
        return -1;
    struct managed_sandbox *r = managed_sandbox_find(c, sandbox_id(s));
    if (r && managed_sandbox_awake(r))
        managed_sandbox_used(r);
    else if (r && r->auto_resume && managed_sandbox_wake(r, &err) < 0)
        proc_log("%s: %s", r->id, err.text);
    return 0;
}

/* ---- what may be seen no more ---- */

static void tell_gate(struct previews *p, const struct managed_sandbox *r)
{
    const struct config_sandbox *s = config_policy_sandbox(p->controller->config, r->policy);
    struct msg m;
    if (r->sandbox == NULL || config_preview(p->controller->config) == NULL)
        return;
    msg_init(&m, W_PREVIEWS);
    msg_put_u8(&m, s->previews);
    msg_put_u32(&m, s->n_services);
    for (unsigned i = 0; i < s->n_services; i++) {
        msg_put_str(&m, s->services[i].name);
        msg_put_u32(&m, s->services[i].port);
    }
    (void)sandbox_tell_gate(r->sandbox, &m); /* one that is not there hears it when it is */
}

void previews_gate(struct previews *p, const char *id)
{
    struct managed_sandbox *r = p ? managed_sandbox_find(p->controller, id) : NULL;
    if (r)
        tell_gate(p, r);
}

void previews_reloaded(struct previews *p)
{
    struct managed_sandbox *r;
    struct preview_token *t, *next;
    for (t = p ? TAILQ_FIRST(&p->tokens) : NULL; t; t = next) {
        next = TAILQ_NEXT(t, link);
        r = managed_sandbox_find(p->controller, t->sandbox);
        if (r == NULL || previews_port(p->controller, r, t->service) != t->port)
            token_free(p, t);
    }
    if (p)
        TAILQ_FOREACH(r, &p->controller->managed_sandboxes, link)
    tell_gate(p, r);
}

/* A port may be seen by its number and by its services' names: what ends for one ends for all. */
int previews_revoke(struct previews *p, const struct managed_sandbox *r, const char *service,
                    struct err *err)
{
    struct preview_token *t, *next;
    struct msg m;
    unsigned port = service ? previews_port(p->controller, r, service) : 0;
    for (t = TAILQ_FIRST(&p->tokens); t; t = next) {
        next = TAILQ_NEXT(t, link);
        if (strcmp(t->sandbox, r->id) == 0 &&
            (!service || strcmp(t->service, service) == 0 || t->port == port))
            token_free(p, t);
    }
    controller_note(p->controller, r->id, "preview_revoked", service ? service : "*");
    if (r->sandbox == NULL) /* nor is its gate */
        return 0;
    msg_init(&m, W_PREVIEW_END);
    msg_put_str(&m, service ? service : "");
    return sandbox_tell_gate(r->sandbox, &m) < 0
               ? err_set(err, ERR_UNREADY, "the sandbox's gate is not there; try again")
               : 0;
}

void previews_sandbox_gone(struct previews *p, const char *id)
{
    struct preview_token *t, *next;
    for (t = p ? TAILQ_FIRST(&p->tokens) : NULL; t; t = next) {
        next = TAILQ_NEXT(t, link);
        if (strcmp(t->sandbox, id) == 0)
            token_free(p, t);
    }
}

/* ---- the porter ---- */

/* A connection that came while its sandbox slept. */
struct preview_caller {
    struct previews *previews;
    int fd;
    uint8_t http1;
    char name[HOST_TEXT_MAX + 16], sandbox[SANDBOX_ID_MAX + 1];
    struct authority at;
    LIST_ENTRY(preview_caller) link;
};

static void caller_free(struct preview_caller *c)
{
    LIST_REMOVE(c, link);
    c->previews->n_callers--;
    if (c->fd >= 0)
        close(c->fd);
    free(c);
}

static void turn_away(struct preview_caller *c, const char *code)
{
    struct msg m;
    if (c->previews->porter) {
        msg_init(&m, W_TURNED_AWAY);
        msg_put_u8(&m, c->http1);
        msg_put_str(&m, c->name);
        msg_put_str(&m, code);
        msg_put_fd(&m, c->fd);
        c->fd = -1;
        ipc_send(c->previews->porter, &m);
    }
    caller_free(c);
}

/* Whoever is awake now: the policy may have changed meanwhile. */
static void hand_on(struct preview_caller *c)
{
    struct controller *k = c->previews->controller;
    char service[WIRE_SERVICE_MAX + 1];
    unsigned port;
    struct msg m;
    struct managed_sandbox *r = previews_named(k, c->at.host, service, &port);
    if (r == NULL || r->sandbox == NULL) {
        turn_away(c, "preview_unknown");
        return;
    }
    managed_sandbox_used(r);
    msg_init(&m, W_INBOUND);
    msg_put_str(&m, c->at.host);
    msg_put_u32(&m, c->at.port);
    msg_put_u8(&m, c->at.scheme == SCHEME_HTTPS);
    msg_put_str(&m, service);
    msg_put_fd(&m, c->fd);
    c->fd = -1;
    (void)sandbox_tell_gate(r->sandbox, &m); /* one that died just now: its caller tries again */
    caller_free(c);
}

static void on_awake(void *arg, struct managed_sandbox *r, const char *why UNUSED)
{
    struct preview_caller *c = arg;
    if (r)
        hand_on(c);
    else
        turn_away(c, "preview_asleep");
}

static unsigned waiting(const struct previews *p, const char *id)
{
    const struct preview_caller *c;
    unsigned n = 0;
    LIST_FOREACH(c, &p->callers, link)
    n += strcmp(c->sandbox, id) == 0;
    return n;
}

static void receive(struct preview_caller *c, struct managed_sandbox *r)
{
    struct err err = {0};
    if (managed_sandbox_awake(r)) {
        hand_on(c);
        return;
    }
    if (waiting(c->previews, r->id) >= PREVIEW_WAITING_EACH) {
        turn_away(c, "preview_busy");
        return;
    }
    snprintf(c->sandbox, sizeof c->sandbox, "%s", r->id);
    if (!r->auto_resume || managed_sandbox_wake(r, &err) < 0 ||
        managed_sandbox_await(r, on_awake, c) < 0)
        turn_away(c, "preview_asleep");
}

static int on_porter(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct previews *p = arg;
    const struct config_preview *v = config_preview(p->controller->config);
    char name[HOST_TEXT_MAX + 16], service[WIRE_SERVICE_MAX + 1];
    uint8_t http1;
    unsigned port;
    int fd = -1;
    if (m->type != W_PORTER || msg_get_u8(m, &http1) < 0 || http1 > 1 ||
        msg_get_str(m, name, sizeof name) < 0)
        return -1;
    if (msg_get_fd(m, &fd) < 0)
        return m->lost && !m->bad ? 0 : -1; /* our table is full: that connection is lost */
    struct preview_caller *c = msg_end(m) < 0 ? NULL : calloc(1, sizeof *c);
    if (c == NULL) {
        close(fd);
        return m->bad ? -1 : 0;
    }
    *c = (struct preview_caller){.previews = p, .fd = fd, .http1 = http1};
    snprintf(c->name, sizeof c->name, "%s", name);
    LIST_INSERT_HEAD(&p->callers, c, link);
    p->n_callers++;
    bool fits = v && authority_parse(&c->at, v->at.scheme, slice_str(name)) == 0 &&
                c->at.port == v->at.port;
    struct managed_sandbox *r =
        fits ? previews_named(p->controller, c->at.host, service, &port) : NULL;
    if (r == NULL)
        turn_away(c, "preview_unknown");
    else if (p->n_callers > PREVIEW_WAITING_MAX)
        turn_away(c, "preview_busy");
    else
        receive(c, r);
    return 0;
}

static void on_porter_closed(struct ipc *ch, const char *why UNUSED, void *arg)
{
    struct previews *p = arg;
    ipc_free(ch);
    if (p->porter == ch)
        p->porter = NULL;
}

void previews_porter(struct previews *p, int fd)
{
    ipc_free(p->porter);
    p->porter = ipc_new(p->controller->base, fd, on_porter, on_porter_closed, p);
}

struct previews *previews_new(struct controller *c)
{
    struct previews *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->controller = c;
    TAILQ_INIT(&p->tokens);
    return p;
}

void previews_free(struct previews *p)
{
    if (p == NULL)
        return;
    previews_inside_free(p);
    while (!LIST_EMPTY(&p->callers))
        caller_free(LIST_FIRST(&p->callers));
    while (!TAILQ_EMPTY(&p->tokens))
        token_free(p, TAILQ_FIRST(&p->tokens));
    ipc_free(p->porter);
    free(p);
}
