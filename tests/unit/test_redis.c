/* Redis: commands and replies as bytes, the table, rules of redis:// and what they leave of
 * commands.
 */
#include "redis_judge.h"
#include "resp_reply.h"

#include <stdio.h>
#include <string.h>

#include "tap_main.h"

#define WITH "\"with\":{\"redis_login\":\"k\"}"

/* ---- commands ---- */

/* Commands as they are read: "SET|<4>...." for a long argument, ";" at each end. */
struct told {
    struct buf text;
    size_t n;
};

static void tell(struct told *t, const struct resp_commands *r, enum resp_event e)
{
    int bad = 0;
    if (e == RESP_LONG)
        bad = buf_printf(&t->text, "<%zu>", r->length);
    if (e == RESP_ARGUMENT || e == RESP_PIECE)
        bad = buf_append_slice(&t->text, r->said);
    if (e == RESP_ARGUMENT || e == RESP_LONG_END) {
        bad = bad < 0 ? -1 : buf_append(&t->text, resp_command_over(r) ? ";" : "|", 1);
        t->n += resp_command_over(r);
    }
    CU_ASSERT_EQUAL_FATAL(bad, 0);
}

static enum resp_event read_in(struct resp_commands *r, const char *text, size_t n, size_t step,
                               struct told *told)
{
    struct slice in = {text, n};
    while (in.n > 0) {
        struct slice piece = {in.p, in.n < step ? in.n : step};
        in = (struct slice){in.p + piece.n, in.n - piece.n};
        enum resp_event e = RESP_MORE;
        while (piece.n > 0) {
            e = resp_commands_read(r, &piece);
            if (e == RESP_VIOLATION)
                return e;
            if (told)
                tell(told, r, e);
        }
    }
    return RESP_MORE;
}

static void test_commands(void)
{
    static const char text[] = "*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\na\r\nb\r\n*1\r\n$4\r\nPING\r\n";
    for (size_t step = 1; step <= sizeof text; step++) {
        struct resp_commands r;
        struct told t = {.n = 0};
        buf_init(&t.text, 100);
        resp_commands_init(&r);
        CU_ASSERT_EQUAL(read_in(&r, text, sizeof text - 1, step, &t), RESP_MORE);
        CU_ASSERT_EQUAL(t.n, 2);
        CU_ASSERT(slice_eq_str(buf_slice(&t.text), "SET||a\r\nb;PING;"));
        buf_free(&t.text);
        resp_commands_free(&r);
    }
}

/* One byte more than is held comes in pieces, and no more than that is ever kept. */
static void test_pieces(void)
{
    enum { N = RESP_HELD_MAX };
    static char text[3 * N];
    for (size_t more = 0; more < 2; more++)
        for (size_t step = 1; step < 2 * N; step = step * 7 + 1) {
            struct resp_commands r;
            struct told t = {.n = 0};
            char begin[32];
            buf_init(&t.text, sizeof text);
            resp_commands_init(&r);
            size_t n = (size_t)snprintf(text, sizeof text, "*3\r\n$3\r\nSET\r\n$%zu\r\n", N + more);
            memset(text + n, 'x', N + more);
            n += N + more;
            n += (size_t)snprintf(text + n, sizeof text - n, "\r\n$1\r\ny\r\n");
            CU_ASSERT_EQUAL(read_in(&r, text, n, step, &t), RESP_MORE);
            CU_ASSERT(r.bytes.cap <= 2 * N);
            snprintf(begin, sizeof begin, more ? "SET|<%zu>xxxx" : "SET|xxxx", N + more);
            CU_ASSERT(slice_starts(buf_slice(&t.text), slice_str(begin)));
            CU_ASSERT_EQUAL(buf_len(&t.text), strlen(begin) - 4 + N + more + 3);
            CU_ASSERT_EQUAL(t.n, 1);
            buf_free(&t.text);
            resp_commands_free(&r);
        }
}

static void test_strict(void)
{
    static const char *const bad[] = {
        "PING\r\n",
        "*+1\r\n",
        "*-1\r\n",
        "*0\r\n",
        "*01\r\n",
        "*\r\n",
        "*1\n",
        "*1\r\r",
        "* 1\r\n",
        "*1048577\r\n",
        "*12345678\r\n",
        "*1\r\n+PING\r\n",
        "*1\r\n:1\r\n",
        "*1\r\n$-1\r\n",
        "*1\r\n$+4\r\nPING\r\n",
        "*1\r\n$04\r\nPING\r\n",
        "*1\r\n$3\r\nPING\r\n",
        "*1\r\n$4\r\nPING\n",
        "*1\r\n$4\r\nPING\r\r",
        "*1\r\n$536870913\r\n",
        "*1\r\n$1000000000\r\n",
        "*2\r\n$1\r\nx\r\n$9999999999\r\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        for (size_t step = 1; step < 40; step += 19) {
            struct resp_commands r;
            resp_commands_init(&r);
            enum resp_event e = read_in(&r, bad[i], strlen(bad[i]), step, NULL);
            if (e != RESP_VIOLATION)
                fprintf(stderr, "# %s\n", bad[i]);
            CU_ASSERT_EQUAL(e, RESP_VIOLATION);
            CU_ASSERT_PTR_NOT_NULL(r.why);
            CU_ASSERT_EQUAL(read_in(&r, "*1\r\n$4\r\nPING\r\n", 14, 14, NULL), RESP_VIOLATION);
            resp_commands_free(&r);
        }
}

/* ---- replies ---- */

static int on_error(void *arg, struct slice line, struct buf *out)
{
    ++*(int *)arg;
    return slice_eq_str(line, "-ERR x") ? buf_append_str(out, "+other\r\n")
                                        : buf_printf(out, "%.*s\r\n", SL(line));
}

/* What comes out, and how many errors at the top there were; NULL: it is no reply. */
static const char *replies(const char *text, size_t step, int *errors, unsigned *depth)
{
    static char said[8192];
    struct resp_replies r;
    struct buf out;
    struct slice in = slice_str(text);
    int bad = 0;
    *errors = 0;
    resp_replies_init(&r);
    buf_init(&out, sizeof said - 1);
    while (in.n > 0 && bad == 0) {
        size_t n = in.n < step ? in.n : step;
        bad = resp_replies_read(&r, (struct slice){in.p, n}, &out, on_error, errors);
        in = (struct slice){in.p + n, in.n - n};
    }
    *depth = r.depth + (r.at != 0);
    snprintf(said, sizeof said, "%.*s", (int)buf_len(&out), (const char *)buf_data(&out));
    buf_free(&out);
    resp_replies_free(&r);
    return bad ? NULL : said;
}

static void test_replies(void)
{
    static const struct {
        const char *in, *out;
        int errors;
    } rows[] = {
        {"+OK\r\n-ERR x\r\n:5\r\n", "+OK\r\n+other\r\n:5\r\n", 1},
        {"-ERR y\r\n-ERR x\r\n", "-ERR y\r\n+other\r\n", 2},
        {"*2\r\n-ERR x\r\n$6\r\n-ERR x\r\n", "*2\r\n-ERR x\r\n$6\r\n-ERR x\r\n", 0},
        {"$-1\r\n*-1\r\n_\r\n*0\r\n-ERR x\r\n", "$-1\r\n*-1\r\n_\r\n*0\r\n+other\r\n", 1},
        {"%1\r\n+a\r\n*1\r\n-ERR x\r\n-ERR x\r\n", "%1\r\n+a\r\n*1\r\n-ERR x\r\n+other\r\n", 1},
        {"|1\r\n+a\r\n+b\r\n:5\r\n-ERR x\r\n", "|1\r\n+a\r\n+b\r\n:5\r\n+other\r\n", 1},
        {"$0\r\n\r\n,1.5\r\n#t\r\n(99\r\n!3\r\nERR\r\n=5\r\ntxt:a\r\n~1\r\n:1\r\n>1\r\n:1\r\n-ERR "
         "x\r\n",
         "$0\r\n\r\n,1.5\r\n#t\r\n(99\r\n!3\r\nERR\r\n=5\r\ntxt:a\r\n~1\r\n:1\r\n>1\r\n:1\r\n+"
         "other\r\n",
         1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (size_t step = 1; step < 80; step++) {
            int errors;
            unsigned depth;
            const char *said = replies(rows[i].in, step, &errors, &depth);
            CU_ASSERT_PTR_NOT_NULL_FATAL(said);
            CU_ASSERT_STRING_EQUAL(said, rows[i].out);
            CU_ASSERT_EQUAL(errors, rows[i].errors);
            CU_ASSERT_EQUAL(depth, 0);
        }
}

static void test_no_replies(void)
{
    static const char *const bad[] = {"x\r\n",    "$\r\n",           "$-2\r\n", "$01\r\na\r\n",
                                      "$1\r\nab", "$1\r\na\rb",      "+a\rb",   "+a\n",
                                      "%-1\r\n",  "$536870913\r\n",  "*?\r\n",  "$-\r\n",
                                      "~-1\r\n",  "$99999999999\r\n"};
    int errors;
    unsigned depth;
    char deep[256] = "";
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (replies(bad[i], 1, &errors, &depth))
            fprintf(stderr, "# %s\n", bad[i]);
        CU_ASSERT_PTR_NULL(replies(bad[i], 1, &errors, &depth));
    }
    for (size_t i = 0; i < RESP_DEPTH_MAX; i++)
        memcpy(deep + 4 * i, "*1\r\n", 5);
    CU_ASSERT_PTR_NOT_NULL(replies(deep, 7, &errors, &depth));
    memcpy(deep + (size_t)4 * RESP_DEPTH_MAX, "*1\r\n", 5);
    CU_ASSERT_PTR_NULL(replies(deep, 7, &errors, &depth));
}

/* ---- the table ---- */

static void test_table(void)
{
    const struct redis_command *c, *last = NULL;
    for (size_t i = 0; (c = redis_command_at(i)) != NULL; i++) {
        CU_ASSERT(last == NULL || strcmp(last->name, c->name) < 0);
        CU_ASSERT_PTR_EQUAL(redis_command_find(c->name), c);
        CU_ASSERT(strlen(c->name) < REDIS_COMMAND_NAME_MAX);
        last = c;
    }
    CU_ASSERT(redis_commands() > 300);
    CU_ASSERT_PTR_NULL(redis_command_find("GET"));
    CU_ASSERT_PTR_NULL(redis_command_find("nosuch"));
}

/* ---- rules ---- */

static struct policy *parse(const char *rules, struct err *err)
{
    char json[8192];
    snprintf(json, sizeof json, "{\"policy\":\"p\",\"rules\":[%s]}", rules);
    err->text[0] = 0;
    struct policy *p = policy_parse(json, strlen(json), err);
    return p;
}

static const char *decide(const struct policy *p, const char *at, struct decision *d)
{
    struct authority a;
    CU_ASSERT_FATAL(authority_parse(&a, SCHEME_REDIS, slice_str(at)) == 0);
    policy_redis_decide(p, &a, d);
    return d->code;
}

static void test_rules(void)
{
    struct err err;
    struct decision d;
    struct policy *p = parse(
        "{\"allow\":\"rediss://a.example.com\",\"keys\":[\"x:*\"],\"database\":3," WITH "},"
        "{\"allow\":\"redis://b.example.com:7000\",\"allow_plaintext\":true,"
        "\"access\":\"read-only\",\"commands\":\"get\",\"seconds\":5,\"megabytes\":6," WITH "},"
        "{\"deny\":\"redis://c.example.com\"}",
        &err);
    if (p == NULL)
        fprintf(stderr, "# %s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    CU_ASSERT_STRING_EQUAL(decide(p, "a.example.com", &d), "ok");
    const struct redis_terms *t = d.rule->redis;
    CU_ASSERT(t->tls && !t->read_only && t->has_database && t->database == 3 && t->n_keys == 1);
    CU_ASSERT_STRING_EQUAL(decide(p, "b.example.com:7000", &d), "ok");
    t = d.rule->redis;
    CU_ASSERT(!t->tls && t->read_only && !t->has_database && t->n_commands == 1 &&
              t->seconds == 5 && t->megabytes == 6);
    CU_ASSERT_STRING_EQUAL(decide(p, "b.example.com", &d), "no_rule");
    CU_ASSERT_STRING_EQUAL(decide(p, "c.example.com", &d), "denied_by_rule");
    policy_free(p);
}

static void test_no_rules(void)
{
    static const struct {
        const char *rule, *says;
    } rows[] = {
        {"{\"allow\":\"redis://a.example.com\"," WITH "}", "allow_plaintext"},
        {"{\"allow\":\"rediss://a.example.com\",\"allow_plaintext\":true," WITH "}", "no meaning"},
        {"{\"allow\":\"rediss://a.example.com\"}", "redis_login"},
        {"{\"allow\":\"rediss://a.example.com\",\"with\":{\"bearer\":\"k\"}}", "redis_login"},
        {"{\"allow\":\"rediss://u@a.example.com\"," WITH "}", "whom to log in as"},
        {"{\"allow\":\"rediss://a.example.com/3\"," WITH "}", "'database'"},
        {"{\"allow\":[\"rediss://a.example.com\",\"redis://a.example.com\"]," WITH "}", "either"},
        {"{\"allow\":\"rediss://a.example.com\",\"commands\":\"GET\"," WITH "}", "small"},
        {"{\"allow\":\"rediss://a.example.com\",\"commands\":\"@admin\"," WITH "}", "@blocking"},
        {"{\"allow\":\"rediss://a.example.com\",\"commands\":\"!\"," WITH "}", "takes it away"},
        {"{\"allow\":\"rediss://a.example.com\",\"keys\":[\"\"]," WITH "}", "is empty"},
        {"{\"allow\":\"rediss://a.example.com\",\"shell\":true," WITH "}", "no meaning"},
        {"{\"ask\":\"redis://a.example.com\"," WITH "}", "allow_plaintext"},
        {"{\"allow\":\"a.example.com\"," WITH "}", "redis_login"},
        {"{\"allow\":\"a.example.com\",\"keys\":\"x\"}", "redis://"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err;
        struct policy *p = parse(rows[i].rule, &err);
        if (p || strstr(err.text, rows[i].says) == NULL)
            fprintf(stderr, "# %s: %s\n", rows[i].rule, err.text);
        CU_ASSERT(p == NULL && strstr(err.text, rows[i].says) != NULL);
        policy_free(p);
    }
}

static void test_patterns(void)
{
    static const struct {
        const char *pattern, *text;
        bool is;
    } rows[] = {{"a", "a", true},       {"a", "ab", false},        {"a*", "a", true},
                {"a*", "b", false},     {"*", "", true},           {"a*c", "abc", true},
                {"a*c", "abcd", false}, {"*a*b", "xaab", true},    {"a?", "ab", false},
                {"[a]", "a", false},    {"a*b*c", "a-b-b-c", true}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CU_ASSERT_EQUAL(redis_pattern_match(slice_str(rows[i].pattern), slice_str(rows[i].text)),
                        rows[i].is);
}

/* ---- what a rule leaves ---- */

/* "a^b" is a, a byte 0 and b. */
static struct slice with_zeros(char *word)
{
    struct slice s = slice_str(word);
    for (char *p = word; (p = strchr(p, '^')) != NULL; p++)
        *p = 0;
    return s;
}

/* Words with blanks between; "~" is an argument that was too long to be read whole. */
static void judge_words(struct redis_judged *j, const struct redis_terms *t, const char *words)
{
    char copy[512];
    size_t parts = 1, i = 0;
    for (const char *p = words; *p; p++)
        parts += *p == ' ';
    snprintf(copy, sizeof copy, "%s", words);
    redis_judge_begin(j, t, parts);
    for (char *word = copy, *next; word; word = next) {
        next = strchr(word, ' ');
        if (next)
            *next++ = 0;
        bool is_long = strcmp(word, "~") == 0;
        struct slice said = with_zeros(word);
        redis_judge_argument(j, i++, is_long ? NULL : &said);
        if (j->settled) /* so it stays, whatever comes */
            CU_ASSERT(j->why == NULL && !j->login);
    }
    redis_judge_end(j);
}

static const char *judge(const struct redis_terms *t, const char *words)
{
    struct redis_judged j;
    judge_words(&j, t, words);
    return j.why;
}

/* After how many arguments nothing that follows can be a reason; 0: never. */
static size_t settles(const struct redis_terms *t, const char *words)
{
    struct redis_judged j;
    char begin[512];
    size_t n = 0;
    for (const char *p = words; p; p = strchr(p + 1, ' ')) {
        size_t parts = 1;
        for (const char *q = words; *q; q++)
            parts += *q == ' ';
        const char *end = strchr(p + 1, ' ');
        snprintf(begin, sizeof begin, "%.*s", end ? (int)(end - words) : (int)strlen(words), words);
        redis_judge_begin(&j, t, parts);
        size_t i = 0;
        for (char *word = begin, *next; word; word = next) {
            next = strchr(word, ' ');
            if (next)
                *next++ = 0;
            struct slice said = slice_str(word);
            redis_judge_argument(&j, i++, &said);
        }
        n++;
        if (j.settled)
            return n;
    }
    return 0;
}

static void judge_rows(const struct redis_terms *t, const char *const *good, size_t n_good,
                       const char *const *bad, size_t n_bad)
{
    for (size_t i = 0; i < n_good; i++) {
        const char *why = judge(t, good[i]);
        if (why)
            fprintf(stderr, "# %s: %s\n", good[i], why);
        CU_ASSERT_PTR_NULL(why);
    }
    for (size_t i = 0; i < n_bad; i++) {
        if (judge(t, bad[i]) == NULL)
            fprintf(stderr, "# %s\n", bad[i]);
        CU_ASSERT_PTR_NOT_NULL(judge(t, bad[i]));
    }
}

#define ROWS(t, good, bad) judge_rows(t, good, ARRAY_LEN(good), bad, ARRAY_LEN(bad))

static void test_classes(void)
{
    static const struct redis_terms open = {.tls = true}, reads = {.read_only = true};
    static const char *const good[] = {
        "GET a", "set a b", "EVALSHA", "INFO",        "COMMAND",          "HELLO 3", "COMMAND DOCS",
        "MULTI", "QUIT",    "AUTH x",  "PUBLISH c x", "CLIENT setname x", "SELECT 1"};
    static const char *const bad[] = {"CONFIG GET x",
                                      "CONFIG",
                                      "CONFIG|GET x",
                                      "config|get",
                                      "NOSUCH",
                                      "EVAL x 0",
                                      "DEBUG x",
                                      "MONITOR",
                                      "REPLICAOF a 1",
                                      "RESET",
                                      "SYNC",
                                      "PSYNC ? 1",
                                      "ACL WHOAMI",
                                      "KEYS *",
                                      "FLUSHALL",
                                      "HELLO 4",
                                      "HELLO 3 AUTH x",
                                      "SAVE",
                                      "SHUTDOWN",
                                      "MODULE LIST",
                                      "MIGRATE a 1 k 0 1",
                                      "CLIENT KILL x",
                                      "CLIENT NOSUCH",
                                      "OBJECT",
                                      "HELLO 3 SETNAME a SETNAME b",
                                      "HELLO 3 AUTH a",
                                      "HELLO ~",
                                      "HELLO 3 SETNAME ~",
                                      "~ a",
                                      "OBJECT ~ a",
                                      "ACL LIST",
                                      "ACL GETUSER a"};
    judge_rows(&open, good, 2, bad, ARRAY_LEN(bad));
    judge_rows(&open, good + 3, ARRAY_LEN(good) - 3, NULL, 0);
    CU_ASSERT_PTR_NOT_NULL(judge(&open, good[2]));
    const struct redis_command *c;
    for (size_t i = 0; (c = redis_command_at(i)) != NULL; i++) {
        char words[128];
        snprintf(words, sizeof words, "%s x", c->name);
        char *bar = strchr(words, '|');
        if (bar)
            *bar = ' ';
        if (c->classes & REDIS_WRITE)
            CU_ASSERT_PTR_NOT_NULL(judge(&reads, words));
    }
    static const char *const reading[] = {"GET a",       "SCAN 0", "MULTI",
                                          "SUBSCRIBE c", "PING",   "XREAD STREAMS a 0"};
    judge_rows(&reads, reading, ARRAY_LEN(reading), NULL, 0);
}

static void test_named(void)
{
    static const char *const list[] = {"config|get", "@read",   "h*",      "!hdel",
                                       "c*",         "eval_ro", "script|*"};
    const struct redis_terms t = {.commands = list, .n_commands = ARRAY_LEN(list)};
    static const char *const good[] = {"CONFIG GET x", "GET a", "HSET h a b", "EVAL_RO x 0",
                                       "SCRIPT LOAD x"};
    static const char *const bad[] = {"CONFIG SET a b", "HDEL h a", "SET a b",  "KEYS *",
                                      "CLIENT KILL x",  "EVAL x 0", "SORT_RO a"};
    ROWS(&t, good, bad);
    const struct redis_terms reads = {
        .commands = list, .n_commands = ARRAY_LEN(list), .read_only = true};
    static const char *const less[] = {"CONFIG GET x", "HSET h a b", "SCRIPT LOAD x"};
    judge_rows(&reads, good + 1, 1, less, ARRAY_LEN(less));
}

/* What shows a password, whole or as a hash, is refused whatever the rule names: a guess could be
 * compared with it. */
static void test_passwords(void)
{
    static const char *const list[] = {"config|*", "config|get", "acl|list", "acl|getuser", "get"};
    const struct redis_terms t = {.commands = list, .n_commands = ARRAY_LEN(list)};
    static const char *const good[] = {"CONFIG GET maxmemory", "CONFIG GET max* save",
                                       "CONFIG GET tls-p*", "CONFIG GET requirepassword",
                                       "GET requirepass"};
    static const char *const bad[] = {"CONFIG GET requirepass",
                                      "CONFIG GET RequirePass",
                                      "CONFIG GET *",
                                      "CONFIG GET *pass",
                                      "CONFIG GET require*",
                                      "CONFIG GET r?quirepass",
                                      "CONFIG GET [r]equirepass",
                                      "CONFIG GET \\requirepass",
                                      "CONFIG GET save masterauth",
                                      "CONFIG GET primaryauth",
                                      "CONFIG GET primary*",
                                      "CONFIG GET save tls-key-file*",
                                      "CONFIG GET ~",
                                      "CONFIG GET requirepass^",
                                      "CONFIG GET requirepass^42",
                                      "CONFIG GET require*^",
                                      "CONFIG GET save RequirePass^*",
                                      "ACL LIST",
                                      "ACL GETUSER app"};
    ROWS(&t, good, bad);
}

/* A value is passed on as it comes once its key is known; what stands behind is judged first. */
static void test_settled(void)
{
    static const char *const list[] = {"job:*", "one"}, *const named[] = {"eval", "*",
                                                                          "config|get"};
    const struct redis_terms t = {.keys = list, .n_keys = ARRAY_LEN(list)}, any = {.tls = true},
                             two = {.has_database = true, .database = 2},
                             script = {.commands = named, .n_commands = ARRAY_LEN(named)};
    static const char *const good[] = {"SET one ~", "MSET one ~ job:1 ~", "APPEND job: ~",
                                       "PUBLISH one ~"};
    static const char *const bad[] = {"SET ~ x",      "MSET one ~ two ~",  "MSET one ~ ~ x",
                                      "ZUNION ~ one", "XREAD STREAMS ~ 0", "DEL one ~"};
    ROWS(&t, good, bad);
    CU_ASSERT_EQUAL(settles(&t, "SET one x EX 5"), 2);
    CU_ASSERT_EQUAL(settles(&t, "MSET one x job:1 y"), 4);
    CU_ASSERT_EQUAL(settles(&t, "ZUNION 2 one job:1 WITHSCORES"), 4);
    CU_ASSERT_EQUAL(settles(&t, "XREAD COUNT 1 STREAMS one 0"), 0);
    CU_ASSERT_EQUAL(settles(&any, "MSET one x two y"), 1);
    CU_ASSERT_EQUAL(settles(&any, "HELLO 3"), 0);
    CU_ASSERT_EQUAL(settles(&two, "SELECT 2"), 2);
    CU_ASSERT_EQUAL(settles(&two, "COPY a b"), 0);
    CU_ASSERT_EQUAL(settles(&script, "EVAL x 0"), 1);
    CU_ASSERT_EQUAL(settles(&script, "CONFIG GET x"), 0);
    CU_ASSERT_PTR_NULL(judge(&two, "COPY a ~"));
    CU_ASSERT_PTR_NOT_NULL(judge(&two, "COPY a b ~ 1")); /* which may begin with DB and a byte 0 */
    CU_ASSERT_PTR_NOT_NULL(judge(&two, "SELECT ~"));
}

static void test_keys(void)
{
    static const char *const list[] = {"job:*", "one"};
    const struct redis_terms t = {.keys = list, .n_keys = ARRAY_LEN(list)};
    static const char *const good[] = {"GET job:",
                                       "MSET job:1 other one x",
                                       "PING",
                                       "XREAD STREAMS job:1 one 0 0",
                                       "EXISTS one job:1",
                                       "ZUNION 2 one job:1 WITHSCORES",
                                       "UNSUBSCRIBE",
                                       "BLPOP one job:1 0",
                                       "ZUNION 0 x",
                                       "GET job:^STREAMS",
                                       "XREAD STREAMS job:^ 0",
                                       "GEORADIUS one 0 0 1 m STORE job:^"};
    static const char *const bad[] = {"GET job",
                                      "GET two",
                                      "MSET job:1 x two x",
                                      "MGET one two",
                                      "GET one two",
                                      "DEL",
                                      "XREAD STREAMS one two 0 0",
                                      "XREAD STREAMS one 0 0",
                                      "XREAD STREAMS STREAMS one 0 0",
                                      "XREADGROUP GROUP STREAMS c STREAMS one >",
                                      "ZUNION 2 one two",
                                      "ZUNION 3 one one",
                                      "ZUNION 1x one",
                                      "ZUNION 99999999 one",
                                      "BLPOP one two 0",
                                      "SCAN 0",
                                      "DBSIZE",
                                      "PSUBSCRIBE *",
                                      "SUBSCRIBE two",
                                      "COPY one two",
                                      "INFO",
                                      "BITOP AND one two",
                                      "GEORADIUS one 0 0 1 m STORE two",
                                      "GEORADIUS one 0 0 1 m STORE^ two",
                                      "GEORADIUS one 0 0 1 m STORE one storedist^x two",
                                      "GEORADIUS one 0 0 1 m STORE one STORE^x two",
                                      "GEORADIUS one 0 0 1 m ~ two",
                                      "GEORADIUSBYMEMBER one m 1 m StoreDist^ two",
                                      "XREAD STREAMS^ two 0",
                                      "XREAD STREAMS^ one 0",
                                      "XREAD COUNT 1 streams^x two 0",
                                      "XREAD ~ two 0",
                                      "XREAD STREAMS^ two STREAMS one 0 0",
                                      "XREADGROUP GROUP g c STREAMS^ two >",
                                      "XREADGROUP GROUP g c ~ two >",
                                      "ZUNIONSTORE two 1 one",
                                      "WATCH two"};
    ROWS(&t, good, bad);
}

static void test_database(void)
{
    static const char *const named[] = {"*", "eval", "evalsha_ro", "fcall", "script|*"};
    const struct redis_terms t = {
        .has_database = true, .database = 2, .commands = named, .n_commands = ARRAY_LEN(named)};
    const struct redis_terms any = {.commands = named, .n_commands = ARRAY_LEN(named)};
    static const char *const scripts[] = {"EVAL x 0", "EVALSHA_RO x 0", "FCALL x 0",
                                          "SCRIPT LOAD x"};
    static const char *const none[] = {"nothing"};
    static const char *const good[] = {"SELECT 2", "COPY a b",   "COPY db b",
                                       "SET db 1", "COPY db^ b", "COPY a b REPLACE"};
    static const char *const bad[] = {"SELECT 1",       "SELECT +2",
                                      "SELECT",         "MOVE a 1",
                                      "COPY a b DB 2",  "COPY a b REPLACE db 1",
                                      "COPY a b DB^ 1", "COPY a b REPLACE db^x 1",
                                      "SELECT 2^",      "SWAPDB 0 2",
                                      "EVAL x 0",       "EVALSHA_RO x 0",
                                      "FCALL x 0",      "SCRIPT LOAD x"};
    ROWS(&t, good, bad);
    ROWS(&any, scripts, none); /* in a script SELECT is a command as any */
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("redis", NULL, NULL);
    CU_add_test(s, "commands are read argument by argument", test_commands);
    CU_add_test(s, "a long argument comes in pieces", test_pieces);
    CU_add_test(s, "what two could read differently is no command", test_strict);
    CU_add_test(s, "errors at the top of replies", test_replies);
    CU_add_test(s, "what is no reply", test_no_replies);
    CU_add_test(s, "the table", test_table);
    CU_add_test(s, "rules", test_rules);
    CU_add_test(s, "what is no rule", test_no_rules);
    CU_add_test(s, "patterns", test_patterns);
    CU_add_test(s, "classes", test_classes);
    CU_add_test(s, "commands that are named", test_named);
    CU_add_test(s, "what shows a password", test_passwords);
    CU_add_test(s, "what may go on before all of it is there", test_settled);
    CU_add_test(s, "keys", test_keys);
    CU_add_test(s, "databases", test_database);
}
