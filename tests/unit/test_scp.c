/* The protocol that scp had before SFTP: its commands, and sessions against a server that is played
 * here. */
#include "scp_session.h"

#include <stdio.h>
#include <string.h>

#include "tap_main.h"

/* ---- commands ---- */

static void test_commands(void)
{
    static const struct {
        const char *line, *path;
        bool gives, folders, times, into;
    } good[] = {
        {"scp -f /a/b", "/a/b", true, false, false, false},
        {"scp -t x", "x", false, false, false, false},
        {"scp -v -r -p -d -t -- -x", "-x", false, true, true, true},
        {"scp -pf 'it'\\''s'", "it's", true, false, true, false},
        {"scp -qt \"a b\"", "a b", false, false, false, false},
        {"scp -t a\\ b", "a b", false, false, false, false},
        {"scp -f ~/x/y", "x/y", true, false, false, false},
        {"scp -f ~", ".", true, false, false, false},
        {"scp -t ''", ".", false, false, false, false},
        {"scp -r -f /a/*.t?t", "/a/\1.t\2t", true, true, false, false},
        {"scp -f '/a/*'", "/a/*", true, false, false, false},
        {"scp -f \"a\\$b\"", "a$b", true, false, false, false},
        {"scp -f a~", "a~", true, false, false, false},
    };
    static const char *const bad[] = {
        "scp",           "scp -f",          "scp /a",       "scp -f -t /a",   "scp -f $(id)",
        "scp -f `id`",   "scp -f a;id",     "scp -f a b",   "scp -f a&",      "scp -f \"$x\"",
        "scp -f 'a",     "scp -f a|b",      "scp -f {a,b}", "scp -f ~root/x", "scp -f a>b",
        "scp -t /a/*",   "scp -f /*/a",     "scp -x -f a",  "scp -f [ab]",    "scp -f a\nid",
        "scp -S x -f a", "scp -f \"`id`\"", "scp-f a",      "scp -f a\\",     "/bin/scp -f a",
        "scp -f !x",     "scp -f a'b",      "scp - -f a",   "scp -f a\x01",   "scp -f #x"};
    struct scp_command c;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        int r = scp_command_read(slice_str(good[i].line), &c);
        if (r < 0 || strcmp(c.path, good[i].path) != 0 || c.gives != good[i].gives ||
            c.folders != good[i].folders || c.times != good[i].times || c.into != good[i].into)
            printf("# %s: %d \"%s\"\n", good[i].line, r, r == 0 ? c.path : "");
        CU_ASSERT_FATAL(r == 0 && strcmp(c.path, good[i].path) == 0);
        CU_ASSERT(c.gives == good[i].gives && c.folders == good[i].folders);
        CU_ASSERT(c.times == good[i].times && c.into == good[i].into);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (scp_command_read(slice_str(bad[i]), &c) == 0)
            CU_FAIL(bad[i]);
}

static void test_stars(void)
{
    static const struct {
        const char *line, *name;
        bool matches;
    } rows[] = {
        {"scp -f /a/*.txt", "x.txt", true},
        {"scp -f /a/*.txt", ".txt", false},
        {"scp -f *", "x", true},
        {"scp -f *", ".x", false},
        {"scp -f .*", ".x", true},
        {"scp -f a?c", "abc", true},
        {"scp -f a?c", "ac", false},
        {"scp -f *a*b", "xaybab", true},
        {"scp -f *a*b", "xba", false},
        {"scp -f a*", "a", true},
        {"scp -f '*'?", "*x", true},
        {"scp -f '*'?", "yx", false},
    };
    struct scp_command c;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CU_ASSERT_EQUAL_FATAL(scp_command_read(slice_str(rows[i].line), &c), 0);
        CU_ASSERT_EQUAL(scp_command_matches(&c, slice_str(rows[i].name)), rows[i].matches);
    }
}

/* ---- sessions ---- */

struct play {
    struct scp_session *session;
    struct buf client, replies, out, requests;
    struct scp_io io;
    struct sftp_request asked; /* the last one; it lies in body */
    char body[SFTP_REQUEST_MAX];
};

static void begin(struct play *p, const char *line)
{
    struct scp_command c;
    memset(p, 0, sizeof *p);
    CU_ASSERT_EQUAL_FATAL(scp_command_read(slice_str(line), &c), 0);
    p->session = scp_session_new(&c);
    buf_init(&p->client, SCP_CLIENT_MAX);
    buf_init(&p->replies, SFTP_SPACE);
    buf_init(&p->out, SFTP_SPACE);
    buf_init(&p->requests, SFTP_REQUEST_MAX + 4 + SCP_CLIENT_MAX);
    p->io = (struct scp_io){&p->client, &p->replies, &p->out, &p->requests, false};
    CU_ASSERT_FALSE_FATAL(scp_session_run(p->session, &p->io));
    buf_clear(&p->requests); /* SFTP_INIT */
    CU_ASSERT_EQUAL_FATAL(sftp_hello_write(0, &p->replies), 0);
    CU_ASSERT_FALSE_FATAL(scp_session_run(p->session, &p->io));
}

static void end(struct play *p)
{
    scp_session_free(p->session);
    buf_free(&p->client);
    buf_free(&p->replies);
    buf_free(&p->out);
    buf_free(&p->requests);
}

/* The next request, which is of this kind. */
static void asks(struct play *p, enum sftp_op op)
{
    struct slice body;
    size_t n;
    CU_ASSERT_EQUAL_FATAL(sftp_packet_next(buf_slice(&p->requests), SFTP_REQUEST_MAX, &body, &n),
                          1);
    memcpy(p->body, body.p, body.n);
    CU_ASSERT_EQUAL_FATAL(sftp_request_read((struct slice){p->body, body.n}, &p->asked), 0);
    buf_drain(&p->requests, n);
    CU_ASSERT_EQUAL_FATAL(p->asked.op, op);
}

static void asks_of(struct play *p, enum sftp_op op, const char *path)
{
    asks(p, op);
    if (!slice_eq_str(p->asked.path, path))
        printf("# asked of \"%.*s\"\n", SL(p->asked.path));
    CU_ASSERT_FATAL(slice_eq_str(p->asked.path, path));
}

static bool says(struct play *p, const struct sftp_reply *r)
{
    struct sftp_reply said = *r;
    said.id = p->asked.id;
    CU_ASSERT_EQUAL_FATAL(sftp_reply_write(&said, &p->replies), 0);
    return scp_session_run(p->session, &p->io);
}

static bool says_status(struct play *p, enum sftp_status status)
{
    return says(p, &(struct sftp_reply){.type = SFTP_STATUS, .status = status});
}

static bool says_file(struct play *p, uint32_t mode, uint64_t size)
{
    return says(
        p, &(struct sftp_reply){.type = SFTP_ATTRS,
                                .attrs = {.flags = SFTP_HAS_MODE | SFTP_HAS_SIZE | SFTP_HAS_TIMES,
                                          .mode = mode,
                                          .size = size,
                                          .mtime = 7,
                                          .atime = 8}});
}

static bool says_handle(struct play *p, const char *handle)
{
    return says(p, &(struct sftp_reply){.type = SFTP_HANDLE, .text = slice_str(handle)});
}

static bool client(struct play *p, struct slice s)
{
    CU_ASSERT_EQUAL_FATAL(buf_append_slice(&p->client, s), 0);
    return scp_session_run(p->session, &p->io);
}

static void heard(struct play *p, struct slice s)
{
    if (!slice_eq(buf_slice(&p->out), s))
        printf("# heard \"%.*s\"\n", SL(buf_slice(&p->out)));
    CU_ASSERT_FATAL(slice_eq(buf_slice(&p->out), s));
    buf_clear(&p->out);
}

#define WELL SLICE("\0")

static void test_give(void)
{
    struct play p;
    begin(&p, "scp -p -f /srv/one");
    CU_ASSERT_FALSE(client(&p, WELL));
    asks_of(&p, SFTP_STAT, "/srv/one");
    CU_ASSERT_FALSE(says_file(&p, 0104755, 5));
    asks_of(&p, SFTP_OPEN, "/srv/one");
    CU_ASSERT_EQUAL(p.asked.flags, SFTP_OPEN_READ);
    CU_ASSERT_FALSE(says_handle(&p, "h"));
    heard(&p, SLICE("T7 0 8 0\n"));
    CU_ASSERT_FALSE(client(&p, WELL));
    heard(&p, SLICE("C0755 5 one\n"));
    CU_ASSERT_FALSE(client(&p, WELL));
    asks(&p, SFTP_READ);
    CU_ASSERT(p.asked.offset == 0 && p.asked.n == 5);
    CU_ASSERT_FALSE(says(&p, &(struct sftp_reply){.type = SFTP_DATA, .text = SLICE_INIT("ab")}));
    asks(&p, SFTP_READ); /* less than was asked for: the rest again */
    CU_ASSERT(p.asked.offset == 2 && p.asked.n == 3);
    CU_ASSERT_FALSE(says(&p, &(struct sftp_reply){.type = SFTP_DATA, .text = SLICE_INIT("cde")}));
    heard(&p, SLICE("abcde\0"));
    CU_ASSERT_FALSE(client(&p, WELL));
    asks(&p, SFTP_CLOSE);
    CU_ASSERT(says_status(&p, SFTP_OK));
    CU_ASSERT_EQUAL(scp_session_status(p.session), 0);
    end(&p);
}

/* A file that is shorter than it was: what was announced comes, and then that it is wrong. */
static void test_give_short(void)
{
    struct play p;
    begin(&p, "scp -f one");
    CU_ASSERT_FALSE(client(&p, WELL));
    asks_of(&p, SFTP_STAT, "one");
    CU_ASSERT_FALSE(says_file(&p, 0100644, 4));
    asks(&p, SFTP_OPEN);
    CU_ASSERT_FALSE(says_handle(&p, "h"));
    buf_clear(&p.out);
    CU_ASSERT_FALSE(client(&p, WELL));
    asks(&p, SFTP_READ);
    CU_ASSERT_FALSE(says_status(&p, SFTP_EOF));
    heard(&p, SLICE("\0\0\0\0\1scp: one: end of file\n"));
    CU_ASSERT_FALSE(client(&p, WELL));
    asks(&p, SFTP_CLOSE);
    CU_ASSERT(says_status(&p, SFTP_OK));
    CU_ASSERT_EQUAL(scp_session_status(p.session), 1);
    end(&p);
}

static bool says_names(struct play *p, const char *const *names, uint32_t n)
{
    struct buf b;
    buf_init(&b, 4096);
    for (uint32_t i = 0; i < n; i++) {
        const struct sftp_name name = {.name = slice_str(names[i]), .line = SLICE_INIT("")};
        CU_ASSERT_EQUAL_FATAL(sftp_name_write(&name, &b), 0);
    }
    bool over =
        says(p, &(struct sftp_reply){.type = SFTP_NAME, .n_names = n, .names = buf_slice(&b)});
    buf_free(&b);
    return over;
}

/* Of a folder's names none leads out of it, and none writes a line of the protocol. */
static void test_give_folder(void)
{
    static const char *const names[] = {".", "..", "a/../../x", "a\nC0644 1 b", "in"};
    struct play p;
    begin(&p, "scp -r -f /srv/d/");
    CU_ASSERT_FALSE(client(&p, WELL));
    asks_of(&p, SFTP_STAT, "/srv/d/");
    CU_ASSERT_FALSE(says_file(&p, 0040755, 0));
    asks(&p, SFTP_OPENDIR);
    CU_ASSERT_FALSE(says_handle(&p, "d"));
    heard(&p, SLICE("D0755 0 d\n"));
    CU_ASSERT_FALSE(client(&p, WELL));
    asks(&p, SFTP_READDIR);
    CU_ASSERT_FALSE(says_names(&p, names, ARRAY_LEN(names)));
    asks_of(&p, SFTP_STAT, "/srv/d/in");
    CU_ASSERT(slice_find(buf_slice(&p.out), 'C') < 0);
    buf_clear(&p.out);
    CU_ASSERT_FALSE(says_status(&p, SFTP_PERMISSION_DENIED));
    heard(&p, SLICE("\1scp: /srv/d/in: Permission denied\n"));
    asks(&p, SFTP_READDIR);
    CU_ASSERT_FALSE(says_status(&p, SFTP_EOF));
    asks(&p, SFTP_CLOSE);
    CU_ASSERT_FALSE(says_status(&p, SFTP_OK));
    heard(&p, SLICE("E\n"));
    CU_ASSERT(client(&p, WELL));
    CU_ASSERT_EQUAL(scp_session_status(p.session), 1);
    end(&p);
}

/* What a server may not say ends it. */
/* A folder that the client does not want is left alone, and what stands beside it comes. */
static void test_give_unwanted(void)
{
    static const char *const names[] = {"no", "next"};
    static const char *const lines[] = {"scp -r -f /srv/d", "scp -r -f /srv/*"};
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        static const char *const top[] = {"d"};
        struct play p;
        begin(&p, lines[i]);
        CU_ASSERT_FALSE(client(&p, WELL));
        if (i == 1) {
            asks_of(&p, SFTP_OPENDIR, "/srv/");
            CU_ASSERT_FALSE(says_handle(&p, "srv"));
            asks(&p, SFTP_READDIR);
            CU_ASSERT_FALSE(says_names(&p, top, 1));
        }
        asks_of(&p, SFTP_STAT, "/srv/d");
        CU_ASSERT_FALSE(says_file(&p, 0040755, 0));
        asks(&p, SFTP_OPENDIR);
        CU_ASSERT_FALSE(says_handle(&p, "d"));
        CU_ASSERT_FALSE(client(&p, WELL));
        asks(&p, SFTP_READDIR);
        CU_ASSERT_FALSE(says_names(&p, names, ARRAY_LEN(names)));
        asks_of(&p, SFTP_STAT, "/srv/d/no");
        CU_ASSERT_FALSE(says_file(&p, 0040755, 0));
        asks(&p, SFTP_OPENDIR);
        CU_ASSERT_FALSE(says_handle(&p, "no"));
        CU_ASSERT_FALSE(client(&p, SLICE("\1a file has this name\n")));
        asks(&p, SFTP_CLOSE);
        CU_ASSERT_FALSE(says_status(&p, SFTP_OK));
        asks_of(&p, SFTP_STAT, "/srv/d/next");
        end(&p);
    }
}

static void test_give_lies(void)
{
    static const char more[] = "more than was asked for";
    struct play p;
    begin(&p, "scp -f one");
    CU_ASSERT_FALSE(client(&p, WELL));
    asks(&p, SFTP_STAT);
    CU_ASSERT_FALSE(says_file(&p, 0100644, 4));
    asks(&p, SFTP_OPEN);
    CU_ASSERT_FALSE(says_handle(&p, "h"));
    buf_clear(&p.out);
    CU_ASSERT_FALSE(client(&p, WELL));
    asks(&p, SFTP_READ);
    CU_ASSERT(says(&p, &(struct sftp_reply){.type = SFTP_DATA, .text = {more, sizeof more - 1}}));
    CU_ASSERT_EQUAL(buf_len(&p.out), 0);
    end(&p);
    begin(&p, "scp -f one");
    CU_ASSERT_FALSE(client(&p, WELL));
    asks(&p, SFTP_STAT);
    p.asked.id += 9;
    CU_ASSERT(says_file(&p, 0100644, 4));
    CU_ASSERT_EQUAL(scp_session_status(p.session), 1);
    end(&p);
}

static void begin_take(struct play *p, const char *line, bool folder)
{
    begin(p, line);
    asks(p, SFTP_STAT);
    CU_ASSERT_FALSE_FATAL(folder ? says_file(p, 0040755, 0) : says_status(p, SFTP_NO_SUCH_FILE));
    heard(p, WELL);
}

static void test_take(void)
{
    struct play p;
    begin_take(&p, "scp -p -t /srv/up", true);
    CU_ASSERT_FALSE(client(&p, SLICE("T70 0 80 0\n")));
    heard(&p, WELL);
    CU_ASSERT_FALSE(client(&p, SLICE("C4755 3 one\n")));
    asks_of(&p, SFTP_OPEN, "/srv/up/one");
    CU_ASSERT_EQUAL(p.asked.flags, SFTP_OPEN_WRITE | SFTP_OPEN_CREATE | SFTP_OPEN_TRUNCATE);
    CU_ASSERT_EQUAL(p.asked.attrs.mode, 0755);
    CU_ASSERT_FALSE(says_handle(&p, "h"));
    heard(&p, WELL);
    CU_ASSERT_FALSE(client(&p, SLICE("abc\0")));
    asks(&p, SFTP_WRITE);
    CU_ASSERT(slice_eq_str(p.asked.data, "abc"));
    CU_ASSERT_FALSE(says_status(&p, SFTP_OK));
    asks(&p, SFTP_FSETSTAT);
    CU_ASSERT(p.asked.attrs.mtime == 70 && p.asked.attrs.atime == 80);
    CU_ASSERT_FALSE(says_status(&p, SFTP_OK));
    asks(&p, SFTP_CLOSE);
    CU_ASSERT_FALSE(says_status(&p, SFTP_OK));
    heard(&p, WELL);
    p.io.eof = true;
    CU_ASSERT(client(&p, SLICE("")));
    CU_ASSERT_EQUAL(scp_session_status(p.session), 0);
    end(&p);
}

/* Names that lead elsewhere, lines that are none, what was not announced. */
static void test_take_lies(void)
{
    static const char *const names[] = {"C0644 1 ../x\n", "C0644 1 a/b\n", "C0644 1 ..\n",
                                        "C0644 1 .\n"};
    static const char *const lines[] = {"C0644 1\n",
                                        "C0644 x one\n",
                                        "C9 1 one\n",
                                        "C0644 -1 one\n",
                                        "D0755 0 d\n",
                                        "E\n",
                                        "X\n",
                                        "\n",
                                        "T1 2 3\n",
                                        "Ex\n",
                                        "C0644 99999999999999999999 a\n"};
    struct play p;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        begin_take(&p, "scp -t /srv/up", true);
        CU_ASSERT_FALSE(client(&p, slice_str(names[i])));
        CU_ASSERT_EQUAL(buf_len(&p.requests), 0);
        CU_ASSERT(buf_len(&p.out) > 0 && buf_data(&p.out)[0] == 1);
        end(&p);
    }
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        begin_take(&p, "scp -t /srv/up", true);
        CU_ASSERT(client(&p, slice_str(lines[i])));
        CU_ASSERT_EQUAL(scp_session_status(p.session), 1);
        CU_ASSERT_EQUAL(buf_len(&p.requests), 0);
        end(&p);
    }
}

/* A file that is refused is said to be, and the next one comes; what cannot be written is read all
 * the same. */
static void test_take_refused(void)
{
    struct play p;
    begin_take(&p, "scp -r -t /srv/up", true);
    CU_ASSERT_FALSE(client(&p, SLICE("C0644 3 one\n")));
    asks(&p, SFTP_OPEN);
    CU_ASSERT_FALSE(says_status(&p, SFTP_PERMISSION_DENIED));
    heard(&p, SLICE("\1scp: /srv/up/one: Permission denied\n"));
    CU_ASSERT_FALSE(client(&p, SLICE("C0644 3 two\n")));
    asks(&p, SFTP_OPEN);
    CU_ASSERT_FALSE(says_handle(&p, "h"));
    heard(&p, WELL);
    CU_ASSERT_FALSE(client(&p, SLICE("ab")));
    asks(&p, SFTP_WRITE);
    CU_ASSERT_FALSE(says_status(&p, SFTP_FAILURE));
    CU_ASSERT_FALSE(client(&p, SLICE("c\0")));
    asks(&p, SFTP_CLOSE);
    CU_ASSERT_FALSE(says_status(&p, SFTP_OK));
    heard(&p, SLICE("\1scp: /srv/up/two: Failure\n"));
    CU_ASSERT_FALSE(client(&p, SLICE("D0755 0 d\n")));
    asks_of(&p, SFTP_STAT, "/srv/up/d");
    CU_ASSERT_FALSE(says_status(&p, SFTP_NO_SUCH_FILE));
    asks_of(&p, SFTP_MKDIR, "/srv/up/d");
    CU_ASSERT_FALSE(says_status(&p, SFTP_OK));
    heard(&p, WELL);
    CU_ASSERT_FALSE(client(&p, SLICE("E\n")));
    heard(&p, WELL);
    CU_ASSERT(client(&p, SLICE("E\n")));
    end(&p);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("scp", NULL, NULL);
    CU_add_test(s, "commands", test_commands);
    CU_add_test(s, "stars", test_stars);
    CU_add_test(s, "a file that is got", test_give);
    CU_add_test(s, "one that is shorter than it was", test_give_short);
    CU_add_test(s, "a folder that is got", test_give_folder);
    CU_add_test(s, "a folder that the client does not want", test_give_unwanted);
    CU_add_test(s, "a server that lies", test_give_lies);
    CU_add_test(s, "a file that is put", test_take);
    CU_add_test(s, "a client that lies", test_take_lies);
    CU_add_test(s, "what is refused", test_take_refused);
}
