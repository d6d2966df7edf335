/* What is read of a client of the agent inside, of the text under a signature, and of the facts
 * that a front says of either. */
#include "ssh_agent.h"
#include "ssh_wire.h"

#include <stdio.h>
#include <string.h>

#include "tap_main.h"

static void put(struct buf *b, const char *magic, const char *space, const char *reserved,
                const char *algorithm, size_t hash)
{
    static const char zeros[SSHSIG_HASH_MAX + 1];
    buf_clear(b);
    CU_ASSERT(buf_append_str(b, magic) == 0 && ssh_wire_put_string(b, slice_str(space)) == 0 &&
              ssh_wire_put_string(b, slice_str(reserved)) == 0 &&
              ssh_wire_put_string(b, slice_str(algorithm)) == 0 &&
              ssh_wire_put_string(b, (struct slice){zeros, hash}) == 0);
}

static void test_text(void)
{
    static const struct {
        const char *magic, *space, *reserved, *algorithm;
        size_t hash;
        bool good;
    } rows[] = {
        {"SSHSIG", "git", "", "sha512", 64, true},
        {"SSHSIG", "file", "", "sha256", 32, true},
        {"SSHSIG", "release@example.com", "", "sha512", 64, true},
        {"SSHSIH", "git", "", "sha512", 64, false},
        {"SSHSIG", "", "", "sha512", 64, false},
        {"SSHSIG", "a b", "", "sha512", 64, false},
        {"SSHSIG", "a/b", "", "sha512", 64, false},
        {"SSHSIG", "a%2f", "", "sha512", 64, false},
        {"SSHSIG", "git", "x", "sha512", 64, false},
        {"SSHSIG", "git", "", "sha512", 32, false},
        {"SSHSIG", "git", "", "sha256", 64, false},
        {"SSHSIG", "git", "", "sha1", 20, false},
        {"SSHSIG", "git", "", "", 64, false},
    };
    struct buf b, again;
    struct sshsig g;
    buf_init(&b, SSHSIG_MAX);
    buf_init(&again, SSHSIG_MAX);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        put(&b, rows[i].magic, rows[i].space, rows[i].reserved, rows[i].algorithm, rows[i].hash);
        bool good = sshsig_read(buf_slice(&b), &g) == 0;
        if (good != rows[i].good)
            fprintf(stderr, "# row %zu\n", i);
        CU_ASSERT_EQUAL(good, rows[i].good);
        if (!good)
            continue;
        buf_clear(&again);
        CU_ASSERT(sshsig_put(&g, &again) == 0 && slice_eq(buf_slice(&b), buf_slice(&again)));
        for (size_t n = 0; n < buf_len(&b); n++)
            CU_ASSERT(sshsig_read((struct slice){(char *)buf_data(&b), n}, &g) < 0);
        CU_ASSERT(buf_append(&b, "x", 1) == 0 && sshsig_read(buf_slice(&b), &g) < 0);
    }
    CU_ASSERT(sshsig_read(SLICE(""), &g) < 0);
    char name[SSHSIG_NAMESPACE_MAX + 1];
    memset(name, 'a', sizeof name);
    CU_ASSERT_TRUE(sshsig_space_ok((struct slice){name, SSHSIG_NAMESPACE_MAX}));
    CU_ASSERT_FALSE(sshsig_space_ok((struct slice){name, sizeof name}));
    CU_ASSERT_FALSE(sshsig_space_ok(SLICE("git\0")));
    buf_free(&b);
    buf_free(&again);
}

static void test_messages(void)
{
    struct ssh_agent_asked asked;
    struct buf b;
    buf_init(&b, 4096);
    CU_ASSERT(ssh_agent_read(SLICE(""), &asked) < 0);
    CU_ASSERT(ssh_agent_read(SLICE("\x0b"), &asked) == 0 && asked.type == SSH_AGENT_LIST);
    CU_ASSERT(ssh_agent_read(SLICE("\x0bx"), &asked) < 0);
    CU_ASSERT(ssh_agent_read(SLICE("\x1bwhatever"), &asked) == 0 && asked.type == 27);
    CU_ASSERT(ssh_wire_put_u8(&b, SSH_AGENT_SIGN) == 0 &&
              ssh_wire_put_string(&b, SLICE("key")) == 0 &&
              ssh_wire_put_string(&b, SLICE("text")) == 0 && ssh_wire_put_u32(&b, 4) == 0);
    CU_ASSERT(ssh_agent_read(buf_slice(&b), &asked) == 0 && slice_eq_str(asked.key, "key") &&
              slice_eq_str(asked.text, "text") && asked.flags == 4);
    for (size_t n = 1; n < buf_len(&b); n++)
        CU_ASSERT(ssh_agent_read((struct slice){(char *)buf_data(&b), n}, &asked) < 0);
    CU_ASSERT(buf_append(&b, "x", 1) == 0 && ssh_agent_read(buf_slice(&b), &asked) < 0);
    buf_clear(&b);
    CU_ASSERT(ssh_wire_put_u8(&b, SSH_AGENT_SIGN) == 0 && ssh_wire_put_string(&b, SLICE("")) == 0 &&
              ssh_wire_put_string(&b, SLICE("text")) == 0 && ssh_wire_put_u32(&b, 0) == 0);
    CU_ASSERT(ssh_agent_read(buf_slice(&b), &asked) < 0); /* no key */
    buf_free(&b);
}

static void test_facts(void)
{
    static const char hash[64] = "sixty-four bytes of something that might be a hash, if it were.";
    struct ssh_agent_facts f = {.key = SLICE_INIT("key"), .flags = 2}, g;
    char print[SSH_AGENT_PRINT], text[2 * SSHSIG_HASH_MAX + 16];
    struct authority at = {.scheme = SCHEME_SSH, .port = 22};
    struct buf b;
    buf_init(&b, SSH_AGENT_FACTS_MAX);
    f.what = (struct sshsig){SLICE("git"), SLICE("sha512"), {hash, sizeof hash}};
    CU_ASSERT(ssh_agent_facts_put(&f, &b) == 0 && ssh_agent_facts_get(buf_slice(&b), &g) == 0 &&
              slice_eq_str(g.key, "key") && g.flags == 2 && slice_eq_str(g.what.space, "git") &&
              slice_eq(g.what.hash, f.what.hash));
    for (size_t n = 0; n < buf_len(&b); n++)
        CU_ASSERT(ssh_agent_facts_get((struct slice){(char *)buf_data(&b), n}, &g) < 0);
    CU_ASSERT(buf_append(&b, "x", 1) == 0 && ssh_agent_facts_get(buf_slice(&b), &g) < 0);
    buf_clear(&b);
    f.what.hash.n = 20;
    CU_ASSERT(ssh_agent_facts_put(&f, &b) == 0 && ssh_agent_facts_get(buf_slice(&b), &g) < 0);
    buf_clear(&b);
    f.key.n = 0; /* a list */
    CU_ASSERT(ssh_agent_facts_put(&f, &b) == 0 && ssh_agent_facts_get(buf_slice(&b), &g) == 0 &&
              g.key.n == 0);
    ssh_agent_print(SLICE("key"), print);
    CU_ASSERT_STRING_EQUAL(print, "SHA256:LHDhK3oGRvkiefQnx7OOczTY5Tic/xZ6HcMOc/gmtoM");
    f.what.hash = SLICE("\x01\xfe");
    ssh_agent_hash(&f.what, text, sizeof text);
    CU_ASSERT_STRING_EQUAL(text, "sha512:01fe");
    CU_ASSERT(authority_host(&at, SLICE(SSH_AGENT_HOST)) == 0 && ssh_agent_is(&at));
    at.port = 2222;
    CU_ASSERT_FALSE(ssh_agent_is(&at));
    at.port = 22;
    CU_ASSERT(authority_host(&at, SLICE("durward.internal")) == 0 && !ssh_agent_is(&at));
    buf_free(&b);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("ssh agent", NULL, NULL);
    CU_add_test(s, "the text under a signature", test_text);
    CU_add_test(s, "messages", test_messages);
    CU_add_test(s, "facts", test_facts);
}
