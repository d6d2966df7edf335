/* What is asked of a log: the filters of `durward audit query`. */
#ifndef DURWARD_AUDIT_WISH_H
#define DURWARD_AUDIT_WISH_H

#include "audit_read.h"
#include "audit_where.h"
#include "log_search.h"

extern const struct arg_option audit_query_options[], audit_case_options[];

/* What is asked of a row beside the filter's own fields. */
struct audit_wish {
    struct audit_asked common; /* first */
    struct query_filter f;
    struct log_search search;
    unsigned kinds; /* named as kinds */
    bool refused;   /* and all that was refused, in whatever kind */
    bool probes, json, whole;
    const char *until, *kind, *decision, *status, *limit;
};

/* The options; w->search.rows is the default of --limit, which takes `most` at most. ARGS_END, or
 * what the command must return. */
int audit_wish_read(struct args *a, struct audit_wish *w, unsigned most);
/* The directory that is meant, malloc'd, where names became ids. NULL when the command must return
 * *code. */
char *audit_wish_dir(const struct args *a, struct audit_wish *w, int *code);

#endif
