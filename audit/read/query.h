/* Reading audit lines: filters, and an end record's request, which only its beginning tells. */
#ifndef DURWARD_QUERY_H
#define DURWARD_QUERY_H

#include "record.h"

struct query_row;

struct query_filter {      /* 0 or NULL: no such condition; all given ones must hold */
    uint64_t since, until; /* ns; compared with the time of receipt, which no writer chooses */
    unsigned kinds;        /* bits 1 << enum record_kind */
    const char *sandbox, *policy, *role, *rule, *credential, *id, *code, *method;
    const char *host; /* of authority or target; a leading dot: any subdomain */
    const char *text; /* anywhere in the line but in seq, prev, at and times; ASCII case folded */
    int64_t status;
    bool (*wanted)(void *arg, const struct query_row *row); /* the last word on a row; NULL: none */
    void *wanted_arg;
};

struct query_row {          /* "" and -1: absent; valid during the callback */
    struct slice line;      /* as it stands in the file */
    struct slice beginning; /* the admitted line that an end was read with; n 0: none */
    enum record_kind kind;
    const char *time, *received, *id, *role, *sandbox, *policy, *code, *method, *scheme, *authority,
        *path, *rule, *credential, *target, *address, *detail, *event;
    int64_t status, count, ms, up, down;
};

typedef void (*query_fn)(void *arg, const struct query_row *row);

struct query;

struct query *query_new(const struct query_filter *f, query_fn fn, void *arg); /* f is copied */
/* For parts of a log that come the latest first (the lines of a part in their order): an end that
 * stands before its beginning waits for it. */
struct query *query_backwards(const struct query_filter *f, query_fn fn, void *arg);
bool query_waits(const struct query *q); /* some end does */
void query_forget(struct query *q);      /* none does any more */
void query_free(struct query *q);        /* NULL is fine */
/* A line once more, as query_line gave it. */
void query_show(struct slice line, struct slice beginning, query_fn fn, void *arg);
/* One line of the directory `tag`. Lines that are no records are counted. quiet: only remember it
 * for the ends that follow. */
void query_line(struct query *q, unsigned tag, struct slice line, bool quiet);
uint64_t query_bad(const struct query *q);
uint64_t query_matched(const struct query *q);
/* The host of "host", "host:port", "[v6]:port". */
struct slice query_host(struct slice authority);
/* "denied,aborted" → kinds; also "allow" (admitted) and "deny". 0 when a word is unknown. */
unsigned query_kinds(const char *list);

#endif
