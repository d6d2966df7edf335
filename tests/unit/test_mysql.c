/* MySQL: packets, logins, replies, proofs, and what rules leave of statements. */
#include "mysql_judge.h"
#include "mysql_proof.h"

#include <stdio.h>
#include <string.h>

#include "tap_main.h"

static const struct mysql_terms all = {.any_database = true, .statements = 31};
static const struct mysql_terms seeing = {.any_database = true, .activity = true, .statements = 31};
static const struct mysql_terms reading = {.read_only = true, .statements = 31};

static const char *judged(const struct mysql_terms *t, const char *text)
{
    struct mysql_statement s;
    mysql_statement_read(slice_str(text), t, SLICE("orders"), false, &s);
    return s.refused;
}

static void test_packets(void)
{
    static const char text[] = "\x05\0\0\0\x03"
                               "abcd"
                               "\x01\0\0\0\x0e"
                               "\x22\0\0\0\x17"
                               "0123456789012345678901234567890123"
                               "x";
    for (size_t step = 1; step < sizeof text; step++) {
        struct mysql_reader r;
        struct mysql_part m;
        size_t packets = 0, bytes = 0;
        mysql_reader_init(&r, MYSQL_COMMANDS);
        for (size_t i = 0; i + 2 < sizeof text; i += step) {
            struct slice in = {text + i, sizeof text - 2 - i < step ? sizeof text - 2 - i : step};
            while (mysql_read(&r, &in, &m) == MYSQL_PART) {
                packets += m.last;
                bytes += m.body.n;
                CU_ASSERT(!m.first || m.length < 32 || m.body.n >= 32);
            }
        }
        CU_ASSERT_EQUAL(packets, 3);
        CU_ASSERT_EQUAL(bytes, 5 + 1 + 34);
        mysql_reader_free(&r);
    }
}

static bool violates(enum mysql_phase phase, const char *text, size_t n)
{
    struct mysql_reader r;
    struct mysql_part m;
    struct slice in = {text, n};
    mysql_reader_init(&r, phase);
    enum mysql_event e = mysql_read(&r, &in, &m);
    mysql_reader_free(&r);
    return e == MYSQL_VIOLATION;
}

static void test_no_packets(void)
{
    CU_ASSERT(violates(MYSQL_COMMANDS, "\0\0\0\0", 4));
    CU_ASSERT(violates(MYSQL_COMMANDS, "\xff\xff\xff\0", 4));
    CU_ASSERT(violates(MYSQL_FILE, "\xff\xff\xff\0", 4));
    CU_ASSERT(violates(MYSQL_COMMANDS, "\0\0\x20\0\x03", 5));
    CU_ASSERT(violates(MYSQL_LOGIN, "\1\0\1\0", 4));
    CU_ASSERT(!violates(MYSQL_FILE, "\0\0\0\2", 4));
    CU_ASSERT(!violates(MYSQL_COMMANDS, "\0\0\x20\0\x17", 5));
}

static int say(struct mysql_reply *r, const char *bytes, size_t n)
{
    struct mysql_part m = {.first = true, .last = true, .length = (uint32_t)n, .body = {bytes, n}};
    return mysql_reply_take(r, &m);
}
#define SAY(r, lit) say(r, lit, sizeof(lit) - 1)

static void test_replies(void)
{
    struct mysql_reply r;
    mysql_reply_begin(&r, MYSQL_REPLY_RESULT, false);
    CU_ASSERT(SAY(&r, "\2") == 0 && SAY(&r, "def") == 0 && SAY(&r, "def") == 0);
    CU_ASSERT(SAY(&r, "\xfe\0\0\2\0") == 0 && !mysql_reply_over(&r));
    CU_ASSERT(SAY(&r, "\1a\1b") == 0 && r.row);
    CU_ASSERT(SAY(&r, "\xfe\0\0\x0a\0") == 0 && !r.row && !mysql_reply_over(&r)); /* more results */
    CU_ASSERT(SAY(&r, "\0\0\0\2\0\0\0") == 0 && mysql_reply_over(&r));
    CU_ASSERT(SAY(&r, "\0\0\0\2\0\0\0") < 0); /* unasked */
    mysql_reply_begin(&r, MYSQL_REPLY_RESULT, false);
    CU_ASSERT(SAY(&r, "\xfb/etc/passwd") < 0); /* a file that it may not ask for */
    mysql_reply_begin(&r, MYSQL_REPLY_RESULT, true);
    CU_ASSERT(SAY(&r, "\xfb/x") == 0 && r.file && SAY(&r, "\0\0\0\2\0\0\0") < 0);
    mysql_reply_sent(&r);
    CU_ASSERT(SAY(&r, "\0\0\0\2\0\0\0") == 0 && mysql_reply_over(&r));
    mysql_reply_begin(&r, MYSQL_REPLY_PREPARED, false);
    CU_ASSERT(SAY(&r, "\0\1\0\0\0\1\0\1\0\0\0\0") == 0 && SAY(&r, "def") == 0);
    CU_ASSERT(SAY(&r, "\xfe\0\0\2\0") == 0 && SAY(&r, "def") == 0 && !mysql_reply_over(&r));
    CU_ASSERT(SAY(&r, "\xfe\0\0\2\0") == 0 && mysql_reply_over(&r));
}

static void test_logins(void)
{
    struct mysql_greeting g = {.id = 7,
                               .capabilities = MYSQL_ALWAYS,
                               .version = SLICE("x"),
                               .plugin = SLICE("p"),
                               .nonce = "01234567890123456789"},
                          back;
    struct mysql_answer a = {.capabilities = MYSQL_ALWAYS | MYSQL_CONNECT_WITH_DB,
                             .charset = 45,
                             .user = SLICE("u"),
                             .proof = SLICE("xyz"),
                             .database = SLICE("d"),
                             .plugin = SLICE("p")},
                        read;
    struct buf b;
    buf_init(&b, 1024);
    CU_ASSERT(mysql_greeting_put(&b, &g) == 0);
    buf_drain(&b, MYSQL_HEAD);
    CU_ASSERT(mysql_greeting_read(buf_slice(&b), &back) == 0 && back.id == 7 &&
              slice_eq_str(back.plugin, "p") && memcmp(back.nonce, g.nonce, 20) == 0);
    for (size_t n = 0; n < 40; n++)
        CU_ASSERT(mysql_greeting_read((struct slice){(char *)buf_data(&b), n}, &back) < 0);
    buf_clear(&b);
    CU_ASSERT(mysql_answer_put(&b, 1, &a) == 0);
    buf_drain(&b, MYSQL_HEAD);
    CU_ASSERT(mysql_answer_read(buf_slice(&b), &read) == 0 && slice_eq_str(read.user, "u") &&
              slice_eq_str(read.proof, "xyz") && slice_eq_str(read.database, "d") &&
              !read.asks_tls);
    CU_ASSERT(buf_append(&b, "more", 4) == 0 && mysql_answer_read(buf_slice(&b), &read) < 0);
    buf_free(&b);
    CU_ASSERT(!mysql_charset_ok(28) && !mysql_charset_ok(1) && mysql_charset_ok(45));
}

static bool proves(uint32_t scheme, size_t nonce, const char *auth, const char *hex)
{
    char said[129] = "";
    struct buf b;
    buf_init(&b, 128);
    int r = mysql_proof(SLICE("secret"), auth, scheme,
                        (struct slice){"01234567890123456789012345678901", nonce}, &b, NULL);
    for (size_t i = 0; i < buf_len(&b); i++)
        snprintf(said + 2 * i, 3, "%02x", buf_data(&b)[i]);
    buf_free(&b);
    return r == 0 && (hex == NULL || strcmp(said, hex) == 0);
}

static void test_proofs(void)
{
    CU_ASSERT(proves(MYSQL_NATIVE, 20, "native", "7abe1a8776b59e931059451f81e596a60dbbf7a8"));
    CU_ASSERT(proves(MYSQL_SHA2, 20, "caching_sha2",
                     "1a2da2573c2faa367e2afddb54cdfd11a95ed22eef0167151196a6fc8e3d3813"));
    CU_ASSERT(proves(MYSQL_ED25519, 32, "ed25519", NULL));
    CU_ASSERT(!proves(MYSQL_NATIVE, 20, "caching_sha2", NULL));
    CU_ASSERT(!proves(MYSQL_SHA2, 20, "ed25519", NULL));
    CU_ASSERT(!proves(MYSQL_CLEARTEXT, 0, "ed25519", NULL));
    CU_ASSERT(!proves(MYSQL_CLEARTEXT, 0, "native", NULL));
    CU_ASSERT(proves(MYSQL_CLEARTEXT, 0, "caching_sha2", "736563726574"));
    CU_ASSERT(!proves(MYSQL_NATIVE, 19, "native", NULL));
}

static void test_statements(void)
{
    static const char *const good[] = {"SELECT 1",
                                       "select t.a from t where t.b = 'x;y'",
                                       "SHOW TABLES",
                                       "SELECT 1;",
                                       "SELECT `a``b` FROM orders.t",
                                       "SELECT 'it''s' -- x",
                                       "SELECT 5--3",
                                       "(SELECT 1) UNION (SELECT 2)",
                                       "SET NAMES utf8mb4",
                                       "SET @a = 1, autocommit = 0",
                                       "/*!40101 SET NAMES utf8 */",
                                       "SELECT /*!40001 SQL_NO_CACHE */ * FROM t",
                                       "BEGIN",
                                       "COMMIT",
                                       "USE orders",
                                       "SELECT TRIM(LEADING 'x' FROM t.a) FROM t",
                                       "EXPLAIN SELECT 1",
                                       "SET SESSION sql_mode='STRICT_ALL_TABLES'"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        const char *why = judged(&reading, good[i]);
        CU_ASSERT_PTR_NULL(why);
        if (why)
            printf("# %s: %s\n", good[i], why);
    }
    CU_ASSERT_PTR_NOT_NULL(judged(&reading, "DELETE FROM t"));
    CU_ASSERT_PTR_NULL(judged(&all, "DELETE FROM other.t"));
    CU_ASSERT_PTR_NULL(judged(&all, "CREATE DATABASE x"));
    CU_ASSERT_PTR_NOT_NULL(judged(&all, "USE mysql"));
    CU_ASSERT_PTR_NOT_NULL(judged(&all, "SELECT * FROM MySQL.global_priv"));
    CU_ASSERT_PTR_NOT_NULL(judged(&all, "SELECT * FROM `my\xc5\xbf"
                                        "ql`.global_priv"));
    CU_ASSERT_PTR_NOT_NULL(judged(&all, "SHOW GRANTS"));
    CU_ASSERT_PTR_NOT_NULL(judged(&all, "SHOW CREATE USER app"));
    CU_ASSERT_PTR_NULL(judged(&reading, "SHOW CREATE TABLE t"));
    CU_ASSERT_PTR_NOT_NULL(judged(&all, "SELECT 1; SELECT 2"));
    CU_ASSERT_PTR_NOT_NULL(judged(&reading, "SELECT * FROM t, other.t"));
}

/* sql_mode, as MariaDB's and MySQL's own connectors, Rails and Laravel set it; and what would make
 * of it a mode in which quotes or backslashes are read otherwise. */
static void test_modes(void)
{
    static const char *const good[] = {
        "SET sql_mode=CONCAT(@@sql_mode,',STRICT_TRANS_TABLES'), autocommit=1",
        "SET @@SESSION.sql_mode = CONCAT(@@session.sql_mode, ',STRICT_ALL_TABLES'), "
        "@@SESSION.wait_timeout = 1",
        "SET sql_mode = REPLACE(REPLACE(REPLACE(@@sql_mode, 'STRICT_TRANS_TABLES', ''), "
        "'STRICT_ALL_TABLES', ''), 'TRADITIONAL', '')",
        "SET NAMES 'utf8mb4' COLLATE 'utf8mb4_bin', SESSION sql_mode = 'NO_ZERO_DATE,TRADITIONAL'",
        "SET sql_mode = concat('TRADITIONAL,', @@local.sql_mode, ',', '')",
        "SET session_track_system_variables = CONCAT(@@global.session_track_system_variables, "
        "',x')"};
    static const char *const bad[] = {
        "SET sql_mode = 'ANSI'",
        "SET sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')",
        "SET sql_mode = CONCAT(@@sql_mode, 'STRICT_ALL_TABLES')", /* one word with the last */
        "SET sql_mode = CONCAT('ANSI', @@sql_mode, '_QUOTES')",
        "SET sql_mode = CONCAT('ANSI', '_QUOTES')",
        "SET sql_mode = CONCAT('ANSI_', REPLACE(@@sql_mode, 'TRADITIONAL', ''), 'QUOTES')",
        "SET sql_mode = REPLACE(@@sql_mode, 'STRICT_ALL_TABLES', 'ANSI')",
        "SET sql_mode = REPLACE(@@sql_mode, 'STRICT_ALL_TABLES', @x)",
        "SET sql_mode = REPLACE(@@sql_mode, '_ALL', '')",
        "SET sql_mode = REPLACE(@@sql_mode, ',', '')",
        "SET sql_mode = @@global.sql_mode",
        "SET sql_mode = @@other.sql_mode",
        "SET sql_mode = @@version",
        "SET sql_mode = @old + 0",
        "SET sql_mode = IFNULL(@old, '')",
        "SET sql_mode = 4",
        "SET sql_mode = 'TRADITIONAL' 'X'",
        "SET sql_mode = CONCAT('ANSI' , '\\_QUOTES')",
        "SET sql_mode = CONCAT(@@sql_mode, ',TRADITIONAL') + 4",
        "SET sql_mode = CONCAT(@@sql_mode, ',TRADITIONAL'",
        "SET sql_mode = "
        "CONCAT(CONCAT(CONCAT(CONCAT(CONCAT(CONCAT(CONCAT(CONCAT(CONCAT('')))))))))"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        CU_ASSERT_PTR_NULL(judged(&reading, good[i]));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const char *why = judged(&reading, bad[i]);
        CU_ASSERT_PTR_NOT_NULL(why);
        if (why == NULL)
            printf("# %s\n", bad[i]);
    }
}

/* A variable's value is not known here: the back asks for what it did, before anything else goes.
 */
static void test_restores(void)
{
    static const struct mysql_terms many = {
        .read_only = true, .multi_statements = true, .statements = 31};
    static const struct {
        const char *text;
        bool restores;
    } rows[] = {
        {"SET sql_mode = @old", true},
        {"SET SQL_MODE=@OLD_SQL_MODE, autocommit = 1", true},
        {"/*!40101 SET SQL_MODE=@OLD_SQL_MODE */", true},
        {"/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;", true},
        {"/*M!999999\\- enable the sandbox mode */ \nSET @@session.character_set_client = @c",
         true},
        {"SET character_set_connection = @c", true},
        {"SET collation_connection = @`c d`", true},
        {"SET @old = @@sql_mode, sql_mode = 'NO_AUTO_VALUE_ON_ZERO'", false},
        {"SET autocommit = @a", false},
        {"SELECT @sql_mode", false},
    };
    static const char *const beside[] = {"SET sql_mode = @old; SELECT 1",
                                         "SELECT 1; SET sql_mode = @old",
                                         "/*!40101 SET sql_mode = @old */; SELECT 1"};
    struct mysql_statement s;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        mysql_statement_read(slice_str(rows[i].text), &reading, SLICE("orders"), false, &s);
        if (s.refused || s.restores != rows[i].restores)
            printf("# %s: %s\n", rows[i].text, s.refused ? s.refused : "not seen");
        CU_ASSERT(s.refused == NULL && s.restores == rows[i].restores);
        mysql_statement_read(slice_str(rows[i].text), &reading, SLICE("orders"), true, &s);
        CU_ASSERT_EQUAL(s.refused != NULL, rows[i].restores);
    }
    for (size_t i = 0; i < ARRAY_LEN(beside); i++)
        CU_ASSERT_PTR_NOT_NULL(judged(&many, beside[i]));
    CU_ASSERT_PTR_NULL(judged(&many, "SELECT 1; SET @old = 1"));
}

/* A comment for servers of no version that there is, and what looks like one. */
static void test_no_version(void)
{
    static const char *const bad[] = {
        "/*M!999999\\- x",           "/*M!9999999 x */ SELECT 1",  "/*!999999\\- x */ SELECT 1",
        "/*M!999999 /* */ SELECT 1", "/*M!99999\\- x */ SELECT 1", "/*M!999999# */ SELECT 1"};
    CU_ASSERT_PTR_NULL(judged(&reading, "/*M!999999\\- enable the sandbox mode */ SELECT 1"));
    CU_ASSERT_PTR_NULL(judged(&reading, "SELECT /*M!999999 anything */ 1"));
    CU_ASSERT_PTR_NOT_NULL(judged(&reading, "/*M!999999 x */ DROP TABLE t"));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CU_ASSERT_PTR_NOT_NULL(judged(&reading, bad[i]));
        if (judged(&reading, bad[i]) == NULL)
            printf("# %s\n", bad[i]);
    }
}

/* What other sessions of the login say: by its tables, by commands and by databases. */
static void test_activity(void)
{
    static const char *const shows[] = {
        "SHOW FULL PROCESSLIST",
        "SELECT info FROM information_schema.`processlist`",
        "/*!50000 SHOW PROCESSLIST */",
        "SELECT * FROM information_schema.innodb_trx",
        "SHOW ENGINE INNODB STATUS",
        "SHOW EXPLAIN FOR 1",
        "SHOW ANALYZE FORMAT=JSON FOR 1",
        "EXPLAIN FOR CONNECTION 1",
        "SELECT * FROM performance_schema.threads",
        "SELECT * FROM t JOIN `sys`.session",
        "SELECT * FROM information_schema.processl\xc4\xb0st",
        "SELECT * FROM information_schema.`proce\xc5\xbfslist`",
        "SELECT * FROM information_schema.\xc4\xb1nnodb_trx",
        "SELECT * FROM information_schema.metadata_loc\xe2\x84\xaa_info",
        "USE performance_schema"};
    static const char command[] = {MYSQL_INIT_DB, 's', 'y', 's'};
    struct mysql_part m = {.first = true, .last = true, .body = {command, sizeof command}};
    struct mysql_judged j;
    for (size_t i = 0; i < ARRAY_LEN(shows); i++) {
        const char *why = judged(&all, shows[i]), *seen = judged(&seeing, shows[i]);
        if (why == NULL || seen)
            printf("# %s: %s, %s\n", shows[i], why ? why : "-", seen ? seen : "-");
        CU_ASSERT(why && strstr(why, "'activity'"));
        CU_ASSERT_PTR_NULL(seen);
    }
    CU_ASSERT_PTR_NULL(judged(&all, "SELECT 'processlist' FROM t"));
    CU_ASSERT_PTR_NULL(judged(&all, "SHOW ENGINES"));
    mysql_judge(&all, SLICE("orders"), &m, &j);
    CU_ASSERT(j.why && strstr(j.why, "'activity'"));
    mysql_judge(&seeing, SLICE("orders"), &m, &j);
    CU_ASSERT_PTR_NULL(j.why);
}

/* Where a server's word begins behind a number, and what is a blank to it. */
static void test_words(void)
{
    static const char *const bad[] = {
        "SELECT 1.5FROM mysql.global_priv",
        "SELECT 1.5e3FROM mysql.global_priv",
        "SELECT 1e1FROM mysql.global_priv",
        "SELECT 1e+1FROM mysql.global_priv",
        "SELECT 1.e1FROM mysql.global_priv",
        "SELECT .5FROM mysql.global_priv",
        "SELECT a,.5FROM mysql.global_priv",
        "SELECT 1e1INTO OUTFILE '/tmp/x'",
        "SELECT * FROM t WHERE a = 1.5UNION SELECT 1.5FROM mysql.user",
        "SELECT a FROM mysql 1.e.user",
        "SELECT 1.e(a) FROM t",
        "SELECT a\xa0"
        "FROM\xa0mysql.user",
        "SELECT @a\xa0"
        "FROM mysql.user",
        "SELECT \xc3\xa0 FROM t",
        "SELECT mysql.f(1)",
        "SELECT `mysql` . f (1)",
        "SHOW BINLOG EVENTS",
        "SHOW RELAYLOG 'x' EVENTS"};
    static const char *const good[] = {"SELECT t.1e1from, t.5into, 1st, 1e, 0x1e5f, 5.5, .5 FROM t",
                                       "SELECT 1.5FROM t",
                                       "SELECT 1e1-1e-1 FROM `orders`.5t",
                                       "SELECT `\xc3\xa0`, '\xa0', \xc3\xa9 FROM t",
                                       "SELECT orders.f(1), t.a IN (1) FROM t",
                                       "SHOW BINLOG STATUS",
                                       "SELECT 5 . 5"};
    static const char *const activity[] = {"SELECT sys.ps_thread_trx_info(1)",
                                           "SELECT 1, 1.5FROM performance_schema.threads",
                                           "SELECT * FROM information_schema.innodb_locks"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const char *why = judged(&all, bad[i]);
        CU_ASSERT_PTR_NOT_NULL(why);
        if (why == NULL)
            printf("# %s\n", bad[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        const char *why = judged(&reading, good[i]);
        CU_ASSERT_PTR_NULL(why);
        if (why)
            printf("# %s: %s\n", good[i], why);
    }
    for (size_t i = 0; i < ARRAY_LEN(activity); i++) {
        const char *why = judged(&all, activity[i]);
        CU_ASSERT(why && strstr(why, "'activity'"));
        CU_ASSERT_PTR_NULL(judged(&seeing, activity[i]));
    }
}

static void test_prints(void)
{
    struct mysql_statement a, b, c;
    mysql_statement_read(SLICE("SELECT a FROM t WHERE id IN (1, 2)"), &all, SLICE(""), false, &a);
    mysql_statement_read(SLICE("select  a from t where id in (3)"), &all, SLICE(""), false, &b);
    mysql_statement_read(SLICE("SELECT a FROM t WHERE id > 3"), &all, SLICE(""), false, &c);
    CU_ASSERT_STRING_EQUAL(a.print, b.print);
    CU_ASSERT_STRING_NOT_EQUAL(a.print, c.print);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("mysql", NULL, NULL);
    CU_add_test(s, "packets, in pieces of any size", test_packets);
    CU_add_test(s, "what is no packet", test_no_packets);
    CU_add_test(s, "replies are followed to their end", test_replies);
    CU_add_test(s, "logins", test_logins);
    CU_add_test(s, "proofs", test_proofs);
    CU_add_test(s, "statements", test_statements);
    CU_add_test(s, "modes", test_modes);
    CU_add_test(s, "modes that are restored", test_restores);
    CU_add_test(s, "comments for no version", test_no_version);
    CU_add_test(s, "what other sessions say", test_activity);
    CU_add_test(s, "words as servers cut them", test_words);
    CU_add_test(s, "fingerprints", test_prints);
}
