/* IMAP: where a command ends, what it is and what a rule leaves of it, names of mailboxes, and what
 * a server answers. */
#include "imap_answer.h"
#include "imap_command.h"
#include "imap_did.h"
#include "imap_response.h"
#include "imap_text.h"

#include <stdio.h>
#include <string.h>

#include "tap_main.h"

static const char *const folders[] = {"INBOX", "Archive/*", "Gr\xc3\xbc\xc3\x9f"};

static struct imap_terms terms(unsigned actions)
{
    return (struct imap_terms){.folders = folders,
                               .n_folders = ARRAY_LEN(folders),
                               .actions = actions,
                               .most_bytes = 1000};
}

static enum imap_seen seen(const char *text, size_t n, struct imap_found *f)
{
    struct imap_reader r = {.at = 0};
    enum imap_seen e;
    while ((e = imap_reader_next(&r, (struct slice){text, n}, f)) == IMAP_LITERAL)
        if (!imap_reader_take(&r, f))
            return IMAP_LITERAL;
    return e;
}

#define SEEN(text) seen(text, sizeof(text) - 1, &f)

static void test_reader(void)
{
    struct imap_found f;
    CU_ASSERT(SEEN("a NOOP\r\n") == IMAP_WHOLE && f.n == 8);
    CU_ASSERT(SEEN("a NOOP\r") == IMAP_MORE && SEEN("") == IMAP_MORE);
    CU_ASSERT(SEEN("a S {3}\r\nabc d\r\nx") == IMAP_WHOLE && f.n == 16);
    CU_ASSERT(SEEN("a S {2+}\r\n\r\n {0}\r\n x\r\n") == IMAP_WHOLE && f.n == 22);
    CU_ASSERT(SEEN("a \"{3}\"\r\n") == IMAP_WHOLE && SEEN("a \"\\\"\" x\r\n") == IMAP_WHOLE);
    CU_ASSERT(SEEN("a S {3}\r\na\0c\r\n") == IMAP_VIOLATION);
    CU_ASSERT(SEEN("a \"x\r\n\"\r\n") == IMAP_VIOLATION && SEEN("a \"x{3}\r\n") == IMAP_VIOLATION);
    CU_ASSERT(SEEN("a\nb") == IMAP_VIOLATION && SEEN("a\rb") == IMAP_VIOLATION);
    CU_ASSERT(SEEN("a\0\r\n") == IMAP_VIOLATION && SEEN("a\t\r\n") == IMAP_VIOLATION);
    CU_ASSERT(SEEN("a {4294967296}\r\n") == IMAP_VIOLATION);
    CU_ASSERT(SEEN("a {40000}\r\n") == IMAP_LITERAL && f.waits && f.size == 40000);
    CU_ASSERT(SEEN("a {32768+}\r\n") == IMAP_LITERAL && !f.waits);
    static char long_one[IMAP_COMMAND_MAX + 2];
    memset(long_one, 'x', sizeof long_one);
    CU_ASSERT_EQUAL(seen(long_one, sizeof long_one, &f), IMAP_VIOLATION);
    CU_ASSERT_EQUAL(seen(long_one, IMAP_COMMAND_MAX, &f), IMAP_MORE);
}

/* What goes on of a command; the code of its refusal where there is one. */
static const char *read_as(const char *text, unsigned actions)
{
    static char said[IMAP_COMMAND_MAX];
    const struct imap_terms t = terms(actions);
    struct imap_command c, again;
    imap_command_init(&c);
    imap_command_init(&again);
    int e = imap_command_read(&c, slice_str(text), &t);
    snprintf(said, sizeof said, "%.*s", SL(buf_slice(&c.out)));
    if (e < 0) {
        snprintf(said, sizeof said, "%s", c.code);
    } else if (c.verb >= IMAP_VERB_NOOP) { /* what was written reads the same */
        CU_ASSERT_EQUAL_FATAL(imap_command_read(&again, slice_str(said), &t), 0);
        CU_ASSERT(slice_eq_str(buf_slice(&again.out), said) && again.verb == c.verb);
    }
    imap_command_free(&c);
    imap_command_free(&again);
    return said;
}

#define ALL ((unsigned)IMAP_READ | IMAP_FLAG | IMAP_APPEND | IMAP_COPY | IMAP_DELETE | IMAP_MANAGE)

struct row {
    const char *said, *out;
};

static void check_rows(const struct row *rows, size_t n, unsigned actions)
{
    for (size_t i = 0; i < n; i++) {
        const char *got = read_as(rows[i].said, actions);
        if (strcmp(got, rows[i].out) != 0)
            fprintf(stderr, "# %s: %s\n", rows[i].said, got);
        CU_ASSERT_STRING_EQUAL(got, rows[i].out);
    }
}

static void test_commands(void)
{
    static const struct row rows[] = {
        {"noop", "NOOP"},
        {"select inbox", "SELECT \"INBOX\""},
        {"SELECT {5}\r\ninBox", "SELECT \"INBOX\""},
        {"EXAMINE \"Archive/a \\\"b\"", "EXAMINE \"Archive/a \\\"b\""},
        {"STATUS Gr&APwA3w- (messages UNSEEN)", "STATUS \"Gr&APwA3w-\" (MESSAGES UNSEEN)"},
        {"LIST \"\" *", "LIST \"\" \"*\""},
        {"LIST (SPECIAL-USE) \"\" % RETURN (CHILDREN)",
         "LIST (SPECIAL-USE) \"\" \"%\" RETURN (CHILDREN)"},
        {"lsub \"\" \"*\"", "LSUB \"\" \"*\""},
        {"uid fetch 1:*,4 (uid flags body[])", "UID FETCH 1:*,4 (UID FLAGS BODY[])"},
        {"FETCH 1 all", "FETCH 1 ALL"},
        {"FETCH 1 body.peek[1.2.header.fields.not (from {2}\r\nTo)]<0.10>",
         "FETCH 1 (BODY.PEEK[1.2.HEADER.FIELDS.NOT (from To)]<0.10>)"},
        {"FETCH 1 (RFC822.SIZE BODY[1.MIME] BODY[TEXT] BODY BODY[3])",
         "FETCH 1 (RFC822.SIZE BODY[1.MIME] BODY[TEXT] BODY BODY[3])"},
        {"store 1 +flags.silent \\Seen", "STORE 1 +FLAGS.SILENT (\\Seen)"},
        {"UID STORE 1 FLAGS ($x \\deleted)", "UID STORE 1 FLAGS ($x \\Deleted)"},
        {"STORE 1 -FLAGS ()", "STORE 1 -FLAGS ()"},
        {"search charset utf-8 or (from x) not uid 1:3 since \"1-Feb-2026\" header a "
         "{3}\r\n\xc3\xbcx",
         "SEARCH CHARSET UTF-8 OR (FROM x) NOT UID 1:3 SINCE 1-Feb-2026 HEADER a {3}\r\n\xc3\xbcx"},
        {"COPY 1:2 Archive/a", "COPY 1:2 \"Archive/a\""},
        {"UID MOVE 1 INBOX", "UID MOVE 1 \"INBOX\""},
        {"UID EXPUNGE 1:3", "UID EXPUNGE 1:3"},
        {"APPEND INBOX (\\Seen) \"17-Jul-2026 02:44:25 +0200\" {12+}",
         "APPEND \"INBOX\" (\\Seen) \"17-Jul-2026 02:44:25 +0200\" {12}"},
        {"CREATE Archive/a/", "CREATE \"Archive/a\""},
        {"DELETE Archive/a", "DELETE \"Archive/a\""},
        {"RENAME Archive/a Archive/b", "RENAME \"Archive/a\" \"Archive/b\""},
        {"CLOSE", "CLOSE"},
        {"IDLE", "IDLE"},
        {"enable UTF8=ACCEPT qresync CONDSTORE", "ENABLE QRESYNC CONDSTORE"},
        {"SELECT INBOX (condstore)", "SELECT \"INBOX\" (CONDSTORE)"},
        {"EXAMINE INBOX (QRESYNC (7 9223372036854775807) CONDSTORE)",
         "EXAMINE \"INBOX\" (QRESYNC (7 9223372036854775807) CONDSTORE)"},
        {"SELECT {5}\r\nINBOX (QRESYNC (7 90 1:3 (1,2 5,9)))",
         "SELECT \"INBOX\" (QRESYNC (7 90 1:3 (1,2 5,9)))"},
        {"SELECT INBOX (QRESYNC (7 90 (1,2 5,9)))", "SELECT \"INBOX\" (QRESYNC (7 90 (1,2 5,9)))"},
        {"UID FETCH 1:* FLAGS (CHANGEDSINCE 12 VANISHED)",
         "UID FETCH 1:* (FLAGS) (CHANGEDSINCE 12 VANISHED)"},
        {"FETCH 1 FAST (changedsince 12)", "FETCH 1 FAST (CHANGEDSINCE 12)"},
        {"FETCH 1 (UID modseq)", "FETCH 1 (UID MODSEQ)"},
        {"UID STORE 1 (UNCHANGEDSINCE 12) +FLAGS.SILENT (\\Seen)",
         "UID STORE 1 (UNCHANGEDSINCE 12) +FLAGS.SILENT (\\Seen)"},
        {"SEARCH OR MODSEQ 12 SEEN", "SEARCH OR MODSEQ 12 SEEN"},
        {"STATUS INBOX (highestmodseq)", "STATUS \"INBOX\" (HIGHESTMODSEQ)"},
        {"LIST \"\" * RETURN (SUBSCRIBED STATUS (MESSAGES HIGHESTMODSEQ) CHILDREN)",
         "LIST \"\" \"*\" RETURN (SUBSCRIBED STATUS (MESSAGES HIGHESTMODSEQ) CHILDREN)"},
    };
    check_rows(rows, ARRAY_LEN(rows), ALL);
}

/* What only some servers know is asked of those alone. */
static void test_wants(void)
{
    static const struct {
        const char *said;
        unsigned wants;
    } rows[] = {
        {"NOOP", 0},
        {"ENABLE CONDSTORE", IMAP_HAS_ENABLE},
        {"SELECT INBOX", 0},
        {"SELECT INBOX (CONDSTORE)", IMAP_HAS_CONDSTORE},
        {"SELECT INBOX (QRESYNC (7 90))", IMAP_HAS_QRESYNC | IMAP_HAS_CONDSTORE},
        {"FETCH 1 MODSEQ", IMAP_HAS_CONDSTORE},
        {"UID FETCH 1 FLAGS (CHANGEDSINCE 1 VANISHED)", IMAP_HAS_QRESYNC | IMAP_HAS_CONDSTORE},
        {"STORE 1 (UNCHANGEDSINCE 1) FLAGS ()", IMAP_HAS_CONDSTORE},
        {"SEARCH MODSEQ 1", IMAP_HAS_CONDSTORE},
        {"STATUS INBOX (HIGHESTMODSEQ)", IMAP_HAS_CONDSTORE},
        {"LIST \"\" * RETURN (STATUS (MESSAGES))", IMAP_HAS_LIST_STATUS},
    };
    const struct imap_terms t = terms(ALL);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct imap_command c;
        imap_command_init(&c);
        CU_ASSERT_EQUAL(imap_command_read(&c, slice_str(rows[i].said), &t), 0);
        CU_ASSERT_EQUAL(imap_verb_wants(&c), rows[i].wants);
        imap_command_free(&c);
    }
}

static void test_refused(void)
{
    static const struct row rows[] = {
        {"SELECT Secret", "imap_folder"},
        {"SELECT \"Archive/../Secret\"", "imap_folder"},
        {"SELECT &AEkATgBCAE8AWA-", "imap_folder"},
        {"COPY 1 Secret", "imap_folder"},
        {"RENAME INBOX Archive/a", "imap_folder"},
        {"RENAME Gr&APwA3w- Archive/a", "imap_folder"}, /* what is below it is not its rule's */
        {"DELETE Gr&APwA3w-", "imap_folder"},
        {"CREATE Archive//", "imap_folder"},
        {"CREATE Archive/", "imap_folder"},
        {"SELECT Archive/a/", "imap_folder"},
        {"APPEND Secret {12}", "imap_folder"},
        {"APPEND INBOX {1001}", "imap_size"},
        {"APPEND INBOX \"x\"", "imap_protocol"},
        {"COMPRESS DEFLATE", "imap_command"},
        {"ENABLE UTF8=ACCEPT", "imap_command"},
        {"ENABLE", "imap_command"},
        {"ENABLE CONDSTORE ", "imap_protocol"},
        {"UID NOOP", "imap_command"},
        {"SELECT INBOX (ANNOTATE)", "imap_command"},
        {"SELECT INBOX ()", "imap_command"},
        {"SELECT INBOX CONDSTORE", "imap_protocol"},
        {"SELECT INBOX (QRESYNC 7 90)", "imap_protocol"},
        {"SELECT INBOX (QRESYNC (7 9223372036854775808))", "imap_protocol"},
        {"SELECT INBOX (QRESYNC (7 90 Secret))", "imap_protocol"},
        {"SELECT INBOX (QRESYNC (7 90 1:3 (1)))", "imap_protocol"},
        {"SELECT Secret (CONDSTORE)", "imap_folder"},
        {"FETCH 1 FLAGS (PARTIAL 1:2)", "imap_command"},
        {"FETCH 1 FLAGS (VANISHED)", "imap_protocol"},
        {"STORE 1 (CHANGEDSINCE 12) FLAGS ()", "imap_protocol"},
        {"SEARCH MODSEQ \"/flags/x\" all 12", "imap_protocol"},
        {"LIST \"\" * RETURN (STATUS)", "imap_protocol"},
        {"LIST \"\" * RETURN (STATUS (STATUS (MESSAGES)))", "imap_command"},
        {"STATUS INBOX (STATUS (MESSAGES))", "imap_command"},
        {"STORE 1 FLAGS (\\Recent)", "imap_command"},
        {"LIST \"\" \"a&\"", "imap_folder"},
        {"SEARCH CHARSET KOI8-R ALL", "imap_command"},
        {"SEARCH SUBJECT {3}\r\na\r\n", "imap_protocol"},
        {"SEARCH SINCE 32-Feb-2026", "imap_protocol"},
        {"FETCH 0 FLAGS", "imap_protocol"},
        {"FETCH 1 ()", "imap_protocol"},
        {"FETCH 1 (BODY[HEADER.FIELDS ()])", "imap_protocol"},
        {"FETCH 1 BODY[MIME]", "imap_protocol"},
        {"FETCH 1 (BINARY[1])", "imap_protocol"},
        {"NOOP ", "imap_protocol"},
        {" NOOP", "imap_protocol"},
        {"", "imap_protocol"},
    };
    check_rows(rows, ARRAY_LEN(rows), ALL);
}

/* As programs join keys that they make. */
static void test_deep_search(void)
{
    for (int n = 255; n <= 257; n += 2) {
        struct buf b;
        buf_init(&b, 8192);
        int e = buf_append_str(&b, "SEARCH ");
        for (int i = 0; i < n && e == 0; i++)
            e = buf_append_str(&b, "OR SEEN ");
        CU_ASSERT_FATAL(e == 0 && buf_append(&b, "ALL", 4) == 0);
        const char *text = (const char *)buf_data(&b);
        CU_ASSERT_STRING_EQUAL(read_as(text, ALL), n > 256 ? "imap_command" : text);
        buf_free(&b);
    }
}

static void test_actions(void)
{
    static const struct row reading[] = {
        {"SELECT INBOX", "EXAMINE \"INBOX\""},    {"FETCH 1 BODY[]", "FETCH 1 (BODY.PEEK[])"},
        {"FETCH 1 RFC822", "FETCH 1 (RFC822)"},   {"CLOSE", "CLOSE"},
        {"STORE 1 +FLAGS \\Seen", "imap_action"}, {"EXPUNGE", "imap_action"},
        {"COPY 1 INBOX", "imap_action"},          {"APPEND INBOX {1}", "imap_action"},
        {"CREATE Archive/x", "imap_action"},      {"SUBSCRIBE INBOX", "imap_action"},
    };
    static const struct row flags[] = {
        {"SELECT INBOX", "SELECT \"INBOX\""},       {"CLOSE", "UNSELECT"},
        {"STORE 1 +FLAGS x", "STORE 1 +FLAGS (x)"}, {"STORE 1 FLAGS (\\Deleted)", "imap_action"},
        {"FETCH 1 BODY[]", "FETCH 1 (BODY[])"},
    };
    static const struct row deletes[] = {
        {"FETCH 1 BODY[]", "FETCH 1 (BODY.PEEK[])"},
        {"FETCH 1 RFC822", "imap_action"},
        {"FETCH 1 RFC822.TEXT", "imap_action"},
        {"EXPUNGE", "EXPUNGE"},
        {"STORE 1 +FLAGS \\Deleted", "STORE 1 +FLAGS (\\Deleted)"},
        {"STORE 1 FLAGS (\\Deleted)", "imap_action"},
        {"MOVE 1 INBOX", "imap_action"},
        {"DELETE Archive/x", "imap_action"},
    };
    check_rows(reading, ARRAY_LEN(reading), IMAP_READ);
    check_rows(flags, ARRAY_LEN(flags), IMAP_READ | IMAP_FLAG);
    check_rows(deletes, ARRAY_LEN(deletes), IMAP_READ | IMAP_DELETE);
}

static void test_literals(void)
{
    const struct imap_terms t = terms(ALL);
    struct imap_command c;
    imap_command_init(&c);
    CU_ASSERT_EQUAL(imap_command_literal(&c, SLICE("APPEND INBOX {3}"), &t), 1);
    CU_ASSERT_EQUAL(c.size, 3);
    CU_ASSERT_EQUAL(imap_command_literal(&c, SLICE("APPEND {5}\r\nINBOX (\\Seen) {3+}"), &t), 1);
    CU_ASSERT_EQUAL(imap_command_literal(&c, SLICE("APPEND {5}"), &t), 0);
    CU_ASSERT_EQUAL(imap_command_literal(&c, SLICE("SELECT {5}"), &t), 0);
    CU_ASSERT_EQUAL(imap_command_literal(&c, SLICE("APPEND Secret {3}"), &t), -1);
    CU_ASSERT_EQUAL(imap_command_literal(&c, SLICE("APPEND INBOX x {3}"), &t), -1);
    CU_ASSERT_EQUAL(imap_command_literal(&c, SLICE("COMPRESS {3}"), &t), -1);
    imap_command_free(&c);
}

static const char *name_of(const char *said)
{
    static char name[IMAP_NAME_MAX * 4];
    struct buf b;
    buf_init(&b, sizeof name);
    snprintf(name, sizeof name, "%s",
             imap_name_read(slice_str(said), &b) < 0 ? "!" : ""); /* as it is refused */
    if (name[0] == 0)
        snprintf(name, sizeof name, "%.*s", SL(buf_slice(&b)));
    buf_free(&b);
    return name;
}

static void test_names(void)
{
    static const struct row rows[] = {
        {"inbox", "INBOX"},
        {"Gr&APwA3w-e", "Gr\xc3\xbc\xc3\x9f"
                        "e"},
        {"&2D3eAA-", "\xf0\x9f\x98\x80"},
        {"a&-b", "a&b"},
        {"Sent Items", "Sent Items"},
        {"&", "!"},
        {"&AEE-", "!"},      /* 'A', which is itself */
        {"&APw", "!"},       /* no end */
        {"&APx-", "!"},      /* bits behind it */
        {"&APw-&AN8-", "!"}, /* in two pieces */
        {"&2D0-", "!"},      /* half a character */
        {"&AAo-", "!"},      /* a newline */
        {"Gr\xc3\xbc", "!"},
        {"a*", "!"},
        {"a%", "!"},
        {"../x", "!"},
        {"a/./b", "!"},
        {"a//b", "!"},
        {"/etc", "!"},
        {"a\\..\\b", "!"},
        {"\\a", "!"},
        {"a\\", "!"},
        {"a\\b", "a\\b"},
        {"~x", "!"},
        {"#news.x", "!"},
        {"a/", "!"},
        {"", "!"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strcmp(name_of(rows[i].said), rows[i].out) != 0)
            fprintf(stderr, "# %s: %s\n", rows[i].said, name_of(rows[i].said));
        CU_ASSERT_STRING_EQUAL(name_of(rows[i].said), rows[i].out);
    }
}

static size_t n_got; /* bytes of what `got` gives, which may have a 0 in it */

/* What a sandbox gets of a server's bytes, in pieces of some size; "!" behind it where they are
 * bad. */
static const char *got(struct slice in, size_t step)
{
    static char text[2 * IMAP_DEPTH_MAX + 4096];
    const struct imap_terms t = terms(IMAP_READ);
    struct imap_responses r;
    struct imap_answer a;
    struct buf out;
    bool bad = false;
    imap_responses_init(&r);
    buf_init(&out, sizeof text - 1);
    while (in.n > 0 && !bad) {
        struct slice some = {in.p, in.n < step ? in.n : step};
        size_t had = some.n;
        enum imap_part part = imap_responses_read(&r, &some, &out);
        in = (struct slice){in.p + had - some.n, in.n - had + some.n};
        bad = part == IMAP_PART_BAD;
        if (part != IMAP_PART_WHOLE)
            continue;
        bad = imap_answer_read(buf_slice(&r.line), &a) < 0 || imap_answer_put(&a, &t, &out) < 0;
        imap_responses_next(&r);
    }
    snprintf(text, sizeof text, "%.*s%s", SL(buf_slice(&out)), bad ? "!" : "");
    n_got = buf_len(&out);
    imap_responses_free(&r);
    buf_free(&out);
    return text;
}

static size_t got_length(struct slice in, size_t step)
{
    (void)got(in, step);
    return n_got;
}

static void test_answers(void)
{
    static const struct row rows[] = {
        {"* 3 EXISTS\r\n* 1 RECENT\r\n* 4 VANISHED\r\n", "* 3 EXISTS\r\n* 1 RECENT\r\n"},
        {"* 1 FETCH (BODY[] {3}\r\na)\" X \"}\" {0}\r\n)\r\n* SEARCH 1 2\r\n* SEARCH\r\n",
         "* 1 FETCH (BODY[] {3}\r\na)\" X \"}\" {0}\r\n)\r\n* SEARCH 1 2\r\n* SEARCH\r\n"},
        {"* LIST (\\Sent) \"/\" INBOX\r\n* LIST () NIL {6}\r\nSecret\r\n* LIST () \"/\" \"\"\r\n",
         "* LIST (\\Sent) \"/\" \"INBOX\"\r\n* LIST () \"/\" \"\"\r\n"},
        {"* LSUB () \"/\" \"Archive/a\" (\"CHILDINFO\" (\"x\"))\r\n",
         "* LSUB () \"/\" \"Archive/a\"\r\n"},
        {"* STATUS Archive/a (MESSAGES 3)\r\n* STATUS Secret (MESSAGES 3)\r\n",
         "* STATUS \"Archive/a\" (MESSAGES 3)\r\n"},
        {"* VANISHED (EARLIER) 3:5,7\r\n* VANISHED 9\r\n* ENABLED condstore X QRESYNC\r\n",
         "* VANISHED (EARLIER) 3:5,7\r\n* VANISHED 9\r\n* ENABLED CONDSTORE QRESYNC\r\n"},
        {"* VANISHED secret-4711\r\n", "!"},
        {"* VANISHED 9 secret-4711\r\n", "!"},
        {"* ENABLED X\r\n", ""},
        {"* OK [MODIFIED 7,9] x\r\n* OK [HIGHESTMODSEQ 715194045007] x\r\n",
         "* OK [MODIFIED 7,9] done\r\n* OK [HIGHESTMODSEQ 715194045007] done\r\n"},
        {"* SEARCH 2 5 (MODSEQ 917)\r\n* 1 FETCH (MODSEQ (12))\r\n",
         "* SEARCH 2 5 (MODSEQ 917)\r\n* 1 FETCH (MODSEQ (12))\r\n"},
        {"* FLAGS (\\Seen x)\r\n* CAPABILITY X\r\n* ACL Secret x\r\n* ESEARCH ALL 1\r\n",
         "* FLAGS (\\Seen x)\r\n"},
        {"* NAMESPACE ((\"\" \"/\")) ((\"Other/\" \"/\")) NIL\r\n",
         "* NAMESPACE ((\"\" \"/\")) NIL NIL\r\n"},
        {"* OK [CAPABILITY X Y] ready {3}\r\n* NO \xff\r\n",
         "* OK done\r\n* NO the server refuses it\r\n"},
        {"* OK it's \"(\r\n", "* OK done\r\n"},
        {"* BAD secret-4711\r\n* NO [TRYCREATE secret-4711] secret-4711\r\n",
         "* BAD the server cannot read it\r\n* NO [TRYCREATE] the server refuses it\r\n"},
        {"* OK [uidnext 4] x\r\n* OK [COPYUID 1 2:3,9 4:*] x\r\n",
         "* OK [UIDNEXT 4] done\r\n* OK [COPYUID 1 2:3,9 4:*] done\r\n"},
        {"* OK [PERMANENTFLAGS (\\Seen x \\*)] x\r\n",
         "* OK [PERMANENTFLAGS (\\Seen x \\*)] done\r\n"},
        {"* OK [ALERT] 3 days left {3}\r\n* NO [alert] \xff\x1b[2J\r\n* OK [ALERT]\r\n",
         "* OK [ALERT] 3 days left ?3?\r\n* NO [ALERT] ??[2J\r\n"
         "* OK [ALERT] the server wants to be heard\r\n"},
        {"* OK [PERMANENTFLAGS ({3)] x\r\n* OK [UIDNEXT secret-4711] x\r\n",
         "* OK done\r\n* OK done\r\n"},
        {"* OK [secret-4711] x\r\n* OK [\r\n* OK []\r\n",
         "* OK done\r\n* OK done\r\n* OK done\r\n"},
        {"* 1 FETCH (FLAGS (\r\n", "* 1 FETCH (FLAGS (\r!"},
        {"* 1 FETCH )\r\n", "* 1 FETCH !"},
        {"* 1 FETCH (X \"a\r\n", "* 1 FETCH (X \"a\r!"},
        {"* LIST () \"/\"\r\n", "!"},
        {"* LIST (\"x\") \"/\" INBOX\r\n", "!"},
        {"* OK\nx\r\n", "!"},
        {"* OK\rx\r\n", "!"},
        {"? x\r\n", "!"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (size_t step = 1; step < 200; step += step < 4 ? 1 : 100) {
            if (strcmp(got(slice_str(rows[i].said), step), rows[i].out) != 0)
                fprintf(stderr, "# %s%s\n", rows[i].said, got(slice_str(rows[i].said), step));
            CU_ASSERT_STRING_EQUAL(got(slice_str(rows[i].said), step), rows[i].out);
        }
}

/* Messages, and how they are nested, are anybody's. */
static void test_any_mail(void)
{
    CU_ASSERT_EQUAL(got_length(SLICE("* 1 FETCH (X {3}\r\na\0b)\r\n"), 100), 24);
    CU_ASSERT_EQUAL(got_length(SLICE("* 1 FETCH (X {3}\r\na\0b)\r\n"), 1), 24);
    CU_ASSERT_STRING_EQUAL(got(SLICE("* 1 FETCH (X \0)\r\n"), 100), "* 1 FETCH (X !");
    CU_ASSERT_STRING_EQUAL(got(SLICE("* LIST () \"/\" {6}\r\nIN\0BOX\r\n"), 100), "!");
    static char deep[2 * IMAP_DEPTH_MAX + 64];
    for (size_t more = 0; more < 2; more++) {
        memset(deep, '(', sizeof deep);
        memcpy(deep, "* 1 FETCH ", 10);
        memset(deep + 10 + IMAP_DEPTH_MAX + more, ')', IMAP_DEPTH_MAX);
        struct slice all = {deep, 10 + 2 * IMAP_DEPTH_MAX + more};
        CU_ASSERT_EQUAL(got_length(all, 1000), 10 + IMAP_DEPTH_MAX + (more ? 0 : IMAP_DEPTH_MAX));
    }
}

/* Of a copy of thousands of messages each is named. */
static void test_long_code(void)
{
    static char said[20000];
    size_t n = (size_t)snprintf(said, sizeof said, "* OK [COPYUID 1 ");
    while (n < 18000)
        n += (size_t)snprintf(said + n, sizeof said - n, "%zu,", n);
    n += (size_t)snprintf(said + n, sizeof said - n, "7 1:*] done\r\n");
    CU_ASSERT_STRING_EQUAL(got((struct slice){said, n}, 1000), said);
}

static void test_kinds(void)
{
    struct imap_answer a;
    CU_ASSERT(imap_answer_read(SLICE("D12 OK done\r\n"), &a) == 0 && a.kind == IMAP_ANSWER_TAGGED &&
              slice_eq_str(a.tag, "D12"));
    CU_ASSERT(imap_answer_read(SLICE("+ x\r\n"), &a) == 0 && a.kind == IMAP_ANSWER_GO_ON);
    CU_ASSERT(imap_answer_read(SLICE("* PREAUTH x\r\n"), &a) == 0 && a.kind == IMAP_ANSWER_PREAUTH);
    CU_ASSERT(imap_answer_read(SLICE("D12 MAYBE done\r\n"), &a) < 0);
    struct imap_server s;
    imap_server_read(SLICE(" IMAP4rev1 idle MOVE AUTH=PLAIN STARTTLS LOGINDISABLED"), &s);
    CU_ASSERT(s.has == (IMAP_HAS_IDLE | IMAP_HAS_MOVE) && s.plain && s.starttls && s.no_login &&
              !s.xoauth2);
    imap_server_read(SLICE(" IMAP4rev1  X=\"y\" AUTH=PLAIN  MOVE "), &s);
    CU_ASSERT(s.plain && s.has == IMAP_HAS_MOVE);
    imap_server_read(SLICE(" ENABLE CONDSTORE QRESYNC LIST-STATUS"), &s);
    CU_ASSERT_EQUAL(s.has,
                    IMAP_HAS_ENABLE | IMAP_HAS_CONDSTORE | IMAP_HAS_QRESYNC | IMAP_HAS_LIST_STATUS);
}

static const char *did(const struct imap_did *d)
{
    static char text[2048 + 1];
    struct buf out;
    buf_init(&out, sizeof text - 1);
    CU_ASSERT_EQUAL(imap_did_put(d, &out), 0);
    snprintf(text, sizeof text, "%.*s", SL(buf_slice(&out)));
    buf_free(&out);
    return text;
}

/* The sandbox says names of any length, and as many as it likes. */
static void test_did(void)
{
    static struct imap_did d;
    char name[IMAP_DID_NAME], said[IMAP_NAME_MAX + 1];
    memset(&d, 0, sizeof d);
    CU_ASSERT_STRING_EQUAL(did(&d), "");
    imap_did_count(&d, IMAP_VERB_FETCH, "INBOX");
    imap_did_count(&d, IMAP_VERB_FETCH, "INBOX");
    imap_did_count(&d, IMAP_VERB_NOOP, "");
    imap_did_count(&d, IMAP_VERB_APPEND, "Sent");
    CU_ASSERT_STRING_EQUAL(did(&d), "noop:1 append/Sent:1 fetch/INBOX:2");
    memset(&d, 0, sizeof d);
    for (int i = 0; i < 80; i++) {
        snprintf(name, sizeof name, "%02d", i);
        imap_did_count(&d, IMAP_VERB_STATUS, name);
    }
    imap_did_count(&d, IMAP_VERB_EXPUNGE, "INBOX"); /* it takes the place of a name that was read */
    CU_ASSERT(strstr(did(&d), "status/*:17 expunge/INBOX:1 status/00:1 ") == did(&d));
    memset(&d, 0, sizeof d);
    for (unsigned v = IMAP_VERB_NOOP; v < IMAP_VERBS; v++)
        for (int i = 0; i < 12; i++) {
            snprintf(name, sizeof name, "%0*d", IMAP_DID_NAME - 1, i);
            imap_did_count(&d, (enum imap_verb)v, i ? name : "");
        }
    for (unsigned v = IMAP_VERB_NOOP; v < IMAP_VERBS; v++) {
        struct imap_command c = {.verb = (enum imap_verb)v};
        struct buf b;
        buf_init(&b, 64);
        CU_ASSERT(imap_command_show(&c, SLICE("*"), &b) == 0 && buf_append(&b, ":", 2) == 0);
        CU_ASSERT(strstr(did(&d), (const char *)buf_data(&b)) != NULL);
        buf_free(&b);
    }
    memset(said, 'x', sizeof said);
    said[IMAP_NAME_MAX] = 0;
    imap_did_name((struct slice){said, IMAP_DID_NAME - 1}, name);
    CU_ASSERT(strlen(name) == IMAP_DID_NAME - 1 && strchr(name, '~') == NULL);
    for (size_t at = 0; at < 4; at++) { /* none is cut within "%22" */
        char other[IMAP_DID_NAME];
        memset(said + at, '"', sizeof said - 1 - at);
        imap_did_name(slice_str(said), name);
        const char *end = strchr(name, '~');
        CU_ASSERT_FATAL(end != NULL && strlen(end) == 17);
        CU_ASSERT(end - name > 175 && (end[-3] == '%' || end[-1] == 'x'));
        said[IMAP_NAME_MAX - 1] = 'y';
        imap_did_name(slice_str(said), other);
        CU_ASSERT_STRING_NOT_EQUAL(name, other);
        memset(said, 'x', IMAP_NAME_MAX);
    }
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("imap", NULL, NULL);
    CU_add_test(s, "where a command ends", test_reader);
    CU_add_test(s, "commands", test_commands);
    CU_add_test(s, "what only some servers know", test_wants);
    CU_add_test(s, "what is refused", test_refused);
    CU_add_test(s, "a deep search", test_deep_search);
    CU_add_test(s, "actions", test_actions);
    CU_add_test(s, "literals", test_literals);
    CU_add_test(s, "names", test_names);
    CU_add_test(s, "answers", test_answers);
    CU_add_test(s, "any mail", test_any_mail);
    CU_add_test(s, "a long code", test_long_code);
    CU_add_test(s, "kinds of answers", test_kinds);
    CU_add_test(s, "what a session did", test_did);
}
