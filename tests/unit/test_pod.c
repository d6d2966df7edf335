/* What is said of a node's pods: between plugin, controller and builder, and in the configuration.
 */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "pod.h"
#include "sandbox_spec.h"
#include "tap_main.h"

/* ---- names that become files' ---- */

static void test_words(void)
{
    static const char *const good[] = {"a", "cni-1f3c", "A_b.c-d", "_x", "0"};
    static const char *const bad[] = {"",   ".",  "..",  "../x", "a/b", "/a",
                                      "-x", ".x", "a b", "a\n",  "a:b", "\xc3\xa4"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        CU_ASSERT_TRUE(pod_word_ok(good[i], 10));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_FALSE(pod_word_ok(bad[i], 10));
    CU_ASSERT_TRUE(pod_word_ok("0123456789", 10));
    CU_ASSERT_FALSE(pod_word_ok("0123456789a", 10));
}

/* ---- W_POD ---- */

static struct pod_request asked(enum pod_op op)
{
    struct pod_request r = {.op = op};
    snprintf(r.container, sizeof r.container, "c0ffee");
    snprintf(r.list, sizeof r.list, "net-1");
    if (op != POD_ADD)
        return r;
    snprintf(r.ns, sizeof r.ns, "agents");
    snprintf(r.name, sizeof r.name, "a-0.b");
    snprintf(r.uid, sizeof r.uid, "2f-1");
    snprintf(r.netns, sizeof r.netns, "cni-1");
    return r;
}

/* As the controller has it; -1: refused there. */
static int passes(const struct pod_request *in, struct pod_request *out)
{
    struct msg m;
    msg_init(&m, 1);
    pod_request_put(in, &m);
    int r = pod_request_get(out, &m);
    msg_done(&m);
    return r;
}

static void test_request(void)
{
    struct pod_request r = asked(POD_ADD), out;
    CU_ASSERT_EQUAL(passes(&r, &out), 0);
    CU_ASSERT_EQUAL(memcmp(&r, &out, sizeof r), 0);
    r.uid[0] = '\0';
    CU_ASSERT_EQUAL(passes(&r, &out), 0);
    for (unsigned field = 0; field < 6; field++) {
        r = asked(POD_ADD);
        char *at[] = {r.container, r.ns, r.name, r.uid, r.netns, r.list};
        memcpy(at[field], "../", 4);
        CU_ASSERT_EQUAL(passes(&r, &out), -1);
    }
    r = asked(POD_ADD);
    r.netns[0] = '\0';
    CU_ASSERT_EQUAL(passes(&r, &out), -1);
    r = asked(POD_ADD);
    r.list[0] = '\0';
    CU_ASSERT_EQUAL(passes(&r, &out), -1);
    r = asked(POD_DEL);
    CU_ASSERT_EQUAL(passes(&r, &out), 0);
    r.container[0] = '\0';
    CU_ASSERT_EQUAL(passes(&r, &out), -1);
    r = (struct pod_request){.op = POD_STATUS};
    CU_ASSERT_EQUAL(passes(&r, &out), 0);
    r.op = POD_OPS;
    CU_ASSERT_EQUAL(passes(&r, &out), -1);
}

/* What the API server says of it comes along as it is, or the request is refused. */
static void test_facts(void)
{
    static const char *const bad[] = {"nothing", "=x", "a b=c", "a=b c", "a=b/c", "a=b=c"};
    struct pod_request r = asked(POD_ADD), out;
    r.facts.known = POD_KNOWN;
    snprintf(r.facts.account, sizeof r.facts.account, "builder");
    CU_ASSERT_EQUAL(strlist_add(&r.facts.labels, "example.com/team=a-1.b_c"), 0);
    CU_ASSERT_EQUAL(strlist_add(&r.facts.labels, "empty="), 0);
    CU_ASSERT_EQUAL_FATAL(passes(&r, &out), 0);
    CU_ASSERT_STRING_EQUAL(out.facts.account, "builder");
    CU_ASSERT_EQUAL_FATAL(out.facts.labels.n, 2);
    CU_ASSERT_STRING_EQUAL(out.facts.labels.v[0], "example.com/team=a-1.b_c");
    pod_request_done(&out);
    memcpy(r.facts.account, "../", 4);
    CU_ASSERT_EQUAL(passes(&r, &out), -1);
    pod_request_done(&out);
    memcpy(r.facts.account, "x", 2);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        strlist_done(&r.facts.labels);
        CU_ASSERT_EQUAL(strlist_add(&r.facts.labels, bad[i]), 0);
        CU_ASSERT_EQUAL(passes(&r, &out), -1);
        pod_request_done(&out);
    }
    strlist_done(&r.facts.labels);
    for (int i = 0; i <= POD_LABELS_MAX; i++)
        CU_ASSERT_EQUAL(strlist_add(&r.facts.labels, "a=b"), 0);
    CU_ASSERT_EQUAL(passes(&r, &out), -1);
    pod_request_done(&out);
    pod_request_done(&r);
    r = asked(POD_ADD), r.facts.known = POD_KNOWNS;
    CU_ASSERT_EQUAL(passes(&r, &out), -1);
    pod_request_done(&out);
}

static void test_listed(void)
{
    char two[2][POD_CONTAINER_MAX + 1] = {"one", "two"};
    struct pod_request r = {.op = POD_GC, .list = "net-1", .n_listed = 2, .listed = two}, out;
    CU_ASSERT_EQUAL_FATAL(passes(&r, &out), 0);
    CU_ASSERT_EQUAL_FATAL(out.n_listed, 2);
    CU_ASSERT_STRING_EQUAL(out.listed[1], "two");
    CU_ASSERT_STRING_EQUAL(out.list, "net-1");
    pod_request_done(&out);
    memcpy(two[1], "a/b", 4);
    CU_ASSERT_EQUAL(passes(&r, &out), -1);
    pod_request_done(&out);
    r.n_listed = 0;
    CU_ASSERT_EQUAL(passes(&r, &out), 0);
    pod_request_done(&out);
    r.list[0] = '\0';
    CU_ASSERT_EQUAL(passes(&r, &out), -1);
    pod_request_done(&out);
}

/* ---- W_BUILD and W_INIT ---- */

static int spec_passes(const struct sandbox_spec *in)
{
    struct sandbox_spec out;
    struct msg m;
    msg_init(&m, 1);
    sandbox_spec_put(in, &m);
    int r = sandbox_spec_get(&out, &m);
    if (r == 0)
        r = msg_end(&m) == 0 && strcmp(in->pod.netns, out.pod.netns) == 0 ? 0 : -1;
    msg_done(&m);
    return r;
}

static void test_spec(void)
{
    struct sandbox_spec s = {.limits.backend = BACKEND_POD,
                             .pod = {.netns = "cni-1", .container = "c0", .uid = "u"}},
                        bad;
    CU_ASSERT_EQUAL(spec_passes(&s), 0);
    bad = s, memcpy(bad.pod.netns, "..", 3);
    CU_ASSERT_EQUAL(spec_passes(&bad), -1);
    bad = s, memcpy(bad.pod.container, "/", 2);
    CU_ASSERT_EQUAL(spec_passes(&bad), -1);
    bad = s, memcpy(bad.pod.uid, "..", 3);
    CU_ASSERT_EQUAL(spec_passes(&bad), -1);
    bad = s, bad.root = SANDBOX_SPEC_KEPT;
    CU_ASSERT_EQUAL(spec_passes(&bad), -1);
    bad = s, memcpy(bad.image, "deb", 4);
    CU_ASSERT_EQUAL(spec_passes(&bad), -1);
    CU_ASSERT_EQUAL(config_backend_named("pod"), BACKENDS); /* nobody asks for one by name */
    CU_ASSERT_STRING_EQUAL(config_backend_name(BACKEND_POD), "pod");
}

static int place_passes(const struct pod_place *in)
{
    struct pod_place out;
    struct msg m;
    msg_init(&m, 1);
    pod_place_put(in, &m);
    int r = pod_place_get(&out, &m);
    msg_done(&m);
    return r == 0 && memcmp(in, &out, sizeof out) == 0 ? 0 : -1;
}

static void test_place(void)
{
    struct pod_place p = {"/run/netns", "/var/lib/kubelet", {"10.0.0.0/8", "192.0.2.1/32"}, 2};
    CU_ASSERT_EQUAL(place_passes(&p), 0);
    memcpy(p.ranges[1], "192.0.2.1/24", 13);
    CU_ASSERT_EQUAL(place_passes(&p), -1);
    memcpy(p.ranges[1], "2001:db8::/32", 14);
    CU_ASSERT_EQUAL(place_passes(&p), -1);
}

/* ---- who connected ---- */

/* -> entries of this sort; *rest: what is counted under address 0. */
static unsigned told(struct pod_seen *s, bool refused, uint32_t *rest)
{
    struct msg m;
    uint32_t n = 0, address, port, count;
    uint8_t sort;
    unsigned found = 0;
    msg_init(&m, 1);
    pod_seen_put(s, &m);
    CU_ASSERT_EQUAL(msg_get_u32(&m, &n), 0);
    *rest = 0;
    for (uint32_t i = 0; i < n; i++) {
        CU_ASSERT_FATAL(msg_get_u32(&m, &address) == 0 && msg_get_u32(&m, &port) == 0 &&
                        msg_get_u32(&m, &count) == 0 && msg_get_u8(&m, &sort) == 0);
        if (sort == refused && address == 0)
            *rest = count;
        found += sort == refused;
    }
    CU_ASSERT_EQUAL(msg_end(&m), 0);
    msg_done(&m);
    return found;
}

/* What a pod has refused takes no place of those who connect to it, nor the other way round. */
static void test_seen(void)
{
    static struct pod_seen s;
    uint32_t rest;
    for (int refused = 0; refused < 2; refused++) {
        for (uint32_t i = 1; i <= 100; i++)
            pod_seen_count(&s, i, 80, refused);
        for (int i = 0; i < 3; i++)
            pod_seen_count(&s, 7, 443, !refused);
        CU_ASSERT_EQUAL(s.entries[!refused][0].address, 7);
        CU_ASSERT_EQUAL(s.entries[!refused][0].count, 3);
        struct pod_seen copy = s;
        CU_ASSERT_EQUAL(told(&copy, refused, &rest), POD_INBOUND_MAX);
        CU_ASSERT_EQUAL(rest, 100 - POD_INBOUND_MAX + 1);
        CU_ASSERT_EQUAL(told(&s, !refused, &rest), 1);
        CU_ASSERT_EQUAL(s.n[0] + s.n[1], 0);
    }
}

/* ---- the configuration ---- */

static struct config *parsed(const char *node, struct err *err)
{
    char text[1024];
    snprintf(text, sizeof text, "version: 1\npolicies:\n  p: { rules: [] }\nnode: %s\n", node);
    return config_parse(slice_str(text), "/etc/t.yaml", err);
}

static void test_config(void)
{
    struct err err = {0};
    struct config *c =
        parsed("{ namespaces: { a: p }, unbound: [k, l], inbound: 10.0.0.0/8 }", &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT_STRING_EQUAL(config_node_namespace(c, "a")->policy, "p");
    CU_ASSERT_TRUE(config_node_namespace(c, "k")->unbound);
    CU_ASSERT_PTR_NULL(config_node_namespace(c, "other"));
    CU_ASSERT_STRING_EQUAL(config_node(c)->netns, "/run/netns");
    CU_ASSERT_STRING_EQUAL(config_node(c)->inbound[0], "10.0.0.0/8");
    config_unref(c);
}

/* Which policy a pod has by what is known of it: "" where it has none. */
static void chosen(const char *bindings, const char *account, const char *labels,
                   enum config_node_choice want, const char *policy)
{
    struct err err = {0};
    char text[1024];
    const char *two[2];
    snprintf(text, sizeof text,
             "version: 1\npolicies: { p: { rules: [] }, q: { rules: [] }, r: { rules: [] } }\n"
             "node: { namespaces: { a: %s }, unbound: k }\n",
             bindings);
    struct config *c = config_parse(slice_str(text), "/etc/t.yaml", &err);
    if (c == NULL)
        fprintf(stderr, "# %s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    json_t *own = labels ? json_loads(labels, 0, NULL) : NULL;
    struct config_node_pod pod = {account, own};
    enum config_node_choice got = config_node_choose(config_node_namespace(c, "a"), &pod, two);
    if (got != want)
        fprintf(stderr, "# %s: %d\n", bindings, (int)got);
    CU_ASSERT_EQUAL(got, want);
    CU_ASSERT_STRING_EQUAL(two[0] ? two[0] : "", policy);
    CU_ASSERT_EQUAL(config_node_choose(config_node_namespace(c, "k"), &pod, two),
                    CONFIG_NODE_UNBOUND);
    CU_ASSERT_EQUAL(config_node_choose(config_node_namespace(c, "b"), &pod, two), CONFIG_NODE_NONE);
    json_decref(own);
    config_unref(c);
}

static void test_chosen(void)
{
#define LABELLED   "{ policy: p, labels: { x: \"1\", example.com/y: b } }"
#define OF_ACCOUNT "{ policy: q, accounts: [s, t] }"
    chosen("r", NULL, NULL, CONFIG_NODE_BOUND, "r");
    chosen("[ " LABELLED ", { policy: r } ]", "default", "{\"x\": \"1\", \"example.com/y\": \"b\"}",
           CONFIG_NODE_BOUND, "p");
    chosen("[ " LABELLED ", { policy: r } ]", "default", "{\"x\": \"1\"}", CONFIG_NODE_BOUND, "r");
    chosen("[ " LABELLED " ]", "default", "{\"x\": \"1\", \"example.com/y\": \"c\"}",
           CONFIG_NODE_NONE, "");
    chosen("[ " OF_ACCOUNT " ]", "t", "{}", CONFIG_NODE_BOUND, "q");
    chosen("[ " OF_ACCOUNT " ]", "u", "{}", CONFIG_NODE_NONE, "");
    chosen("[ { policy: p, labels: { x: \"1\" }, accounts: s } ]", "t", "{\"x\": \"1\"}",
           CONFIG_NODE_NONE, "");
    chosen("[ " LABELLED ", " OF_ACCOUNT ", { policy: r } ]", "s",
           "{\"x\": \"1\", \"example.com/y\": \"b\"}", CONFIG_NODE_AMBIGUOUS, "p");
    chosen("[ { policy: p, labels: { x: \"1\" } }, { policy: p, accounts: s } ]", "s",
           "{\"x\": \"1\"}", CONFIG_NODE_BOUND, "p");
    chosen("[ " LABELLED ", { policy: r } ]", NULL, NULL, CONFIG_NODE_UNKNOWN, "");
}

static void test_refused(void)
{
    static const struct {
        const char *node, *want;
    } rows[] = {
        {"{ namespaces: { a: q } }", "there is no policy 'q'"},
        {"{ namespaces: { a: [] } }", "must have 1 to"},
        {"{ namespaces: { a: [ { labels: { x: y } } ] } }", "'policy' is missing"},
        {"{ namespaces: { a: [ { policy: q } ] } }", "there is no policy 'q'"},
        {"{ namespaces: { a: [ { policy: p }, { policy: p } ] } }", "a second binding"},
        {"{ namespaces: { a: [ { policy: p, labels: {} } ] } }", "must have 1 to"},
        {"{ namespaces: { a: [ { policy: p, labels: { \"x y\": z } } ] } }", "not a label"},
        {"{ namespaces: { a: [ { policy: p, labels: { x: \"z z\" } } ] } }", "not a label"},
        {"{ namespaces: { a: [ { policy: p, labels: { /x: z } } ] } }", "not a label"},
        {"{ namespaces: { a: [ { policy: p, accounts: [\"a/b\"] } ] } }", "a service account"},
        {"{ namespaces: { a: [ { policy: p, label: { x: y } } ] } }", "did you mean 'labels'"},
        {"{ namespaces: { A: p } }", "not the name of a namespace"},
        {"{ namespaces: { \"a/b\": p } }", "not the name of a namespace"},
        {"{ namespaces: { a: p }, unbound: a }", "named twice"},
        {"{ unbound: [b, b] }", "named twice"},
        {"{ inbound: 10.0.0.1/8 }", "not a range"},
        {"{ inbound: \"::/0\" }", "not a range"},
        {"{ netns: run }", "absolute path"},
        {"{ socket: /run/../x }", "absolute path"},
        {"{ name: p }", "unknown"},
        {"[]", "mapping"},
        {"{ socket: /run/a.sock }\ncontroller: { socket: /run/a.sock }", "node.socket too"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = {0};
        struct config *c = parsed(rows[i].node, &err);
        if (c || strstr(err.text, rows[i].want) == NULL)
            printf("# %s: %s\n", rows[i].node, err.text);
        CU_ASSERT_PTR_NULL(c);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, rows[i].want));
        config_unref(c);
    }
}

void suite_pod(void);

void suite_pod(void)
{
    CU_pSuite s = CU_add_suite("pod", NULL, NULL);
    CU_add_test(s, "names that become files' names", test_words);
    CU_add_test(s, "what a plugin asks for", test_request);
    CU_add_test(s, "what a runtime still knows of", test_listed);
    CU_add_test(s, "what the API server says of a pod", test_facts);
    CU_add_test(s, "bindings by label and account", test_chosen);
    CU_add_test(s, "which pod the builder is told of", test_spec);
    CU_add_test(s, "where pods are, and who may connect", test_place);
    CU_add_test(s, "who connected and what was refused, apart", test_seen);
    CU_add_test(s, "a node's configuration", test_config);
    CU_add_test(s, "what it refuses", test_refused);
}

void tap_suites(void)
{
    suite_pod();
}
