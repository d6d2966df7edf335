/* The filters of `durward audit query`, which other commands take too. */
#include "audit_wish.h"

#include "args.h"
#include "audit_read.h"
#include "timestamp.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define QUERY_OPTIONS                                                                             \
    AUDIT_OPTION_SINCE,                                                                           \
        {0, "until", "TIME", "received before", offsetof(struct audit_wish, until)},              \
        {0, "kind", "KIND,...", "admitted, denied, completed, aborted, connection, dns, ...",     \
         offsetof(struct audit_wish, kind)},                                                      \
        {0, "decision", "KIND,...", "the same; deny: all that was refused, of any kind",          \
         offsetof(struct audit_wish, decision)},                                                  \
        AUDIT_OPTION_SANDBOX, AUDIT_OPTION_POLICY,                                                \
        {0, "host", "HOST", "to this host; .example.com: to any host below it",                   \
         offsetof(struct audit_wish, f.host)},                                                    \
        {0, "method", "METHOD", "with this method", offsetof(struct audit_wish, f.method)},       \
        {0, "rule", "TEXT", "decided by this rule", offsetof(struct audit_wish, f.rule)},         \
        {0, "credential", "NAME", "with this secret", offsetof(struct audit_wish, f.credential)}, \
        {0, "status", "N", "answered with this status", offsetof(struct audit_wish, status)},     \
        {0, "code", "CODE", "with this reason", offsetof(struct audit_wish, f.code)},             \
        {0, "id", "ID", "all records of one request", offsetof(struct audit_wish, f.id)},         \
        {0, "role", "ROLE", "written by this role", offsetof(struct audit_wish, f.role)},         \
        {0, "text", "TEXT", "with this text anywhere in what the record says",                    \
         offsetof(struct audit_wish, f.text)},                                                    \
        {0, "limit", "N", "the newest N of them (default 1000); 0: all",                          \
         offsetof(struct audit_wish, limit)},                                                     \
        {0, "probes", NULL, "with what self-tests and doctor sent to be refused",                 \
         offsetof(struct audit_wish, probes)},                                                    \
        {0, "no-index", NULL, "read every file, whatever its index says",                         \
         offsetof(struct audit_wish, search.no_index)},                                           \
        AUDIT_OPTIONS_WHERE

const struct arg_option audit_query_options[] = {QUERY_OPTIONS, {0}};

const struct arg_option audit_case_options[] = {
    QUERY_OPTIONS,
    {0, "whole", NULL, "check the whole log too, and say in the case how it was",
     offsetof(struct audit_wish, whole)},
    {0},
};

static int no_kinds(const struct args *a, const char *list)
{
    char all[256] = "";
    for (int k = 1; k < RECORD_KINDS; k++) {
        size_t n = strlen(all);
        snprintf(all + n, sizeof all - n, "%s, ", record_kind_name((enum record_kind)k));
    }
    return args_usage(a->cmd, "\"%s\" is no list of kinds of records: %sallow, deny", list, all);
}

static bool wanted(void *arg, const struct query_row *row)
{
    const struct audit_wish *w = arg;
    bool kind = (w->kinds == 0 && !w->refused) || w->kinds & 1U << row->kind;
    if (!kind && !(w->refused && audit_is_refused(row)))
        return false;
    return w->probes || !audit_is_probe(row);
}

/* One list of kinds, in which "deny" stands for all that was refused. */
static int take_kinds(const struct args *a, struct audit_wish *w, const char *list)
{
    char words[512], *at = words, *word;
    if (list == NULL)
        return EXIT_OK;
    if (snprintf(words, sizeof words, "%s", list) >= (int)sizeof words)
        return no_kinds(a, list);
    while ((word = strsep(&at, ",")) != NULL) {
        if (strcmp(word, "deny") == 0 || strcmp(word, "refused") == 0) {
            w->refused = true;
            continue;
        }
        unsigned kinds = query_kinds(word);
        if (kinds == 0)
            return no_kinds(a, list);
        w->kinds |= kinds;
    }
    w->f.kinds = w->kinds | (w->refused ? audit_refused_kinds() : 0);
    return EXIT_OK;
}

int audit_wish_read(struct args *a, struct audit_wish *w, unsigned most)
{
    struct err err = {0};
    uint64_t number, limit = w->search.rows;
    int code = args_into(a, w);
    if (code != ARGS_END)
        return code;
    if ((code = take_kinds(a, w, w->kind)) != EXIT_OK ||
        (code = take_kinds(a, w, w->decision)) != EXIT_OK)
        return code;
    if (w->until && timestamp_parse(w->until, timestamp_now(), &w->f.until, &err) < 0)
        return args_usage(a->cmd, "%s", err.text);
    if (w->status && (slice_u64(slice_str(w->status), 999, &number) < 0 || number < 100))
        return args_usage(a->cmd, "\"%s\" is not a status", w->status);
    w->f.status = w->status ? (int64_t)number : 0;
    if (w->limit && slice_u64(slice_str(w->limit), most, &limit) < 0)
        return args_usage(a->cmd, "--limit takes a number up to %u", most);
    w->search.rows = (size_t)limit;
    w->probes = w->probes || a->json; /* a program is told all */
    return ARGS_END;
}

char *audit_wish_dir(const struct args *a, struct audit_wish *w, int *code)
{
    w->f.wanted = wanted;
    w->f.wanted_arg = w;
    char *dir = audit_asked_dir(a, &w->common, &w->f, code);
    if (dir && w->until && w->f.since > w->f.until) {
        *code = args_usage(a->cmd, "--until lies before --since");
        free(dir);
        return NULL;
    }
    return dir;
}
