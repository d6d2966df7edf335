/* SFTP as the sandbox speaks it: each packet is read whole, decided, and written anew for the back,
 * and so are the replies. What is refused is answered here. */
#include "ssh_front.h"

#include "scp_session.h"
#include "sftp_ask.h"
#include "ssh_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REFUSALS_MAX = 1000,    /* of a session; then it ends */
    ANSWERS_MAX = 64 << 10, /* that wait for the client: no more is read of it */
    REFUSED_STATUS = 128,
    CHUNK = 32 << 10,
};

struct slot {
    bool used;
    uint32_t id; /* the client's */
    enum sftp_op op;
};

struct sftp_client {
    struct policy *policy; /* whose rule it is; a reference */
    const struct rule *rule;
    struct buf in, up, down; /* of the client; for the back; of the back */
    struct slot slots[SFTP_SLOTS];
    size_t n_slots;
    bool opened, greeted, answered; /* the back has begun; the client; it was answered */
    bool waits;                     /* for the client to take its answers */
    uint32_t extensions;
    unsigned refusals;
    char home[SSH_FILE_PATH_MAX + 1];
    struct scp_session *scp;  /* the client speaks scp's protocol, and this speaks SFTP for it */
    struct buf said, replies; /* by the client; for that */
    bool scp_waits, scp_over;
};

int ssh_sftp_begin(struct ssh_channel_of *h, const struct rule *rule, const struct scp_command *scp)
{
    if (h->facts.verb != SSH_SFTP)
        return 0;
    struct sftp_client *s = calloc(1, sizeof *s);
    if (s == NULL)
        return -1;
    s->policy = policy_ref(h->connection->of->front->policy);
    s->rule = rule;
    s->scp = scp ? scp_session_new(scp) : NULL;
    if (scp && s->scp == NULL) {
        policy_free(s->policy);
        free(s);
        return -1;
    }
    buf_init(&s->said, SCP_CLIENT_MAX);
    buf_init(&s->replies, SFTP_SPACE);
    buf_init(&s->in, SFTP_REQUEST_MAX + 4 + CHUNK);
    buf_init(&s->up, SFTP_REQUEST_MAX + 4 + CHUNK);
    buf_init(&s->down, SFTP_SPACE);
    buf_free(&h->out);
    buf_init(&h->out, SFTP_SPACE);
    h->sftp = s;
    return 0;
}

void ssh_sftp_end(struct ssh_channel_of *h)
{
    struct sftp_client *s = h->sftp;
    if (s == NULL)
        return;
    h->sftp = NULL;
    buf_free(&s->in);
    buf_free(&s->up);
    buf_free(&s->down);
    buf_free(&s->said);
    buf_free(&s->replies);
    scp_session_free(s->scp);
    policy_free(s->policy);
    free(s);
}

/* Where what is replied to the client goes. */
static struct buf *replies_of(struct ssh_channel_of *h)
{
    return h->sftp->scp ? &h->sftp->replies : &h->out;
}

/* ---- refusals ---- */

static void give_up(struct ssh_channel_of *h, const char *code, const char *words)
{
    ssh_channel_note(h, code, h->sftp->rule, words);
    ssh_channel_say(h, code, words, REFUSED_STATUS);
}

static void answer(struct ssh_channel_of *h, uint32_t id, enum sftp_status status, const char *text)
{
    h->aside = false;
    if (sftp_status_write(id, status, text, replies_of(h)) < 0)
        give_up(h, "memory", "memory is out");
}

static void refuse(struct ssh_channel_of *h, const struct sftp_request *q, const char *method,
                   const char *code)
{
    struct sftp_client *s = h->sftp;
    struct ssh_connection *c = h->connection;
    char text[SSH_FILE_PATH_MAX + 1];
    struct record r;
    record_init(&r, RECORD_DENIED, 0);
    record_put_str(&r, RF_USER, h->facts.user);
    record_put_str(&r, RF_METHOD, method);
    snprintf(text, sizeof text, "%.*s", SL(q->path));
    record_put_str(&r, RF_PATH, text);
    record_put_str(&r, RF_RULE, s->rule->text);
    snprintf(text, sizeof text, "%.*s", SL(q->to));
    record_put_str(&r, RF_DETAIL, text);
    front_denied(c->of->front, &r, &c->at, code);
    answer(h, q->id, SFTP_PERMISSION_DENIED, sftp_refusal_words(code));
    if (++s->refusals > REFUSALS_MAX)
        give_up(h, "refusals", "too many refusals in one session");
}

/* ---- the client ---- */

static void greet(struct ssh_channel_of *h)
{
    struct sftp_client *s = h->sftp;
    if (!s->opened || !s->greeted || s->answered)
        return;
    s->answered = true;
    h->aside = false;
    if (sftp_hello_write(s->extensions | 1u << SFTP_LIMITS | 1u << SFTP_EXPAND_PATH,
                         replies_of(h)) < 0)
        give_up(h, "memory", "memory is out");
}

static void hand_on(struct ssh_channel_of *h, struct sftp_request *q)
{
    struct sftp_client *s = h->sftp;
    uint32_t i = 0;
    while (s->slots[i].used)
        i++;
    s->slots[i] = (struct slot){true, q->id, q->op};
    s->n_slots++;
    q->id = i;
    if (q->n > SFTP_DATA_MAX)
        q->n = SFTP_DATA_MAX;
    if (sftp_request_write(q, &s->up) < 0)
        give_up(h, "memory", "memory is out");
}

/* Which of a path's own parts are left to the server: none. */
static bool settle(const struct sftp_client *s, const struct sftp_request *q, struct slice *path,
                   char *to)
{
    bool looks = q->op == SFTP_REALPATH || q->op == SFTP_EXPAND_PATH;
    struct slice p = *path;
    if (q->op == SFTP_EXPAND_PATH && (slice_eq_str(p, "~") || slice_starts(p, SLICE("~/"))))
        p = p.n > 2 ? (struct slice){p.p + 2, p.n - 2} : SLICE("");
    else if (q->op == SFTP_EXPAND_PATH && slice_starts(p, SLICE("~")))
        return false;                                  /* another user's home */
    while (p.p != path->p && p.n > 0 && p.p[0] == '/') /* behind "~/" */
        p = (struct slice){p.p + 1, p.n - 1};
    if (!sftp_path_settle(slice_str(s->home), p, looks, to))
        return false;
    *path = slice_str(to);
    return true;
}

static void ask_path(struct ssh_channel_of *h, struct sftp_request *q)
{
    struct sftp_client *s = h->sftp;
    struct ssh_file_asked asked;
    char path[SSH_FILE_PATH_MAX + 1], to[SSH_FILE_PATH_MAX + 1];
    const char *code = "file_path";
    if (settle(s, q, &q->path, path) && (q->to.n == 0 || settle(s, q, &q->to, to))) {
        if (q->op == SFTP_EXPAND_PATH)
            q->op = SFTP_REALPATH;
        (void)sftp_ask(q, &asked);
        code = ssh_files_refused(&s->rule->ssh->files, slice_str(s->home), &asked);
        if (q->op == SFTP_REALPATH && strcmp(path, s->home) == 0)
            code = NULL;
        if (code == NULL && !sftp_attrs_settle(q->op, &q->attrs))
            code = "file_attributes";
    }
    (void)sftp_ask(q, &asked);
    if (code)
        refuse(h, q, ssh_file_verb_name(asked.verb), code);
    else
        hand_on(h, q);
}

static void ask(struct ssh_channel_of *h, struct sftp_request *q)
{
    struct ssh_file_asked asked;
    enum sftp_kind kind = sftp_ask(q, &asked);
    if (q->op == SFTP_LIMITS) {
        h->aside = false;
        if (sftp_limits_write(q->id, replies_of(h)) < 0)
            give_up(h, "memory", "memory is out");
    } else if (q->op == SFTP_SYMLINK) {
        refuse(h, q, "symlink", "file_symlink");
    } else if (q->op == SFTP_OTHER || (q->op >= SFTP_EXTENSION_FIRST && q->op != SFTP_EXPAND_PATH &&
                                       !(h->sftp->extensions >> q->op & 1))) {
        answer(h, q->id, SFTP_OP_UNSUPPORTED, "durward: this is not carried");
    } else if (kind == SFTP_KIND_PATH || q->op == SFTP_EXPAND_PATH) {
        ask_path(h, q);
    } else if (!sftp_attrs_settle(q->op, &q->attrs)) {
        refuse(h, q, ssh_file_verb_name(SSH_FILE_SET), "file_attributes");
    } else {
        hand_on(h, q);
    }
}

/* False: there is no whole packet, or it has to wait. */
static bool take_packet(struct ssh_channel_of *h)
{
    struct sftp_client *s = h->sftp;
    struct sftp_request q;
    struct slice body;
    size_t n;
    s->waits = buf_len(replies_of(h)) > ANSWERS_MAX;
    if (s->waits || s->n_slots == SFTP_SLOTS || (s->greeted && !s->answered))
        return false;
    int r = sftp_packet_next(buf_slice(&s->in), SFTP_REQUEST_MAX, &body, &n);
    if (r == 0)
        return false;
    if (r > 0 && !s->greeted) {
        r = sftp_hello_read(body, SFTP_INIT, &(uint32_t){0}) < 0 ? -1 : 1;
        s->greeted = r > 0;
        greet(h);
    } else if (r > 0 && sftp_request_read(body, &q) == 0) {
        ask(h, &q);
    } else {
        r = -1;
    }
    if (r < 0) {
        give_up(h, "sftp_message", "a packet of SFTP cannot be read");
        return false;
    }
    buf_drain(&s->in, n);
    return h->state == CHANNEL_RUNNING;
}

static bool read_into(struct ssh_channel_of *h, struct buf *b)
{
    unsigned char *to = buf_room(b) >= CHUNK ? buf_space(b, CHUNK) : NULL;
    int n = to ? ssh_channel_read_nonblocking(h->channel, to, CHUNK, 0) : 0;
    if (n > 0)
        buf_commit(b, (size_t)n);
    return n > 0;
}

/* What an old scp says becomes packets as if its client had sent them. */
static bool run_scp(struct ssh_channel_of *h)
{
    struct sftp_client *s = h->sftp;
    bool came = read_into(h, &s->said);
    size_t before = buf_len(&s->in);
    const struct scp_io io = {.client = &s->said,
                              .replies = &s->replies,
                              .out = &h->out,
                              .requests = &s->in,
                              .eof = !came && ssh_channel_is_eof(h->channel)};
    h->aside = false;
    s->scp_over = scp_session_run(s->scp, &io);
    s->scp_waits = buf_len(&h->out) >= SCP_OUT_MAX;
    return came || buf_len(&s->in) > before;
}

static bool read_some(struct ssh_channel_of *h)
{
    return h->sftp->scp ? run_scp(h) : read_into(h, &h->sftp->in);
}

/* The client says no more, and nothing of it is on its way. */
static bool is_said(struct ssh_channel_of *h)
{
    struct sftp_client *s = h->sftp;
    return s->scp ? s->scp_over
                  : !s->waits && s->n_slots < SFTP_SLOTS && s->greeted == s->answered &&
                        ssh_channel_is_eof(h->channel);
}

void ssh_sftp_up(struct ssh_channel_of *h)
{
    struct sftp_client *s = h->sftp;
    while (h->state == CHANNEL_RUNNING && h->stream && !h->eof_sent) {
        if (!broker_stream_send_buf(h->stream, &s->up))
            return;
        if (take_packet(h))
            continue;
        if (h->state != CHANNEL_RUNNING || h->stream == NULL)
            return;
        if (buf_len(&s->up) == 0 && !read_some(h)) {
            if (is_said(h))
                h->eof_sent = broker_stream_send(h->stream, BROKER_END, SLICE("")) > 0;
            return;
        }
    }
}

void ssh_sftp_again(struct ssh_channel_of *h)
{
    const struct sftp_client *s = h->sftp;
    if ((s->scp ? s->scp_waits : s->waits) && buf_len(&h->out) <= ANSWERS_MAX)
        ssh_pump_soon(h->connection->pump);
}

void ssh_sftp_status(struct ssh_channel_of *h)
{
    if (h->sftp == NULL || h->sftp->scp == NULL)
        return;
    h->status = (struct ssh_status){.status = scp_session_status(h->sftp->scp)};
    h->has_status = true;
}

/* ---- the back ---- */

int ssh_sftp_opened(struct ssh_channel_of *h, struct slice s)
{
    struct sftp_client *c = h->sftp;
    struct slice home;
    if (c->opened || ssh_wire_u32(&s, &c->extensions) < 0 || ssh_wire_string(&s, &home) < 0 ||
        s.n > 0 || !ssh_file_path_ok(home))
        return -1;
    memcpy(c->home, home.p, home.n);
    c->home[home.n] = 0;
    c->opened = true;
    greet(h);
    return 0;
}

static int take_reply(struct ssh_channel_of *h, struct slice body)
{
    struct sftp_client *c = h->sftp;
    struct sftp_reply r;
    if (sftp_reply_read(body, &r) < 0 || r.id >= SFTP_SLOTS || !c->slots[r.id].used ||
        !sftp_reply_fits(&r, c->slots[r.id].op))
        return -1;
    c->slots[r.id].used = false;
    c->n_slots--;
    r.id = c->slots[r.id].id;
    h->aside = false;
    return sftp_reply_write(&r, replies_of(h));
}

int ssh_sftp_down(struct ssh_channel_of *h, struct slice s)
{
    struct sftp_client *c = h->sftp;
    struct slice body;
    size_t n;
    int r;
    if (!c->answered || buf_append_slice(&c->down, s) < 0)
        return -1;
    while ((r = sftp_packet_next(buf_slice(&c->down), SFTP_REPLY_MAX, &body, &n)) > 0) {
        if (take_reply(h, body) < 0)
            return -1;
        buf_drain(&c->down, n);
    }
    if (r < 0)
        return -1;
    if (buf_len(&h->out) > 0)
        broker_stream_pause(h->stream, true); /* until that is with the client */
    ssh_pump_soon(h->connection->pump);
    return 0;
}
