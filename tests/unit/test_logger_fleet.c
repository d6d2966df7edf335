/* Two loggers of one fleet, and a database that may lie: what they say, doubt, and say again. */
#include "tap_main.h"

#include "audit_fixture.h"
#include "checkpoint.h"
#include "fleet_file.h"
#include "logger_internal.h"

#include <CUnit/CUnit.h>

void suite_logger_fleet(void);

enum { ROWS = 256, HOSTS = 2 };

/* The table, and a channel to each logger. */
static struct {
    char *line[ROWS];
    char host[ROWS][FLEET_LINE_NAME + 1];
    uint64_t number[ROWS];
    size_t n;
    struct rig rig[HOSTS];
    struct ipc *logger[HOSTS];
    bool closed[HOSTS], deaf; /* deaf: what is put is lost */
    size_t puts, asks;
    uint32_t ask;
} db;

static char *dir[HOSTS];
static const char *const names[HOSTS] = {"a", "b"};

static size_t row_of(const char *host, uint64_t number)
{
    size_t i = 0;
    while (i < db.n && !(strcmp(db.host[i], host) == 0 && db.number[i] == number))
        i++;
    return i;
}

static size_t rows_of(const char *host)
{
    size_t n = 0;
    for (size_t i = 0; i < db.n; i++)
        n += strcmp(db.host[i], host) == 0;
    return n;
}

static int on_put(struct msg *m)
{
    char host[FLEET_LINE_NAME + 1], line[FLEET_LINE_MAX + 1];
    uint64_t number;
    if ((msg_get_str(m, host, sizeof host) | msg_get_u64(m, &number) |
         msg_get_str(m, line, sizeof line) | msg_end(m)) < 0)
        return -1;
    db.puts++;
    if (db.deaf || row_of(host, number) < db.n || db.n == ROWS)
        return 0;
    memcpy(db.host[db.n], host, sizeof host);
    db.number[db.n] = number;
    db.line[db.n++] = strdup(line);
    return 0;
}

static void say_row(struct ipc *ch, uint32_t ask, size_t i)
{
    char text[FLEET_LINE_MAX + 128];
    struct msg m;
    msg_init(&m, W_FLEET_HEADS_ROW);
    msg_put_u32(&m, ask);
    msg_put_bytes(&m, text,
                  (size_t)snprintf(text, sizeof text, "%s %llu %s", db.host[i],
                                   (unsigned long long)db.number[i], db.line[i]));
    ipc_send(ch, &m);
}

static void say_end(struct ipc *ch, uint32_t ask)
{
    struct msg m;
    msg_init(&m, W_FLEET_HEADS_END);
    msg_put_u32(&m, ask);
    msg_put_u8(&m, 1);
    ipc_send(ch, &m);
}

static int on_ask(struct ipc *ch, struct msg *m)
{
    char host[HOSTS][FLEET_LINE_NAME + 1];
    uint64_t after[HOSTS];
    uint32_t n, said = 0;
    if ((msg_get_u32(m, &db.ask) | msg_get_u32(m, &n)) < 0 || n > HOSTS)
        return -1;
    for (uint32_t i = 0; i < n; i++)
        if ((msg_get_str(m, host[i], sizeof host[i]) | msg_get_u64(m, &after[i])) < 0)
            return -1;
    db.asks++;
    for (size_t i = 0; i < db.n; i++)
        for (uint32_t k = 0; k < n && said < FLEET_PAGE; k++)
            if (strcmp(db.host[i], host[k]) == 0 && db.number[i] > after[k]) {
                say_row(ch, db.ask, i);
                said++;
            }
    say_end(ch, db.ask);
    return msg_end(m);
}

static int on_logger(struct ipc *ch, struct msg *m, void *arg UNUSED)
{
    return m->type == W_FLEET_HEADS_ASK   ? on_ask(ch, m)
           : m->type == W_FLEET_HEADS_PUT ? on_put(m)
                                          : -1;
}

static void on_closed(struct ipc *ch, const char *why UNUSED, void *arg)
{
    size_t i = (size_t)(uintptr_t)arg;
    ipc_free(ch);
    db.logger[i] = NULL;
    db.closed[i] = true;
}

static void begin(size_t i)
{
    struct event_base *base = db.rig[0].base;
    fixture_fleet.host = names[i];
    rig_start_on(&db.rig[i], base, dir[i], false, "");
    CU_ASSERT_TRUE_FATAL(db.rig[i].ready);
    int fd = rig_peer_fd(&db.rig[i], ROLE_FLEET, 7, "", "");
    db.closed[i] = false;
    db.logger[i] = ipc_new(base, fd, on_logger, on_closed, (void *)(uintptr_t)i);
}

static void end(size_t i)
{
    ipc_free(db.logger[i]);
    db.logger[i] = NULL;
    rig_kill(&db.rig[i]);
}

static void begin_all(void)
{
    memset(&db, 0, sizeof db);
    fixture_fleet.n = HOSTS;
    for (size_t i = 0; i < HOSTS; i++) {
        struct err err = {0};
        dir[i] = fixture_dir();
        int fd = fixture_open(dir[i]);
        struct signing_key *k = signing_key_open(fd, &err);
        CU_ASSERT_PTR_NOT_NULL_FATAL(k);
        fixture_fleet.name[i] = names[i];
        CU_ASSERT_EQUAL(signing_key_raw(k, fixture_fleet.key[i]), 0);
        signing_key_free(k);
        close(fd);
    }
    db.rig[0].base = event_base_new();
    begin(0);
    begin(1);
}

static void end_all(void)
{
    struct event_base *base = db.rig[0].base;
    end(0);
    end(1);
    event_base_free(base);
    for (size_t i = 0; i < HOSTS; i++)
        fixture_remove(dir[i]);
    for (size_t i = 0; i < db.n; i++)
        free(db.line[i]);
    fixture_fleet.host = NULL;
    fixture_fleet.n = 0;
}

/* The latest line of a host in the table. */
static bool latest(const char *host, struct fleet_head *h)
{
    for (size_t i = db.n; i-- > 0;)
        if (strcmp(db.host[i], host) == 0 && fleet_head_parse(slice_str(db.line[i]), h) == 0)
            return true;
    return false;
}

/* Lines that say that their log is another one. */
static size_t anews(void)
{
    static struct fleet_head h;
    size_t n = 0;
    for (size_t i = 0; i < db.n; i++)
        n += fleet_head_parse(slice_str(db.line[i]), &h) == 0 && h.anew;
    return n;
}

struct wanted {
    const char *by, *host;
    uint64_t number;
    enum fleet_doubt_kind kind; /* 0: it has said so many lines, and doubts nothing */
};

static bool is_said(void *arg)
{
    const struct wanted *w = arg;
    static struct fleet_head h;
    for (size_t i = 0; i < HOSTS; i++)
        if (db.rig[i].logger)
            logger_fleet_tick(db.rig[i].logger); /* not each second alone */
    if (!latest(w->by, &h))
        return false;
    for (size_t i = 0; w->kind && i < h.n_doubts; i++)
        if (strcmp(h.doubt[i].host, w->host) == 0 && h.doubt[i].number == w->number &&
            h.doubt[i].kind == w->kind)
            return true;
    return w->kind == 0 && h.number >= w->number && h.n_doubts == 0;
}

static void expect(const char *by, const char *host, uint64_t number, enum fleet_doubt_kind kind)
{
    struct wanted w = {by, host, number, kind};
    CU_ASSERT_TRUE(rig_until(db.rig[0].base, is_said, &w));
}

static void test_doubts(void)
{
    static struct fleet_head h;
    begin_all();
    expect("a", "", 3, 0);
    expect("b", "", 3, 0);
    CU_ASSERT_TRUE(latest("b", &h) && h.n_seen == HOSTS && !h.anew);
    size_t gone = row_of("a", 1), other = row_of("b", 2);
    memcpy(db.host[gone], "x", 2); /* nobody asks for it */
    char *at = strstr(db.line[other], " 0 ");
    at[1] = '1';
    expect("b", "a", 1, DOUBT_MISSING);
    expect("a", "b", 2, DOUBT_CHANGED);
    expect("b", "b", 2, DOUBT_CHANGED); /* itself as well */
    memcpy(db.host[gone], "a", 2);
    at[1] = '0';
    expect("a", "", 1, 0); /* and nothing is doubted any more */
    size_t odd = db.n++;
    memcpy(db.host[odd], "b", 2);
    db.number[odd] = 900;
    db.line[odd] = strdup("noise");
    expect("a", "b", 900, DOUBT_UNSIGNED);
    memcpy(db.host[odd], "x", 2);
    expect("a", "", 1, 0);
    end_all();
}

/* A line that never came into the database is said again, the same; and what came but was forgotten
 * here shows that this is another log. */
static void test_said_again(void)
{
    static struct fleet_head h;
    char path[512], text[FLEET_LINE_MAX + 2], kept[FLEET_LINE_MAX + 2] = "";
    begin_all();
    expect("a", "", 1, 0);
    db.deaf = true;
    size_t puts = db.puts;
    for (unsigned i = 0; i < 60 && db.puts < puts + 4; i++)
        rig_turns(db.rig[0].base, 100);
    CU_ASSERT_TRUE(db.puts >= puts + 4);
    latest("a", &h);
    uint64_t had = h.number;
    end(0);
    snprintf(path, sizeof path, "%s/" FLEET_FILE, dir[0]);
    FILE *f = fopen(path, "r");
    while (fgets(text, sizeof text, f)) {
        uint64_t number;
        char host[FLEET_LINE_NAME + 1];
        text[strcspn(text, "\n")] = 0;
        if (fleet_head_peek(slice_str(text), host, &number) == 0 && number == had + 1 &&
            strcmp(host, "a") == 0)
            snprintf(kept, sizeof kept, "%s", text);
    }
    fclose(f);
    db.deaf = false;
    begin(0);
    expect("a", "", had + 1, 0);
    size_t again = row_of("a", had + 1);
    CU_ASSERT_TRUE_FATAL(again < db.n);
    CU_ASSERT_STRING_EQUAL(db.line[again], kept);
    end(0);
    CU_ASSERT_EQUAL(unlink(path), 0);
    begin(0);
    expect("a", "", had + 3, 0);
    CU_ASSERT_EQUAL(anews(), 1);
    end_all();
}

/* An older line of its own that the file let go, when the fleet had more hosts, is no rollback. */
static void test_let_go(void)
{
    char path[512], with[560], text[FLEET_LINE_MAX + 2], host[FLEET_LINE_NAME + 1];
    uint64_t number, had;
    static struct fleet_head h;
    begin_all();
    expect("a", "", 4, 0);
    end(0);
    CU_ASSERT_TRUE(latest("a", &h));
    had = h.number;
    snprintf(path, sizeof path, "%s/" FLEET_FILE, dir[0]);
    snprintf(with, sizeof with, "%s.new", path);
    FILE *from = fopen(path, "r"), *to = fopen(with, "w");
    while (fgets(text, sizeof text, from))
        if (!(fleet_head_peek(slice_str(text), host, &number) == 0 && number == 2 &&
              strcmp(host, "a") == 0))
            fputs(text, to);
    fclose(from);
    fclose(to);
    CU_ASSERT_EQUAL(rename(with, path), 0);
    begin(0);
    expect("a", "", had + 4, 0);
    CU_ASSERT_EQUAL(anews(), 0);
    end_all();
}

/* Its log is gone, and what it said about it is not. */
static void test_log_gone(void)
{
    struct log_dir d;
    static struct fleet_head h;
    begin_all();
    expect("a", "", 2, 0);
    CU_ASSERT_EQUAL(anews(), 0);
    end(0);
    latest("a", &h);
    int fd = fixture_open(dir[0]);
    CU_ASSERT_EQUAL_FATAL(log_dir_list(fd, &d, NULL), 0);
    for (size_t i = 0; i < d.n; i++)
        CU_ASSERT_EQUAL(unlinkat(fd, d.name[i], 0), 0);
    log_dir_done(&d);
    unlinkat(fd, "head", 0);
    close(fd);
    begin(0);
    expect("a", "", h.number + 2, 0);
    CU_ASSERT_EQUAL(anews(), 1);
    end_all();
}

static bool is_closed(void *arg UNUSED)
{
    return db.closed[0];
}

static bool has_asked(void *arg)
{
    return db.asks > *(size_t *)arg;
}

/* What the role says unasked ends its channel; the other one's answers do not count. */
static void test_unasked(void)
{
    begin_all();
    expect("a", "", 1, 0);
    size_t asks = db.asks;
    say_row(db.logger[0], 0, 0); /* of an older question: nothing */
    CU_ASSERT_TRUE(rig_until(db.rig[0].base, has_asked, &asks));
    CU_ASSERT_FALSE(db.closed[0]);
    struct msg m;
    msg_init(&m, W_FLEET_HEADS_ASK);
    ipc_send(db.logger[0], &m);
    CU_ASSERT_TRUE(rig_until(db.rig[0].base, is_closed, NULL));
    end_all();
}

/* Whose key is another one than the fleet's says nothing, and is told which its own is. */
static void test_other_key(void)
{
    begin_all();
    end(0);
    fixture_fleet.key[0][0] ^= 1;
    size_t asks = db.asks, had = rows_of("a");
    begin(0);
    rig_turns(db.rig[0].base, 2500);
    CU_ASSERT(db.asks > asks && rows_of("a") == had);
    fixture_fleet.key[0][0] ^= 1;
    CU_ASSERT_PTR_NOT_NULL(strstr(db.rig[0].log, "has another key for a than that of this log"));
    fixture_fleet.host = "x";
    struct rig r;
    rig_start_on(&r, db.rig[0].base, dir[0], false, "run-x");
    CU_ASSERT_FALSE(r.ready);
    CU_ASSERT_STRING_EQUAL(r.failed, "malformed W_INIT");
    rig_kill(&r);
    end_all();
}

/* What the logger told of each host. */
static struct {
    size_t n;
    uint64_t number[HOSTS], seq[HOSTS];
    char what[HOSTS][32];
} told;

static int on_told(void *arg UNUSED, struct msg *m)
{
    char host[FLEET_LINE_NAME + 1], text[512];
    uint64_t heard;
    uint32_t n;
    if (m->type != W_FLEET_KNOWN)
        return -1;
    CU_ASSERT_EQUAL(msg_get_str(m, host, sizeof host), 0);
    size_t i = host[0] == 'b';
    told.what[i][0] = 0;
    CU_ASSERT(msg_get_u64(m, &told.number[i]) == 0 && msg_get_u64(m, &told.seq[i]) == 0 &&
              msg_get_u64(m, &heard) == 0 && msg_get_u32(m, &n) == 0);
    for (uint32_t k = 0; k < n; k++)
        CU_ASSERT(msg_get_str(m, told.what[i], sizeof told.what[i]) == 0 &&
                  msg_get_str(m, text, sizeof text) == 0);
    told.n++;
    return msg_end(m);
}

static bool all_told(void *arg UNUSED)
{
    return told.n >= HOSTS;
}

static bool is_over(void *arg)
{
    return !journal_ready(arg);
}

/* For people, by the controller; no other role is told. */
static void test_told(void)
{
    begin_all();
    expect("a", "", 2, 0);
    expect("b", "", 2, 0);
    struct journal *j = rig_journal(&db.rig[0], ROLE_CONTROLLER, "", false);
    journal_on_other(j, on_told, NULL);
    told.n = 0;
    CU_ASSERT_EQUAL(journal_ask_fleet(j), 0);
    CU_ASSERT_TRUE(rig_until(db.rig[0].base, all_told, NULL));
    CU_ASSERT(told.number[0] >= 2 && told.number[1] >= 1 && told.seq[0] > 0 && told.seq[1] > 0);
    CU_ASSERT(told.what[0][0] == 0 && told.what[1][0] == 0);
    size_t gone = row_of("a", 1);
    memcpy(db.host[gone], "x", 2);
    expect("a", "a", 1, DOUBT_MISSING);
    told.n = 0;
    CU_ASSERT_EQUAL(journal_ask_fleet(j), 0);
    CU_ASSERT_TRUE(rig_until(db.rig[0].base, all_told, NULL));
    CU_ASSERT_STRING_EQUAL(told.what[0], "missing");
    CU_ASSERT_STRING_EQUAL(told.what[1], "");
    journal_free(j);
    j = rig_journal(&db.rig[0], ROLE_GATE, "box", false);
    journal_on_other(j, on_told, NULL);
    told.n = 0;
    CU_ASSERT_EQUAL(journal_ask_fleet(j), 0);
    CU_ASSERT(rig_until(db.rig[0].base, is_over, j) && told.n == 0);
    journal_free(j);
    memcpy(db.host[gone], "a", 2);
    end_all();
}

/* Whoever asks again and again is told as often as the logger looks. */
static void test_told_often(void)
{
    begin_all();
    expect("a", "", 1, 0);
    struct journal *j = rig_journal(&db.rig[0], ROLE_CONTROLLER, "", false);
    journal_on_other(j, on_told, NULL);
    told.n = 0;
    uint64_t since = fixture_ms();
    for (int i = 0; i < 100; i++)
        CU_ASSERT_EQUAL(journal_ask_fleet(j), 0);
    CU_ASSERT_TRUE(rig_until(db.rig[0].base, all_told, NULL));
    rig_turns(db.rig[0].base, 2 * LOGGER_TICK_MS);
    CU_ASSERT(told.n <= HOSTS * (2 + (fixture_ms() - since) / LOGGER_TICK_MS));
    told.n = 0;
    CU_ASSERT_EQUAL(journal_ask_fleet(j), 0); /* and after that as before */
    CU_ASSERT_TRUE(rig_until(db.rig[0].base, all_told, NULL));
    journal_free(j);
    end_all();
}

void suite_logger_fleet(void)
{
    CU_pSuite s = CU_add_suite("logger_fleet", NULL, NULL);
    CU_add_test(s, "what the database loses or changes is doubted", test_doubts);
    CU_add_test(s, "a line is said again, and a log begins anew", test_said_again);
    CU_add_test(s, "an older line that was let go", test_let_go);
    CU_add_test(s, "a log that is gone", test_log_gone);
    CU_add_test(s, "a role that says what was not asked", test_unasked);
    CU_add_test(s, "a key that is not listed", test_other_key);
    CU_add_test(s, "what is told to people", test_told);
    CU_add_test(s, "what is told to who asks all the time", test_told_often);
}

void tap_suites(void)
{
    suite_logger_fleet();
}
