/* What an SSH agent of the host says, and what it is asked to sign. */
#include "host_agent.h"
#include "ssh_sign.h"
#include "sshsig.h"
#include "ssh_wire.h"

#include <stdio.h>
#include <string.h>

#include "tap_main.h"

static const char ed25519[] =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";
static const char print_of[] = "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU";

static void put_key(struct buf *b, const char *type)
{
    CU_ASSERT_FATAL(ssh_wire_put_string(b, slice_str(type)) == 0 &&
                    ssh_wire_put_string(b, SLICE("12345678901234567890123456789012")) == 0);
}

/* The key of the list, with another in front of it. */
static void put_list(struct buf *b, uint32_t n)
{
    struct secret *value;
    struct err err = {0};
    struct buf other, key, line;
    buf_init(&other, 200);
    buf_init(&key, 200);
    buf_init(&line, 300);
    put_key(&other, "ssh-ed25519");
    CU_ASSERT_FATAL(buf_append_str(&line, "ssh-agent ") == 0 &&
                    buf_append_str(&line, ed25519) == 0);
    CU_ASSERT_FATAL(host_agent_public(buf_slice(&line), &key) == 0);
    CU_ASSERT_FATAL(ssh_wire_put_u8(b, 12) == 0 && ssh_wire_put_u32(b, n) == 0 &&
                    ssh_wire_put_string(b, buf_slice(&other)) == 0 &&
                    ssh_wire_put_string(b, SLICE("other")) == 0 &&
                    ssh_wire_put_string(b, buf_slice(&key)) == 0 &&
                    ssh_wire_put_string(b, SLICE("mine")) == 0);
    value = n == 2 ? host_agent_find(buf_slice(b), slice_str(ed25519), &err) : NULL;
    CU_ASSERT(n != 2 || (value && host_agent_is(secret_slice(value)) &&
                         slice_eq(secret_slice(value), buf_slice(&line))));
    secret_unref(value);
    buf_free(&other);
    buf_free(&key);
    buf_free(&line);
}

/* What a store has as an agent's key is one, of the type that it says. */
static void test_public(void)
{
    static const char *const bad[] = {"ssh-agent ssh-ed25519",
                                      "ssh-agent ssh-ed25519 ",
                                      "ssh-agent  ",
                                      "ssh-agent ssh-ed25519 AAAA",
                                      "ssh-agent ssh-ed25519 AAAAC3NzaC1lZDI1NTE5",
                                      "ssh-agent ssh-ed25519 !"};
    struct err err = {0};
    struct buf key;
    char text[200];
    buf_init(&key, 200);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CU_ASSERT(ssh_key_public(slice_str(bad[i]), &key, &err) < 0 && buf_len(&key) == 0);
    }
    snprintf(text, sizeof text, "ssh-agent ssh-rsa %s", ed25519 + sizeof "ssh-ed25519");
    CU_ASSERT(ssh_key_public(slice_str(text), &key, &err) < 0 && buf_len(&key) == 0);
    snprintf(text, sizeof text, "ssh-agent %s", ed25519);
    CU_ASSERT(ssh_key_public(slice_str(text), &key, &err) == 0 && buf_len(&key) > 0);
    buf_free(&key);
}

static void test_list(void)
{
    struct buf b;
    struct err err = {0};
    buf_init(&b, 1000);
    put_list(&b, 2);
    struct secret *found = host_agent_find(buf_slice(&b), slice_str(print_of), &err);
    CU_ASSERT_PTR_NOT_NULL(found);
    secret_unref(found);
    CU_ASSERT_PTR_NULL(host_agent_find(buf_slice(&b), SLICE("SHA256:other"), &err));
    for (size_t n = 0; n < buf_len(&b); n++)
        CU_ASSERT_PTR_NULL(
            host_agent_find((struct slice){buf_slice(&b).p, n}, slice_str(ed25519), &err));
    buf_clear(&b);
    put_list(&b, 1000000); /* and no more follows */
    CU_ASSERT_PTR_NULL(host_agent_find(buf_slice(&b), slice_str(ed25519), &err));
    buf_free(&b);
}

static void test_messages(void)
{
    struct slice message;
    size_t n;
    CU_ASSERT_EQUAL(host_agent_next(SLICE("\0\0\0"), &message, &n), 0);
    CU_ASSERT_EQUAL(host_agent_next(SLICE("\0\0\0\2x"), &message, &n), 0);
    CU_ASSERT(host_agent_next(SLICE("\0\0\0\2xyz"), &message, &n) == 1 && n == 6 &&
              slice_eq_str(message, "xy"));
    CU_ASSERT_EQUAL(host_agent_next(SLICE("\0\0\0\0"), &message, &n), -1);
    CU_ASSERT_EQUAL(host_agent_next(SLICE("\0\5\0\0x"), &message, &n), -1);
}

static void put_signed(struct buf *b, const char *algorithm, size_t n)
{
    static const char bytes[2000];
    struct buf inner;
    buf_init(&inner, 3000);
    CU_ASSERT_FATAL(ssh_wire_put_string(&inner, slice_str(algorithm)) == 0 &&
                    ssh_wire_put_string(&inner, (struct slice){bytes, n}) == 0 &&
                    ssh_wire_put_u8(b, 14) == 0 && ssh_wire_put_string(b, buf_slice(&inner)) == 0);
    buf_free(&inner);
}

static void test_signatures(void)
{
    static const struct {
        const char *algorithm;
        size_t n;
        bool good;
    } rows[] = {{"ssh-ed25519", 64, true},
                {"ssh-rsa", 64, false},
                {"ssh-ed25519", 0, false},
                {"ssh-ed25519", 2000, false}};
    struct buf b, out;
    struct err err = {0};
    buf_init(&b, 3000);
    buf_init(&out, SSH_SIGNATURE_MAX);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        buf_clear(&b);
        put_signed(&b, rows[i].algorithm, rows[i].n);
        CU_ASSERT_EQUAL(host_agent_signature(buf_slice(&b), SLICE("ssh-ed25519"), &out, &err) == 0,
                        rows[i].good);
    }
    buf_clear(&b);
    put_signed(&b, "ssh-ed25519", 64);
    CU_ASSERT_EQUAL_FATAL(buf_append_str(&b, "x"), 0);
    CU_ASSERT_EQUAL(host_agent_signature(buf_slice(&b), SLICE("ssh-ed25519"), &out, &err), -1);
    CU_ASSERT_EQUAL(host_agent_signature(SLICE("\5"), SLICE("ssh-ed25519"), &out, &err), -1);
    buf_free(&b);
    buf_free(&out);
}

static void put_login(struct buf *b, const char *algorithm, struct slice key)
{
    CU_ASSERT_FATAL(ssh_wire_put_string(b, SLICE("12345678901234567890123456789012")) == 0 &&
                    ssh_wire_put_u8(b, 50) == 0 && ssh_wire_put_string(b, SLICE("git")) == 0 &&
                    ssh_wire_put_string(b, SLICE("ssh-connection")) == 0 &&
                    ssh_wire_put_string(b, SLICE("publickey")) == 0 && ssh_wire_put_u8(b, 1) == 0 &&
                    ssh_wire_put_string(b, slice_str(algorithm)) == 0 &&
                    ssh_wire_put_string(b, key) == 0);
}

/* Logins with its key, texts in its namespaces: nothing else, and never with SHA-1. */
static void test_may(void)
{
    static const struct {
        const char *type, *algorithm;
        uint32_t flags;
        bool good;
    } rows[] = {{"ssh-ed25519", "ssh-ed25519", 0, true},
                {"ssh-ed25519", "rsa-sha2-256", 0, false},
                {"ssh-rsa", "rsa-sha2-256", SSH_SIGN_SHA256, true},
                {"ssh-rsa", "rsa-sha2-512", SSH_SIGN_SHA512, true},
                {"ssh-rsa", "ssh-rsa", 0, false}};
    const struct sshsig sig = {SLICE_INIT("git"), SLICE_INIT("sha256"),
                               SLICE_INIT("12345678901234567890123456789012")};
    struct ssh_signing how;
    struct err err = {0};
    struct buf key, other, text;
    buf_init(&key, 200);
    buf_init(&other, 200);
    buf_init(&text, 1000);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        buf_clear(&key);
        buf_clear(&text);
        put_key(&key, rows[i].type);
        put_login(&text, rows[i].algorithm, buf_slice(&key));
        int r = ssh_login_may(buf_slice(&key), buf_slice(&text), &how, &err);
        CU_ASSERT_EQUAL(r == 0, rows[i].good);
        CU_ASSERT(r < 0 || how.flags == rows[i].flags);
        CU_ASSERT(ssh_text_may(buf_slice(&key), "git", 0, buf_slice(&text), &how, &err) < 0);
    }
    buf_clear(&text);
    put_key(&other, "ssh-ed25519");
    put_login(&text, "ssh-ed25519", SLICE("another key"));
    CU_ASSERT(ssh_login_may(buf_slice(&other), buf_slice(&text), &how, &err) < 0);
    buf_clear(&text);
    CU_ASSERT_FATAL(sshsig_put(&sig, &text) == 0);
    CU_ASSERT(ssh_text_may(buf_slice(&other), "file git", 0, buf_slice(&text), &how, &err) == 0);
    CU_ASSERT(ssh_text_may(buf_slice(&other), "file", 0, buf_slice(&text), &how, &err) < 0);
    CU_ASSERT(ssh_text_may(buf_slice(&key), "git", 0, buf_slice(&text), &how, &err) < 0);
    CU_ASSERT(ssh_text_may(buf_slice(&key), "git", SSH_SIGN_SHA512, buf_slice(&text), &how, &err) ==
                  0 &&
              strcmp(how.algorithm, "rsa-sha2-512") == 0);
    CU_ASSERT(ssh_login_may(buf_slice(&other), buf_slice(&text), &how, &err) < 0);
    buf_free(&key);
    buf_free(&other);
    buf_free(&text);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("an SSH agent of the host", NULL, NULL);
    CU_add_test(s, "a key that a store has of it", test_public);
    CU_add_test(s, "a list of keys", test_list);
    CU_add_test(s, "messages", test_messages);
    CU_add_test(s, "signatures", test_signatures);
    CU_add_test(s, "what may be signed", test_may);
}
