/* The commands of a push, which references they may name, the answer that refuses them, and what a
 * pack shows of descent. */
#include <CUnit/CUnit.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "pack.h"
#include "push.h"
#include "push_stream.h"
#include "tap_main.h"

#define A40 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B40 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define Z40 "0000000000000000000000000000000000000000"

static void put(struct buf *b, const char *s, size_t n)
{
    CU_ASSERT_FATAL(buf_printf(b, "%04zx", n + 4) == 0 && buf_append(b, s, n) == 0);
}

#define PUT(b, lit) put(b, lit, sizeof(lit) - 1)

static void commands(void)
{
    struct buf b;
    struct push p;
    buf_init(&b, 1 << 20);
    PUT(&b, "shallow " A40);
    PUT(&b, A40 " " B40 " refs/heads/x\0 report-status-v2 side-band-64k push-options agent=git/2");
    PUT(&b, Z40 " " B40 " refs/tags/y\n");
    CU_ASSERT(buf_append_str(&b, "0000") == 0);
    PUT(&b, "ci.skip");
    CU_ASSERT(buf_append_str(&b, "0000PACK") == 0);
    for (size_t n = 0; n < buf_len(&b) - 4; n++)
        CU_ASSERT_EQUAL(push_read((struct slice){(char *)buf_data(&b), n}, &p), 0);
    CU_ASSERT_EQUAL_FATAL(push_read(buf_slice(&b), &p), 1);
    CU_ASSERT_EQUAL(p.n, 2);
    CU_ASSERT(p.report && p.side_band);
    CU_ASSERT(slice_eq_str(p.commands[0].ref, "refs/heads/x"));
    CU_ASSERT(slice_eq_str(p.commands[1].ref, "refs/tags/y"));
    CU_ASSERT(slice_eq_str(p.commands[0].new_id, B40));
    CU_ASSERT(push_id_is_zero(p.commands[1].old_id) && !push_id_is_zero(p.commands[0].old_id));
    CU_ASSERT_EQUAL(buf_len(&b) - p.end, 4);
    CU_ASSERT_EQUAL(push_read(SLICE("0000"), &p), 1); /* git's probe */
    CU_ASSERT_EQUAL(p.n, 0);
    buf_free(&b);
}

static void bad_commands(void)
{
    static const struct slice bad[] = {
        SLICE("zzzz"),
        SLICE("0001"),
        SLICE("0004"),
        SLICE("-001"),
        SLICE("000ahello\n"),
        SLICE("0030push-cert\0 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
        SLICE("0064" A40 " " B40 "  refs/heads/main\0"),
        SLICE("0061" A40 "  " B40 " refs/heads/x\0"),
        SLICE("005f" A40 " BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB refs/heads/x"),
    };
    struct push p;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int r = push_read(bad[i], &p);
        if (r == 1)
            printf("# %zu: %d\n", i, r);
        CU_ASSERT_NOT_EQUAL(r, 1);
    }
    struct buf b;
    buf_init(&b, 1 << 20);
    for (size_t i = 0; i <= PUSH_COMMANDS; i++)
        PUT(&b, A40 " " B40 " refs/heads/x");
    CU_ASSERT_EQUAL(push_read(buf_slice(&b), &p), -1); /* too many */
    buf_clear(&b);
    while (buf_len(&b) <= PUSH_HEAD_MAX)
        PUT(&b, "shallow " A40);
    CU_ASSERT_EQUAL(push_read(buf_slice(&b), &p), -1); /* no end to it */
    buf_free(&b);
}

static void names(void)
{
    static const struct {
        const char *pattern, *ref;
        bool matches;
    } rows[] = {
        {"refs/heads/x", "refs/heads/x", true},
        {"refs/heads/x", "refs/heads/xy", false},
        {"refs/heads/x", "refs/heads/X", false},
        {"refs/heads/agent/*", "refs/heads/agent/a", true},
        {"refs/heads/agent/*", "refs/heads/agent/a/b", false},
        {"refs/heads/agent/*", "refs/heads/agent/", false},
        {"refs/heads/agent-*", "refs/heads/agent-", true},
        {"refs/heads/*-x-*", "refs/heads/a-x-b-x-c", true},
        {"refs/heads/*-x", "refs/heads/a-x-y", false},
        {"refs/heads/*/x", "refs/heads/a/x", true},
        {"refs/heads/*/x", "refs/heads/a/b/x", false},
        {"refs/heads/**", "refs/heads/a/b", true},
        {"refs/heads/**", "refs/heads/", false},
        {"refs/heads/**", "refs/tags/a", false},
        {"refs/heads/**", "refs/heads/../tags/a", false},
        {"refs/heads/**", "refs/heads/a//b", false},
        {"refs/heads/**", "refs/heads/a b", false},
        {"refs/heads/**", "refs/heads/a\n", false},
        {"refs/heads/**", "refs/heads/*", false},
        {"refs/heads/**", "HEAD", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool got = push_ref_matches(rows[i].pattern, slice_str(rows[i].ref));
        if (got != rows[i].matches)
            printf("# %s %s\n", rows[i].pattern, rows[i].ref);
        CU_ASSERT_EQUAL(got, rows[i].matches);
    }
}

static void answer(void)
{
    struct push p = {.n = 1, .report = true};
    struct buf b;
    p.commands[0].ref = SLICE("refs/heads/x");
    buf_init(&b, 65536);
    CU_ASSERT_EQUAL(push_answer(&p, "no", &b), 0);
    CU_ASSERT(slice_eq_str(buf_slice(&b), "000eunpack ok\n0020ng refs/heads/x durward: no\n0000"));
    buf_clear(&b);
    p.side_band = true;
    CU_ASSERT_EQUAL(push_answer(&p, "no", &b), 0);
    CU_ASSERT(slice_eq_str(buf_slice(&b), "0037\001000eunpack ok\n0020ng refs/heads/x durward: no\n"
                                          "00000000"));
    buf_free(&b);
}

/* ---- packs of our making ---- */

struct made {
    struct buf b;
    unsigned n;
};

static void begin(struct made *m)
{
    buf_init(&m->b, 1 << 20);
    m->n = 0;
    CU_ASSERT_FATAL(buf_append(&m->b, "PACK\0\0\0\2\0\0\0\0", 12) == 0);
}

/* Its offset. extra: what stands between header and data. */
static size_t object(struct made *m, int type, struct slice extra, struct slice body)
{
    unsigned char head[4], z[4096];
    size_t at = buf_len(&m->b), n = body.n, k = 0;
    uLongf zn = sizeof z;
    head[k] = (unsigned char)(type << 4 | (n & 15));
    for (n >>= 4; n; n >>= 7) {
        head[k++] |= 128;
        head[k] = n & 127;
    }
    CU_ASSERT_FATAL(compress(z, &zn, (const unsigned char *)body.p, body.n) == Z_OK);
    CU_ASSERT_FATAL(buf_append(&m->b, head, k + 1) == 0 && buf_append_slice(&m->b, extra) == 0 &&
                    buf_append(&m->b, z, zn) == 0);
    m->n++;
    return at;
}

static struct slice finish(struct made *m)
{
    buf_data(&m->b)[11] = (unsigned char)m->n;
    CU_ASSERT_FATAL(buf_append(&m->b, Z40, 20) == 0);
    return buf_slice(&m->b);
}

/* The text of a commit with this parent, and its name. */
static struct slice commit(const char *parent, const char *note, char text[512], char id[41])
{
    unsigned char md[32];
    char head[32];
    int n = snprintf(text, 512, "tree " A40 "\n%s%s%sauthor a <a> 1 +0000\n\n%s\n",
                     parent ? "parent " : "", parent ? parent : "", parent ? "\n" : "", note);
    int k = snprintf(head, sizeof head, "commit %d", n) + 1;
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    CU_ASSERT_FATAL(EVP_DigestInit_ex(c, EVP_sha1(), NULL) &&
                    EVP_DigestUpdate(c, head, (size_t)k) && EVP_DigestUpdate(c, text, (size_t)n) &&
                    EVP_DigestFinal_ex(c, md, NULL));
    EVP_MD_CTX_free(c);
    for (int i = 0; i < 20; i++)
        snprintf(id + 2 * i, 3, "%02x", md[i]);
    return (struct slice){text, (size_t)n};
}

static enum pack_answer ask(struct slice pack, const char *from, const char *to)
{
    struct push p = {.n = 1};
    p.commands[0] = (struct push_command){slice_str(from), slice_str(to), SLICE("refs/heads/x")};
    return pack_shows(pack, &p);
}

static void descent(void)
{
    char t1[512], t2[512], t3[512], id1[41], id2[41], id3[41], delta[300];
    struct made m;
    struct slice none = {"", 0}, s1 = commit(B40, "one", t1, id1),
                 s2 = commit(id1, "a message of some length: two", t2, id2),
                 s3 = commit(id1, "a message of some length: twx", t3, id3);
    begin(&m);
    object(&m, 3, none, SLICE("a blob"));
    object(&m, 1, none, s1);
    size_t at2 = object(&m, 1, none, s2);
    /* the third as a delta on the second: all but its last two bytes, then "x\n" */
    size_t copy = s2.n - 2;
    CU_ASSERT_FATAL(copy < 256 && s2.n > 127);
    int k = snprintf(delta, sizeof delta, "%c%c%c%c%c%c%cx\n", (int)(s2.n & 127) | 128,
                     (int)(s2.n >> 7), (int)(s3.n & 127) | 128, (int)(s3.n >> 7), 0x80 | 0x10,
                     (int)copy, 2);
    size_t back = buf_len(&m.b) - at2;
    char offset[2] = {(char)back, 0};
    CU_ASSERT_FATAL(back < 256);
    struct slice distance = {offset, 1};
    if (back > 127) {
        offset[0] = (char)(128 | ((back >> 7) - 1));
        offset[1] = (char)(back & 127);
        distance.n = 2;
    }
    object(&m, 6, distance, (struct slice){delta, (size_t)k});
    struct slice pack = finish(&m);
    CU_ASSERT_EQUAL(ask(pack, B40, id1), PACK_SHOWN);
    CU_ASSERT_EQUAL(ask(pack, B40, id2), PACK_SHOWN);
    CU_ASSERT_EQUAL(ask(pack, B40, id3), PACK_SHOWN);
    CU_ASSERT_EQUAL(ask(pack, id1, id3), PACK_SHOWN);
    CU_ASSERT_EQUAL(ask(pack, id2, id3), PACK_NOT_SHOWN); /* brothers */
    CU_ASSERT_EQUAL(ask(pack, id2, id1), PACK_NOT_SHOWN); /* backwards */
    CU_ASSERT_EQUAL(ask(pack, A40, id2), PACK_NOT_SHOWN); /* its tree is no parent */
    CU_ASSERT_EQUAL(ask(pack, B40, A40), PACK_NOT_SHOWN); /* not in it */
    CU_ASSERT_EQUAL(ask(pack, Z40, A40), PACK_SHOWN);     /* a new reference */
    for (size_t n = 0; n < pack.n; n++)
        CU_ASSERT_EQUAL(ask((struct slice){pack.p, n}, B40, id2), PACK_BAD);
    buf_data(&m.b)[11] = 9;
    CU_ASSERT_EQUAL(ask(pack, B40, id2), PACK_BAD);
    buf_free(&m.b);
}

/* ---- pushes as they come ---- */

/* Feeds a push, `step` bytes at a time; how much of it was taken when it was decided. */
static enum inspect_answer feed(struct push_stream *p, struct slice body, size_t step,
                                size_t *taken)
{
    enum inspect_answer a = INSPECT_MORE;
    *taken = 0;
    while (a == INSPECT_MORE && *taken < body.n) {
        size_t n = body.n - *taken < step ? body.n - *taken : step;
        char *exact = malloc(n);
        CU_ASSERT_PTR_NOT_NULL_FATAL(exact);
        memcpy(exact, body.p + *taken, n);
        a = push_stream_take(p, (struct slice){exact, n}, false);
        free(exact);
        *taken += n;
    }
    return a;
}

struct streamed {
    enum inspect_answer answer;
    size_t taken;
    char why[INSPECT_DETAIL_MAX];
    bool reported;
};

static struct streamed stream(const struct inspection *in, struct slice body, size_t step)
{
    struct quota total = {.total = 64 << 20, .each = 64 << 20};
    struct streamed ret = {.reported = false};
    struct buf out;
    LIST_INIT(&total.owners);
    buf_init(&out, PUSH_STREAM_ANSWER_MAX);
    struct push_stream *p = push_stream_new(in, &total, "s");
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    ret.answer = feed(p, body, step, &ret.taken);
    if (ret.answer == INSPECT_MORE)
        ret.answer = push_stream_take(p, SLICE(""), true);
    snprintf(ret.why, sizeof ret.why, "%s", push_stream_why(p)->detail);
    CU_ASSERT(slice_eq(push_stream_held(p), (struct slice){body.p, ret.taken}));
    ret.reported = push_stream_answer(p, &out) == 1;
    push_stream_sent(p, push_stream_held(p).n);
    CU_ASSERT_EQUAL(total.used, 0);
    push_stream_free(p);
    buf_free(&out);
    return ret;
}

static void put_command(struct buf *b, const char *from, const char *to, const char *ref)
{
    char line[200];
    int n = snprintf(line, sizeof line, "%s %s %s", from, to, ref);
    CU_ASSERT_FATAL(buf_printf(b, "%04x%s", n + 19, line) == 0 &&
                    buf_append(b, "\0report-status\n", 15) == 0 && buf_append_str(b, "0000") == 0);
}

static void streams(void)
{
    static const char *const names[] = {"refs/heads/agent/*"};
    const struct inspection in = {
        .kind = INSPECT_GIT, .push = true, .refs_given = true, .refs = {names, 1}};
    struct inspection force = in;
    char t1[512], t2[512], id1[41], id2[41];
    struct slice none = {"", 0}, s1 = commit(B40, "one", t1, id1), s2 = commit(id1, "two", t2, id2);
    force.force = true;
    for (size_t step = 1; step < 200; step += 7) {
        struct made m;
        struct buf b;
        buf_init(&b, 1 << 20);
        begin(&m);
        object(&m, 3, none, SLICE("a blob"));
        object(&m, 1, none, s1);
        object(&m, 1, none, s2);
        struct slice pack = finish(&m);
        put_command(&b, B40, id2, "refs/heads/agent/x");
        size_t commands = buf_len(&b);
        CU_ASSERT_FATAL(buf_append_slice(&b, pack) == 0);
        struct streamed r = stream(&in, buf_slice(&b), step);
        CU_ASSERT(r.answer == INSPECT_PASS && r.taken == buf_len(&b));
        r = stream(&force, buf_slice(&b), step);
        CU_ASSERT(r.answer == INSPECT_PASS && r.taken < commands + step);
        buf_data(&b)[commands + 20] ^= 1;
        r = stream(&in, buf_slice(&b), step);
        CU_ASSERT(r.answer == INSPECT_REFUSED && r.reported);
        buf_cut(&b, 30);
        CU_ASSERT_EQUAL(stream(&in, buf_slice(&b), step).answer, INSPECT_REFUSED);
        buf_clear(&b);
        put_command(&b, id2, id1, "refs/heads/agent/x");
        CU_ASSERT_FATAL(buf_append_slice(&b, pack) == 0);
        r = stream(&in, buf_slice(&b), step);
        CU_ASSERT(r.answer == INSPECT_REFUSED && r.reported && r.taken == buf_len(&b));
        CU_ASSERT_STRING_EQUAL(r.why, "not shown to be a fast-forward");
        buf_clear(&b);
        put_command(&b, B40, id2, "refs/heads/main");
        CU_ASSERT_FATAL(buf_append_slice(&b, pack) == 0);
        r = stream(&in, buf_slice(&b), step);
        CU_ASSERT(r.answer == INSPECT_REFUSED && r.reported && r.taken < commands + step);
        CU_ASSERT_STRING_EQUAL(r.why, "not allowed: refs/heads/main");
        buf_clear(&b);
        put_command(&b, id1, Z40, "refs/heads/agent/x");
        CU_ASSERT_STRING_EQUAL(stream(&in, buf_slice(&b), step).why,
                               "delete of refs/heads/agent/x");
        CU_ASSERT_EQUAL(stream(&in, SLICE("0000"), step).answer, INSPECT_PASS);
        CU_ASSERT_EQUAL(stream(&in, SLICE("0001"), step).answer, INSPECT_REFUSED);
        CU_ASSERT_EQUAL(stream(&in, SLICE("00"), step).answer, INSPECT_REFUSED);
        buf_free(&m.b);
        buf_free(&b);
    }
}

/* Pushes that are held share a bound. */
static void streams_bound(void)
{
    static const char *const names[] = {"refs/heads/**"};
    const struct inspection in = {
        .kind = INSPECT_GIT, .push = true, .refs_given = true, .refs = {names, 1}};
    struct quota total = {.total = 0};
    struct push_stream *held[2];
    struct slice none = {"", 0};
    struct made m;
    struct buf b;
    size_t taken;
    LIST_INIT(&total.owners);
    buf_init(&b, 4 << 20);
    put_command(&b, B40, A40, "refs/heads/x");
    begin(&m);
    object(&m, 3, none, SLICE("a blob"));
    CU_ASSERT_FATAL(buf_append(&b, buf_data(&m.b), 12) == 0); /* of no object that comes */
    buf_data(&b)[buf_len(&b) - 1] = 255;
    for (int i = 0; i < 250; i++)
        CU_ASSERT_FATAL(buf_append(&b, buf_data(&m.b) + 12, buf_len(&m.b) - 12) == 0);
    total.total = total.each = 2 * buf_len(&b) + 100;
    held[0] = push_stream_new(&in, &total, "s");
    held[1] = push_stream_new(&in, &total, "s");
    CU_ASSERT_FATAL(held[0] && held[1]);
    CU_ASSERT_EQUAL(feed(held[0], buf_slice(&b), 4096, &taken), INSPECT_MORE);
    CU_ASSERT_EQUAL(feed(held[1], buf_slice(&b), 4096, &taken), INSPECT_REFUSED);
    CU_ASSERT_STRING_EQUAL(push_stream_why(held[1])->code, "overload");
    push_stream_free(held[0]);
    push_stream_free(held[1]);
    buf_free(&m.b);
    buf_free(&b);
}

static void suite_push(void)
{
    CU_pSuite s = CU_add_suite("push", NULL, NULL);
    CU_add_test(s, "commands", commands);
    CU_add_test(s, "what is none", bad_commands);
    CU_add_test(s, "names of references", names);
    CU_add_test(s, "the answer", answer);
    CU_add_test(s, "descent", descent);
    CU_add_test(s, "streams", streams);
    CU_add_test(s, "streams that are held", streams_bound);
}

void tap_suites(void)
{
    suite_push();
}
