/* Who signs in the signer, and for what: CAs of sandboxes, and names under the exported one. */
#include "policy.h"
#include "signer_fixture.h"

void suite_signer_names(void);

/* ---- who signs, and for what ---- */

/* The leaf that this channel gets; NULL when it is refused, with the reason. */
static X509 *leaf_from(int ch, const char *host, char text[512])
{
    struct msg m;
    uint32_t req;
    struct slice leaf;
    X509 *x = NULL;
    ask(ch, 9, host, spki_of());
    CU_ASSERT_EQUAL_FATAL(receive(ch, &m), 1);
    CU_ASSERT_EQUAL(msg_get_u32(&m, &req), 0);
    if (m.type == W_MINTED && msg_get_slice(&m, 20000, &leaf) == 0)
        x = to_cert(leaf);
    else
        CU_ASSERT(m.type == W_MINT_FAIL && msg_get_str(&m, text, 512) == 0);
    msg_done(&m);
    return x;
}

static bool is_given(int ch, const char *host)
{
    char text[512] = "";
    X509 *x = leaf_from(ch, host, text);
    X509_free(x);
    return x != NULL;
}

/* What the parent is told when it asks for a sandbox's root. */
static X509 *root_of(struct started s, const char *sandbox)
{
    struct msg m, root;
    struct slice said, pem;
    struct buf der;
    char id[65];
    X509 *x = NULL;
    msg_init(&m, W_ROOT);
    msg_put_str(&m, sandbox);
    CU_ASSERT_EQUAL(msg_send(s.control, &m), 0);
    msg_done(&m);
    CU_ASSERT_EQUAL_FATAL(receive(s.control, &m), 1);
    CU_ASSERT(m.type == W_ROOT && msg_get_str(&m, id, sizeof id) == 0 && strcmp(id, sandbox) == 0);
    CU_ASSERT(msg_get_slice(&m, 20000, &said) == 0 && msg_end(&m) == 0);
    CU_ASSERT(slice_find_slice(said, SLICE("PRIVATE")) < 0);
    msg_view(&root, 0, said);
    buf_init(&der, PEM_TEXT_MAX);
    if (said.n && msg_get_slice(&root, 8192, &pem) == 0 && pem_next(&pem, &der) == 1)
        x = to_cert(buf_slice(&der));
    buf_free(&der);
    msg_done(&m);
    return x;
}

/* As a strict client does it, with this as its only root. */
static bool trusted(X509 *leaf, X509 *root)
{
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *with = X509_STORE_CTX_new();
    X509_STORE_add_cert(store, root);
    X509_STORE_CTX_init(with, store, leaf, NULL);
    X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(with), X509_V_FLAG_X509_STRICT);
    bool ok = X509_verify_cert(with) == 1;
    X509_STORE_CTX_free(with);
    X509_STORE_free(store);
    return ok;
}

static X509 *exported(const char *pem)
{
    struct slice rest = slice_str(pem);
    struct buf der;
    buf_init(&der, PEM_TEXT_MAX);
    X509 *x = pem_next(&rest, &der) == 1 ? to_cert(buf_slice(&der)) : NULL;
    buf_free(&der);
    return x;
}

/* Two sandboxes and the exported CA: what one signs the others do not know. The same id has the
 * same CA in the next signer, given the same secret, and another one given another. */
static void test_sandbox_cas(void)
{
    char pem[4096], text[512];
    bool created;
    struct started s = start_ready(&created, pem, sizeof pem);
    X509 *a = root_of(s, "sb-a"), *b = root_of(s, "sb-b"), *out = exported(pem);
    CU_ASSERT(a && b && out);
    int ch = channel_of(s, 1, ROLE_GATE, "sb-a", "", MINT_SANDBOX, NULL);
    X509 *leaf = leaf_from(ch, "any.example", text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(leaf);
    CU_ASSERT(trusted(leaf, a));
    CU_ASSERT(!trusted(leaf, b));
    CU_ASSERT(!trusted(leaf, out));
    CU_ASSERT_NOT_EQUAL(X509_NAME_cmp(X509_get_subject_name(a), X509_get_subject_name(b)), 0);
    CU_ASSERT_PTR_NULL(root_of(s, ""));
    close(ch);
    stop(s);
    s = start_ready(&created, pem, sizeof pem);
    ch = channel_of(s, 1, ROLE_GATE, "sb-a", "", MINT_SANDBOX, NULL);
    X509 *later = leaf_from(ch, "any.example", text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(later);
    CU_ASSERT(trusted(later, a));
    CU_ASSERT(!trusted(later, b));
    close(ch);
    stop(s);
    int kept = secret_fd;
    secret_fd = sandbox_ca_memfd(NULL);
    s = start_ready(&created, pem, sizeof pem);
    X509 *stranger = root_of(s, "sb-a");
    CU_ASSERT(stranger && EVP_PKEY_eq(X509_get0_pubkey(stranger), X509_get0_pubkey(a)) != 1);
    stop(s);
    close(secret_fd);
    secret_fd = kept;
    X509 *all[] = {a, b, out, leaf, later, stranger};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        X509_free(all[i]);
}

/* A secret that somebody cut is refused: other keys would be made of it. */
static void test_secret(void)
{
    unsigned char one[SANDBOX_CA_SECRET], two[SANDBOX_CA_SECRET];
    struct err err = {0};
    int fd = sandbox_ca_memfd(NULL);
    CU_ASSERT_EQUAL(sandbox_ca_secret(fd, one, &err), 0);
    CU_ASSERT_EQUAL(sandbox_ca_secret(fd, two, &err), 0);
    CU_ASSERT_EQUAL(memcmp(one, two, sizeof one), 0);
    CU_ASSERT(write(fd, "x", 1) < 0 && ftruncate(fd, 0) < 0);
    close(fd);
    fd = sandbox_ca_memfd(NULL);
    CU_ASSERT_EQUAL(write(fd, "short", 5), 5);
    CU_ASSERT_EQUAL(sandbox_ca_secret(fd, two, &err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "damaged"));
    close(fd);
}

static void send_policy(struct started s, const char *name, uint32_t generation, const char *rules)
{
    char json[1024];
    struct msg m;
    int n = snprintf(json, sizeof json, "{\"policy\":\"%s\",\"rules\":[%s]}", name, rules);
    msg_init(&m, W_POLICY);
    msg_put_str(&m, name);
    msg_put_u32(&m, generation);
    struct policy *p = policy_parse(json, (size_t)n, NULL);
    struct slice image = p ? policy_image_bytes(p) : (struct slice){json, (size_t)n};
    msg_put_fd(&m, ipc_memfd("policy", image.p, image.n, NULL));
    policy_free(p);
    CU_ASSERT_EQUAL(msg_send(s.control, &m), 0);
    msg_done(&m);
}

#define P_RULES                                                                            \
    "{\"allow\":\"https://one.example/**\"},{\"allow\":\"https://.wild.example:8443/x\"}," \
    "{\"allow\":\"http://plain.example/**\"},{\"allow\":\"https://192.0.2.9/**\"},"        \
    "{\"allow\":\"https://api.corp.example/**\"},{\"allow\":\"https://shut.example/a\"},"  \
    "{\"deny\":\"https://shut.example/**\"},{\"allow\":\"https://localhost/**\"},"         \
    "{\"allow\":\"https://gate.corp.example/**\"}"

/* A gate whose CA is exported, in the hands of its clients. */
static void test_names(void)
{
    static const struct {
        const char *host;
        bool policy, all; /* what a channel of policy p, and one of all policies, gets */
    } rows[] = {
        {"one.example", true, true},
        {"a.wild.example", true, true},
        {"deep.a.wild.example", true, true},
        {"192.0.2.9", true, true},
        {"*.wild.example", false, false},
        {"two.example", false, true}, /* of the other policy */
        {"www.one.example", false, false},
        {"plain.example", false, false}, /* nobody speaks TLS there */
        {"shut.example", false, false},
        {"192.0.2.10", false, false},
        {"::1", false, false},
        {"127.0.0.1", false, false},
        {"other.example", false, false},
        {"localhost", true, true}, /* a rule names it */
        {"x.localhost", false, false},
        {"durward.internal", false, false},
        {"api.corp.example", false, false}, /* ours, though a rule names it */
        {"gate.corp.example", true, true},
    };
    char pem[4096];
    bool created;
    api = "api.corp.example";
    struct started s = start_ready(&created, pem, sizeof pem);
    api = "";
    send_policy(s, "p", 1, P_RULES);
    send_policy(s, "q", 1, "{\"allow\":\"https://two.example/**\"}");
    int one = channel_of(s, 1, ROLE_GATE, "", "p", MINT_POLICY, NULL);
    int all = channel_of(s, 2, ROLE_GATE, "", "", MINT_POLICIES, "proxy.corp.example");
    int own = channel_of(s, 3, ROLE_CONTROLLER, "", "", MINT_OWN, "api.corp.example");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (is_given(one, rows[i].host) != rows[i].policy ||
            is_given(all, rows[i].host) != rows[i].all ||
            is_given(own, rows[i].host) != (strcmp(rows[i].host, "api.corp.example") == 0)) {
            CU_FAIL("a name");
            fprintf(stderr, "# %s\n", rows[i].host);
        }
    CU_ASSERT(is_given(all, "proxy.corp.example"));
    CU_ASSERT(!is_given(one, "proxy.corp.example"));
    /* a reload counts from the next leaf on; an older one that comes late does not */
    send_policy(s, "p", 3, "{\"allow\":\"https://new.example/**\"}");
    CU_ASSERT(is_given(one, "new.example"));
    CU_ASSERT(!is_given(one, "one.example"));
    send_policy(s, "p", 2, P_RULES);
    CU_ASSERT(!is_given(one, "one.example"));
    send_policy(s, "p", 4, "nonsense");
    CU_ASSERT(is_given(one, "new.example"));
    close(one);
    close(all);
    close(own);
    stop(s);
}

/* What makes no sense opens no channel: above all none that would sign for everybody. */
static void test_bad_rights(void)
{
    static const struct {
        const char *sandbox, *policy;
        uint8_t scope;
    } rows[] = {{"", "", MINT_SANDBOX},      {"sb-a", "", MINT_OWN},
                {"sb-a", "", MINT_POLICIES}, {"sb-a", "p", MINT_POLICY},
                {"", "", MINT_POLICY},       {"", "p", MINT_POLICIES},
                {"", "p", MINT_OWN},         {"", "", 0},
                {"", "", MINT_SCOPES}};
    char pem[4096];
    bool created;
    struct msg m;
    struct started s = start_ready(&created, pem, sizeof pem);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int ch = channel_of(s, 1, ROLE_GATE, rows[i].sandbox, rows[i].policy, rows[i].scope, NULL);
        CU_ASSERT_EQUAL(receive(ch, &m), 0);
        close(ch);
    }
    CU_ASSERT_EQUAL(signer_channels(s.signer), 0);
    stop(s);
}

/* Hours, whichever CA signs. */
static void test_hours(void)
{
    char pem[4096], text[512];
    bool created;
    struct started s = start_ready(&created, pem, sizeof pem);
    int chs[] = {gate_channel(s, 1),
                 channel_of(s, 2, ROLE_CONTROLLER, "", "", MINT_OWN, "a.example")};
    for (size_t i = 0; i < ARRAY_LEN(chs); i++) {
        int days = 99, seconds = 0;
        X509 *x = leaf_from(chs[i], "a.example", text);
        CU_ASSERT_PTR_NOT_NULL_FATAL(x);
        CU_ASSERT_EQUAL(ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(x)), 1);
        CU_ASSERT(days * 86400 + seconds <= 24 * 3600 && days * 86400 + seconds > 23 * 3600);
        X509_free(x);
        close(chs[i]);
    }
    stop(s);
}

void suite_signer_names(void)
{
    CU_pSuite s = CU_add_suite("signer names", setup, teardown);
    CU_add_test(s, "a CA for each sandbox, and the same one in the next signer", test_sandbox_cas);
    CU_add_test(s, "the secret of those CAs", test_secret);
    CU_add_test(s, "under the exported CA the policies' names alone", test_names);
    CU_add_test(s, "channels that make no sense", test_bad_rights);
    CU_add_test(s, "leaves live for hours", test_hours);
}

void tap_suites(void)
{
    suite_signer_names();
}
