/* SFTP: packets that are read whole and written anew, paths, and what patterns leave of files. */
#include "sftp_ask.h"
#include "ssh_facts.h"
#include "ssh_wire.h"

#include <stdio.h>
#include <string.h>

#include "tap_main.h"

static struct slice of(const struct buf *b)
{
    return buf_slice(b);
}

/* ---- patterns ---- */

static void test_patterns(void)
{
    static const char *const good[] = {"/srv/**", "/a", "/a/*.log", "~/x", "~/**", "/a/b*c/d"};
    static const char *const bad[] = {"",       "/",     "a",       "~",      "~/",    "~x/y",
                                      "/a/",    "/a//b", "/a/../b", "/a/./b", "/**/a", "/a**",
                                      "/a/**b", "**",    "/a\n",    "/a\\*",  "/..",   "/a/***"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        CU_ASSERT(ssh_file_pattern_ok(slice_str(good[i])));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_FALSE(ssh_file_pattern_ok(slice_str(bad[i])));
}

static const char *const reads[] = {"/srv/read/**", "/srv/up/**", "~/in/*.txt", "/pub/*/www/**"};
static const char *const writes[] = {"/srv/up/**", "/srv/drop/*.log", "~/out"};
static const char *const removes[] = {"/srv/up/**", "/srv/drop/*", "/pub/**"};

static struct ssh_files files(bool hidden)
{
    struct ssh_files f = {.hidden = hidden};
    f.patterns[SSH_FILE_READ] = reads;
    f.n[SSH_FILE_READ] = ARRAY_LEN(reads);
    f.patterns[SSH_FILE_WRITE] = writes;
    f.n[SSH_FILE_WRITE] = ARRAY_LEN(writes);
    f.patterns[SSH_FILE_REMOVE] = removes;
    f.n[SSH_FILE_REMOVE] = ARRAY_LEN(removes);
    return f;
}

static const char *said(const struct ssh_files *f, enum ssh_file_verb verb, const char *path,
                        const char *to)
{
    const struct ssh_file_asked asked = {verb, slice_str(path), slice_str(to)};
    const char *code = ssh_files_refused(f, SLICE("/home/ops"), &asked);
    return code ? code : "ok";
}

static const struct {
    enum ssh_file_verb verb;
    const char *path, *code;
} file_rows[] = {
    {SSH_FILE_GET, "/srv/read/a", "ok"},
    {SSH_FILE_GET, "/srv/read/a/b/c", "ok"},
    {SSH_FILE_GET, "/srv/read", "file"},
    {SSH_FILE_GET, "/srv/readme", "file"},
    {SSH_FILE_GET, "/srv/read/.ssh/id", "file"},
    {SSH_FILE_GET, "/srv/read/a/.env", "file"},
    {SSH_FILE_GET, "/srv/drop/x.log", "file"},
    {SSH_FILE_GET, "/home/ops/in/x.txt", "ok"},
    {SSH_FILE_GET, "/home/ops/in/.x.txt", "file"},
    {SSH_FILE_GET, "/home/ops/in/d/x.txt", "file"},
    {SSH_FILE_GET, "/home/opsx/in/x.txt", "file"},
    {SSH_FILE_GET, "/in/x.txt", "file"},
    {SSH_FILE_GET, "/home/ops_in/x.txt", "file"},
    {SSH_FILE_GET, "/srv/read/../closed", "file_path"},
    {SSH_FILE_GET, "/srv/read//a", "file_path"},
    {SSH_FILE_GET, "/srv/read/a/", "file_path"},
    {SSH_FILE_GET, "/srv/read/a\\..\\b", "file_path"},
    {SSH_FILE_GET, "srv/read/a", "file_path"},
    {SSH_FILE_GET, "", "file_path"},
    {SSH_FILE_READ_LINK, "/srv/drop/x.log", "file"},
    {SSH_FILE_READ_LINK, "/srv/read/x", "ok"},
    {SSH_FILE_PUT, "/srv/up/a", "ok"},
    {SSH_FILE_PUT, "/srv/read/a", "file"},
    {SSH_FILE_PUT, "/srv/drop/x.log", "ok"},
    {SSH_FILE_PUT, "/srv/drop/.log", "file"},
    {SSH_FILE_PUT, "/srv/drop/x.sh", "file"},
    {SSH_FILE_PUT, "/home/ops/out", "ok"},
    {SSH_FILE_PUT, "/home/ops/out/x", "file"},
    {SSH_FILE_GET_PUT, "/srv/up/a", "ok"},
    {SSH_FILE_GET_PUT, "/srv/drop/x.log", "file"},
    {SSH_FILE_SET, "/srv/read/a", "file"},
    {SSH_FILE_SET, "/srv/up/a", "ok"},
    {SSH_FILE_MAKE_DIRECTORY, "/srv/up", "file"},
    {SSH_FILE_MAKE_DIRECTORY, "/srv/up/d", "ok"},
    {SSH_FILE_DELETE, "/srv/up/a", "ok"},
    {SSH_FILE_DELETE, "/srv/read/a", "file"},
    {SSH_FILE_DELETE_DIRECTORY, "/srv/up", "file"},
    {SSH_FILE_DELETE_DIRECTORY, "/srv/up/d", "ok"},
    {SSH_FILE_SEE, "/", "ok"},
    {SSH_FILE_SEE, "/srv", "ok"},
    {SSH_FILE_SEE, "/srv/drop/x.log", "ok"},
    {SSH_FILE_SEE, "/srv/drop/x.sh", "ok"},
    {SSH_FILE_SEE, "/home/ops", "ok"},
    {SSH_FILE_SEE, "/home/other", "file"},
    {SSH_FILE_SEE, "/etc", "file"},
    {SSH_FILE_LIST, "/srv/read", "ok"},
    {SSH_FILE_LIST, "/srv", "ok"},
    {SSH_FILE_LIST, "/srv/drop", "file"},
    {SSH_FILE_LIST, "/pub/x", "ok"},
    {SSH_FILE_LIST, "/pub/x/y", "file"},
};

static void test_files(void)
{
    const struct ssh_files f = files(false), hidden = files(true);
    for (size_t i = 0; i < ARRAY_LEN(file_rows); i++) {
        const char *code = said(&f, file_rows[i].verb, file_rows[i].path, "");
        if (strcmp(code, file_rows[i].code) != 0)
            fprintf(stderr, "# %s %s: %s\n", ssh_file_verb_name(file_rows[i].verb),
                    file_rows[i].path, code);
        CU_ASSERT_STRING_EQUAL(code, file_rows[i].code);
    }
    CU_ASSERT_STRING_EQUAL(said(&hidden, SSH_FILE_GET, "/srv/read/a/.env", ""), "ok");
    CU_ASSERT_STRING_EQUAL(said(&hidden, SSH_FILE_PUT, "/srv/drop/.log", ""), "ok");
    const struct ssh_file_asked away = {SSH_FILE_GET, SLICE_INIT("/home/ops/in/x.txt"), {"", 0}};
    CU_ASSERT_STRING_EQUAL(ssh_files_refused(&f, SLICE(""), &away), "file");
}

/* Another name never gives more. */
static void test_names(void)
{
    static const struct {
        enum ssh_file_verb verb;
        const char *path, *to, *code;
    } rows[] = {
        {SSH_FILE_RENAME, "/srv/up/a", "/srv/up/b/c", "ok"},
        {SSH_FILE_RENAME, "/srv/up/a", "/srv/up/.b", "file"},
        {SSH_FILE_RENAME, "/srv/drop/x.log", "/srv/drop/y.log", "ok"},
        {SSH_FILE_RENAME, "/srv/drop/x.sh", "/srv/drop/y.log", "file"}, /* could be written then */
        {SSH_FILE_RENAME, "/srv/drop/x.log", "/srv/up/x", "file"},      /* could be read then */
        {SSH_FILE_RENAME, "/srv/up/a", "/srv/drop/x.log", "ok"},
        {SSH_FILE_RENAME, "/srv/read/a", "/srv/up/a", "file"},
        {SSH_FILE_RENAME, "/home/ops/out", "/home/ops/out", "file"}, /* it may not be removed */
        {SSH_FILE_RENAME, "/srv/up/a", "/srv/read/a", "file"},
        {SSH_FILE_RENAME, "/pub/a", "/pub/b", "file"}, /* what is in b/www could be read */
        {SSH_FILE_RENAME, "/srv/up/a", "/srv/up/../x", "file_path"},
        {SSH_FILE_RENAME, "/srv/up/a", "", "file_path"},
        {SSH_FILE_LINK, "/srv/up/a", "/srv/up/b", "ok"},
        {SSH_FILE_LINK, "/srv/read/a", "/srv/up/b", "file"},
        {SSH_FILE_LINK, "/etc/passwd", "/srv/up/b", "file"},
        {SSH_FILE_LINK, "/srv/up/a", "/srv/drop/b.log", "ok"},
        {SSH_FILE_LINK, "/srv/drop/b.log", "/srv/up/b", "file"},
        {SSH_FILE_LINK, "/srv/up/a", "/srv/read/b", "file"},
    };
    const struct ssh_files f = files(false);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *code = said(&f, rows[i].verb, rows[i].path, rows[i].to);
        if (strcmp(code, rows[i].code) != 0)
            fprintf(stderr, "# %s to %s: %s\n", rows[i].path, rows[i].to, code);
        CU_ASSERT_STRING_EQUAL(code, rows[i].code);
    }
}

static bool covered(const char *path, const char *to)
{
    const struct ssh_files f = files(false);
    const struct ssh_file_asked asked = {SSH_FILE_RENAME, slice_str(path), slice_str(to)};
    return ssh_files_covered(&f, SLICE("/home/ops"), &asked);
}

/* What may be of a folder, too. */
static void test_covered(void)
{
    CU_ASSERT_TRUE(covered("/srv/up/a", "/srv/up/b/c"));
    CU_ASSERT_FALSE(covered("/srv/up/a", "/srv/drop/x.log"));
    CU_ASSERT_FALSE(covered("/srv/drop/x.log", "/srv/up/b"));
    CU_ASSERT_FALSE(covered("/srv/drop/x.log", "/srv/drop/y.log"));
}

/* A folder whose new name has a pattern deeper below than "**". */
static void test_deep(void)
{
    static const char *const all[] = {"/a/**"}, *const deep[] = {"/a/x/pub/**"};
    struct ssh_files f = {0};
    f.patterns[SSH_FILE_WRITE] = f.patterns[SSH_FILE_REMOVE] = all;
    f.n[SSH_FILE_WRITE] = f.n[SSH_FILE_REMOVE] = 1;
    CU_ASSERT_STRING_EQUAL(said(&f, SSH_FILE_RENAME, "/a/y", "/a/x"), "ok");
    f.patterns[SSH_FILE_READ] = deep;
    f.n[SSH_FILE_READ] = 1;
    CU_ASSERT_STRING_EQUAL(said(&f, SSH_FILE_RENAME, "/a/y", "/a/x"), "file");
    CU_ASSERT_STRING_EQUAL(said(&f, SSH_FILE_RENAME, "/a/y", "/a/x/pub/y"), "file");
    CU_ASSERT_STRING_EQUAL(said(&f, SSH_FILE_RENAME, "/a/x/pub/y", "/a/x/pub/z"), "ok");
}

/* ---- paths ---- */

static void test_paths(void)
{
    static const struct {
        const char *path, *plain;
        bool up;
    } rows[] = {
        {"/a/b", "/a/b", false},  {"/a//b/", "/a/b", false},   {"/./a/.", "/a", false},
        {"", "/home/ops", false}, {".", "/home/ops", false},   {"x", "/home/ops/x", false},
        {"/", "/", false},        {"/a/../b", NULL, false},    {"..", NULL, false},
        {"/a/../b", "/b", true},  {"..", "/home", true},       {"../..", "/", true},
        {"/../..", "/", true},    {"/a/..b", "/a/..b", false}, {"/a/../../b/./c", "/b/c", true},
    };
    char to[SSH_FILE_PATH_MAX + 1], long_[SSH_FILE_PATH_MAX + 2];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool ok = sftp_path_settle(SLICE("/home/ops"), slice_str(rows[i].path), rows[i].up, to);
        CU_ASSERT(ok == (rows[i].plain != NULL));
        if (ok)
            CU_ASSERT_STRING_EQUAL(to, rows[i].plain);
    }
    CU_ASSERT_FALSE(sftp_path_settle(SLICE("/"), SLICE("/a\0b"), false, to));
    CU_ASSERT_FALSE(sftp_path_settle(SLICE("/"), SLICE("/a\\b"), false, to));
    CU_ASSERT(sftp_path_settle(SLICE("/"), SLICE("a"), false, to) && strcmp(to, "/a") == 0);
    memset(long_, 'a', sizeof long_);
    long_[0] = '/';
    CU_ASSERT(sftp_path_settle(SLICE("/"), (struct slice){long_, SSH_FILE_PATH_MAX}, false, to));
    CU_ASSERT_FALSE(
        sftp_path_settle(SLICE("/"), (struct slice){long_, SSH_FILE_PATH_MAX + 1}, false, to));
}

static void test_attributes(void)
{
    struct sftp_attrs a = {.flags = SFTP_HAS_MODE, .mode = 0100644};
    CU_ASSERT(sftp_attrs_settle(SFTP_SETSTAT, &a) && a.mode == 0644);
    a = (struct sftp_attrs){.flags = SFTP_HAS_MODE, .mode = 04755};
    CU_ASSERT_FALSE(sftp_attrs_settle(SFTP_FSETSTAT, &a));
    CU_ASSERT_FALSE(sftp_attrs_settle(SFTP_OPEN, &a));
    a = (struct sftp_attrs){.flags = SFTP_HAS_OWNER};
    CU_ASSERT_FALSE(sftp_attrs_settle(SFTP_SETSTAT, &a));
    a.flags |= SFTP_HAS_SIZE | SFTP_HAS_MODE;
    CU_ASSERT(sftp_attrs_settle(SFTP_MKDIR, &a) && a.flags == SFTP_HAS_MODE);
}

/* ---- packets ---- */

/* What is written is read again as it was; cut, or with more behind, it is nothing. */
static void again(const struct sftp_request *q, struct buf *b)
{
    struct sftp_request got;
    struct slice body;
    size_t n;
    buf_clear(b);
    CU_ASSERT_FATAL(sftp_request_write(q, b) == 0 &&
                    sftp_packet_next(of(b), SFTP_REQUEST_MAX, &body, &n) == 1 && n == buf_len(b));
    CU_ASSERT(sftp_request_read(body, &got) == 0 && got.op == q->op && got.id == q->id &&
              slice_eq(got.path, q->path) && slice_eq(got.to, q->to) &&
              slice_eq(got.handle, q->handle) && slice_eq(got.data, q->data) &&
              got.offset == q->offset && got.n == q->n && got.flags == q->flags &&
              memcmp(&got.attrs, &q->attrs, sizeof got.attrs) == 0);
    for (size_t i = 0; i < body.n; i++) {
        CU_ASSERT(sftp_request_read((struct slice){body.p, i}, &got) < 0);
        CU_ASSERT(sftp_packet_next((struct slice){(char *)buf_data(b), i + 4}, SFTP_REQUEST_MAX,
                                   &body, &n) == 0);
    }
    CU_ASSERT(buf_append(b, "x", 1) == 0 &&
              sftp_request_read((struct slice){(char *)buf_data(b) + 4, buf_len(b) - 4}, &got) < 0);
}

static void test_requests(void)
{
    struct sftp_request rows[] = {
        {.op = SFTP_OPEN, .path = SLICE_INIT("/a"), .flags = 26},
        {.op = SFTP_CLOSE, .handle = SLICE_INIT("h")},
        {.op = SFTP_READ, .handle = SLICE_INIT("h"), .offset = 1ULL << 40, .n = 32768},
        {.op = SFTP_WRITE, .handle = SLICE_INIT("h"), .offset = 7, .data = SLICE_INIT("data")},
        {.op = SFTP_SETSTAT, .path = SLICE_INIT("/a")},
        {.op = SFTP_FSETSTAT, .handle = SLICE_INIT("h")},
        {.op = SFTP_RENAME, .path = SLICE_INIT("/a"), .to = SLICE_INIT("/b")},
        {.op = SFTP_POSIX_RENAME, .path = SLICE_INIT("/a"), .to = SLICE_INIT("/b")},
        {.op = SFTP_HARDLINK, .path = SLICE_INIT("/a"), .to = SLICE_INIT("/b")},
        {.op = SFTP_STATVFS, .path = SLICE_INIT("/a")},
        {.op = SFTP_FSYNC, .handle = SLICE_INIT("h")},
        {.op = SFTP_EXPAND_PATH, .path = SLICE_INIT("~/a")},
    };
    struct sftp_request got;
    struct buf b;
    buf_init(&b, SFTP_SPACE);
    rows[4].attrs = (struct sftp_attrs){15, 1ULL << 33, 1, 2, 0644, 3, 4};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        rows[i].id = (uint32_t)i + 7;
        again(&rows[i], &b);
    }
    CU_ASSERT(sftp_request_read(SLICE("\x16\0\0\0\1x"), &got) == 0 && got.op == SFTP_OTHER);
    CU_ASSERT(sftp_request_read(SLICE("\xc8\0\0\0\1\0\0\0\1xyz"), &got) == 0 &&
              got.op == SFTP_OTHER);
    CU_ASSERT(sftp_request_write(&got, &b) < 0);
    CU_ASSERT(sftp_packet_next(SLICE("\0\0\0\0"), 10, &got.path, &(size_t){0}) < 0);
    CU_ASSERT(sftp_packet_next(SLICE("\0\0\0\x0b"), 10, &got.path, &(size_t){0}) < 0);
    buf_free(&b);
}

static void test_replies(void)
{
    static const uint8_t kinds[] = {SFTP_STATUS, SFTP_HANDLE, SFTP_DATA, SFTP_ATTRS,
                                    SFTP_EXTENDED_REPLY};
    const struct sftp_name name = {.name = SLICE_INIT("n"), .line = SLICE_INIT("l")};
    struct sftp_reply r = {0}, got;
    struct buf b, names;
    buf_init(&b, 4096);
    buf_init(&names, 4096);
    CU_ASSERT(sftp_name_write(&name, &names) == 0 && sftp_name_write(&name, &names) == 0);
    for (size_t i = 0; i <= ARRAY_LEN(kinds); i++) {
        r = (struct sftp_reply){.id = 9, .type = SFTP_NAME, .n_names = 2, .names = of(&names)};
        if (i < ARRAY_LEN(kinds))
            r = (struct sftp_reply){.id = 9, .type = kinds[i], .text = SLICE_INIT("text")};
        buf_clear(&b);
        CU_ASSERT(sftp_reply_write(&r, &b) == 0);
        struct slice body = {(char *)buf_data(&b) + 4, buf_len(&b) - 4};
        CU_ASSERT(sftp_reply_read(body, &got) == 0 && got.type == r.type && got.id == 9 &&
                  got.n_names == r.n_names && slice_eq(got.names, r.names));
        for (size_t n = 0; n < body.n; n++)
            CU_ASSERT(r.type == SFTP_STATUS ||
                      sftp_reply_read((struct slice){body.p, n}, &got) < 0);
    }
    CU_ASSERT(sftp_reply_read(SLICE("\x68\0\0\0\1\xff\xff\xff\xff"), &got) < 0);
    CU_ASSERT(sftp_reply_read(SLICE("\x65\0\0\0\1\0\0\0\3"), &got) == 0 && got.status == 3);
    CU_ASSERT(sftp_reply_read(SLICE("\x03\0\0\0\1\0\0\0\3"), &got) < 0);
    buf_free(&b);
    buf_free(&names);
}

static void test_fits(void)
{
    const struct sftp_reply ok = {.type = SFTP_STATUS}, no = {.type = SFTP_STATUS, .status = 3},
                            handle = {.type = SFTP_HANDLE}, data = {.type = SFTP_DATA},
                            two = {.type = SFTP_NAME, .n_names = 2};
    CU_ASSERT(sftp_reply_fits(&handle, SFTP_OPEN) && !sftp_reply_fits(&data, SFTP_OPEN));
    CU_ASSERT(!sftp_reply_fits(&ok, SFTP_OPEN) && sftp_reply_fits(&no, SFTP_OPEN));
    CU_ASSERT(sftp_reply_fits(&data, SFTP_READ) && !sftp_reply_fits(&data, SFTP_WRITE));
    CU_ASSERT(sftp_reply_fits(&ok, SFTP_WRITE) && !sftp_reply_fits(&handle, SFTP_CLOSE));
    CU_ASSERT(sftp_reply_fits(&two, SFTP_READDIR) && !sftp_reply_fits(&two, SFTP_REALPATH));
}

static void test_hello(void)
{
    uint32_t known;
    struct slice body;
    struct buf b;
    size_t n;
    buf_init(&b, 4096);
    CU_ASSERT(sftp_hello_write(1u << SFTP_FSYNC | 1u << SFTP_LIMITS, &b) == 0 &&
              sftp_packet_next(of(&b), 4096, &body, &n) == 1 &&
              sftp_hello_read(body, SFTP_VERSION_IS, &known) == 0 &&
              known == (1u << SFTP_FSYNC | 1u << SFTP_LIMITS));
    CU_ASSERT(sftp_hello_read(body, SFTP_INIT, &known) < 0);
    CU_ASSERT(sftp_hello_read(SLICE("\2\0\0\0\6"), SFTP_VERSION_IS, &known) < 0);
    CU_ASSERT(sftp_hello_read(SLICE("\1\0\0\0\6"), SFTP_INIT, &known) == 0);
    CU_ASSERT(sftp_hello_read(SLICE("\1\0\0\0\2"), SFTP_INIT, &known) < 0);
    CU_ASSERT(sftp_hello_read(SLICE("\1\0\0\0\3\0\0\0\1x"), SFTP_INIT, &known) < 0);
    buf_free(&b);
}

static void test_facts(void)
{
    struct ssh_facts f = {.user = "ops", .verb = SSH_SFTP}, got;
    struct buf b;
    buf_init(&b, SSH_FACTS_MAX);
    CU_ASSERT(ssh_facts_put(&f, &b) == 0 && ssh_facts_get(of(&b), &got) == 0 &&
              got.verb == SSH_SFTP);
    buf_clear(&b);
    memcpy(f.term, "xterm", 6);
    CU_ASSERT(ssh_facts_put(&f, &b) == 0 && ssh_facts_get(of(&b), &got) < 0);
    buf_clear(&b);
    f.term[0] = 0;
    f.text[0] = 'x';
    CU_ASSERT(ssh_facts_put(&f, &b) == 0 && ssh_facts_get(of(&b), &got) < 0);
    buf_free(&b);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("sftp", NULL, NULL);
    CU_add_test(s, "patterns", test_patterns);
    CU_add_test(s, "files", test_files);
    CU_add_test(s, "other names", test_names);
    CU_add_test(s, "what may be moved with all that is below", test_covered);
    CU_add_test(s, "deeper patterns", test_deep);
    CU_add_test(s, "paths", test_paths);
    CU_add_test(s, "attributes", test_attributes);
    CU_add_test(s, "requests", test_requests);
    CU_add_test(s, "replies", test_replies);
    CU_add_test(s, "which reply", test_fits);
    CU_add_test(s, "hello", test_hello);
    CU_add_test(s, "facts", test_facts);
}
