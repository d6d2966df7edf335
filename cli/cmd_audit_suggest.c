/* durward audit suggest: rules for what was denied. */
#include "audit_where.h"
#include "log_tree.h"
#include "out.h"
#include "stamp.h"
#include "suggest.h"

#include <stdlib.h>
#include <string.h>

static void take(void *arg, const struct query_row *row)
{
    suggest_add(arg, row);
}

static int feed(void *arg, const struct log_tree_dir *d, struct slice line)
{
    query_line(arg, d->tag, line, false);
    return 0;
}

static int read_log(const char *dir, const struct query_filter *f, struct suggest *s,
                    struct err *err)
{
    struct log_tree t;
    if (log_tree_open(&t, dir, err) < 0)
        return -1;
    struct query *q = query_new(f, take, s);
    int r = q ? 0 : err_set(err, ERR_INTERNAL, "out of memory");
    for (size_t i = 0; r == 0 && i < t.n; i++)
        r = log_tree_read(&t, t.dir[i], f->since, feed, q, err);
    query_free(q);
    log_tree_done(&t);
    return r;
}

/* In quotes: a pattern may begin with what YAML reads otherwise. It holds no quote and no
 * backslash: paths with one are refused before any rule. */
static void print_scalar(const char *text)
{
    bool plain = ascii_is_alnum(text[0]) && strpbrk(text, "#{}[],&!|>'\"%@`") == NULL;
    printf(plain ? "%s" : "\"%s\"", text);
}

static void print_rule(const json_t *one)
{
    const json_t *rule = json_object_get(one, "rule"), *methods = json_object_get(rule, "methods");
    printf("      - allow: ");
    print_scalar(json_string_value(json_object_get(rule, "allow")));
    printf("  # %lld denied%s\n", (long long)json_integer_value(json_object_get(one, "denied")),
           json_is_true(json_object_get(one, "name_only")) ? "; only the name is known" : "");
    if (json_array_size(methods) == 0)
        return;
    printf("        methods: [");
    for (size_t i = 0; i < json_array_size(methods); i++)
        printf("%s%s", i ? ", " : "", json_string_value(json_array_get(methods, i)));
    printf("]\n");
}

static void print_rules(const json_t *list)
{
    const char *policy = NULL;
    if (json_array_size(list) == 0) {
        printf("# nothing was denied that a rule could have allowed\n");
        return;
    }
    printf("# Read each of these before you allow it: what was denied may have been an attack.\n"
           "policies:\n");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const char *name = json_string_value(json_object_get(one, "policy"));
        if (policy == NULL || strcmp(policy, name) != 0)
            printf("  %s:\n    rules:\n", name[0] ? name : "NAME  # the log does not say which");
        policy = name;
        print_rule(one);
    }
}

static int suggest(const char *dir, const struct query_filter *f, bool exact, bool json)
{
    struct err err = {0};
    struct suggest *s = suggest_new(exact);
    int r = s ? read_log(dir, f, s, &err) : err_set(&err, ERR_INTERNAL, "out of memory");
    if (r < 0) {
        out_error("%s", err.text);
        suggest_free(s);
        return EXIT_NO;
    }
    json_t *list = suggest_rules(s);
    if (suggest_left_out(s))
        out_error("%llu more distinct denials were left out; narrow it with --since or --policy",
                  (unsigned long long)suggest_left_out(s));
    if (json) {
        r = out_json(list);
    } else {
        print_rules(list);
        json_decref(list);
    }
    suggest_free(s);
    return r < 0 || out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

int audit_run_suggest(int argc, char **argv)
{
    struct args a = {.cmd = &audit_verbs[4], .argc = argc, .argv = argv};
    struct audit_where w = {0};
    struct query_filter f = {.kinds = 1U << RECORD_DENIED | 1U << RECORD_DNS};
    struct err err = {0};
    bool exact = false;
    int id, code = 0;
    while ((id = args_next(&a)) >= 0) {
        if (id == AUDIT_OPT_EXACT)
            exact = true;
        else if (id == AUDIT_OPT_POLICY)
            f.policy = a.value;
        else if (id == AUDIT_OPT_SANDBOX)
            f.sandbox = a.value;
        else if (id == AUDIT_OPT_SINCE) {
            if (stamp_parse(a.value, stamp_now(), &f.since, &err) < 0)
                return args_usage(a.cmd, "%s", err.text);
        } else
            *(id == AUDIT_OPT_DIR ? &w.dir : &w.config) = a.value;
    }
    if (id == ARGS_STOP)
        return a.exit_code;
    char *dir = audit_where_dir(&a, &w, &code);
    if (dir == NULL)
        return code;
    code = suggest(dir, &f, exact, a.json);
    free(dir);
    return code;
}
