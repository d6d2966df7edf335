/* Thresholds over the log: what is counted, that windows slide, that everything is bounded; the
 * logger's line and its word to the parent. */
#include "audit_fixture.h"
#include "tap_main.h"
#include "thresholds.h"

static const struct render_source gate = {
    .channel = 7, .role = "gate", .sandbox = "sb-1", .policy = "coder"};

static void note(struct thresholds *t, enum record_kind kind, const char *code, const char *host,
                 const char *up, uint64_t counter, uint64_t now)
{
    struct record_view v = {.kind = kind, .counter = counter};
    v.field[RF_CODE] = slice_str(code);
    v.field[kind == RECORD_DNS || kind == RECORD_PACKET ? RF_TARGET : RF_AUTHORITY] =
        slice_str(host);
    v.field[RF_UP] = slice_str(up);
    thresholds_note(t, &v, &gate, 700, now);
}

static struct thresholds *one(enum notify_measure m, uint64_t limit, unsigned seconds,
                              enum notify_then then)
{
    struct config_threshold c = {m, limit, seconds, then};
    return thresholds_new(&c, 1);
}

static void slides(void)
{
    struct crossing x;
    struct thresholds *t = one(NOTIFY_DENIED, 3, 100, NOTIFY_KILL);
    note(t, RECORD_DENIED, "no_rule", "a", "", 1, 1000);
    note(t, RECORD_DENIED, "no_rule", "a", "", 2, 1050);
    note(t, RECORD_DENIED, "no_rule", "a", "", 3, 1111); /* the first is too long ago */
    CU_ASSERT_FALSE(thresholds_take(t, &x));
    note(t, RECORD_DENIED, "no_rule", "a", "", 4, 1112);
    CU_ASSERT_FATAL(thresholds_take(t, &x));
    CU_ASSERT(x.index == 0 && x.value == 3);
    CU_ASSERT_STRING_EQUAL(x.sandbox, "sb-1");
    CU_ASSERT_STRING_EQUAL(x.policy, "coder");
    CU_ASSERT_STRING_EQUAL(x.request, "7-4");
    CU_ASSERT_FALSE(thresholds_take(t, &x));
    /* it does something, so it does it again when as much came again */
    note(t, RECORD_DENIED, "no_rule", "a", "", 5, 1113);
    note(t, RECORD_DENIED, "no_rule", "a", "", 6, 1113);
    CU_ASSERT_FALSE(thresholds_take(t, &x));
    note(t, RECORD_DENIED, "no_rule", "a", "", 7, 1113);
    CU_ASSERT(thresholds_take(t, &x));
    note(t, RECORD_DENIED, "no_rule", "a", "", 8, 900000); /* long silent */
    CU_ASSERT_FALSE(thresholds_take(t, &x));
    thresholds_free(t);
}

/* One that only notifies is told once a window. */
static void quiet(void)
{
    struct crossing x;
    struct thresholds *t = one(NOTIFY_FOREIGN, 1, 60, NOTIFY_ONLY);
    note(t, RECORD_DENIED, "no_rule", "a", "", 1, 100);
    CU_ASSERT_FALSE(thresholds_take(t, &x));
    note(t, RECORD_DENIED, "foreign_credential", "a", "", 2, 100);
    CU_ASSERT(thresholds_take(t, &x));
    for (unsigned i = 0; i < 1000; i++)
        note(t, RECORD_DENIED, "foreign_credential", "a", "", 3 + i, 101 + i / 20);
    CU_ASSERT_FALSE(thresholds_take(t, &x));
    note(t, RECORD_DENIED, "foreign_credential", "a", "", 2000, 160);
    CU_ASSERT_FATAL(thresholds_take(t, &x));
    CU_ASSERT_EQUAL(x.value, 1001); /* and says what was silent */
    thresholds_free(t);
}

static void bytes(void)
{
    struct crossing x;
    struct thresholds *t = one(NOTIFY_BYTES_UP, 1000, 600, NOTIFY_PAUSE);
    note(t, RECORD_COMPLETED, "", "a", "400", 1, 10);
    note(t, RECORD_PROGRESS, "", "a", "300", 2, 11);
    note(t, RECORD_PROGRESS, "", "a", "500", 2, 71); /* in all, not in addition */
    CU_ASSERT_FALSE(thresholds_take(t, &x));
    note(t, RECORD_COMPLETED, "", "a", "600", 2, 90);
    CU_ASSERT_FATAL(thresholds_take(t, &x));
    CU_ASSERT_EQUAL(x.value, 1000);
    note(t, RECORD_ABORTED, "", "a", "999", 3, 91);
    note(t, RECORD_COMPLETED, "", "a", "999999999999999999999", 4, 91); /* no number */
    CU_ASSERT_FALSE(thresholds_take(t, &x));
    note(t, RECORD_ABORTED, "", "a", "9223372036854775807", 5, 91);
    note(t, RECORD_ABORTED, "", "a", "9223372036854775807", 6, 91);
    CU_ASSERT(thresholds_take(t, &x));
    CU_ASSERT(thresholds_take(t, &x)); /* no sum turns over */
    thresholds_free(t);
}

static void hosts(void)
{
    struct crossing x;
    char name[32];
    struct thresholds *t = one(NOTIFY_HOSTS, 3, 100, NOTIFY_ONLY);
    for (unsigned i = 0; i < 100; i++)
        note(t, RECORD_ADMITTED, "", i % 2 ? "a" : "b", "", i + 1, 10);
    CU_ASSERT_FALSE(thresholds_take(t, &x));
    note(t, RECORD_ADMITTED, "", "c", "", 200, 111); /* a and b are too long ago */
    note(t, RECORD_ADMITTED, "", "a", "", 201, 112);
    CU_ASSERT_FALSE(thresholds_take(t, &x));
    note(t, RECORD_DENIED, "no_rule", "d", "", 202, 113);
    CU_ASSERT_FATAL(thresholds_take(t, &x));
    CU_ASSERT_EQUAL(x.value, 3);
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "h%u", i);
        note(t, RECORD_ADMITTED, "", name, "", 300 + i, 114);
    }
    CU_ASSERT_FALSE(thresholds_take(t, &x)); /* quiet, and bounded */
    thresholds_free(t);
}

/* Of who asks for a preview: it is not the sandbox that does. */
static void outside(void)
{
    struct crossing x;
    struct config_threshold list[] = {{NOTIFY_DENIED, 1, 60, NOTIFY_KILL},
                                      {NOTIFY_HOSTS, 1, 60, NOTIFY_ONLY},
                                      {NOTIFY_CROSS, 1, 60, NOTIFY_KILL},
                                      {NOTIFY_LOG_BYTES, 2000, 60, NOTIFY_PAUSE}};
    struct thresholds *t = thresholds_new(list, 4);
    struct record_view v = {.kind = RECORD_DENIED, .counter = 1};
    v.field[RF_ENTRY] = SLICE("inbound");
    v.field[RF_CODE] = SLICE("cross_sandbox");
    v.field[RF_TARGET] = SLICE("*--sb-1.preview.localhost");
    v.field[RF_COUNT] = SLICE("5000");
    thresholds_note(t, &v, &gate, 700, 10);
    v.kind = RECORD_ADMITTED;
    v.field[RF_AUTHORITY] = SLICE("web--sb-1.preview.localhost");
    thresholds_note(t, &v, &gate, 700, 10);
    CU_ASSERT_FALSE(thresholds_take(t, &x));
    thresholds_note(t, &v, &gate, 700, 10); /* the log's bytes are bytes */
    CU_ASSERT_FATAL(thresholds_take(t, &x));
    CU_ASSERT_EQUAL(x.index, 3);
    CU_ASSERT_FALSE(thresholds_take(t, &x));
    thresholds_free(t);
}

static void measures(void)
{
    struct config_threshold list[] = {{NOTIFY_NAMES, 5, 60, 0},     {NOTIFY_PACKETS, 2, 60, 0},
                                      {NOTIFY_CROSS, 1, 60, 0},     {NOTIFY_MISPLACED, 1, 60, 0},
                                      {NOTIFY_REFLECTED, 1, 60, 0}, {NOTIFY_DENIED, 100, 60, 0}};
    struct record_view many = {.kind = RECORD_DNS, .counter = 9};
    struct crossing x;
    struct thresholds *t = thresholds_new(list, ARRAY_LEN(list));
    note(t, RECORD_DNS, "ok", "good.example", "", 1, 10);
    note(t, RECORD_DNS, "denied", WIRE_SELFTEST_NAME, "", 2, 10);
    many.field[RF_CODE] = SLICE("denied");
    many.field[RF_TARGET] = SLICE("x.evil");
    many.field[RF_COUNT] = SLICE("4");
    thresholds_note(t, &many, &gate, 700, 10);
    CU_ASSERT_FALSE(thresholds_take(t, &x));
    thresholds_note(t, &many, &gate, 700, 10);
    CU_ASSERT(thresholds_take(t, &x) && x.index == 0 && x.value == 8);
    note(t, RECORD_PACKET, "", "udp 8.8.8.8:53", "", 3, 10);
    note(t, RECORD_PACKET, "", "udp 8.8.8.8:53", "", 4, 10);
    CU_ASSERT(thresholds_take(t, &x) && x.index == 1);
    note(t, RECORD_DENIED, "cross_sandbox", "a", "", 5, 10);
    CU_ASSERT(thresholds_take(t, &x) && x.index == 2);
    note(t, RECORD_DENIED, "secret_blocked", "a", "", 6, 10);
    CU_ASSERT(thresholds_take(t, &x) && x.index == 3);
    note(t, RECORD_ABORTED, "secret_reflected", "a", "", 7, 10);
    CU_ASSERT(thresholds_take(t, &x) && x.index == 4);
    CU_ASSERT_FALSE(thresholds_take(t, &x));
    thresholds_free(t);
}

/* Names that a conquered writer makes up push out who was silent longest, and no more is kept of
 * crossings than there is room for; those that found none come with the next record. */
static void bounded(void)
{
    struct crossing x;
    unsigned taken = 0;
    char name[32];
    struct render_source injector = {
        .channel = 8, .role = "injector", .sandbox = "", .policy = "p"};
    struct record_view v = {.kind = RECORD_DENIED, .counter = 1};
    struct thresholds *t = one(NOTIFY_DENIED, 1, 60, NOTIFY_KILL);
    for (unsigned i = 0; i < 3 * THRESHOLDS_BOXES; i++) {
        snprintf(name, sizeof name, "sb-%u", i);
        v.field[RF_SANDBOX] = slice_str(name);
        thresholds_note(t, &v, &injector, 700, 10);
    }
    while (thresholds_take(t, &x))
        taken++;
    CU_ASSERT_EQUAL(taken, THRESHOLDS_PENDING);
    thresholds_note(t, &v, &injector, 700, 10);
    CU_ASSERT(thresholds_take(t, &x));
    CU_ASSERT_STRING_EQUAL(x.sandbox, name);
    CU_ASSERT_EQUAL(x.value, 2);
    thresholds_free(t);
}

/* However many sandboxes a policy has, another's are counted on; and so are the bytes of what
 * lasts. */
static void shares(void)
{
    struct crossing x;
    char name[32];
    struct render_source other = {.channel = 8, .role = "injector", .sandbox = "", .policy = "p"};
    struct record_view v = {.kind = RECORD_DENIED};
    struct thresholds *t = one(NOTIFY_DENIED, 2, 60, NOTIFY_KILL);
    note(t, RECORD_DENIED, "no_rule", "a", "", 1, 10);
    for (unsigned i = 0; i < 3 * THRESHOLDS_BOXES; i++) {
        snprintf(name, sizeof name, "sb-%u", i);
        v.field[RF_SANDBOX] = slice_str(name);
        v.counter = i;
        thresholds_note(t, &v, &other, 700, 10);
    }
    CU_ASSERT_FALSE(thresholds_take(t, &x));
    note(t, RECORD_DENIED, "no_rule", "a", "", 2, 11);
    CU_ASSERT_FATAL(thresholds_take(t, &x));
    CU_ASSERT_STRING_EQUAL(x.sandbox, "sb-1");
    CU_ASSERT_EQUAL(x.value, 2);
    thresholds_free(t);
}

static void shares_of_bytes(void)
{
    struct crossing x;
    char name[32];
    struct render_source other = {.channel = 8, .role = "injector", .sandbox = "", .policy = "p"};
    struct record_view v = {.kind = RECORD_PROGRESS};
    struct thresholds *t = one(NOTIFY_BYTES_UP, 1000, 600, NOTIFY_KILL);
    v.field[RF_UP] = SLICE("1");
    for (unsigned i = 0; i < 40000; i++) {
        snprintf(name, sizeof name, "other-%u", i / 900);
        v.field[RF_SANDBOX] = slice_str(name);
        v.counter = i;
        thresholds_note(t, &v, &other, 700, 10);
    }
    CU_ASSERT_FALSE(thresholds_take(t, &x));
    for (unsigned i = 0; i < 9; i++)
        note(t, RECORD_PROGRESS, "", "a", "100", i, 11);
    for (unsigned i = 0; i < 9; i++) /* nothing new */
        note(t, RECORD_PROGRESS, "", "a", "100", i, 11);
    CU_ASSERT_FALSE(thresholds_take(t, &x));
    note(t, RECORD_PROGRESS, "", "a", "200", 3, 12);
    CU_ASSERT_FATAL(thresholds_take(t, &x));
    CU_ASSERT_STRING_EQUAL(x.sandbox, "sb-1");
    CU_ASSERT_EQUAL(x.value, 1000);
    thresholds_free(t);
    t = one(NOTIFY_BYTES_UP, 3000, 600,
            NOTIFY_KILL); /* nor does it hide behind requests of its own */
    for (unsigned i = 0; i < 2500; i++)
        note(t, RECORD_PROGRESS, "", "a", "1", i, 11);
    CU_ASSERT_FALSE(thresholds_take(t, &x));
    note(t, RECORD_PROGRESS, "", "a", "500", 2600, 11);
    CU_ASSERT(thresholds_take(t, &x));
    thresholds_free(t);
}

static bool told(void *arg)
{
    return ((struct rig *)arg)->notices == 1;
}

static void logger_says_so(void)
{
    struct rig r;
    struct fixture_lines lines;
    struct record rec;
    char *dir = fixture_dir();
    fixture_thresholds.list[0] = (struct config_threshold){NOTIFY_DENIED, 2, 60, NOTIFY_PAUSE};
    fixture_thresholds.n = 1;
    rig_start(&r, dir, false, "");
    CU_ASSERT_TRUE_FATAL(r.ready);
    struct journal *j = rig_journal(&r, ROLE_GATE, "sb-1", false);
    for (int i = 0; i < 3; i++) {
        record_init(&rec, RECORD_DENIED, 0);
        record_put_str(&rec, RF_CODE, "no_rule");
        CU_ASSERT_EQUAL(journal_note(j, &rec), 0);
    }
    CU_ASSERT(rig_until(r.base, told, &r));
    journal_free(j);
    CU_ASSERT(rig_stop(&r));
    fixture_read(dir, &lines);
    CU_ASSERT_EQUAL(fixture_count2(&lines, "event", "threshold", "sandbox", "sb-1"), 1);
    CU_ASSERT_EQUAL(
        fixture_count2(&lines, "code", "denied", "detail", "limit 2 within 60 s; then pause"), 1);
    fixture_lines_done(&lines);
    fixture_remove(dir);
}

/* ---- suppressions ---- */

static struct suppression about(const char *host, const char *path)
{
    struct suppression s = {.policy = "coder", .code = "no_rule", .expires = INT64_MAX};
    snprintf(s.host, sizeof s.host, "%s", host);
    snprintf(s.path, sizeof s.path, "%s", path);
    return s;
}

static bool hides(const struct suppression *s, enum record_kind kind, const char *code,
                  const char *host, const char *path)
{
    struct suppressions all = {.n = 1, .list = {*s}};
    struct record_view v = {.kind = kind, .counter = 1};
    v.field[RF_CODE] = slice_str(code);
    v.field[kind == RECORD_DNS || kind == RECORD_PACKET ? RF_TARGET : RF_AUTHORITY] =
        slice_str(host);
    v.field[RF_METHOD] = SLICE("GET");
    v.field[RF_PATH] = slice_str(path);
    return suppressions_fit(&all, &v, &gate, 1000);
}

static void fits(void)
{
    static const struct {
        const char *host, *path, *is_host, *is_path;
        bool fits;
    } cases[] = {
        {"a.example", "", "a.example", "/x", true},
        {"a.example", "", "A.example:443", "/x", true},
        {"a.example:80", "", "a.example.", "/x", true},
        {"a.example", "", "a.example:8443", "/x", false},
        {"a.example", "", "b.a.example", "/x", false},
        {"*.a.example", "", "b.a.example", "/x", true},
        {"*.a.example", "", "c.b.a.example:443", "/x", true},
        {"*.a.example", "", "a.example", "/x", false},
        {"*.a.example", "", ".a.example", "/x", false},
        {"*.a.example", "", "ba.example", "/x", false},
        {"a.example", "/x", "a.example", "/x", true},
        {"a.example", "/x", "a.example", "/x/y", false},
        {"a.example", "/x/**", "a.example", "/x/y", true},
        {"a.example", "/x/**", "a.example", "/xy", false},
        {"a.example", "/x/**", "a.example", "", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct suppression s = about(cases[i].host, cases[i].path);
        CU_ASSERT_EQUAL(hides(&s, RECORD_DENIED, "no_rule", cases[i].is_host, cases[i].is_path),
                        cases[i].fits);
    }
    struct suppression s = about("a.example", "");
    CU_ASSERT_FALSE(hides(&s, RECORD_DENIED, "denied_by_rule", "a.example", "/"));
    CU_ASSERT_FALSE(hides(&s, RECORD_ADMITTED, "no_rule", "a.example", "/"));
    CU_ASSERT_FALSE(hides(&s, RECORD_ABORTED, "no_rule", "a.example", "/"));
    CU_ASSERT(hides(&s, RECORD_DNS, "no_rule", "a.example", ""));
    snprintf(s.method, sizeof s.method, "GET");
    CU_ASSERT(hides(&s, RECORD_DENIED, "no_rule", "a.example", "/"));
    snprintf(s.method, sizeof s.method, "PUT");
    CU_ASSERT_FALSE(hides(&s, RECORD_DENIED, "no_rule", "a.example", "/"));
    s = about("a.example", "");
    snprintf(s.sandbox, sizeof s.sandbox, "sb-1");
    CU_ASSERT(hides(&s, RECORD_DENIED, "no_rule", "a.example", "/"));
    snprintf(s.sandbox, sizeof s.sandbox, "sb-2");
    CU_ASSERT_FALSE(hides(&s, RECORD_DENIED, "no_rule", "a.example", "/"));
    s = about("a.example", "");
    snprintf(s.policy, sizeof s.policy, "other");
    CU_ASSERT_FALSE(hides(&s, RECORD_DENIED, "no_rule", "a.example", "/"));
    s = about("a.example", "");
    s.expires = 1000;
    CU_ASSERT_FALSE(hides(&s, RECORD_DENIED, "no_rule", "a.example", "/"));
    s = about("udp 192.0.2.1:53", "");
    snprintf(s.code, sizeof s.code, "packet");
    CU_ASSERT(hides(&s, RECORD_PACKET, "", "udp 192.0.2.1:53", ""));
    CU_ASSERT_FALSE(hides(&s, RECORD_PACKET, "raw_denied", "udp 192.0.2.1:53", ""));
}

static void checked(void)
{
    struct suppressions all, back;
    struct suppression s = about("a.example", "/x/**");
    struct err err = {0};
    struct msg m;
    CU_ASSERT_EQUAL(suppression_check(&s, &err), 0);
    for (size_t i = 0; i < SUPPRESSIONS_MAX; i++) { /* the longest ones go in one message */
        all.list[i] = s;
        memset(all.list[i].host, 'h', SUPPRESSION_HOST_MAX);
        all.list[i].host[SUPPRESSION_HOST_MAX] = 0;
        memset(all.list[i].path + 1, 'p', SUPPRESSION_PATH_MAX - 1);
        all.list[i].path[SUPPRESSION_PATH_MAX] = 0;
    }
    all.n = SUPPRESSIONS_MAX;
    msg_init(&m, 1);
    suppressions_put(&all, &m);
    CU_ASSERT_FALSE(m.bad);
    CU_ASSERT_EQUAL(suppressions_get(&back, &m), 0);
    CU_ASSERT(back.n == all.n && strcmp(back.list[63].host, all.list[63].host) == 0);
    msg_done(&m);
    static const char *const hosts[] = {"",       " ",          "*",    "*.", "*.com",
                                        "*.com.", "*.com.:443", ":443", ".",  "*..a.b",
                                        "a*.b",   "*.*.a.b",    "a\n"};
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        s = about(hosts[i], "");
        all = (struct suppressions){.n = 1, .list = {s}};
        msg_init(&m, 1);
        suppressions_put(&all, &m);
        CU_ASSERT_EQUAL(suppressions_get(&back, &m), -1);
        msg_done(&m);
    }
    static const char *const paths[] = {"x", "/*", "/a**", "/**/a", "/a b"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        s = about("a.example", paths[i]);
        CU_ASSERT_EQUAL(suppression_check(&s, &err), -1);
    }
}

/* What is suppressed counts where a sandbox is to end, and nowhere else; bytes always count. */
static void left_out(void)
{
    static const struct config_threshold list[] = {{NOTIFY_DENIED, 2, 60, NOTIFY_ONLY},
                                                   {NOTIFY_DENIED, 2, 60, NOTIFY_KILL},
                                                   {NOTIFY_HOSTS, 1, 60, NOTIFY_ONLY},
                                                   {NOTIFY_LOG_BYTES, 700, 60, NOTIFY_ONLY}};
    const struct suppressions all = {.n = 1, .list = {about("a.example", "")}};
    struct thresholds *t = thresholds_new(list, ARRAY_LEN(list));
    struct crossing x;
    bool crossed[ARRAY_LEN(list)] = {0};
    thresholds_suppress(t, &all);
    note(t, RECORD_DENIED, "no_rule", "a.example", "", 1, 1000);
    note(t, RECORD_DENIED, "no_rule", "a.example", "", 2, 1000);
    while (thresholds_take(t, &x))
        crossed[x.index] = true;
    CU_ASSERT(!crossed[0] && crossed[1] && !crossed[2] && crossed[3]);
    note(t, RECORD_DENIED, "no_rule", "b.example", "", 3, 1000);
    CU_ASSERT_FATAL(thresholds_take(t, &x));
    CU_ASSERT_EQUAL(x.index, 2);
    thresholds_free(t);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("thresholds", NULL, NULL);
    CU_add_test(s, "windows slide, and begin anew at a crossing", slides);
    CU_add_test(s, "what only notifies is told once a window", quiet);
    CU_add_test(s, "bytes, of what lasts, too; no sum turns over", bytes);
    CU_add_test(s, "distinct hosts", hosts);
    CU_add_test(s, "names, packets, signs", measures);
    CU_add_test(s, "who asks for previews", outside);
    CU_add_test(s, "sandboxes and crossings are bounded", bounded);
    CU_add_test(s, "no policy's push another's out", shares);
    CU_add_test(s, "bytes of many requests that last", shares_of_bytes);
    CU_add_test(s, "which findings a suppression is about", fits);
    CU_add_test(s, "a suppression is narrow, and read strictly", checked);
    CU_add_test(s, "what is suppressed is left out of notices alone", left_out);
    CU_add_test(s, "the logger records it and tells the parent", logger_says_so);
}
