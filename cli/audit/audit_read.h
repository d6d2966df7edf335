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

/* What several of the commands are told; their structs begin with it. */
struct audit_asked {
    struct audit_where where;
    const char *since, *sandbox, *policy;
    char id[AUDIT_SANDBOX_MAX + 1];
};
#define AUDIT_OPTION_SINCE                                                                 \
    {                                                                                      \
        0, "since", "TIME", "received at or after: 2026-11-21T08:00:00Z, 2026-11-21, 10m", \
            offsetof(struct audit_asked, since)                                            \
    }
#define AUDIT_OPTION_SANDBOX                                                           \
    {                                                                                  \
        0, "sandbox", "ID", "of this sandbox: its id, name, or an id's first letters", \
            offsetof(struct audit_asked, sandbox)                                      \
    }
#define AUDIT_OPTION_POLICY                                                            \
    {                                                                                  \
        0, "policy", "NAME", "under this policy", offsetof(struct audit_asked, policy) \
    }
/* The directory, malloc'd, and the filter of what was asked; NULL when the command must return
 * *code. */
char *audit_asked_dir(const struct args *a, struct audit_asked *x, struct query_filter *f,
                      int *code);
/* A whole command that reads what is asked of it (a struct that begins as `asked`) and reports. */
typedef int (*audit_report_fn)(const char *dir, const struct query_filter *f,
                               const struct audit_asked *asked, bool json);
int audit_run_report(const struct command *cmd, int argc, char **argv, struct audit_asked *asked,
                     struct query_filter *f, audit_report_fn report);

#endif
