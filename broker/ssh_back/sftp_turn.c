/* A request that names a path, on its way to the server. It is recorded; then the server is asked
 * where the path leads, that is decided again, and what is asked for is what it said.
 *
 * In between nobody of this back's may give anything at that server another name: else a link could
 * stand there by then. Who waits is served in the order of coming.
 *
 * All sandboxes of a policy wait for whoever has a turn, so that no front and no server can make
 * one last: it begins when nothing else of its session is under way, nothing else is taken until it
 * is over, and after TURN_SECONDS its session ends. */
#include "sftp_session.h"

#include <event2/event.h>
#include <string.h>
#include <sys/stat.h>

enum { TURN_SECONDS = 30 };

static bool renames(enum sftp_op op)
{
    return op == SFTP_RENAME || op == SFTP_POSIX_RENAME || op == SFTP_HARDLINK;
}

/* ---- who may, beside whom ---- */

static bool same_server(const struct sftp_session *a, const struct sftp_session *b)
{
    return a->of->request.at.port == b->of->request.at.port &&
           strcmp(a->of->request.at.host, b->of->request.at.host) == 0;
}

/* What it has under way: bit 0 looks, bit 1 renames. */
static unsigned busy(const struct sftp_session *s)
{
    unsigned ret = 0;
    if (s->step > STEP_TURN)
        ret |= renames(s->asked.op) ? 2 : 1;
    for (size_t i = 0; i < SFTP_SLOTS; i++)
        if (s->slots[i].used && s->slots[i].resolved)
            ret |= renames(s->slots[i].op) ? 2 : 1;
    return ret;
}

static bool may_begin(const struct sftp_session *s)
{
    const struct ssh_request *q;
    bool writer = renames(s->asked.op);
    LIST_FOREACH(q, &s->of->of->requests, link)
    {
        const struct sftp_session *other = q->sftp;
        if (other == NULL || !same_server(s, other))
            continue;
        bool before = other != s && other->ticket && other->ticket < s->ticket;
        if ((busy(other) & (writer ? 3 : 2)) || (before && (writer || renames(other->asked.op))))
            return false;
    }
    return true;
}

static void on_late(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct sftp_session *s = arg;
    s->failed = "the server takes too long";
    ssh_pump_soon(s->of->pump);
}

static void begin(struct sftp_session *s)
{
    static const struct timeval most = {TURN_SECONDS, 0};
    if (s->late == NULL)
        s->late = event_new(s->of->of->back->base, -1, 0, on_late, s);
    if (s->late == NULL || event_add(s->late, &most) < 0)
        s->failed = "memory is out";
}

void sftp_turn_end(struct sftp_session *s)
{
    const struct ssh_request *q;
    if (s->late)
        event_del(s->late);
    LIST_FOREACH(q, &s->of->of->requests, link)
    if (q->sftp && q->sftp->ticket && q->pump)
        ssh_pump_soon(q->pump);
}

/* ---- steps ---- */

/* Its end: answered with what was said to be asked for. */
static void over(struct sftp_session *s)
{
    s->step = STEP_NONE;
    s->ticket = 0;
    sftp_turn_end(s);
}

static void refused(struct sftp_session *s, const char *code)
{
    s->asked.path = slice_str(s->path);
    s->asked.to = slice_str(s->to);
    sftp_record_end(s, &s->record, RECORD_ABORTED, code, "");
    sftp_deny(s, &s->asked, code);
    over(s);
}

/* The path that the server is asked about in this step: the whole, or that of the folder which has
 * the name. */
static struct slice looked_up(const struct sftp_session *s, struct slice path)
{
    enum sftp_op op = s->asked.op;
    /* link(2) follows a link in some kernels */
    bool linked = op == SFTP_HARDLINK && s->step == STEP_RESOLVE;
    if (sftp_follows(op) || linked || path.n == 1)
        return path;
    size_t n = path.n;
    while (n > 1 && path.p[n - 1] != '/')
        n--;
    return (struct slice){path.p, n > 1 ? n - 1 : 1};
}

static void resolve(struct sftp_session *s, struct slice path)
{
    const struct sftp_request q = {
        .op = SFTP_REALPATH, .id = SFTP_RESOLVE_ID, .path = looked_up(s, path)};
    if (sftp_request_write(&q, &s->of->in) < 0)
        s->failed = "memory is out";
}

static void on_recorded(void *arg, bool ok)
{
    struct sftp_session *s = arg;
    s->wait = NULL;
    if (ok) {
        s->step = STEP_TURN;
    } else {
        s->record.counter = 0;
        sftp_answer(s, s->asked.id, SFTP_FAILURE, sftp_refusal_words("audit_unwritable"));
        over(s);
    }
    ssh_pump_soon(s->of->pump);
}

static void record(struct sftp_session *s)
{
    struct journal *j = s->of->of->back->journal;
    struct record r;
    s->record.counter = journal_next(j);
    clock_gettime(CLOCK_MONOTONIC, &s->record.begun);
    record_init(&r, RECORD_ADMITTED, s->record.counter);
    sftp_record_put(s, &s->asked, &r);
    record_put_str(&r, RF_CODE, "ok");
    struct journal_wait *w = journal_append(j, &r, on_recorded, s);
    if (w)
        s->wait = w; /* else on_recorded ran */
}

void sftp_turn_begin(struct sftp_session *s, const struct sftp_request *q)
{
    s->asked = *q;
    snprintf(s->path, sizeof s->path, "%.*s", SL(q->path));
    snprintf(s->to, sizeof s->to, "%.*s", SL(q->to));
    s->asked.path = slice_str(s->path);
    s->asked.to = slice_str(s->to);
    s->record.counter = 0;
    s->step = sftp_is_recorded(q->op) ? STEP_RECORD : STEP_TURN;
    if (s->step == STEP_RECORD)
        record(s);
    else
        sftp_turn_go_on(s);
}

void sftp_turn_go_on(struct sftp_session *s)
{
    if (s->step != STEP_TURN || sftp_session_waits(s) || buf_len(&s->to_front) > 0)
        return;
    if (s->ticket == 0)
        s->ticket = ++s->of->of->tickets;
    if (!may_begin(s))
        return;
    s->ticket = 0;
    s->step = STEP_RESOLVE;
    begin(s);
    resolve(s, s->asked.path);
}

/* The path as the server has it, in place of what was asked. -1: it is none, or too long. */
static int put_resolved(const struct sftp_session *s, char *path, struct slice said)
{
    struct slice folder = looked_up(s, slice_str(path));
    size_t len = strlen(path), n = said.n;
    bool whole = folder.n == len;
    const char *name = path + folder.n + (folder.n == 1 ? 0 : 1);
    size_t n_name = whole ? 0 : len - (size_t)(name - path);
    if (!ssh_file_path_ok(said) || n + 1 + n_name > SSH_FILE_PATH_MAX)
        return -1;
    if (!whole) {
        n = n > 1 ? n : 0;
        memmove(path + n + 1, name, n_name);
        path[n] = '/';
    }
    memcpy(path, said.p, n);
    path[whole ? n : n + 1 + n_name] = 0;
    return 0;
}

static void go(struct sftp_session *s)
{
    sftp_send(s, &s->asked, true);
    s->step = STEP_NONE;
}

/* What is renamed, where it could be a folder with files that no pattern allows to be moved. */
static void look(struct sftp_session *s)
{
    const struct sftp_request q = {
        .op = SFTP_LSTAT, .id = SFTP_RESOLVE_ID, .path = slice_str(s->path)};
    s->step = STEP_LOOK;
    if (sftp_request_write(&q, &s->of->in) < 0)
        s->failed = "memory is out";
}

static void looked(struct sftp_session *s, const struct sftp_attrs *a)
{
    if (a->flags & SFTP_HAS_MODE && !S_ISDIR(a->mode))
        go(s);
    else
        refused(s, "file");
}

static void arrived(struct sftp_session *s)
{
    struct ssh_file_asked asked;
    s->asked.path = slice_str(s->path);
    s->asked.to = slice_str(s->to);
    (void)sftp_ask(&s->asked, &asked);
    const char *code = ssh_files_refused(s->files, sftp_home(s), &asked);
    if (s->asked.op == SFTP_REALPATH && strcmp(s->path, s->home) == 0)
        code = NULL;
    if (code) {
        refused(s, "file_link");
        return;
    }
    if (s->asked.op == SFTP_REALPATH) {
        const struct sftp_name name = {.name = slice_str(s->path), .line = slice_str(s->path)};
        struct buf b;
        buf_init(&b, 4096);
        struct sftp_reply r = {.type = SFTP_NAME, .id = s->asked.id, .n_names = 1};
        int w = sftp_name_write(&name, &b);
        r.names = buf_slice(&b);
        if (w < 0 || sftp_reply_write(&r, &s->to_front) < 0)
            s->failed = "memory is out";
        buf_free(&b);
        over(s);
        return;
    }
    if (asked.verb == SSH_FILE_RENAME && !ssh_files_covered(s->files, sftp_home(s), &asked))
        look(s);
    else
        go(s);
}

void sftp_turn_resolved(struct sftp_session *s, const struct sftp_reply *r)
{
    struct slice names = r->names;
    struct sftp_name name;
    bool second = s->step == STEP_RESOLVE_TO;
    bool last = s->step == STEP_LOOK;
    if (s->step < STEP_RESOLVE || !sftp_reply_fits(r, last ? SFTP_LSTAT : SFTP_REALPATH)) {
        s->failed = "a reply to nothing that was asked";
        return;
    }
    if (r->type == SFTP_STATUS) {
        char text[100];
        snprintf(text, sizeof text, "%.*s", SL(r->text));
        sftp_record_end(s, &s->record, RECORD_COMPLETED, "ok", text);
        sftp_answer(s, s->asked.id, (enum sftp_status)r->status, text);
        over(s);
        return;
    }
    if (last) {
        looked(s, &r->attrs);
        return;
    }
    if (!sftp_name_next(&names, &name) ||
        put_resolved(s, second ? s->to : s->path, name.name) < 0) {
        refused(s, "file_link");
        return;
    }
    if (!second && s->asked.to.n > 0) {
        s->step = STEP_RESOLVE_TO;
        resolve(s, slice_str(s->to));
    } else {
        arrived(s);
    }
}
