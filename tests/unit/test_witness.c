/* What hosts of a fleet sign about their logs: one writing of each line, and what is found of hosts
 * that sign two of a number, go back, leave out or say nothing. */
#include "tap_main.h"

#include "audit_fixture.h"
#include "checkpoint.h"
#include "fleet_file.h"
#include "witness.h"

#include <CUnit/CUnit.h>

void suite_witness(void);

enum { HOSTS = 3 };

static char *dir[HOSTS];
static struct signing_key *key[HOSTS];
static unsigned char raw[HOSTS][CHAIN_HASH];
static const char *const names[HOSTS] = {"a", "b", "c"};

static int set_up(void)
{
    struct err err = {0};
    for (size_t i = 0; i < HOSTS; i++) {
        dir[i] = fixture_dir();
        int fd = fixture_open(dir[i]);
        key[i] = signing_key_open(fd, &err);
        close(fd);
        if (key[i] == NULL || signing_key_raw(key[i], raw[i]) < 0)
            return -1;
    }
    return 0;
}

static int tear_down(void)
{
    for (size_t i = 0; i < HOSTS; i++) {
        signing_key_free(key[i]);
        fixture_remove(dir[i]);
    }
    return 0;
}

static struct witness *hosts(void)
{
    struct witness *w = witness_new();
    for (size_t i = HOSTS; i-- > 0;)
        CU_ASSERT_EQUAL_FATAL(witness_add(w, names[i], raw[i], NULL), 0);
    return w;
}

/* A log that has so many records; other: not the same ones. */
static struct chain log_of(uint64_t seq, unsigned char other)
{
    struct chain c = {.seq = seq};
    memset(c.hash, (int)(seq + other), sizeof c.hash);
    return c;
}

/* What a host says next, having seen what w knows. */
static const char *next(const struct witness *w, size_t host, struct chain log, bool anew)
{
    static char text[FLEET_LINE_MAX + 1];
    struct fleet_head h = {.anew = anew, .log = log};
    struct buf out;
    const struct fleet_head *latest = witness_latest(w, host);
    memcpy(h.host, names[host], 2);
    h.number = latest ? latest->number + 1 : 1;
    timestamp_text(UINT64_C(1800000000000000000) + h.number * UINT64_C(1000000000), h.time,
                   sizeof h.time);
    witness_say(w, &h);
    buf_init(&out, FLEET_LINE_MAX);
    CU_ASSERT_EQUAL_FATAL(fleet_head_make(&h, key[host], &out), 0);
    snprintf(text, sizeof text, "%.*s", (int)buf_len(&out), (const char *)buf_data(&out));
    buf_free(&out);
    return text;
}

static enum witness_taken take(struct witness *w, const char *line)
{
    static struct fleet_head h;
    return witness_take(w, slice_str(line), true, &h);
}

/* "KIND:NUMBER " of each, in turn. */
static void collect(void *arg, size_t host UNUSED, const struct witness_fault *f)
{
    static const char *const words[] = {"", "none", "missing", "unseen", "forked", "back", "anew"};
    char *to = arg;
    size_t n = strlen(to);
    snprintf(to + n, 200 - n, "%s:%llu ", words[f->kind], (unsigned long long)f->number);
}

static void expect(const struct witness *w, size_t host, const char *want)
{
    char got[200] = "";
    witness_faults(w, host, collect, got);
    CU_ASSERT_STRING_EQUAL(got, want);
}

static void test_line(void)
{
    struct witness *w = hosts();
    struct fleet_head h;
    char line[FLEET_LINE_MAX + 1];
    CU_ASSERT_EQUAL(take(w, next(w, 0, log_of(7, 0), false)), WITNESS_NEW);
    snprintf(line, sizeof line, "%s", next(w, 1, log_of(9, 0), true));
    CU_ASSERT_EQUAL(fleet_head_parse(slice_str(line), &h), 0);
    CU_ASSERT_STRING_EQUAL(h.host, "b");
    CU_ASSERT(h.number == 1 && h.anew && h.log.seq == 9 && h.n_seen == 1 && h.n_doubts == 0);
    CU_ASSERT_EQUAL(fleet_head_saw(&h, "a")->number, 1);
    CU_ASSERT_TRUE(fleet_head_signed_by(slice_str(line), key[1]));
    CU_ASSERT_FALSE(fleet_head_signed_by(slice_str(line), key[0]));
    /* whatever byte is changed: it is none, or nobody signed it */
    for (size_t i = 0; line[i]; i++) {
        char was = line[i];
        line[i] = was == '1' ? '2' : '1';
        CU_ASSERT(take(w, line) == WITNESS_MALFORMED || take(w, line) == WITNESS_UNSIGNED ||
                  take(w, line) == WITNESS_STRANGER);
        line[i] = 0;
        CU_ASSERT_EQUAL(take(w, line), WITNESS_MALFORMED);
        line[i] = was;
    }
    CU_ASSERT_EQUAL(take(w, line), WITNESS_NEW);
    CU_ASSERT_EQUAL(take(w, line), WITNESS_KNOWN);
    witness_free(w);
}

/* There is one writing alone, whoever signs another one. */
static void test_one_writing(void)
{
    static const struct {
        const char *from, *to;
    } rows[] = {{" 1 0 7 ", " 01 0 7 "},
                {" 1 0 7 ", " 1 0 07 "},
                {" 1 0 7 ", " 1  0 7 "},
                {" 1 0 7 ", " 1 2 7 "},
                {" 1 0 7 ", " 2 0 7 "},
                {" 1 0 7 ", " 0 0 7 "},
                {" - - ", " - "},
                {" - - ", " a:1 - "},
                {" - - ", " - a:1:odd "},
                {" - - ", " - a:0:missing "},
                {"head/1 a ", "head/1 .a "},
                {"head/1 a ", "head/2 a "}};
    struct witness *w = hosts();
    struct fleet_head h;
    char text[FLEET_LINE_MAX];
    const char *line = next(w, 0, log_of(7, 0), false);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *at = strstr(line, rows[i].from);
        unsigned char raw_sig[SIGNATURE_SIZE];
        CU_ASSERT_PTR_NOT_NULL_FATAL(at);
        int n = snprintf(text, sizeof text, "%.*s%s%s", (int)(at - line), line, rows[i].to,
                         at + strlen(rows[i].from));
        size_t end = (size_t)n - (CHECKPOINT_SIGNATURE_HEX - 1) - 1;
        CU_ASSERT_EQUAL(signing_key_sign(key[0], (struct slice){text, end}, raw_sig), 0);
        checkpoint_signature_hex(raw_sig, text + end + 1);
        CU_ASSERT_TRUE(fleet_head_signed_by(slice_str(text), key[0]));
        CU_ASSERT_EQUAL(fleet_head_parse(slice_str(text), &h), -1);
    }
    int n = snprintf(text, sizeof text, "%s", line); /* a signature is read with its line */
    CU_ASSERT_EQUAL(fleet_head_parse(slice_str(text), &h), 0);
    text[n - 1] = 'g';
    CU_ASSERT_EQUAL(fleet_head_parse(slice_str(text), &h), -1);
    witness_free(w);
}

static void test_good(void)
{
    struct witness *w = hosts();
    for (uint64_t i = 1; i <= 40; i++)
        for (size_t host = 0; host < HOSTS; host++)
            CU_ASSERT_EQUAL(take(w, next(w, host, log_of(5 * i, 0), false)), WITNESS_NEW);
    for (size_t host = 0; host < HOSTS; host++) {
        expect(w, host, "");
        CU_ASSERT_EQUAL(witness_latest(w, host)->number, 40);
        CU_ASSERT_EQUAL(witness_latest(w, host)->n_seen, HOSTS);
    }
    CU_ASSERT_TRUE(witness_heard(w, 0) > 0);
    witness_free(w);
}

static void test_wrong(void)
{
    struct witness *w = hosts(), *b = hosts();
    char twin[FLEET_LINE_MAX + 1], third[FLEET_LINE_MAX + 1];
    expect(w, 1, "none:0 ");
    take(w, next(w, 0, log_of(5, 0), false));
    take(w, next(w, 1, log_of(5, 0), false));
    snprintf(twin, sizeof twin, "%s", next(w, 1, log_of(6, 1), false));
    take(w, next(w, 1, log_of(6, 0), false));
    CU_ASSERT_EQUAL(take(w, twin), WITNESS_FORKED);
    CU_ASSERT_EQUAL(take(w, twin), WITNESS_KNOWN);
    expect(w, 1, "forked:2 ");
    CU_ASSERT_EQUAL(take(w, next(w, 0, log_of(4, 0), false)), WITNESS_NEW);
    expect(w, 0, "back:2 ");
    CU_ASSERT_EQUAL(take(w, next(w, 0, log_of(4, 3), false)), WITNESS_NEW);
    expect(w, 0, "back:2 back:3 ");
    CU_ASSERT_EQUAL(take(w, next(w, 2, log_of(4, 3), true)), WITNESS_NEW);
    expect(w, 2, "anew:1 ");
    /* another one has only some of it */
    snprintf(third, sizeof third, "%s", next(w, 2, log_of(9, 0), false));
    CU_ASSERT_EQUAL(take(b, third), WITNESS_NEW);
    expect(b, 2, "missing:1 ");
    expect(b, 0, "none:0 unseen:3 ");
    struct fleet_head says;
    memset(&says, 0, sizeof says);
    witness_say(b, &says);
    CU_ASSERT(says.n_seen == 1 && says.n_doubts == 3 && says.doubt[2].kind == DOUBT_MISSING);
    witness_free(w);
    witness_free(b);
}

/* One host's word on another's line is not what that line is. */
static void test_seen_otherwise(void)
{
    struct witness *w = hosts(), *b = hosts();
    take(w, next(w, 0, log_of(5, 0), false));
    take(b, next(b, 0, log_of(6, 0), false));
    CU_ASSERT_EQUAL(take(w, next(b, 1, log_of(5, 0), false)), WITNESS_NEW);
    expect(w, 0, "forked:1 ");
    /* and likewise where that line comes later */
    struct witness *c = hosts(), *d = hosts();
    CU_ASSERT_EQUAL(take(c, next(w, 1, log_of(5, 0), false)), WITNESS_NEW);
    CU_ASSERT_EQUAL(take(c, next(d, 0, log_of(6, 0), false)), WITNESS_NEW);
    expect(c, 0, "forked:1 ");
    witness_free(w);
    witness_free(b);
    witness_free(c);
    witness_free(d);
}

static void test_heard(void)
{
    struct witness *w = hosts();
    take(w, next(w, 0, log_of(5, 0), false));
    for (int i = 0; i < 3; i++) /* so that b's clock is later */
        take(w, next(w, 1, log_of(5, 0), false));
    uint64_t own = witness_heard(w, 1);
    take(w, next(w, 0, log_of(5, 0), false)); /* its second: a second before b's third */
    CU_ASSERT_EQUAL(witness_heard(w, 1) + UINT64_C(1000000000), own);
    witness_free(w);
}

/* b goes on, and sees nothing of what a says. */
static void test_misses(void)
{
    const uint64_t second = UINT64_C(1000000000);
    struct witness *w = hosts(), *b = hosts();
    uint64_t number = 9;
    take(w, next(w, 0, log_of(5, 0), false));
    for (int i = 0; i < 5; i++) {
        const char *line = next(b, 1, log_of(5, 0), false);
        take(w, line);
        take(b, line);
    }
    CU_ASSERT_TRUE(witness_misses(w, 0, 1, 3 * second, &number));
    CU_ASSERT_EQUAL(number, 0);
    CU_ASSERT_FALSE(witness_misses(w, 0, 1, 4 * second, &number));
    CU_ASSERT_FALSE(
        witness_misses(w, 1, 0, 0, &number)); /* a is earlier than what it has not seen */
    CU_ASSERT_FALSE(witness_misses(w, 0, 2, 0, &number));
    take(w, next(w, 1, log_of(5, 0), false)); /* and now it has */
    CU_ASSERT_FALSE(witness_misses(w, 0, 1, 3 * second, &number));
    witness_free(w);
    witness_free(b);
}

static void count_bad(void *arg, uint64_t number UNUSED, struct slice line UNUSED,
                      enum witness_taken taken, const struct fleet_head *head UNUSED)
{
    *(size_t *)arg += taken == WITNESS_MALFORMED;
}

static void test_kept(void)
{
    size_t n = 0;
    for (uint64_t i = 1; i <= 100000; i++)
        n += witness_keeps(16, i, 100000);
    CU_ASSERT(n > 16 && n < 16 + 8 * 14);
    for (uint64_t i = 100000 - 15; i <= 100000; i++)
        CU_ASSERT_TRUE(witness_keeps(16, i, 100000));
    /* what is kept now was kept before: nothing is wished for again that was let go */
    for (uint64_t latest = 1000; latest < 1100; latest++)
        for (uint64_t i = 1; i < latest; i++)
            CU_ASSERT(!witness_keeps(16, i, latest + 1) || witness_keeps(16, i, latest));
}

static void test_file(void)
{
    struct witness *w = hosts(), *again;
    struct err err = {0};
    char *at = fixture_dir(), text[FLEET_LINE_MAX + 2];
    int fd = fixture_open(at), torn;
    struct fleet_file *f = fleet_file_open(fd, w, NULL, NULL, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    for (uint64_t i = 1; i <= 600; i++) {
        snprintf(text, sizeof text, "%s\n", next(w, 0, log_of(i, 0), false));
        CU_ASSERT_EQUAL(fleet_file_add(f, slice_str(text), &err), 0);
        text[strlen(text) - 1] = 0;
        take(w, text);
    }
    CU_ASSERT_EQUAL(fleet_file_thin(f, w, 1000, &err), 0);
    snprintf(text, sizeof text, "%s\n", next(w, 0, log_of(601, 0), false));
    CU_ASSERT_EQUAL(fleet_file_add(f, slice_str(text), &err), 0);
    fleet_file_free(f);
    torn = openat(fd, FLEET_FILE, O_WRONLY | O_APPEND);
    CU_ASSERT_EQUAL(write(torn, text, 50), 50);
    close(torn);
    again = hosts();
    f = fleet_file_open(fd, again, NULL, NULL, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    size_t n;
    (void)witness_known(again, 0, &n);
    CU_ASSERT(n > 256 && n < 500);
    CU_ASSERT_EQUAL(witness_latest(again, 0)->number, 601);
    expect(again, 0, "");
    CU_ASSERT_EQUAL(fleet_file_add(f, slice_str(text), &err), 0); /* behind a whole line */
    fleet_file_free(f);
    again = (witness_free(again), hosts());
    torn = openat(fd, FLEET_FILE, O_RDONLY);
    size_t bad = 0;
    CU_ASSERT_EQUAL(fleet_file_read(torn, again, true, count_bad, &bad, &err), 0);
    CU_ASSERT_EQUAL(bad, 0);
    expect(again, 0, "");
    close(torn);
    close(fd);
    witness_free(w);
    witness_free(again);
    fixture_remove(at);
}

void suite_witness(void)
{
    CU_pSuite s = CU_add_suite("witness", set_up, tear_down);
    CU_add_test(s, "a line is whole or none", test_line);
    CU_add_test(s, "a line has one writing", test_one_writing);
    CU_add_test(s, "hosts that go on", test_good);
    CU_add_test(s, "forked, back, anew, missing", test_wrong);
    CU_add_test(s, "seen otherwise by another host", test_seen_otherwise);
    CU_add_test(s, "no clock later than who saw it", test_heard);
    CU_add_test(s, "a host that another one does not see", test_misses);
    CU_add_test(s, "what is kept of old ones", test_kept);
    CU_add_test(s, "the file", test_file);
}

void tap_suites(void)
{
    suite_witness();
}
