/* Packed roots: chains verify through them, and nothing is parsed that no chain asked for. */
#include "ca_key.h"
#include "ipc.h"
#include "mint.h"
#include "roots.h"
#include "system_roots.h"
#include "tap_main.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void suite_roots(void);

static char dir[] = "/tmp/durward-test-roots-XXXXXX";
static char pem_a[sizeof dir + 16], der_b[sizeof dir + 16], broken[sizeof dir + 16],
    empty[sizeof dir + 16], mixed[sizeof dir + 16];
static struct mint_issuer a, b, stranger;
static EVP_PKEY *leaf_key;

static void file_of(char *to, size_t size, const char *name)
{
    snprintf(to, size, "%s/%s", dir, name);
}

static int put(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "we");
    int ok = f && fwrite(p, 1, n, f) == n;
    return f && fclose(f) == 0 && ok ? 0 : -1;
}

static int put_files(void)
{
    struct buf pem, all;
    unsigned char *der = NULL;
    buf_init(&pem, 8192);
    buf_init(&all, 65536);
    int n = i2d_X509(b.cert, &der), r = ca_key_cert_pem(a.cert, &pem, NULL);
    r |= put(pem_a, buf_data(&pem), buf_len(&pem)) | put(der_b, der, (size_t)n);
    r |= put(empty, "# nothing\n", 10);
    /* a damaged certificate between two good ones */
    r |= buf_append_str(&all, "# comment\n") | ca_key_cert_pem(a.cert, &all, NULL);
    r |= buf_append_str(&all, "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n");
    r |= buf_append_str(&all, "-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n");
    r |= ca_key_cert_pem(b.cert, &all, NULL);
    r |= put(mixed, buf_data(&all), buf_len(&all));
    r |= put(broken, "-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n", 62);
    OPENSSL_free(der);
    buf_free(&pem);
    buf_free(&all);
    return r;
}

static int setup(void)
{
    time_t now = time(NULL);
    leaf_key = EVP_EC_gen("P-256");
    if (mkdtemp(dir) == NULL || leaf_key == NULL)
        return -1;
    file_of(pem_a, sizeof pem_a, "a.pem");
    file_of(der_b, sizeof der_b, "b.der");
    file_of(broken, sizeof broken, "broken");
    file_of(empty, sizeof empty, "empty");
    file_of(mixed, sizeof mixed, "mixed");
    return mint_issuer_make(&a, now, NULL) | mint_issuer_make(&b, now, NULL) |
           mint_issuer_make(&stranger, now, NULL) | put_files();
}

static int teardown(void)
{
    const char *const paths[] = {pem_a, der_b, broken, empty, mixed, dir};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        remove(paths[i]);
    mint_issuer_clear(&a);
    mint_issuer_clear(&b);
    mint_issuer_clear(&stranger);
    EVP_PKEY_free(leaf_key);
    return 0;
}

static struct roots *load(const char *system, const char *const *paths)
{
    struct err err = {0};
    int fd = roots_pack_with(system, paths, &err);
    if (fd < 0)
        printf("# %s\n", err.text);
    CU_ASSERT_FATAL(fd >= 0);
    struct roots *r = roots_load(fd, &err);
    close(fd);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    return r;
}

static int verifies(X509_STORE *store, const struct mint_issuer *issuer)
{
    struct authority host = {.kind = HOST_NAME, .host = "origin.example"};
    X509 *leaf = mint_leaf(issuer, &host, leaf_key, 1, time(NULL), NULL);
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    X509_STORE_CTX_init(ctx, store, leaf, NULL);
    X509_VERIFY_PARAM_set1_host(X509_STORE_CTX_get0_param(ctx), "origin.example", 0);
    int ok = X509_verify_cert(ctx) == 1;
    X509_STORE_CTX_free(ctx);
    X509_free(leaf);
    return ok;
}

static void test_lazy(void)
{
    const char *const paths[] = {pem_a, der_b, NULL};
    struct roots *r = load(NULL, paths);
    CU_ASSERT_EQUAL(roots_count(r), 2);
    CU_ASSERT_EQUAL(roots_parsed(r), 0);
    CU_ASSERT(verifies(roots_store(r), &a));
    CU_ASSERT_EQUAL(roots_parsed(r), 1);
    CU_ASSERT(verifies(roots_store(r), &a)); /* now from the store */
    CU_ASSERT_EQUAL(roots_parsed(r), 1);
    CU_ASSERT(!verifies(roots_store(r), &stranger));
    CU_ASSERT_EQUAL(roots_parsed(r), 1);
    CU_ASSERT(verifies(roots_store(r), &b));
    CU_ASSERT_EQUAL(roots_parsed(r), 2);
    roots_free(r);
}

/* Two roots of one name (a re-keyed CA): whichever signed, the chain is found. */
static void test_same_name(void)
{
    struct buf pem;
    char path[sizeof dir + 16];
    struct mint_issuer twin = {.key = EVP_EC_gen("P-256"), .cert = X509_dup(a.cert)};
    X509_set_pubkey(twin.cert, twin.key);
    static const int ids[] = {NID_subject_key_identifier, NID_authority_key_identifier};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        X509_EXTENSION_free(X509_delete_ext(twin.cert, X509_get_ext_by_NID(twin.cert, ids[i], -1)));
    X509V3_CTX v3;
    X509V3_set_ctx(&v3, twin.cert, twin.cert, NULL, NULL, 0);
    X509_EXTENSION *id = X509V3_EXT_conf_nid(NULL, &v3, NID_subject_key_identifier, "hash");
    X509_add_ext(twin.cert, id, -1);
    X509_EXTENSION_free(id);
    CU_ASSERT(X509_sign(twin.cert, twin.key, EVP_sha256()) > 0);
    buf_init(&pem, 8192);
    CU_ASSERT_EQUAL(ca_key_cert_pem(twin.cert, &pem, NULL), 0);
    file_of(path, sizeof path, "twin.pem");
    CU_ASSERT_EQUAL(put(path, buf_data(&pem), buf_len(&pem)), 0);
    buf_free(&pem);
    const char *const one[] = {pem_a, path, NULL}, *const other[] = {path, pem_a, NULL};
    const char *const *orders[] = {one, other};
    for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
        struct roots *r = load(NULL, orders[i]);
        CU_ASSERT(verifies(roots_store(r), &a));
        CU_ASSERT(verifies(roots_store(r), &twin));
        CU_ASSERT_EQUAL(roots_parsed(r), 2);
        roots_free(r);
    }
    remove(path);
    mint_issuer_clear(&twin);
}

/* A certificate of `issuer`, which issues itself: no root. */
static struct mint_issuer between(const struct mint_issuer *issuer, const char *name)
{
    struct mint_issuer m = {.key = EVP_EC_gen("P-256"), .cert = X509_dup(issuer->cert)};
    X509_NAME *subject = X509_NAME_new();
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_subject_name(m.cert, subject);
    X509_NAME_free(subject);
    X509_set_pubkey(m.cert, m.key);
    static const int ids[] = {NID_subject_key_identifier, NID_authority_key_identifier};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        X509_EXTENSION_free(X509_delete_ext(m.cert, X509_get_ext_by_NID(m.cert, ids[i], -1)));
    X509V3_CTX v3;
    X509V3_set_ctx(&v3, issuer->cert, m.cert, NULL, NULL, 0);
    X509_EXTENSION *id = X509V3_EXT_conf_nid(NULL, &v3, NID_subject_key_identifier, "hash");
    X509_add_ext(m.cert, id, -1);
    X509_EXTENSION_free(id);
    CU_ASSERT(X509_sign(m.cert, issuer->key, EVP_sha256()) > 0);
    return m;
}

static void put_cert(char *path, size_t size, const char *name, X509 *x)
{
    struct buf pem;
    buf_init(&pem, 1 << 21);
    file_of(path, size, name);
    CU_ASSERT_EQUAL(ca_key_cert_pem(x, &pem, NULL), 0);
    CU_ASSERT_EQUAL(put(path, buf_data(&pem), buf_len(&pem)), 0);
    buf_free(&pem);
}

/* An intermediate whose root nobody has: an anchor where the user named it, and none where it lies
 * in the system's bundle, also when the user named another. */
static void test_named_anchor(void)
{
    char path[sizeof dir + 16];
    struct mint_issuer mid = between(&stranger, "Between");
    put_cert(path, sizeof path, "mid.pem", mid.cert);
    const char *const named[] = {path, NULL}, *const other[] = {pem_a, NULL};
    struct roots *r = load(NULL, named);
    CU_ASSERT(verifies(roots_store(r), &mid));
    CU_ASSERT(!verifies(roots_store(r), &stranger)); /* its own issuer is none */
    roots_free(r);
    r = load(path, other);
    CU_ASSERT(!verifies(roots_store(r), &mid));
    CU_ASSERT(verifies(roots_store(r), &a));
    roots_free(r);
    r = load(path, named);
    CU_ASSERT(verifies(roots_store(r), &mid));
    roots_free(r);
    remove(path);
    mint_issuer_clear(&mid);
}

/* Its name as long as many names: read up to the bound, and told apart from damage beyond it. */
static void test_large(void)
{
    static const struct {
        size_t names;
        bool good;
    } sizes[] = {{0, true}, {1200, true}, {4000, true}, {30000, true}, {60000, false}};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        char path[sizeof dir + 16];
        struct err err = {0};
        struct mint_issuer large = between(&stranger, "Large");
        GENERAL_NAMES *names = GENERAL_NAMES_new();
        for (size_t k = 0; k < sizes[i].names; k++) {
            char text[40];
            GENERAL_NAME *g = GENERAL_NAME_new();
            ASN1_IA5STRING *s = ASN1_IA5STRING_new();
            snprintf(text, sizeof text, "h%05zu.many.example", k);
            ASN1_STRING_set(s, text, -1);
            GENERAL_NAME_set0_value(g, GEN_DNS, s);
            sk_GENERAL_NAME_push(names, g);
        }
        if (sizes[i].names)
            X509_add1_ext_i2d(large.cert, NID_subject_alt_name, names, 0, 0);
        GENERAL_NAMES_free(names);
        CU_ASSERT(X509_sign(large.cert, stranger.key, EVP_sha256()) > 0);
        put_cert(path, sizeof path, "large.pem", large.cert);
        const char *const paths[] = {path, NULL};
        int fd = roots_pack_with(NULL, paths, &err);
        CU_ASSERT_EQUAL(fd >= 0, sizes[i].good);
        if (fd < 0)
            CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "is larger than 1048576 bytes"));
        close(fd);
        remove(path);
        mint_issuer_clear(&large);
    }
}

static void test_store_outlives(void)
{
    const char *const paths[] = {pem_a, NULL};
    struct roots *r = load(NULL, paths);
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set1_cert_store(ctx, roots_store(r));
    roots_free(r);
    CU_ASSERT(verifies(SSL_CTX_get_cert_store(ctx), &a));
    CU_ASSERT(!verifies(SSL_CTX_get_cert_store(ctx), &b));
    SSL_CTX_free(ctx);
}

static void test_files(void)
{
    struct err err = {0};
    const char *const bad[][2] = {{broken, NULL}, {empty, NULL},       {"/nowhere/x.pem", NULL},
                                  {mixed, NULL},  {"/dev/zero", NULL}, {"/tmp", NULL}};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        err.text[0] = 0;
        CU_ASSERT_EQUAL(roots_pack_with(NULL, bad[i], &err), -1);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i][0])); /* it names the file */
    }
    /* the system's bundle is taken as it is: what is damaged in it is left out */
    struct roots *r = load(mixed, NULL);
    CU_ASSERT_EQUAL(roots_count(r), 2);
    CU_ASSERT(verifies(roots_store(r), &a) && verifies(roots_store(r), &b));
    roots_free(r);
    r = load(NULL, NULL); /* no roots at all: nothing verifies */
    CU_ASSERT_EQUAL(roots_count(r), 0);
    CU_ASSERT(!verifies(roots_store(r), &a));
    roots_free(r);
}

static void test_damaged_block(void)
{
    const char *const paths[] = {pem_a, der_b, NULL};
    int fd = roots_pack_with(NULL, paths, NULL);
    char *p;
    size_t n;
    CU_ASSERT_EQUAL_FATAL(ipc_memfd_read(fd, 1 << 20, &p, &n, NULL), 0);
    close(fd);
    for (size_t cut = 0; cut < 40; cut++) { /* every truncation of header and index */
        fd = ipc_memfd("cut", p, cut, NULL);
        CU_ASSERT_PTR_NULL(roots_load(fd, NULL));
        close(fd);
    }
    for (size_t i = 0; i < 32; i++) { /* every byte of header and index */
        p[i] = (char)~p[i];
        fd = ipc_memfd("bad", p, n, NULL);
        struct roots *r = roots_load(fd, NULL);
        if (r) { /* a hash that changed: not found is the worst */
            verifies(roots_store(r), &a);
            verifies(roots_store(r), &b);
            roots_free(r);
        }
        close(fd);
        p[i] = (char)~p[i];
    }
    CU_ASSERT_PTR_NULL(roots_load(-1, NULL));
    free(p);
}

struct spelling {
    int cn_type;
    const char *cn;
    int cn_len;
    bool together, unit_first; /* the unit is in the RDN of the name; and before it */
};

static X509_NAME *spell(const struct spelling *w)
{
    X509_NAME *n = X509_NAME_new();
    const unsigned char *unit = (const unsigned char *)"Unit";
    X509_NAME_add_entry_by_NID(n, NID_countryName, V_ASN1_PRINTABLESTRING,
                               (const unsigned char *)"DE", -1, -1, 0);
    if (w->unit_first)
        X509_NAME_add_entry_by_NID(n, NID_organizationalUnitName, V_ASN1_UTF8STRING, unit, -1, -1,
                                   0);
    X509_NAME_add_entry_by_NID(n, NID_commonName, w->cn_type, (const unsigned char *)w->cn,
                               w->cn_len, -1, w->unit_first && w->together ? -1 : 0);
    if (!w->unit_first)
        X509_NAME_add_entry_by_NID(n, NID_organizationalUnitName, V_ASN1_UTF8STRING, unit, -1, -1,
                                   w->together ? -1 : 0);
    return n;
}

static X509 *of_name(X509_NAME *subject, X509_NAME *issuer, EVP_PKEY *key, EVP_PKEY *by)
{
    X509 *x = X509_new();
    X509_set_version(x, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 7);
    X509_set_subject_name(x, subject);
    X509_set_issuer_name(x, issuer);
    X509_gmtime_adj(X509_getm_notBefore(x), -60);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_set_pubkey(x, key);
    X509_EXTENSION *ca =
        X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, key == by ? "CA:TRUE" : "CA:FALSE");
    X509_add_ext(x, ca, -1);
    X509_EXTENSION_free(ca);
    CU_ASSERT(X509_sign(x, by, EVP_sha256()) > 0);
    return x;
}

/* A root that spells its name in one way, and a leaf whose issuer is spelled in another. */
static bool chains(const struct spelling *root, const struct spelling *issuer, bool *same)
{
    char path[sizeof dir + 16];
    const char *const paths[] = {path, NULL};
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509_NAME *its = spell(root), *told = spell(issuer), *none = X509_NAME_new();
    X509 *top = of_name(its, its, key, key), *leaf = of_name(none, told, leaf_key, key);
    put_cert(path, sizeof path, "spelled.pem", top);
    struct roots *r = load(NULL, paths);
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    X509_STORE_CTX_init(ctx, roots_store(r), leaf, NULL);
    bool found = X509_verify_cert(ctx) == 1;
    *same = X509_NAME_cmp(its, told) == 0;
    X509_STORE_CTX_free(ctx);
    roots_free(r);
    remove(path);
    X509_free(top);
    X509_free(leaf);
    X509_NAME_free(its);
    X509_NAME_free(told);
    X509_NAME_free(none);
    EVP_PKEY_free(key);
    return found;
}

/* Names are the same by OpenSSL's rules, not by their bytes, and it alone says which are. */
static void test_spellings(void)
{
    static const struct spelling all[] = {
        {V_ASN1_PRINTABLESTRING, "Root One", 8, false, false},
        {V_ASN1_UTF8STRING, "root one", 8, false, false},
        {V_ASN1_UTF8STRING, " ROOT \t  One  ", 14, false, false},
        {V_ASN1_IA5STRING, "Root oNE", 8, false, false},
        {V_ASN1_T61STRING, "Root One", 8, false, false},
        {V_ASN1_BMPSTRING, "\0R\0o\0o\0t\0 \0O\0n\0e", 16, false, false},
        {V_ASN1_UNIVERSALSTRING, "\0\0\0R\0\0\0o\0\0\0o\0\0\0t\0\0\0 \0\0\0O\0\0\0n\0\0\0e", 32,
         false, false},
        {V_ASN1_UTF8STRING, "Root Two", 8, false, false},
        {V_ASN1_UTF8STRING, "R\xc3\xb6\xc3\xb6t One", 10, false, false},
        {V_ASN1_T61STRING, "r\xf6\xf6t one", 8, false, false},
        {V_ASN1_BMPSTRING, "\0R\0\xf6\0\xf6\0t\0 \0O\0n\0e", 16, false, false},
        {V_ASN1_UTF8STRING, "Root One", 8, true, false},
        {V_ASN1_UTF8STRING, "root ONE", 8, true, true},
        {V_ASN1_UTF8STRING, "Root One", 8, false, true},
        /* in DER the name is before the unit, and behind it */
        {V_ASN1_UTF8STRING, "R1", 2, true, false},
        {V_ASN1_UNIVERSALSTRING, "\0\0\0R\0\0\0\x31", 8, true, false},
    };
    size_t alike = 0;
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        for (size_t k = 0; k < ARRAY_LEN(all); k++) {
            bool same, found = chains(&all[i], &all[k], &same);
            CU_ASSERT_EQUAL(found, same);
            if (found != same)
                printf("# spelling %zu, issuer %zu\n", i, k);
            alike += same;
        }
    CU_ASSERT_EQUAL(alike, 7 * 7 + 1 + 3 * 3 + 2 * 2 + 1 + 2 * 2);
}

static void test_this_host(void)
{
    const char *const paths[] = {pem_a, NULL};
    const char *system = system_roots_path();
    if (system == NULL) {
        tap_skip("this host has no bundle of roots");
        return;
    }
    int fd = roots_pack(paths, NULL);
    CU_ASSERT_FATAL(fd >= 0);
    struct roots *r = roots_load(fd, NULL);
    close(fd);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    /* every root of the bundle is found by its name, as OpenSSL's own reading of the file has it */
    BIO *bio = BIO_new_file(system, "r");
    X509 *x;
    size_t n = 0, found = 0;
    while ((x = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
        X509_STORE_CTX *ctx = X509_STORE_CTX_new();
        X509_STORE_CTX_init(ctx, roots_store(r), NULL, NULL);
        X509_OBJECT *o =
            X509_STORE_CTX_get_obj_by_subject(ctx, X509_LU_X509, X509_get_subject_name(x));
        found += o != NULL;
        n++;
        X509_OBJECT_free(o);
        X509_STORE_CTX_free(ctx);
        X509_free(x);
    }
    BIO_free(bio);
    CU_ASSERT(n > 0);
    CU_ASSERT_EQUAL(found, n);
    CU_ASSERT_EQUAL(roots_count(r), n + 1);
    CU_ASSERT(verifies(roots_store(r), &a));
    roots_free(r);
}

void suite_roots(void)
{
    CU_pSuite s = CU_add_suite("roots", setup, teardown);
    CU_add_test(s, "certificates are parsed when a chain asks", test_lazy);
    CU_add_test(s, "two roots of one name", test_same_name);
    CU_add_test(s, "what the user named is an anchor, what the system has is not by that",
                test_named_anchor);
    CU_add_test(s, "certificates of many names", test_large);
    CU_add_test(s, "the store may outlive its owner", test_store_outlives);
    CU_add_test(s, "files: errors name them, the system's damage is skipped", test_files);
    CU_add_test(s, "a damaged block is refused or harmless", test_damaged_block);
    CU_add_test(s, "a name is found however it is spelled", test_spellings);
    CU_add_test(s, "this host's own bundle", test_this_host);
}

void tap_suites(void)
{
    suite_roots();
}
