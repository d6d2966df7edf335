/* What the audit commands read of a log beside what is asked: which records are probes of our own,
 * which were refused, and which sandbox a word means. */
#ifndef DURWARD_AUDIT_READ_H
#define DURWARD_AUDIT_READ_H

#include "audit_where.h"
#include "err.h"
#include "query.h"

enum { AUDIT_SANDBOX_MAX = 64 };

/* Sent by a sandbox's self-test or by `durward doctor`, to be refused: a name or a request that
 * went nowhere. */
bool audit_is_probe(const struct query_row *r);
/* Refused by policy, in whatever kind of record: requests, names, packets, connections to addresses
 * that may not be reached, what was cut on its way. */
bool audit_is_refused(const struct query_row *r);
/* The kinds that such records have. */
unsigned audit_refused_kinds(void);

/* Each record that matches, of all directories of the log. */
int audit_each(const char *dir, const struct query_filter *f, query_fn fn, void *arg,
               struct err *err);
/* The whole id of a sandbox in this log, of its name or the first letters of its id. A word that
 * fits none stays as it is. -1 with err: it fits several, which are listed. */
int audit_sandbox(const char *dir, const char *word, char id[AUDIT_SANDBOX_MAX + 1],
                  struct err *err);

/* --since, --sandbox and --policy, which several of the commands have. */
struct audit_pick {
    const char *since, *sandbox, *policy;
    char id[AUDIT_SANDBOX_MAX + 1];
};
/* Puts them into the filter. EXIT_OK, or what the command must return. */
int audit_pick(const struct args *a, const char *dir, struct audit_pick *p, struct query_filter *f);

#endif
