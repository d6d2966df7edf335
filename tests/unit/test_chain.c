/* The hash chain, the signing key, the signed head, and the names of files. */
#include "tap_main.h"

#include "audit_fixture.h"
#include "chain.h"
#include "head.h"
#include "line_reader.h"
#include "signing_key.h"

#include <CUnit/CUnit.h>
#include <sys/stat.h>

void suite_chain(void);

static void test_hash(void)
{
    struct chain c;
    char hex[CHAIN_HEX];
    unsigned char back[CHAIN_HASH];
    chain_genesis(&c);
    CU_ASSERT_EQUAL(c.seq, 0);
    CU_ASSERT_EQUAL(strspn(chain_hex(c.hash, hex), "0"), 64);
    CU_ASSERT_EQUAL(chain_step(&c, SLICE("abc")), 0);
    CU_ASSERT_EQUAL(c.seq, 1);
    /* FIPS 180-4, the example of one block */
    CU_ASSERT_STRING_EQUAL(chain_hex(c.hash, hex),
                           "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CU_ASSERT_EQUAL(chain_unhex(slice_str(hex), back), 0);
    CU_ASSERT_EQUAL(memcmp(back, c.hash, CHAIN_HASH), 0);
    hex[5] = 'A';
    CU_ASSERT_EQUAL(chain_unhex(slice_str(hex), back), -1);
    hex[5] = 0;
    CU_ASSERT_EQUAL(chain_unhex(slice_str(hex), back), -1);
}

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

static void test_parse(void)
{
    uint64_t seq;
    unsigned char prev[CHAIN_HASH];
    struct slice rest;
    CU_ASSERT_EQUAL(
        chain_parse(SLICE("{\"seq\":7,\"prev\":\"" ZEROS "\",\"k\":1}"), &seq, prev, &rest), 0);
    CU_ASSERT_EQUAL(seq, 7);
    CU_ASSERT_TRUE(slice_eq_str(rest, ",\"k\":1}"));
    static const char *const bad[] = {
        "",
        "{}",
        "{\"seq\":",
        "{\"seq\":7",
        "{\"seq\":7}",
        "{\"seq\":7,\"prev\":\"00\"}",
        "{\"seq\":07,\"prev\":\"" ZEROS "\",\"k\":1}",
        "{\"seq\":,\"prev\":\"" ZEROS "\",\"k\":1}",
        "{\"seq\":-1,\"prev\":\"" ZEROS "\",\"k\":1}",
        "{\"seq\":99999999999999999999,\"prev\":\"" ZEROS "\",\"k\":1}",
        "{\"seq\":7, \"prev\":\"" ZEROS "\",\"k\":1}",
        "{\"seq\":7,\"prev\":\"" ZEROS "\"}",
        "{\"seq\":7,\"prev\":\"" ZEROS "0\",\"k\":1}",
        "{\"seq\":7,\"prev\":\"" ZEROS "\",\"k\":1",
        " {\"seq\":7,\"prev\":\"" ZEROS "\",\"k\":1}",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_EQUAL(chain_parse(slice_str(bad[i]), &seq, prev, &rest), -1);
}

static void write_text(int dirfd, const char *name, const char *text, mode_t mode)
{
    int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC, mode);
    CU_ASSERT_EQUAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    CU_ASSERT_EQUAL(fchmod(fd, mode), 0);
    close(fd);
}

static void test_key(void)
{
    char *dir = fixture_dir();
    int fd = fixture_open(dir);
    struct err err = {0};
    unsigned char sig[SIGNATURE_SIZE];
    struct signing_key *k = signing_key_open(fd, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(k);
    struct signing_key *again = signing_key_open(fd, &err); /* the same one */
    struct signing_key *pub = signing_key_public(fd, "key.pub", &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(again);
    CU_ASSERT_PTR_NOT_NULL_FATAL(pub);
    CU_ASSERT_EQUAL(signing_key_sign(k, SLICE("text"), sig), 0);
    CU_ASSERT_TRUE(signing_key_verify(pub, SLICE("text"), sig));
    CU_ASSERT_FALSE(signing_key_verify(pub, SLICE("texs"), sig));
    sig[0] ^= 1;
    CU_ASSERT_FALSE(signing_key_verify(pub, SLICE("text"), sig));
    CU_ASSERT_EQUAL(signing_key_sign(again, SLICE("text"), sig), 0);
    CU_ASSERT_TRUE(signing_key_verify(pub, SLICE("text"), sig));
    signing_key_free(k);
    signing_key_free(again);
    signing_key_free(pub);
    CU_ASSERT_EQUAL(fchmodat(fd, "key", 0644, 0), 0); /* others can read it */
    CU_ASSERT_PTR_NULL(signing_key_open(fd, &err));
    CU_ASSERT_EQUAL(unlinkat(fd, "key", 0), 0); /* gone: never made anew beside key.pub */
    CU_ASSERT_PTR_NULL(signing_key_open(fd, &err));
    CU_ASSERT_TRUE(faccessat(fd, "key", F_OK, 0) < 0);
    write_text(fd, "key", "no key\n", 0600);
    CU_ASSERT_PTR_NULL(signing_key_open(fd, &err));
    CU_ASSERT_PTR_NULL(signing_key_public(fd, "key", &err));
    close(fd);
    fixture_remove(dir);
}

#define PEM(word, base64) "-----BEGIN " word " KEY-----\n" base64 "\n-----END " word " KEY-----\n"
/* The pair of RFC 8410 10, and what is no such key: X25519's, and P-256's. */
static const char of_rfc[] =
    PEM("PRIVATE", "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC"),
                  of_rfc_public[] =
                      PEM("PUBLIC", "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE="),
                  x25519[] =
                      PEM("PRIVATE",
                          "MC4CAQAwBQYDK2VuBCIEIEh0scYG3Ezwmj2myfba1vge+24qakMgJEBYF3z5tkVc"),
                  p256[] = PEM("PRIVATE",
                               "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg0hx33BwwWHQJA9wD\n"
                               "XrQVKyJZRw9VUND166r2GWoMliWhRANCAAR5JCDrboFES/gWKAL+ESBoyImX19RY\n"
                               "BHGlWRFjCv8CkzBVxq1ZxQWPcKu/fKa3NOgVaQz8vFixTjXJWjlZ57wb");

/* What others wrote in PEM: comments and other blocks before it are no fault. */
static void test_key_of_others(void)
{
    char *dir = fixture_dir(), text[2048];
    int fd = fixture_open(dir);
    struct err err = {0};
    static const char *const before[] = {"", "of the RFC\n", of_rfc_public};
    for (size_t i = 0; i < ARRAY_LEN(before); i++) {
        unsigned char sig[SIGNATURE_SIZE];
        snprintf(text, sizeof text, "%s%s", before[i], of_rfc);
        write_text(fd, "key", text, 0600);
        write_text(fd, "key.pub", of_rfc_public, 0644);
        struct signing_key *k = signing_key_open(fd, &err);
        struct signing_key *pub = signing_key_public(fd, "key.pub", &err);
        CU_ASSERT_PTR_NOT_NULL_FATAL(k);
        CU_ASSERT_PTR_NOT_NULL_FATAL(pub);
        CU_ASSERT_EQUAL(signing_key_sign(k, SLICE("text"), sig), 0);
        CU_ASSERT_TRUE(signing_key_verify(pub, SLICE("text"), sig));
        signing_key_free(k);
        signing_key_free(pub);
    }
    static const char *const bad[] = {
        x25519, p256, of_rfc_public,
        /* a byte left over, a seed too short, none, encrypted by the word before it */
        PEM("PRIVATE", "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhCAA=="),
        PEM("PRIVATE", "MC0CAQAwBQYDK2VwBCEEH9Ty3L+RNYStW22PH3afitOv58KMvx1Pvgl6iPRHVYQ="),
        PEM("PRIVATE", "MAwCAQAwBQYDK2VwBAA="),
        PEM("ENCRYPTED PRIVATE",
            "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC")};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        write_text(fd, "key", bad[i], 0600);
        (void)unlinkat(fd, "key.pub", 0); /* any key's may be made */
        CU_ASSERT_PTR_NULL(signing_key_open(fd, &err));
    }
    static const char *const bad_public[] = {
        of_rfc, PEM("PUBLIC", "MCowBQYDK2VuAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE="),
        PEM("PUBLIC", "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuEA")};
    for (size_t i = 0; i < ARRAY_LEN(bad_public); i++) {
        write_text(fd, "key.pub", bad_public[i], 0644);
        CU_ASSERT_PTR_NULL(signing_key_public(fd, "key.pub", &err));
    }
    close(fd);
    fixture_remove(dir);
}

/* A private key of one directory with the public one of another. */
static void test_key_mismatch(void)
{
    char *a = fixture_dir(), *b = fixture_dir(), from[512], to[512];
    int fa = fixture_open(a), fb = fixture_open(b);
    struct err err = {0};
    signing_key_free(signing_key_open(fa, &err));
    signing_key_free(signing_key_open(fb, &err));
    snprintf(from, sizeof from, "%s/key.pub", a);
    snprintf(to, sizeof to, "%s/key.pub", b);
    CU_ASSERT_EQUAL(rename(from, to), 0);
    CU_ASSERT_PTR_NULL(signing_key_open(fb, &err));
    close(fa);
    close(fb);
    fixture_remove(a);
    fixture_remove(b);
}

static void test_head(void)
{
    char *dir = fixture_dir(), text[1024];
    int fd = fixture_open(dir);
    struct err err = {0};
    struct head h = {.file = "audit-20261121T015902Z.jsonl", .tip = {.seq = 42}, .time = "now"},
                got;
    struct signing_key *k = signing_key_open(fd, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(k);
    memset(h.tip.hash, 0xab, CHAIN_HASH);
    CU_ASSERT_EQUAL(head_read(fd, &got, k, &err), 0);
    CU_ASSERT_EQUAL(head_write(fd, &h, k, &err), 0);
    CU_ASSERT_EQUAL(head_read(fd, &got, k, &err), 1);
    CU_ASSERT_EQUAL(got.tip.seq, 42);
    CU_ASSERT_STRING_EQUAL(got.file, h.file);
    CU_ASSERT_EQUAL(memcmp(got.tip.hash, h.tip.hash, CHAIN_HASH), 0);
    int f = openat(fd, "head", O_RDONLY);
    ssize_t n = read(f, text, sizeof text - 1);
    CU_ASSERT_TRUE_FATAL(n > 0);
    text[n] = 0;
    close(f);
    for (ssize_t i = 0; i + 1 < n; i++) { /* no byte of it can be another */
        char was = text[i];
        text[i] = was == '1' ? '2' : was == 'a' ? 'b' : '1';
        write_text(fd, "head", text, 0600);
        CU_ASSERT_EQUAL(head_read(fd, &got, k, &err), -1);
        text[i] = was;
    }
    write_text(fd, "head", "", 0600);
    CU_ASSERT_EQUAL(head_read(fd, &got, k, &err), -1);
    write_text(fd, "head", "{\"file\":\"x\"}", 0600);
    CU_ASSERT_EQUAL(head_read(fd, &got, k, &err), -1);
    signing_key_free(k);
    close(fd);
    fixture_remove(dir);
}

static void test_names(void)
{
    char a[LOG_NAME_MAX], b[LOG_NAME_MAX];
    uint64_t now = 1795226342123456789ULL;
    log_dir_next_name(now, "", a);
    CU_ASSERT_STRING_EQUAL(a, "audit-20261121T015902Z.jsonl");
    log_dir_next_name(now, a, b); /* twice within a second */
    CU_ASSERT_STRING_EQUAL(b, "audit-20261121T015903Z.jsonl");
    log_dir_next_name(now - 3600ULL * 1000000000U, b, a); /* the clock went back */
    CU_ASSERT_STRING_EQUAL(a, "audit-20261121T015904Z.jsonl");
    log_dir_next_name(now, "audit-20261231T235959Z.jsonl", a);
    CU_ASSERT_STRING_EQUAL(a, "audit-20270101T000000Z.jsonl");
}

static void test_lines(void)
{
    char *dir = fixture_dir();
    int fd = fixture_open(dir);
    size_t big = 70000;
    char *text = malloc(big + 64);
    memset(text, 'x', big);
    memcpy(text + big, "\nshort\n\ntorn", 13);
    write_text(fd, "f", text, 0600);
    int f = openat(fd, "f", O_RDONLY);
    struct line_reader *r = line_reader_new(f);
    struct slice s;
    CU_ASSERT_EQUAL(line_reader_next(r, &s), LINE_LONG);
    CU_ASSERT_EQUAL(line_reader_after(r), big + 1);
    CU_ASSERT_EQUAL(line_reader_next(r, &s), LINE_WHOLE);
    CU_ASSERT_TRUE(slice_eq_str(s, "short"));
    CU_ASSERT_EQUAL(line_reader_at(r), big + 1);
    CU_ASSERT_EQUAL(line_reader_next(r, &s), LINE_WHOLE);
    CU_ASSERT_EQUAL(s.n, 0);
    CU_ASSERT_EQUAL(line_reader_next(r, &s), LINE_TORN);
    CU_ASSERT_TRUE(slice_eq_str(s, "torn"));
    CU_ASSERT_EQUAL(line_reader_next(r, &s), LINE_END);
    line_reader_free(r);
    free(text);
    close(f);
    close(fd);
    fixture_remove(dir);
}

void suite_chain(void)
{
    CU_pSuite s = CU_add_suite("chain", NULL, NULL);
    CU_add_test(s, "hashes", test_hash);
    CU_add_test(s, "the start of a line", test_parse);
    CU_add_test(s, "signing key", test_key);
    CU_add_test(s, "signing key that others wrote", test_key_of_others);
    CU_add_test(s, "keys that do not belong together", test_key_mismatch);
    CU_add_test(s, "head: every byte counts", test_head);
    CU_add_test(s, "names of files only grow", test_names);
    CU_add_test(s, "lines: long, empty, torn", test_lines);
}

void tap_suites(void)
{
    suite_chain();
}
