/* Reading audit lines: filters, and an end record's request, which only its beginning tells. */
#ifndef DURWARD_QUERY_H
#define DURWARD_QUERY_H

#include "record.h"

struct query_filter {      /* 0 or NULL: no such condition; all given ones must hold */
    uint64_t since, until; /* ns; compared with the time of receipt, which no writer chooses */
    unsigned kinds;        /* bits 1 << enum record_kind */
    const char *sandbox, *policy, *role, *rule, *credential, *id, *code, *method;
    const char *host; /* of authority or target; a leading dot: any subdomain */
    const char *text; /* anywhere in the line, ASCII case folded */
    int64_t status;
};

struct query_row {     /* "" and -1: absent; valid during the callback */
    struct slice line; /* as it stands in the file */
    enum record_kind kind;
    const char *time, *received, *id, *role, *sandbox, *policy, *code, *method, *scheme, *authority,
        *path, *rule, *credential, *target, *address, *detail, *event;
    int64_t status, count, ms, up, down;
};

typedef void (*query_fn)(void *arg, const struct query_row *row);

struct query;

struct query *query_new(const struct query_filter *f, query_fn fn, void *arg); /* f is copied */
void query_free(struct query *q);
/* One line of the directory `tag`. Lines that are no records are counted. quiet: only remember it
 * for the ends that follow. */
void query_line(struct query *q, unsigned tag, struct slice line, bool quiet);
uint64_t query_bad(const struct query *q);
uint64_t query_matched(const struct query *q);
/* "denied,aborted" → kinds; also "allow" (admitted) and "deny". 0 when a word is unknown. */
unsigned query_kinds(const char *list);

#endif
