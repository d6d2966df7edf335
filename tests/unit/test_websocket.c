/* Frames (RFC 6455 5): what is read and what is a fault, at every split; headers and masks; the
 * handshake's values; what may be the beginning of a placeholder. */
#include "websocket.h"

#include "buf.h"
#include "placeholder.h"
#include "tap_main.h"
#include "upgrade.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void suite_websocket(void);

struct reading {
    unsigned messages, controls, code, close;
    bool violation;
    enum websocket_opcode last;
    struct buf text; /* of all messages, "|" after each; controls in "<>" */
};

/* Feed n bytes, `step` at a time, each piece in memory of its exact size. */
static struct reading feed(const void *p, size_t n, bool masked, size_t step)
{
    struct reading r = {.violation = false};
    struct websocket_reader reader;
    char scratch[WEBSOCKET_PIECE_MAX];
    buf_init(&r.text, 1 << 20);
    websocket_reader_init(&reader, masked);
    for (size_t at = 0; at < n && !r.violation; at += step) {
        size_t k = n - at < step ? n - at : step;
        char *exact = malloc(k);
        memcpy(exact, (const char *)p + at, k);
        struct slice in = {exact, k};
        enum websocket_event e;
        struct websocket_part part;
        while ((e = websocket_read(&reader, &in, scratch, &part)) != WEBSOCKET_MORE) {
            if (e == WEBSOCKET_VIOLATION) {
                r.violation = true;
                r.code = reader.code;
                break;
            }
            bool control = e == WEBSOCKET_CONTROL;
            r.last = part.opcode;
            r.messages += !control && part.last;
            r.controls += control;
            if (control && part.opcode == WEBSOCKET_CLOSE)
                r.close = part.code;
            CU_ASSERT_EQUAL(buf_append(&r.text, "<", control), 0);
            CU_ASSERT_EQUAL(buf_append(&r.text, part.p, part.n), 0);
            CU_ASSERT_EQUAL(buf_append(&r.text, control ? ">" : "|", control || part.last), 0);
        }
        CU_ASSERT(r.violation || in.n == 0);
        free(exact);
    }
    return r;
}

struct vector {
    const char *name;
    struct slice bytes;
    bool masked;
    unsigned code; /* 0: none; else the violation's */
    const char *text;
};

#define V(n, m, b, c, t)                  \
    {                                     \
        n, {"" b, sizeof(b) - 1}, m, c, t \
    }

static const struct vector vectors[] = {
    V("RFC: hello", false, "\x81\x05Hello", 0, "Hello|"),
    V("RFC: hello masked", true, "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", 0, "Hello|"),
    V("RFC: fragments", false, "\x01\x03Hel\x80\x02lo", 0, "Hello|"),
    V("RFC: ping and pong", false, "\x89\x05Hello\x8a\x05Hello", 0, "<Hello><Hello>"),
    V("empty", false, "\x81\0\x82\0", 0, "||"),
    V("empty fragments", false, "\x01\0\0\0\0\0\x80\0", 0, "|"),
    V("control between fragments", false, "\x01\x03Hel\x89\x01p\x80\x02lo", 0, "Hel<p>lo|"),
    V("close without code", false, "\x88\0", 0, "<>"),
    V("close 1000", false,
      "\x88\x05\x03\xe8"
      "bye",
      0,
      "<\x03\xe8"
      "bye>"),
    V("nothing after close", false, "\x88\0\xff\xff\xff", 0, "<>"),
    V("character across fragments", false, "\x01\x01\xe2\0\x01\x82\x80\x01\xac", 0,
      "\xe2\x82\xac|"),
    V("two-byte length", false, "\x82\x7e\0\x05Hello", 1002, ""),
    V("eight-byte length", false, "\x82\x7f\0\0\0\0\0\0\0\x05Hello", 1002, ""),
    V("eight-byte length of 16 bits", false, "\x82\x7f\0\0\0\0\0\0\xff\xff", 1002, ""),
    V("length with the top bit", false, "\x82\x7f\x80\0\0\0\0\0\0\0", 1002, ""),
    V("unmasked from a client", true, "\x81\x05Hello", 1002, ""),
    V("masked from a server", false, "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", 1002, ""),
    V("RSV1", false, "\xc1\x05Hello", 1002, ""),
    V("RSV2", false, "\xa1\x05Hello", 1002, ""),
    V("RSV3", false, "\x91\x05Hello", 1002, ""),
    V("opcode 3", false, "\x83\0", 1002, ""),
    V("opcode 7", false, "\x87\0", 1002, ""),
    V("opcode 11", false, "\x8b\0", 1002, ""),
    V("opcode 15", false, "\x8f\0", 1002, ""),
    V("continuation of nothing", false, "\x80\0", 1002, ""),
    V("continuation after a message", false,
      "\x81\x01"
      "a\x80\0",
      1002, "a|"),
    V("a message in a message", false,
      "\x01\x01"
      "a\x81\x01"
      "b",
      1002, "a"),
    V("fragmented ping", false, "\x09\x01p", 1002, ""),
    V("fragmented close", false, "\x08\0", 1002, ""),
    V("ping of 126", false, "\x89\x7e\0\x7e", 1002, ""),
    V("close of one byte", false, "\x88\x01\x03", 1002, ""),
    V("close 999", false, "\x88\x02\x03\xe7", 1002, ""),
    V("close 1004", false, "\x88\x02\x03\xec", 1002, ""),
    V("close 1005", false, "\x88\x02\x03\xed", 1002, ""),
    V("close 1006", false, "\x88\x02\x03\xee", 1002, ""),
    V("close 1015", false, "\x88\x02\x03\xf7", 1002, ""),
    V("close 2999", false, "\x88\x02\x0b\xb7", 1002, ""),
    V("close 5000", false, "\x88\x02\x13\x88", 1002, ""),
    V("close reason not UTF-8", false, "\x88\x03\x03\xe8\xff", 1007, ""),
    V("close reason cut", false, "\x88\x03\x03\xe8\xc3", 1007, ""),
    V("text not UTF-8", false, "\x81\x01\xff", 1007, ""),
    V("text too long form", false, "\x81\x02\xc0\x80", 1007, ""),
    V("text three bytes too long form", false, "\x81\x03\xe0\x80\x80", 1007, NULL),
    V("text four bytes too long form", false, "\x81\x04\xf0\x80\x80\x80", 1007, NULL),
    V("text surrogate", false, "\x81\x03\xed\xa0\x80", 1007, NULL),
    V("text above U+10FFFF", false, "\x81\x04\xf4\x90\x80\x80", 1007, NULL),
    V("text ends in a character", false, "\x81\x02\xe2\x82", 1007, NULL),
    V("text broken across fragments", false,
      "\x01\x01\xe2\x80\x01"
      "a",
      1007, NULL),
    V("binary needs no UTF-8", false, "\x82\x02\xff\xfe", 0, "\xff\xfe|"),
};

static void test_vectors(void)
{
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        const struct vector *v = &vectors[i];
        for (size_t step = 1; step <= v->bytes.n; step++) {
            struct reading r = feed(v->bytes.p, v->bytes.n, v->masked, step);
            bool right = r.violation == (v->code != 0) && r.code == v->code &&
                         (v->text == NULL || slice_eq_str(buf_slice(&r.text), v->text));
            if (!right)
                printf("# %s by %zu: %u, %.*s\n", v->name, step, r.code, SL(buf_slice(&r.text)));
            CU_ASSERT(right);
            buf_free(&r.text);
        }
    }
}

static void test_lengths(void)
{
    static const size_t sizes[] = {0, 1, 125, 126, 127, 65535, 65536, 200000};
    static const unsigned char mask[4] = {1, 2, 3, 250};
    char *frame = malloc(WEBSOCKET_HEADER_MAX + 200000);
    for (size_t i = 0; i < ARRAY_LEN(sizes) * 2; i++) {
        size_t n = sizes[i / 2], want = n < 126 ? 2 : n < 65536 ? 4 : 10;
        bool masked = i % 2;
        size_t h = websocket_header((unsigned char *)frame, WEBSOCKET_BINARY, true, n,
                                    masked ? mask : NULL);
        CU_ASSERT_EQUAL(h, want + (masked ? 4 : 0));
        for (size_t k = 0; k < n; k++)
            frame[h + k] = (char)(k * 7);
        if (masked)
            websocket_mask(frame + h, n, mask, 0);
        struct reading r = feed(frame, h + n, masked, 65536);
        CU_ASSERT(!r.violation);
        CU_ASSERT_EQUAL(r.messages, 1);
        CU_ASSERT_EQUAL(buf_len(&r.text), n + 1);
        for (size_t k = 0; k < n && k + 1 < buf_len(&r.text); k++)
            CU_ASSERT_EQUAL_FATAL((char)buf_data(&r.text)[k], (char)(k * 7));
        buf_free(&r.text);
    }
    free(frame);
}

/* Masking from any offset is the same as masking the whole. */
static void test_mask(void)
{
    static const unsigned char mask[4] = {0x11, 0x80, 0xff, 0x03};
    char whole[61], parts[61];
    for (size_t cut = 0; cut <= sizeof whole; cut++) {
        for (size_t i = 0; i < sizeof whole; i++)
            whole[i] = parts[i] = (char)i;
        websocket_mask(whole, sizeof whole, mask, 0);
        websocket_mask(parts, cut, mask, 0);
        websocket_mask(parts + cut, sizeof parts - cut, mask, cut);
        CU_ASSERT_EQUAL(memcmp(whole, parts, sizeof whole), 0);
        for (size_t i = 0; i < sizeof whole; i++)
            CU_ASSERT_EQUAL_FATAL(whole[i], (char)((unsigned char)i ^ mask[i % 4]));
    }
}

static void test_close(void)
{
    char p[2];
    CU_ASSERT_EQUAL(websocket_close(p, WEBSOCKET_NO_CODE), 0);
    CU_ASSERT_EQUAL(websocket_close(p, WEBSOCKET_POLICY), 2);
    CU_ASSERT_EQUAL(memcmp(p, "\x03\xf0", 2), 0);
    struct reading r = feed("\x88\0", 2, false, 2);
    CU_ASSERT_EQUAL(r.close, WEBSOCKET_NO_CODE);
    buf_free(&r.text);
}

/* ---- the handshake ---- */

static void add(struct head *h, const char *name, const char *value)
{
    CU_ASSERT_EQUAL_FATAL(http_head_add(h, name, slice_str(value)), 0);
}

static struct head *request(struct head *h)
{
    http_head_init(h);
    h->method = SLICE("GET");
    h->minor = 1;
    add(h, "upgrade", "WebSocket");
    add(h, "sec-websocket-version", "13");
    add(h, "sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    return h;
}

static void test_accept(void)
{
    char accept[UPGRADE_ACCEPT_TEXT], key[UPGRADE_KEY_TEXT], other[UPGRADE_KEY_TEXT];
    CU_ASSERT_EQUAL(upgrade_accept(SLICE("dGhlIHNhbXBsZSBub25jZQ=="), accept), 0);
    CU_ASSERT_STRING_EQUAL(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="); /* RFC 6455 1.3 */
    CU_ASSERT_EQUAL(upgrade_accept(SLICE("short"), accept), -1);
    CU_ASSERT_EQUAL(upgrade_make_key(key) | upgrade_make_key(other), 0);
    CU_ASSERT_EQUAL(strlen(key), 24);
    CU_ASSERT_STRING_NOT_EQUAL(key, other);
}

static void test_request(void)
{
    static const char *const bad_keys[] = {"", "dGhlIHNhbXBsZSBub25jZQ", "dGhlIHNhbXBsZSBub25jZR==",
                                           "dGhlIHNhbXBsZSBub25jZSE=", "dGhl\tHNhbXBsZSBub25jZQ=="};
    struct head h;
    struct refusal why = {0, ""};
    CU_ASSERT_EQUAL(upgrade_check_request(request(&h), true, &why), 0);
    CU_ASSERT(h.upgrade == UPGRADE_WEBSOCKET && h.body == BODY_TUNNEL);
    http_head_free(&h);
    CU_ASSERT_EQUAL(upgrade_check_request(request(&h), false, &why), -1);
    CU_ASSERT_EQUAL(why.status, 400);
    http_head_free(&h);
    for (size_t i = 0; i < ARRAY_LEN(bad_keys); i++) {
        request(&h);
        CU_ASSERT_EQUAL(http_head_set(&h, "sec-websocket-key", slice_str(bad_keys[i])), 0);
        CU_ASSERT_EQUAL(upgrade_check_request(&h, true, &why), -1);
        http_head_free(&h);
    }
    static const struct {
        const char *name, *value;
        unsigned status;
    } more[] = {{"sec-websocket-version", "13", 400},
                {"sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==", 400},
                {"content-length", "3", 400},
                {"upgrade", "websocket", 501}};
    for (size_t i = 0; i < ARRAY_LEN(more); i++) {
        add(request(&h), more[i].name, more[i].value);
        CU_ASSERT_EQUAL(upgrade_check_request(&h, true, &why), -1);
        CU_ASSERT_EQUAL(why.status, more[i].status);
        http_head_free(&h);
    }
    add(request(&h), "content-length", "0"); /* as Java says it */
    CU_ASSERT_EQUAL(upgrade_check_request(&h, true, &why), 0);
    http_head_free(&h);
    request(&h)->method = SLICE("POST");
    CU_ASSERT_EQUAL(upgrade_check_request(&h, true, &why), -1);
    http_head_free(&h);
    request(&h)->minor = 0;
    CU_ASSERT_EQUAL(upgrade_check_request(&h, true, &why), -1);
    http_head_free(&h);
}

static struct head *reply(struct head *h)
{
    http_head_init(h);
    h->status = 101;
    add(h, "upgrade", "websocket");
    add(h, "sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    return h;
}

static void test_reply(void)
{
    static const char key[] = "dGhlIHNhbXBsZSBub25jZQ=="; /* RFC 6455 1.3 */
    char accept[UPGRADE_ACCEPT_TEXT];
    struct head h;
    CU_ASSERT_EQUAL_FATAL(upgrade_accept(slice_str(key), accept), 0);
    CU_ASSERT(upgrade_reply_fits(reply(&h), true, accept));
    CU_ASSERT(!upgrade_reply_fits(&h, false, accept));
    CU_ASSERT(!upgrade_reply_fits(&h, true, "AAAAAAAAAAAAAAAAAAAAAAAAAAA="));
    h.status = 200;
    CU_ASSERT(!upgrade_reply_fits(&h, true, accept));
    http_head_free(&h);
    static const char *const never[] = {"sec-websocket-extensions", "content-length",
                                        "transfer-encoding", "upgrade", "sec-websocket-accept"};
    for (size_t i = 0; i < ARRAY_LEN(never); i++) {
        add(reply(&h), never[i], "permessage-deflate");
        CU_ASSERT(!upgrade_reply_fits(&h, true, accept));
        http_head_free(&h);
    }
}

static void test_protocols(void)
{
    static const char name[] = "sec-websocket-protocol";
    struct head q, r;
    add(request(&q), name, "chat.v0, chat.v1");
    add(&q, name, "mqtt");
    CU_ASSERT(upgrade_protocol_fits(&q, reply(&r)));
    static const struct {
        const char *chosen;
        bool fits;
    } v[] = {{"chat.v1", true},  {"mqtt", true},    {"chat.v2", false},         {"", false},
             {"CHAT.V1", false}, {"chat.v", false}, {"chat.v0, chat.v1", false}};
    for (size_t i = 0; i < ARRAY_LEN(v); i++) {
        CU_ASSERT_EQUAL(http_head_set(&r, name, slice_str(v[i].chosen)), 0);
        CU_ASSERT_EQUAL(upgrade_protocol_fits(&q, &r), v[i].fits);
    }
    add(&r, name, "mqtt");
    CU_ASSERT(!upgrade_protocol_fits(&q, &r));
    http_head_free(&q);
    http_head_free(&r);
}

/* ---- placeholders in pieces ---- */

static size_t partial(const char *text)
{
    return placeholder_partial(slice_str(text));
}

static void test_partial(void)
{
    static const unsigned char seed[PLACEHOLDER_SEED] = {1}, tag[PLACEHOLDER_TAG_KEY] = {2};
    static const char *const kinds[] = {"github-pat", "openai", "anthropic", ""};
    struct placeholder_key *key = placeholder_key_new(tag);
    char p[PLACEHOLDER_MAX], text[2 * PLACEHOLDER_MAX];
    CU_ASSERT_EQUAL(partial(""), 0);
    CU_ASSERT_EQUAL(partial("plain text."), 0);
    CU_ASSERT_EQUAL(partial("end"), 1);
    CU_ASSERT_EQUAL(partial("xdwd"), 3);
    CU_ASSERT_EQUAL(partial("dwd_ "), 0);
    CU_ASSERT_EQUAL(partial("ghp_dwd_"), 4);
    CU_ASSERT_EQUAL(partial("sk-"), 3);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        CU_ASSERT_EQUAL_FATAL(placeholder_make(key, seed, "one", kinds[i], p), 0);
        size_t n = strlen(p);
        for (size_t cut = 1; cut < n; cut++) {
            int k = snprintf(text, sizeof text, "a %.*s", (int)cut, p);
            CU_ASSERT_EQUAL(placeholder_partial((struct slice){text, (size_t)k}), cut);
        }
        CU_ASSERT(partial(p) <= 1); /* whole: its last digit may begin another */
    }
    placeholder_key_free(key);
}

void suite_websocket(void)
{
    CU_pSuite s = CU_add_suite("websocket", NULL, NULL);
    CU_add_test(s, "frames and faults at every split (C20)", test_vectors);
    CU_add_test(s, "lengths", test_lengths);
    CU_add_test(s, "masks", test_mask);
    CU_add_test(s, "close frames", test_close);
    CU_add_test(s, "accept value and keys", test_accept);
    CU_add_test(s, "a request's handshake (B17)", test_request);
    CU_add_test(s, "a reply's handshake (B18)", test_reply);
    CU_add_test(s, "sub-protocols", test_protocols);
    CU_add_test(s, "the beginning of a placeholder", test_partial);
}

void tap_suites(void)
{
    suite_websocket();
}
