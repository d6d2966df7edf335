/* Mail: addresses, patterns, a client's lines, a message's text both ways, replies, envelopes. */
#include "smtp_command.h"
#include "smtp_facts.h"
#include "smtp_message.h"
#include "smtp_reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tap_main.h"

static bool address(const char *text)
{
    return smtp_address_ok(slice_str(text), false);
}

static void test_addresses(void)
{
    static const char *const good[] = {"a@b.example", "first.last+tag@sub.example.com",
                                       "x_y=z@host", "o'neil@a-b.example", "1@2.example"};
    static const char *const bad[] = {"",
                                      "a",
                                      "@b.example",
                                      "a@",
                                      "a@b@c.example",
                                      "a@b..c",
                                      "a@.b",
                                      "a@b.",
                                      "a@-b.example",
                                      "a@b-",
                                      "a@[127.0.0.1]",
                                      "a@127.0.0.1",
                                      "a b@c.d",
                                      "\"a\"@c.d",
                                      "a..b@c.d",
                                      ".a@c.d",
                                      "a.@c.d",
                                      "a%o.example@c.d",
                                      "o!a@c.d",
                                      "-oQ@c.d",
                                      "a>@c.d",
                                      "a\r\n@c.d",
                                      "a@c.d\r",
                                      "a|b@c.d",
                                      "a,b@c.d",
                                      "a:b@c.d",
                                      "@x.example:a@b",
                                      "a\xc3\xa9@c.d",
                                      "a`b@c.d",
                                      "a@c.d ",
                                      "a;b@c.d",
                                      "(a)@c.d",
                                      "a\\b@c.d",
                                      "a@c_\x7f.d"};
    char local[80];
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        CU_ASSERT(address(good[i]));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT(!address(bad[i]));
    snprintf(local, sizeof local, "%064d@c.d", 0);
    CU_ASSERT(address(local));
    snprintf(local, sizeof local, "%065d@c.d", 0);
    CU_ASSERT(!address(local));
    CU_ASSERT(smtp_address_ok(SLICE("j\xc3\xa9r\xc3\xb4me@b\xc3\xbc"
                                    "cher.example"),
                              true));
    CU_ASSERT(!smtp_address_ok(SLICE("a\xc3@b.example"), true));
    CU_ASSERT(!smtp_address_ok(SLICE("a\xc0\xae@b.example"), true));     /* "." in two bytes */
    CU_ASSERT(!smtp_address_ok(SLICE("a\xef\xbc\xa0@b.example"), true)); /* a wide '@' */
    CU_ASSERT(!smtp_address_ok(SLICE("a@b\xe3\x80\x82"
                                     "c.example"),
                               true));
    CU_ASSERT(!smtp_address_ok(SLICE("a\xe2\x80\x8b@b.example"), true));
    CU_ASSERT(!smtp_address_ok(SLICE("a\0@b.example"), true));
}

static bool matches(const char *pattern, const char *text)
{
    return smtp_pattern_ok(slice_str(pattern)) &&
           smtp_pattern_match(slice_str(pattern), slice_str(text));
}

static void test_patterns(void)
{
    CU_ASSERT(matches("*@acme.example", "bob@acme.example"));
    CU_ASSERT(matches("*@ACME.example", "Bob@acme.Example"));
    CU_ASSERT(matches("team-*@acme.example", "team-a@acme.example"));
    CU_ASSERT(!matches("team-*@acme.example", "bob@acme.example"));
    CU_ASSERT(!matches("*@acme.example", "bob@evil.example"));
    CU_ASSERT(!matches("*@acme.example", "bob@evilacme.example"));
    CU_ASSERT(!matches("*@acme.example", "bob@acme.example.evil.example"));
    CU_ASSERT(!matches("*@acme.example", "bob@sub.acme.example"));
    CU_ASSERT(matches("*@*.acme.example", "bob@a.b.acme.example"));
    CU_ASSERT(!matches("*@*.acme.example", "bob@acme.example"));
    CU_ASSERT(!matches("*@*.acme.example", "bob@evilacme.example"));
    CU_ASSERT(matches("ops@*", "ops@any.example"));
    CU_ASSERT(!matches("ops@*", "oops@any.example"));
    CU_ASSERT(!smtp_pattern_ok(SLICE("acme.example")));
    CU_ASSERT(!smtp_pattern_ok(SLICE("*")));
    CU_ASSERT(!smtp_pattern_ok(SLICE("*@")));
    CU_ASSERT(!smtp_pattern_ok(SLICE("@acme.example")));
    CU_ASSERT(!smtp_pattern_ok(SLICE("*@a*.example")));
    CU_ASSERT(!smtp_pattern_ok(SLICE("*@*acme.example")));
    CU_ASSERT(!smtp_pattern_ok(SLICE("*@a@b.example")));
}

static ssize_t line(const char *text, size_t n)
{
    struct slice l;
    return smtp_line((struct slice){text, n}, 64, &l);
}
#define LINE(lit) line(lit, sizeof(lit) - 1)

static void test_lines(void)
{
    CU_ASSERT_EQUAL(LINE("NOOP\r\nNOOP"), 6);
    CU_ASSERT_EQUAL(LINE("\r\n"), 2);
    CU_ASSERT_EQUAL(LINE("NOOP\r"), 0);
    CU_ASSERT_EQUAL(LINE("NOOP"), 0);
    CU_ASSERT_EQUAL(LINE("NOOP\n"), -1);
    CU_ASSERT_EQUAL(LINE("\n"), -1);
    CU_ASSERT_EQUAL(LINE("NO\rOP\r\n"), -1);
    CU_ASSERT_EQUAL(LINE("NOOP\r\r\n"), -1);
    CU_ASSERT_EQUAL(LINE("NO\0OP\r\n"), -1);
    char whole[65];
    memset(whole, 'x', sizeof whole);
    memcpy(whole + 62, "\r\n", 2);
    CU_ASSERT_EQUAL(line(whole, 64), 64);
    whole[62] = whole[63] = 'x';
    CU_ASSERT_EQUAL(line(whole, 64), -1);
    CU_ASSERT_EQUAL(line(whole, 63), 0);
}

static int mail(const char *rest, struct smtp_path *p)
{
    return smtp_mail_read(slice_str(rest), p);
}

static void test_commands(void)
{
    struct smtp_path p;
    struct slice rest;
    CU_ASSERT_EQUAL(smtp_verb(SLICE("mail FROM:<a@b.c>"), &rest), SMTP_MAIL);
    CU_ASSERT(slice_eq_str(rest, "FROM:<a@b.c>"));
    CU_ASSERT_EQUAL(smtp_verb(SLICE("BDAT 5 LAST"), &rest), SMTP_NEVER);
    CU_ASSERT_EQUAL(smtp_verb(SLICE("VRFY x"), &rest), SMTP_NEVER);
    CU_ASSERT_EQUAL(smtp_verb(SLICE("MAILX"), &rest), SMTP_UNKNOWN);
    CU_ASSERT_EQUAL(smtp_verb(SLICE(""), &rest), SMTP_UNKNOWN);
    CU_ASSERT_EQUAL(mail("FROM:<a@b.example> SIZE=12 BODY=8BITMIME SMTPUTF8", &p), 0);
    CU_ASSERT(slice_eq_str(p.address, "a@b.example") && p.size == 12 && p.eight && p.utf8);
    CU_ASSERT_EQUAL(mail("from: <a@b.example>  size=1", &p), 0);
    CU_ASSERT_EQUAL(mail("FROM:<>", &p), 0);
    CU_ASSERT_EQUAL(p.address.n, 0);
    static const char *const bad[] = {
        "",
        "FROM:",
        "FROM:a@b.example",
        "FROM:<a@b.example",
        "FROM:<a@b.example>SIZE=1",
        "FROM:<a@b.example> SIZE=x",
        "FROM:<a@b.example> SIZE=99999999999999999999999",
        "FROM:<a@b.example> AUTH=x",
        "FROM:<a@b.example> RET=HDRS",
        "FROM:<a@b.example> BODY=BINARYMIME",
        "FROM:<a@b.example><c@d.example>",
        "FROM:<<a@b.example>>",
        "TO:<a@b.example>",
        "FROM:<@c.example:a@b.example>",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT(mail(bad[i], &p) < 0 && p.why && p.code >= 500);
    CU_ASSERT_EQUAL(smtp_rcpt_read(SLICE("TO:<a@b.example>"), false, &p), 0);
    CU_ASSERT(smtp_rcpt_read(SLICE("TO:<>"), false, &p) < 0);
    CU_ASSERT(smtp_rcpt_read(SLICE("TO:<a@b.example> NOTIFY=NEVER"), false, &p) < 0);
    CU_ASSERT(smtp_rcpt_read(SLICE("TO:<\xc3\xa9@b.example>"), false, &p) < 0);
    CU_ASSERT_EQUAL(smtp_rcpt_read(SLICE("TO:<\xc3\xa9@b.example>"), true, &p), 0);
}

/* What comes out, and *end: how much of it was left behind the end; -1: it did not end. */
static char *reads(struct slice in, size_t at_once, ssize_t *end, const char **why)
{
    struct smtp_reader r = {.n = 0};
    struct buf out;
    buf_init(&out, 1 << 16);
    int e = 0;
    while (in.n > 0 && e == 0) {
        struct slice some = {in.p, in.n < at_once ? in.n : at_once};
        size_t had = some.n;
        e = smtp_message_read(&r, &some, &out);
        in = (struct slice){in.p + had - some.n, in.n - had + some.n};
    }
    *end = e == 1 ? (ssize_t)in.n : -1;
    *why = r.why;
    char *text = calloc(1, buf_len(&out) + 1);
    memcpy(text, buf_len(&out) ? buf_data(&out) : (unsigned char *)"", buf_len(&out));
    buf_free(&out);
    return text;
}

static void check_text(const char *in, size_t n, const char *out, ssize_t left)
{
    for (size_t step = 1; step <= n; step++) {
        ssize_t end;
        const char *why;
        char *text = reads((struct slice){in, n}, step, &end, &why);
        CU_ASSERT_PTR_NULL(why);
        CU_ASSERT_STRING_EQUAL(text, out);
        CU_ASSERT_EQUAL(end, left);
        free(text);
    }
}
#define TEXT(in, out, left) check_text(in, sizeof(in) - 1, out, left)

static void check_refused(const char *in, size_t n)
{
    ssize_t end;
    const char *why;
    free(reads((struct slice){in, n}, n, &end, &why));
    CU_ASSERT_PTR_NOT_NULL(why);
    CU_ASSERT_EQUAL(end, 0); /* and it is read to its end */
}
#define REFUSED(in) check_refused(in, sizeof(in) - 1)

static void test_texts(void)
{
    TEXT(".\r\n", "", 0);
    TEXT("a\r\n.\r\nQUIT\r\n", "a\r\n", 6);
    TEXT("..\r\n.\r\n", ".\r\n", 0);
    TEXT("..a\r\n.b\r\n.\r\n", ".a\r\nb\r\n", 0);
    TEXT("a\n.\nMAIL\r\n.\r\n", "a\r\n.\r\nMAIL\r\n", 0);
    TEXT("a\n.\r\nMAIL\r\n.\r\n", "a\r\n.\r\nMAIL\r\n", 0);
    TEXT("a\r\n.", "a\r\n", -1);
    TEXT("a\r\n", "a\r\n", -1);
    REFUSED("a\r.\r\r\n.\r\n");
    REFUSED("a\r\n.\nMAIL\r\n.\r\n");
    REFUSED("a\r\n.\r\r\n.\r\n");
    REFUSED("a\r.\rb\r\n.\r\n");
    REFUSED("a\0b\r\n.\r\n");
}

static void test_long_lines(void)
{
    char in[1100];
    ssize_t end;
    const char *why;
    for (size_t n = 998; n <= 999; n++) {
        memset(in, 'x', sizeof in);
        memcpy(in + n, "\r\n.\r\n", 5);
        free(reads((struct slice){in, n + 5}, 7, &end, &why));
        CU_ASSERT_EQUAL(why == NULL, n == 998);
        CU_ASSERT_EQUAL(end, 0);
    }
}

static int writes(const char *in, size_t n, const char *out)
{
    struct smtp_writer w = {.column = 0};
    struct buf b;
    buf_init(&b, 1 << 16);
    int e = smtp_message_write(&w, (struct slice){in, n}, &b);
    if (e == 0)
        e = smtp_message_end(&w, &b);
    if (e == 0 && out)
        CU_ASSERT(slice_eq_str(buf_slice(&b), out));
    buf_free(&b);
    return e;
}
#define WRITES(in, out) writes(in, sizeof(in) - 1, out)

static void test_writing(void)
{
    CU_ASSERT_EQUAL(WRITES("", ".\r\n"), 0);
    CU_ASSERT_EQUAL(WRITES("a\r\n.\r\n..b\r\n", "a\r\n..\r\n...b\r\n.\r\n"), 0);
    CU_ASSERT_EQUAL(WRITES("a\r\n\r\n.b.\r\n", "a\r\n\r\n..b.\r\n.\r\n"), 0);
    CU_ASSERT_EQUAL(WRITES("a\n", NULL), -1);
    CU_ASSERT_EQUAL(WRITES("a\n.\r\n", NULL), -1);
    CU_ASSERT_EQUAL(WRITES("a\rb\r\n", NULL), -1);
    CU_ASSERT_EQUAL(WRITES("a\r\r\n", NULL), -1);
    CU_ASSERT_EQUAL(WRITES("a\0\r\n", NULL), -1);
    CU_ASSERT_EQUAL(WRITES("a", NULL), -1);
    CU_ASSERT_EQUAL(WRITES("a\r\n.\r", NULL), -1);
    char in[1100];
    memset(in, 'x', sizeof in);
    memcpy(in + 999, "\r\n", 2);
    CU_ASSERT_EQUAL(writes(in, 1001, NULL), -1);
    CU_ASSERT_EQUAL(writes(in + 1, 1000, NULL), 0);
}

static ssize_t reply(const char *text, struct smtp_reply *r)
{
    return smtp_reply_read(slice_str(text), r);
}

static void test_replies(void)
{
    struct smtp_reply r;
    struct smtp_server s;
    struct buf text;
    CU_ASSERT_EQUAL(reply("250 Ok\r\n", &r), 8);
    CU_ASSERT_EQUAL(r.code, 250);
    CU_ASSERT_EQUAL(reply("250\r\n", &r), 5);
    CU_ASSERT_EQUAL(reply("250-a\r\n250 b\r\n250 c\r\n", &r), 14);
    CU_ASSERT_EQUAL(reply("250-a\r\n250", &r), 0);
    CU_ASSERT_EQUAL(reply("250 a", &r), 0);
    CU_ASSERT_EQUAL(reply("250 a\n", &r), -1);
    CU_ASSERT_EQUAL(reply("25 a\r\n", &r), -1);
    CU_ASSERT_EQUAL(reply("250-a\r\n550 b\r\n", &r), -1);
    CU_ASSERT_EQUAL(reply("150 a\r\n", &r), -1);
    CU_ASSERT_EQUAL(reply("650 a\r\n", &r), -1);
    CU_ASSERT_EQUAL(reply("250xa\r\n", &r), -1);
    CU_ASSERT_EQUAL(reply("550-one\r\n550 t\x01wo\r\n", &r), 19);
    buf_init(&text, 100);
    CU_ASSERT_EQUAL(smtp_reply_text(&r, &text), 0);
    CU_ASSERT(slice_eq_str(buf_slice(&text), "one t?wo"));
    buf_free(&text);
    reply("250-AUTH\r\n250-STARTTLS\r\n250-AUTH LOGIN XOAUTH2\r\n250-SIZE 99\r\n250 SMTPUTF8\r\n",
          &r);
    smtp_server_read(&r, &s);
    CU_ASSERT(s.starttls && s.login && s.xoauth2 && !s.plain && s.size && s.utf8 && !s.eight);
    reply("250-STARTTLS\r\n250 AUTHPLAIN PLAIN\r\n", &r);
    smtp_server_read(&r, &s);
    CU_ASSERT(!s.starttls && !s.plain);
}

static void test_facts(void)
{
    struct smtp_facts f = {.eight = true, .envelope = {.sender = SLICE("a@b.example"), .n = 3}}, g;
    struct buf b;
    f.envelope.size = 0x0102030405;
    f.envelope.recipients[0] = SLICE("x@one.example");
    f.envelope.recipients[1] = SLICE("y@two.example");
    f.envelope.recipients[2] = SLICE("z@ONE.example");
    buf_init(&b, SMTP_FACTS_MAX);
    CU_ASSERT_EQUAL(smtp_facts_put(&b, &f), 0);
    struct slice s = buf_slice(&b);
    CU_ASSERT_EQUAL(smtp_facts_read(s, &g), 0);
    CU_ASSERT(g.eight && !g.utf8 && g.envelope.n == 3 && g.envelope.size == 0x0102030405);
    CU_ASSERT(slice_eq_str(g.envelope.recipients[2], "z@ONE.example"));
    size_t whole = 0;
    for (size_t n = 0; n < s.n; n++) /* less is none, but where it ends behind a recipient */
        whole += smtp_facts_read((struct slice){s.p, n}, &g) == 0;
    CU_ASSERT_EQUAL(whole, 2);
    buf_clear(&b);
    smtp_facts_domains(&f.envelope, &b);
    CU_ASSERT(slice_eq_str(buf_slice(&b), "one.example:2 two.example:1"));
    buf_clear(&b);
    f.envelope.recipients[1] = SLICE("y@two.example>\r\nRSET");
    CU_ASSERT_EQUAL(smtp_facts_put(&b, &f), 0);
    CU_ASSERT(smtp_facts_read(buf_slice(&b), &g) < 0);
    buf_clear(&b);
    f.envelope.n = 0;
    CU_ASSERT_EQUAL(smtp_facts_put(&b, &f), 0);
    CU_ASSERT(smtp_facts_read(buf_slice(&b), &g) < 0);
    buf_free(&b);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("smtp", NULL, NULL);
    CU_add_test(s, "addresses", test_addresses);
    CU_add_test(s, "patterns", test_patterns);
    CU_add_test(s, "lines", test_lines);
    CU_add_test(s, "commands", test_commands);
    CU_add_test(s, "texts", test_texts);
    CU_add_test(s, "long lines", test_long_lines);
    CU_add_test(s, "writing", test_writing);
    CU_add_test(s, "replies", test_replies);
    CU_add_test(s, "facts", test_facts);
}
