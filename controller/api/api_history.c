/* GET /v1/audit/query and /v1/audit/case: what the log holds, by its index, found by a process that
 * the parent starts; and a part of it with proofs. What that process says is handed on unread. */
#include "api_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "quota.h"
#include "wire.h"

enum { HISTORY_ROWS = 1000, HISTORY_MOST = WIRE_LOG_ASK_ROWS - 1 };
enum history_verb { HISTORY_QUERY = 0, HISTORY_CASE = 1 };

struct history_wait {
    struct evhttp_request *req;
    struct quota_part part;
    uint32_t number;
    enum history_verb verb;
    uint32_t limit;
    LIST_ENTRY(history_wait) link;
};

struct history {
    struct quota quota; /* of questions under way, by token */
    uint32_t last;
    LIST_HEAD(, history_wait) waits;
};

struct history *history_new(void)
{
    struct history *h = calloc(1, sizeof *h);
    if (h == NULL)
        return NULL;
    h->quota = (struct quota){.total = WIRE_LOG_ASKS, .each = WIRE_LOG_ASKS};
    LIST_INIT(&h->waits);
    return h;
}

static void drop(struct history_wait *w)
{
    LIST_REMOVE(w, link);
    quota_leave(&w->part);
    free(w);
}

void history_free(struct history *h)
{
    while (h && !LIST_EMPTY(&h->waits))
        drop(LIST_FIRST(&h->waits)); /* the request goes with its connection */
    free(h);
}

/* ---- asked ---- */

static int put_fields(struct msg *m, const struct asked *q, struct err *err)
{
    static const char *const names[] = WIRE_LOG_ASK_NAMES;
    for (size_t i = 0; i < WIRE_LOG_ASK_FIELDS; i++) {
        const char *value = asked_param(q, names[i]);
        if (value && strlen(value) >= WIRE_LOG_ASK_TEXT)
            return err_set(err, ERR_PARSE, "%s is too long", names[i]);
        msg_put_str(m, value ? value : "");
    }
    return 0;
}

static void ask(struct api *a, struct evhttp_request *req, const struct asked *q,
                enum history_verb verb)
{
    struct history *h = a->history;
    struct err err = {0};
    struct msg m;
    int64_t limit;
    if (asked_number(q, "limit", 1, HISTORY_MOST, HISTORY_ROWS, &limit, &err) < 0) {
        api_refuse_err(req, &err);
        return;
    }
    struct history_wait *w = calloc(1, sizeof *w);
    const char *who = a->bearer ? a->bearer->id : "";
    if (w == NULL || quota_take(&h->quota, &w->part, slice_str(who), 1) != QUOTA_TAKEN) {
        free(w);
        api_refuse(req, 503, "unavailable", "too much is asked of the log at once");
        return;
    }
    w->req = req;
    w->verb = verb;
    w->limit = (uint32_t)limit;
    w->number = ++h->last;
    LIST_INSERT_HEAD(&h->waits, w, link);
    msg_init(&m, W_LOG_ASK);
    msg_put_u32(&m, w->number);
    msg_put_u8(&m, (uint8_t)verb);
    msg_put_u32(&m, w->limit + (verb == HISTORY_QUERY)); /* one more: are there more? */
    bool bad = put_fields(&m, q, &err) < 0;
    if (!bad && ipc_send(a->controller->owner.parent, &m) == 0)
        return;
    drop(w);
    if (bad)
        api_refuse_err(req, &err);
    else
        api_refuse(req, 503, "unavailable", "the parent does not answer");
}

void api_history(struct api *a, struct evhttp_request *req, struct asked *q)
{
    ask(a, req, q, HISTORY_QUERY);
}

void api_case(struct api *a, struct evhttp_request *req, struct asked *q)
{
    ask(a, req, q, HISTORY_CASE);
}

/* ---- answered ---- */

/* Each line is a JSON object of the log; put side by side they are a list of it. */
static int put_lines(struct buf *out, struct slice lines, uint32_t limit)
{
    size_t n = 0;
    ssize_t nl;
    for (size_t i = 0; i < lines.n; i++)
        n += lines.p[i] == '\n';
    bool more = n > limit;
    if (more && (nl = slice_find(lines, '\n')) >= 0) /* the oldest is left out */
        lines = (struct slice){lines.p + nl + 1, lines.n - (size_t)nl - 1};
    if (buf_printf(out, "{\"more\":%s,\"records\":[", more ? "true" : "false") < 0)
        return -1;
    for (bool first = true; (nl = slice_find(lines, '\n')) >= 0; first = false) {
        if ((!first && buf_append_str(out, ",\n") < 0) || buf_append(out, lines.p, (size_t)nl) < 0)
            return -1;
        lines = (struct slice){lines.p + nl + 1, lines.n - (size_t)nl - 1};
    }
    return buf_append_str(out, "]}\n");
}

static void reply(const struct history_wait *w, struct slice said)
{
    struct buf out;
    if (w->verb == HISTORY_CASE) {
        api_send(w->req, 200, "application/json", said.p, said.n);
        return;
    }
    buf_init(&out, said.n * 2 + 256);
    if (put_lines(&out, said, w->limit) == 0)
        api_send(w->req, 200, "application/json", buf_data(&out), buf_len(&out));
    else
        api_refuse(w->req, 503, "unavailable", "out of memory");
    buf_free(&out);
}

static void reply_memfd(const struct history_wait *w, int fd)
{
    struct err err = {0};
    char *text;
    size_t n;
    if (ipc_memfd_read(fd, WIRE_LOG_SAID_MAX, &text, &n, &err) < 0) {
        api_refuse(w->req, 503, "unavailable", err.text);
        return;
    }
    reply(w, (struct slice){text, n});
    free(text);
}

static struct history_wait *find(const struct history *h, uint32_t number)
{
    struct history_wait *w;
    LIST_FOREACH(w, &h->waits, link)
    if (w->number == number)
        return w;
    return NULL;
}

int api_answer_log(struct api *a, struct msg *m)
{
    uint32_t number;
    uint8_t end;
    char why[256];
    int fd = -1;
    if (msg_get_u32(m, &number) < 0 || msg_get_u8(m, &end) < 0 || end > WIRE_LOG_BAD ||
        msg_get_str(m, why, sizeof why) < 0 || (end == WIRE_LOG_GOOD && msg_get_fd(m, &fd) < 0) ||
        msg_end(m) < 0) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    struct history_wait *w = find(a->history, number);
    if (w && end == WIRE_LOG_GOOD)
        reply_memfd(w, fd);
    else if (w && end == WIRE_LOG_BAD)
        api_refuse(w->req, 400, "bad_request",
                   "a condition cannot be read: they are as 'durward audit query --help' has them");
    else if (w)
        api_refuse(w->req, 503, "unavailable", why);
    if (fd >= 0)
        close(fd);
    if (w)
        drop(w);
    return 0;
}
