/* The pod of a sandbox as the API server is asked for it, what it says became of it, and what the
 * builder is told of the cluster. */
#define _GNU_SOURCE 1
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "cluster.h"
#include "kube_manifest.h"
#include "kube_owned.h"
#include "tap_main.h"

static json_t *plan(void)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:b}", "sandbox", "sb-1",
                     "policy", "coder", "namespace", "agents", "image", "python:3", "init",
                     "durward:1", "daemon", "0a", "memory", 1 << 30, "cpu", 150, "disk", 4096,
                     "writable", 0);
}

/* The text at a path of keys and numbers; the caller's. */
static char *at(const json_t *v, const char *path)
{
    char part[64];
    while (*path) {
        size_t n = strcspn(path, " ");
        snprintf(part, sizeof part, "%.*s", (int)n, path);
        v = json_is_array(v) ? json_array_get(v, (size_t)(part[0] - '0'))
                             : json_object_get(v, part);
        path += n + (path[n] == ' ');
    }
    return json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
}

static void test_manifest(void)
{
    static const char *const rows[][2] = {
        {"metadata name", "\"sb-1\""},
        {"metadata namespace", "\"agents\""},
        {"metadata labels durward.internal/policy", "\"coder\""},
        {"spec automountServiceAccountToken", "false"},
        {"spec enableServiceLinks", "false"},
        {"spec restartPolicy", "\"Never\""},
        {"spec nodeSelector", "{\"node-restriction.kubernetes.io/durward\":\"ready\"}"},
        {"spec dnsConfig nameservers", "[\"127.0.0.1\"]"},
        {"spec securityContext",
         "{\"fsGroup\":1000,\"runAsGroup\":1000,\"runAsNonRoot\":true,\"runAsUser\":1000,"
         "\"seccompProfile\":{\"type\":\"RuntimeDefault\"}}"},
        {"spec initContainers 0 image", "\"durward:1\""},
        {"spec initContainers 0 command",
         "[\"/usr/libexec/durward/durward-init\",\"pod\",\"install\",\"coder\"]"},
        {"spec initContainers 0 securityContext",
         "{\"allowPrivilegeEscalation\":false,\"capabilities\":{\"drop\":[\"ALL\"]},"
         "\"readOnlyRootFilesystem\":true}"},
        {"spec containers 0 image", "\"python:3\""},
        {"spec containers 0 command", "[\"/run/durward/init\",\"pod\",\"wait\"]"},
        {"spec containers 0 securityContext",
         "{\"allowPrivilegeEscalation\":false,\"capabilities\":{\"drop\":[\"ALL\"]},"
         "\"readOnlyRootFilesystem\":true}"},
        {"spec containers 0 resources limits",
         "{\"cpu\":\"1500m\",\"ephemeral-storage\":\"4096\",\"memory\":\"1073741824\"}"},
        {"spec containers 0 volumeMounts 0",
         "{\"mountPath\":\"/etc/durward\",\"name\":\"durward\",\"readOnly\":true}"},
        {"spec containers 0 volumeMounts 1",
         "{\"mountPath\":\"/run/durward\",\"name\":\"init\",\"readOnly\":true}"},
        {"spec volumes 2", "{\"emptyDir\":{\"sizeLimit\":\"4096\"},\"name\":\"workspace\"}"},
    };
    json_t *p = plan(), *m = kube_manifest(p);
    CU_ASSERT_PTR_NOT_NULL_FATAL(m);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *got = at(m, rows[i][0]);
        if (got == NULL || strcmp(got, rows[i][1]) != 0) {
            printf("# %s: %s\n", rows[i][0], got ? got : "nothing");
            CU_FAIL("the manifest");
        }
        free(got);
    }
    json_decref(m);
    json_object_set_new(p, "writable", json_true());
    m = kube_manifest(p);
    char *root = at(m, "spec containers 0 securityContext readOnlyRootFilesystem");
    CU_ASSERT_STRING_EQUAL(root, "false");
    free(root);
    json_decref(m);
    json_object_del(p, "policy");
    CU_ASSERT_PTR_NULL(kube_manifest(p));
    json_decref(p);
}

static void test_state(void)
{
    static const struct {
        const char *status;
        enum kube_pod_state is;
        const char *why;
    } rows[] = {
        {"{}", KUBE_POD_COMES, ""},
        {"{'phase': 'Pending'}", KUBE_POD_COMES, ""},
        {"{'phase': 'Running', 'containerStatuses': [{'state': {'waiting': {}}}]}", KUBE_POD_COMES,
         ""},
        {"{'phase': 'Running', 'containerStatuses': [{'state': {'running': {}}}]}", KUBE_POD_RUNS,
         ""},
        {"{'phase': 'Pending', 'initContainerStatuses': [{'state': {'terminated': {'exitCode': 1, "
         "'message': 'no gate\\nhere'}}}]}",
         KUBE_POD_OVER, "no gate here"},
        {"{'phase': 'Pending', 'initContainerStatuses': [{'state': {'terminated': {'exitCode': "
         "0}}}]}",
         KUBE_POD_COMES, ""},
        {"{'phase': 'Pending', 'containerStatuses': [{'state': {'waiting': {'reason': "
         "'ImagePullBackOff', 'message': 'x'}}}]}",
         KUBE_POD_OVER, "cannot start its container: x"},
        {"{'phase': 'Running', 'containerStatuses': [{'state': {'terminated': {'exitCode': 137, "
         "'reason': 'OOMKilled'}}}]}",
         KUBE_POD_OVER, "OOMKilled"},
        {"{'phase': 'Failed', 'reason': 'Evicted'}", KUBE_POD_OVER, "Evicted"},
        {"{'phase': 'Succeeded'}", KUBE_POD_OVER, "ended"},
    };
    char why[200], text[512];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        snprintf(text, sizeof text, "%s", rows[i].status);
        for (char *c = text; *c; c++)
            *c = *c == '\'' ? '"' : *c;
        json_t *status = json_loads(text, 0, NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(status);
        json_t *pod = json_pack("{s:o}", "status", status);
        enum kube_pod_state is = kube_pod_state(pod, why, sizeof why);
        if (is != rows[i].is || strstr(why, rows[i].why) == NULL) {
            printf("# row %zu: %d %s\n", i, (int)is, why);
            CU_FAIL("what became of it");
        }
        json_decref(pod);
    }
    json_t *going = json_pack("{s:{s:s}, s:{s:s}}", "metadata", "deletionTimestamp", "now",
                              "status", "phase", "Running");
    CU_ASSERT_EQUAL(kube_pod_state(going, why, sizeof why), KUBE_POD_OVER);
    json_decref(going);
}

static int place_passes(const struct cluster_place *in)
{
    struct cluster_place out;
    struct msg m;
    msg_init(&m, 1);
    cluster_place_put(in, &m);
    int r = cluster_place_get(&out, &m);
    msg_done(&m);
    return r < 0 || memcmp(in, &out, sizeof out) != 0 ? -1 : 0;
}

static void test_place(void)
{
    static const struct cluster_place none, good = {"a:6443", "/ca", "/token", "durward:1"};
    struct cluster_place bad = good;
    CU_ASSERT_EQUAL(place_passes(&none), 0);
    CU_ASSERT_EQUAL(place_passes(&good), 0);
    bad.ca[0] = 'c';
    CU_ASSERT_EQUAL(place_passes(&bad), -1);
    bad = good, bad.token[0] = '\0';
    CU_ASSERT_EQUAL(place_passes(&bad), -1);
    bad = good, bad.image[0] = '-';
    CU_ASSERT_EQUAL(place_passes(&bad), -1);
}

/* ---- whose it is ---- */

static void test_owned(void)
{
    static const char pod[] = "{\"metadata\":{\"uid\":\"u-1\",\"labels\":{"
                              "\"durward.internal/daemon\":\"0a\"}}}";
    static const char *const none[] = {
        "{\"metadata\":{\"uid\":\"u-1\",\"labels\":{\"durward.internal/daemon\":\"0b\"}}}",
        "{\"metadata\":{\"uid\":\"u-1\"}}",
        "{\"metadata\":{\"labels\":{\"durward.internal/daemon\":\"0a\"}}}",
        "{\"metadata\":{\"uid\":7,\"labels\":{\"durward.internal/daemon\":[\"0a\"]}}}",
    };
    json_t *v = json_loads(pod, 0, NULL), *asked = kube_removal(v, "0a");
    char *uid = at(asked, "preconditions uid");
    CU_ASSERT_PTR_NOT_NULL_FATAL(uid);
    CU_ASSERT_STRING_EQUAL(uid, "\"u-1\"");
    free(uid);
    json_decref(asked);
    json_decref(v);
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        v = json_loads(none[i], 0, NULL);
        CU_ASSERT_PTR_NULL(kube_removal(v, "0a"));
        json_decref(v);
    }
}

/* Where it cannot be told nobody's pod is deleted. */
static void test_kept(void)
{
    char dir[] = "/tmp/durward-locks-XXXXXX";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    int locks = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int lock = openat(locks, "held", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    close(openat(locks, "left", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    CU_ASSERT(flock(lock, LOCK_EX) == 0 && symlinkat("left", locks, "link") == 0);
    CU_ASSERT(kube_is_kept(locks, "held"));
    CU_ASSERT_FALSE(kube_is_kept(locks, "left"));
    CU_ASSERT_FALSE(kube_is_kept(locks, "none"));
    CU_ASSERT(kube_is_kept(locks, "link"));
    CU_ASSERT(kube_is_kept(-1, "left"));
    for (size_t i = 0; i < 3; i++)
        unlinkat(locks, (const char *const[]){"held", "left", "link"}[i], 0);
    close(lock);
    close(locks);
    rmdir(dir);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("kube_manifest", NULL, NULL);
    CU_add_test(s, "the pod of a sandbox", test_manifest);
    CU_add_test(s, "what became of it", test_state);
    CU_add_test(s, "the cluster, as the builder is told", test_place);
    CU_add_test(s, "whose it is", test_owned);
    CU_add_test(s, "who keeps it", test_kept);
}
