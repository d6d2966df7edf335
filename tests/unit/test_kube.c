/* A cluster's objects beside a configuration: what they may say, what becomes of bad ones, what the
 * API server is answered. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "kube_list.h"
#include "kube_objects.h"
#include "kube_pod.h"
#include "kube_status.h"
#include "tap_main.h"

#define BASE                                                                                   \
    "version: 1\nsecrets:\n  github: { env: GITHUB_TOKEN }\npolicies:\n  own: { rules: [] }\n" \
    "node:\n  namespaces: { mine: own }\n  unbound: [kube-system]\n"

static struct kube_base base(void)
{
    return (struct kube_base){"/etc/durward.yaml", SLICE(BASE)};
}

static json_t *parsed(const char *text)
{
    json_error_t why;
    json_t *v = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    if (v == NULL)
        fprintf(stderr, "# %s: %s\n", text, why.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    return v;
}

/* ---- beside a configuration ---- */

static int loads(const char *objects, struct err *err)
{
    json_t *v = parsed(objects);
    *err = (struct err){0};
    struct config *c = config_parse_with(SLICE(BASE), "/etc/durward.yaml", v, err);
    json_decref(v);
    config_unref(c);
    return c ? 0 : -1;
}

static void refused(const char *objects, const char *why)
{
    struct err err;
    CU_ASSERT_EQUAL(loads(objects, &err), -1);
    if (strstr(err.text, why) == NULL)
        fprintf(stderr, "# %s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, why));
}

static void test_beside(void)
{
    struct err err;
    CU_ASSERT_EQUAL(loads("{}", &err), 0);
    CU_ASSERT_EQUAL(loads("{\"policies\": {\"coder\": {\"rules\": [{\"allow\": \"a.example.com\", "
                          "\"with\": {\"bearer\": \"github\"}}]}}, \"namespaces\": {\"agents\": "
                          "\"coder\", \"others\": \"own\"}}",
                          &err),
                    0);
    refused("[]", "holds no mapping");
    refused("{\"secrets\": {\"x\": {\"command\": [\"id\"]}}}",
            "'secrets' is nothing that it may hold");
    refused("{\"policies\": []}", "'policies' is nothing");
    refused("{\"policies\": {\"own\": {\"rules\": []}}}", "has a policy of that name");
    refused("{\"policies\": {\"p\": {\"rules\": [], \"sandbox\": {\"binds\": [\"/:/h\"]}}}}",
            "'sandbox' is nothing that an object may say");
    refused("{\"policies\": {\"../p\": {\"rules\": []}}}", "not a policy's name");
    refused("{\"policies\": {\"p\": {\"rules\": [{\"allow\": \"a.example.com\"}, {\"alow\": 1}]}}}",
            "Policy p: spec.rules[1]");
    refused(
        "{\"policies\": {\"p\": {\"rules\": [{\"allow\": \"a.example.com\", \"with\": {\"bearer\": "
        "\"none\"}}]}}}",
        "Policy p: spec.rules[0]");
    refused("{\"policies\": {\"p\": {\"rules\": [{\"use\": \"oci\", \"preset_hosts\": "
            "\"r.example.com\"}]}}}",
            "captures a secret");
    refused("{\"namespaces\": {\"mine\": \"own\"}}", "one of the configuration's");
    refused("{\"namespaces\": {\"kube-system\": \"own\"}}", "one of the configuration's");
    refused("{\"namespaces\": {\"a\": \"none\"}}", "there is no policy 'none'");
}

static void test_same(void)
{
    static const char *const nodes[] = {"{ namespaces: { a: p } }", "{ unbound: [b] }",
                                        "{ kubelet: /k, unbound: [b] }"};
    struct config *c[3];
    char text[256];
    for (int i = 0; i < 3; i++) {
        struct err err = {0};
        snprintf(text, sizeof text, "version: 1\npolicies: { p: { rules: [] } }\nnode: %s\n",
                 nodes[i]);
        c[i] = config_parse(slice_str(text), "/etc/t.yaml", &err);
        CU_ASSERT_PTR_NOT_NULL_FATAL(c[i]);
    }
    CU_ASSERT_TRUE(config_node_same(c[0], c[1]));
    CU_ASSERT_FALSE(config_node_same(c[1], c[2]));
    for (int i = 0; i < 3; i++)
        config_unref(c[i]);
}

/* What a daemon that runs could not take is refused before. */
static void test_injectors(void)
{
    static const char text[] = "version: 1\npolicies: { p: { rules: [] } }\ninjectors: 2\n"
                               "node: { objects: /nowhere/o.json }\n";
    struct err err = {0};
    CU_ASSERT_PTR_NULL(config_parse(slice_str(text), "/etc/t.yaml", &err));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "one injector"));
}

/* ---- what is made of lists ---- */

static json_t *made(const char *policies, const char *bindings, const char *last, json_t **verdicts)
{
    struct kube_base b = base();
    json_t *p = parsed(policies), *n = parsed(bindings), *l = last ? parsed(last) : NULL;
    *verdicts = json_array();
    json_t *v = kube_objects(&b, p, n, l, *verdicts);
    json_decref(p);
    json_decref(n);
    json_decref(l);
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    return v;
}

static void is(const char *policies, const char *bindings, const char *last, const char *want,
               const char *verdict)
{
    json_t *verdicts, *v = made(policies, bindings, last, &verdicts), *w = parsed(want);
    char *text = json_dumps(verdicts, JSON_COMPACT), *got = json_dumps(v, JSON_COMPACT);
    if (!json_equal(v, w) || strstr(text, verdict) == NULL)
        fprintf(stderr, "# %s\n# %s\n", got, text);
    CU_ASSERT_TRUE(json_equal(v, w));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, verdict));
    free(text);
    free(got);
    json_decref(w);
    json_decref(v);
    json_decref(verdicts);
}

#define POLICY(name, rules) \
    "{\"metadata\": {\"name\": \"" name "\"}, \"spec\": {\"rules\": " rules "}}"
#define BOUND(name, made, policy, ns)                                                           \
    "{\"metadata\": {\"name\": \"" name "\", \"creationTimestamp\": \"" made "\"}, \"spec\": {" \
    "\"policy\": \"" policy "\", \"namespaces\": [" ns "]}}"

static void test_lists(void)
{
    is("[" POLICY("p", "[]") "]", "[" BOUND("b", "1", "p", "\"x\", \"y\"") "]", NULL,
       "{\"policies\": {\"p\": {\"rules\": []}}, \"namespaces\": {\"x\": [{\"policy\": \"p\"}], "
       "\"y\": "
       "[{\"policy\": \"p\"}]}}",
       "{\"kind\":\"PolicyBinding\",\"name\":\"b\",\"accepted\":true,\"message\":\"\"}");
    /* a bad one harms no other, and its old version stays */
    is("[" POLICY("bad", "[{\"alow\": 1}]") "," POLICY("p", "[]") "]", "[]",
       "{\"policies\": {\"bad\": {\"rules\": [{\"allow\": \"a.example.com\"}]}}}",
       "{\"policies\": {\"bad\": {\"rules\": [{\"allow\": \"a.example.com\"}]}, \"p\": {\"rules\": "
       "[]}}, \"namespaces\": {}}",
       "what it was before stays");
    is("[" POLICY("bad", "[{\"alow\": 1}]") "]", "[" BOUND("b", "1", "bad", "\"x\"") "]", NULL,
       "{\"policies\": {}, \"namespaces\": {}}", "there is no policy 'bad'");
    /* one that is gone allows nothing, and nobody is bound to it */
    is("[]", "[]",
       "{\"policies\": {\"p\": {\"rules\": [{\"allow\": \"a.example.com\"}]}}, \"namespaces\": "
       "{\"x\": \"p\"}}",
       "{\"policies\": {\"p\": {\"rules\": []}}, \"namespaces\": {}}", "[]");
    /* of two bindings the older counts, and all of a binding or nothing */
    is("[" POLICY("p", "[]") "]",
       "[" BOUND("new", "2", "own", "\"x\", \"z\"") "," BOUND("old", "1", "p", "\"x\"") "]", NULL,
       "{\"policies\": {\"p\": {\"rules\": []}}, \"namespaces\": {\"x\": [{\"policy\": \"p\"}]}}",
       "\"name\":\"new\",\"accepted\":false,\"message\":\"the namespace x is bound by an older");
    is("[]", "[" BOUND("b", "1", "own", "\"x\", \"kube-system\"") "]", NULL,
       "{\"policies\": {}, \"namespaces\": {}}", "one of the configuration's");
}

/* By label and account: beside each other, and beside the namespace's own. */
static void test_by_pod(void)
{
#define BY_POD(name, made, policy, ns, more)                                                    \
    "{\"metadata\": {\"name\": \"" name "\", \"creationTimestamp\": \"" made "\"}, \"spec\": {" \
    "\"policy\": \"" policy "\", \"namespaces\": [" ns "], " more "}}"
    is("[" POLICY("p", "[]") "]",
       "[" BOUND("w", "3", "own", "\"x\"") "," BY_POD(
           "l", "1", "p", "\"x\"",
           "\"labels\": {\"a\": \"b\"}") "," BY_POD("s", "2", "own", "\"x\"",
                                                    "\"serviceAccounts\": [\"t\"]") "]",
       NULL,
       "{\"policies\": {\"p\": {\"rules\": []}}, \"namespaces\": {\"x\": [{\"policy\": \"p\", "
       "\"labels\": {\"a\": \"b\"}}, {\"policy\": \"own\", \"accounts\": [\"t\"]}, {\"policy\": "
       "\"own\"}]}}",
       "{\"kind\":\"PolicyBinding\",\"name\":\"w\",\"accepted\":true,\"message\":\"\"}");
    /* what is said and cannot be read makes a binding of nobody, and of everybody by no means */
    is("[]", "[" BY_POD("l", "1", "own", "\"x\"", "\"labels\": {}") "]", NULL,
       "{\"policies\": {}, \"namespaces\": {}}", "must have 1 to");
    is("[]", "[" BY_POD("l", "1", "own", "\"x\"", "\"serviceAccounts\": []") "]", NULL,
       "{\"policies\": {}, \"namespaces\": {}}", "\"accepted\":false");
    is("[]", "[" BY_POD("l", "1", "own", "\"x\"", "\"labels\": null") "]", NULL,
       "{\"policies\": {}, \"namespaces\": {}}", "\"accepted\":false");
}

/* ---- what the API server says of a pod ---- */

static int facts(const char *text, const char *uid, struct pod_facts *ret)
{
    struct err err = {0};
    json_t *v = parsed(text);
    int r = kube_pod_facts(v, uid, ret, &err);
    json_decref(v);
    return r;
}

static void test_facts(void)
{
    struct pod_facts f;
    static const char pod[] = "{\"metadata\": {\"uid\": \"u-1\", \"labels\": {\"a\": \"b\"}}, "
                              "\"spec\": {\"serviceAccountName\": \"t\"}}";
    CU_ASSERT_EQUAL(facts(pod, "u-1", &f), 0);
    CU_ASSERT_EQUAL(f.known, POD_KNOWN);
    CU_ASSERT_STRING_EQUAL(f.account, "t");
    CU_ASSERT_EQUAL_FATAL(f.labels.n, 1);
    CU_ASSERT_STRING_EQUAL(f.labels.v[0], "a=b");
    pod_facts_done(&f);
    CU_ASSERT_EQUAL(facts(pod, "u-2", &f), -1);
    pod_facts_done(&f);
    CU_ASSERT_EQUAL(
        facts("{\"metadata\": {\"uid\": \"\"}, \"spec\": {\"serviceAccountName\": \"t\"}}", "", &f),
        -1);
    pod_facts_done(&f);
    CU_ASSERT_EQUAL(facts("{\"metadata\": {\"uid\": \"u-1\"}, \"spec\": {}}", "u-1", &f), -1);
    pod_facts_done(&f);
    CU_ASSERT_EQUAL(facts("{\"metadata\": {\"uid\": \"u-1\", \"labels\": {\"a\": 1}}, \"spec\": "
                          "{\"serviceAccountName\": \"t\"}}",
                          "u-1", &f),
                    -1);
    pod_facts_done(&f);
}

/* ---- how many a binding is of ---- */

#define POD(ns, name, node, account, labels, phase)                                           \
    "{\"metadata\": {\"namespace\": \"" ns "\", \"name\": \"" name "\", \"labels\": {" labels \
    "}}, \"spec\": {\"nodeName\": \"" node "\", \"serviceAccountName\": \"" account           \
    "\"}, \"status\": {\"phase\": \"" phase "\"}}"

static void counted(const char *pods, const char *want)
{
    json_t *verdicts, *p = parsed(pods), *w = parsed(want);
    static const char bindings[] = "[" BOUND("w", "1", "own", "\"x\", \"y\"") "," BY_POD(
        "l", "2", "own", "\"x\"",
        "\"labels\": {\"a\": \"b\"}") "," BY_POD("s", "3", "p", "\"x\"",
                                                 "\"serviceAccounts\": "
                                                 "[\"t\"]") "," BOUND("bad", "4", "none",
                                                                      "\"z\"") "]";
    json_t *b = parsed(bindings), *v = made("[" POLICY("p", "[]") "]", bindings, NULL, &verdicts);
    json_t *names = kube_status_namespaces(b, verdicts), *both = parsed("[\"x\", \"y\"]");
    CU_ASSERT_TRUE(json_equal(names, both));
    struct kube_count *c = kube_count_new(b, verdicts);
    json_t *got, *of;
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    kube_count_pods(c, p);
    kube_count_end(c, &got, &of);
    if (!json_equal(got, w)) {
        char *text = json_dumps(got, JSON_COMPACT);
        fprintf(stderr, "# %s\n", text);
        free(text);
    }
    CU_ASSERT_TRUE(json_equal(got, w));
    kube_count_free(c);
    json_t *const all[] = {p, w, b, v, verdicts, names, both};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        json_decref(all[i]);
}

#define NOTHING(name) "\"" name "\": {\"pods\": 0, \"nodes\": 0, \"refused\": 0, \"some\": []}"
#define ONE(name, ns, pod)                                                                       \
    "\"" name "\": {\"pods\": 1, \"nodes\": 1, \"refused\": 0, \"some\": [{\"namespace\": \"" ns \
    "\", \"name\": \"" pod "\", \"node\": \"n\"}]}"

static void test_counted(void)
{
    json_t *many = json_array(), *pod = parsed(POD("y", "p", "n", "d", "", "Running"));
    counted("[" POD("x", "p", "n", "d", "\"a\": \"b\"", "Running") "]",
            "{" NOTHING("w") "," ONE("l", "x", "p") "," NOTHING("s") "}");
    counted("[" POD("x", "p", "n", "d", "\"a\": \"c\"", "Pending") "]",
            "{" ONE("w", "x", "p") "," NOTHING("l") "," NOTHING("s") "}");
    counted(
        "[" POD("x", "p", "n", "t", "", "Running") "," POD("z", "p", "n", "t", "", "Running") "]",
        "{" NOTHING("w") "," NOTHING("l") "," ONE("s", "x", "p") "}");
    counted("[" POD("x", "p", "n", "t", "\"a\": \"b\"", "Pending") "]",
            "{" NOTHING("w") ", \"l\": {\"pods\": 0, \"nodes\": 0, \"refused\": 1, \"some\": []}, "
                             "\"s\": {\"pods\": 0, \"nodes\": 0, \"refused\": 1, \"some\": []}}");
    counted(
        "[" POD("x", "p", "n", "t", "", "Succeeded") "," POD("x", "q", "n", "t", "", "Failed") "]",
        "{" NOTHING("w") "," NOTHING("l") "," NOTHING("s") "}");
    for (int i = 0; i < 100; i++)
        json_array_append(many, pod);
    json_t *verdicts, *b = parsed("[" BOUND("w", "1", "own", "\"y\"") "]"), *got, *of;
    json_t *v = made("[]", "[" BOUND("w", "1", "own", "\"y\"") "]", NULL, &verdicts);
    struct kube_count *c = kube_count_new(b, verdicts);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    kube_count_pods(c, many);
    kube_count_pods(c, many); /* of the next page */
    kube_count_end(c, &got, &of);
    const json_t *w = json_object_get(got, "w");
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(w, "pods")), 200);
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(w, "nodes")), 1);
    CU_ASSERT_EQUAL(json_array_size(json_object_get(w, "some")), KUBE_STATUS_SOME);
    kube_count_free(c);
    json_t *const all[] = {many, pod, verdicts, b, v};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        json_decref(all[i]);
}

/* Of a policy: each pod once, whatever number of bindings gives it; and what cannot be listed. */
static void policy_counted(const char *lost, const char *bindings_of, const char *want)
{
    static const char pods[] = "[" POD("x", "p", "n", "t", "\"a\": \"b\"", "Running") "," POD(
        "x", "q", "m", "t", "", "Running") "," POD("y", "r", "n", "t", "", "Running") "]";
    static const char bindings[] =
        "[" BY_POD("l", "1", "p", "\"x\"", "\"labels\": {\"a\": \"b\"}") "," BY_POD(
            "s", "2", "p", "\"x\"", "\"serviceAccounts\": [\"t\"]") "," BOUND("w", "3", "r",
                                                                              "\"y\"") "]";
    json_t *verdicts, *got, *of, *b = parsed(bindings), *w = parsed(want), *p = parsed(pods);
    json_t *v = made("[" POLICY("p", "[]") "," POLICY("q", "[]") "," POLICY("r", "[]") "]",
                     bindings, NULL, &verdicts);
    struct kube_count *c = kube_count_new(b, verdicts);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    kube_count_pods(c, p);
    if (lost)
        kube_count_lost(c, lost);
    kube_count_end(c, &got, &of);
    char *text = json_dumps(of, JSON_COMPACT);
    if (!json_equal(of, w))
        fprintf(stderr, "# %s\n", text);
    CU_ASSERT_TRUE(json_equal(of, w));
    free(text);
    size_t n = 0;
    const char *name;
    json_t *one;
    json_object_foreach(got, name, one) n += strstr(bindings_of, name) != NULL;
    CU_ASSERT_EQUAL(n, strlen(bindings_of));
    CU_ASSERT_EQUAL(n, json_object_size(got));
    kube_count_free(c);
    json_t *const all[] = {verdicts, b, w, p, v};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        json_decref(all[i]);
}

static void test_policies_counted(void)
{
#define OF(name, bindings, pods, nodes) \
    "\"" name "\": {\"bindings\": " bindings ", \"pods\": " pods ", \"nodes\": " nodes "}"
    policy_counted(
        NULL, "lsw",
        "{" OF("p", "2", "2", "2") "," OF("q", "0", "0", "0") "," OF("r", "1", "1", "1") "}");
    policy_counted("y", "ls", "{" OF("p", "2", "2", "2") "," OF("q", "0", "0", "0") "}");
    policy_counted("x", "w", "{" OF("q", "0", "0", "0") "," OF("r", "1", "1", "1") "}");
}

/* ---- the webhook ---- */

static void answers(const char *asked, bool allowed, const char *part)
{
    struct kube_base b = base();
    json_t *q = parsed(asked), *v = kube_review_answer(&b, q);
    char *text = json_dumps(v, JSON_COMPACT);
    const json_t *response = json_object_get(v, "response");
    CU_ASSERT_EQUAL(json_is_true(json_object_get(response, "allowed")), allowed);
    if (strstr(text, part) == NULL)
        fprintf(stderr, "# %s\n", text);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, part));
    free(text);
    json_decref(v);
    json_decref(q);
}

#define ASKED(object) "{\"request\": {\"uid\": \"u-1\", \"object\": " object "}}"

static void test_review(void)
{
    answers(ASKED(POLICY("p", "[]")), true, "\"uid\":\"u-1\"");
    answers(
        ASKED(POLICY("p", "[{\"allow\": \"a.example.com\", \"with\": {\"bearer\": \"githib\"}}]")),
        false, "Policy p: spec.rules[0]");
    answers(ASKED(POLICY("own", "[]")), false, "has a policy of that name");
    answers(ASKED("{\"metadata\": {\"name\": \"p\"}}"), false, "it has no spec");
    json_t *q = parsed("{\"request\": {}}"), *good = parsed(ASKED(POLICY("p", "[]")));
    struct kube_base b = base();
    CU_ASSERT_PTR_NULL(kube_review_answer(&b, q));
    json_t *v = kube_review_answer(NULL, good);
    CU_ASSERT_FALSE(json_is_true(json_object_get(json_object_get(v, "response"), "allowed")));
    json_decref(v);
    json_decref(q);
    json_decref(good);
}

/* ---- a node's list of plugins ---- */

#define OURS      "{\"type\": \"durward-cni\", \"socket\": \"/s\"}"
#define MADE(own) "{\"type\": \"durward-cni\", \"socket\": \"/s\"" own "}"

static void listed(const char *list, const char *with, const char *without)
{
    struct err err = {0};
    json_t *v = parsed(list), *entry = parsed(OURS), *w = parsed(with), *o = parsed(without);
    json_t *once = kube_list_with(v, entry, &err), *back = kube_list_without(once, &err);
    json_t *twice = kube_list_with(once, entry, &err);
    CU_ASSERT_TRUE(json_equal(once, w));
    CU_ASSERT_TRUE(json_equal(twice, w));
    CU_ASSERT_TRUE(json_equal(back, o));
    json_t *const all[] = {v, entry, w, o, once, back, twice};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        json_decref(all[i]);
}

/* text, of the network's list and ours (NULL: none) what there is afterwards, without what it says
 * that it was made of. */
static void made_of(const char *network, const char *ours, const char *types)
{
    struct err err = {0};
    char got[256] = "";
    const json_t *one;
    size_t i;
    json_t *v = parsed(network), *entry = parsed(OURS), *had = ours ? parsed(ours) : NULL;
    json_t *made = kube_list_made_of(v, had, entry, &err);
    json_t *again = kube_list_made_of(v, made, entry, &err);
    json_array_foreach(json_object_get(made, "plugins"), i, one)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s ",
                 json_string_value(json_object_get(one, "type")));
    CU_ASSERT_STRING_EQUAL(got, types);
    CU_ASSERT_TRUE(json_equal(made, again));
    json_t *const all[] = {v, entry, had, made, again};
    for (size_t k = 0; k < ARRAY_LEN(all); k++)
        json_decref(all[k]);
}

static void test_list_of_ours(void)
{
    static const char network[] = "{\"plugins\": [{\"type\": \"bridge\"}]}";
    static const char with_mesh[] =
        "{\"plugins\": [{\"type\": \"bridge\"}, {\"type\": \"durward-cni\", \"from\": "
        "{\"plugins\": [{\"type\": \"bridge\"}]}}, {\"type\": \"mesh\"}]}";
    made_of(network, NULL, "bridge durward-cni ");
    made_of(network, "{\"plugins\": 3}", "bridge durward-cni ");
    made_of(network, "[]", "bridge durward-cni ");
    made_of(network, with_mesh, "bridge mesh durward-cni ");
    made_of(network,
            "{\"plugins\": [{\"type\": \"durward-cni\", \"from\": {\"plugins\": [{\"type\": "
            "\"bridge\"}]}}]}",
            "bridge durward-cni ");
    made_of("{\"plugins\": [{\"type\": \"ptp\"}]}", with_mesh, "ptp durward-cni ");
    made_of("{\"plugins\": [{\"type\": \"bridge\"}, {\"type\": \"durward-cni\"}]}", with_mesh,
            "bridge mesh durward-cni ");
}

static void no_list(const char *text)
{
    struct err err = {0};
    json_t *v = parsed(text), *entry = parsed(OURS);
    CU_ASSERT_PTR_NULL(kube_list_with(v, entry, &err));
    CU_ASSERT_EQUAL(err.code, ERR_PARSE);
    json_decref(v);
    json_decref(entry);
}

static void test_list(void)
{
    listed("{\"name\": \"n\", \"plugins\": [{\"type\": \"bridge\"}]}",
           "{\"name\": \"n\", \"disableCheck\": true, \"plugins\": [{\"type\": \"bridge\"}, " MADE(
               ", \"disabledCheck\": true") "]}",
           "{\"name\": \"n\", \"plugins\": [{\"type\": \"bridge\"}]}");
    /* whoever had no CHECK before has none afterwards */
    listed("{\"disableCheck\": true, \"plugins\": [{\"type\": \"bridge\"}]}",
           "{\"disableCheck\": true, \"plugins\": [{\"type\": \"bridge\"}, " MADE("") "]}",
           "{\"disableCheck\": true, \"plugins\": [{\"type\": \"bridge\"}]}");
    /* another version's entry, and one that is not the last, give way */
    listed(
        "{\"plugins\": [{\"type\": \"bridge\"}, {\"type\": \"durward-cni\", \"socket\": \"/old\"}, "
        "{\"type\": \"portmap\"}]}",
        "{\"disableCheck\": true, \"plugins\": [{\"type\": \"bridge\"}, {\"type\": "
        "\"portmap\"}, " MADE(", \"disabledCheck\": true") "]}",
        "{\"plugins\": [{\"type\": \"bridge\"}, {\"type\": \"portmap\"}]}");
    no_list("{\"type\": \"bridge\"}");
    no_list("{\"plugins\": []}");
    no_list("{\"plugins\": [{\"type\": \"durward-cni\"}]}");
}

void suite_kube(void);

void suite_kube(void)
{
    CU_pSuite s = CU_add_suite("kube", NULL, NULL);
    CU_add_test(s, "objects beside a configuration", test_beside);
    CU_add_test(s, "what of a node a reload may change", test_same);
    CU_add_test(s, "what a daemon that runs could not take", test_injectors);
    CU_add_test(s, "what lists of objects become", test_lists);
    CU_add_test(s, "bindings by label and account", test_by_pod);
    CU_add_test(s, "what the API server says of a pod", test_facts);
    CU_add_test(s, "how many pods a binding is of", test_counted);
    CU_add_test(s, "how many pods a policy is of", test_policies_counted);
    CU_add_test(s, "what the API server is answered", test_review);
    CU_add_test(s, "a node's list of plugins", test_list);
    CU_add_test(s, "a list of ours beside the network's", test_list_of_ours);
}

void tap_suites(void)
{
    suite_kube();
}
