/* Adds records up by sandbox and by destination in trees of tsearch(3), and sorts both for the
 * report. */
#define _GNU_SOURCE 1
#include "exfil.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMESTAMP_MINUTE = 16, TIMESTAMP_SECOND = 20 }; /* bytes of a time up to there */

struct place { /* a destination of a sandbox */
    struct box *box;
    char *host;
    uint64_t up, down, requests, denied;
};

struct box {
    char *sandbox, *policy;
    uint64_t up, down, requests, denied, names, packets, hosts;
    uint64_t foreign, cross, misplaced, reflected;
    char minute[TIMESTAMP_MINUTE + 1]; /* of the names that `now` counts */
    uint64_t now, burst;               /* names in one minute; the most of any */
    char first[TIMESTAMP_SECOND + 1], last[TIMESTAMP_SECOND + 1]; /* "...:59Z"; "": none */
};

struct exfil {
    void *boxes, *places; /* trees of tsearch(3) */
    size_t n;
    uint64_t left_out;
    struct box **list; /* for the report */
    struct place **all;
    size_t n_list, n_all;
};

struct exfil *exfil_new(void)
{
    return calloc(1, sizeof(struct exfil));
}

/* ---- sandboxes and places ---- */

static int by_name(const void *a, const void *b)
{
    const struct box *x = a, *y = b;
    int r = strcmp(x->sandbox, y->sandbox);
    return r ? r : strcmp(x->policy, y->policy);
}

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->box != y->box)
        return x->box < y->box ? -1 : 1;
    return strcmp(x->host, y->host);
}

static void free_box(void *p)
{
    struct box *b = p;
    free(b->sandbox);
    free(b->policy);
    free(b);
}

static void free_place(void *p)
{
    struct place *x = p;
    free(x->host);
    free(x);
}

void exfil_free(struct exfil *e)
{
    if (e == NULL)
        return;
    tdestroy(e->places, free_place);
    tdestroy(e->boxes, free_box);
    free(e->list);
    free(e->all);
    free(e);
}

static char *copy(const char *s)
{
    return strdup(s);
}

static struct box *box_of(struct exfil *e, const struct query_row *row)
{
    struct box key = {.sandbox = copy(row->sandbox), .policy = copy(row->policy)};
    void *found = key.sandbox && key.policy ? tfind(&key, &e->boxes, by_name) : NULL;
    struct box *b = found ? *(struct box **)found : NULL;
    if (b == NULL && key.sandbox && key.policy && e->n < EXFIL_MAX &&
        (b = malloc(sizeof *b)) != NULL) {
        *b = key;
        if (tsearch(b, &e->boxes, by_name)) {
            e->n++;
            return b;
        }
        free(b);
        b = NULL;
    }
    free(key.sandbox);
    free(key.policy);
    return b;
}

static struct place *place_of(struct exfil *e, struct box *b, const char *host)
{
    struct place key = {.box = b, .host = copy(host)};
    void *found = key.host ? tfind(&key, &e->places, by_place) : NULL;
    struct place *p = found ? *(struct place **)found : NULL;
    if (p == NULL && key.host && e->n < EXFIL_MAX && (p = malloc(sizeof *p)) != NULL) {
        *p = key;
        if (tsearch(p, &e->places, by_place)) {
            e->n++;
            b->hosts++;
            return p;
        }
        free(p);
        p = NULL;
    }
    free(key.host);
    return p;
}

/* ---- records ---- */

static uint64_t at_least(int64_t n, uint64_t least)
{
    return n > 0 && (uint64_t)n > least ? (uint64_t)n : least;
}

static void note_time(struct box *b, const char *time)
{
    if (b->first[0] == 0 || strncmp(time, b->first, TIMESTAMP_SECOND - 1) < 0)
        snprintf(b->first, sizeof b->first, "%.19sZ", time);
    if (strncmp(time, b->last, TIMESTAMP_SECOND - 1) > 0)
        snprintf(b->last, sizeof b->last, "%.19sZ", time);
}

static void note_name(struct box *b, const struct query_row *row)
{
    if (strcmp(row->code, "ok") != 0)
        b->names += at_least(row->count, 1);
    if (strncmp(b->minute, row->time, TIMESTAMP_MINUTE) != 0) {
        snprintf(b->minute, sizeof b->minute, "%.16s", row->time);
        b->now = 0;
    }
    if (++b->now > b->burst)
        b->burst = b->now;
}

/* Also of what was cut when its head had gone on. */
static void note_placeholder(struct box *b, const char *code)
{
    b->cross += strcmp(code, "cross_sandbox") == 0;
    b->misplaced += strcmp(code, "secret_blocked") == 0 || strcmp(code, "placeholder_count") == 0;
}

static void note_denied(struct box *b, const char *code)
{
    b->denied++;
    b->foreign += strcmp(code, "foreign_credential") == 0;
    note_placeholder(b, code);
}

static void note_end(struct box *b, struct place *p, const struct query_row *row)
{
    uint64_t up = at_least(row->up, 0), down = at_least(row->down, 0);
    b->up += up;
    b->down += down;
    if (p) {
        p->up += up;
        p->down += down;
    }
    note_placeholder(b, row->code);
    if (strcmp(row->code, "secret_reflected") == 0)
        b->reflected += at_least(row->count, 1);
}

void exfil_add(struct exfil *e, const struct query_row *row)
{
    struct box *b = box_of(e, row);
    const char *host = row->authority[0] ? row->authority : row->target;
    bool is_http = row->kind == RECORD_ADMITTED || row->kind == RECORD_DENIED ||
                   row->kind == RECORD_COMPLETED || row->kind == RECORD_ABORTED;
    struct place *p = b && is_http && host[0] ? place_of(e, b, host) : NULL;
    if (b == NULL || (is_http && host[0] && p == NULL))
        e->left_out++;
    if (b == NULL)
        return;
    note_time(b, row->time);
    if (row->kind == RECORD_ADMITTED || row->kind == RECORD_DENIED) {
        b->requests++;
        if (p)
            p->requests++;
    }
    if (row->kind == RECORD_DENIED) {
        note_denied(b, row->code);
        if (p)
            p->denied++;
    } else if (row->kind == RECORD_COMPLETED || row->kind == RECORD_ABORTED) {
        note_end(b, p, row);
    } else if (row->kind == RECORD_DNS) {
        note_name(b, row);
    } else if (row->kind == RECORD_PACKET) {
        b->packets += at_least(row->count, 1);
    }
}

/* ---- the report ---- */

static uint64_t signs(const struct box *b)
{
    return b->foreign + b->cross + b->misplaced + b->reflected;
}

static int worse(const void *a, const void *b)
{
    const struct box *x = *(struct box *const *)a, *y = *(struct box *const *)b;
    if (signs(x) != signs(y))
        return signs(x) > signs(y) ? -1 : 1;
    if (x->up != y->up)
        return x->up > y->up ? -1 : 1;
    return x->denied != y->denied ? (x->denied > y->denied ? -1 : 1) : by_name(x, y);
}

static int larger(const void *a, const void *b)
{
    const struct place *x = *(struct place *const *)a, *y = *(struct place *const *)b;
    if (x->box != y->box)
        return x->box < y->box ? -1 : 1;
    if (x->up != y->up)
        return x->up > y->up ? -1 : 1;
    return x->requests != y->requests ? (x->requests > y->requests ? -1 : 1)
                                      : strcmp(x->host, y->host);
}

static void take_box(const void *node, VISIT visit, void *arg)
{
    struct exfil *e = arg;
    if (visit == postorder || visit == leaf)
        e->list[e->n_list++] = *(struct box *const *)node;
}

static void take_place(const void *node, VISIT visit, void *arg)
{
    struct exfil *e = arg;
    if (visit == postorder || visit == leaf)
        e->all[e->n_all++] = *(struct place *const *)node;
}

/* all is ordered by box: where this one's begin. */
static size_t first_of(const struct exfil *e, const struct box *b)
{
    size_t low = 0, high = e->n_all;
    while (low < high) {
        size_t at = (low + high) / 2;
        if (e->all[at]->box < b)
            low = at + 1;
        else
            high = at;
    }
    return low;
}

#define N(x) (json_int_t)(x)

static json_t *places_json(const struct exfil *e, const struct box *b)
{
    json_t *list = json_array();
    for (size_t i = first_of(e, b); i < e->n_all && e->all[i]->box == b; i++) {
        const struct place *p = e->all[i];
        json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:I, s:I}", "host", p->host,
                                              "bytes_up", N(p->up), "bytes_down", N(p->down),
                                              "requests", N(p->requests), "denied", N(p->denied)));
    }
    return list;
}

static json_t *box_json(const struct exfil *e, const struct box *b)
{
    return json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:o}",
        "sandbox", b->sandbox, "policy", b->policy, "bytes_up", N(b->up), "bytes_down", N(b->down),
        "hosts", N(b->hosts), "requests", N(b->requests), "denied", N(b->denied), "names_refused",
        N(b->names), "packets_refused", N(b->packets), "burst", N(b->burst), "foreign_credentials",
        N(b->foreign), "cross_sandbox", N(b->cross), "misplaced", N(b->misplaced), "reflected",
        N(b->reflected), "first", b->first, "last", b->last, "destinations", places_json(e, b));
}

json_t *exfil_report(struct exfil *e)
{
    free(e->list);
    free(e->all);
    e->list = calloc(e->n + 1, sizeof(struct box *));
    e->all = calloc(e->n + 1, sizeof(struct place *));
    e->n_list = e->n_all = 0;
    json_t *list = e->list && e->all ? json_array() : NULL;
    if (list == NULL)
        return NULL;
    twalk_r(e->boxes, take_box, e);
    twalk_r(e->places, take_place, e);
    qsort(e->list, e->n_list, sizeof(struct box *), worse);
    qsort(e->all, e->n_all, sizeof(struct place *), larger);
    for (size_t i = 0; i < e->n_list; i++)
        json_array_append_new(list, box_json(e, e->list[i]));
    return list;
}

uint64_t exfil_left_out(const struct exfil *e)
{
    return e->left_out;
}
