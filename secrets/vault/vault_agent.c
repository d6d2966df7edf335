/* Signatures by an SSH agent of the host: each on a connection of its own, which the parent makes.
 * Whoever asked may be gone when the answer comes, for an agent may ask its user. */
#include "host_agent.h"
#include "ssh_sign.h"
#include "vault_internal.h"
#include "wire.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* An agent that asks its user takes its time, and may never answer: one sandbox that has whatever
 * it may have asked for leaves as much to the others of its policy, and a policy more than that. */
enum { SECONDS = 30, SIGNS_MAX = 256, SIGNS_OF_POLICY = 64, ASK_MAX = 16 * 1024 };

struct host_sign {
    struct channel *channel; /* who asked, */
    uint32_t req;
    struct quota_part of_policy, of_sandbox;
    uint32_t opening; /* the parent's number; 0: it has answered */
    int fd;
    bool listed; /* the list has come, which the parent asked for */
    struct event *readable, *timeout;
    struct buf ask, came;
    char algorithm[64];
    LIST_ENTRY(host_sign) link;
};

static void sign_free(struct host_sign *s)
{
    LIST_REMOVE(s, link);
    quota_leave(&s->of_policy);
    quota_leave(&s->of_sandbox);
    if (s->readable)
        event_free(s->readable);
    if (s->timeout)
        event_free(s->timeout);
    if (s->fd >= 0)
        close(s->fd);
    buf_free(&s->ask);
    buf_free(&s->came);
    free(s);
}

static void answer(struct host_sign *s, bool ok, struct slice what)
{
    struct channel *c = s->channel;
    struct msg m;
    msg_init(&m, W_SIGNED);
    msg_put_u32(&m, s->req);
    msg_put_u8(&m, ok);
    msg_put_slice(&m, what);
    sign_free(s);
    ipc_send(c->ipc, &m);
}

static void fail(struct host_sign *s, const char *why)
{
    answer(s, false, slice_str(why));
}

static void on_late(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    fail(arg, "its agent did not answer within 30 s");
}

/* A question is short: a socket that has nothing unread takes it whole. */
static void ask(struct host_sign *s)
{
    struct slice q = buf_slice(&s->ask);
    s->listed = true;
    if (send(s->fd, q.p, q.n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)q.n)
        fail(s, "its agent takes no question");
}

static void take(struct host_sign *s, struct slice message)
{
    struct err err = {0};
    struct buf signature;
    buf_init(&signature, SSH_SIGNATURE_MAX);
    if (host_agent_signature(message, slice_str(s->algorithm), &signature, &err) < 0)
        fail(s, err.text);
    else
        answer(s, true, buf_slice(&signature));
    buf_free(&signature);
}

static void on_readable(evutil_socket_t fd, short what UNUSED, void *arg)
{
    struct host_sign *s = arg;
    unsigned char *to = buf_room(&s->came) >= 4096 ? buf_reserve(&s->came, 4096) : NULL;
    ssize_t n = to ? recv(fd, to, 4096, MSG_DONTWAIT) : 0;
    struct slice message;
    size_t taken;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        fail(s, "its agent ended the connection");
        return;
    }
    buf_commit(&s->came, (size_t)n);
    int r = host_agent_next(buf_slice(&s->came), &message, &taken);
    if (r < 0) {
        fail(s, "its agent's answer cannot be read");
    } else if (r > 0 && s->listed) {
        take(s, message);
    } else if (r > 0) {
        buf_drain(&s->came, taken);
        ask(s);
    }
}

bool vault_agent_opened(struct vault *v, uint32_t req, int fd, const char *why)
{
    struct host_sign *s;
    LIST_FOREACH(s, &v->host_signs, link)
    if (s->opening == req)
        break;
    if (s == NULL)
        return false;
    s->opening = 0;
    s->fd = fd;
    if (fd < 0) {
        fail(s, why);
        return true;
    }
    s->readable = event_new(v->base, fd, EV_READ | EV_PERSIST, on_readable, s);
    if (s->readable == NULL || event_add(s->readable, NULL) < 0)
        fail(s, "out of memory");
    return true;
}

/* Who has given up counts until the agent has answered: it is still asked. */
static struct host_sign *sign_new(struct channel *c, uint32_t req, const char *sandbox)
{
    struct vault *v = c->vault;
    const struct timeval tv = {SECONDS, 0};
    struct host_sign *s = calloc(1, sizeof *s);
    if (s == NULL || quota_take(&c->agents, &s->of_sandbox, slice_str(sandbox), 1) != QUOTA_TAKEN ||
        quota_take(&v->agents, &s->of_policy, slice_str(c->policy), 1) != QUOTA_TAKEN) {
        if (s)
            quota_leave(&s->of_sandbox);
        free(s);
        return NULL;
    }
    s->channel = c;
    s->req = req;
    s->fd = -1;
    buf_init(&s->ask, ASK_MAX);
    buf_init(&s->came, HOST_AGENT_MESSAGE_MAX + 8192);
    LIST_INSERT_HEAD(&v->host_signs, s, link);
    s->timeout = event_new(v->base, -1, 0, on_late, s);
    if (s->timeout && event_add(s->timeout, &tv) == 0)
        return s;
    sign_free(s);
    return NULL;
}

int vault_agent_sign(struct channel *c, uint32_t req, const struct derived *d, struct slice value,
                     const struct text_to_sign *t, struct err *err)
{
    const struct slice text = {t->text, t->n};
    struct ssh_signing how;
    struct buf key;
    buf_init(&key, SSH_PUBLIC_MAX);
    int r = host_agent_public(value, &key) < 0
                ? err_set(err, ERR_PARSE, "its agent's key cannot be read")
                : derived_agent_may(d, buf_slice(&key), t->scheme, text, &how, err);
    struct host_sign *s = r == 0 ? sign_new(c, req, t->sandbox) : NULL;
    if (r == 0 && s == NULL)
        r = err_set(err, ERR_LIMIT, "too many signatures of agents are asked for at once");
    if (r == 0 && host_agent_ask(buf_slice(&key), text, how.flags, &s->ask) < 0) {
        sign_free(s);
        r = err_set(err, ERR_LIMIT, "this is too long to be signed");
    }
    if (r == 0) {
        memcpy(s->algorithm, how.algorithm, sizeof s->algorithm);
        s->opening = c->vault->hooks.open(c->vault, derived_input(d, 0));
    }
    buf_free(&key);
    return r;
}

void vault_agent_init(struct vault *v)
{
    LIST_INIT(&v->host_signs);
    LIST_INIT(&v->agents.owners);
    v->agents.total = v->agents.each = SIGNS_MAX;
}

void vault_agent_begin(struct channel *c)
{
    LIST_INIT(&c->agents.owners);
    c->agents.total = c->agents.each = SIGNS_OF_POLICY;
}

void vault_agent_left(struct channel *c)
{
    struct host_sign *s, *next;
    for (s = LIST_FIRST(&c->vault->host_signs); s; s = next) {
        next = LIST_NEXT(s, link);
        if (s->channel == c)
            sign_free(s);
    }
}
