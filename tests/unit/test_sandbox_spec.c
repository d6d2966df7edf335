/* What a policy says of the thing that makes its sandboxes, what is asked for beside it, and how
 * that goes to the builder. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "sandbox_spec.h"
#include "tap_main.h"

#define POLICY "version: 1\npolicies:\n  p:\n    rules: []\n    sandbox: "

static struct config *parsed(const char *sandbox, struct err *err)
{
    char text[1024];
    snprintf(text, sizeof text, POLICY "%s\n", sandbox);
    return config_parse(slice_str(text), "/etc/t.yaml", err);
}

/* As a part of Durward gets it from another one. */
static struct config *given(const char *sandbox, struct err *err)
{
    char text[1024];
    snprintf(text, sizeof text,
             "{\"version\": 1, \"policies\": {\"p\": {\"rules\": [], \"sandbox\": %s}}}", sandbox);
    return config_from_json(text, strlen(text), err);
}

static struct config *good(const char *sandbox)
{
    struct err err = {0};
    struct config *c = parsed(sandbox, &err);
    if (c == NULL) {
        printf("# %s\n", err.text);
        CU_FAIL_FATAL("a configuration");
    }
    return c;
}

static void test_refused(void)
{
    static const struct {
        const char *sandbox, *want;
    } rows[] = {
        {"{ backend: podman }", "docker"},
        {"{ docker: { sockt: /x } }", "did you mean 'socket'"},
        {"{ docker: { socket: d.sock } }", "absolute path"},
        {"{ docker: { socket: \"unix:///d.sock\" } }", "absolute path"},
        {"{ docker: { socket: \"/a\\tb\" } }", "absolute path"},
        {"{ docker: { image: \"a b\" } }", "as the engine knows it"},
        {"{ docker: { image: -x } }", "as the engine knows it"},
        {"{ docker: { image: \"\" } }", "image"},
        {"{ docker: /run/docker.sock }", "docker"},
        {"{ nested: true, backend: docker, docker: { image: x } }", "nested"},
        {"{ nested: true, backend: gvisor }", "nested"},
        {"{ nested: true, backend: kubernetes, kubernetes: { namespace: a } }", "nested"},
        {"{ backend: kubernetes }", "in which namespace"},
        {"{ kubernetes: { image: x } }", "'namespace' is missing"},
        {"{ kubernetes: { namespace: A } }", "the name of a namespace"},
        {"{ kubernetes: { namespace: a/b } }", "the name of a namespace"},
        {"{ kubernetes: { namespace: a, image: \"a b\" } }", "as the cluster knows it"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = {0};
        struct config *c = parsed(rows[i].sandbox, &err);
        if (c || strncmp(err.text, "/etc/t.yaml:5: ", 15) != 0 ||
            strstr(err.text, rows[i].want) == NULL) {
            printf("# %s: %s\n", rows[i].sandbox, c ? "no error" : err.text);
            CU_FAIL("an error");
        }
        config_unref(c);
    }
}

static void test_long_names(void)
{
    char text[600], name[400];
    struct err err = {0};
    memset(name, 'a', sizeof name);
    snprintf(text, sizeof text, "{ docker: { image: %.255s } }", name);
    config_unref(good(text));
    snprintf(text, sizeof text, "{ docker: { image: %.256s } }", name);
    CU_ASSERT_PTR_NULL(parsed(text, &err));
    snprintf(text, sizeof text, "{ docker: { socket: /%.106s } }", name);
    config_unref(good(text));
    snprintf(text, sizeof text, "{ docker: { socket: /%.107s } }", name);
    CU_ASSERT_PTR_NULL(parsed(text, &err));
}

static void test_defaults(void)
{
    struct config *c = good("{ pids: 8 }");
    const struct config_sandbox *s = config_policy_sandbox(c, "p");
    CU_ASSERT_EQUAL(s->backend, BACKEND_BWRAP);
    CU_ASSERT_STRING_EQUAL(s->docker.socket, CONFIG_DOCKER_SOCKET);
    CU_ASSERT_STRING_EQUAL(s->docker.image, "");
    CU_ASSERT_FALSE(s->docker.given);
    struct config *named = good("{ docker: { image: x } }"), *chosen = good("{ backend: docker }");
    CU_ASSERT_TRUE(config_policy_sandbox(named, "p")->docker.given);
    CU_ASSERT_TRUE(config_policy_sandbox(chosen, "p")->docker.given);
    config_unref(named);
    config_unref(chosen);
    CU_ASSERT_STRING_EQUAL(config_policy_sandbox(c, "none")->docker.socket, CONFIG_DOCKER_SOCKET);
    config_unref(c);
    CU_ASSERT_EQUAL(config_backend_named("docker"), BACKEND_DOCKER);
    CU_ASSERT_EQUAL(config_backend_named("gvisor"), BACKEND_GVISOR);
    CU_ASSERT_TRUE(config_backend_lays_out(BACKEND_GVISOR));
    CU_ASSERT_FALSE(config_backend_lays_out(BACKEND_DOCKER));
    CU_ASSERT_EQUAL(config_backend_named(""), BACKENDS);
    CU_ASSERT_STRING_EQUAL(config_backend_name(BACKEND_BWRAP), "bwrap");
    CU_ASSERT_PTR_NULL(config_backend_name(BACKENDS));
}

/* What the daemon's sandboxes get unasked. */
static void test_life(void)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"{ image: ../x }", "name of an imported image"},
        {"{ image: .x }", "name of an imported image"},
        {"{ image: 'a:b' }", "name of an imported image"},
        {"{ image: x1234567890123456789012345678901234567890123456789012345678901234 }",
         "name of an imported image"},
        {"{ ttl: 0s }", "at least 1s"},
        {"{ ttl: 31d }", "at most 30d"},
        {"{ ttl: 3600 }", "needs a unit"},
        {"{ ttl: 1w }", "15m, 1h or 7d"},
        {"{ ttl: d }", "15m, 1h or 7d"},
        {"{ idle_ttl: 721h }", "at most 30d"},
        {"{ idle_ttl: 99999999999999999999s }", "at most 30d"},
        {"{ on_idle: sleep }", "delete"},
        {"{ soft_ttl: 31d }", "at most 30d"},
        {"{ on_soft_ttl: delete }", "stop"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = {0};
        CU_ASSERT_PTR_NULL(parsed(bad[i].text, &err));
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i].why));
    }
    struct config *c = good("{ image: py-3.12, ttl: 30d, idle_ttl: 0s, on_idle: stop, "
                            "soft_ttl: 8h, on_soft_ttl: pause }");
    const struct config_sandbox *s = config_policy_sandbox(c, "p"),
                                *none = config_policy_sandbox(c, "none");
    CU_ASSERT_STRING_EQUAL(s->image, "py-3.12");
    CU_ASSERT_TRUE(s->ttl == CONFIG_TTL_MAX && s->idle_ttl == 0 && s->on_idle == IDLE_STOP);
    CU_ASSERT_TRUE(s->soft_ttl == 8 * 3600 && s->on_soft == IDLE_PAUSE);
    CU_ASSERT_TRUE(none->soft_ttl == 0 && none->on_soft == IDLE_STOP);
    CU_ASSERT_TRUE(none->ttl == CONFIG_TTL && none->idle_ttl == CONFIG_IDLE_TTL);
    CU_ASSERT_TRUE(none->image[0] == '\0' && none->on_idle == IDLE_DELETE);
    config_unref(c);
}

static void test_asked_for(void)
{
    static const struct {
        const char *sandbox, *backend, *image;
        int backend_is; /* -1: refused */
        const char *engine_image, *own_image;
    } rows[] = {
        {"{ }", "", "", BACKEND_BWRAP, "", ""},
        {"{ }", NULL, "host", BACKEND_BWRAP, "", ""},
        {"{ }", "bwrap", "deb", BACKEND_BWRAP, "", "deb"},
        {"{ }", "bwrap", "deb:1", -1, "", ""},
        {"{ }", "docker", "deb:1", BACKEND_DOCKER, "deb:1", ""},
        {"{ }", "docker", "", -1, "", ""},
        {"{ }", "docker", "a b", -1, "", ""},
        {"{ }", "runc", "deb", -1, "", ""},
        {"{ }", "kubernetes", "deb", -1, "", ""},
        {"{ kubernetes: { namespace: a } }", "kubernetes", "", -1, "", ""},
        {"{ kubernetes: { namespace: a } }", "kubernetes", "a b", -1, "", ""},
        {"{ kubernetes: { namespace: a } }", "kubernetes", "deb:1", BACKEND_KUBERNETES, "", ""},
        {"{ kubernetes: { namespace: a, image: x } }", "", "deb", BACKEND_BWRAP, "", "deb"},
        {"{ docker: { image: x } }", "docker", NULL, BACKEND_DOCKER, "x", ""},
        {"{ docker: { image: x } }", "", "deb", BACKEND_BWRAP, "x", "deb"},
        {"{ backend: docker, docker: { image: x } }", "", "", BACKEND_DOCKER, "x", ""},
        {"{ backend: docker, docker: { image: x } }", "", "y", BACKEND_DOCKER, "y", ""},
        {"{ backend: docker, docker: { image: x } }", "bwrap", "", BACKEND_BWRAP, "x", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sandbox_spec s;
        struct err err = {0};
        struct config *c = good(rows[i].sandbox);
        int r = sandbox_spec_of_policy(c, "p", rows[i].backend, rows[i].image, &s, &err);
        CU_ASSERT_EQUAL(r, rows[i].backend_is < 0 ? -1 : 0);
        CU_ASSERT_EQUAL(r < 0, err.text[0] != '\0');
        if (r == 0) {
            CU_ASSERT_EQUAL((int)s.limits.backend, rows[i].backend_is);
            CU_ASSERT_STRING_EQUAL(s.limits.docker.image, rows[i].engine_image);
            CU_ASSERT_STRING_EQUAL(s.image, rows[i].own_image);
        }
        config_unref(c);
    }
}

/* As it comes out at the builder's; -1: refused there. */
static int pass(const struct sandbox_spec *in, struct sandbox_spec *out)
{
    struct msg m;
    msg_init(&m, 1);
    sandbox_spec_put(in, &m);
    int r = sandbox_spec_get(out, &m);
    if (r == 0)
        r = msg_end(&m);
    msg_done(&m);
    return r;
}

static void test_message(void)
{
    struct sandbox_spec s = {.limits = {.memory = 1 << 30,
                                        .backend = BACKEND_DOCKER,
                                        .docker = {"/run/d.sock", "host:5000/a@sha256:0"}}};
    struct sandbox_spec back, bad;
    CU_ASSERT_EQUAL_FATAL(pass(&s, &back), 0);
    CU_ASSERT_EQUAL(back.limits.backend, BACKEND_DOCKER);
    CU_ASSERT_STRING_EQUAL(back.limits.docker.socket, "/run/d.sock");
    CU_ASSERT_STRING_EQUAL(back.limits.docker.image, "host:5000/a@sha256:0");
    bad = s, bad.limits.docker.socket[0] = 'r';
    CU_ASSERT_EQUAL(pass(&bad, &back), -1);
    bad = s, bad.limits.docker.image[0] = '\0';
    CU_ASSERT_EQUAL(pass(&bad, &back), -1);
    bad = s, bad.limits.docker.image[0] = '/';
    CU_ASSERT_EQUAL(pass(&bad, &back), -1);
    bad = s, bad.root = SANDBOX_SPEC_KEPT; /* no layer of ours */
    CU_ASSERT_EQUAL(pass(&bad, &back), -1);
    bad = s, snprintf(bad.image, sizeof bad.image, "deb");
    CU_ASSERT_EQUAL(pass(&bad, &back), -1);
    bad = s, bad.limits.backend = BACKENDS;
    CU_ASSERT_EQUAL(pass(&bad, &back), -1);
    bad = s, bad.limits.backend = BACKEND_BWRAP, bad.root = SANDBOX_SPEC_KEPT;
    CU_ASSERT_EQUAL(pass(&bad, &back), 0);
    CU_ASSERT_STRING_EQUAL(back.limits.docker.socket, "");
}

/* A number that is no backend's, before what a docker one says. */
static void test_message_unknown(void)
{
    static const char socket[] = "/run/d.sock";
    struct sandbox_spec back,
        s = {.limits = {
                 .memory = 1 << 30, .backend = BACKEND_DOCKER, .docker = {"/run/d.sock", "a:1"}}};
    for (int number = BACKEND_DOCKER; number <= BACKENDS_ALL;
         number += BACKENDS_ALL - BACKEND_DOCKER) {
        struct msg m;
        msg_init(&m, 1);
        sandbox_spec_put(&s, &m);
        struct slice body = buf_slice(&m.body);
        char *at = memmem(body.p, body.n, socket, strlen(socket));
        CU_ASSERT_PTR_NOT_NULL_FATAL(at);
        do /* over the text's length */
            at--;
        while (at > body.p && *at != BACKEND_DOCKER);
        *at = (char)number;
        CU_ASSERT_EQUAL(sandbox_spec_get(&back, &m), number == BACKEND_DOCKER ? 0 : -1);
        msg_done(&m);
    }
}

static void test_message_of_pods(void)
{
    struct sandbox_spec s = {.limits = {.backend = BACKEND_KUBERNETES,
                                        .kubernetes = {"agents", "example.com/a:1", true}}};
    struct sandbox_spec back, bad;
    CU_ASSERT_EQUAL_FATAL(pass(&s, &back), 0);
    CU_ASSERT_STRING_EQUAL(back.limits.kubernetes.ns, "agents");
    CU_ASSERT_STRING_EQUAL(back.limits.kubernetes.image, "example.com/a:1");
    bad = s, memcpy(bad.limits.kubernetes.ns, "a/../b", 7);
    CU_ASSERT_EQUAL(pass(&bad, &back), -1);
    bad = s, bad.limits.kubernetes.ns[0] = '\0';
    CU_ASSERT_EQUAL(pass(&bad, &back), -1);
    bad = s, bad.limits.kubernetes.image[0] = '-';
    CU_ASSERT_EQUAL(pass(&bad, &back), -1);
    bad = s, bad.root = SANDBOX_SPEC_KEPT;
    CU_ASSERT_EQUAL(pass(&bad, &back), -1);
    bad = s, bad.limits.nested = true;
    CU_ASSERT_EQUAL(pass(&bad, &back), -1);
    struct err err = {0};
    CU_ASSERT_EQUAL(sandbox_spec_volume_add(&s, "v:/v", &err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "unsupported"));
}

/* A policy whose sandboxes are pods says of no cluster where they are. */
static void test_cluster(void)
{
    static const char pods[] =
        "version: 1\n%spolicies:\n  p:\n    rules: []\n    sandbox: { backend: "
        "kubernetes, kubernetes: { namespace: a, image: x } }\n";
    static const struct {
        const char *cluster, *want;
    } rows[] = {
        {"", "'cluster' says which"},
        {"cluster: { }\n", "'image' is missing"},
        {"cluster: { image: \"a b\" }\n", "as the cluster knows it"},
        {"cluster: { image: x, api: \"https://a\" }\n", "HOST or HOST:PORT"},
        {"cluster: { image: x, tokn: /t }\n", "did you mean 'token'"},
    };
    char text[1024];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = {0};
        snprintf(text, sizeof text, pods, rows[i].cluster);
        CU_ASSERT_PTR_NULL(config_parse(slice_str(text), "/etc/t.yaml", &err));
        if (strstr(err.text, rows[i].want) == NULL) {
            printf("# row %zu: %s\n", i, err.text);
            CU_FAIL("what is wrong");
        }
    }
    struct err err = {0};
    snprintf(text, sizeof text, pods, "cluster: { image: x, token: t }\n");
    struct config *c = config_parse(slice_str(text), "/etc/t.yaml", &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT_STRING_EQUAL(config_cluster(c)->token, "/etc/t");
    CU_ASSERT_STRING_EQUAL(config_cluster(c)->api, "kubernetes.default.svc");
    config_unref(c);
}

/* Containers inside: bubblewrap's alone, with files that nobody keeps. */
static void test_nested(void)
{
    struct sandbox_spec s, back, bad;
    struct err err = {0};
    struct config *c = good("{ nested: true }");
    CU_ASSERT_EQUAL_FATAL(sandbox_spec_of_policy(c, "p", "", "", &s, &err), 0);
    CU_ASSERT(s.limits.nested);
    CU_ASSERT_EQUAL(sandbox_spec_of_policy(c, "p", "docker", "x", &bad, &err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "nested"));
    CU_ASSERT_EQUAL(sandbox_spec_volume_add(&s, "v:/v", &err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "nested"));
    CU_ASSERT_EQUAL_FATAL(pass(&s, &back), 0);
    CU_ASSERT(back.limits.nested);
    bad = s, bad.root = SANDBOX_SPEC_KEPT;
    CU_ASSERT_EQUAL(pass(&bad, &back), -1);
    bad = s, bad.limits.backend = BACKEND_DOCKER;
    snprintf(bad.limits.docker.image, sizeof bad.limits.docker.image, "x");
    CU_ASSERT_EQUAL(pass(&bad, &back), -1);
    bad = s, bad.limits.nested = false;
    CU_ASSERT_EQUAL_FATAL(sandbox_spec_volume_add(&bad, "v:/v", &err), 0);
    bad.limits.nested = true;
    CU_ASSERT_EQUAL(pass(&bad, &back), -1);
    config_unref(c);
}

static void test_device_words(void)
{
    static const char *const names[] = {"nvidia.com/gpu=0", "a/b=c", "vendor.com/net-c=a:b.c_d"};
    static const char *const no_names[] = {"",      "gpu",     "a/b",    "a/b=",   "/b=c",
                                           "a/=c",  "a/b=c d", "-a/b=c", "a/b=c/", "a/b.c=d",
                                           "a=b/c", "a/b==c",  "a/b=.c"};
    static const char *const good_env[] = {"A=1", "NVIDIA_VISIBLE_DEVICES=void",
                                           "X=", "CUDA_VISIBLE_DEVICES=0", "X=a_proxy=b"};
    static const char *const bad_env[] = {"A",
                                          "=1",
                                          "1A=1",
                                          "PATH=/x",
                                          "HOME=/x",
                                          "LD_A=1",
                                          "A B=1",
                                          "A=\n",
                                          "no_Proxy=",
                                          "SSL_X=1",
                                          "A_CA_BUNDLE=1",
                                          "NODE_X=1",
                                          "BASH_ENV=/x",
                                          "PERL5OPT=-MX",
                                          "RUBYOPT=-rx",
                                          "JAVA_TOOL_OPTIONS=x",
                                          "_JAVA_OPTIONS=x",
                                          "OPENSSL_CONF=/x",
                                          "GCONV_PATH=/x",
                                          "GLIBC_TUNABLES=x",
                                          "npm_config_cafile=/x",
                                          "PIP_CERT=/x",
                                          "GRPC_CAFILE=/x",
                                          "X_CA_FILE=/x",
                                          "SSLKEYLOGFILE=/x",
                                          "DOTNET_STARTUP_HOOKS=/x",
                                          "CLOUDSDK_CA_CERTS=/x"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        CU_ASSERT_TRUE(device_name_ok(names[i]));
    for (size_t i = 0; i < ARRAY_LEN(no_names); i++)
        CU_ASSERT_FALSE(device_name_ok(no_names[i]));
    for (size_t i = 0; i < ARRAY_LEN(good_env); i++)
        CU_ASSERT_TRUE(device_variable_ok(good_env[i]));
    for (size_t i = 0; i < ARRAY_LEN(bad_env); i++)
        CU_ASSERT_FALSE(device_variable_ok(bad_env[i]));
}

static void test_device_places(void)
{
    static const struct {
        const char *path;
        bool host, path_ok, mount;
    } rows[] = {
        {"/dev/dri/renderD128", true, true, false},
        {"/dev/zero", true, false, false},
        {"/dev/null/x", true, false, false},
        {"/dev", false, false, false},
        {"/device", false, false, false},
        {"/dev/", false, false, false},
        {"/dev//x", false, false, false},
        {"/dev/./x", false, false, false},
        {"/dev/a/../b", false, false, false},
        {"/dev/a:b", false, false, false},
        {"/dev/a\nb", false, false, false},
        {"/dev/pts/0", false, false, false},
        {"/dev/nvme0n1", false, false, false},
        {"/dev/ng0n1", false, false, false},
        {"/dev/bsg/0:0:0:0", false, false, false},
        {"/dev/watchdog0", false, false, false},
        {"/dev/nvidia0", true, true, false},
        {"/dev/ngpu", true, true, false},
        {"/dev/kfd", true, true, false},
        {"/dev/shm", false, false, false},
        {"/usr/lib/libcuda.so.1", false, false, true},
        {"/usr", false, false, false},
        {"/usr2/x", false, false, false},
        {"/opt/x", false, false, true},
        {"/etc/vulkan/icd.d/x.json", false, false, true},
        {"/etc/shadow", false, false, false},
        {"/run/docker.sock", false, false, false},
        {"/var/lib/durward", false, false, false},
        {"/", false, false, false},
        {"usr/x", false, false, false},
        {"/home/u/.ssh", false, false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CU_ASSERT_EQUAL(device_host_ok(rows[i].path), rows[i].host);
        CU_ASSERT_EQUAL(device_path_ok(rows[i].path), rows[i].path_ok);
        CU_ASSERT_EQUAL(device_mount_host_ok(rows[i].path), rows[i].mount);
        CU_ASSERT_EQUAL(device_mount_path_ok(rows[i].path), rows[i].mount);
    }
    static const unsigned yes[][2] = {{1, 3}, {1, 9}, {10, 229}, {195, 0}, {226, 128}, {10, 232}},
                          no[][2] = {{1, 1},    {1, 4},   {1, 11},  {4, 0},    {5, 0},    {7, 1},
                                     {21, 0},   {162, 0}, {0, 0},   {10, 130}, {10, 144}, {10, 223},
                                     {10, 231}, {90, 0},  {202, 1}, {204, 64}, {229, 0}};
    for (size_t i = 0; i < ARRAY_LEN(yes); i++)
        CU_ASSERT_TRUE(device_number_ok(makedev(yes[i][0], yes[i][1])));
    for (size_t i = 0; i < ARRAY_LEN(no); i++)
        CU_ASSERT_FALSE(device_number_ok(makedev(no[i][0], no[i][1])));
}

static void test_device_message(void)
{
    struct sandbox_spec s = {.devices = {{"/dev/zero", "/dev/x/z", true},
                                         {"/usr/a", "/usr/b", false}},
                             .n_devices = 2},
                        back, bad;
    CU_ASSERT_EQUAL_FATAL(pass(&s, &back), 0);
    CU_ASSERT_EQUAL_FATAL(back.n_devices, 2);
    CU_ASSERT_STRING_EQUAL(back.devices[0].path, "/dev/x/z");
    CU_ASSERT(back.devices[0].node && !back.devices[1].node);
    bad = s, bad.devices[1].node = true; /* a file is no device */
    CU_ASSERT_EQUAL(pass(&bad, &back), -1);
    bad = s, bad.devices[0].node = false;
    CU_ASSERT_EQUAL(pass(&bad, &back), -1);
    bad = s, bad.limits.nested = true;
    CU_ASSERT_EQUAL(pass(&bad, &back), -1);
    bad = s, bad.n_devices = DEVICE_PARTS_MAX;
    for (unsigned i = 0; i < DEVICE_PARTS_MAX; i++)
        bad.devices[i] = s.devices[0];
    CU_ASSERT_EQUAL(pass(&bad, &back), 0);
    struct err err = {0};
    struct config *c =
        given("{\"devices\": {\"nodes\": [{\"host\": \"/dev/zero\", \"path\": \"/dev/x\"}],"
              "\"mounts\": [{\"host\": \"/usr/a\", \"path\": \"/usr/a\"}]}}",
              &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT_EQUAL_FATAL(sandbox_spec_of_policy(c, "p", "", "", &s, &err), 0);
    CU_ASSERT_EQUAL(s.n_devices, 2);
    CU_ASSERT_EQUAL(sandbox_spec_of_policy(c, "p", "docker", "x", &bad, &err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "devices"));
    config_unref(c);
    static const char *const bad_words[] = {
        "{\"devices\": {\"nodes\": [{\"host\": \"/etc/passwd\", \"path\": \"/dev/x\"}]}}",
        "{\"devices\": {\"mounts\": [{\"host\": \"/usr/a\", \"path\": \"/etc/x\"}]}}",
        "{\"devices\": {\"env\": [\"PATH=/x\"]}}",
        "{\"devices\": {\"node\": []}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad_words); i++)
        CU_ASSERT_PTR_NULL(given(bad_words[i], &err));
    CU_ASSERT_PTR_NULL(/* what no specification has said */
                       parsed("{ devices: { nodes: [{ host: /dev/zero, path: /dev/x }] } }", &err));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "as its specification does"));
}

void suite_sandbox_spec(void);

void suite_sandbox_spec(void)
{
    CU_pSuite s = CU_add_suite("shape", NULL, NULL);
    CU_add_test(s, "what the configuration refuses of a backend", test_refused);
    CU_add_test(s, "what goes to the builder of a pod", test_message_of_pods);
    CU_add_test(s, "a message of an unknown backend", test_message_unknown);
    CU_add_test(s, "the cluster of pods", test_cluster);
    CU_add_test(s, "lengths", test_long_names);
    CU_add_test(s, "defaults", test_defaults);
    CU_add_test(s, "what the daemon's sandboxes get unasked", test_life);
    CU_add_test(s, "what is asked for beside the policy", test_asked_for);
    CU_add_test(s, "what goes to the builder", test_message);
    CU_add_test(s, "containers inside", test_nested);
    CU_add_test(s, "names and variables of devices", test_device_words);
    CU_add_test(s, "places and numbers of devices", test_device_places);
    CU_add_test(s, "devices that go to the builder", test_device_message);
}

void tap_suites(void)
{
    suite_sandbox_spec();
}
