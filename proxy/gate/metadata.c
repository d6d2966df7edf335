/* Answers a question to a metadata service: which service it is for, whether it may be asked so,
 * and the sending of what that says. */
#include "metadata.h"

#include "basic.h"
#include "guard_placeholder_internal.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

const struct refusal metadata_unknown = {404, "metadata_unknown"},
                     metadata_field = {400, "metadata_field"}, metadata_memory = {503, "memory"},
                     metadata_placeholder = {404, "metadata_placeholder"};

struct slice metadata_path(const struct metadata *q)
{
    struct slice path = q->head->path;
    if (path.n > 1 && path.p[path.n - 1] == '/')
        path.n--;
    return path;
}

bool metadata_is_get(const struct metadata *q)
{
    return slice_eq_str(q->head->method, "GET");
}

bool metadata_says(const struct metadata *q, const char *name, const char *value)
{
    const struct field *f = http_head_find(q->head, name);
    return f && http_head_count(q->head, name) == 1 && slice_ieq_str(f->value, value);
}

static int digit(char c)
{
    c = ascii_lower(c);
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* %XX and + of a query; an escape that is broken, or a byte that is no text, is nobody's. */
static int put_decoded(struct buf *to, struct slice v)
{
    for (size_t i = 0; i < v.n; i++) {
        int c = v.p[i] == '+' ? ' ' : (unsigned char)v.p[i];
        if (v.p[i] == '%') {
            int high = i + 2 < v.n ? digit(v.p[i + 1]) : -1;
            int low = i + 2 < v.n ? digit(v.p[i + 2]) : -1;
            if (high < 0 || low < 0)
                return -1;
            c = high * 16 + low;
            i += 2;
        }
        unsigned char byte = (unsigned char)c;
        if (c < 0x20 || c > 0x7e || buf_append(to, &byte, 1) < 0)
            return -1;
    }
    return 0;
}

int metadata_parameter(const struct metadata *q, const char *name, struct buf *ret)
{
    struct slice rest = q->head->query;
    struct guard_part part;
    unsigned seen = 0;
    while (q->head->has_query && guard_next_part(&rest, false, &part))
        if (slice_eq_str(part.name, name) && (++seen > 1 || put_decoded(ret, part.value) < 0))
            return -1;
    return seen == 1 ? 0 : -1;
}

const struct refusal *metadata_own(const struct metadata *q, const char *name, const char *secret)
{
    static const struct refusal stranger = {403, "cross_sandbox"}, bad = {401, "metadata_token"};
    const struct field *f = http_head_find(q->head, name);
    struct hit s = {.gate = q->gate, .who = q->who};
    if (f == NULL || http_head_count(q->head, name) != 1)
        return &bad;
    if (guard_is_own(q->gate, q->who, secret, f->value))
        return NULL;
    guard_scan(&s, f->value);
    return s.stranger ? &stranger : &bad;
}

int metadata_text(struct prepared *p, const char *text)
{
    p->status = 200;
    p->type = "text/plain";
    return buf_append_str(&p->body, text);
}

int metadata_json(struct prepared *p, json_t *v)
{
    char *text = v ? json_dumps(v, JSON_COMPACT) : NULL;
    int r = text ? metadata_text(p, text) : -1;
    p->type = "application/json";
    json_decref(v);
    free(text);
    return r;
}

/* Somebody else's question, which a program of the sandbox sends on: the clouds refuse these, too.
 * A client that has us as its proxy writes none of these. */
static bool is_forwarded(const struct head *h)
{
    static const char *const names[] = {"forwarded", "via", "x-real-ip", "x-client-ip",
                                        "true-client-ip"};
    for (size_t i = 0; i < h->n; i++) {
        if (slice_starts(h->fields[i].name, SLICE("x-forwarded")))
            return true;
        for (size_t k = 0; k < ARRAY_LEN(names); k++)
            if (slice_eq_str(h->fields[i].name, names[k]))
                return true;
    }
    return false;
}

static bool begins(const struct metadata *q, const char *with)
{
    return slice_starts(q->head->path, slice_str(with));
}

/* By its host; at the address that all of them have by its path. */
const struct refusal *metadata_answer(const struct metadata *q, struct prepared *ret)
{
    static const struct refusal forwarded = {403, "metadata_forwarded"};
    const struct cloud_identity *c = q->cloud;
    bool shared = strcmp(q->at->host, CLOUD_ADDRESS) == 0;
    if (is_forwarded(q->head))
        return &forwarded;
    if (q->head->body != BODY_NONE && (q->head->body != BODY_LENGTH || q->head->length > 0))
        return &metadata_field;
    if (c->aws && (strcmp(q->at->host, CLOUD_CONTAINER) == 0 || (shared && begins(q, "/latest/"))))
        return metadata_aws(q, ret);
    if (c->azure && shared && (begins(q, "/metadata/") || begins(q, "/msi/")))
        return metadata_azure(q, ret);
    if (c->google &&
        (!shared || begins(q, "/computeMetadata/") || slice_eq_str(q->head->path, "/")))
        return metadata_google(q, ret);
    return &metadata_unknown;
}

/* ---- as an upstream ---- */

struct metadata_reply {
    struct downstream downstream;
    struct event *turn;
    struct prepared answer;
};

static void metadata_reply_free(struct metadata_reply *r)
{
    if (r->turn)
        event_free(r->turn);
    prepared_free(&r->answer);
    free(r);
}

static void on_turn(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct metadata_reply *r = arg;
    struct downstream f = r->downstream;
    enum prepared_sent sent = prepared_send(&r->answer, &f);
    if (sent == PREPARED_MORE)
        return; /* resume */
    metadata_reply_free(r);
    if (sent == PREPARED_ALL)
        f.ops->end(f.self);
    else
        f.ops->fail(f.self, 503, "memory", NULL);
}

static void metadata_data(void *self UNUSED, const void *p UNUSED, size_t n UNUSED)
{ /* there is none: a question with a body was refused */
}

static void metadata_end(void *self UNUSED)
{
}

static size_t metadata_room(void *self UNUSED)
{
    return STREAM_CHUNK;
}

static void metadata_resume(void *self)
{
    event_active(((struct metadata_reply *)self)->turn, EV_TIMEOUT, 0);
}

static void metadata_cancel(void *self, const char *code UNUSED)
{
    metadata_reply_free(self);
}

static const struct upstream_ops metadata_ops = {
    .data = metadata_data,
    .end = metadata_end,
    .room = metadata_room,
    .resume = metadata_resume,
    .cancel = metadata_cancel,
};

struct upstream metadata_open(struct gate *g, struct downstream f, struct prepared *answer)
{
    struct metadata_reply *r = calloc(1, sizeof *r);
    if (r == NULL) {
        prepared_free(answer);
        return (struct upstream){NULL, NULL};
    }
    r->downstream = f;
    r->answer = *answer;
    r->turn = event_new(g->base, -1, 0, on_turn, r);
    if (r->turn == NULL) {
        metadata_reply_free(r);
        return (struct upstream){NULL, NULL};
    }
    event_active(r->turn, EV_TIMEOUT, 0);
    return (struct upstream){&metadata_ops, r};
}
