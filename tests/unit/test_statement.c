/* What statements do: two lists of the tree, of what undoes a rule and of what clients say every
 * day (tests/statements), and fingerprints, in which no value stands. */
#include "statement_cache.h"

#include "compiler.h"
#include "tap_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

void suite_statement(void);

static const struct statement_bounds anything = {STATEMENT_ANY, false, false, true},
                                     a_role = {STATEMENT_ANY, false, true, true},
                                     reading = {STATEMENT_ANY, true, false, true},
                                     alone = {STATEMENT_ANY, false, false, false},
                                     both = {STATEMENT_ANY, true, true, false};

static const char *judged(struct slice text, const struct statement_bounds *b)
{
    struct statement s;
    statement_read(text, &s);
    return statement_refusal(&s, b);
}

/* \n, \t, \\ and \xHH; another backslash is itself. Returns the length. */
static size_t decode(char *line)
{
    char *to = line;
    unsigned byte;
    for (const char *p = line; *p && *p != '\n'; p++) {
        if (*p != '\\' || !strchr("nt\\x", p[1]) ||
            (p[1] == 'x' && sscanf(p + 2, "%2x", &byte) != 1)) {
            *to++ = *p;
            continue;
        }
        p++;
        *to++ = *p == 'n' ? '\n' : *p == 't' ? '\t' : *p == 'x' ? (char)byte : '\\';
        p += *p == 'x' ? 2 : 0;
    }
    return (size_t)(to - line);
}

typedef bool (*right_fn)(char letter, struct slice text);

/* How many lines there are; each that is not right is said. */
static size_t each_line(const char *name, right_fn right)
{
    char path[512], line[4096];
    size_t n = 0;
    const char *top = getenv("srcdir");
    snprintf(path, sizeof path, "%s/tests/statements/%s", top ? top : ".", name);
    FILE *f = fopen(path, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    while (fgets(line, sizeof line, f)) {
        if (line[0] == '#')
            continue;
        char shown[4096];
        snprintf(shown, sizeof shown, "%s", line);
        size_t len = decode(line + 2);
        bool ok = right(line[0], (struct slice){line + 2, len});
        if (!ok)
            printf("# not so: %s", shown);
        CU_ASSERT(ok);
        n++;
    }
    fclose(f);
    return n;
}

static bool is_refused(char letter, struct slice text)
{
    const char *why = judged(text, letter == 'A'   ? &anything
                                   : letter == 'R' ? &a_role
                                   : letter == 'S' ? &alone
                                                   : &reading);
    return why && judged(text, &both) && (letter != 'S' || judged(text, &anything) == NULL);
}

static void test_escapes(void)
{
    CU_ASSERT(each_line("postgres_escapes", is_refused) >= 300);
}

/* The role that a session has may be said, by its name and alone. */
static void test_own_role(void)
{
    static const struct statement_bounds own = {STATEMENT_ANY, false, true, true, "limited"};
    static const char *const same[] = {
        "SET ROLE limited", "SET ROLE 'limited'", "set local role LIMITED",
        "SET SESSION ROLE limited; SELECT 1", "SET ROLE limited; SET ROLE limited"};
    static const char *const others[] = {
        "SET ROLE above",
        "SET ROLE \"Limited\"",
        "SET ROLE limitedx",
        "SET ROLE limite",
        "SET ROLE none",
        "RESET ROLE",
        "SET role TO DEFAULT",
        "SET ROLE limited; SET ROLE above",
        "SET ROLE above; SET ROLE limited",
        "SET ROLE limited; RESET ROLE",
        "SET ROLE limited; SET SESSION AUTHORIZATION limited",
        "SET SESSION AUTHORIZATION limited",
        "SET ROLE limited; DISCARD ALL",
        "SET ROLE limited; SELECT set_config('role', 'limited', false)"};
    for (size_t i = 0; i < ARRAY_LEN(same); i++) {
        CU_ASSERT_PTR_NULL(judged(slice_str(same[i]), &own));
        CU_ASSERT_PTR_NOT_NULL(judged(slice_str(same[i]), &a_role));
    }
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        CU_ASSERT_PTR_NOT_NULL(judged(slice_str(others[i]), &own));
}

static bool is_carried(char letter, struct slice text)
{
    const char *why = judged(text, letter == 'R' ? &both : &a_role);
    why = why ? why : judged(text, &alone);
    if (why)
        printf("# %s\n", why);
    return why == NULL && judged(text, &anything) == NULL;
}

static void test_ordinary(void)
{
    CU_ASSERT(each_line("postgres_ordinary", is_carried) >= 150);
}

static void test_role_is_free(void)
{
    CU_ASSERT_PTR_NULL(judged(SLICE("SET ROLE admin"), &anything));
    CU_ASSERT_PTR_NULL(judged(SLICE("DISCARD ALL"), &anything));
    CU_ASSERT_PTR_NULL(judged(SLICE("SET default_transaction_read_only = off"), &a_role));
}

static void test_classes(void)
{
    static const struct {
        const char *text;
        unsigned classes;
    } rows[] = {
        {"SELECT 1", STATEMENT_READ},
        {"INSERT INTO t VALUES (1)", STATEMENT_READ | STATEMENT_WRITE}, /* VALUES reads */
        {"DELETE FROM t", STATEMENT_WRITE},
        {"CREATE TABLE t (a int)", STATEMENT_DEFINE},
        {"BEGIN", STATEMENT_TRANSACTION},
        {"SET search_path = x", STATEMENT_SESSION},
        {"LISTEN x", STATEMENT_LISTEN},
        {"COPY t TO STDOUT", STATEMENT_READ},
        {"COPY t FROM STDIN", STATEMENT_WRITE},
        {"SELECT 1; DELETE FROM t; BEGIN",
         STATEMENT_READ | STATEMENT_WRITE | STATEMENT_TRANSACTION},
        {"SELECT nextval('s')", STATEMENT_READ | STATEMENT_WRITE},
        {"SELECT setval('s', 1)", STATEMENT_READ | STATEMENT_WRITE},
        {"SELECT pg_notify('a', 'b')", STATEMENT_READ | STATEMENT_LISTEN},
        {"EXPLAIN DELETE FROM t", STATEMENT_READ | STATEMENT_WRITE},
        {"", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct statement s;
        statement_read(slice_str(rows[i].text), &s);
        CU_ASSERT_EQUAL(s.classes, rows[i].classes);
        for (unsigned bit = 1; bit <= STATEMENT_LISTEN; bit <<= 1) {
            const struct statement_bounds b = {STATEMENT_ANY & ~bit, false, false, false};
            CU_ASSERT_EQUAL(statement_refusal(&s, &b) != NULL, (s.classes & bit) != 0);
        }
    }
}

static void test_fingerprints(void)
{
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {"SELECT * FROM t WHERE a = 1", "select * from t where a=2", true},
        {"SELECT * FROM t WHERE a = 'x'", "SELECT * FROM t WHERE a = 'y' -- z", true},
        {"SELECT * FROM t WHERE a IN (1, 2)", "SELECT * FROM t WHERE a IN (1,2,3)", true},
        {"SELECT * FROM t", "SELECT * FROM u", false},
        {"DELETE FROM t", "SELECT * FROM t", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct statement a, b;
        statement_read(slice_str(rows[i].a), &a);
        statement_read(slice_str(rows[i].b), &b);
        CU_ASSERT_EQUAL(strlen(a.fingerprint), STATEMENT_FINGERPRINT);
        CU_ASSERT_EQUAL(strcmp(a.fingerprint, b.fingerprint) == 0, rows[i].same);
    }
}

/* Bounds: length, depth, bytes that are no text. */
static void test_bounds(void)
{
    static char text[STATEMENT_MAX + 2];
    memset(text, ' ', sizeof text);
    memcpy(text, "SELECT 1", 8);
    CU_ASSERT_PTR_NULL(judged((struct slice){text, STATEMENT_MAX}, &anything));
    CU_ASSERT_PTR_NOT_NULL(judged((struct slice){text, STATEMENT_MAX + 1}, &anything));
    CU_ASSERT_PTR_NOT_NULL(judged((struct slice){"SELECT 1\0; SET ROLE x", 21}, &anything));
    static const struct {
        const char *open;
        size_t n;
        bool carried;
    } deep[] = {{"(", 500, true},      {"(", 60000, false},    {"- ", 100, true},
                {"- ", 100000, false}, {"not ", 50000, false}, {"1+", 100, true},
                {"1+", 60000, false}};
    for (size_t i = 0; i < ARRAY_LEN(deep); i++) {
        size_t n = (size_t)snprintf(text, sizeof text, "SELECT "), k = strlen(deep[i].open);
        for (size_t j = 0; j < deep[i].n && n + k + deep[i].n < STATEMENT_MAX; j++, n += k)
            memcpy(text + n, deep[i].open, k);
        text[n++] = deep[i].open[0] == 'n' ? 'a' : '1';
        for (size_t j = 0; deep[i].open[0] == '(' && j < deep[i].n; j++)
            text[n++] = ')';
        CU_ASSERT_EQUAL(judged((struct slice){text, n}, &anything) == NULL, deep[i].carried);
    }
}

/* How deep a statement goes is the sandbox's word, and the user's limit of the stack is not. */
static void test_small_stack(void)
{
    if (SANITIZED) {
        printf("# SKIP a sanitizer knows one stack only\n");
        return;
    }
    int status = 0;
    pid_t child = fork();
    CU_ASSERT_FATAL(child >= 0);
    if (child == 0) {
        struct rlimit r = {256 << 10, 256 << 10};
        if (setrlimit(RLIMIT_STACK, &r) < 0)
            _exit(2);
        test_bounds();
        _exit(0);
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
}

static void test_functions(void)
{
    static const char *const good[] = {"now",      "pg_get_viewdef",   "pg_table_is_visible",
                                       "pg_sleep", "pg_relation_size", "current_setting",
                                       "length",   "loading"};
    static const char *const bad[] = {"pg_read_file", "pg_",    "pg_new_function", "lo_import",
                                      "query_to_xml", "dblink", "dblink_exec",     "loread"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        CU_ASSERT(statement_function_ok(slice_str(good[i])));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT(!statement_function_ok(slice_str(bad[i])));
}

/* What is remembered of a statement says the same as reading it, of the same text and of one with
 * other numbers. */
static struct statement_cache *cache;

static bool same(struct slice text)
{
    struct statement a, b;
    (void)statement_cache_read(cache, text, &a);
    statement_read(text, &b);
    return a.classes == b.classes && a.marks == b.marks && a.refused == b.refused &&
           strcmp(a.fingerprint, b.fingerprint) == 0;
}

static bool is_cached_rightly(char letter UNUSED, struct slice text)
{
    char other[4096];
    bool right = same(text) && same(text);
    for (unsigned by = 1; by < 10; by += 4) {
        for (size_t i = 0; i < text.n; i++) {
            bool digit = text.p[i] >= '0' && text.p[i] <= '9';
            other[i] = digit ? (char)('0' + (unsigned)(text.p[i] - '0' + by) % 10) : text.p[i];
        }
        right = right && same((struct slice){other, text.n});
    }
    return right;
}

static void test_cache(void)
{
    static const struct {
        const char *a, *b;
        bool known;
    } rows[] = {
        {"SELECT a FROM t WHERE b = 7;", "SELECT a FROM t WHERE b = 123456789;", true},
        {"update t set a = a + -12 where b in (1, 2)", "update t set a = a + -0 where b in (9, 44)",
         true},
        {"insert into t values (1, 'x 1')", "insert into t values (22, 'x 1')", true},
        {"insert into t values (1, 'x 1')", "insert into t values (1, 'x 2')", false},
        {"select \"a 1\" from t", "select \"a 2\" from t", false},
        {"select a1, $1 from t2", "select a2, $1 from t2", false},
        {"select $1", "select $2", false},
        {"select 1.5", "select 2.5", false},
        {"select 1234567890", "select 1234567891", false},
        {"select '{}'::int[3]", "select '{}'::int[4]", false},
        {"select 1::float(3)", "select 1::float(44)", false},
        {"select current_timestamp(1)", "select current_timestamp(2)", false},
        {"select localtime (1)", "select localtime (2)", false},
        {"select CURRENT_TIME\n(1)", "select CURRENT_TIME\n(2)", false},
        {"select localtimestamp(1)", "select localtimestamp(2)", false},
        {"insert into t values (1, CURRENT_TIMESTAMP)",
         "insert into t values (2, CURRENT_TIMESTAMP)", true},
        {"select 1::numeric(3, 1)", "select 1::numeric(4, 1)", true},
        {"select 1::varchar(3), interval '1' second (3)",
         "select 2::varchar(4), interval '1' second (4)", true},
        {"select E'\\' , 1", "select E'\\' , 2", false},
        {"select $x$ 1 $x$", "select $x$ 2 $x$", false},
        {"select a -- 1", "select a -- 2", false},
        {"select a /* 1 */", "select a /* 2 */", false},
        {"select 1; fetch 1 from c", "select 1; fetch 2 from c", false},
        {"fetch 1 from c", "fetch 2 from c", false},
        {"fetch 1 from c", "fetch 1 from c", true},
        {"BEGIN", "BEGIN", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct statement s;
        cache = statement_cache_new();
        CU_ASSERT(!statement_cache_read(cache, slice_str(rows[i].a), &s));
        CU_ASSERT_EQUAL(statement_cache_read(cache, slice_str(rows[i].b), &s), rows[i].known);
        CU_ASSERT(same(slice_str(rows[i].a)) && same(slice_str(rows[i].b)));
        statement_cache_free(cache);
    }
    cache = statement_cache_new();
    CU_ASSERT(each_line("postgres_escapes", is_cached_rightly) >= 300);
    CU_ASSERT(each_line("postgres_ordinary", is_cached_rightly) >= 150);
    statement_cache_free(cache);
}

void suite_statement(void)
{
    CU_pSuite s = CU_add_suite("statement", NULL, NULL);
    CU_add_test(s, "what undoes a rule is refused", test_escapes);
    CU_add_test(s, "the role that a session has", test_own_role);
    CU_add_test(s, "what clients say is carried", test_ordinary);
    CU_add_test(s, "a role that no rule names is free", test_role_is_free);
    CU_add_test(s, "classes", test_classes);
    CU_add_test(s, "fingerprints", test_fingerprints);
    CU_add_test(s, "bounds, with little stack", test_small_stack); /* before the stack has grown */
    CU_add_test(s, "bounds", test_bounds);
    CU_add_test(s, "functions", test_functions);
    CU_add_test(s, "what is remembered", test_cache);
}

void tap_suites(void)
{
    suite_statement();
}
