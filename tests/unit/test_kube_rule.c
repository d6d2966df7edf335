/* What is read of a request to a Kubernetes API server, what a rule grants of it, and that no
 * spelling of a request is granted what its plain one is not. The same reading is held against a
 * real server in tests/functional/cluster.t. */
#include "kube_rule.h"
#include "rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tap_main.h"

static const char *facts(const char *method, const char *target, char *to, size_t size)
{
    struct kube_facts f;
    struct buf b;
    struct slice path = slice_str(target), query = {"", 0};
    ssize_t mark = slice_find(path, '?');
    if (mark >= 0) {
        query = (struct slice){path.p + mark + 1, path.n - (size_t)mark - 1};
        path.n = (size_t)mark;
    }
    if (kube_read(slice_str(method), path, query, &f) < 0)
        return "unreadable";
    if (!f.is_resource)
        return f.verb == KUBE_GET ? "path" : "path, written";
    buf_init(&b, 1024);
    CU_ASSERT(kube_text(&f, &b) == 0);
    snprintf(to, size, "%.*s", SL(buf_slice(&b)));
    buf_free(&b);
    return to;
}

static const struct {
    const char *method, *target, *said;
} readings[] = {
    {"GET", "/", "path"},
    {"GET", "/api", "path"},
    {"GET", "/api/v1", "path"},
    {"GET", "/apis/apps/v1", "path"},
    {"POST", "/apis/apps/v1", "path, written"},
    {"GET", "/version", "path"},
    {"GET", "/API/v1/pods", "path"},
    {"GET", "/api/v1/pods", "list pods "},
    {"HEAD", "/api/v1/pods", "list pods "},
    {"GET", "/api/v1/pods/", "list pods "},
    {"GET", "/api/v1/pods?watch=1", "watch pods "},
    {"GET", "/api/v1/pods?watch=true&watch=false", "watch pods "},
    {"GET", "/api/v1/pods?watch=false&watch=true", "list pods "},
    {"GET", "/api/v1/pods?watch", "watch pods "},
    {"GET", "/api/v1/pods?watch=", "watch pods "},
    {"GET", "/api/v1/pods?watch=0", "list pods "},
    {"GET", "/api/v1/pods?watch=FALSE", "list pods "},
    {"GET", "/api/v1/pods?watch=no", "watch pods "},
    {"GET", "/api/v1/pods?w%61tch=1", "watch pods "},
    {"GET", "/api/v1/pods?watch=%", "list pods "},
    {"GET", "/api/v1/pods?watch=1;x", "list pods "},
    {"GET", "/api/v1/pods?Watch=1", "list pods "},
    {"GET", "/api/v1/pods?x=1&&watch=1", "watch pods "},
    {"GET", "/api/v1/watch/pods", "watch pods "},
    {"DELETE", "/api/v1/watch/pods", "watch pods "},
    {"GET", "/api/v1/watch", "unreadable"},
    {"GET", "/api/v1/watch/namespaces/a/pods/b", "watch pods a/b"},
    {"GET", "/api/v1/proxy/namespaces/a/services/b/c", "proxy services a/b"},
    {"GET", "/api/v1/namespaces", "list namespaces "},
    {"GET", "/api/v1/namespaces/a", "get namespaces a/a"},
    {"PUT", "/api/v1/namespaces/a/status", "update namespaces/status a/a"},
    {"PUT", "/api/v1/namespaces/a/finalize", "update namespaces/finalize a/a"},
    {"DELETE", "/api/v1/namespaces/a", "delete namespaces a/a"},
    {"DELETE", "/api/v1/namespaces", "deletecollection namespaces "},
    {"GET", "/api/v1/namespaces/a/pods", "list pods a/"},
    {"POST", "/api/v1/namespaces/a/pods", "create pods a/"},
    {"DELETE", "/api/v1/namespaces/a/pods", "deletecollection pods a/"},
    {"GET", "/api/v1/namespaces/a/pods/b", "get pods a/b"},
    {"GET", "/api/v1/namespaces/a/pods/b?watch=1", "get pods a/b"},
    {"PATCH", "/api/v1/namespaces/a/pods/b", "patch pods a/b"},
    {"GET", "/api/v1/namespaces/a/pods/b/log", "get pods/log a/b"},
    {"GET", "/api/v1/namespaces/a/pods/b/log/x/y", "get pods/log a/b"},
    {"POST", "/api/v1/namespaces/a/pods/b/exec", "create pods/exec a/b"},
    {"GET", "/api/v1/namespaces/a/pods/b/exec?command=sh", "create pods/exec a/b"},
    {"GET", "/api/v1/namespaces/a/pods/b/attach", "create pods/attach a/b"},
    {"GET", "/api/v1/namespaces/a/pods/b/portforward", "create pods/portforward a/b"},
    {"GET", "/apis/x.example/v1/namespaces/a/pods/b/exec", "get pods.x.example/exec a/b"},
    {"GET", "/api/v1/namespaces/a/services/b:80/proxy/x%2Fy", "get services/proxy a/b:80"},
    {"GET", "/api/v1/namespaces/a/pods%2Fb", "unreadable"},
    {"GET", "/api/v1/namespaces/a/pods/%62", "unreadable"},
    {"GET", "/%61pi/v1/pods", "unreadable"},
    {"GET", "/apis/apps/v1/deployments", "list deployments.apps "},
    {"GET", "/apis/apps/v1/namespaces/a/deployments/b/scale", "get deployments.apps/scale a/b"},
    {"GET", "/apis/apps/v1/namespaces/a", "get namespaces.apps a/a"},
    {"GET", "/api/v1/pods?fieldSelector=metadata.name%3Db", "list pods b"},
    {"GET", "/api/v1/pods?fieldSelector=metadata.name=b&watch=1", "watch pods b"},
    {"GET", "/api/v1/pods?fieldSelector=metadata.name==b", "list pods b"},
    {"GET", "/api/v1/pods?fieldSelector=metadata.name!=b", "list pods "},
    {"GET", "/api/v1/pods?fieldSelector=spec.x=1,metadata.name=b", "list pods b"},
    {"GET", "/api/v1/pods?fieldSelector=metadata.name=b,spec", "list pods "},
    {"GET", "/api/v1/pods?fieldSelector=metadata.name=..", "list pods "},
    {"GET", "/api/v1/pods?fieldSelector=metadata.name=a/b", "list pods "},
    {"COPY", "/api/v1/pods", " pods "},
    {"GET", "/api//v1/pods", "unreadable"},
    {"GET", "/api/v1/pods?watch=fal%C5%BFe", "unreadable"},
    {"GET", "/api/v1/pods?watch=tr\"ue", "watch pods "},
    {"GET", "/api/v1/pods?watch=0000000000000000000000000000000000000000", "unreadable"},
    {"GET", "/api/v1/pods?fieldSelector=metadata.name=b&limit=x", "list pods "},
    {"GET", "/api/v1/pods?fieldSelector=metadata.name=b&limit=500", "list pods b"},
    {"GET", "/api/v1/pods?fieldSelector=metadata.name=b&limit=", "list pods "},
    {"GET", "/api/v1/pods?fieldSelector=metadata.name=b&timeoutSeconds=-1", "list pods "},
    {"GET", "/api/v1/pods?fieldSelector=metadata.name=b&labelSelector=x", "list pods "},
    {"GET", "/api/v1/pods?fieldSelector=metadata.name=b%00", "list pods "},
    {"GET", "/api/v1/pods?fieldSelector=metadata.name=b%20c", "list pods "},
};

static void test_read(void)
{
    char text[1100];
    for (size_t i = 0; i < ARRAY_LEN(readings); i++) {
        const char *said = facts(readings[i].method, readings[i].target, text, sizeof text);
        if (strcmp(said, readings[i].said) != 0)
            fprintf(stderr, "# %s %s: %s\n", readings[i].method, readings[i].target, said);
        CU_ASSERT_STRING_EQUAL(said, readings[i].said);
    }
}

static struct policy *parse(const char *kubernetes, const char *more, struct err *err)
{
    char json[4096];
    snprintf(json, sizeof json,
             "{\"policy\":\"p\",\"rules\":[{\"allow\":\"k.example/**\",\"kubernetes\":%s%s}]}",
             kubernetes, more);
    err->text[0] = 0;
    return policy_parse(json, strlen(json), err);
}

static const struct kube_terms *terms(struct policy **p, const char *kubernetes)
{
    struct err err = {0};
    *p = parse(kubernetes, "", &err);
    if (*p == NULL)
        fprintf(stderr, "# %s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(*p);
    return policy_rule(*p, 0)->kubernetes;
}

static bool allowed(const struct kube_terms *t, const char *method, const char *path)
{
    struct kube_facts f;
    return kube_read(slice_str(method), slice_str(path), SLICE(""), &f) == 0 &&
           kube_decide(t, &f) >= 0;
}

static const struct {
    const char *entries, *method, *path;
    bool allowed;
} decisions[] = {
#define PODS                                                        \
    "{\"verbs\":[\"get\",\"list\"],\"resources\":[\"pods\",\"pods/" \
    "log\"],\"namespaces\":\"team-*\"}"
    {PODS, "GET", "/api/v1/namespaces/team-a/pods", true},
    {PODS, "GET", "/api/v1/namespaces/team-a/pods/x", true},
    {PODS, "GET", "/api/v1/namespaces/team-a/pods/x/log", true},
    {PODS, "GET", "/api/v1/namespaces/team-a/pods/x/exec", false},
    {PODS, "GET", "/api/v1/namespaces/team-a/pods/x/status", false},
    {PODS, "GET", "/api/v1/namespaces/prod/pods", false},
    {PODS, "GET", "/api/v1/namespaces/Team-a/pods", false},
    {PODS, "GET", "/api/v1/pods", false},
    {PODS, "GET", "/api/v1/watch/namespaces/team-a/pods", false},
    {PODS, "POST", "/api/v1/namespaces/team-a/pods", false},
    {PODS, "DELETE", "/api/v1/namespaces/team-a/pods/x", false},
    {PODS, "GET", "/api/v1/namespaces/team-a/secrets", false},
    {PODS, "GET", "/api/v1/namespaces/team-a/Pods", false},
    {PODS, "GET", "/apis/metrics.k8s.io/v1beta1/namespaces/team-a/pods", false},
    {PODS, "GET", "/api", true},
    {PODS, "GET", "/apis/apps/v1", true},
    {PODS, "GET", "/openapi/v3/apis/apps/v1", true},
    {PODS, "GET", "/version", true},
    {PODS, "POST", "/version", false},
    {PODS, "GET", "/metrics", false},
    {PODS, "GET", "/logs/", false},
    {PODS, "GET", "/versions", false},
#define STAR "{\"verbs\":\"*\",\"resources\":\"*\"}"
    {STAR, "DELETE", "/apis/apps/v1/namespaces/a/deployments/b", true},
    {STAR, "DELETE", "/api/v1/nodes/n", true},
    {STAR, "POST", "/api/v1/namespaces/a/pods/b/exec", false},
    {STAR, "POST", "/api/v1/namespaces/a/serviceaccounts/b/token", false},
    {STAR, "COPY", "/api/v1/pods", false},
    {STAR, "GET", "/api/v1/proxy/namespaces/a/services/b", false},
#define APPS                                                             \
    "{\"verbs\":\"patch\",\"resources\":[\"*.apps\",\"deployments.apps/" \
    "scale\"],\"names\":[\"web\",\"web-*\"]}"
    {APPS, "PATCH", "/apis/apps/v1/namespaces/a/deployments/web-1", true},
    {APPS, "PATCH", "/apis/apps/v1/namespaces/a/deployments/web/scale", true},
    {APPS, "PATCH", "/apis/apps/v1/namespaces/a/statefulsets/web/scale", false},
    {APPS, "PATCH", "/apis/apps/v1/namespaces/a/deployments/db", false},
    {APPS, "PATCH", "/api/v1/namespaces/a/pods/web", false},
#define EXEC                                      \
    "{\"verbs\":\"create\",\"resources\":\"pods/" \
    "exec\",\"namespaces\":[\"a\"],\"names\":\"web-*\"}"
    {EXEC, "GET", "/api/v1/namespaces/a/pods/web-1/exec", true},
    {EXEC, "POST", "/api/v1/namespaces/a/pods/web-1/exec", true},
    {EXEC, "POST", "/api/v1/namespaces/a/pods/db/exec", false},
    {EXEC, "POST", "/api/v1/namespaces/a/pods/web-1/attach", false},
    {"{\"verbs\":\"get\",\"resources\":\"pods/exec\"}", "GET",
     "/api/v1/namespaces/a/pods/web-1/exec", false},
    {"[" PODS "," EXEC "]", "POST", "/api/v1/namespaces/a/pods/web-1/exec", true},
#define ALL "{\"verbs\":\"*\",\"resources\":[\"*\",\"*/*\"]}"
    {ALL, "GET", "/api/v1/namespaces/a/pods/b/log", true},
    {ALL, "GET", "/api/v1/namespaces/a/pods/b/exec", true},
    {ALL, "GET", "/api/v1/namespaces/a/pods/b/proxy", false},
    {ALL, "GET", "/api/v1/nodes/n/proxy/exec/a/b/c", false},
    {"{\"verbs\":\"get\",\"resources\":\"services/proxy\"}", "GET",
     "/api/v1/namespaces/a/services/b/proxy/x", true},
};

static void test_entries(void)
{
    for (size_t i = 0; i < ARRAY_LEN(decisions); i++) {
        struct policy *p;
        const struct kube_terms *t = terms(&p, decisions[i].entries);
        bool got = allowed(t, decisions[i].method, decisions[i].path);
        if (got != decisions[i].allowed)
            fprintf(stderr, "# %s %s\n", decisions[i].method, decisions[i].path);
        CU_ASSERT_EQUAL(got, decisions[i].allowed);
        policy_free(p);
    }
}

/* What the server would make where it is not there. */
static void test_makes(void)
{
    static const struct {
        const char *method, *path, *type;
        bool makes;
    } rows[] = {
#define DEPLOYMENT "/apis/apps/v1/namespaces/a/deployments/b"
        {"PATCH", DEPLOYMENT, "application/merge-patch+json", false},
        {"PATCH", DEPLOYMENT, "application/json-patch+json", false},
        {"PATCH", DEPLOYMENT, "application/strategic-merge-patch+json", false},
        {"PATCH", DEPLOYMENT, "application/apply-patch+yaml", true},
        {"PATCH", DEPLOYMENT, "application/apply-patch+cbor", true},
        {"PATCH", DEPLOYMENT, "", true},
        {"PATCH", DEPLOYMENT "/status", "application/apply-patch+yaml", false},
        {"PUT", DEPLOYMENT, "application/json", false},
        {"PUT", "/apis/rbac.authorization.k8s.io/v1/namespaces/a/rolebindings/b",
         "application/json", true},
        {"PUT", "/api/v1/namespaces/a/services/b", "application/json", true},
        {"GET", "/api/v1/namespaces/a/services/b", "", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct kube_facts f;
        CU_ASSERT_EQUAL(
            kube_read(slice_str(rows[i].method), slice_str(rows[i].path), SLICE(""), &f), 0);
        CU_ASSERT_EQUAL(kube_may_make(&f, slice_str(rows[i].type)), rows[i].makes);
    }
}

/* ---- spellings ---- */

static void put(char *to, size_t size, const char *from, size_t at, unsigned way)
{
    static const char *const before[] = {"",    "/",    "./", "x/../", ";x",
                                         "%2f", "%2e/", "?",  "#",     "%00"};
    char c = from[at];
    int n = (int)at;
    switch (way) {
    case 0:
        snprintf(to, size, "%.*s%%%02x%s", n, from, (unsigned char)c, from + at + 1);
        break;
    case 1:
        snprintf(to, size, "%.*s%%%02X%s", n, from, (unsigned char)c, from + at + 1);
        break;
    case 2:
        snprintf(to, size, "%.*s%c%s", n, from,
                 c >= 'a' && c <= 'z'   ? c - 32
                 : c >= 'A' && c <= 'Z' ? c + 32
                                        : c,
                 from + at + 1);
        break;
    case 3:
        snprintf(to, size, "%.*s%%25%02x%s", n, from, (unsigned char)c, from + at + 1);
        break;
    default:
        snprintf(to, size, "%.*s%s%s", n, from, before[way - 4], from + at);
    }
}

/* As the gate and the injector have it: the path is judged first. */
static bool passes(const struct kube_terms *t, const char *path)
{
    const char *why;
    return path_check(slice_str(path), &why) == 0 && allowed(t, "GET", path);
}

static void test_spellings(void)
{
    static const char *const paths[] = {
        "/api/v1/namespaces/team-a/secrets/x",         "/api/v1/namespaces/prod/pods",
        "/api/v1/namespaces/team-a/pods/x/exec",       "/api/v1/pods",
        "/apis/apps/v1/namespaces/team-a/deployments", "/api/v1/namespaces/prod/pods/x/log",
        "/api/v1/watch/namespaces/team-a/pods",        "/api/v1/nodes/n/proxy/run/team-a/pods"};
    struct policy *p;
    const struct kube_terms *t = terms(&p, PODS);
    size_t tried = 0;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        for (size_t at = 0; paths[i][at]; at++)
            for (unsigned way = 0; way < 14; way++, tried++) {
                char text[256];
                put(text, sizeof text, paths[i], at, way);
                if (passes(t, text))
                    fprintf(stderr, "# %s\n", text);
                CU_ASSERT_FALSE(passes(t, text));
            }
    printf("# %zu spellings\n", tried);
    policy_free(p);
}

/* The query is of an exec by WebSocket. */
static const char *command(const char *path, const char *query, char *to, size_t size)
{
    struct kube_facts f;
    struct buf b;
    buf_init(&b, KUBE_COMMAND_MAX);
    CU_ASSERT_FATAL(kube_read(SLICE("GET"), slice_str(path), slice_str(query), &f) == 0);
    kube_command(&f, &b);
    snprintf(to, size, "%.*s", SL(buf_slice(&b)));
    buf_free(&b);
    return to;
}

static void test_command(void)
{
    static const char exec[] = "/api/v1/namespaces/a/pods/b/exec";
    char text[KUBE_COMMAND_MAX + 1], query[4 * KUBE_COMMAND_MAX];
    CU_ASSERT_STRING_EQUAL(
        command(exec, "command=sh&command=-c&stdin=true&command=echo+a%20b&command=", text,
                sizeof text),
        "sh -c \"echo a b\" \"\"");
    CU_ASSERT_STRING_EQUAL(
        command(exec, "command=a%22b&command=a%5Cb&command=%0a%ff", text, sizeof text),
        "\"a\\\"b\" \"a\\\\b\" \"\\x0a\\xff\"");
    CU_ASSERT_STRING_EQUAL(command(exec, "command=a;b&command=%zz&c%6fmmand=c", text, sizeof text),
                           "c");
    CU_ASSERT_STRING_EQUAL(
        command("/api/v1/namespaces/a/pods/b/log", "command=sh", text, sizeof text), "");
    memset(query, 'x', sizeof query);
    memcpy(query, "command=", 8);
    query[sizeof query - 1] = 0;
    CU_ASSERT_EQUAL(strlen(command(exec, query, text, sizeof text)), KUBE_COMMAND_MAX);
    CU_ASSERT_STRING_EQUAL(text + KUBE_COMMAND_MAX - 5, "x" KUBE_COMMAND_CUT);
    query[8 + KUBE_COMMAND_MAX - strlen(KUBE_COMMAND_CUT)] = 0;
    CU_ASSERT_PTR_NULL(strstr(command(exec, query, text, sizeof text), KUBE_COMMAND_CUT));
    CU_ASSERT_STRING_EQUAL(command(exec, "command=a%5C...&command=...", text, sizeof text),
                           "\"a\\\\...\" ...");
}

#define RUNS                                                                            \
    "{\"verbs\":\"create\",\"resources\":\"pods/exec\",\"commands\":[\"uptime\",\"cat " \
    "/var/log/*\"]}"

static void test_commands(void)
{
    static const struct {
        const char *query;
        bool allowed;
    } rows[] = {
        {"command=uptime", true},
        {"stdin=false&command=uptime&stdout=true", true},
        {"command=cat&command=%2Fvar%2Flog%2Fsyslog", true},
        {"command=cat&command=/var/log/a/b", false},
        {"command=cat&command=/var/log/..", false},
        {"command=cat&command=/var/log/a&command=/etc/shadow", false},
        {"command=cat+/var/log/a", false},
        {"command=cat&command=/var/log/a+b", false},
        {"command=cat&command=/var/log/a%0a", false},
        {"command=uptime&command=-x", false},
        {"command=uptime&command=", false},
        {"command=&command=uptime", false},
        {"command=sh&command=-c&command=uptime", false},
        {"command=uptime&co%6Dmand=x", false},
        {"Command=uptime", false},
        {"command=upt%zzime", false},
        {"command=", false},
        {"", false},
    };
    struct policy *p;
    const struct kube_terms *t = terms(&p, RUNS);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct kube_facts f;
        bool got = kube_read(SLICE("GET"), SLICE("/api/v1/namespaces/a/pods/b/exec"),
                             slice_str(rows[i].query), &f) == 0 &&
                   kube_decide(t, &f) > 0;
        if (got != rows[i].allowed)
            fprintf(stderr, "# %s\n", rows[i].query);
        CU_ASSERT_EQUAL(got, rows[i].allowed);
    }
    policy_free(p);
}

/* A word that is too long to be compared is not left out. */
static void test_long(void)
{
    static char query[8192];
    struct kube_facts f;
    struct policy *p;
    const struct kube_terms *t = terms(&p, RUNS);
    memset(query, 'x', sizeof query - 1);
    memcpy(query, "command=uptime&command=", 23);
    CU_ASSERT_FATAL(kube_read(SLICE("GET"), SLICE("/api/v1/namespaces/a/pods/b/exec"),
                              slice_str(query), &f) == 0);
    CU_ASSERT_EQUAL(kube_decide(t, &f), -1);
    memset(query, '&', sizeof query - 1);
    CU_ASSERT_EQUAL(kube_read(SLICE("GET"), SLICE("/api/v1/pods"), slice_str(query), &f), -1);
    query[900] = 0;
    CU_ASSERT_EQUAL(kube_read(SLICE("GET"), SLICE("/api/v1/pods"), slice_str(query), &f), 0);
    policy_free(p);
}

static void test_wrong(void)
{
    static const struct {
        const char *kubernetes, *more, *why;
    } rows[] = {
        {"{}", "", "needs 'verbs'"},
        {"{\"verbs\":\"get\"}", "", "needs 'verbs' and 'resources'"},
        {"{\"verbs\":\"read\",\"resources\":\"pods\"}", "", "not a verb"},
        {"{\"verbs\":\"proxy\",\"resources\":\"pods\"}", "", "not a verb"},
        {"{\"verbs\":\"get\",\"resources\":\"\"}", "", "empty"},
        {"{\"verbs\":\"get\",\"resources\":\"pods/\"}", "", "RESOURCE"},
        {"{\"verbs\":\"get\",\"resources\":\"/log\"}", "", "RESOURCE"},
        {"{\"verbs\":\"get\",\"resources\":\"po*\"}", "", "RESOURCE"},
        {"{\"verbs\":\"get\",\"resources\":[]}", "", "empty list"},
        {"[]", "", "1 to"},
        {"{\"verbs\":\"get\",\"resources\":\"pods\",\"namespaces\":[]}", "", "empty list"},
        {"{\"verbs\":\"get\",\"resources\":\"pods\",\"namespaces\":\"a/b\"}", "",
         "name of nothing"},
        {"{\"verbs\":\"get\",\"resources\":\"pods\",\"groups\":\"apps\"}", "", "groups"},
        {"{\"verbs\":\"create\",\"resources\":[\"pods/exec\",\"pods\"],\"commands\":\"id\"}", "",
         "alone"},
        {"{\"verbs\":\"*\",\"resources\":\"pods/exec\",\"commands\":\"id\"}", "", "alone"},
        {"{\"verbs\":\"create\",\"resources\":\"*/exec\",\"commands\":\"id\"}", "", "alone"},
        {"{\"verbs\":\"create\",\"resources\":\"pods/exec\",\"commands\":\"* x\"}", "",
         "first word"},
        {"{\"verbs\":\"create\",\"resources\":\"pods/exec\",\"commands\":[]}", "", "empty list"},
        {PODS, ",\"access\":\"read-only\"", "does not stand beside"},
        {PODS, ",\"methods\":\"GET\"", "does not stand beside"},
        {PODS, ",\"query\":{}", "does not stand beside"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = {0};
        struct policy *p = parse(rows[i].kubernetes, rows[i].more, &err);
        if (p || strstr(err.text, rows[i].why) == NULL)
            fprintf(stderr, "# %s: %s\n", rows[i].kubernetes, err.text);
        CU_ASSERT(p == NULL && strstr(err.text, rows[i].why));
        policy_free(p);
    }
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("kubernetes", NULL, NULL);
    CU_add_test(s, "what a request asks", test_read);
    CU_add_test(s, "what entries allow", test_entries);
    CU_add_test(s, "what is made where it is not there", test_makes);
    CU_add_test(s, "no spelling has more", test_spellings);
    CU_add_test(s, "the command of an exec", test_command);
    CU_add_test(s, "what an exec may run", test_commands);
    CU_add_test(s, "what is long", test_long);
    CU_add_test(s, "what is not an entry", test_wrong);
}
