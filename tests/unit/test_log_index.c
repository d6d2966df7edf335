/* The index of a closed file: it never hides what a query would find, and one that is damaged is
 * not believed. */
#include "log_index.h"
#include "render.h"
#include "terms.h"
#include "timestamp.h"
#include "tap_main.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char name[] = "audit-20260101T000000Z.jsonl";
static char folder[] = "/tmp/durward-index-XXXXXX";
static int dir = -1;

static const char lines[] =
    "{\"seq\":1,\"prev\":"
    "\"0000000000000000000000000000000000000000000000000000000000000000\",\"kind\":\"admitted\","
    "\"id\":\"7-12\",\"at\":10,\"time\":\"2026-01-01T00:00:01.000000000Z\",\"received\":"
    "\"2026-01-01T00:00:02.000000000Z\",\"role\":\"gate\",\"sandbox\":\"sb-one\",\"policy\":"
    "\"coder\",\"scheme\":\"https\",\"authority\":\"API.Example.com:8443\",\"method\":\"GET\","
    "\"path\":\"/x\",\"rule\":\"allow api.example.com\",\"credential\":\"github\"}\n"
    "{\"seq\":2,\"prev\":"
    "\"0000000000000000000000000000000000000000000000000000000000000000\",\"kind\":\"denied\","
    "\"id\":\"7-13\",\"at\":20,\"time\":\"2026-01-01T00:00:03.000000000Z\",\"received\":"
    "\"2026-01-01T00:00:04.000000000Z\",\"role\":\"gate\",\"sandbox\":\"sb-one\",\"policy\":"
    "\"coder\",\"code\":\"no_rule\",\"authority\":\"[2001:db8::1]:443\",\"status\":403}\n";

static void prepare(void)
{
    struct err err = {0};
    if (dir >= 0)
        return;
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CU_ASSERT_EQUAL_FATAL(write(fd, lines, sizeof lines - 1), sizeof lines - 1);
    close(fd);
    CU_ASSERT_FALSE(log_index_exists(dir, name));
    CU_ASSERT_EQUAL_FATAL(log_index_make(dir, name, &err), 0);
    CU_ASSERT_TRUE(log_index_exists(dir, name));
}

static bool may(struct query_filter f)
{
    return log_index_may(dir, name, &f);
}

static uint64_t at(const char *text)
{
    uint64_t ns;
    CU_ASSERT_EQUAL(timestamp_parse(text, 0, &ns, NULL), 0);
    return ns;
}

static void finds(void)
{
    prepare();
    CU_ASSERT(may((struct query_filter){0}));
    CU_ASSERT(may((struct query_filter){.sandbox = "sb-one", .policy = "coder"}));
    CU_ASSERT(may((struct query_filter){.host = "api.example.com"}));
    CU_ASSERT(may((struct query_filter){.host = "Api.Example.COM:8443"}));
    CU_ASSERT(may((struct query_filter){.host = ".example.com"}));
    CU_ASSERT(may((struct query_filter){.host = ".com"}));
    CU_ASSERT(may((struct query_filter){.host = "2001:db8::1"}));
    CU_ASSERT(may((struct query_filter){.rule = "allow api.example.com", .method = "GET"}));
    CU_ASSERT(may((struct query_filter){.credential = "github"}));
    CU_ASSERT(may((struct query_filter){.id = "7-12"}));
    CU_ASSERT(may((struct query_filter){.code = "no_rule", .status = 403, .role = "gate"}));
    CU_ASSERT(may((struct query_filter){.kinds = 1U << RECORD_DENIED}));
    CU_ASSERT(may((struct query_filter){.since = at("2026-01-01T00:00:04Z")}));
    CU_ASSERT(may((struct query_filter){.until = at("2026-01-01T00:00:02.000000001Z")}));
    CU_ASSERT(may((struct query_filter){.text = "anything"}));
    CU_ASSERT(may((struct query_filter){.rule = "a \"quoted\" one", .sandbox = "sb-one"}));
    /* an end may be in another file: what it says of itself excludes nothing here */
    CU_ASSERT(may((struct query_filter){.sandbox = "sb-one", .status = 500}));
    CU_ASSERT(may((struct query_filter){.sandbox = "sb-one", .kinds = 1U << RECORD_COMPLETED}));
}

static void excludes(void)
{
    prepare();
    CU_ASSERT_FALSE(may((struct query_filter){.sandbox = "sb-two"}));
    CU_ASSERT_FALSE(may((struct query_filter){.host = "example.com"}));
    CU_ASSERT_FALSE(may((struct query_filter){.host = ".api.example.com"}));
    CU_ASSERT_FALSE(may((struct query_filter){.id = "8-12"}));
    CU_ASSERT_FALSE(may((struct query_filter){.status = 500}));
    CU_ASSERT_FALSE(may((struct query_filter){.kinds = 1U << RECORD_DNS}));
    CU_ASSERT_FALSE(may((struct query_filter){.since = at("2026-01-01T00:00:04.000000001Z")}));
    CU_ASSERT_FALSE(may((struct query_filter){.until = at("2026-01-01T00:00:02Z")}));
}

static void damaged(void)
{
    static char bytes[LOG_INDEX_BITS / 8 + 4096];
    struct query_filter f = {.sandbox = "sb-two"};
    prepare();
    int fd = openat(dir, "audit-20260101T000000Z.jsonl.idx", O_RDWR | O_CLOEXEC);
    ssize_t n = read(fd, bytes, sizeof bytes);
    CU_ASSERT_FATAL(n > LOG_INDEX_BITS / 8);
    for (ssize_t i = 0; i < n; i += i < 120 ? 1 : 9973) {
        char other = (char)(bytes[i] ^ 4);
        CU_ASSERT_EQUAL(pwrite(fd, &other, 1, i), 1);
        CU_ASSERT(log_index_may(dir, name, &f));
        CU_ASSERT_EQUAL(pwrite(fd, bytes + i, 1, i), 1);
    }
    CU_ASSERT(!log_index_may(dir, name, &f) && log_index_exists(dir, name));
    CU_ASSERT_EQUAL(pwrite(fd, "1", 1, 14), 1); /* of an older version: it is made anew */
    CU_ASSERT(log_index_may(dir, name, &f) && !log_index_exists(dir, name));
    CU_ASSERT_EQUAL(pwrite(fd, bytes + 14, 1, 14), 1);
    CU_ASSERT_EQUAL(ftruncate(fd, n - 1), 0);
    CU_ASSERT(log_index_may(dir, name, &f));
    close(fd);
    log_index_remove(dir, "audit-20260101T000000Z.jsonl.zst"); /* packed meanwhile: the same one */
    CU_ASSERT_FALSE(log_index_exists(dir, name));
    CU_ASSERT(log_index_may(dir, name, &f));
    unlinkat(dir, name, 0);
    rmdir(folder);
}

struct seen {
    size_t n;
    uint64_t term[64];
};

static void see(void *arg, uint64_t term, bool of_request UNUSED)
{
    struct seen *s = arg;
    s->term[s->n++ % ARRAY_LEN(s->term)] = term;
}

static bool was_there(const struct seen *s, uint64_t term)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->term[i] == term)
            return true;
    return false;
}

static bool was_seen(const struct seen *s, const char *key, struct slice value)
{
    return was_there(s, terms_hash(key, value));
}

static void on_row(void *n, const struct query_row *row UNUSED)
{
    ++*(unsigned *)n;
}

/* What the reading of a line finds by a filter the index must not rule out, whatever a role that
 * was taken over wrote: a host of any length, zeros, signs that are escaped. And what is in it is
 * found. */
static void as_the_reader(void)
{
    static char longest[5000];
    static const char *const hosts[] = {"a.example.com",
                                        ".example.com",
                                        ".com",
                                        "a",
                                        longest,
                                        "A.EXAMPLE.com:1",
                                        ".x",
                                        "b",
                                        "::1",
                                        "x",
                                        "a.x"},
                             *const names[] = {"box", "box\\", "b", ""};
    memset(longest, 'y', sizeof longest - 1);
    memcpy(longest + 700, ".sub.example.com", 17);
    const struct slice authorities[] = {slice_str(longest),
                                        SLICE("a\0.example.com:1"),
                                        SLICE("a.x\0y"),
                                        SLICE("A.Example.com:1"),
                                        SLICE("\xc3\xa4.b.x\\.x"),
                                        SLICE("[::1]:443"),
                                        SLICE("b\0"),
                                        SLICE("x:1\0")},
                       boxes[] = {SLICE("box"), SLICE("box\0"), SLICE("b\0ox"), SLICE("box\\")};
    unsigned found = 0;
    for (size_t i = 0; i < ARRAY_LEN(authorities) * ARRAY_LEN(boxes); i++) {
        struct record_view v = {.kind = RECORD_DENIED, .wall_ns = 1, .counter = 34};
        struct render_source from = {12, "gate", "", "p"};
        struct seen s = {0};
        struct chain c;
        struct buf line;
        v.field[RF_AUTHORITY] = authorities[i % ARRAY_LEN(authorities)];
        v.field[RF_SANDBOX] = boxes[i / ARRAY_LEN(authorities)];
        chain_genesis(&c);
        buf_init(&line, RENDER_LINE_MAX);
        CU_ASSERT_EQUAL_FATAL(render_line(&line, &c, &v, &from, 99, 1), 0);
        terms_line(buf_slice(&line), see, &s);
        for (size_t k = 0; k < ARRAY_LEN(hosts) * ARRAY_LEN(names); k++) {
            struct query_filter f = {.host = hosts[k % ARRAY_LEN(hosts)],
                                     .sandbox = names[k / ARRAY_LEN(hosts)]};
            struct terms_wanted w;
            unsigned n = 0, there = 0;
            if (f.sandbox[0] == 0)
                f.sandbox = NULL;
            struct query *q = query_new(&f, on_row, &n);
            CU_ASSERT_PTR_NOT_NULL_FATAL(q);
            query_line(q, 0, buf_slice(&line), false);
            query_free(q);
            terms_filter(&f, &w);
            for (size_t t = 0; t < w.n_request; t++)
                there += was_there(&s, w.request[t]);
            CU_ASSERT(n == 0 || there == w.n_request);
            found += n;
        }
        buf_free(&line);
    }
    CU_ASSERT(found > 20);
}

/* Whatever the values of a line are: each that is looked up by is found in it, and nothing that
 * only looks like one within another. */
static void every_field(void)
{
    static const char *const keys[] = {"rule", "method", "credential", "code", "status"};
    static const char value[] = "a,b}{\":\"\\,\"code\":\"x\",\"authority\":\"evil.example\"";
    struct record_view v = {.kind = RECORD_COMPLETED, .wall_ns = 1, .counter = 34, .cut = true};
    struct render_source from = {12, "gate", "box,one", "p}"};
    struct seen s = {0};
    struct chain c;
    struct buf line;
    for (int f = 1; f < RF_FIELDS; f++)
        v.field[f] = record_field_is_number((enum record_field)f) ? SLICE("207") : slice_str(value);
    v.field[RF_AUTHORITY] = SLICE("API.example.com:8443");
    v.field[RF_TARGET] = SLICE("udp 192.0.2.1:53");
    chain_genesis(&c);
    buf_init(&line, RENDER_LINE_MAX);
    CU_ASSERT_EQUAL_FATAL(render_line(&line, &c, &v, &from, 99, 1), 0);
    struct slice text = buf_slice(&line);
    struct terms_marks marks = terms_line(text, see, &s);
    CU_ASSERT(slice_eq_str(marks.id, "12-34") && slice_starts(marks.received, SLICE("1970-")));
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        char find[32];
        snprintf(find, sizeof find, ",\"%s\":", keys[i]);
        CU_ASSERT(was_seen(&s, keys[i], terms_value(text, find)));
    }
    CU_ASSERT(was_seen(&s, "status", SLICE("207")) && was_seen(&s, "role", SLICE("gate")));
    CU_ASSERT(was_seen(&s, "sandbox", SLICE("box,one")) && was_seen(&s, "policy", SLICE("p}")));
    CU_ASSERT(was_there(&s, terms_host(SLICE("api.example.com:8443"))));
    CU_ASSERT(was_there(&s, terms_host(SLICE("api.example.com"))) &&
              was_there(&s, terms_host(SLICE(".example.com"))));
    CU_ASSERT_FALSE(was_there(&s, terms_host(SLICE("evil.example"))));
    CU_ASSERT_FALSE(was_seen(&s, "code", SLICE("x")));
    buf_free(&line);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("index", NULL, NULL);
    CU_add_test(s, "what is there is found", finds);
    CU_add_test(s, "what is not there is passed over", excludes);
    CU_add_test(s, "a damaged index is not believed", damaged);
    CU_add_test(s, "what a reading finds is not ruled out", as_the_reader);
    CU_add_test(s, "each field of a line, whatever stands in others", every_field);
}
