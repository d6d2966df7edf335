/* Tampering with a log: every kind is found, and where. The log is a real one: three files made by
 * three runs of the logger. */
#include "tap_main.h"

#include "audit_fixture.h"
#include "head.h"
#include "verify.h"

#include <CUnit/CUnit.h>
#include <sys/stat.h>

void suite_verify(void);

enum { LOG_MAX = 65536, DENIED = 6 };

static char *dir;
static struct log_dir files;
static char original[3][LOG_MAX];
static size_t sizes[3];

static bool make_run(unsigned run)
{
    struct rig r;
    bool ok = true;
    rig_start(&r, dir, false, "");
    struct journal *j = rig_journal(&r, ROLE_GATE, "box", false);
    for (unsigned i = 0; i < DENIED; i++) {
        struct record rec;
        record_init(&rec, RECORD_DENIED, 0);
        record_put_u64(&rec, RF_STATUS, 400 + run * 10 + i);
        ok &= journal_note(j, &rec) == 0;
    }
    journal_free(j);
    return rig_stop(&r) && ok;
}

static void path_of(unsigned i, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", dir, files.name[i]);
}

static void put_file(unsigned i, const char *bytes, size_t n)
{
    char path[512];
    path_of(i, path, sizeof path);
    FILE *f = fopen(path, "w");
    CU_ASSERT_EQUAL(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static void restore(void)
{
    for (unsigned i = 0; i < 3; i++)
        put_file(i, original[i], sizes[i]);
}

static int set_up(void)
{
    dir = fixture_dir();
    for (unsigned i = 0; i < 3; i++)
        if (!make_run(i))
            return -1;
    int fd = fixture_open(dir);
    if (log_dir_list(fd, &files, NULL) < 0 || files.n != 3)
        return -1;
    for (unsigned i = 0; i < 3; i++) {
        char path[512];
        path_of(i, path, sizeof path);
        FILE *f = fopen(path, "r");
        sizes[i] = fread(original[i], 1, LOG_MAX, f);
        fclose(f);
    }
    close(fd);
    return 0;
}

static int tear_down(void)
{
    log_dir_done(&files);
    fixture_remove(dir);
    return 0;
}

static struct verify_result verify_with(const char *key_path)
{
    struct verify_result v = {0};
    struct err err = {0};
    int fd = fixture_open(dir);
    struct signing_key *k = signing_key_public(fd, key_path, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(k);
    verify_dir(fd, k, NULL, &v);
    signing_key_free(k);
    close(fd);
    return v;
}

static struct verify_result verify(void)
{
    return verify_with("key.pub");
}

static void expect_broken(unsigned file, uint64_t line)
{
    struct verify_result v = verify();
    CU_ASSERT_FALSE(v.ok);
    CU_ASSERT_STRING_EQUAL(v.file, files.name[file]);
    CU_ASSERT_EQUAL(v.line, line);
    CU_ASSERT_TRUE(v.why[0] != 0);
    if (strcmp(v.file, files.name[file]) != 0 || v.line != line)
        printf("# %s:%lu %s\n", v.file, (unsigned long)v.line, v.why);
    restore();
}

/* Start of line `n` (1-based) in file i. */
static size_t line_start(unsigned i, unsigned n)
{
    size_t at = 0;
    while (--n)
        at = (size_t)((char *)memchr(original[i] + at, '\n', sizes[i] - at) - original[i]) + 1;
    return at;
}

static unsigned lines_of(unsigned i)
{
    unsigned n = 0;
    for (size_t at = 0; at < sizes[i]; at++)
        n += original[i][at] == '\n';
    return n;
}

static void test_good(void)
{
    struct verify_result v = verify();
    CU_ASSERT_TRUE(v.ok);
    CU_ASSERT_EQUAL(v.records, 3 * (DENIED + 3));
    CU_ASSERT_EQUAL(v.signed_seq, 3 * (DENIED + 3));
    CU_ASSERT_EQUAL(v.unsigned_records, 0);
    CU_ASSERT_FALSE(v.torn);
}

/* Every byte of the second file in turn. What a changed line says is seen at that line (its number
 * or link) or at the next one (its hash). */
static void test_every_byte(void)
{
    static char changed[LOG_MAX];
    uint64_t line = 1;
    for (size_t at = 0; at < sizes[1]; at++) {
        memcpy(changed, original[1], sizes[1]);
        changed[at] ^= 1;
        put_file(1, changed, sizes[1]);
        struct verify_result v = verify();
        /* without the newline between them the last two lines are one */
        bool last = line + 1 >= lines_of(1);
        bool here = strcmp(v.file, files.name[1]) == 0 && (v.line == line || v.line == line + 1);
        bool next_file = last && strcmp(v.file, files.name[2]) == 0 && v.line == 1;
        CU_ASSERT_FALSE_FATAL(v.ok);
        CU_ASSERT_TRUE(here || next_file);
        line += original[1][at] == '\n';
    }
    restore();
}

/* The last record is only held by the head. */
static void test_last_line(void)
{
    static char changed[LOG_MAX];
    size_t at = line_start(2, lines_of(2));
    for (; at + 1 < sizes[2]; at++) {
        memcpy(changed, original[2], sizes[2]);
        changed[at] ^= 4;
        put_file(2, changed, sizes[2]);
        struct verify_result v = verify();
        CU_ASSERT_FALSE_FATAL(v.ok);
        CU_ASSERT_STRING_EQUAL(v.file, files.name[2]);
        CU_ASSERT_EQUAL(v.line, lines_of(2));
    }
    restore();
}

static void cut_out(unsigned i, size_t from, size_t to)
{
    static char changed[LOG_MAX];
    memcpy(changed, original[i], from);
    memcpy(changed + from, original[i] + to, sizes[i] - to);
    put_file(i, changed, sizes[i] - (to - from));
}

static void test_dropped(void)
{
    cut_out(1, line_start(1, 3), line_start(1, 4));
    expect_broken(1, 3);
    cut_out(0, 0, line_start(0, 2)); /* the very first */
    expect_broken(0, 1);
    cut_out(0, line_start(0, lines_of(0)), sizes[0]); /* the last of a file */
    expect_broken(1, 1);
}

static void test_swapped(void)
{
    static char changed[LOG_MAX];
    size_t a = line_start(1, 3), b = line_start(1, 4), c = line_start(1, 5);
    memcpy(changed, original[1], sizes[1]);
    memcpy(changed + a, original[1] + b, c - b);
    memcpy(changed + a + (c - b), original[1] + a, b - a);
    put_file(1, changed, sizes[1]);
    expect_broken(1, 3);
}

static void test_inserted(void)
{
    static char changed[LOG_MAX];
    size_t a = line_start(1, 3), b = line_start(1, 4);
    memcpy(changed, original[1], b);
    memcpy(changed + b, original[1] + a, sizes[1] - a); /* line 3 twice */
    put_file(1, changed, sizes[1] + (b - a));
    expect_broken(1, 4);
    memcpy(changed, original[1], a);
    memcpy(changed + a, "hello\n", 6);
    memcpy(changed + a + 6, original[1] + a, sizes[1] - a);
    put_file(1, changed, sizes[1] + 6);
    CU_ASSERT_PTR_NOT_NULL(strstr(verify().why, "not a line of an audit log"));
    expect_broken(1, 3);
}

static void test_truncated(void)
{
    put_file(2, original[2], line_start(2, 4)); /* whole lines missing at the end */
    expect_broken(2, 0);
    put_file(2, original[2], line_start(2, 4) + 10); /* inside a line */
    expect_broken(2, 4);
    put_file(1, original[1], sizes[1] - 5);
    expect_broken(1, lines_of(1));
    put_file(2, original[2], 0);
    expect_broken(2, 0);
}

static void test_file_gone(void)
{
    char path[512];
    path_of(1, path, sizeof path);
    CU_ASSERT_EQUAL(unlink(path), 0);
    expect_broken(2, 1);
    path_of(2, path, sizeof path);
    CU_ASSERT_EQUAL(unlink(path), 0);
    expect_broken(1, 0);
}

static void swap_files(const char *a, const char *b)
{
    char pa[512], pb[512], tmp[512];
    snprintf(pa, sizeof pa, "%s/%s", dir, a);
    snprintf(pb, sizeof pb, "%s/%s", dir, b);
    snprintf(tmp, sizeof tmp, "%s/tmp", dir);
    CU_ASSERT_EQUAL(rename(pa, tmp), 0);
    CU_ASSERT_EQUAL(rename(pb, pa), 0);
    CU_ASSERT_EQUAL(rename(tmp, pb), 0);
}

static void test_files_swapped(void)
{
    swap_files(files.name[0], files.name[1]);
    expect_broken(1, 1); /* the log might begin with its second file; the third line would say so */
}

static void rename_head(const char *from, const char *to)
{
    char a[512], b[512];
    snprintf(a, sizeof a, "%s/%s", dir, from);
    snprintf(b, sizeof b, "%s/%s", dir, to);
    CU_ASSERT_EQUAL(rename(a, b), 0);
}

static void test_no_head(void)
{
    rename_head("head", "head.away");
    struct verify_result v = verify();
    CU_ASSERT_FALSE(v.ok);
    CU_ASSERT_STRING_EQUAL(v.file, "head");
    rename_head("head.away", "head");
}

/* A forger signs with a key of his own: the public key that was kept elsewhere says no. */
static void test_other_key(void)
{
    struct err err = {0};
    struct head h;
    char *other = fixture_dir(), path[512];
    int fd = fixture_open(dir), forger = fixture_open(other);
    struct signing_key *mine = signing_key_public(fd, "key.pub", &err);
    struct signing_key *theirs = signing_key_open(forger, &err);
    CU_ASSERT_EQUAL(head_read(fd, &h, mine, &err), 1);
    rename_head("head", "head.away");
    put_file(2, original[2], line_start(2, 4));
    h.tip.seq -= 1;
    CU_ASSERT_EQUAL(head_write(fd, &h, theirs, &err), 0);
    struct verify_result v = verify();
    CU_ASSERT_FALSE(v.ok);
    CU_ASSERT_STRING_EQUAL(v.file, "head");
    CU_ASSERT_STRING_EQUAL(v.why, "head is not signed by this key");
    restore();
    rename_head("head.away", "head");
    snprintf(path, sizeof path, "%s/key.pub", other);
    v = verify_with(path); /* and a good log under another key */
    CU_ASSERT_FALSE(v.ok);
    CU_ASSERT_TRUE(verify().ok);
    signing_key_free(mine);
    signing_key_free(theirs);
    close(fd);
    close(forger);
    fixture_remove(other);
}

/* Records after the head are accepted and counted; a torn end there, too. */
static void test_after_head(void)
{
    char path[512], line[4096], hex[CHAIN_HEX];
    struct chain c;
    struct err err = {0};
    struct head h;
    int fd = fixture_open(dir);
    struct signing_key *k = signing_key_public(fd, "key.pub", &err);
    CU_ASSERT_EQUAL(head_read(fd, &h, k, &err), 1);
    signing_key_free(k);
    close(fd);
    c = h.tip;
    path_of(2, path, sizeof path);
    FILE *f = fopen(path, "a");
    for (int i = 0; i < 3; i++) {
        int n = snprintf(line, sizeof line, "{\"seq\":%llu,\"prev\":\"%s\",\"kind\":\"dns\"}",
                         (unsigned long long)c.seq + 1, chain_hex(c.hash, hex));
        CU_ASSERT_EQUAL(chain_step(&c, (struct slice){line, (size_t)n}), 0);
        fprintf(f, "%s\n", line);
    }
    fprintf(f, "{\"seq\":");
    fclose(f);
    struct verify_result v = verify();
    CU_ASSERT_TRUE(v.ok);
    CU_ASSERT_EQUAL(v.unsigned_records, 3);
    CU_ASSERT_TRUE(v.torn);
    restore();
}

/* What stands behind the head is held to the chain as well: its number and its link. */
static void test_after_head_wrong(void)
{
    for (int kind = 0; kind < 3; kind++) {
        char path[512], hex[CHAIN_HEX];
        struct err err = {0};
        struct head h;
        int fd = fixture_open(dir);
        struct signing_key *k = signing_key_public(fd, "key.pub", &err);
        CU_ASSERT_EQUAL(head_read(fd, &h, k, &err), 1);
        signing_key_free(k);
        close(fd);
        h.tip.hash[0] ^= kind == 2;
        path_of(2, path, sizeof path);
        FILE *f = fopen(path, "a");
        fprintf(f, "{\"seq\":%llu,\"prev\":\"%s\",\"kind\":\"dns\"}\n",
                (unsigned long long)h.tip.seq + (kind == 0   ? 2
                                                 : kind == 1 ? 0
                                                             : 1),
                chain_hex(h.tip.hash, hex));
        fclose(f);
        expect_broken(2, lines_of(2) + 1);
    }
}

/* A head, signed by the right key, of a record that stands in another file. */
static void test_head_elsewhere(void)
{
    struct err err = {0};
    struct head h;
    int fd = fixture_open(dir);
    struct signing_key *k = signing_key_open(fd, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(k);
    CU_ASSERT_EQUAL(head_read(fd, &h, k, &err), 1);
    rename_head("head", "head.away");
    snprintf(h.file, sizeof h.file, "%s", files.name[0]);
    CU_ASSERT_EQUAL(head_write(fd, &h, k, &err), 0);
    expect_broken(2, lines_of(2));
    rename_head("head.away", "head");
    CU_ASSERT_TRUE(verify().ok);
    signing_key_free(k);
    close(fd);
}

void suite_verify(void)
{
    CU_pSuite s = CU_add_suite("verify", set_up, tear_down);
    CU_add_test(s, "an untouched log is good", test_good);
    CU_add_test(s, "every byte changed", test_every_byte);
    CU_add_test(s, "every byte of the last record", test_last_line);
    CU_add_test(s, "lines dropped", test_dropped);
    CU_add_test(s, "lines swapped", test_swapped);
    CU_add_test(s, "lines inserted", test_inserted);
    CU_add_test(s, "cut off", test_truncated);
    CU_add_test(s, "files removed", test_file_gone);
    CU_add_test(s, "files exchanged", test_files_swapped);
    CU_add_test(s, "head removed", test_no_head);
    CU_add_test(s, "signed by another key", test_other_key);
    CU_add_test(s, "records after the head", test_after_head);
    CU_add_test(s, "records after the head that do not fit", test_after_head_wrong);
    CU_add_test(s, "a head of another file", test_head_elsewhere);
}

void tap_suites(void)
{
    suite_verify();
}
