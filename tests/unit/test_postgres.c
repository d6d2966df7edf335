/* PostgreSQL's messages at every split, first packets, settings, and SCRAM with the vectors of RFC
 * 5802's mechanism for SHA-256 (RFC 7677 3). */
#include "base64.h"
#include "derived_fixture.h"
#include "postgres_message.h"
#include "postgres_startup.h"
#include "scram.h"
#include "scram_proof.h"
#include "tap_main.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void suite_postgres(void);

#define S(lit) ((struct slice){"" lit, sizeof(lit) - 1})

/* ---- messages ---- */

struct reading {
    struct buf types; /* of messages, and of the last pieces of long ones */
    struct buf bytes;
    bool violation;
};

/* Feeds n bytes, `step` at a time, each piece in memory of its exact size. */
static struct reading feed(struct slice all, enum postgres_side side, enum postgres_phase phase,
                           size_t step)
{
    struct reading r = {.violation = false};
    struct postgres_reader reader;
    buf_init(&r.types, 4096);
    buf_init(&r.bytes, 1 << 20);
    postgres_reader_init(&reader, side, phase);
    for (size_t at = 0; at < all.n && !r.violation; at += step) {
        size_t k = all.n - at < step ? all.n - at : step;
        char *exact = malloc(k);
        memcpy(exact, all.p + at, k);
        struct slice in = {exact, k};
        struct postgres_part part;
        enum postgres_event e;
        while ((e = postgres_read(&reader, &in, &part)) != POSTGRES_MORE) {
            if (e == POSTGRES_VIOLATION) {
                r.violation = true;
                CU_ASSERT_PTR_NOT_NULL(reader.why);
                break;
            }
            CU_ASSERT(buf_append(&r.types, &part.type, part.last) == 0);
            CU_ASSERT(postgres_put_part(&r.bytes, &part) == 0); /* as it came */
        }
        free(exact);
    }
    CU_ASSERT(r.violation || postgres_reader_between(&reader));
    postgres_reader_free(&reader);
    return r;
}

struct vector {
    enum postgres_side side;
    enum postgres_phase phase;
    struct slice bytes;
    const char *types; /* NULL: a violation */
};

#define C POSTGRES_CLIENT
#define B POSTGRES_SERVER
#define L POSTGRES_LOGIN
#define N POSTGRES_SESSION
#define V(side, phase, bytes, types)          \
    {                                         \
        side, phase, SLICE_INIT(bytes), types \
    }

static const struct vector vectors[] = {
    V(C, N, "Q\0\0\0\x0dSELECT 1\0", "Q"),
    V(C, N,
      "P\0\0\0\x10\0SELECT 1\0\0\0"
      "S\0\0\0\x04",
      "PS"),
    V(C, N, "P\0\0\0\x10\0SELECT 1\0\0\0", "P"),
    V(C, N, "P\0\0\0\x12n\0SELECT\0\0\x01\0\0\0\x17", NULL), /* a byte short */
    V(C, N, "P\0\0\0\x13n\0SELECT\0\0\x01\0\0\0\x17", "P"),
    V(C, N, "P\0\0\0\x13n\0SELECT\0\0\x02\0\0\0\x17", NULL), /* two types, one is there */
    V(C, N,
      "B\0\0\0\x0c\0\0\0\0\0\0\0\0"
      "E\0\0\0\x09\0\0\0\0\0"
      "S\0\0\0\x04",
      "BES"),
    V(C, N,
      "D\0\0\0\x06S\0"
      "C\0\0\0\x07Px\0"
      "H\0\0\0\x04",
      "DCH"),
    V(C, N, "D\0\0\0\x06X\0", NULL),
    V(C, N,
      "d\0\0\0\x04"
      "d\0\0\0\x07"
      "abc"
      "c\0\0\0\x04"
      "f\0\0\0\x06x\0"
      "X\0\0\0\x04",
      "ddcfX"),
    V(C, N, "F\0\0\0\x0e\0\0\0\x01\0\0\0\0\0\0", "F"),
    V(C, N, "F\0\0\0\x05x", NULL),
    V(C, N, "Q\0\0\0\x04", NULL), /* no text at all */
    V(C, N,
      "Q\0\0\0\x08"
      "ab\0c",
      NULL),                      /* something behind the text */
    V(C, N, "Q\0\0\0\x03", NULL), /* shorter than its own length */
    V(C, N,
      "Q\x7f\xff\xff\xff"
      "a",
      NULL),
    V(C, N,
      "Q\xff\xff\xff\xff"
      "a",
      NULL),
    V(C, N, "Q\0\x10\0\x05", NULL), /* one byte over the bound */
    V(C, N, "S\0\0\0\x05x", NULL),
    V(C, N, "p\0\0\0\x06x\0", NULL), /* a password in mid-session */
    V(C, L, "p\0\0\0\x06x\0", "p"),
    V(C, L, "Q\0\0\0\x0dSELECT 1\0", NULL),
    V(C, N, "z\0\0\0\x04", NULL),
    V(C, N, "\0\0\0\x08\x04\xd2\x16\x2f", NULL), /* a wish for TLS in mid-session */
    V(B, L,
      "R\0\0\0\x08\0\0\0\0"
      "S\0\0\0\x08"
      "a\0b\0"
      "K\0\0\0\x0c\0\0\0\x01\0\0\0\x02"
      "Z\0\0\0\x05I",
      "RSKZ"),
    V(B, L, "R\0\0\0\x07\0\0\0", NULL),
    V(B, L, "K\0\0\0\x0b\0\0\0\x01\0\0\0", NULL),
    V(B, L, "Z\0\0\0\x05X", NULL),
    V(B, L, "D\0\0\0\x06\0\0", NULL), /* rows before there is a session */
    V(B, L, "E\0\0\0\x0cSERROR\0\0", "E"),
    V(B, L, "E\0\0\0\x0bSERROR\0", NULL), /* without its end */
    V(B, L, "E\0\0\0\x05\0", "E"),
    V(B, L, "v\0\0\0\x0f\0\x03\0\0\0\0\0\x01x\0\0", NULL),
    V(B, L, "v\0\0\0\x0e\0\x03\0\0\0\0\0\x01x\0", "v"),
    V(B, N,
      "T\0\0\0\x06\0\0"
      "D\0\0\0\x06\0\0"
      "C\0\0\0\x0dSELECT 1\0"
      "I\0\0\0\x04"
      "1\0\0\0\x04",
      "TDCI1"),
    V(B, N,
      "A\0\0\0\x0e\0\0\0\x01"
      "ch\0pl\0",
      "A"),
    V(B, N,
      "G\0\0\0\x09\0\0\x01\0\0"
      "H\0\0\0\x07\0\0\0"
      "s\0\0\0\x04",
      "GHs"),
    V(B, N, "G\0\0\0\x07\0\0\x01", NULL),
    V(B, N, "W\0\0\0\x07\0\0\0", NULL),     /* replication */
    V(B, N, "V\0\0\0\x08\0\0\0\0", NULL),   /* what no call was made for */
    V(B, N, "R\0\0\0\x08\0\0\0\x03", NULL), /* a question for the password in mid-session */
    V(B, N, "K\0\0\0\x0c\0\0\0\x01\0\0\0\x02", NULL),
};

static void test_messages(void)
{
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        const struct vector *v = &vectors[i];
        for (size_t step = 1; step <= v->bytes.n; step++) {
            struct reading r = feed(v->bytes, v->side, v->phase, step);
            bool right = v->types ? !r.violation && slice_eq_str(buf_slice(&r.types), v->types)
                                  : r.violation;
            if (!right)
                printf("# message vector %zu at %zu bytes: '%.*s'\n", i, step,
                       SL(buf_slice(&r.types)));
            CU_ASSERT(right);
            CU_ASSERT(v->types == NULL || slice_eq(v->bytes, buf_slice(&r.bytes)));
            buf_free(&r.types);
            buf_free(&r.bytes);
        }
    }
}

static void test_fields(void)
{
    struct slice text;
    struct slice error = S("SERROR\0VERROR\0C42501\0Mno\0\0");
    CU_ASSERT(slice_eq_str(postgres_field(error, 'C'), "42501"));
    CU_ASSERT(slice_eq_str(postgres_field(error, 'M'), "no"));
    CU_ASSERT_PTR_NULL(postgres_field(error, 'H').p);
    CU_ASSERT_EQUAL(postgres_rows(S("SELECT 12\0")), 12);
    CU_ASSERT_EQUAL(postgres_rows(S("INSERT 0 3\0")), 3);
    CU_ASSERT_EQUAL(postgres_rows(S("SET\0")), 0);
    CU_ASSERT_EQUAL(postgres_rows(S("CREATE TABLE\0")), 0);
    CU_ASSERT(postgres_only_value(S("\0\x01\0\0\0\x02ok"), &text) == 0 && slice_eq_str(text, "ok"));
    CU_ASSERT(postgres_only_value(S("\0\x01\xff\xff\xff\xff"), &text) == 0 && text.p == NULL);
    CU_ASSERT_EQUAL(postgres_only_value(S("\0\x02\0\0\0\0"), &text), -1);
    CU_ASSERT_EQUAL(postgres_only_value(S("\0\x01\0\0\0\x03ok"), &text), -1);
    CU_ASSERT_EQUAL(postgres_only_value(S("\0\x01\0\0\0\x01ok"), &text), -1);
}

/* What is written reads as what it is, and what does not fit leaves nothing. */
static void test_writing(void)
{
    for (size_t max = 0; max < 140; max++) {
        struct buf out;
        buf_init(&out, max);
        size_t whole = 0;
        const char *types = "QPESRZ";
        int made[6] = {
            postgres_put_query(&out, S("SELECT 1")),
            postgres_put_parse(&out, S("n"), S("SELECT 2")),
            postgres_put_error(&out, "ERROR", "42501", S("refused")),
            postgres_put_parameter(&out, S("a"), S("b")),
            postgres_put_authentication(&out, 12, S("v=x")),
            postgres_put_ready(&out, 'T'),
        };
        struct slice in = buf_slice(&out);
        for (int i = 0; i < 6; i++)
            if (made[i] == 0) {
                CU_ASSERT_FATAL(in.n >= 5);
                CU_ASSERT_EQUAL(in.p[0], types[i]);
                size_t n = 1 + ((size_t)(unsigned char)in.p[3] << 8 | (unsigned char)in.p[4]);
                CU_ASSERT_FATAL(in.n >= n);
                in = (struct slice){in.p + n, in.n - n};
                whole++;
            }
        CU_ASSERT_EQUAL(in.n, 0);
        CU_ASSERT(max < 139 || whole == 6);
        buf_free(&out);
    }
    struct buf out;
    buf_init(&out, 1000);
    CU_ASSERT_EQUAL(postgres_put_query(&out, S("a\0b")), -1);
    CU_ASSERT_EQUAL(buf_len(&out), 0);
    buf_free(&out);
}

/* ---- first packets ---- */

static int startup(struct slice body, struct postgres_startup *s, char why[768])
{
    struct err err = {.text = ""};
    unsigned char *packet = malloc(body.n + 4);
    size_t n = body.n + 4;
    for (unsigned i = 0; i < 4; i++)
        packet[i] = (unsigned char)(n >> (24 - 8 * i));
    memcpy(packet + 4, body.p, body.n);
    static unsigned char *kept; /* slices lie in it */
    free(kept);
    kept = packet;
    int r = postgres_startup_read((struct slice){(char *)packet, n}, s, &err);
    memcpy(why, err.text, 768);
    return r;
}

static void test_startup(void)
{
    struct postgres_startup s;
    char why[768];
    CU_ASSERT_EQUAL(startup(S("\0\x03\0\0user\0a\0database\0d\0DateStyle\0ISO\0\0"), &s, why), 0);
    CU_ASSERT(slice_eq_str(s.user, "a") && slice_eq_str(s.database, "d") && s.n == 1);
    CU_ASSERT(slice_eq_str(s.settings[0].value, "ISO") && !s.extensions);
    CU_ASSERT_EQUAL(startup(S("\0\x03\0\x02user\0a\0\0"), &s, why), 0);
    CU_ASSERT(s.extensions);
    CU_ASSERT_EQUAL(startup(S("\0\x03\0\0user\0a\0_pq_.x\0y\0\0"), &s, why), 0);
    CU_ASSERT(s.extensions && s.n == 0);
    CU_ASSERT_EQUAL(startup(S("\x04\xd2\x16\x2f"), &s, why), 0);
    CU_ASSERT_EQUAL(s.code, POSTGRES_SSL);
    CU_ASSERT_EQUAL(startup(S("\x04\xd2\x16\x30"), &s, why), 0);
    CU_ASSERT_EQUAL(startup(S("\x04\xd2\x16\x2e\0\0\0\x01\0\0\0\x02"), &s, why), 0);
    CU_ASSERT(s.cancel.process == 1 && s.cancel.key == 2);
    static const struct slice bad[] = {
        SLICE_INIT("\0\x02\0\0user\0a\0\0"),          /* protocol 2 */
        SLICE_INIT("\0\x04\0\0user\0a\0\0"),          /* protocol 4 */
        SLICE_INIT("\0\x03\0\0user\0a\0user\0b\0\0"), /* twice */
        SLICE_INIT("\0\x03\0\0database\0a\0database\0b\0\0"),
        SLICE_INIT("\0\x03\0\0user\0a\0x\0"
                   "1\0X\0"
                   "2\0\0"),               /* twice, to a server */
        SLICE_INIT("\0\x03\0\0user\0a\0"), /* without its end */
        SLICE_INIT("\0\x03\0\0user\0a"),
        SLICE_INIT("\0\x03\0\0user\0a\0\0more"),
        SLICE_INIT("\x04\xd2\x16\x2f\0"), /* a wish that goes on */
        SLICE_INIT("\x04\xd2\x16\x2e\0\0\0\x01\0\0\0"),
        SLICE_INIT("\0\0"),
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CU_ASSERT_EQUAL(startup(bad[i], &s, why), -1);
        CU_ASSERT(why[0] != 0);
    }
    char many[4096] = "\0\x03\0";
    size_t n = 4;
    for (int i = 0; i <= POSTGRES_SETTINGS_MAX; i++)
        n += (size_t)snprintf(many + n, sizeof many - n, "s%d%c%d", i, 0, i) + 1;
    CU_ASSERT_EQUAL(startup((struct slice){many, n + 1}, &s, why), -1);
    CU_ASSERT_EQUAL(postgres_startup_length(S("\0\0\0")), 0);
    CU_ASSERT_EQUAL(postgres_startup_length(S("\0\0\x27\x11\0\x03\0\0")), -1);
    CU_ASSERT_EQUAL(postgres_startup_length(S("\0\0\x27\x10\0\x03\0\0")), 10000);
    CU_ASSERT_EQUAL(postgres_startup_length(S("\0\0\0\x07\0\x03\0\0")), -1);
}

static int options(const char *text, struct postgres_startup *s)
{
    static struct buf words;
    struct err err;
    buf_free(&words);
    buf_init(&words, POSTGRES_STARTUP_MAX);
    memset(s, 0, sizeof *s);
    return postgres_options_read(slice_str(text), &words, s, &err);
}

static void test_options(void)
{
    struct postgres_startup s;
    CU_ASSERT_EQUAL(
        options("-c search_path=a,b  -cgeqo=off --statement-timeout=5 -c x.y=a\\ b\\\\", &s), 0);
    CU_ASSERT_EQUAL_FATAL(s.n, 4);
    CU_ASSERT(slice_eq_str(s.settings[0].name, "search_path"));
    CU_ASSERT(slice_eq_str(s.settings[0].value, "a,b"));
    CU_ASSERT(slice_eq_str(s.settings[1].name, "geqo"));
    CU_ASSERT(slice_eq_str(s.settings[2].name, "statement_timeout"));
    CU_ASSERT(slice_eq_str(s.settings[3].value, "a b\\"));
    CU_ASSERT(options("", &s) == 0 && s.n == 0);
    static const char *const bad[] = {"-c",        "-r out",        "-c x", "x=y",
                                      "-F -c a=b", "-c a=1 -c A=2", "-d 5", "--",
                                      "-c =x",     "-W 10",         "-o x", "-e"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_EQUAL(options(bad[i], &s), -1);
}

static void test_settings(void)
{
    CU_ASSERT_EQUAL(postgres_setting_kind(S("ROLE")), POSTGRES_SETTING_ROLE);
    CU_ASSERT_EQUAL(postgres_setting_kind(S("Session_Authorization")), POSTGRES_SETTING_ROLE);
    CU_ASSERT_EQUAL(postgres_setting_kind(S("transaction_read_only")), POSTGRES_SETTING_READ_ONLY);
    CU_ASSERT_EQUAL(postgres_setting_kind(S("client_encoding")), POSTGRES_SETTING_ENCODING);
    CU_ASSERT_EQUAL(postgres_setting_kind(S("search_path")), POSTGRES_SETTING_FREE);
    CU_ASSERT_EQUAL(postgres_setting_kind(S("replication")), POSTGRES_SETTING_READING);
    CU_ASSERT(postgres_encoding_ok(S("utf8")) && postgres_encoding_ok(S("UTF-8")));
    CU_ASSERT(postgres_encoding_ok(S("'utf-8'")) &&
              postgres_encoding_ok(S(" UTF_8"))); /* asyncpg */
    CU_ASSERT(postgres_encoding_ok(S("Unicode")));
    CU_ASSERT(!postgres_encoding_ok(S("SJIS")) && !postgres_encoding_ok(S("")));
    CU_ASSERT(!postgres_encoding_ok(S("utf88")) && !postgres_encoding_ok(S("unicodex")));
    CU_ASSERT(!postgres_encoding_ok(S("utf8,utf8")) && !postgres_encoding_ok(S("utf")));
    CU_ASSERT(postgres_bool(S("ON")) == 1 && postgres_bool(S("t")) == 1 &&
              postgres_bool(S("1")) == 1);
    CU_ASSERT(postgres_bool(S("of")) == 0 && postgres_bool(S("No")) == 0 &&
              postgres_bool(S("0")) == 0);
    CU_ASSERT(postgres_bool(S("o")) == -1 && postgres_bool(S("")) == -1 &&
              postgres_bool(S("onn")) == -1);
}

static void test_packets_written(void)
{
    struct buf out;
    struct postgres_startup s;
    struct err err;
    buf_init(&out, 1000);
    CU_ASSERT(buf_append_str(&out, "xy") == 0 && postgres_startup_begin(&out) == 0 &&
              postgres_startup_put(&out, S("user"), S("a")) == 0 &&
              postgres_startup_put(&out, S("role"), S("b")) == 0 &&
              postgres_startup_end(&out, 2) == 0);
    buf_drain(&out, 2);
    CU_ASSERT_EQUAL(postgres_startup_read(buf_slice(&out), &s, &err), 0);
    CU_ASSERT(slice_eq_str(s.user, "a") && s.n == 1);
    buf_clear(&out);
    CU_ASSERT(postgres_cancel_put(&out, (struct postgres_cancel){7, 0xfffffffe}) == 0);
    CU_ASSERT_EQUAL(postgres_startup_read(buf_slice(&out), &s, &err), 0);
    CU_ASSERT(s.code == POSTGRES_CANCEL && s.cancel.process == 7 && s.cancel.key == 0xfffffffe);
    buf_clear(&out);
    CU_ASSERT(postgres_request_put(&out, POSTGRES_SSL) == 0);
    CU_ASSERT_EQUAL(postgres_startup_read(buf_slice(&out), &s, &err), 0);
    buf_free(&out);
}

/* ---- SCRAM ---- */

/* RFC 7677 3: user, password "pencil", the salt and nonces written there. */
static void test_rfc7677(void)
{
    static const char text[] =
        "n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        "s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,"
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    unsigned char salt[24];
    struct buf made, shown;
    buf_init(&made, SCRAM_SIGNED);
    buf_init(&shown, 200);
    ssize_t n = base64_read(S("W22ZaJ0SNY7soEsUEjb6gQ=="), salt, sizeof salt);
    CU_ASSERT_EQUAL_FATAL(n, 16);
    CU_ASSERT_EQUAL_FATAL(
        scram_compute(S("pencil"), (struct slice){(char *)salt, 16}, 4096, slice_str(text), &made),
        0);
    struct slice both = buf_slice(&made);
    CU_ASSERT_EQUAL_FATAL(both.n, SCRAM_SIGNED);
    CU_ASSERT_EQUAL(base64_append(&shown, (struct slice){both.p, SCRAM_HASH}), 0);
    CU_ASSERT(slice_eq_str(buf_slice(&shown), "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="));
    buf_clear(&shown);
    CU_ASSERT_EQUAL(base64_append(&shown, (struct slice){both.p + SCRAM_HASH, SCRAM_HASH}), 0);
    CU_ASSERT(slice_eq_str(buf_slice(&shown), "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
    buf_free(&made);
    buf_free(&shown);
}

#define NONCE  "abcdefghijklmnopqrstuvwx"
#define SALT   "W22ZaJ0SNY7soEsUEjb6gQ=="
#define SERVER "r=" NONCE "SERVER,s=" SALT ",i=4096"

static void begin(struct scram *s, enum scram_channel channel)
{
    scram_init(s, NONCE, channel, channel == SCRAM_BOUND ? S("0123456789abcdef") : S(""));
}

/* The whole exchange, against a server that is computed here from the same password. */
static void test_exchange(void)
{
    static const struct {
        enum scram_channel channel;
        const char *first, *bound;
    } ways[] = {
        {SCRAM_UNBOUND, "n,,n=,r=" NONCE, "c=biws,r=" NONCE "SERVER,p="},
        {SCRAM_UNOFFERED, "y,,n=,r=" NONCE, "c=eSws,r=" NONCE "SERVER,p="},
        {SCRAM_BOUND, "p=tls-server-end-point,,n=,r=" NONCE,
         "c=cD10bHMtc2VydmVyLWVuZC1wb2ludCwsMDEyMzQ1Njc4OWFiY2RlZg==,r=" NONCE "SERVER,p="},
    };
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        struct scram s;
        struct err err = {.text = ""};
        struct buf out, made;
        char last[100];
        buf_init(&out, 4096);
        buf_init(&made, SCRAM_SIGNED);
        begin(&s, ways[i].channel);
        CU_ASSERT(scram_first(&s, &out) == 0 && slice_eq_str(buf_slice(&out), ways[i].first));
        CU_ASSERT_EQUAL(scram_server_first(&s, S(SERVER), &err), 0);
        struct scram_keys *keys = scram_keys_new();
        CU_ASSERT_PTR_NOT_NULL_FATAL(keys);
        CU_ASSERT_EQUAL_FATAL(scram_proof(keys, S("secret"), scram_text(&s), 1, &made, &err), 0);
        scram_keys_free(keys);
        buf_clear(&out);
        CU_ASSERT_EQUAL(scram_final(&s, buf_data(&made), &out), 0);
        CU_ASSERT(slice_starts(buf_slice(&out), slice_str(ways[i].bound)));
        struct buf v;
        buf_init(&v, 100);
        const unsigned char *signature = buf_data(&made) + SCRAM_HASH;
        CU_ASSERT_EQUAL(base64_append(&v, (struct slice){(const char *)signature, SCRAM_HASH}), 0);
        snprintf(last, sizeof last, "v=%.*s", SL(buf_slice(&v)));
        CU_ASSERT_EQUAL(scram_server_final(slice_str(last), signature, &err), 0);
        last[5] = last[5] == 'A' ? 'B' : 'A';
        CU_ASSERT_EQUAL(scram_server_final(slice_str(last), signature, &err), -1);
        CU_ASSERT_EQUAL(scram_server_final(S("e=invalid-proof"), signature, &err), -1);
        CU_ASSERT_EQUAL(scram_server_final(S(""), signature, &err), -1);
        snprintf(last, sizeof last, "v=%.*s,x=1", SL(buf_slice(&v)));
        CU_ASSERT_EQUAL(scram_server_final(slice_str(last), signature, &err), -1);
        buf_free(&v);
        buf_free(&out);
        buf_free(&made);
        scram_free(&s);
    }
}

static void test_server_first(void)
{
    static const char *const bad[] = {
        "r=" NONCE ",s=" SALT ",i=4096",                      /* nothing of the server's own */
        "r=bbcdefghijklmnopqrstuvwxSERVER,s=" SALT ",i=4096", /* not our nonce */
        "r=" NONCE "S,s=" SALT ",i=4095",                     /* too few */
        "r=" NONCE "S,s=" SALT ",i=100001",                   /* too many */
        "r=" NONCE "S,s=" SALT ",i=04096",
        "r=" NONCE "S,s=" SALT ",i=",
        "r=" NONCE "S,s=" SALT ",i=4096x",
        "r=" NONCE "S,s=" SALT ",i=-1",
        "r=" NONCE "S,s=,i=4096",
        "r=" NONCE "S,s=W22ZaJ0SNY7soEsUEjb6gQ,i=4096",
        "r=" NONCE "S,i=4096,s=" SALT,
        "r=" NONCE "S,s=" SALT ",i=4096,m=x",
        "r=" NONCE "S,s=" SALT ",i=4096,",
        "m=x,r=" NONCE "S,s=" SALT ",i=4096",
        "r=" NONCE "\x7f,s=" SALT ",i=4096",
        "e=other-error",
        "",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct scram s;
        struct err err = {.text = ""};
        begin(&s, SCRAM_UNBOUND);
        CU_ASSERT_EQUAL(scram_server_first(&s, slice_str(bad[i]), &err), -1);
        CU_ASSERT(err.text[0] != 0);
        scram_free(&s);
    }
}

/* A text that is no exchange of a client of PostgreSQL's gets no proof. */
static void test_what_is_signed(void)
{
#define FIRST "n=,r=" NONCE ","
    static const char *const bad[] = {
        "n=admin,r=" NONCE "," SERVER ",c=biws,r=" NONCE "SERVER",
        "n=,r=short," SERVER ",c=biws,r=" NONCE "SERVER",
        FIRST SERVER ",c=biws,r=" NONCE "OTHER",
        FIRST SERVER ",c=biws,r=" NONCE "SERVER,p=x",
        FIRST SERVER ",c=biws",
        FIRST SERVER,
        FIRST "r=" NONCE "SERVER,s=" SALT ",i=1,c=biws,r=" NONCE "SERVER",
        "Server Key",
        "",
    };
    struct buf out;
    struct scram_keys *keys = scram_keys_new();
    CU_ASSERT_PTR_NOT_NULL_FATAL(keys);
    buf_init(&out, 1000);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err;
        CU_ASSERT_EQUAL(scram_proof(keys, S("secret"), slice_str(bad[i]), 1, &out, &err), -1);
        CU_ASSERT_EQUAL(buf_len(&out), 0);
    }
    buf_free(&out);
    scram_keys_free(keys);
}

/* What a salt gives. *made: it was not there. -1: it is not made now. */
static int keys_of(struct scram_keys *k, struct slice password, unsigned salt, uint32_t iterations,
                   int64_t now, struct scram_pair *ret, bool *made)
{
    char text[16];
    struct err err = {.text = ""};
    int n = snprintf(text, sizeof text, "salt %u", salt);
    return scram_keys_get(k, password, (struct slice){text, (size_t)n}, iterations, now, ret, made,
                          &err);
}

static void test_keys_are_kept(void)
{
    struct scram_keys *k = scram_keys_new();
    struct scram_pair first, pair, alone;
    bool made;
    CU_ASSERT_PTR_NOT_NULL_FATAL(k);
    CU_ASSERT(keys_of(k, S("secret"), 1, 4096, 1, &first, &made) == 0 && made);
    CU_ASSERT(keys_of(k, S("secret"), 1, 4096, 1, &pair, &made) == 0 && !made);
    CU_ASSERT(memcmp(&pair, &first, sizeof pair) == 0);
    CU_ASSERT_EQUAL(scram_keys_make(S("secret"), S("salt 1"), 4096, &alone), 0);
    CU_ASSERT(memcmp(&pair, &alone, sizeof pair) == 0);
    CU_ASSERT(keys_of(k, S("secret"), 1, 4097, 1, &pair, &made) == 0 && made);
    CU_ASSERT(memcmp(&pair, &first, sizeof pair) != 0);
    CU_ASSERT(keys_of(k, S("other"), 1, 4096, 1, &pair, &made) == 0 && made);
    CU_ASSERT(memcmp(&pair, &first, sizeof pair) != 0);
    CU_ASSERT(keys_of(k, S("secret"), 1, 4096, 1, &pair, &made) == 0 && made);
    scram_keys_forget(k);
    CU_ASSERT(keys_of(k, S("secret"), 1, 4096, 1, &pair, &made) == 0 && made);
    CU_ASSERT_EQUAL(scram_keys_make(S("secret"), S("s"), SCRAM_ITERATIONS_MOST + 1, &pair), -1);
    scram_keys_free(k);
}

/* As many as are kept, and then the one that nobody asked for longest goes. */
static void test_keys_bound(void)
{
    struct scram_keys *k = scram_keys_new();
    struct scram_pair pair;
    bool made;
    CU_ASSERT_PTR_NOT_NULL_FATAL(k);
    for (unsigned i = 0; i < SCRAM_KEYS_MAX; i++)
        CU_ASSERT(keys_of(k, S("secret"), i, 4096, 1, &pair, &made) == 0 && made);
    CU_ASSERT(keys_of(k, S("secret"), 0, 4096, 1, &pair, &made) == 0 && !made);
    CU_ASSERT(keys_of(k, S("secret"), SCRAM_KEYS_MAX, 4096, 1, &pair, &made) == 0 && made);
    CU_ASSERT(keys_of(k, S("secret"), 0, 4096, 1, &pair, &made) == 0 && !made);
    CU_ASSERT(keys_of(k, S("secret"), 1, 4096, 1, &pair, &made) == 0 && made);
    scram_keys_free(k);
}

/* Who chooses salts gets so many keys made, and after that one a second; what is kept is free. */
static void test_keys_rate(void)
{
    struct scram_keys *k = scram_keys_new();
    struct scram_pair pair;
    bool made;
    unsigned i = 0;
    CU_ASSERT_PTR_NOT_NULL_FATAL(k);
    while (i < 2 * SCRAM_KEYS_BURST && keys_of(k, S("secret"), i, 4096, 9, &pair, &made) == 0)
        i++;
    CU_ASSERT_EQUAL(i, SCRAM_KEYS_BURST);
    CU_ASSERT(keys_of(k, S("secret"), i - 1, 4096, 9, &pair, &made) == 0 && !made);
    CU_ASSERT_EQUAL(keys_of(k, S("secret"), i, 4096, 9, &pair, &made), -1);
    CU_ASSERT_EQUAL(keys_of(k, S("secret"), i, 4096, 10, &pair, &made), 0);
    CU_ASSERT_EQUAL(keys_of(k, S("secret"), i + 1, 4096, 10, &pair, &made), -1);
    scram_keys_free(k);
}

static const struct derived_whose nobody = {"", ""};

/* A login proves itself no weaker way than its declaration says. */
static void test_declared(void)
{
    static const struct {
        const char *auth;
        bool md5, clear;
    } rows[] = {{"scram-sha-256", false, false}, {"md5", true, false}, {"password", true, true}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char json[200];
        struct err err = {.text = ""};
        struct buf out;
        snprintf(
            json, sizeof json,
            "{\"kind\":\"postgres_login\",\"user\":\"agent\",\"password\":\"p\",\"auth\":\"%s\"}",
            rows[i].auth);
        struct derived *d = derived_made(json);
        buf_init(&out, 1000);
        CU_ASSERT(derived_signs(d) && derived_is_local(d));
        struct secret *told = derived_told(d, S("secret"));
        CU_ASSERT_PTR_NOT_NULL_FATAL(told);
        snprintf(json, sizeof json, "%s agent", rows[i].auth);
        CU_ASSERT(slice_eq_str(secret_slice(told), json));
        secret_unref(told);
        CU_ASSERT_EQUAL(derived_sign(d, &nobody, S("secret"), SCRAM_SHA_256,
                                     S(FIRST SERVER ",c=biws,r=" NONCE "SERVER"), &out, &err),
                        0);
        CU_ASSERT_EQUAL(buf_len(&out), SCRAM_SIGNED);
        buf_clear(&out);
        CU_ASSERT_EQUAL(derived_sign(d, &nobody, S("secret"), SCRAM_MD5, S("\x01\x02\x03\x04"),
                                     &out, &err) == 0,
                        rows[i].md5);
        if (rows[i].md5) /* md5(md5("secret" "agent") in hex, the salt) */
            CU_ASSERT(slice_eq_str(buf_slice(&out), "md578f6f2e5299d91a5ab1c30bf8cae9aec"));
        buf_clear(&out);
        CU_ASSERT_EQUAL(
            derived_sign(d, &nobody, S("secret"), SCRAM_MD5, S("\x01\x02\x03"), &out, &err), -1);
        CU_ASSERT_EQUAL(derived_sign(d, &nobody, S("secret"), SCRAM_CLEARTEXT, S(""), &out, &err) ==
                            0,
                        rows[i].clear);
        CU_ASSERT_EQUAL(buf_len(&out), rows[i].clear ? 6 : 0);
        CU_ASSERT_EQUAL(derived_sign(d, &nobody, S("secret"), 0, S("x"), &out, &err), -1);
        CU_ASSERT_EQUAL(derived_sign(d, &nobody, S("secret"), 0x0403, S("x"), &out, &err), -1);
        buf_free(&out);
        derived_free(d);
    }
}

void suite_postgres(void)
{
    CU_pSuite s = CU_add_suite("postgres", NULL, NULL);
    CU_add_test(s, "messages at every split", test_messages);
    CU_add_test(s, "what messages hold", test_fields);
    CU_add_test(s, "messages written", test_writing);
    CU_add_test(s, "first packets", test_startup);
    CU_add_test(s, "options", test_options);
    CU_add_test(s, "settings", test_settings);
    CU_add_test(s, "first packets written", test_packets_written);
    CU_add_test(s, "SCRAM-SHA-256: RFC 7677", test_rfc7677);
    CU_add_test(s, "SCRAM: the exchange", test_exchange);
    CU_add_test(s, "SCRAM: what a server may say", test_server_first);
    CU_add_test(s, "SCRAM: what is signed", test_what_is_signed);
    CU_add_test(s, "SCRAM: keys are kept", test_keys_are_kept);
    CU_add_test(s, "SCRAM: so many keys are kept", test_keys_bound);
    CU_add_test(s, "SCRAM: keys are made so often", test_keys_rate);
    CU_add_test(s, "no weaker login than declared", test_declared);
}

void tap_suites(void)
{
    suite_postgres();
}
