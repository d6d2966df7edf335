/* Files of the audit log as they may be found: lines that are too long or cut off, compressed ones
 * that are damaged, journals with a header that nobody of ours wrote. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "journal_file.h"
#include "line_reader.h"
#include "tap_main.h"

void suite_audit_files(void);

static char where[64];
static int dir;

static int setup(void)
{
    snprintf(where, sizeof where, "/tmp/durward-files-XXXXXX");
    if (mkdtemp(where) == NULL)
        return -1;
    dir = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir < 0 ? -1 : 0;
}

static int teardown(void)
{
    close(dir);
    return rmdir(where);
}

/* A file without a name; the caller closes it. */
static int file_of(const void *p, size_t n)
{
    int fd = open(where, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(write(fd, p, n), (ssize_t)n);
    return fd;
}

static int packed(const void *p, size_t n, size_t cut, size_t flip)
{
    size_t room = ZSTD_compressBound(n);
    char *to = malloc(room);
    CU_ASSERT_PTR_NOT_NULL_FATAL(to);
    ZSTD_CCtx *c = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
    size_t got = ZSTD_compress2(c, to, room, p, n);
    CU_ASSERT_FATAL(!ZSTD_isError(got) && cut < got);
    if (flip)
        to[flip] = (char)(to[flip] ^ 0x55);
    int fd = file_of(to, got - cut);
    ZSTD_freeCCtx(c);
    free(to);
    return fd;
}

/* What each call says, one letter each, up to its end or error. */
static const char *read_all(int fd, char *first)
{
    static char got[64];
    static const char letters[] = "EWTLX";
    struct line_reader *r = line_reader_new(fd);
    struct slice line = {"", 0};
    enum line_state s;
    size_t n = 0;
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    do {
        uint64_t before = line_reader_after(r);
        s = line_reader_next(r, &line);
        got[n++] = letters[s];
        if (s == LINE_WHOLE && first && n == 1)
            snprintf(first, 64, "%.*s", SL(line));
        CU_ASSERT(s == LINE_ERROR || line_reader_after(r) >= before);
        CU_ASSERT(s != LINE_WHOLE || line_reader_after(r) - line_reader_at(r) == line.n + 1);
    } while (s != LINE_END && s != LINE_ERROR && n < sizeof got - 1);
    got[n] = 0;
    line_reader_free(r);
    return got;
}

static const char *plain(const char *p, size_t n, char *first)
{
    int fd = file_of(p, n);
    const char *got = read_all(fd, first);
    close(fd);
    return got;
}

static void test_lines(void)
{
    char first[64] = "";
    CU_ASSERT_STRING_EQUAL(plain("", 0, NULL), "E");
    CU_ASSERT_STRING_EQUAL(plain("a\n\nb\n", 5, first), "WWWE");
    CU_ASSERT_STRING_EQUAL(first, "a");
    CU_ASSERT_STRING_EQUAL(plain("a\nb", 3, NULL), "WTE");
    CU_ASSERT_STRING_EQUAL(plain("\0\n", 2, NULL), "WE");
}

static void test_long(void)
{
    size_t size = 3 << 20;
    char *text = malloc(size), first[64];
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    memset(text, 'x', size);
    CU_ASSERT_STRING_EQUAL(plain(text, size, NULL), "LE"); /* to the end of the file */
    text[size - 3] = '\n';
    text[size - 1] = '\n';
    CU_ASSERT_STRING_EQUAL(plain(text, size, NULL), "LWE"); /* what stands behind it is read */
    memcpy(text, "first\n", 6);
    text[size / 2] = '\n';
    text[size / 2 + 2] = '\n';
    CU_ASSERT_STRING_EQUAL(plain(text, size, first), "WLWLWE");
    CU_ASSERT_STRING_EQUAL(first, "first");
    int fd = packed(text, size, 0, 0);
    CU_ASSERT_STRING_EQUAL(read_all(fd, first), "WLWLWE");
    CU_ASSERT_STRING_EQUAL(first, "first");
    close(fd);
    text[RENDER_LINE_MAX] = '\n'; /* the longest that is one, and one byte more */
    CU_ASSERT_STRING_EQUAL(plain(text + 6, RENDER_LINE_MAX - 5, NULL), "WE");
    memset(text, 'x', size);
    text[RENDER_LINE_MAX] = '\n';
    CU_ASSERT_STRING_EQUAL(plain(text, RENDER_LINE_MAX + 1, NULL), "WE");
    text[RENDER_LINE_MAX] = 'x';
    text[RENDER_LINE_MAX + 1] = '\n';
    CU_ASSERT_STRING_EQUAL(plain(text, RENDER_LINE_MAX + 2, NULL), "LE");
    free(text);
}

/* A compressed file that is damaged or cut off is an error, never an early end. */
static void test_packed(void)
{
    enum { LINES = 5000, EACH = 32 };
    char *text = malloc((size_t)LINES * EACH + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    for (size_t i = 0; i < LINES; i++)
        snprintf(text + i * EACH, EACH + 1, "%08zu %22lx\n", i, (unsigned long)(i * 2654435761U));
    size_t n = (size_t)LINES * EACH;
    int fd = packed(text, n, 0, 0);
    struct line_reader *r = line_reader_new(fd);
    struct slice line;
    for (size_t i = 0; i < LINES; i += 499) { /* forth and, the second time, back */
        size_t at = i % 2 ? n - (i + 1) * EACH : i * EACH;
        line_reader_seek(r, at);
        CU_ASSERT_EQUAL_FATAL(line_reader_next(r, &line), LINE_WHOLE);
        CU_ASSERT(line.n == EACH - 1 && memcmp(line.p, text + at, line.n) == 0);
        CU_ASSERT_EQUAL(line_reader_at(r), at);
    }
    line_reader_seek(r, n);
    CU_ASSERT_EQUAL(line_reader_next(r, &line), LINE_END);
    line_reader_seek(r, n + 100);
    CU_ASSERT_EQUAL(line_reader_next(r, &line), LINE_END);
    line_reader_free(r);
    close(fd);
    for (size_t cut = 1; cut < 2000; cut += 250) {
        fd = packed(text, n, cut, 0);
        r = line_reader_new(fd);
        enum line_state s;
        size_t whole = 0;
        while ((s = line_reader_next(r, &line)) == LINE_WHOLE)
            whole++;
        CU_ASSERT(s == LINE_ERROR && errno == EIO && whole < LINES + 1);
        line_reader_free(r);
        close(fd);
    }
    for (size_t flip = 5; flip < 3000; flip += 300) {
        fd = packed(text, n, 0, flip);
        r = line_reader_new(fd);
        enum line_state s;
        do
            s = line_reader_next(r, &line);
        while (s == LINE_WHOLE || s == LINE_LONG);
        CU_ASSERT_EQUAL(s, LINE_ERROR);
        line_reader_free(r);
        close(fd);
    }
    free(text);
    line_reader_free(NULL);
    fd = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* what cannot be read */
    CU_ASSERT_STRING_EQUAL(read_all(fd, NULL), "X");
    close(fd);
}

/* ---- journals ---- */

static void put(const char *name, const void *p, size_t n)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(write(fd, p, n), (ssize_t)n);
    close(fd);
}

static struct journal_file about(uint32_t channel)
{
    return (struct journal_file){.channel = channel,
                                 .role = 3,
                                 .birth = UINT64_C(0x0102030405060708),
                                 .sandbox = "sb-1",
                                 .policy = "p"};
}

static void test_journal(void)
{
    struct journal_file f = about(7), got, other = about(7);
    struct err err = {0};
    unsigned char head[256];
    int writer = -1, second = -1;
    CU_ASSERT_EQUAL_FATAL(journal_file_make(&f, dir, &writer, &err), 0);
    CU_ASSERT_EQUAL(fcntl(writer, F_GETFL) & (O_ACCMODE | O_APPEND), O_WRONLY | O_APPEND);
    CU_ASSERT_EQUAL(fcntl(f.fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    CU_ASSERT_EQUAL(journal_file_make(&other, dir, &second, &err), -1); /* one a channel */
    CU_ASSERT(other.fd == -1 && second == -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "cannot make a journal"));
    CU_ASSERT_EQUAL(faccessat(dir, "7.j", F_OK, 0), 0); /* the first one's is still there */
    CU_ASSERT_EQUAL(write(writer, "0123456789", 10), 10);
    CU_ASSERT_EQUAL(journal_file_look(&f).size, f.start + 10);
    CU_ASSERT_EQUAL(journal_file_read(&f, head, sizeof head), 10);
    CU_ASSERT_EQUAL(journal_file_held(&f), 1);
    close(writer);
    CU_ASSERT_EQUAL(journal_file_held(&f), 0);
    CU_ASSERT_EQUAL(journal_file_load(&got, dir, "7.j", &err), 0);
    CU_ASSERT(got.channel == 7 && got.role == 3 && got.birth == f.birth && got.pos == f.start);
    CU_ASSERT(strcmp(got.sandbox, "sb-1") == 0 && strcmp(got.policy, "p") == 0);
    got.pos += 4;
    CU_ASSERT_EQUAL(journal_file_cut(&got, &err), 0);
    CU_ASSERT_EQUAL(journal_file_look(&f).size, f.start + 4);
    CU_ASSERT_FALSE(journal_file_look(&f).removed);
    CU_ASSERT_EQUAL(journal_file_remove(&got, &err), 0);
    CU_ASSERT_TRUE(journal_file_look(&f).removed);
    CU_ASSERT_EQUAL(journal_file_remove(&got, &err), 0); /* it is gone already */
    CU_ASSERT_EQUAL(journal_file_cut(&f, &err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "cannot open a journal"));
    journal_file_done(&f);
    CU_ASSERT_EQUAL(journal_file_look(&f).size, f.start); /* it cannot be told any more */
    CU_ASSERT_EQUAL(journal_file_held(&f), -1);
    memset(f.sandbox, 'x', sizeof f.sandbox - 1);
    memset(f.policy, 'y', sizeof f.policy - 1);
    CU_ASSERT_EQUAL(journal_file_make(&f, dir, &writer, &err), 0); /* the longest names */
    close(writer);
    CU_ASSERT_EQUAL(journal_file_load(&got, dir, "7.j", &err), 0);
    CU_ASSERT_STRING_EQUAL(got.policy, f.policy);
    journal_file_done(&f);
    CU_ASSERT_EQUAL(mkdirat(dir, "d", 0700), 0);
    unlinkat(dir, "7.j", 0);
    CU_ASSERT_EQUAL(mkdirat(dir, "7.j", 0700), 0);
    CU_ASSERT_EQUAL(journal_file_remove(&got, &err), -1);
    CU_ASSERT_EQUAL(journal_file_load(&got, dir, "7.j", &err), -1); /* a directory */
    CU_ASSERT_EQUAL(got.fd, -1);
    unlinkat(dir, "7.j", AT_REMOVEDIR);
    unlinkat(dir, "d", AT_REMOVEDIR);
}

static void test_names(void)
{
    static const char *const bad[] = {
        "",     ".j",   "x.j",  "0.j",          "-1.j",  "1",
        "1.jj", "+1.j", "1 .j", "4294967296.j", "1.j.j", "99999999999999999999.j"};
    struct journal_file f;
    struct err err = {0};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CU_ASSERT_EQUAL(journal_file_load(&f, dir, bad[i], &err), -1);
        CU_ASSERT_EQUAL(f.fd, -1);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "is not a journal's name"));
    }
    CU_ASSERT_EQUAL(journal_file_load(&f, dir, "1.j", &err), -1);
    CU_ASSERT_EQUAL(err.code, ERR_SYS);
    CU_ASSERT_EQUAL(symlinkat("/dev/zero", dir, "1.j"), 0);
    CU_ASSERT_EQUAL(journal_file_load(&f, dir, "1.j", &err), -1);
    unlinkat(dir, "1.j", 0);
}

/* Each header that can be left is whole, unfinished or refused; nothing is read behind its end. */
static void test_headers(void)
{
    static const unsigned char good[] = "DURWARD1\0\0\0\x12\3\0\0\0\0\0\0\0\x09\0\4sb-1\0\1p";
    enum { GOOD = sizeof good - 1 };
    static const struct {
        size_t at;
        unsigned char to;
    } bad[] = {{0, 'd'}, {7, '2'}, {8, 1},  {10, 8}, {11, 12}, {11, 0x11},
               {21, 1},  {22, 5},  {22, 3}, {27, 1}, {28, 2},  {23, 0}};
    struct journal_file f;
    struct err err = {0};
    for (size_t n = 0; n <= GOOD; n++) {
        put("5.j", good, n);
        CU_ASSERT_EQUAL(journal_file_load(&f, dir, "5.j", &err), n < GOOD);
        CU_ASSERT(n < GOOD || (strcmp(f.sandbox, "sb-1") == 0 && f.start == GOOD));
        journal_file_done(&f);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        unsigned char text[2048] = {0};
        memcpy(text, good, GOOD);
        text[bad[i].at] = bad[i].to;
        put("5.j", text, sizeof text);
        int r = journal_file_load(&f, dir, "5.j", &err);
        if (r != -1)
            printf("# byte %zu as %u: %d\n", bad[i].at, bad[i].to, r);
        CU_ASSERT_EQUAL(r, -1);
        CU_ASSERT_EQUAL(f.fd, -1);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "malformed header"));
    }
    unlinkat(dir, "5.j", 0);
}

void suite_audit_files(void)
{
    CU_pSuite s = CU_add_suite("audit_files", setup, teardown);
    CU_add_test(s, "lines", test_lines);
    CU_add_test(s, "lines that are too long", test_long);
    CU_add_test(s, "compressed files, whole and damaged", test_packed);
    CU_add_test(s, "a journal", test_journal);
    CU_add_test(s, "names that are no journal's", test_names);
    CU_add_test(s, "headers that are none", test_headers);
}

void tap_suites(void)
{
    suite_audit_files();
}
