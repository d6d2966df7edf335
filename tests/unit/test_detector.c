/* Detectors: what each finds and what only looks like it; bodies in pieces of any size, in JSON and
 * in forms, are judged as they are whole; what is taken out is as long as it was. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "detect_stream.h"
#include "detector.h"
#include "detect_written.h"
#include "detector_internal.h"
#include "tap_main.h"

void suite_detector(void);

#define A36     "0123456789abcdefghijklmnopqrstuvwxyz"
#define GITHUB  "ghp_" A36
#define LINE    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj+gEAA/IBAQC7VJTU+9Us8cKj"
#define PEM_KEY "-----BEGIN PRIVATE KEY-----\n" LINE "\n" LINE "\n-----END PRIVATE KEY-----"
#define JWT_ONE "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"

enum { OUT_MAX = 400000 };

struct told {
    char out[OUT_MAX];
    size_t n;
    enum detect_end end;
    uint32_t counts[DETECTORS];
};

static struct told *told;

static bool own_is(void *arg, struct slice text)
{
    return arg && slice_eq_str(text, arg);
}

static void drain(struct detect_stream *s)
{
    struct slice ready = detect_stream_ready(s);
    CU_ASSERT_FATAL(told->n + ready.n <= OUT_MAX);
    memcpy(told->out + told->n, ready.p, ready.n);
    told->n += ready.n;
    detect_stream_went(s, ready.n);
}

/* The body in pieces, into told. */
static void pass(struct detect_rules rules, enum detect_form form, const char *own,
                 struct slice body, size_t piece)
{
    struct detect_stream *s = detect_stream_new(&rules, form, own_is, (void *)(uintptr_t)own);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    told->n = 0;
    for (size_t i = 0; i < body.n && detect_stream_state(s) == DETECT_PASSES;) {
        size_t n = body.n - i < piece ? body.n - i : piece;
        CU_ASSERT_FATAL(detect_stream_room(s) > 0);
        n = n < detect_stream_room(s) ? n : detect_stream_room(s);
        detect_stream_take(s, body.p + i, n);
        i += n;
        drain(s);
    }
    if (detect_stream_state(s) == DETECT_PASSES)
        detect_stream_end(s);
    drain(s);
    told->end = detect_stream_state(s);
    memcpy(told->counts, detect_stream_counts(s), sizeof told->counts);
    detect_stream_free(s);
}

static void pass_cut(struct detect_rules rules, enum detect_form f, struct slice body, size_t cut)
{
    struct detect_stream *s = detect_stream_new(&rules, f, own_is, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    told->n = 0;
    detect_stream_take(s, body.p, cut);
    drain(s);
    if (detect_stream_state(s) == DETECT_PASSES)
        detect_stream_take(s, body.p + cut, body.n - cut);
    drain(s);
    if (detect_stream_state(s) == DETECT_PASSES)
        detect_stream_end(s);
    drain(s);
    told->end = detect_stream_state(s);
    memcpy(told->counts, detect_stream_counts(s), sizeof told->counts);
    detect_stream_free(s);
}

/* ---- what is found ---- */

struct row {
    const char *what, *text, *match; /* NULL: nothing is found */
};

static const struct row rows[] = {
    {"github", "token " GITHUB " here", GITHUB},
    {"github", "x" GITHUB, NULL},
    {"github", "ghp_tooshort1234", NULL},
    {"github", "https://" GITHUB "@github.com/", GITHUB},
    {"github", "github_pat_" A36 "_x", "github_pat_" A36 "_x"},
    {"aws", "id=AKIAIOSFODNN7EXAMQLE\n", "AKIAIOSFODNN7EXAMQLE"},
    {"aws", "id=AKIAIOSFODNN7EXAMPLE\n", NULL}, /* the one that documents print */
    {"aws", "AKIAIOSFODNN7EXAMQLEX", NULL},
    {"aws", "AKIAiosfodnn7examqle", NULL},
    {"github", "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", NULL},
    {"gitlab", "glpat-XXXXXXXXXXX-XXXXXXXX", NULL},
    {"named", "api_token = \"m1rp3cugt03pws0ku\"", "m1rp3cugt03pws0ku"},
    {"named", "{\"clientSecret\": \"7f9d1c2ab44e0b58\", \"a\": 1}", "7f9d1c2ab44e0b58"},
    {"named", "someKey := `q6eSvkiiKAcM6gYjQeBeYDm1` it", "q6eSvkiiKAcM6gYjQeBeYDm1"},
    {"named", "Authorization: Bearer q6eSvkiiKAcM6gYjQeBeYDm1\r\n", "q6eSvkiiKAcM6gYjQeBeYDm1"},
    {"named", "SNYK_TOKEN=12345678-ABCD-ABCD-ABCD-1234567890AB",
     "12345678-ABCD-ABCD-ABCD-1234567890AB"},
    {"named", "password: 'bP88Q~rcBcYjzzOhg1Hnn76Wm3jG'", "bP88Q~rcBcYjzzOhg1Hnn76Wm3jG"},
    {"named", "token = next_token(stream, 12)", NULL},
    {"named", "token: string, secret: number", NULL},
    {"named", "a token is 1732224000 and more", NULL},
    {"named", "token: \"one-of-many-names-here\"", NULL},
    {"named", "token: 17322240001732224000", NULL},
    {"named", "publicKey = \"9Cnzj4p4WGeKLs1Pt8QuKUpRKfFLfRYC9\"", NULL},
    {"named", "key = \"9Cnzj4p4WGeKLs1Pt8QuKUpRKfFLfRYC9\"", NULL},
    {"named", "token = \"xxxxxxxx11xxxxxxxx\"", NULL},
    {"named", "api_key: \"q6eSvkiiKAcM6gYjQ {short} of what\"", NULL},
    {"jwt",
     "b ZXlKaGJHY2lPaUpJVXpJMU5pSjkuZXlKemRXSWlPaUl4TWpNME5UWTNPRGt3SW4wLmRvempnTnJ5UDRKM2pW e",
     "ZXlKaGJHY2lPaUpJVXpJMU5pSjkuZXlKemRXSWlPaUl4TWpNME5UWTNPRGt3SW4wLmRvempnTnJ5UDRKM2pW"},
    {"aws", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n",
     "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"},
    {"aws", "aws_secret_access_key is forty letters of the alphabet, and more", NULL},
    {"google", "key AIzaSyA0123456789abcdefghijklmnopqrstuv.",
     "AIzaSyA0123456789abcdefghijklmnopqrstuv"},
    {"gitlab", "glpat-0123456789abcdefghij.", "glpat-0123456789abcdefghij"},
    {"slack", "xoxb-123456789012-123456789012-abcdefghijklmnop",
     "xoxb-123456789012-123456789012-abcdefghijklmnop"},
    {"stripe", "\"sk_live_0123456789abcdefghijklmn\"", "sk_live_0123456789abcdefghijklmn"},
    {"model", "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz",
     "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz"},
    {"model", "sk-a-class-name-of-some-style-sheet-that-is-long", NULL},
    {"token", "npm_" A36, "npm_" A36},
    {"jwt", "Bearer " JWT_ONE ",", JWT_ONE},
    {"jwt", "eyJhbGciOiJIUzI1NiJ9.notanobject.sig", NULL},
    {"private_key", "a " PEM_KEY " b", PEM_KEY},
    {"private_key", "write -----BEGIN PRIVATE KEY----- above the base64 text of the key, please",
     NULL},
    {"private_key", "-----BEGIN CERTIFICATE-----\n" LINE "\n-----END CERTIFICATE-----", NULL},
    {"private_key", "-----BEGIN EC PRIVATE KEY-----\n" LINE "\"",
     "-----BEGIN EC PRIVATE KEY-----\n" LINE},
    {"url_password", "postgres://bob:hunter22@db/x", "hunter22"},
    {"url_password", "postgres://bob:${PASSWORD}@db/x", NULL},
    {"url_password", "http://host:8080/a@b", NULL},
    {"card", "pay 4111 1111 1111 1111 now", "4111 1111 1111 1111"},
    {"card", "4111111111111111", "4111111111111111"},
    {"card", "4111-1111-1111-1111", "4111-1111-1111-1111"},
    {"card", "4111-1111 1111-1111", NULL},
    {"card", "4111111111111112", NULL},
    {"card", "14111111111111111", NULL},
    {"card", "0.4111111111111111", NULL},
    {"card", "x4111111111111111", NULL},
    {"card", "378282246310005.", "378282246310005"},
    {"card", "30569309025904", "30569309025904"},
    {"card", "5555 5555 5555 4444 12/27", "5555 5555 5555 4444"},
    {"iban", "to DE89 3704 0044 0532 0130 00.", "DE89 3704 0044 0532 0130 00"},
    {"iban", "GB29NWBK60161331926819", "GB29NWBK60161331926819"},
    {"iban", "GB29NWBK60161331926818", NULL},
    {"iban", "XX89370400440532013000", NULL},
    {"iban", "NO 02 15037577003", "NO 02 15037577003"},
    {"iban", "ES15-0049-1806-9121-1186-9374", "ES15-0049-1806-9121-1186-9374"},
    {"iban", "NO07.8380.08.06006", "NO07.8380.08.06006"},
    {"iban", "NO07..8380.08.06006", NULL},
    {"email", "mail jane.doe+x@mail.example.com!", "jane.doe+x@mail.example.com"},
    {"email", "a@b", NULL},
    {"email", "user@host.1", NULL},
    {"email", "<..x@y.org>", "x@y.org"},
    {"entropy", "key: 'q7Zr0aX3mPv9LtBk2WcNeY8uHsDf5Gj1'", "q7Zr0aX3mPv9LtBk2WcNeY8uHsDf5Gj1"},
    {"entropy", "a_perfectly_ordinary_name_of_a_function", NULL},
    {"entropy", "da39a3ee5e6b4b0d3255bfef95601890afd80709",
     "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
    {"entropy", "00000000000000000000000000000000", NULL},
    {"id_be", "nr 85.07.30-033.28", "85.07.30-033.28"},
    {"id_be", "85.07.30-033.29", NULL},
    {"id_be", "17073003384", "17073003384"},
    {"id_br", "529.982.247-25", "529.982.247-25"},
    {"id_br", "529.982.247-26", NULL},
    {"id_br", "111.111.111-11", NULL},
    {"id_ca", "130-692-544", "130-692-544"},
    {"id_ca", "130-692-545", NULL},
    {"id_ch", "756.9217.0769.85", "756.9217.0769.85"},
    {"id_ch", "756.9217.0769.84", NULL},
    {"id_de", "86095742719", "86095742719"},
    {"id_de", "86095742718", NULL},
    {"id_es", "12345678Z", "12345678Z"},
    {"id_es", "X1234567L", "X1234567L"},
    {"id_es", "12345678A", NULL},
    {"id_es", "M-1234567-L", "M-1234567-L"},
    {"id_es", "N1234567L", NULL},
    {"id_fr", "2 55 08 14 168 025 38", "2 55 08 14 168 025 38"},
    {"id_fr", "255081416802539", NULL},
    {"id_fr", "253072B07300470", "253072B07300470"},
    {"id_fr", "253073B07300470", NULL},
    {"id_fr", "253072C07300470", NULL},
    {"id_gb", "AB 12 34 56 C", "AB 12 34 56 C"},
    {"id_gb", "AB123456C", "AB123456C"},
    {"id_gb", "GB123456C", NULL},
    {"id_in", "2341 2341 2346", "2341 2341 2346"},
    {"id_in", "2341 2341 2347", NULL},
    {"id_it", "RSSMRA85T10A562S", "RSSMRA85T10A562S"},
    {"id_it", "RSSMRA85T10A562T", NULL},
    {"id_pl", "44051401359", "44051401359"},
    {"id_pl", "44051401358", NULL},
    {"id_se", "811218-9876", "811218-9876"},
    {"id_se", "811218-9875", NULL},
    {"id_se", "121212+1212", "121212+1212"},
    {"id_se", "191705120424", "191705120424"},
    {"id_se", "211705120424", NULL},
    {"id_us", "ssn 219-09-9998,", "219-09-9998"},
    {"id_us", "219-09-9999", NULL}, /* printed too often */
    {"id_us", "666-09-9999", NULL},
    {"id_us", "219-09-9998-1", NULL},
};

/* The text with its match made unreadable. */
static void expect(const struct row *r, char want[512])
{
    size_t n = strlen(r->text);
    memcpy(want, r->text, n + 1);
    const char *at = r->match ? strstr(r->text, r->match) : NULL;
    for (size_t i = 0; at && i < strlen(r->match); i++)
        if (at[i] > ' ')
            want[at - r->text + (ptrdiff_t)i] = '*';
}

static void test_rows(void)
{
    char want[512];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *r = &rows[i];
        struct detect_rules rules = {.redact = detectors_of(slice_str(r->what))};
        CU_ASSERT_NOT_EQUAL_FATAL(rules.redact, 0);
        expect(r, want);
        for (size_t piece = 1; piece < 9; piece++) {
            pass(rules, DETECT_PLAIN, NULL, slice_str(r->text), piece);
            bool same = told->n == strlen(want) && memcmp(told->out, want, told->n) == 0;
            bool once = told->counts[__builtin_ctz(rules.redact)] == (r->match != NULL);
            if (!same || !once)
                printf("# %s in \"%s\" by %zu: \"%.*s\"\n", r->what, r->text, piece, (int)told->n,
                       told->out);
            CU_ASSERT(same && once);
        }
    }
}

static void test_refuses(void)
{
    struct detect_rules rules = {.refuse = detectors_of(SLICE("credentials"))};
    for (size_t piece = 1; piece < 50; piece++) {
        pass(rules, DETECT_PLAIN, NULL, SLICE("before " GITHUB " after"), piece);
        CU_ASSERT_EQUAL(told->end, DETECT_REFUSED);
        CU_ASSERT_EQUAL(told->counts[DETECT_GITHUB], 1);
        CU_ASSERT(told->n <= strlen("before ")); /* nothing of it went */
    }
    pass(rules, DETECT_PLAIN, NULL, SLICE("before and after"), 3);
    CU_ASSERT_EQUAL(told->end, DETECT_PASSES);
    CU_ASSERT_EQUAL(told->n, strlen("before and after"));
}

/* What has a shape of its own needs no name: it counts once. */
static void test_named_once(void)
{
    struct detect_rules rules = {.redact = detectors_of(SLICE("credentials"))};
    for (size_t piece = 1; piece < 50; piece++) {
        pass(rules, DETECT_PLAIN, NULL, SLICE("GITHUB_TOKEN=" GITHUB " "), piece);
        CU_ASSERT_EQUAL(told->counts[DETECT_GITHUB], 1);
        CU_ASSERT_EQUAL(told->counts[DETECT_NAMED], 0);
    }
}

static void test_own(void)
{
    struct detect_rules rules = {.refuse = DETECT_BIT(DETECT_GITHUB)};
    pass(rules, DETECT_PLAIN, GITHUB, SLICE("my placeholder " GITHUB), 7);
    CU_ASSERT_EQUAL(told->end, DETECT_PASSES);
    CU_ASSERT_EQUAL(told->counts[DETECT_GITHUB], 0);
    pass(rules, DETECT_PLAIN, "ghp_another", SLICE("no placeholder " GITHUB), 7);
    CU_ASSERT_EQUAL(told->end, DETECT_REFUSED);
}

/* ---- how it is written ---- */

static void same(struct detect_rules rules, enum detect_form form, const char *in, const char *out)
{
    for (size_t piece = 1; piece < 12; piece++) {
        pass(rules, form, NULL, slice_str(in), piece);
        bool ok = told->n == strlen(out) && memcmp(told->out, out, told->n) == 0;
        if (!ok)
            printf("# \"%s\" by %zu: \"%.*s\"\n", in, piece, (int)told->n, told->out);
        CU_ASSERT(ok);
    }
}

static void test_written(void)
{
    struct detect_rules mail = {.redact = DETECT_BIT(DETECT_EMAIL)},
                        card = {.redact = DETECT_BIT(DETECT_CARD)},
                        pem = {.redact = DETECT_BIT(DETECT_PRIVATE_KEY)};
    same(mail, DETECT_JSON, "{\"a\":\"x\\u0040y.org\\n\"}", "{\"a\":\"************\\n\"}");
    same(mail, DETECT_URLENCODED, "m=x%40y.org&b=1", "m=*********&b=1");
    same(mail, DETECT_PLAIN, "m=x%40y.org", "m=x%40y.org");
    struct detect_rules all = {.redact = ((1u << DETECTORS) - 1) & ~DETECT_BIT(DETECT_ENTROPY)};
    same(all, DETECT_URLENCODED, ".r%40y.or h", ".******** h");
    same(mail, DETECT_JSON, "\"\\u00e9 \\ud83d\\ude00 x@y.org \\u00",
         "\"\\u00e9 \\ud83d\\ude00 ******* \\u00");
    same(card, DETECT_JSON, "{\"n\":4111111111111111,\"s\":\"4111111111111111\"}",
         "{\"n\":9999999999999999,\"s\":\"****************\"}");
    same(card, DETECT_URLENCODED, "n=4111+1111+1111+1111&x=%", "n=****+****+****+****&x=%");
    same(pem, DETECT_JSON,
         "{\"k\":\"-----BEGIN PRIVATE KEY-----\\n" LINE "\\n-----END PRIVATE KEY-----\\n\"}",
         "{\"k\":\"********** ******* ********\\n"
         "****************************************************************\\n"
         "******** ******* ********\\n\"}");
}

/* What goes on longer than anything is held. */
static void test_long(void)
{
    struct detect_rules rules = {.redact = detectors_of(SLICE("credentials")) |
                                           DETECT_BIT(DETECT_ENTROPY) | DETECT_BIT(DETECT_EMAIL)};
    static char body[300000];
    size_t n = (size_t)snprintf(body, sizeof body, "k=-----BEGIN RSA PRIVATE KEY-----\n");
    while (n < 150000)
        n += (size_t)snprintf(body + n, sizeof body - n, LINE "\n");
    n += (size_t)snprintf(body + n, sizeof body - n, "-----END RSA PRIVATE KEY----- rest %s ",
                          GITHUB);
    n += (size_t)snprintf(body + n, sizeof body - n, "eyJhbGciOiJIUzI1NiJ9.eyJ");
    memset(body + n, 'a', 100000);
    n += 100000;
    n += (size_t)snprintf(body + n, sizeof body - n, ".x rest");
    for (size_t piece = 1000; piece < 70000; piece = piece * 3 + 1) {
        pass(rules, DETECT_PLAIN, NULL, (struct slice){body, n}, piece);
        CU_ASSERT_EQUAL(told->n, n);
        CU_ASSERT_EQUAL(told->counts[DETECT_PRIVATE_KEY], 1);
        CU_ASSERT_EQUAL(told->counts[DETECT_GITHUB], 1);
        CU_ASSERT_EQUAL(told->counts[DETECT_JWT], 1);
        CU_ASSERT_PTR_NULL(memmem(told->out, told->n, "MIIE", 4));
        CU_ASSERT_PTR_NULL(memmem(told->out, told->n, "aaaa", 4));
        CU_ASSERT_PTR_NOT_NULL(memmem(told->out, told->n, " rest ", 6));
        CU_ASSERT_EQUAL(memcmp(told->out + n - 5, " rest", 5), 0);
    }
}

/* More than one scan keeps, in one piece. */
static void test_many(void)
{
    struct detect_rules rules = {.redact = DETECT_BIT(DETECT_EMAIL)};
    static char body[64000];
    size_t n = 0, want = 0;
    for (; n < sizeof body - 16; want++)
        n += (size_t)snprintf(body + n, sizeof body - n, "a@b.org ");
    pass(rules, DETECT_PLAIN, NULL, (struct slice){body, n}, n);
    CU_ASSERT_EQUAL(told->counts[DETECT_EMAIL], want);
    CU_ASSERT_PTR_NULL(memchr(told->out, '@', told->n));
    /* of two kinds, of which one is looked for when the other has filled all places */
    rules.redact |= DETECT_BIT(DETECT_CARD);
    for (n = 0, want = 0; n < sizeof body - 32; want++)
        n += (size_t)snprintf(body + n, sizeof body - n, "a@b.org,4111111111111111\n");
    pass(rules, DETECT_PLAIN, NULL, (struct slice){body, n}, n);
    CU_ASSERT_EQUAL(told->end, DETECT_PASSES);
    CU_ASSERT_EQUAL(told->n, n);
    CU_ASSERT_EQUAL(told->counts[DETECT_EMAIL], want);
    CU_ASSERT_EQUAL(told->counts[DETECT_CARD], want);
}

/* In what may still become something else: counted once, when that is decided. */
static void test_undecided(void)
{
    struct detect_rules rules = {.redact = DETECT_BIT(DETECT_JWT) | DETECT_BIT(DETECT_CARD)};
    for (size_t piece = 1; piece < 12; piece++) {
        pass(rules, DETECT_PLAIN, NULL, SLICE("eyJabcdefghij.4111111111111111.abcdefghijklmn"),
             piece);
        CU_ASSERT_EQUAL(told->counts[DETECT_CARD], 1);
        CU_ASSERT_EQUAL(told->counts[DETECT_JWT], 0);
    }
}

static void test_unreadable(void)
{
    static const struct {
        const char *type;
        bool read;
        enum detect_form form;
    } types[] = {
        {"application/json", true, DETECT_JSON},
        {"application/json; charset=UTF-8", true, DETECT_JSON},
        {"application/vnd.x+json;charset=\"utf-8\"", true, DETECT_JSON},
        {"", true, DETECT_JSON},
        {"application/x-www-form-urlencoded", true, DETECT_URLENCODED},
        {"text/plain; charset=utf-16", false, DETECT_PLAIN},
        {"text/plain; charset =utf-16", false, DETECT_PLAIN},
        {"text/plain; a=b; charset=utf-7", false, DETECT_PLAIN},
        {"image/png", true, DETECT_PLAIN},
    };
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        enum detect_form form;
        CU_ASSERT_EQUAL(detect_form_of(slice_str(types[i].type), &form), types[i].read);
        CU_ASSERT_EQUAL(form, types[i].form);
    }
    struct detect_rules rules = {.redact = DETECT_BIT(DETECT_EMAIL)};
    pass(rules, DETECT_PLAIN, NULL,
         (struct slice){"\xff\xfe"
                        "a\0",
                        4},
         1);
    CU_ASSERT_EQUAL(told->end, DETECT_UNREADABLE);
    CU_ASSERT_EQUAL(told->n, 0);
    pass(rules, DETECT_PLAIN, NULL, SLICE("x"), 1);
    CU_ASSERT_EQUAL(told->n, 1);
}

/* ---- many bytes at once ---- */

static uint32_t chance(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Pieces of what is looked for, beginnings and ends of them, and bytes of any kind. */
static size_t made_text(char *to, size_t max, uint32_t *state)
{
    static const char *const between[] = {"",    " ", "\"",    "=",        ": ",  "_",
                                          "://", "@", "-----", "\xc3\xa9", "756."};
    size_t n = 0;
    while (n + 700 < max) {
        const char *text = rows[chance(state) % ARRAY_LEN(rows)].text;
        size_t all = strlen(text), from = chance(state) % 3 ? 0 : chance(state) % (all + 1);
        size_t part = chance(state) % 4 ? all - from : chance(state) % (all - from + 1);
        part = part < 600 ? part : 600;
        memcpy(to + n, text + from, part);
        if (part > 0 && chance(state) % 4 == 0)
            to[n + chance(state) % part] = (char)chance(state);
        n += part;
        const char *sign = between[chance(state) % ARRAY_LEN(between)];
        memcpy(to + n, sign, strlen(sign));
        n += strlen(sign);
    }
    return n;
}

/* Skimming leaves nothing out: whoever looks at each byte finds the same, in the same order. */
static void scan_against(const struct detector_set *skims, const struct detect_scan *plain,
                         struct slice text, size_t from, bool whole)
{
    static struct detect_scan a, b;
    a = (struct detect_scan){.text = text, .from = from, .whole = whole};
    b = *plain;
    detector_scan(skims, &a);
    CU_ASSERT_EQUAL_FATAL(a.n, b.n);
    CU_ASSERT_EQUAL_FATAL(a.open, b.open);
    CU_ASSERT_EQUAL_FATAL(a.stops, b.stops);
    for (size_t i = 0; i < a.n; i++)
        CU_ASSERT_FATAL(a.match[i].at == b.match[i].at && a.match[i].n == b.match[i].n &&
                        a.match[i].root == b.match[i].root && a.match[i].what == b.match[i].what &&
                        a.match[i].goes_on == b.match[i].goes_on);
}

static void hold_against(struct detector_set *skims, const struct detector_set *plain,
                         struct slice text, size_t from, bool whole)
{
    static struct detect_scan found;
    found = (struct detect_scan){.text = text, .from = from, .whole = whole};
    detector_scan(plain, &found);
    scan_against(skims, &found, text, from, whole);
    detector_set_wide(skims, false);
    scan_against(skims, &found, text, from, whole);
    detector_set_wide(skims, true);
}

static void test_made(void)
{
    uint32_t state = 1, sets[] = {(1u << DETECTORS) - 1, detectors_of(SLICE("credentials")),
                                  DETECT_BIT(DETECT_CARD),
                                  DETECT_BIT(DETECT_GITHUB) | DETECT_BIT(DETECT_URL_PASSWORD),
                                  DETECT_BIT(DETECT_NAMED)};
    if (!detect_skim_can()) {
        tap_skip("this processor looks at each byte");
        return;
    }
    for (size_t k = 0; k < ARRAY_LEN(sets); k++) {
        struct detector_set *skims = detector_set_new(sets[k]), *plain = detector_set_new(sets[k]);
        CU_ASSERT_FATAL(skims && plain);
        detector_set_plain(plain);
        for (size_t i = 0; i < 400; i++) {
            size_t n = made_text(told->out, 6000, &state), at = chance(&state) % 40;
            n -= chance(&state) % 64;
            struct slice text = {told->out + at, n - at};
            hold_against(skims, plain, text, i % 3 ? 0 : 1 + chance(&state) % 60, i % 2);
        }
        detector_set_free(skims);
        detector_set_free(plain);
    }
}

/* ---- what is skimmed ---- */

static bool in_runs(int c)
{
    return detect_is((char)c, CLASS_DOTTED | CLASS_ENTROPY) || c == '~';
}

static void runs_of_prefix(void *arg, const char *prefix, unsigned which)
{
    size_t least = detect_token_least(which);
    unsigned *tokens = arg;
    if (least == 0)
        return;
    ++*tokens;
    CU_ASSERT(least >= 14);
    for (const char *p = prefix; *p; p++)
        CU_ASSERT(in_runs((unsigned char)*p));
}

static bool count_place(void *arg, size_t at, bool value, bool begins)
{
    size_t *told_at = arg;
    CU_ASSERT(begins && !value);
    CU_ASSERT_EQUAL(told_at[0], 0);
    told_at[0]++;
    told_at[1] = at;
    return true;
}

/* Where a beginning stands, and as long a run as a token from there on, and nowhere else. */
static void skim_runs(const struct detect_skim *what)
{
    for (int c = 0; c < 256; c++)
        for (size_t at = 65; at < 1500; at += 23)
            for (size_t n = 13; n < 15; n++) {
                char text[1600];
                size_t found[2] = {0, 0};
                memset(text, ' ', sizeof text);
                memset(text + at, c, n);
                memcpy(text + at, "abc", 3);
                struct slice all = {text, sizeof text};
                detect_skim(what, all, 0, sizeof text, count_place, found);
                CU_ASSERT_EQUAL(found[0], n == 14 && in_runs(c));
                CU_ASSERT(found[0] == 0 || found[1] == at);
                text[at] = 'b';
                found[0] = 0;
                detect_skim(what, all, 0, sizeof text, count_place, found);
                CU_ASSERT_EQUAL(found[0], 0);
            }
}

/* What skimming rests on: every token is a run, of these bytes and of no others. */
static void test_skim_runs(void)
{
    static struct detect_filter filter;
    struct detect_skim what = {.filter = &filter};
    unsigned tokens = 0;
    if (!detect_skim_can()) {
        tap_skip("this processor looks at each byte");
        return;
    }
    detect_tokens_prefixes((1u << DETECTORS) - 1, runs_of_prefix, &tokens);
    CU_ASSERT(tokens > 100);
    detect_filter_add(&filter, "abc");
    skim_runs(&what);
    what.wide = detect_skim_wide_can();
    skim_runs(&what);
}

/* A value with its digits at any place in it is met at the sign of its name. */
static void test_skim_values(void)
{
    struct detector_set *skims = detector_set_new(DETECT_BIT(DETECT_NAMED)),
                        *plain = detector_set_new(DETECT_BIT(DETECT_NAMED));
    static struct detect_scan found;
    size_t most = 0;
    CU_ASSERT_FATAL(skims && plain);
    detector_set_plain(plain);
    for (size_t n = 10; n < 256; n += 3)
        for (size_t at = 0; at + 2 <= n; at += 7) {
            char text[640];
            memset(text, ' ', sizeof text);
            memcpy(text + at, "password: Bearer ", 17);
            for (size_t i = 0; i < n; i++)
                text[at + 17 + i] = (char)('a' + (int)(i * 7 % 26));
            memcpy(text + at + 17 + at, "35", 2);
            struct slice all = {text, at + 18 + n};
            hold_against(skims, plain, all, 0, true);
            hold_against(skims, plain, (struct slice){text, at + 17 + at}, 0, false);
            found = (struct detect_scan){.text = all, .whole = true};
            detector_scan(skims, &found);
            most += found.n;
        }
    CU_ASSERT(most > 1000);
    detector_set_free(skims);
    detector_set_free(plain);
}

/* Words, numbers and signs, most of which no detector has to say anything about. */
static size_t made_prose(char *to, size_t n, uint32_t *state)
{
    static const char signs[] = " , . ; : = - / \n \" ( _";
    size_t i = 0;
    while (i < n) {
        size_t word = 1 + chance(state) % 9, kind = chance(state) % 8;
        for (size_t k = 0; k < word && i < n; k++)
            to[i++] = (char)(kind == 0   ? '0' + (int)(chance(state) % 10)
                             : kind == 1 ? 'A' + (int)(chance(state) % 26)
                                         : 'a' + (int)(chance(state) % 26));
        if (i < n)
            to[i++] = chance(state) % 2 ? ' ' : signs[chance(state) % (sizeof signs - 1)];
    }
    return n;
}

/* Each row at each place of a window, and about the end of as many as are read at once, between
 * words, and each beginning of it at a text's end. */
static void skim_row(const struct row *r, struct detector_set *skims,
                     const struct detector_set *plain, uint32_t *state)
{
    size_t n = strlen(r->text);
    char text[1024];
    for (size_t k = 0; k < 2 * 66; k++) {
        size_t at = k < 66 ? k : 460 + k - 66;
        size_t all = made_prose(text, at + n + chance(state) % 200, state);
        memcpy(text + at, r->text, n);
        if (chance(state) % 3 && at > 0)
            text[at - 1] = ' ';
        if (chance(state) % 3 && at + n < all)
            text[at + n] = ' ';
        size_t cut = at + chance(state) % (n + 1), from = chance(state) % 2 ? 0 : at / 2;
        hold_against(skims, plain, (struct slice){text, all}, from, true);
        hold_against(skims, plain, (struct slice){text, all}, from, false);
        hold_against(skims, plain, (struct slice){text, cut}, from, false);
        hold_against(skims, plain, (struct slice){text, cut}, from, true);
    }
}

/* Names, what stands between them and a value, and values, all of them whole or nearly. */
static size_t made_names(char *to, size_t max, uint32_t *state)
{
    static const char *const parts[3][16] = {
        {"api_token", "Secret", "x.apiKey", "KEY", "key", "my_pwd", "publicKey", "tok", "a-passw",
         "_pat", "x_pat", "credential", "AccEss-Key", "AUTHORIZATION", "passphrase1", "A1"},
        {"", "", "", "Bearer ", "basic ", "ToKen ", "bearer", "Bear "},
        {"m1rp3cugt03pws0ku", "q6eSvkiiKA", "q6eSvkiiK", "/ab34567890cd", "=ab3=567~90cd",
         "http2TransportConn", "tok=ab3567890cd4", "x"}};
    static const char between[] = " \t\"'`\\:=>:==  (;";
    size_t n = 0;
    while (n + 100 < max) {
        for (size_t k = 0; k < ARRAY_LEN(parts); k++) {
            for (size_t signs = k == 1 ? chance(state) % 12 : 0; signs > 0; signs--)
                to[n++] = between[chance(state) % (sizeof between - 1)];
            const char *part = parts[k][chance(state) % (k == 0 ? 16 : 8)];
            memcpy(to + n, part, strlen(part));
            n += strlen(part);
        }
        for (size_t blanks = chance(state) % 3; blanks > 0; blanks--)
            to[n++] = chance(state) % 2 ? ' ' : '\n';
    }
    return n;
}

static void test_skim_names(void)
{
    static char text[1400];
    static struct detect_scan found;
    uint32_t state = 5, what = detectors_of(SLICE("credentials"));
    size_t most = 0;
    struct detector_set *skims = detector_set_new(what), *plain = detector_set_new(what);
    CU_ASSERT_FATAL(skims && plain);
    detector_set_plain(plain);
    for (unsigned i = 0; i < 3000; i++) {
        size_t n = made_names(text, 200 + chance(&state) % (sizeof text - 200), &state);
        struct slice all = {text, n - chance(&state) % 40};
        hold_against(skims, plain, all, i % 3 ? 0 : chance(&state) % 100, i % 2);
        found = (struct detect_scan){.text = all, .whole = true};
        detector_scan(skims, &found);
        most += found.n;
    }
    CU_ASSERT(most > 3000);
    detector_set_free(skims);
    detector_set_free(plain);
}

static void test_skim(void)
{
    uint32_t state = 7, many = detectors_of(SLICE("credentials")) | DETECT_BIT(DETECT_CARD) |
                               DETECT_BIT(DETECT_IBAN) | DETECT_BIT(DETECT_EMAIL);
    if (!detect_skim_can()) {
        tap_skip("this processor looks at each byte");
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint32_t sets[] = {detectors_of(slice_str(rows[i].what)), many, (1u << DETECTORS) - 1};
        for (size_t k = 0; k < ARRAY_LEN(sets); k++) {
            struct detector_set *skims = detector_set_new(sets[k]),
                                *plain = detector_set_new(sets[k]);
            CU_ASSERT_FATAL(skims && plain);
            detector_set_plain(plain);
            skim_row(&rows[i], skims, plain, &state);
            detector_set_free(skims);
            detector_set_free(plain);
        }
    }
}

/* A URL that is not all there may still get its password, however far back it begins. */
static void test_skim_url(void)
{
    static const char begin[] = "see postgres://bob:";
    struct detector_set *skims = detector_set_new(DETECT_BIT(DETECT_URL_PASSWORD)),
                        *plain = detector_set_new(DETECT_BIT(DETECT_URL_PASSWORD));
    CU_ASSERT_FATAL(skims && plain);
    detector_set_plain(plain);
    for (size_t n = sizeof begin; n < 400; n++) {
        char text[400];
        memset(text, '!', sizeof text);
        memcpy(text, begin, sizeof begin - 1);
        hold_against(skims, plain, (struct slice){text, n}, 0, false);
        text[n - 1] = '@';
        hold_against(skims, plain, (struct slice){text, n}, 0, true);
    }
    detector_set_free(skims);
    detector_set_free(plain);
}

/* A key behind a line of dashes of any length, which ends in any place of a window. Its lines stand
 * too far behind for their block to be the beginning's. */
static void test_skim_dashes(void)
{
    static const char lines[] =
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nA-Word: it is made for a "
        "test and no other use and goes on for so many words\n\n" LINE "\n";
    struct detector_set *skims = detector_set_new(DETECT_BIT(DETECT_PRIVATE_KEY)),
                        *plain = detector_set_new(DETECT_BIT(DETECT_PRIVATE_KEY));
    static struct detect_scan found;
    CU_ASSERT_FATAL(skims && plain);
    detector_set_plain(plain);
    for (size_t n = 0; n < 200; n++) {
        char text[512];
        memset(text, '!', sizeof text);
        memset(text + 100, '-', n);
        memcpy(text + 100 + n, lines, sizeof lines - 1);
        struct slice all = {text, 100 + n + sizeof lines - 1};
        hold_against(skims, plain, all, 0, true);
        found = (struct detect_scan){.text = all, .whole = true};
        detector_scan(skims, &found);
        CU_ASSERT_EQUAL(found.n, 1);
    }
    detector_set_free(skims);
    detector_set_free(plain);
}

/* ---- as it is written ---- */

/* Text of escapes of all kinds, and of none; many at once or each, it is the same. */
static void test_escapes_wide(void)
{
    static const char *const pieces[] = {"\\n",   "\\t\\t",   "\\\\", "\\\"",  "\\u0041", "\\u20ac",
                                         "\\u00", "\\x",      "\\",   "plain", " and ",   "%41",
                                         "+",     "\xc3\xa9", "%4",   "\\\xe9"};
    static struct detect_written wide, narrow;
    static char in[4000];
    uint32_t state = 11;
    if (!detect_written_wide_can()) {
        tap_skip("this processor has no more than 32 bytes at once");
        return;
    }
    for (unsigned k = 0; k < 6000; k++) {
        size_t n = 0, most = chance(&state) % 600, kinds = 1 + chance(&state) % ARRAY_LEN(pieces);
        while (n < most) {
            const char *piece =
                pieces[chance(&state) % (chance(&state) % 8 ? kinds : ARRAY_LEN(pieces))];
            memcpy(in + n, piece, strlen(piece));
            n += strlen(piece);
        }
        struct slice before = {"0123456789abcdef", chance(&state) % 17}, text = {in, n};
        wide =
            (struct detect_written){.form = k % 5 ? DETECT_JSON : DETECT_URLENCODED, .wide = true};
        narrow = (struct detect_written){.form = wide.form};
        size_t a = detect_written_read(&wide, before, text, k % 2),
               b = detect_written_read(&narrow, before, text, k % 2);
        CU_ASSERT_EQUAL_FATAL(a, b);
        CU_ASSERT_EQUAL_FATAL(memcmp(wide.text, narrow.text, a), 0);
        size_t at = chance(&state) % (a + 1), end = at + chance(&state) % (a - at + 1);
        size_t length = detect_written_length(&wide, at, end);
        CU_ASSERT_EQUAL_FATAL(length, detect_written_length(&narrow, at, end));
        if (k % 2)
            CU_ASSERT_EQUAL_FATAL(before.n + n, detect_written_length(&wide, 0, a));
    }
}

/* A body in two pieces, cut anywhere, comes out as it does whole, however it is written. */
static void test_cut(void)
{
    /* the words of `entropy` lie across what others find, and are counted with it or not */
    struct detect_rules rules = {.redact = ((1u << DETECTORS) - 1) & ~DETECT_BIT(DETECT_ENTROPY)};
    static char out[2048];
    uint32_t state = 3;
    for (size_t i = 0; i < 24; i++) {
        static char body[2048];
        uint32_t counts[DETECTORS];
        enum detect_form form = (enum detect_form)(i % 3);
        size_t prose = 100 + chance(&state) % 100, n = made_prose(body, prose, &state);
        n += made_text(body + n, 1400 - chance(&state) % 300, &state);
        pass(rules, form, NULL, (struct slice){body, n}, n);
        size_t whole = told->n;
        enum detect_end end = told->end;
        memcpy(out, told->out, whole);
        memcpy(counts, told->counts, sizeof counts);
        for (size_t cut = 1; cut < n; cut++) {
            pass_cut(rules, form, (struct slice){body, n}, cut);
            CU_ASSERT_FATAL(told->end == end && told->n == whole);
            CU_ASSERT_FATAL(memcmp(told->out, out, whole) == 0);
            CU_ASSERT_FATAL(memcmp(told->counts, counts, sizeof counts) == 0);
        }
    }
}

/* What was taken out stays out, also while it waits for room and more comes. */
static void test_waits(void)
{
    struct detect_rules rules = {.redact = DETECT_BIT(DETECT_GITHUB)};
    struct detect_stream *s = detect_stream_new(&rules, DETECT_PLAIN, own_is, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    told->n = 0;
    detect_stream_take(s, GITHUB ".", strlen(GITHUB) + 1);
    for (size_t i = 0; i < 40; i++)
        detect_stream_take(s, " a", 2);
    detect_stream_end(s);
    drain(s);
    CU_ASSERT_EQUAL(told->n, strlen(GITHUB) + 81);
    for (size_t i = 0; i < strlen(GITHUB); i++)
        CU_ASSERT_EQUAL(told->out[i], '*');
    CU_ASSERT_EQUAL(told->out[strlen(GITHUB)], '.');
    detect_stream_free(s);
}

/* ---- in words ---- */

static void test_words(void)
{
    static const char *const bad[] = {"",
                                      "github",
                                      "github x",
                                      "nobody 1",
                                      "email 1,",
                                      "email 1 ",
                                      "email -1",
                                      "email 1, github 1",
                                      "github 1,email 1",
                                      "email 1, email 1",
                                      "email 99999999999"};
    uint32_t counts[DETECTORS] = {[DETECT_GITHUB] = 2, [DETECT_EMAIL] = 1};
    char text[DETECT_FOUND_MAX];
    CU_ASSERT_STRING_EQUAL(detect_found_text(counts, text), "github 2, email 1");
    CU_ASSERT(detect_found_is(slice_str(text)));
    for (unsigned i = 0; i < DETECTORS; i++) {
        CU_ASSERT_EQUAL(detectors_of(slice_str(detector_name(i))), DETECT_BIT(i));
        counts[i] = UINT32_MAX;
    }
    CU_ASSERT(detect_found_is(slice_str(detect_found_text(counts, text)))); /* all of them fit */
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_FALSE(detect_found_is(slice_str(bad[i])));
    CU_ASSERT_EQUAL(detectors_of(SLICE("githu")), 0);
    CU_ASSERT_PTR_NULL(detector_name(DETECTORS));
}

void suite_detector(void)
{
    CU_pSuite s = CU_add_suite("detector", NULL, NULL);
    CU_add_test(s, "what each finds, in pieces", test_rows);
    CU_add_test(s, "what is refused does not go", test_refuses);
    CU_add_test(s, "a value that has its own shape counts once", test_named_once);
    CU_add_test(s, "placeholders are nobody's secret", test_own);
    CU_add_test(s, "escapes of JSON and of forms", test_written);
    CU_add_test(s, "longer than what is held", test_long);
    CU_add_test(s, "many at once", test_many);
    CU_add_test(s, "what is not decided", test_undecided);
    CU_add_test(s, "what cannot be read", test_unreadable);
    CU_add_test(s, "many bytes at once, or each", test_made);
    CU_add_test(s, "what skimming rests on", test_skim_runs);
    CU_add_test(s, "text that is skimmed, or each byte", test_skim);
    CU_add_test(s, "URLs that are skimmed", test_skim_url);
    CU_add_test(s, "keys behind dashes that are skimmed", test_skim_dashes);
    CU_add_test(s, "values that are skimmed", test_skim_values);
    CU_add_test(s, "names before values that are skimmed", test_skim_names);
    CU_add_test(s, "escapes many at once, or each", test_escapes_wide);
    CU_add_test(s, "cut anywhere", test_cut);
    CU_add_test(s, "what waits for room", test_waits);
    CU_add_test(s, "in words", test_words);
}

void tap_suites(void)
{
    told = malloc(sizeof *told);
    if (told == NULL)
        abort();
    suite_detector();
}
