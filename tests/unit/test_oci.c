/* Which layers an image is made of, by the texts of whoever made it: bounds, digests, names that
 * lead out of it. */
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "compiler.h"
#include "oci.h"
#include "tap_main.h"

void suite_oci(void);

#define NONE "sha256:0000000000000000000000000000000000000000000000000000000000000000"

static char where[64], outside[80];
static int dir;
static char blobs[16][80]; /* to be removed */
static size_t n_blobs;
static struct oci_layers layers;

static int setup(void)
{
    snprintf(where, sizeof where, "/tmp/durward-oci-XXXXXX");
    if (mkdtemp(where) == NULL)
        return -1;
    snprintf(outside, sizeof outside, "%s.outside", where);
    dir = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir >= 0 && mkdirat(dir, "blobs", 0700) == 0 && mkdirat(dir, "blobs/sha256", 0700) == 0
               ? 0
               : -1;
}

static void empty(void)
{
    static const char *const every[] = {"oci-layout", "index.json", "manifest.json", "layer.tar"};
    for (size_t i = 0; i < ARRAY_LEN(every); i++)
        if (unlinkat(dir, every[i], 0) < 0)
            unlinkat(dir, every[i], AT_REMOVEDIR);
    while (n_blobs > 0)
        unlinkat(dir, blobs[--n_blobs], 0);
}

static int teardown(void)
{
    empty();
    unlink(outside);
    unlinkat(dir, "blobs/sha256", AT_REMOVEDIR);
    unlinkat(dir, "blobs", AT_REMOVEDIR);
    close(dir);
    return rmdir(where);
}

static void put(const char *name, const char *text)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* A blob under its digest, which is returned ("sha256:…"). */
static const char *blob(const char *text)
{
    static char digest[4][80];
    static unsigned turn;
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    char *d = digest[turn++ % ARRAY_LEN(digest)];
    CU_ASSERT_EQUAL(EVP_Digest(text, strlen(text), sum, &n, EVP_sha256(), NULL), 1);
    snprintf(d, 80, "sha256:");
    for (unsigned i = 0; i < n; i++)
        snprintf(d + 7 + 2 * i, 3, "%02x", sum[i]);
    CU_ASSERT_FATAL(n_blobs < ARRAY_LEN(blobs));
    snprintf(blobs[n_blobs], sizeof blobs[0], "blobs/sha256/%s", d + 7);
    put(blobs[n_blobs++], text);
    return d;
}

static void layout(const char *index)
{
    put("oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}");
    put("index.json", index);
}

static void refused(enum err_code code, const char *says)
{
    struct err err = {0};
    CU_ASSERT_EQUAL(oci_layers(dir, &layers, &err), -1);
    if (err.code != code || strstr(err.text, says) == NULL) {
        printf("# %d %s, not %s\n", err.code, err.text, says);
        CU_FAIL("a refusal");
    }
}

static const char *machine(void)
{
    static struct utsname u;
    uname(&u);
    return strcmp(u.machine, "x86_64") == 0    ? "amd64"
           : strcmp(u.machine, "aarch64") == 0 ? "arm64"
                                               : u.machine;
}

/* An index of these descriptors. */
static const char *index_of(const char *items)
{
    static char text[4096];
    snprintf(text, sizeof text, "{\"schemaVersion\":2,\"manifests\":[%s]}", items);
    return text;
}

static const char *descriptor(const char *digest, const char *os, const char *arch)
{
    static char text[4][256];
    static unsigned turn;
    char *t = text[turn++ % ARRAY_LEN(text)];
    snprintf(t, sizeof text[0],
             "{\"digest\":\"%s\",\"platform\":{\"os\":\"%s\",\"architecture\":\"%s\"}}", digest, os,
             arch);
    return t;
}

static void test_neither(void)
{
    struct err err = {0};
    empty();
    CU_ASSERT_EQUAL(oci_layers(dir, &layers, &err), 0);
    put("oci-layout", "{}"); /* without an index, or the other way: somebody's files */
    CU_ASSERT_EQUAL(oci_layers(dir, &layers, &err), 0);
    empty();
    put("index.json", "{\"manifests\":[]}");
    CU_ASSERT_EQUAL(oci_layers(dir, &layers, &err), 0);
    static const char *const own[] = {"{\"name\":\"a web application\"}", "[]", "[{}]", "no JSON"};
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        put("manifest.json", own[i]);
        CU_ASSERT_EQUAL(oci_layers(dir, &layers, &err), 0);
    }
    CU_ASSERT_EQUAL(err.code, ERR_NONE);
}

static void test_layout(void)
{
    struct err err = {0};
    char manifest[512], items[2048];
    empty();
    const char *a = blob("layer a"), *b = blob("layer b");
    snprintf(manifest, sizeof manifest, "{\"layers\":[{\"digest\":\"%s\"},{\"digest\":\"%s\"}]}", a,
             b);
    const char *m = blob(manifest);
    layout(index_of(descriptor(m, "linux", machine())));
    CU_ASSERT_EQUAL(oci_layers(dir, &layers, &err), 1);
    CU_ASSERT_EQUAL_FATAL(layers.n, 2);
    CU_ASSERT(strcmp(layers.path[0] + 13, a + 7) == 0 && strcmp(layers.path[1] + 13, b + 7) == 0);
    int fd = oci_open(dir, layers.path[1], &err);
    char text[16] = "";
    CU_ASSERT(fd >= 0 && read(fd, text, sizeof text - 1) == 7); /* from its beginning */
    CU_ASSERT_STRING_EQUAL(text, "layer b");
    CU_ASSERT(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    close(fd);
    /* one among those for other machines, and what says no platform */
    snprintf(items, sizeof items, "%s,%s,%s", descriptor(NONE, "linux", "s390x"),
             descriptor(m, "linux", machine()), descriptor(NONE, "unknown", "unknown"));
    layout(index_of(items));
    CU_ASSERT_EQUAL(oci_layers(dir, &layers, &err), 1);
    snprintf(items, sizeof items, "{\"digest\":\"%s\"}", m);
    layout(index_of(items));
    CU_ASSERT_EQUAL(oci_layers(dir, &layers, &err), 1);
    snprintf(items, sizeof items, "%s,%s", descriptor(m, "linux", machine()),
             descriptor(m, "linux", machine()));
    layout(index_of(items));
    refused(ERR_PARSE, "more than one image");
    layout(index_of(descriptor(m, "windows", machine())));
    refused(ERR_PARSE, "no image for linux/");
    layout(index_of(descriptor(m, "linux", "none")));
    refused(ERR_PARSE, "no image for linux/");
    layout(index_of(""));
    refused(ERR_PARSE, "no image for linux/");
    layout(manifest); /* a manifest in the index's place is one */
    CU_ASSERT_EQUAL(oci_layers(dir, &layers, &err), 1);
}

/* An index may be behind an index, but not for ever. */
static void test_nested(void)
{
    struct err err = {0};
    char text[4096], item[512];
    empty();
    snprintf(text, sizeof text, "{\"layers\":[{\"digest\":\"%s\"}]}", blob("layer"));
    for (unsigned depth = 1; depth <= 5; depth++) {
        snprintf(item, sizeof item, "{\"digest\":\"%s\"}", blob(text));
        snprintf(text, sizeof text, "%s", index_of(item));
        layout(text);
        if (depth > 3)
            refused(ERR_PARSE, "no image for");
        CU_ASSERT(depth > 3 || oci_layers(dir, &layers, &err) == 1);
    }
}

static void test_digests(void)
{
    static const char *const bad[] = {
        "",
        "sha256:",
        "sha256:abc",
        "sha512:0000000000000000000000000000000000000000000000000000000000000000",
        "sha256:000000000000000000000000000000000000000000000000000000000000000g",
        "sha256:000000000000000000000000000000000000000000000000000000000000000A",
        "sha256:../../../../../../../../../../../../../../../../../../etc/passwd",
        NONE "0",
    };
    char item[256], other[80];
    empty();
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        snprintf(item, sizeof item, "{\"layers\":[{\"digest\":\"%s\"}]}", bad[i]);
        layout(item);
        refused(ERR_PARSE, "lacks a sha256 digest");
        snprintf(item, sizeof item, "{\"digest\":\"%s\"}", bad[i]);
        layout(index_of(item));
        refused(ERR_PARSE, "lacks a sha256 digest");
    }
    layout("{\"layers\":[7]}");
    refused(ERR_PARSE, "lacks a sha256 digest");
    layout("{\"layers\":{}}");
    refused(ERR_PARSE, "names no layers");
    layout("{\"layers\":[],\"layers\":[]}"); /* two readers would see two things */
    refused(ERR_PARSE, "not JSON");
    layout("[");
    refused(ERR_PARSE, "not JSON");
    snprintf(item, sizeof item, "{\"digest\":\"%s\"}", NONE);
    layout(index_of(item)); /* a manifest that is not there */
    refused(ERR_SYS, "which the image's manifest names");
    snprintf(item, sizeof item, "{\"digest\":\"%s\"}", blob("{\"layers\":[]}"));
    snprintf(other, sizeof other, "%s", blobs[n_blobs - 1]);
    put(other, "{\"layers\":[] }"); /* changed under its name */
    layout(index_of(item));
    refused(ERR_PARSE, "does not have the digest");
}

static void test_bounds(void)
{
    struct err err = {0};
    size_t size = 5 << 20;
    char *text = malloc(size + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    for (unsigned many = OCI_LAYERS_MAX; many <= OCI_LAYERS_MAX + 1; many++) {
        size_t n = (size_t)snprintf(text, size, "{\"layers\":[");
        for (unsigned i = 0; i < many; i++)
            n += (size_t)snprintf(text + n, size - n, "%s{\"digest\":\"" NONE "\"}", i ? "," : "");
        snprintf(text + n, size - n, "]}");
        layout(text);
        if (many > OCI_LAYERS_MAX)
            refused(ERR_LIMIT, "more than 256 layers");
        CU_ASSERT(many > OCI_LAYERS_MAX ||
                  (oci_layers(dir, &layers, &err) == 1 && layers.n == OCI_LAYERS_MAX));
    }
    memset(text, ' ', size);
    text[size] = 0;
    memcpy(text, "{\"layers\":[]}", 13);
    layout(text);
    refused(ERR_PARSE, "too large");
    text[(4 << 20) + 1] = 0;
    layout(text);
    refused(ERR_PARSE, "too large");
    text[4 << 20] = 0;
    layout(text);
    CU_ASSERT_EQUAL(oci_layers(dir, &layers, &err), 1);
    CU_ASSERT_EQUAL(layers.n, 0);
    free(text);
}

static void docker(const char *text)
{
    empty();
    put("manifest.json", text);
}

static void test_docker(void)
{
    struct err err = {0};
    char text[600], name[OCI_PATH_MAX + 1];
    docker("[{\"Config\":\"c.json\",\"Layers\":[\"a/layer.tar\",\"b/layer.tar\"]}]");
    CU_ASSERT_EQUAL(oci_layers(dir, &layers, &err), 1);
    CU_ASSERT_EQUAL_FATAL(layers.n, 2);
    CU_ASSERT_STRING_EQUAL(layers.path[1], "b/layer.tar");
    docker("[{\"Layers\":[\"a\"]},{\"Layers\":[\"b\"]}]");
    refused(ERR_PARSE, "it holds 2 images");
    docker("[{\"Layers\":\"a\"}]");
    refused(ERR_PARSE, "names no Layers");
    docker("[{\"Layers\":[\"a\",\"\"]}]");
    refused(ERR_PARSE, "a layer has no name");
    docker("[{\"Layers\":[1]}]");
    refused(ERR_PARSE, "a layer has no name");
    memset(name, 'n', sizeof name);
    name[OCI_PATH_MAX] = 0;
    snprintf(text, sizeof text, "[{\"Layers\":[\"%s\"]}]", name);
    docker(text);
    refused(ERR_LIMIT, "layers");
    docker("[{\"Layers\":[\"a\"],\"Layers\":[]}]"); /* not JSON to us: files as they are */
    CU_ASSERT_EQUAL(oci_layers(dir, &layers, &err), 0);
}

/* Links are followed below the directory, and nowhere else. */
static void test_outside(void)
{
    struct err err = {0};
    char up[128];
    empty();
    int fd = open(outside, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CU_ASSERT_EQUAL(write(fd, "host", 4), 4);
    close(fd);
    snprintf(up, sizeof up, "..%s", strrchr(outside, '/'));
    CU_ASSERT_EQUAL(oci_open(dir, up, &err), -1);
    CU_ASSERT_EQUAL(oci_open(dir, outside, &err), -1);
    CU_ASSERT_EQUAL(symlinkat(outside, dir, "layer.tar"), 0);
    CU_ASSERT_EQUAL(oci_open(dir, "layer.tar", &err), -1);
    CU_ASSERT_EQUAL(err.code, ERR_SYS);
    unlinkat(dir, "layer.tar", 0);
    CU_ASSERT_EQUAL(symlinkat(up, dir, "layer.tar"), 0);
    CU_ASSERT_EQUAL(oci_open(dir, "layer.tar", &err), -1);
    unlinkat(dir, "layer.tar", 0);
    CU_ASSERT_EQUAL(symlinkat("/manifest.json", dir, "layer.tar"), 0); /* from its own root */
    put("manifest.json", "shared");
    fd = oci_open(dir, "layer.tar", &err);
    CU_ASSERT(fd >= 0);
    close(fd);
    unlinkat(dir, "layer.tar", 0);
    CU_ASSERT_EQUAL(oci_open(dir, "blobs", &err), -1); /* not a file */
    CU_ASSERT_EQUAL(mkfifoat(dir, "layer.tar", 0600), 0);
    CU_ASSERT_EQUAL(oci_open(dir, "layer.tar", &err), -1); /* and nobody waits for a writer */
    CU_ASSERT_EQUAL(oci_open(dir, "", &err), -1);
}

void suite_oci(void)
{
    CU_pSuite s = CU_add_suite("oci", setup, teardown);
    CU_add_test(s, "files as they are", test_neither);
    CU_add_test(s, "a layout", test_layout);
    CU_add_test(s, "an index in an index", test_nested);
    CU_add_test(s, "digests", test_digests);
    CU_add_test(s, "bounds", test_bounds);
    CU_add_test(s, "what docker save writes", test_docker);
    CU_add_test(s, "names that lead out of it", test_outside);
}

void tap_suites(void)
{
    suite_oci();
}
