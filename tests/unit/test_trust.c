/* Trust bundles: what is in the directory, when it is made again, and that a JDK opens it. */
#include "buf.h"
#include "ca_key.h"
#include "mint.h"
#include "tap_main.h"
#include "trust.h"
#include "trust_root.h"
#include "trust_sandbox.h"

#include <dirent.h>
#include <fcntl.h>
#include <openssl/pkcs12.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

void suite_trust(void);

static char dir[] = "/tmp/durward-test-trust-XXXXXX";
static char cache[sizeof dir + 8], system_pem[sizeof dir + 16];
static struct buf ca_pem, other_pem;
static X509 *ca;

static int make_pem(struct buf *to, X509 **ret)
{
    struct mint_issuer made;
    buf_init(to, 8192);
    if (mint_issuer_make(&made, time(NULL), NULL) < 0)
        return -1;
    int r = ca_key_cert_pem(made.cert, to, NULL);
    if (ret) {
        *ret = made.cert;
        made.cert = NULL;
    }
    mint_issuer_clear(&made);
    return r;
}

static int write_text(const char *path, struct slice s)
{
    FILE *f = fopen(path, "we");
    int ok = f && fwrite(s.p, 1, s.n, f) == s.n;
    return f && fclose(f) == 0 && ok ? 0 : -1;
}

static int setup(void)
{
    if (mkdtemp(dir) == NULL || make_pem(&ca_pem, &ca) < 0 || make_pem(&other_pem, NULL) < 0)
        return -1;
    snprintf(cache, sizeof cache, "%s/cache", dir);
    snprintf(system_pem, sizeof system_pem, "%s/system.pem", dir);
    return write_text(system_pem, buf_slice(&other_pem));
}

static void remove_tree(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *e;
    char below[512];
    while (d && (e = readdir(d)) != NULL) {
        if (e->d_name[0] == '.' && strspn(e->d_name, ".") == strlen(e->d_name))
            continue;
        snprintf(below, sizeof below, "%s/%s", path, e->d_name);
        if (e->d_type == DT_DIR)
            remove_tree(below);
        else
            unlink(below);
    }
    if (d)
        closedir(d);
    rmdir(path);
}

static int teardown(void)
{
    remove_tree(dir);
    X509_free(ca);
    buf_free(&ca_pem);
    buf_free(&other_pem);
    return 0;
}

static int prepare(struct trust *t)
{
    struct err err = {0};
    int r =
        trust_prepare_with(system_pem, cache, (char *)buf_data(&ca_pem), buf_len(&ca_pem), t, &err);
    if (r < 0)
        printf("# %s\n", err.text);
    return r;
}

static unsigned certificates_in(const char *dir_path, const char *name)
{
    char path[512], line[256];
    unsigned n = 0;
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", dir_path, name);
    CU_ASSERT_EQUAL(stat(path, &st), 0);
    CU_ASSERT_EQUAL(st.st_mode & 0777, 0644);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        n += strcmp(line, "-----BEGIN CERTIFICATE-----\n") == 0;
    if (f)
        fclose(f);
    return n;
}

static void test_content(void)
{
    struct trust t;
    struct stat st;
    char path[512], hashed[64];
    mode_t old = umask(077);
    CU_ASSERT_EQUAL_FATAL(prepare(&t), 0);
    umask(old);
    CU_ASSERT(t.built);
    CU_ASSERT(stat(t.dir, &st) == 0 && (st.st_mode & 0777) == 0755);
    CU_ASSERT_EQUAL(certificates_in(t.dir, "ca-certificates.crt"), 2);
    CU_ASSERT_EQUAL(certificates_in(t.dir, "durward-ca.pem"), 1);
    CU_ASSERT_EQUAL(certificates_in(t.dir, "certs/ca-certificates.crt"), 2);
    snprintf(hashed, sizeof hashed, "certs/%08lx.0", X509_subject_name_hash(ca));
    CU_ASSERT_EQUAL(certificates_in(t.dir, hashed), 1);
    snprintf(path, sizeof path, "%s/certs", t.dir);
    CU_ASSERT(stat(path, &st) == 0 && (st.st_mode & 0777) == 0755);

    /* OpenSSL finds our CA both ways */
    X509_STORE *by_dir = X509_STORE_new(), *by_file = X509_STORE_new();
    CU_ASSERT_EQUAL(X509_STORE_load_path(by_dir, path), 1);
    snprintf(path, sizeof path, "%s/ca-certificates.crt", t.dir);
    CU_ASSERT_EQUAL(X509_STORE_load_file(by_file, path), 1);
    X509_STORE *stores[] = {by_dir, by_file};
    for (size_t i = 0; i < ARRAY_LEN(stores); i++) {
        X509_STORE_CTX *ctx = X509_STORE_CTX_new();
        X509_STORE_CTX_init(ctx, stores[i], ca, NULL);
        CU_ASSERT_EQUAL(X509_verify_cert(ctx), 1);
        X509_STORE_CTX_free(ctx);
        X509_STORE_free(stores[i]);
    }
    trust_clear(&t);
}

static void test_found_again(void)
{
    struct trust a, b, c, d;
    CU_ASSERT_EQUAL_FATAL(prepare(&a), 0);
    CU_ASSERT_EQUAL_FATAL(prepare(&b), 0);
    CU_ASSERT(!b.built);
    CU_ASSERT_STRING_EQUAL(a.dir, b.dir);
    /* the system's bundle changed: another directory, the old one stays for old sandboxes */
    struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    CU_ASSERT_EQUAL(utimensat(AT_FDCWD, system_pem, times, 0), 0);
    CU_ASSERT_EQUAL_FATAL(prepare(&c), 0);
    CU_ASSERT(c.built);
    CU_ASSERT_STRING_NOT_EQUAL(a.dir, c.dir);
    CU_ASSERT_EQUAL(access(a.dir, F_OK), 0);
    /* another CA: another directory */
    CU_ASSERT_EQUAL_FATAL(trust_prepare_with(system_pem, cache, (char *)buf_data(&other_pem),
                                             buf_len(&other_pem), &d, NULL),
                          0);
    CU_ASSERT_STRING_NOT_EQUAL(c.dir, d.dir);
    trust_clear(&a);
    trust_clear(&b);
    trust_clear(&c);
    trust_clear(&d);
}

static unsigned certificates_behind(int fd)
{
    char text[64 * 1024];
    unsigned n = 0;
    ssize_t got = pread(fd, text, sizeof text - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    for (const char *at = text; (at = strstr(at, "-----BEGIN CERTIFICATE-----")) != NULL; at++)
        n++;
    return n;
}

/* A second CA beside the first: in the files by their names, and in the old file of the bundle,
 * which is what a container sees that has it mounted by itself. */
static void test_extend(void)
{
    struct trust t;
    struct err err = {0};
    struct buf both;
    char path[512];
    CU_ASSERT_EQUAL_FATAL(prepare(&t), 0);
    snprintf(path, sizeof path, "%s/certs/ca-certificates.crt", t.dir);
    int mounted = open(path, O_RDONLY | O_CLOEXEC);
    CU_ASSERT_EQUAL(certificates_behind(mounted), 2);
    buf_init(&both, 64 * 1024);
    CU_ASSERT(buf_append_slice(&both, buf_slice(&ca_pem)) == 0 &&
              buf_append_slice(&both, buf_slice(&other_pem)) == 0 && buf_append(&both, "", 1) == 0);
    for (int i = 0; i < 2; i++) { /* again: nothing twice */
        CU_ASSERT_EQUAL(trust_extend(cache, "-----BEGIN CERTIFICATE-----", (char *)buf_data(&both),
                                     buf_len(&both) - 1, &err),
                        0);
        CU_ASSERT_EQUAL(certificates_behind(mounted), 3);
        CU_ASSERT_EQUAL(certificates_in(t.dir, "durward-ca.pem"), 2);
    }
    close(mounted);
    buf_free(&both);
    remove_tree(t.dir);
    trust_clear(&t);
}

static void test_no_system(void)
{
    struct trust t;
    CU_ASSERT_EQUAL_FATAL(
        trust_prepare_with(NULL, cache, (char *)buf_data(&ca_pem), buf_len(&ca_pem), &t, NULL), 0);
    CU_ASSERT_EQUAL(certificates_in(t.dir, "ca-certificates.crt"), 1);
    trust_clear(&t);
}

static void test_refusals(void)
{
    struct trust t = {0};
    struct err err = {0};
    CU_ASSERT_EQUAL(trust_prepare_with(system_pem, cache, "no pem", 6, &t, &err), -1);
    CU_ASSERT_EQUAL(trust_prepare_with("/nowhere/x.pem", cache, (char *)buf_data(&ca_pem),
                                       buf_len(&ca_pem), &t, &err),
                    -1);
    CU_ASSERT_PTR_NULL(t.dir);
    /* nothing half made is left behind */
    DIR *d = opendir(cache);
    struct dirent *e;
    while (d && (e = readdir(d)) != NULL)
        CU_ASSERT(strncmp(e->d_name, ".trust-", 7) != 0);
    if (d)
        closedir(d);
    /* a directory that others can write is not believed */
    CU_ASSERT_EQUAL_FATAL(prepare(&t), 0);
    CU_ASSERT_EQUAL(chmod(t.dir, 0777), 0);
    struct trust u = {0};
    CU_ASSERT_EQUAL(trust_prepare_with(system_pem, cache, (char *)buf_data(&ca_pem),
                                       buf_len(&ca_pem), &u, &err),
                    -1);
    CU_ASSERT_EQUAL(err.code, ERR_DENIED);
    CU_ASSERT_EQUAL(chmod(t.dir, 0755), 0);
    trust_clear(&t);
}

static void not_made(const char *system_path, const char *where, struct slice pem, const char *says)
{
    struct trust t = {0};
    struct err err = {0};
    CU_ASSERT_EQUAL(trust_prepare_with(system_path, where, pem.p, pem.n, &t, &err), -1);
    if (strstr(err.text, says) == NULL) {
        printf("# %s, not %s\n", err.text, says);
        CU_FAIL("an error");
    }
    CU_ASSERT_PTR_NULL(t.dir);
    trust_clear(&t);
}

/* Bundles and certificates that are none, or more than there is room for. */
static void test_bounds(void)
{
    char path[512], folder[sizeof dir + 32];
    struct buf many;
    struct err err = {0};
    snprintf(path, sizeof path, "%s/large.pem", dir);
    snprintf(folder, sizeof folder, "%s/folder", dir);
    FILE *f = fopen(path, "we");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    CU_ASSERT_EQUAL(ftruncate(fileno(f), 9 << 20), 0);
    fclose(f);
    not_made(path, cache, buf_slice(&ca_pem), "is larger than");
    CU_ASSERT_EQUAL(truncate(path, 8 << 20), 0); /* full: our CA has no room in it */
    not_made(path, cache, buf_slice(&ca_pem), "larger than");
    CU_ASSERT_EQUAL(mkdir(folder, 0700), 0);
    not_made(folder, cache, buf_slice(&ca_pem), "reading");
    not_made(system_pem, cache, SLICE(""), "the CA certificate is not one");
    not_made(system_pem, cache,
             SLICE("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"),
             "the CA certificate is not one");
    buf_init(&many, 256 * 1024);
    for (int i = 0; i < 20; i++)
        CU_ASSERT_EQUAL(buf_append_slice(&many, buf_slice(&ca_pem)), 0);
    not_made(NULL, cache, buf_slice(&many), "cannot make"); /* twice the same name */
    buf_free(&many);
    unlink(path);
    rmdir(folder);
    /* what an extension meets: no such directory, a certificate that is none */
    CU_ASSERT_EQUAL(trust_extend("/nowhere", "x", "y", 1, &err), -1);
    struct trust t;
    CU_ASSERT_EQUAL_FATAL(prepare(&t), 0);
    CU_ASSERT_EQUAL(trust_extend(cache, "-----BEGIN CERTIFICATE-----", "no pem", 6, &err), -1);
    CU_ASSERT_EQUAL(certificates_in(t.dir, "ca-certificates.crt"), 2);
    snprintf(path, sizeof path, "%s/ca-certificates.crt", t.dir);
    CU_ASSERT_EQUAL(unlink(path), 0); /* nothing to append to: it fails, and says so */
    CU_ASSERT_EQUAL(trust_extend(cache, "-----BEGIN CERTIFICATE-----", (char *)buf_data(&other_pem),
                                 buf_len(&other_pem), &err),
                    -1);
    remove_tree(t.dir);
    trust_clear(&t);
}

static bool has(char **env, const char *want)
{
    for (; *env; env++)
        if (strcmp(*env, want) == 0)
            return true;
    return false;
}

static void test_env(void)
{
    char **env = trust_env("/etc/durward/trust", false, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(env);
    CU_ASSERT(has(env, "SSL_CERT_FILE=/etc/durward/trust/ca-certificates.crt"));
    CU_ASSERT(has(env, "SSL_CERT_DIR=/etc/durward/trust/certs"));
    CU_ASSERT(has(env, "NODE_EXTRA_CA_CERTS=/etc/durward/trust/durward-ca.pem"));
    CU_ASSERT(has(env, "npm_config_cafile=/etc/durward/trust/ca-certificates.crt"));
    CU_ASSERT(has(env,
                  "JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=/etc/durward/trust/cacerts.p12 "
                  "-Djavax.net.ssl.trustStoreType=PKCS12 "
                  "-Djavax.net.ssl.trustStorePassword=changeit"));
    CU_ASSERT(has(env, "CURL_CA_BUNDLE=/etc/durward/trust/ca-certificates.crt"));
    trust_env_free(env);
    env = trust_env("/t", true, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(env);
    CU_ASSERT(has(env, "CURL_CA_BUNDLE="));
    CU_ASSERT(has(env, "GIT_PROXY_SSL_CAINFO=/t/ca-certificates.crt"));
    trust_env_free(env);
    CU_ASSERT_PTR_NULL(trust_env("relative", false, NULL));
    CU_ASSERT_PTR_NULL(trust_env("/with space", true, NULL));
    trust_env_free(NULL);
}

static void test_java_by_openssl(void)
{
    struct trust t;
    char path[512];
    CU_ASSERT_EQUAL_FATAL(prepare(&t), 0);
    snprintf(path, sizeof path, "%s/cacerts.p12", t.dir);
    FILE *f = fopen(path, "re");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    PKCS12 *p12 = d2i_PKCS12_fp(f, NULL);
    fclose(f);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p12);
    CU_ASSERT_EQUAL(PKCS12_verify_mac(p12, "changeit", -1), 1);
    CU_ASSERT_EQUAL(PKCS12_verify_mac(p12, "changed", -1), 0);
    EVP_PKEY *key = NULL;
    X509 *cert = NULL;
    STACK_OF(X509) *all = NULL;
    CU_ASSERT_EQUAL(PKCS12_parse(p12, "changeit", &key, &cert, &all), 1);
    CU_ASSERT_PTR_NULL(key);
    CU_ASSERT_EQUAL(sk_X509_num(all), 2);
    X509_free(cert);
    sk_X509_pop_free(all, X509_free);
    PKCS12_free(p12);
    trust_clear(&t);
}

/* keytool's output: how many trusted entries it lists; -1 when it failed; -2 when there is none. */
static int keytool(const char *store)
{
    int out[2], status, entries = 0;
    if (access("/usr/bin/keytool", X_OK) < 0)
        return -2;
    CU_ASSERT_EQUAL_FATAL(pipe2(out, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(out[1], 1);
        execl("/usr/bin/keytool", "keytool", "-list", "-keystore", store, "-storepass", "changeit",
              (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    FILE *f = fdopen(out[0], "re");
    char line[512];
    while (f && fgets(line, sizeof line, f))
        entries += strstr(line, "trustedCertEntry") != NULL;
    if (f)
        fclose(f);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? entries : -1;
}

static void test_java_by_keytool(void)
{
    struct trust t;
    char path[512];
    CU_ASSERT_EQUAL_FATAL(prepare(&t), 0);
    snprintf(path, sizeof path, "%s/cacerts.p12", t.dir);
    int n = keytool(path);
    if (n == -2)
        tap_skip("no JDK here (keytool)");
    else
        CU_ASSERT_EQUAL(n, 2);
    trust_clear(&t);
}

/* Of a sandbox: the cached roots and the root of its own CA, put together by bytes alone. */
static int lay(const char *system, const char *name, bool empty_first, char *path, size_t size)
{
    struct trust roots;
    struct buf root;
    struct err err = {0};
    buf_init(&root, 2 * TRUST_ROOT_MAX);
    snprintf(path, size, "%s/%s", dir, name);
    CU_ASSERT_EQUAL_FATAL(trust_roots_with(system, cache, &roots, &err), 0);
    CU_ASSERT_EQUAL_FATAL(trust_root_put(ca, &root, &err), 0);
    CU_ASSERT_EQUAL_FATAL(mkdir(path, 0755), 0);
    int from = open(roots.dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int to = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CU_ASSERT(!empty_first || trust_lay_empty(to, &err) == 0);
    int r = trust_lay(from, to, buf_slice(&root), &err);
    if (r < 0)
        printf("# %s\n", err.text);
    close(from);
    close(to);
    buf_free(&root);
    trust_clear(&roots);
    return r;
}

static bool has_root(const char *laid)
{
    char hashed[600], bundle[600];
    snprintf(hashed, sizeof hashed, "%s/certs", laid);
    snprintf(bundle, sizeof bundle, "%s/ca-certificates.crt", laid);
    X509_STORE *by_name = X509_STORE_new(), *by_file = X509_STORE_new();
    X509_STORE_CTX *with = X509_STORE_CTX_new();
    bool ok = X509_STORE_load_path(by_name, hashed) == 1 &&
              X509_STORE_load_file(by_file, bundle) == 1 &&
              X509_STORE_CTX_init(with, by_name, ca, NULL) == 1 && X509_verify_cert(with) == 1;
    X509_STORE_CTX_cleanup(with);
    ok = ok && X509_STORE_CTX_init(with, by_file, ca, NULL) == 1 && X509_verify_cert(with) == 1;
    X509_STORE_CTX_free(with);
    X509_STORE_free(by_name);
    X509_STORE_free(by_file);
    return ok;
}

static void test_lay(void)
{
    char path[512], store[600];
    CU_ASSERT_EQUAL_FATAL(lay(system_pem, "laid", false, path, sizeof path), 0);
    CU_ASSERT_EQUAL(certificates_in(path, "ca-certificates.crt"), 2);
    CU_ASSERT_EQUAL(certificates_in(path, "durward-ca.pem"), 1);
    CU_ASSERT_EQUAL(certificates_in(path, "certs/ca-certificates.crt"), 2);
    CU_ASSERT(has_root(path));
    snprintf(store, sizeof store, "%s/cacerts.p12", path);
    int n = keytool(store);
    if (n == -2)
        tap_skip("no JDK here (keytool)");
    else
        CU_ASSERT_EQUAL(n, 2);
    /* a host without roots */
    CU_ASSERT_EQUAL_FATAL(lay(NULL, "bare", false, path, sizeof path), 0);
    CU_ASSERT_EQUAL(certificates_in(path, "ca-certificates.crt"), 1);
    snprintf(store, sizeof store, "%s/cacerts.p12", path);
    CU_ASSERT(n == -2 || keytool(store) == 1);
}

/* Each of the five heads in front of a Java store's parts is DER's, and ends where the file does.
 */
static bool java_whole(const unsigned char *p, long size)
{
    static const struct {
        int tag, class;
        long skip; /* what stands between this head and the next */
    } levels[] = {{V_ASN1_SEQUENCE, V_ASN1_UNIVERSAL, 3},
                  {V_ASN1_SEQUENCE, V_ASN1_UNIVERSAL, 11},
                  {0, V_ASN1_CONTEXT_SPECIFIC, 0},
                  {V_ASN1_OCTET_STRING, V_ASN1_UNIVERSAL, 0},
                  {V_ASN1_SEQUENCE, V_ASN1_UNIVERSAL, 0}};
    const unsigned char *const end = p + size;
    for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
        const unsigned char *const at = p;
        long n = 0;
        int tag = 0, class = 0;
        int r = ASN1_get_object(&p, &n, &tag, &class, end - p);
        if (r & 0x80 || tag != levels[i].tag || class != levels[i].class || p + n != end ||
            end - at != ASN1_object_size(r & V_ASN1_CONSTRUCTED, (int)n, tag))
            return false;
        p += levels[i].skip;
    }
    return true;
}

/* Lengths of two, three and four bytes, and where one more begins. */
static void test_java_sizes(void)
{
    static const off_t sizes[] = {0, 1, 64000, 64500, 65000, 65535, 65536, 16777216};
    static unsigned char room[1 << 25];
    char from[512], to[512];
    struct buf root;
    struct err err = {0};
    buf_init(&root, 2 * TRUST_ROOT_MAX);
    snprintf(from, sizeof from, "%s/sizes", dir);
    snprintf(to, sizeof to, "%s/sized", dir);
    CU_ASSERT_EQUAL_FATAL(trust_root_put(ca, &root, &err), 0);
    CU_ASSERT_EQUAL_FATAL(mkdir(from, 0755) + mkdir(to, 0755), 0);
    int roots = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int laid = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    close(openat(roots, "ca-certificates.crt", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        for (off_t n = sizes[i]; n < sizes[i] + 512; n += sizes[i] < 65537 ? 13 : 511) {
            int java = openat(roots, "java", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
            CU_ASSERT_EQUAL(ftruncate(java, n), 0);
            close(java);
            CU_ASSERT_EQUAL(trust_lay(roots, laid, buf_slice(&root), &err), 0);
            java = openat(laid, "cacerts.p12", O_RDONLY | O_CLOEXEC);
            ssize_t size = read(java, room, sizeof room);
            close(java);
            CU_ASSERT(size > n && java_whole(room, size));
        }
    close(roots);
    close(laid);
    buf_free(&root);
}

/* Files that were mounted before they had a content are the same files afterwards. */
static void test_lay_in_place(void)
{
    char path[512];
    struct stat before, after;
    CU_ASSERT_EQUAL_FATAL(lay(system_pem, "placed", true, path, sizeof path), 0);
    CU_ASSERT_EQUAL(certificates_in(path, "ca-certificates.crt"), 2);
    int at = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CU_ASSERT_EQUAL(fstatat(at, "cacerts.p12", &before, 0), 0);
    struct err err = {0};
    CU_ASSERT_EQUAL(trust_lay_empty(at, &err), 0);
    CU_ASSERT(fstatat(at, "cacerts.p12", &after, 0) == 0 && after.st_ino == before.st_ino &&
              after.st_size == 0);
    /* what no signer says is laid nowhere */
    static const char *const bad[] = {"", "x", "\0\0\0\1x"};
    int from = open(cache, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_EQUAL(trust_lay(from, at, slice_str(bad[i]), &err), -1);
    close(from);
    close(at);
}

static void test_this_host(void)
{
    struct trust t;
    struct err err = {0};
    int r = trust_prepare(cache, (char *)buf_data(&ca_pem), buf_len(&ca_pem), &t, &err);
    CU_ASSERT_EQUAL_FATAL(r, 0);
    CU_ASSERT(certificates_in(t.dir, "ca-certificates.crt") >= 1);
    trust_clear(&t);
}

void suite_trust(void)
{
    CU_pSuite s = CU_add_suite("trust", setup, teardown);
    CU_add_test(s, "files, modes, both lookups of OpenSSL", test_content);
    CU_add_test(s, "found again, made anew on a change", test_found_again);
    CU_add_test(s, "a second CA, also for who has the bundle mounted", test_extend);
    CU_add_test(s, "a host without roots", test_no_system);
    CU_add_test(s, "bundles out of bounds", test_bounds);
    CU_add_test(s, "refusals leave nothing behind", test_refusals);
    CU_add_test(s, "environment", test_env);
    CU_add_test(s, "Java trust store, read by OpenSSL", test_java_by_openssl);
    CU_add_test(s, "Java trust store, read by keytool", test_java_by_keytool);
    CU_add_test(s, "a sandbox's Java trust store, of any size", test_java_sizes);
    CU_add_test(s, "bundles of a sandbox with a CA of its own", test_lay);
    CU_add_test(s, "the same in files that are mounted already", test_lay_in_place);
    CU_add_test(s, "with this host's own roots", test_this_host);
}

void tap_suites(void)
{
    suite_trust();
}
