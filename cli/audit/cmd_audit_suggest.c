/* durward audit suggest: rules for what was denied. */
#include "audit_read.h"
#include "out.h"
#include "suggest.h"

#include <stdlib.h>
#include <string.h>

struct suggest_asked {
    struct audit_asked common;
    bool exact;
};

const struct arg_option audit_suggest_options[] = {
    AUDIT_OPTION_SINCE,
    AUDIT_OPTION_SANDBOX,
    AUDIT_OPTION_POLICY,
    {0, "exact", NULL, "every path by itself, no '*'", offsetof(struct suggest_asked, exact)},
    AUDIT_OPTIONS_WHERE,
    {0},
};

static void take(void *arg, const struct query_row *row)
{
    suggest_add(arg, row);
}

/* In quotes: a pattern may begin with what YAML reads otherwise. It holds no quote and no
 * backslash: paths with one are refused before any rule. */
static void print_scalar(const char *text)
{
    bool plain = ascii_is_alnum(text[0]) && strpbrk(text, "#{}[],&!|>'\"%@`") == NULL;
    printf(plain ? "%s" : "\"%s\"", text);
}

/* As YAML takes them: in JSON's own form. */
static void print_more(const json_t *rule)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)rule, key, value)
    {
        char *text = strcmp(key, "allow") == 0 || strcmp(key, "methods") == 0
                         ? NULL
                         : json_dumps(value, JSON_ENCODE_ANY);
        if (text)
            printf("        %s: %s\n", key, text);
        free(text);
    }
}

static void print_rule(const json_t *one)
{
    const json_t *rule = json_object_get(one, "rule"), *methods = json_object_get(rule, "methods");
    const char *allow = json_string_value(json_object_get(rule, "allow"));
    printf("      - allow: ");
    print_scalar(allow);
    printf("  # %lld denied%s\n", (long long)json_integer_value(json_object_get(one, "denied")),
           json_is_true(json_object_get(one, "name_only")) ? "; only the name is known" : "");
    if (strstr(allow, "://") && strncmp(allow, "http", 4) != 0)
        printf("        with: {}  # and the secret of its login, see durward.yaml(5)\n");
    print_more(rule);
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

static int report(const char *dir, const struct query_filter *f, const struct audit_asked *asked,
                  bool json)
{
    struct err err = {0};
    struct suggest *s = suggest_new(((const struct suggest_asked *)asked)->exact);
    int r = s ? audit_each(dir, f, take, s, &err) : err_set(&err, ERR_INTERNAL, "out of memory");
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
    struct suggest_asked asked = {0};
    struct query_filter f = {.kinds = 1U << RECORD_DENIED | 1U << RECORD_DNS};
    return audit_run_report(args_verb(audit_verbs, "audit suggest"), argc, argv, &asked.common, &f,
                            report);
}
