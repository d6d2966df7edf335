/* The newest records that match: the same with an index of blocks, with a damaged one, and without.
 */
#include "audit_fixture.h"
#include "block_plan.h"
#include "index_file.h"
#include "log_blocks.h"
#include "log_search.h"
#include "log_compress.h"
#include "timestamp.h"
#include "tap_main.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    LINES = 13000,
    FAR = 9,
    OPEN = 700 /* requests under way at once */,
    LONG = 6000,
    DENIED = 11 /* one in so many */
};

static const char first_log[] = "audit-20260101T000000Z.jsonl",
                  second_log[] = "audit-20260101T000001Z.jsonl",
                  active[] = "audit-20260101T000002Z.jsonl";
static char *dir;
static int dirfd = -1;
static uint64_t began;
static struct open_request_terms *begun_by;

struct out {
    size_t n;
    uint64_t hash, last;
};

static void take(void *arg, const struct query_row *row)
{
    struct out *o = arg;
    o->n++;
    for (size_t i = 0; i < row->line.n; i++)
        o->hash = (o->hash ^ (unsigned char)row->line.p[i]) * UINT64_C(1099511628211);
    CU_ASSERT(slice_u64((struct slice){row->line.p + 7,
                                       (size_t)((char *)memchr(row->line.p, ',', row->line.n) -
                                                row->line.p - 7)},
                        UINT64_MAX, &o->last) == 0);
}

static void put_line(FILE *f, unsigned seq, const char *kind, unsigned id, const char *rest)
{
    char at[TIMESTAMP_MAX];
    timestamp_text(began + (uint64_t)seq * 1000000, at, sizeof at);
    fprintf(f,
            "{\"seq\":%u,\"prev\":\"%064x\",\"kind\":\"%s\",\"id\":\"3-%u\",\"at\":%u,\"time\":"
            "\"%s\",\"received\":\"%s\",\"role\":\"gate\",\"sandbox\":\"sb-%u\",\"policy\":"
            "\"coder\"%s}\n",
            seq, seq * 2654435761u, kind, id, seq, at, at, id % 40, rest);
}

/* The request that ends with this line: OPEN lines before it, one in FAR much more. 0: none. */
static unsigned begun(unsigned seq)
{
    unsigned near = seq + 1 - OPEN, far = seq + 1 - LONG;
    if (seq > OPEN && near % FAR)
        return near % DENIED ? near : 0;
    return seq > LONG && far % FAR == 0 && far % DENIED ? far : 0;
}

/* Three files of one chain; requests have their ends OPEN lines later, or LONG. */
static void make(void)
{
    static const char *const names[] = {first_log, second_log, active};
    char path[512], rest[512];
    unsigned seq = 0;
    for (unsigned part = 0; part < 3; part++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[part]);
        FILE *f = fopen(path, "w");
        CU_ASSERT_PTR_NOT_NULL_FATAL(f);
        unsigned lines = part == 2 ? LINES / 10 : LINES;
        for (unsigned i = 0; i < lines; i++) {
            seq++;
            unsigned of = seq % 2 ? 0 : begun(seq);
            if (of) {
                snprintf(rest, sizeof rest, ",\"status\":%u,\"bytes_down\":%u",
                         seq % 9970 == 0 ? 418 : 200, seq * 7919 % 100003);
                put_line(f, seq, "completed", of, rest);
                continue;
            }
            snprintf(rest, sizeof rest,
                     ",\"scheme\":\"https\",\"authority\":\"h%u.example.com\",\"method\":\"GET\","
                     "\"path\":\"/a/%u/%s/padding-padding-padding\",\"rule\":\"allow h%u\"",
                     seq % 301, seq * 31337 % 1000003, seq % 7001 == 5 ? "Needle" : "hay",
                     seq % 301);
            put_line(f, seq, seq % 2 && seq % DENIED ? "admitted" : "denied", seq, rest);
        }
        if (part == 2)
            fputs("{\"seq\":torn", f);
        fclose(f);
    }
}

static void pack(const char *name)
{
    struct err err = {0};
    struct log_compress *s = log_compress_new(dirfd, name, begun_by, &err);
    int r = s ? 1 : -1;
    while (r > 0)
        r = log_compress_step(s, &err);
    CU_ASSERT_EQUAL_FATAL(r, 0);
    log_compress_free(s);
}

static struct out search(const struct query_filter *f, size_t rows, bool no_index)
{
    struct log_tree t;
    struct err err = {0};
    struct out o = {0};
    struct log_search s = {.rows = rows, .no_index = no_index};
    bool more;
    uint64_t bad;
    CU_ASSERT_EQUAL_FATAL(log_tree_open(&t, dir, &err), 0);
    CU_ASSERT_EQUAL(log_search_newest(&t, f, &s, take, &o, &more, &bad, &err), 0);
    CU_ASSERT_EQUAL(bad, 0);
    CU_ASSERT(!more || o.n == rows);
    log_tree_done(&t);
    return o;
}

static int feed(void *q, const struct log_tree_dir *d, struct slice line)
{
    query_line(q, d->tag, line, false);
    return 0;
}

/* How many there are, told by a reading of all from the front. */
static size_t count(const struct query_filter *f)
{
    struct log_tree t;
    struct err err = {0};
    struct out o = {0};
    CU_ASSERT_EQUAL_FATAL(log_tree_open(&t, dir, &err), 0);
    struct query *q = query_new(f, take, &o);
    CU_ASSERT_EQUAL(log_tree_read(&t, t.dir[0], 0, feed, q, &err), 0);
    query_free(q);
    log_tree_done(&t);
    return o.n;
}

static const struct {
    struct query_filter f;
    size_t least; /* rows */
} questions[] = {
    {{0}, LINES * 2},
    {{.host = "h17.example.com"}, 60},
    {{.host = "h17.example.com", .kinds = 1U << RECORD_COMPLETED}, 20},
    {{.rule = "allow h300", .status = 200}, 20},
    {{.host = ".example.com", .status = 418}, 1},
    {{.sandbox = "sb-7"}, 600},
    {{.sandbox = "sb-70"}, 0},
    {{.status = 418}, 1},
    {{.text = "NEEDLE"}, 2},
    {{.text = "needle", .kinds = 1U << RECORD_DENIED}, 0},
    {{.text = "ay/padding"}, LINES / 2},
    {{.text = "/1234"}, 1},
    {{.text = "Zq"}, 0},
    {{.kinds = 1U << RECORD_DENIED, .host = "h5.example.com"}, 2},
    {{.id = "3-10001"}, 1},
    {{.method = "GET", .text = "418"}, 1},
};

/* With sanitizers, or emulated, a search takes ten times as long: each question is asked of one
 * tree there, of each tree in the other build. */
static size_t trees(void)
{
#ifdef __SANITIZE_ADDRESS__
    return 3;
#else
    return getenv("DURWARD_EMULATED") ? 3 : 1;
#endif
}

static void same_everywhere(const char *what, bool again)
{
    static const size_t rows[] = {1, 30, 100000};
    static size_t tree;
    for (size_t i = tree++ % trees(); i < ARRAY_LEN(questions); i += trees()) {
        const struct query_filter *f = &questions[i].f;
        size_t all = again ? 0 : count(f);
        for (size_t k = again ? 2 : 0; k < ARRAY_LEN(rows); k++) {
            struct out a = search(f, rows[k], false), b = search(f, rows[k], true);
            bool same = a.n == b.n && a.hash == b.hash;
            CU_ASSERT(same);
            /* from the front an end may have lost its beginning; from the back never */
            if (!same || (!again && b.n < (all < rows[k] ? all : rows[k])))
                printf("# %s, question %zu, %zu rows: %zu with, %zu without, %zu in all\n", what, i,
                       rows[k], a.n, b.n, all);
            CU_ASSERT(again || b.n >= (all < rows[k] ? all : rows[k]));
            if (rows[k] == 100000 && b.n < questions[i].least)
                printf("# %s, question %zu: %zu rows\n", what, i, b.n);
            CU_ASSERT(rows[k] < 100000 || b.n >= questions[i].least);
        }
    }
}

static void test_plain(void)
{
    struct err err = {0};
    dir = fixture_dir();
    dirfd = fixture_open(dir);
    begun_by = open_request_terms_new();
    CU_ASSERT_EQUAL(timestamp_parse("2026-01-01T00:00:00Z", 0, &began, NULL), 0);
    make();
    CU_ASSERT_EQUAL(log_blocks_make(dirfd, first_log, begun_by, &err), 1);
    CU_ASSERT_EQUAL(log_blocks_make(dirfd, second_log, begun_by, &err), 1);
    same_everywhere("plain", false);
}

static void test_packed(void)
{
    struct err err = {0};
    log_blocks_remove(dirfd, first_log);
    log_blocks_remove(dirfd, second_log);
    open_request_terms_free(begun_by);
    begun_by = open_request_terms_new();
    pack(first_log);
    pack(second_log);
    CU_ASSERT(log_blocks_exists(dirfd, first_log) && log_blocks_exists(dirfd, second_log));
    same_everywhere("packed", false);
    log_blocks_remove(dirfd, first_log);
    CU_ASSERT_EQUAL(log_blocks_make(dirfd, "audit-20260101T000000Z.jsonl.zst", begun_by, &err), 1);
    same_everywhere("made anew", true);
}

/* What is rare is found in few blocks, and what is not there in hardly any. */
static void test_few(void)
{
    static const char packed[] = "audit-20260101T000000Z.jsonl.zst";
    const struct query_filter rare[] = {
        {.text = "xylophone"}, {.sandbox = "sb-70"}, {.status = 503}};
    for (size_t i = 0; i < ARRAY_LEN(rare); i++) {
        struct block_plan p;
        size_t chosen = 0;
        CU_ASSERT_EQUAL_FATAL(block_plan_load(&p, dirfd, packed, true, &rare[i]), 1);
        for (size_t k = 0; k < p.n; k++)
            chosen += (p.at[k].flags & PLAN_MATCH) != 0;
        if (p.n <= 32 || chosen > p.n / 8)
            printf("# %zu: %zu of %zu blocks\n", i, chosen, p.n);
        CU_ASSERT(p.n > 32 && chosen <= p.n / 8);
        block_plan_done(&p);
    }
}

static void test_since(void)
{
    struct query_filter f = {.since = began + UINT64_C(25000) * 1000000};
    CU_ASSERT_EQUAL(search(&f, 100000, false).n, LINES * 2 + LINES / 10 - 25000 + 1);
    f.host = "h17.example.com";
    struct out a = search(&f, 100000, false), b = search(&f, 100000, true);
    CU_ASSERT(a.n > 1 && a.n == b.n && a.hash == b.hash);
    f.since = 0;
    f.until = began + UINT64_C(13000) * 1000000;
    a = search(&f, 30, false), b = search(&f, 30, true);
    CU_ASSERT(a.n == 30 && a.hash == b.hash && a.last < 13000);
}

/* A bit here and there: never another answer. */
static void test_damaged(void)
{
    static char bytes[1 << 22];
    const struct query_filter f = {.text = "needle"};
    struct out want = search(&f, 100000, true);
    char name[INDEX_NAME_MAX];
    index_file_name(first_log, BLOCKS_ENDING, name);
    int fd = openat(dirfd, name, O_RDWR | O_CLOEXEC);
    ssize_t n = read(fd, bytes, sizeof bytes);
    CU_ASSERT_FATAL(n > 100000);
    for (ssize_t i = 0; i < n; i += i < 120 ? 9 : i < 6000 ? 1451 : 29973) {
        char other = (char)(bytes[i] ^ 4);
        CU_ASSERT_EQUAL(pwrite(fd, &other, 1, i), 1);
        struct out got = search(&f, 100000, false);
        CU_ASSERT(got.n == want.n && got.hash == want.hash);
        CU_ASSERT_EQUAL(pwrite(fd, bytes + i, 1, i), 1);
    }
    CU_ASSERT_EQUAL(ftruncate(fd, n / 2), 0);
    CU_ASSERT_EQUAL(search(&f, 100000, false).hash, want.hash);
    close(fd);
    /* the index of another file: the blocks are not where it says */
    char other[INDEX_NAME_MAX];
    index_file_name(second_log, BLOCKS_ENDING, other);
    CU_ASSERT_EQUAL(renameat(dirfd, other, dirfd, name), 0);
    CU_ASSERT_EQUAL(search(&f, 100000, false).n, want.n);
    fixture_remove(dir);
    close(dirfd);
    open_request_terms_free(begun_by);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("log_search", NULL, NULL);
    CU_add_test(s, "plain files, with an index and without", test_plain);
    CU_add_test(s, "compressed files, with an index and without", test_packed);
    CU_add_test(s, "what is rare is looked for in few places", test_few);
    CU_add_test(s, "times", test_since);
    CU_add_test(s, "a damaged index", test_damaged);
}
