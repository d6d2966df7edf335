/* An SFTP session of a front's: what it asks is read as an adversary's, and decided again. */
#include "sftp_session.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 32 << 10 };

/* ---- its life ---- */

struct sftp_session *sftp_session_new(struct ssh_request *q)
{
    struct sftp_session *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->of = q;
    s->files = &q->request.rule->ssh->files;
    buf_init(&s->from_front, SFTP_REQUEST_MAX + 4 + BROKER_PACKET_MAX);
    buf_init(&s->from_server, SFTP_SPACE);
    buf_init(&s->to_front, SFTP_SPACE);
    buf_free(&q->in);
    buf_init(&q->in, 2 * SFTP_REQUEST_MAX);
    if (sftp_init_write(&q->in) == 0)
        return s;
    sftp_session_free(s, "memory");
    return NULL;
}

void sftp_session_free(struct sftp_session *s, const char *code)
{
    if (s == NULL)
        return;
    journal_cancel(s->wait, code);
    if (s->wait == NULL)
        sftp_record_end(s, &s->record, RECORD_ABORTED, code, "");
    for (size_t i = 0; i < SFTP_SLOTS; i++)
        sftp_record_end(s, &s->slots[i].record, RECORD_ABORTED, code, "");
    for (uint32_t i = 0; i < SFTP_FILES_MAX; i++)
        if (s->open[i])
            sftp_file_close(s, i, strcmp(code, "ok") == 0 ? "not_closed" : code, "");
    s->of->sftp = NULL;
    sftp_turn_end(s);
    if (s->late)
        event_free(s->late);
    buf_free(&s->from_front);
    buf_free(&s->from_server);
    buf_free(&s->to_front);
    free(s);
}

bool sftp_session_ready(const struct sftp_session *s)
{
    return s->stage == SFTP_STAGE_READY;
}

const char *sftp_session_failed(const struct sftp_session *s)
{
    return s ? s->failed : NULL;
}

struct slice sftp_home(const struct sftp_session *s)
{
    return slice_str(s->home);
}

/* ---- answers ---- */

void sftp_answer(struct sftp_session *s, uint32_t id, enum sftp_status status, const char *text)
{
    if (sftp_status_write(id, status, text, &s->to_front) < 0)
        s->failed = "memory is out";
}

void sftp_deny(struct sftp_session *s, const struct sftp_request *q, const char *code)
{
    struct record r;
    record_init(&r, RECORD_DENIED, 0);
    sftp_record_put(s, q, &r);
    record_put_str(&r, RF_CODE, code);
    journal_note(s->of->of->back->journal, &r);
    sftp_answer(s, q->id, SFTP_PERMISSION_DENIED, sftp_refusal_words(code));
    if (++s->refusals > SFTP_REFUSALS_MAX)
        s->failed = "too many refusals in one session";
}

void sftp_send(struct sftp_session *s, struct sftp_request *q, bool resolved)
{
    struct sftp_slot *slot = &s->slots[q->id];
    uint32_t file = slot->file;
    *slot = (struct sftp_slot){
        .used = true, .resolved = resolved, .op = q->op, .n = q->n, .file = file};
    if (q->op == SFTP_OPEN || q->op == SFTP_OPENDIR) {
        int number = sftp_file_new(s, q);
        if (number < 0) {
            slot->used = false;
            sftp_record_end(s, &s->record, RECORD_ABORTED, "overload", "");
            sftp_answer(s, q->id, SFTP_FAILURE, "durward: too many files are open");
            sftp_turn_end(s);
            return;
        }
        slot->file = (uint32_t)number;
    } else if (resolved) {
        slot->record = s->record;
        s->record.counter = 0;
    }
    if (sftp_request_write(q, &s->of->in) < 0)
        s->failed = "memory is out";
}

/* ---- what names a path ---- */

static void ask_path(struct sftp_session *s, struct sftp_request *q,
                     const struct ssh_file_asked *asked)
{
    const char *code = ssh_files_refused(s->files, sftp_home(s), asked);
    uint64_t most = s->files->most_bytes;
    if (q->op == SFTP_REALPATH && slice_eq_str(q->path, s->home))
        code = NULL;
    if (code == NULL && !sftp_attrs_settle(q->op, &q->attrs))
        code = "file_attributes";
    if (code == NULL && most && (q->op == SFTP_SETSTAT || q->op == SFTP_LSETSTAT) &&
        (q->attrs.flags & SFTP_HAS_SIZE) && q->attrs.size > most)
        code = "file_size";
    if (code == NULL && most && q->op == SFTP_OPEN && (q->flags & SFTP_OPEN_APPEND))
        code = "file_size"; /* where that writes, the server alone knows */
    if (code)
        sftp_deny(s, q, code);
    else
        sftp_turn_begin(s, q);
}

/* ---- what names a handle ---- */

static bool fits(const struct sftp_file *f, enum sftp_op op)
{
    switch (op) {
    case SFTP_READ:
        return f->reads;
    case SFTP_WRITE:
    case SFTP_FSETSTAT:
    case SFTP_FSYNC:
        return f->writes;
    case SFTP_READDIR:
        return f->directory;
    default:
        return true;
    }
}

static const char *bounded(const struct sftp_session *s, struct sftp_request *q)
{
    uint64_t most = s->files->most_bytes, n = q->op == SFTP_WRITE ? q->data.n : q->n;
    if (q->op == SFTP_FSETSTAT && !sftp_attrs_settle(q->op, &q->attrs))
        return "file_attributes";
    if (most == 0)
        return NULL;
    if (q->op == SFTP_FSETSTAT)
        return (q->attrs.flags & SFTP_HAS_SIZE) && q->attrs.size > most ? "file_size" : NULL;
    if (q->op == SFTP_READ && q->offset <= most && n > most - q->offset && q->offset < most)
        q->n = (uint32_t)(most - q->offset); /* the rest is asked for next, and refused */
    else if ((q->op == SFTP_READ && q->offset >= most) ||
             (q->op == SFTP_WRITE && (q->offset > most || n > most - q->offset)))
        return "file_size";
    return NULL;
}

bool sftp_session_waits(const struct sftp_session *s)
{
    for (size_t i = 0; i < SFTP_SLOTS; i++)
        if (s->slots[i].used)
            return true;
    return false;
}

static bool has_turn(const struct sftp_session *s)
{
    for (size_t i = 0; i < SFTP_SLOTS; i++)
        if (s->slots[i].used && s->slots[i].resolved)
            return true;
    return s->step != STEP_NONE;
}

/* False: it is refused, and that is said when what was asked before is answered. OpenSSH's client
 * believes the last answer to its writes, not the first that is an error. */
static bool ask_handle(struct sftp_session *s, struct sftp_request *q)
{
    uint32_t number;
    struct sftp_file *f = sftp_file_of(s, q->handle, &number);
    if (q->n > SFTP_DATA_MAX)
        q->n = SFTP_DATA_MAX;
    if (f == NULL) {
        sftp_answer(s, q->id, SFTP_FAILURE, "durward: no such handle");
        return true;
    }
    const char *code = fits(f, q->op) ? bounded(s, q) : "file_handle";
    q->path = slice_str(f->path); /* for the record */
    if (code && sftp_session_waits(s))
        return false;
    if (code) {
        sftp_deny(s, q, code);
        return true;
    }
    q->handle = (struct slice){f->handle, f->n_handle};
    s->slots[q->id].file = number;
    if (q->op == SFTP_WRITE)
        f->n_written += q->data.n;
    f->usable = q->op != SFTP_CLOSE;
    sftp_send(s, q, false);
    return true;
}

/* A front hands on what it has read, and nothing else. False: not yet. */
static bool take(struct sftp_session *s, struct slice body)
{
    struct sftp_request q;
    struct ssh_file_asked asked;
    if (sftp_request_read(body, &q) < 0 || q.id >= SFTP_SLOTS || s->slots[q.id].used) {
        s->failed = "a front that says what none says";
        return true;
    }
    enum sftp_kind kind = sftp_ask(&q, &asked);
    bool lacks = q.op >= SFTP_EXTENSION_FIRST && !(s->extensions >> q.op & 1);
    if (kind == SFTP_KIND_NEVER || lacks)
        sftp_answer(s, q.id, SFTP_OP_UNSUPPORTED, "durward: this is not carried");
    else if (kind == SFTP_KIND_HANDLE)
        return ask_handle(s, &q);
    else
        ask_path(s, &q, &asked);
    return true;
}

/* ---- bytes ---- */

int sftp_session_take(struct sftp_session *s, struct slice bytes)
{
    struct slice body;
    size_t n;
    if (buf_append_slice(&s->from_front, bytes) < 0)
        return -1;
    if (sftp_packet_next(buf_slice(&s->from_front), SFTP_REQUEST_MAX, &body, &n) != 0) {
        back_request_pause(&s->of->request, true); /* until it is with the server */
        ssh_pump_soon(s->of->pump);
    }
    return 0;
}

/* False: the server does not take all of it now. */
static bool flush(struct ssh_request *q)
{
    while (buf_len(&q->in) > 0 && !ssh_pump_full(q->pump)) {
        int n = ssh_channel_write(q->channel, buf_data(&q->in), (uint32_t)buf_len(&q->in));
        if (n <= 0)
            return false;
        buf_drain(&q->in, (size_t)n);
    }
    return buf_len(&q->in) == 0;
}

void sftp_session_up(struct sftp_session *s)
{
    struct ssh_request *q = s->of;
    struct slice body;
    size_t n;
    while (flush(q) && s->failed == NULL && sftp_session_ready(s)) {
        if (s->step == STEP_TURN)
            sftp_turn_go_on(s);
        if (buf_len(&q->in) > 0)
            continue;
        if (has_turn(s) || buf_len(&s->to_front) > SFTP_ANSWERS_MAX)
            return;
        int r = sftp_packet_next(buf_slice(&s->from_front), SFTP_REQUEST_MAX, &body, &n);
        if (r < 0)
            s->failed = "a front that says what none says";
        if (r == 0 && q->in_end && !q->in_end_sent) {
            ssh_channel_send_eof(q->channel);
            q->in_end_sent = true;
        }
        if (r == 0)
            back_request_pause(&q->request, false);
        if (r <= 0)
            return;
        if (!take(s, body))
            return;
        buf_drain(&s->from_front, n);
    }
}

/* What it says beside SFTP is for nobody. */
static void drop_aside(struct ssh_request *q, size_t room)
{
    char bytes[1024];
    int n = ssh_channel_read_nonblocking(q->channel, bytes,
                                         (uint32_t)(room < sizeof bytes ? room : sizeof bytes), 1);
    if (n > 0)
        back_request_down(&q->request, (size_t)n);
}

/* How many bytes came; -1: none may. */
static int read_some(struct sftp_session *s)
{
    struct ssh_request *q = s->of;
    size_t room = back_request_down_room(&q->request, CHUNK);
    if (room == 0)
        return -1;
    drop_aside(q, room);
    unsigned char *to = buf_space(&s->from_server, CHUNK);
    int n = to ? ssh_channel_read_nonblocking(q->channel, to, (uint32_t)room, 0) : 0;
    if (n > 0) {
        buf_commit(&s->from_server, (size_t)n);
        back_request_down(&q->request, (size_t)n);
    }
    return n > 0 ? n : 0;
}

bool sftp_session_down(struct sftp_session *s)
{
    struct slice body;
    size_t n;
    while (s->failed == NULL) {
        bool answered = buf_len(&s->to_front) > 0;
        if (!broker_stream_send_buf(s->of->stream, &s->to_front))
            return false;
        if (answered && s->step == STEP_TURN)
            ssh_pump_soon(s->of->pump);
        int r = sftp_packet_next(buf_slice(&s->from_server), SFTP_REPLY_MAX, &body, &n);
        if (r < 0)
            s->failed = "a packet of SFTP that is too long";
        if (r > 0) {
            sftp_reply_take(s, body);
            buf_drain(&s->from_server, n);
            ssh_pump_soon(s->of->pump); /* a slot is free */
        } else if (r == 0) {
            int came = read_some(s);
            if (came <= 0)
                return came == 0;
        }
    }
    return false;
}
