/* durward test: requests and what a policy shall say to them, for a user's CI. */
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "config.h"
#include "node.h"
#include "out.h"
#include "policy_query.h"
#include "settings.h"
#include "yaml_tree.h"

static int cmd_test(int argc, char **argv);

static const struct arg_option options[] = {
    {'c', "config", "FILE", "the configuration (default: the file's own `config`)"},
    {0},
};

const struct command command_test = {
    "test",
    "[-c FILE] FILE",
    "Check example requests against the decisions they should get.",
    options,
    "FILE is YAML:\n"
    "  config: durward.yaml            # beside FILE; or -c\n"
    "  tests:\n"
    "  - { request: GET https://api.github.com/user, expect: allow, credential: github }\n"
    "  - { request: DELETE https://api.github.com/repos/a/b, expect: deny, code: method }\n"
    "A test may also name its `policy`, `headers: { name: value }` and a part of the deciding\n"
    "`rule`'s text; `credential: none` says that there is none. Exit status 1 when a decision\n"
    "differs, with FILE:LINE of each.\n",
    cmd_test,
};

struct suite {
    struct source source;
    struct config *config;
    json_t *results; /* --json */
    size_t run, failed;
    bool json;
};

struct wanted {
    const char *request, *expect, *code, *credential, *rule, *policy;
    char url[8192];
};

static int read_word(const struct node *n, const char *key, const char **ret, struct err *err)
{
    struct node at;
    return node_get(n, key, &at) ? node_string(&at, ret, err) : 0;
}

static int read_headers(const struct node *test, struct policy_query *q, struct err *err)
{
    struct node n;
    if (!node_get(test, "headers", &n))
        return 0;
    if (node_is_object(&n, err) < 0)
        return -1;
    for (void *it = json_object_iter(n.value); it; it = json_object_iter_next(n.value, it)) {
        struct node at;
        if (q->n_headers == POLICY_QUERY_HEADERS_MAX)
            return node_fail(&n, err, "more than %d headers", POLICY_QUERY_HEADERS_MAX);
        node_get(&n, json_object_iter_key(it), &at);
        q->header[q->n_headers].name = at.key;
        if (node_text(&at, &q->header[q->n_headers++].value, err) < 0)
            return -1;
    }
    return 0;
}

static int read_test(const struct node *n, struct wanted *w, struct policy_query *q,
                     struct err *err)
{
    static const struct key keys[] = {{"request", NULL},    {"expect", NULL}, {"code", NULL},
                                      {"credential", NULL}, {"rule", NULL},   {"policy", NULL},
                                      {"headers", NULL}};
    static const char *const words[] = {"allow", "ask", "deny"};
    struct node at;
    struct err inner = {0};
    size_t word;
    if (node_keys(n, keys, ARRAY_LEN(keys), err) < 0 ||
        read_word(n, "request", &w->request, err) < 0 || read_word(n, "code", &w->code, err) < 0 ||
        read_word(n, "credential", &w->credential, err) < 0 ||
        read_word(n, "rule", &w->rule, err) < 0 || read_word(n, "policy", &w->policy, err) < 0 ||
        read_headers(n, q, err) < 0)
        return -1;
    if (w->request == NULL || !node_get(n, "expect", &at))
        return node_fail(n, err,
                         "a test has 'request: METHOD URL [TEXT]' and 'expect: allow|ask|deny'");
    if (node_word(&at, words, ARRAY_LEN(words), &word, err) < 0)
        return -1;
    w->expect = words[word];
    const char *space = strchr(w->request, ' ');
    node_get(n, "request", &at);
    if (space == NULL)
        return node_fail(&at, err, "'request' is METHOD URL");
    q->method = (struct slice){w->request, (size_t)(space - w->request)};
    size_t length = strcspn(space + 1, " ");
    snprintf(w->url, sizeof w->url, "%.*s", (int)length, space + 1);
    q->text = slice_str(space + 1 + length + (space[1 + length] == ' '));
    return policy_query_read(w->url, q, &inner) < 0 ? node_fail(&at, err, "%s", inner.text) : 0;
}

/* What differs, or "". */
static void compare(const struct wanted *w, const struct answer *a, char *buf, size_t size)
{
    const char *credential = a->verdict != VERDICT_DENY && a->rule && a->rule->credential
                                 ? a->rule->credential->secret
                                 : "none";
    buf[0] = 0;
    if (strcmp(w->expect, policy_query_verdict(a->verdict)) != 0)
        snprintf(buf, size, "expected %s, is %s (%s: %s)", w->expect,
                 policy_query_verdict(a->verdict), a->code, a->why);
    else if (w->code && strcmp(w->code, a->code) != 0)
        snprintf(buf, size, "expected code %s, is %s", w->code, a->code);
    else if (w->credential && strcmp(w->credential, credential) != 0)
        snprintf(buf, size, "expected credential %s, is %s", w->credential, credential);
    else if (w->rule && (a->rule == NULL || strstr(a->rule->text, w->rule) == NULL))
        snprintf(buf, size, "expected rule '%s', is %s", w->rule, a->rule ? a->rule->text : "none");
}

static void tell(struct suite *s, const struct node *n, const struct wanted *w, const char *differs)
{
    char where[512];
    node_where(n, where, sizeof where);
    s->run++;
    s->failed += *differs != 0;
    if (s->json) {
        json_array_append_new(s->results,
                              json_pack("{s:s, s:s, s:b, s:s}", "where", where, "request",
                                        w->request, "ok", *differs == 0, "why", differs));
        return;
    }
    if (*differs == 0)
        return;
    printf("%s: ", where);
    out_coloured(stdout, COLOUR_RED, "FAIL");
    printf(" %s: %s\n", w->request, differs);
}

static int run_one(struct suite *s, const struct node *n, struct err *err)
{
    struct policy_query q = {0};
    struct wanted w = {0};
    struct answer a;
    char differs[1024];
    if (read_test(n, &w, &q, err) < 0)
        return -1;
    const char *policy = settings_policy(s->config, w.policy, err);
    if (policy == NULL)
        return node_fail(n, err, "%s", err->text);
    policy_query_decide(config_policy(s->config, policy), &q, &a);
    compare(&w, &a, differs, sizeof differs);
    tell(s, n, &w, differs);
    return 0;
}

/* Beside the file with the tests, unless it is absolute. */
static struct config *load_config(const char *file, const struct node *root, const char *given,
                                  struct err *err)
{
    struct node n;
    const char *name;
    char path[4096];
    if (given || !node_get(root, "config", &n))
        return settings_load(given, err);
    if (node_string(&n, &name, err) < 0)
        return NULL;
    const char *slash = strrchr(file, '/');
    if (name[0] == '/' || slash == NULL)
        return settings_load(name, err);
    snprintf(path, sizeof path, "%.*s/%s", (int)(slash - file), file, name);
    return settings_load(path, err);
}

static int run_all(struct suite *s, const char *file, json_t *tree, const char *config,
                   struct err *err)
{
    static const struct key keys[] = {{"config", NULL}, {"tests", NULL}};
    struct node root = node_root(&s->source, tree), tests;
    if (node_keys(&root, keys, ARRAY_LEN(keys), err) < 0)
        return -1;
    if (!node_get(&root, "tests", &tests))
        return node_fail(&root, err, "there are no 'tests'");
    if (node_is_array(&tests, err) < 0)
        return -1;
    s->config = load_config(file, &root, config, err);
    if (s->config == NULL)
        return -1;
    for (size_t i = 0; i < json_array_size(tests.value); i++) {
        struct node n = node_item(&tests, i);
        if (run_one(s, &n, err) < 0)
            return -1;
    }
    return s->run ? 0 : node_fail(&tests, err, "there are no tests");
}

static char *read_file(const char *file, size_t *n, struct err *err)
{
    FILE *f = fopen(file, "re");
    char *text = malloc(YAML_TREE_MAX + 1);
    if (f == NULL || text == NULL) {
        err_sys(err, "cannot open %s", file);
        if (f)
            fclose(f);
        free(text);
        return NULL;
    }
    *n = fread(text, 1, YAML_TREE_MAX + 1, f);
    fclose(f);
    return text;
}

static int test_file(struct suite *s, const char *file, const char *config, struct err *err)
{
    size_t n;
    json_t *tree = NULL;
    char *text = read_file(file, &n, err);
    if (text == NULL)
        return -1;
    int r = yaml_tree_parse((struct slice){text, n}, file, &tree, &s->source.lines, err);
    s->source.name = file;
    if (r == 0)
        r = run_all(s, file, tree, config, err);
    json_decref(tree);
    json_decref(s->source.lines);
    config_unref(s->config);
    free(text);
    return r;
}

static int cmd_test(int argc, char **argv)
{
    struct args a = {.cmd = &command_test, .argc = argc, .argv = argv};
    struct suite s = {0};
    struct err err = {0};
    const char *config = NULL;
    int id;
    while ((id = args_next(&a)) != ARGS_END) {
        if (id == ARGS_STOP)
            return a.exit_code;
        config = a.value;
    }
    if (argc - a.next != 1)
        return args_usage(a.cmd, "one file with tests is needed");
    s.json = a.json;
    s.results = json_array();
    int r = test_file(&s, argv[a.next], config, &err);
    if (r < 0) {
        json_decref(s.results);
        out_error("%s", err.text);
        return EXIT_NO;
    }
    if (s.json)
        r = out_json(json_pack("{s:b, s:I, s:I, s:o}", "ok", s.failed == 0, "run",
                               (json_int_t)s.run, "failed", (json_int_t)s.failed, "tests",
                               s.results));
    else
        json_decref(s.results);
    if (!s.json)
        printf("%zu tests, %zu failed\n", s.run, s.failed);
    return r < 0 || out_flush() < 0 || s.failed ? EXIT_NO : EXIT_OK;
}
