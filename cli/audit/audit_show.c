/* Prints the newest records that match a filter. That there are older ones, lines that are no
 * records and a directory without a log are said on stderr. */
#include "audit_show.h"

#include <stdio.h>

#include "args.h"
#include "out.h"

void audit_warn_empty(const struct log_tree *t, const char *dir)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->dir[i]->newest)
            return;
    out_error("%s has no audit log (yet); --dir DIR or -c FILE say another place", dir);
}

int audit_feed(void *arg, const struct log_tree_dir *d, struct slice line)
{
    query_line(arg, d->tag, line, false);
    return 0;
}

void audit_warn_bad(uint64_t bad)
{
    if (bad)
        out_error("%llu lines are not audit records and were left out; see 'durward audit verify'",
                  (unsigned long long)bad);
}

int audit_newest(const char *dir, const struct query_filter *f, const struct log_search *s,
                 const char *more_by, struct audit_view *v)
{
    struct log_tree t;
    struct err err = {0};
    bool more = false;
    uint64_t bad = 0;
    if (log_tree_open(&t, dir, &err) < 0)
        return out_fail(&err);
    audit_warn_empty(&t, dir);
    int r = log_search_newest(&t, f, s, audit_view_row, v, &more, &bad, &err);
    log_tree_done(&t);
    if (r < 0)
        return out_fail(&err);
    int code = out_flush() < 0 ? EXIT_NO : EXIT_OK;
    audit_warn_bad(bad);
    if (more)
        out_error("these are the newest %zu; there may be older ones: %s", s->rows, more_by);
    return code;
}
