/* Records: what is put in comes out, and nothing else is accepted. */
#include "tap_main.h"

#include "open_ids.h"
#include "record_read.h"
#include "render.h"
#include "timestamp.h"

#include <CUnit/CUnit.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void suite_record(void);

static ssize_t encode_read(const struct record *r, struct record_view *v, unsigned char *bytes)
{
    const char *why;
    size_t n = record_encode(r, 1234567890123456789ULL, bytes, RECORD_MAX + 32);
    CU_ASSERT_TRUE(n > 0 && n <= RECORD_MAX);
    ssize_t got = record_read(v, bytes, n, &why);
    CU_ASSERT_EQUAL(got, (ssize_t)n);
    for (size_t i = 0; i < n; i++) /* no shorter piece is a record */
        CU_ASSERT_EQUAL_FATAL(record_read(v, bytes, i, &why), 0);
    return record_read(v, bytes, n, &why);
}

static void test_round_trip(void)
{
    static unsigned char bytes[RECORD_MAX + 32];
    struct record r;
    struct record_view v;
    record_init(&r, RECORD_COMPLETED, 77);
    for (int f = 1; f < RF_FIELDS; f++) {
        if (record_field_is_number((enum record_field)f))
            record_put_u64(&r, (enum record_field)f, (uint64_t)f * 1000);
        else
            record_put_str(&r, (enum record_field)f, record_field_name((enum record_field)f));
    }
    CU_ASSERT_TRUE(encode_read(&r, &v, bytes) > 0);
    CU_ASSERT_EQUAL(v.kind, RECORD_COMPLETED);
    CU_ASSERT_EQUAL(v.counter, 77);
    CU_ASSERT_EQUAL(v.wall_ns, 1234567890123456789ULL);
    CU_ASSERT_FALSE(v.cut);
    for (int f = 1; f < RF_FIELDS; f++)
        if (!record_field_is_number((enum record_field)f))
            CU_ASSERT_TRUE(slice_eq_str(v.field[f], record_field_name((enum record_field)f)));
    CU_ASSERT_TRUE(slice_eq_str(v.field[RF_STATUS], "9000"));
}

static void test_left_out(void)
{
    static unsigned char bytes[RECORD_MAX + 32];
    struct record r;
    struct record_view v;
    record_init(&r, RECORD_DENIED, 1);
    record_put_str(&r, RF_CODE, "");
    record_put_str(&r, RF_CODE, NULL);
    record_put_str(&r, RF_STATUS, "abc");
    record_put_str(&r, RF_STATUS, "007");
    CU_ASSERT_EQUAL(r.n, 0);
    record_put_str(&r, RF_CODE, "first");
    record_put_str(&r, RF_CODE, "second");
    record_put_u64(&r, RF_UP, UINT64_MAX);
    CU_ASSERT_TRUE(encode_read(&r, &v, bytes) > 0);
    CU_ASSERT_TRUE(slice_eq_str(v.field[RF_CODE], "first"));
    CU_ASSERT_TRUE(slice_eq_str(v.field[RF_UP], "9223372036854775807"));
    CU_ASSERT_EQUAL(v.field[RF_STATUS].n, 0);
}

/* Texts larger than everything: cut, bounded, and the numbers still fit. */
static void test_cut(void)
{
    static unsigned char bytes[RECORD_MAX + 32];
    static char big[4000];
    struct record r;
    struct record_view v;
    static const enum record_field texts[] = {RF_PATH,   RF_QUERY,  RF_RULE,  RF_DETAIL,
                                              RF_TARGET, RF_METHOD, RF_SCHEME};
    memset(big, 0xff, sizeof big);
    record_init(&r, RECORD_ADMITTED, 1);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        record_put(&r, texts[i], (struct slice){big, sizeof big});
    record_put_u64(&r, RF_STATUS, 403);
    record_put_u64(&r, RF_UP, INT64_MAX);
    record_put_u64(&r, RF_DOWN, INT64_MAX);
    record_put_u64(&r, RF_MS, INT64_MAX);
    record_put_u64(&r, RF_COUNT, INT64_MAX);
    CU_ASSERT_TRUE(encode_read(&r, &v, bytes) > 0);
    CU_ASSERT_TRUE(v.cut);
    CU_ASSERT_EQUAL(v.field[RF_PATH].n, RECORD_FIELD_MAX);
    CU_ASSERT_TRUE(slice_eq_str(v.field[RF_STATUS], "403"));
    CU_ASSERT_TRUE(slice_eq_str(v.field[RF_COUNT], "9223372036854775807"));
    /* the longest line there can be still fits its bound */
    struct buf line;
    struct chain c;
    char name[RENDER_NAME_MAX + 1];
    memset(name, 1, RENDER_NAME_MAX);
    name[RENDER_NAME_MAX] = 0;
    struct render_source from = {UINT32_MAX, "gate", name, name};
    chain_genesis(&c);
    buf_init(&line, 1 << 20);
    CU_ASSERT_EQUAL(render_line(&line, &c, &v, &from, INT64_MAX, UINT64_MAX), 0);
    CU_ASSERT_TRUE(buf_len(&line) > 40000 && buf_len(&line) <= RENDER_LINE_MAX);
    buf_free(&line);
}

/* head: length, kind, clock, counter, then the bytes given */
static ssize_t read_raw(unsigned kind, uint64_t counter, const void *fields, size_t n)
{
    unsigned char b[256] = {0};
    struct record_view v;
    const char *why = NULL;
    b[3] = (unsigned char)(17 + n);
    b[4] = (unsigned char)kind;
    b[20] = (unsigned char)counter;
    memcpy(b + 21, fields, n);
    ssize_t r = record_read(&v, b, 21 + n, &why);
    CU_ASSERT_PTR_NOT_NULL(why);
    return r;
}

static void test_strict(void)
{
    struct record_view v;
    const char *why;
    CU_ASSERT_EQUAL(read_raw(1, 1, "", 0), 21);
    CU_ASSERT_EQUAL(read_raw(0x81, 1, "", 0), 21);
    CU_ASSERT_EQUAL(read_raw(0, 1, "", 0), -1);
    CU_ASSERT_EQUAL(read_raw(RECORD_KINDS, 1, "", 0), -1);
    CU_ASSERT_EQUAL(read_raw(1, 0, "", 0), -1);
    CU_ASSERT_EQUAL(read_raw(1, 1, "\1\0\1x", 4), 25);
    CU_ASSERT_EQUAL(read_raw(1, 1, "\1\0\0", 3), -1);         /* empty */
    CU_ASSERT_EQUAL(read_raw(1, 1, "\1\0\2x", 4), -1);        /* too long for the record */
    CU_ASSERT_EQUAL(read_raw(1, 1, "\0\0\1x", 4), -1);        /* no field */
    CU_ASSERT_EQUAL(read_raw(1, 1, "\x7f\0\1x", 4), -1);      /* unknown field */
    CU_ASSERT_EQUAL(read_raw(1, 1, "\1\0\1x\1\0\1x", 8), -1); /* twice */
    CU_ASSERT_EQUAL(read_raw(1, 1, "\1\0\1x\2", 5), -1);      /* bytes left over */
    CU_ASSERT_EQUAL(read_raw(1, 1, "\x09\0\1x", 4), -1);      /* status is a number */
    CU_ASSERT_EQUAL(read_raw(1, 1,
                             "\x09\0\2"
                             "07",
                             5),
                    -1);
    CU_ASSERT_EQUAL(read_raw(1, 1, "\x09\0\2-1", 5), -1);
    CU_ASSERT_EQUAL(read_raw(1, 1,
                             "\x09\0\x13"
                             "9223372036854775808",
                             22),
                    -1);
    CU_ASSERT_EQUAL(read_raw(1, 1,
                             "\x09\0\1"
                             "0",
                             4),
                    25);
    CU_ASSERT_EQUAL(record_read(&v, (const unsigned char *)"\0\0\x20\0", 4, &why), -1);
    CU_ASSERT_EQUAL(record_read(&v, (const unsigned char *)"\0\0\0\x10", 4, &why), -1);
    CU_ASSERT_EQUAL(record_read(&v, (const unsigned char *)"\xff\xff\xff\xff", 4, &why), -1);
}

/* F7: every byte value through a text field, as a JSON parser reads it back. */
static void test_escapes(void)
{
    static unsigned char bytes[RECORD_MAX + 32];
    char all[256];
    struct record r;
    struct record_view v;
    struct chain c;
    struct buf line;
    struct render_source from = {12, "gate", "box", ""};
    struct render_head h;
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    record_init(&r, RECORD_DENIED, 5);
    record_put(&r, RF_PATH, (struct slice){all, 256});
    CU_ASSERT_TRUE(encode_read(&r, &v, bytes) > 0);
    chain_genesis(&c);
    buf_init(&line, 1 << 20);
    CU_ASSERT_EQUAL_FATAL(render_line(&line, &c, &v, &from, 99, 1), 0);
    struct slice s = buf_slice(&line);
    for (size_t i = 0; i < s.n; i++)
        CU_ASSERT_TRUE(s.p[i] >= 0x20 && s.p[i] <= 0x7e);
    json_t *j = json_loadb(s.p, s.n, JSON_ALLOW_NUL, NULL);
    const char *text = json_string_value(json_object_get(j, "path"));
    size_t n = json_string_length(json_object_get(j, "path")), at = 0;
    CU_ASSERT_EQUAL(n, 128 + 2 * 128); /* UTF-8 of U+0000..U+00FF */
    for (unsigned i = 0; i < 256 && text && at < n; i++) {
        unsigned char b = (unsigned char)text[at++];
        if (b >= 0x80)
            b = (unsigned char)((b & 3U) << 6 | ((unsigned char)text[at++] & 0x3fU));
        CU_ASSERT_EQUAL(b, i);
    }
    json_decref(j);
    CU_ASSERT_EQUAL(render_parse(s, &h), 0);
    CU_ASSERT_EQUAL(h.seq, 1);
    CU_ASSERT_EQUAL(h.kind, RECORD_DENIED);
    CU_ASSERT_EQUAL(h.channel, 12);
    CU_ASSERT_EQUAL(h.counter, 5);
    CU_ASSERT_EQUAL(h.at, 99);
    buf_free(&line);
}

static void test_ids(void)
{
    struct open_ids *o = open_ids_new();
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    CU_ASSERT_EQUAL(open_ids_begin(o, 5, true), OPEN_IDS_OK);
    CU_ASSERT_EQUAL(open_ids_begin(o, 3, true), OPEN_IDS_OK); /* out of order is fine */
    CU_ASSERT_EQUAL(open_ids_begin(o, 5, true), OPEN_IDS_SECOND);
    CU_ASSERT_EQUAL(open_ids_begin(o, 4, false), OPEN_IDS_OK);
    CU_ASSERT_EQUAL(open_ids_end(o, 4), OPEN_IDS_SECOND); /* denied has no end */
    CU_ASSERT_EQUAL(open_ids_end(o, 5), OPEN_IDS_OK);
    CU_ASSERT_EQUAL(open_ids_end(o, 5), OPEN_IDS_SECOND);
    CU_ASSERT_EQUAL(open_ids_end(o, 6), OPEN_IDS_UNKNOWN);
    CU_ASSERT_EQUAL(open_ids_begin(o, 3 + OPEN_IDS_WINDOW, false), OPEN_IDS_OK);
    CU_ASSERT_EQUAL(open_ids_begin(o, 3, true), OPEN_IDS_SECOND); /* below the window */
    CU_ASSERT_EQUAL(open_ids_end(o, 3), OPEN_IDS_OK);             /* but still open */
    CU_ASSERT_EQUAL(open_ids_count(o), 0);
    CU_ASSERT_EQUAL(open_ids_any(o), 0);
    open_ids_free(o);
}

static void test_ids_many(void)
{
    struct open_ids *o = open_ids_new();
    uint64_t base = 1000, seen = 0;
    for (uint64_t i = 0; i < OPEN_IDS_MAX; i++)
        CU_ASSERT_EQUAL_FATAL(open_ids_begin(o, base + i, true), OPEN_IDS_OK);
    CU_ASSERT_EQUAL(open_ids_begin(o, base + OPEN_IDS_MAX, true), OPEN_IDS_FULL);
    CU_ASSERT_EQUAL(open_ids_begin(o, base + OPEN_IDS_MAX, false), OPEN_IDS_OK);
    for (uint64_t i = 0; i < OPEN_IDS_MAX; i += 2)
        CU_ASSERT_EQUAL_FATAL(open_ids_end(o, base + i), OPEN_IDS_OK);
    for (uint64_t c; (c = open_ids_any(o)) != 0; seen++) {
        CU_ASSERT_TRUE_FATAL((c - base) % 2 == 1);
        CU_ASSERT_EQUAL_FATAL(open_ids_end(o, c), OPEN_IDS_OK);
    }
    CU_ASSERT_EQUAL(seen, OPEN_IDS_MAX / 2);
    open_ids_free(o);
}

/* Each day that a record can have, by arithmetic of our own, is that of the C library. */
static void test_days(void)
{
    char text[TIMESTAMP_MAX], day[32];
    unsigned wrong = 0;
    for (uint64_t d = 0; d <= UINT64_MAX / 1000000000U / 86400; d++) {
        time_t t = (time_t)(d * 86400 + d % 86400);
        struct tm tm;
        if ((uint64_t)t > UINT64_MAX / 1000000000U)
            break;
        CU_ASSERT_FATAL(gmtime_r(&t, &tm) != NULL);
        strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
        timestamp_text((uint64_t)t * 1000000000U, text, sizeof text);
        wrong += strncmp(text, day, 19) != 0;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    timestamp_text(UINT64_MAX, text, sizeof text);
    CU_ASSERT_STRING_EQUAL(text, "2554-07-21T23:34:33.709551615Z");
}

static void test_timestamps(void)
{
    char text[TIMESTAMP_MAX];
    uint64_t ns;
    CU_ASSERT_STRING_EQUAL(timestamp_text(0, text, sizeof text), "1970-01-01T00:00:00.000000000Z");
    CU_ASSERT_STRING_EQUAL(timestamp_text(1795226342123456789ULL, text, sizeof text),
                           "2026-11-21T01:59:02.123456789Z");
    CU_ASSERT_EQUAL(timestamp_parse(text, 0, &ns, NULL), 0);
    CU_ASSERT_EQUAL(ns, 1795226342123456789ULL);
    CU_ASSERT_STRING_EQUAL(timestamp_compact(ns, text, sizeof text), "20261121T015902Z");
    CU_ASSERT_EQUAL(timestamp_parse("2026-11-21T03:59:02+02:00", 0, &ns, NULL), 0);
    CU_ASSERT_EQUAL(ns, 1795226342000000000ULL);
    CU_ASSERT_EQUAL(timestamp_parse("10m", 1000000000000ULL, &ns, NULL), 0);
    CU_ASSERT_EQUAL(ns, 400000000000ULL);
    static const char *const bad[] = {"",
                                      "x",
                                      "10",
                                      "2026-02-30",
                                      "2026-1",
                                      "2026-11-21T",
                                      "2026-11-21Q",
                                      "-5m",
                                      "2026-11-21T01:59:02"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_EQUAL(timestamp_parse(bad[i], 0, &ns, NULL), -1);
}

void suite_record(void)
{
    CU_pSuite s = CU_add_suite("record", NULL, NULL);
    CU_add_test(s, "round trip of every field", test_round_trip);
    CU_add_test(s, "what is left out", test_left_out);
    CU_add_test(s, "long texts are cut, numbers kept", test_cut);
    CU_add_test(s, "the decoder is strict", test_strict);
    CU_add_test(s, "every byte is escaped and comes back", test_escapes);
    CU_add_test(s, "ids are begun and ended once", test_ids);
    CU_add_test(s, "ids are bounded", test_ids_many);
    CU_add_test(s, "times", test_timestamps);
    CU_add_test(s, "each day", test_days);
}

void tap_suites(void)
{
    suite_record();
}
