/* Hosts of a fleet as one of them shows them: what they say of themselves counts if they signed it,
 * once, and as old as it is. */
#include "fleet_bed.h"

#include "fleet_hosts.h"
#include "fleet_seal.h"

struct seats {
    struct world w;
    EVP_PKEY *keys[3]; /* ours, of b whom we name, of c whom we do not */
    struct fleet_seal *b, *c;
};

static void name_b(struct seats *s)
{
    static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";
    char config[2048], key[64];
    key_text(s->keys[1], key);
    snprintf(config, sizeof config,
             V "secrets:\n  p: { env: P }\n  l: { postgres_login: { user: fleet, password: p } }\n"
               "fleet: { postgres: 'postgres://db.example/fleet', login: l, every: 1s, silent: 3s, "
               "host: a, logs: { a: '1%s', b: '2%s', d: '3%s' }, hosts: { b: '%s' } }\n"
               "policies: { coder: { rules: [ { allow: a.example } ] } }\n",
             zeros + 1, zeros + 1, zeros + 1, key);
    config_unref(s->w.c.config);
    s->w.c.config = good(config);
}

static void open_seats(struct seats *s)
{
    struct err err = {0};
    memset(s, 0, sizeof *s);
    open_world(&s->w);
    for (size_t i = 0; i < 3; i++)
        s->keys[i] = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    name_b(s);
    s->b = seal_of(s->keys[1]);
    s->c = seal_of(s->keys[2]);
    s->w.c.keys.fleet = s->keys[0];
    s->w.c.approvals = approvals_new(&s->w.c);
    s->w.c.fleet_hosts = fleet_hosts_new(&s->w.c, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s->w.c.fleet_hosts);
}

static void close_seats(struct seats *s)
{
    approvals_free(s->w.c.approvals);
    fleet_hosts_free(s->w.c.fleet_hosts);
    s->w.c.keys.fleet = NULL;
    close_world(&s->w);
    fleet_seal_free(s->b);
    fleet_seal_free(s->c);
    for (size_t i = 0; i < 3; i++)
        EVP_PKEY_free(s->keys[i]);
}

/* Everything was read, with this note among it. */
static void tell(struct seats *s, const char *id, const char *body)
{
    uint64_t after;
    say_up(&s->w);
    uint32_t number = hear_ask(&s->w, &after);
    CU_ASSERT(number != 0);
    if (body)
        say_note(&s->w, 1, "host", id, body);
    say_read(&s->w, number, 0);
}

static json_t *words(int number, int age, int boxes)
{
    return json_pack("{s:i, s:I, s:i, s:s, s:i, s:i, s:i, s:[{s:s, s:s, s:i, s:i}], s:i}", "number",
                     number, "time", (json_int_t)time(NULL) - age, "every", 1, "version", "1\033",
                     "uptime", 5, "sandboxes", boxes, "held", 0, "shares", "policy", "coder",
                     "limit", "requests 9/h", "amount", 9, "held", 4, "shares_more", 0);
}

/* by: whose signature; named: under whose key. Takes v. */
static void say_words(struct seats *s, const struct fleet_seal *by, const struct fleet_seal *named,
                      json_t *v)
{
    struct buf text;
    buf_init(&text, NOTE_BODY_MAX);
    CU_ASSERT_EQUAL(fleet_seal_put(by, "host", fleet_seal_key(named), v, &text), 0);
    CU_ASSERT_EQUAL(buf_append(&text, "", 1), 0);
    tell(s, fleet_seal_key(named), (const char *)buf_data(&text));
    buf_free(&text);
    json_decref(v);
}

static json_t *shown(const struct seats *s, size_t i)
{
    json_t *v = fleet_hosts_json(s->w.c.fleet_hosts);
    json_t *one = json_incref(json_array_get(json_object_get(v, "hosts"), i));
    json_decref(v);
    return one;
}

static void is_shown(const struct seats *s, size_t i, const char *state, int boxes)
{
    json_t *v = shown(s, i), *n = json_object_get(v, "sandboxes");
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(v, "state")), state);
    CU_ASSERT_EQUAL(json_is_integer(n) ? json_integer_value(n) : -1, boxes);
    json_decref(v);
}

static int age_of(const struct seats *s, size_t i)
{
    json_t *v = shown(s, i);
    int age = (int)json_integer_value(json_object_get(v, "age_seconds"));
    json_decref(v);
    return age;
}

static void test_words(void)
{
    struct seats s;
    open_seats(&s);
    is_shown(&s, 0, "silent", 0); /* we, who have read nothing */
    is_shown(&s, 1, "unknown", -1);
    say_words(&s, s.c, s.c, words(9, 0, 7)); /* whom we do not name */
    say_words(&s, s.c, s.b, words(9, 0, 7)); /* in another one's name */
    say_words(&s, s.b, s.c, words(9, 0, 7)); /* under another one's key */
    is_shown(&s, 1, "unknown", -1);
    say_words(&s, s.b, s.b, words(5, 0, 3));
    is_shown(&s, 0, "connected", 0);
    is_shown(&s, 1, "connected", 3);
    say_words(&s, s.b, s.b, words(4, 0, 7)); /* an older one, and the same again */
    say_words(&s, s.b, s.b, words(5, 0, 7));
    is_shown(&s, 1, "connected", 3);
    static const char *const spoilt[] = {"number", "time",   "every", "version",     "uptime",
                                         "held",   "shares", "limit", "shares_more", "sandboxes"};
    for (size_t i = 0; i < ARRAY_LEN(spoilt); i++) {
        json_t *v = words(6, 0, 7);
        json_t *at =
            strcmp(spoilt[i], "limit") == 0 ? json_array_get(json_object_get(v, "shares"), 0) : v;
        json_object_set_new(at, spoilt[i], i % 2 ? json_integer(-1) : json_null());
        say_words(&s, s.b, s.b, v);
        is_shown(&s, 1, "connected", 3);
    }
    say_words(&s, s.b, s.b, words(6, 0, 8));
    is_shown(&s, 1, "connected", 8);
    json_t *v = shown(&s, 1);
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(v, "version")), "1?");
    json_decref(v);
    is_shown(&s, 2, "unknown", -1); /* d, of whom fleet.logs alone speaks */
    close_seats(&s);
}

/* What was said long before we began to read is as old as its host's clock says. */
static void test_age(void)
{
    struct seats s;
    open_seats(&s);
    say_words(&s, s.b, s.b, words(1, 600, 3));
    is_shown(&s, 1, "silent", 3);
    CU_ASSERT(age_of(&s, 1) >= 600 && age_of(&s, 1) <= 602);
    say_words(&s, s.b, s.b, words(2, 200, 3)); /* its clock is behind: it was not there just now */
    is_shown(&s, 1, "connected", 3);
    CU_ASSERT(age_of(&s, 1) <= 1);
    say_words(&s, s.b, s.b, words(3, 3600, 3)); /* the database has held it back */
    is_shown(&s, 1, "silent", 3);
    CU_ASSERT(age_of(&s, 1) >= 3300);
    json_t *far = words(4, 0, 3);
    json_object_set_new(far, "time", json_integer(INT64_C(1) << 53));
    say_words(&s, s.b, s.b, far);
    CU_ASSERT_EQUAL(age_of(&s, 1), 0);
    say_words(&s, s.b, s.b, words(5, -600, 3));
    CU_ASSERT_EQUAL(age_of(&s, 1), 0);
    for (int i = 0; i < 6; i++) {
        later(1);
        tell(&s, "", NULL);
    }
    is_shown(&s, 1, "silent", 3);
    close_seats(&s);
}

/* Each second something is asked and said. */
static bool hear_soon(struct seats *s, uint16_t type, struct msg *m)
{
    for (int i = 0; i < 5; i++) {
        if (heard(&s->w, s->w.role, type, m))
            return true;
        later(1);
    }
    return false;
}

/* What this host says goes on from what it said in a life before, and one at a time. */
static void test_own(void)
{
    struct seats s;
    struct buf text;
    struct msg m;
    uint32_t number;
    char kind[NOTE_KIND_MAX + 1], id[NOTE_ID_MAX + 1], body[8192];
    const char *host = "x";
    open_seats(&s);
    struct fleet_seal *own = seal_of(s.keys[0]);
    json_t *v = words(1, 0, 0);
    const json_int_t before = INT64_C(1) << 50;
    json_object_set_new(v, "number", json_integer(before));
    buf_init(&text, NOTE_BODY_MAX);
    CU_ASSERT_EQUAL(fleet_seal_put(own, "host", fleet_seal_key(own), v, &text), 0);
    CU_ASSERT_EQUAL(buf_append(&text, "", 1), 0);
    json_decref(v);
    tell(&s, fleet_seal_key(own), (const char *)buf_data(&text));
    buf_free(&text);
    CU_ASSERT_FATAL(hear_soon(&s, W_NOTE_PUT, &m));
    CU_ASSERT(msg_get_u32(&m, &number) == 0 && msg_get_str(&m, kind, sizeof kind) == 0 &&
              msg_get_str(&m, id, sizeof id) == 0 && msg_get_str(&m, body, sizeof body) == 0);
    msg_done(&m);
    CU_ASSERT(strcmp(kind, "host") == 0 && strcmp(id, fleet_seal_key(own)) == 0);
    v = fleet_seal_get(own, "host", id, slice_str(body), &host);
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(v, "number")), before + 1);
    json_decref(v);
    later(2);
    CU_ASSERT_FALSE(heard(&s.w, s.w.role, W_NOTE_PUT, &m)); /* the database has not answered */
    say_kept(&s.w, number, NOTE_MINE);
    CU_ASSERT_FATAL(hear_soon(&s, W_NOTE_PUT, &m));
    msg_done(&m);
    fleet_seal_free(own);
    close_seats(&s);
}

static void say_shares(struct seats *s, uint32_t n, uint8_t kind)
{
    struct msg m;
    msg_init(&m, W_SHARES);
    msg_put_u32(&m, n);
    for (uint32_t i = 0; i < n; i++) {
        msg_put_str(&m, "coder");
        msg_put_u8(&m, kind);
        msg_put_u32(&m, 3600);
        msg_put_u64(&m, 40);
        msg_put_u64(&m, 12);
    }
    say(&s->w, &m);
}

/* What its role says that it holds, which is asked for. */
static void test_shares(void)
{
    struct seats s;
    struct msg m;
    open_seats(&s);
    CU_ASSERT_FATAL(hear_soon(&s, W_SHARES_ASK, &m));
    msg_done(&m);
    say_shares(&s, FLEET_HOSTS_SHARES + 2, 0);
    json_t *v = shown(&s, 0), *list = json_object_get(v, "shares");
    CU_ASSERT_EQUAL(json_array_size(list), FLEET_HOSTS_SHARES);
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(v, "shares_more")), 2);
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(json_array_get(list, 0), "limit")),
                           "requests 40/h");
    json_decref(v);
    CU_ASSERT_FALSE(ended(&s.w));
    say_shares(&s, 1, 0); /* nobody asked */
    CU_ASSERT_TRUE(ended(&s.w));
    attach(&s.w);
    CU_ASSERT_FATAL(hear_soon(&s, W_SHARES_ASK, &m));
    msg_done(&m);
    say_shares(&s, 1, 99);
    CU_ASSERT_TRUE(ended(&s.w));
    close_seats(&s);
}

static int log_age = 30; /* seconds */

static int say_log(struct seats *s, const char *host, uint64_t number, uint32_t problems)
{
    struct msg m;
    msg_init(&m, W_FLEET_KNOWN);
    msg_put_str(&m, host);
    msg_put_u64(&m, number);
    msg_put_u64(&m, 77);
    msg_put_u64(&m, (uint64_t)(time(NULL) - log_age) * 1000000000);
    msg_put_u32(&m, problems);
    for (uint32_t i = 0; i < problems; i++) {
        msg_put_str(&m, "forked");
        msg_put_str(&m, "it signed two heads 3 that differ");
    }
    int r = fleet_hosts_log(s->w.c.fleet_hosts, &m);
    msg_done(&m);
    return r;
}

static const char *log_state(const struct seats *s, size_t i)
{
    static char state[16];
    json_t *v = shown(s, i), *log = json_object_get(v, "log");
    snprintf(state, sizeof state, "%s",
             json_is_null(log) ? "none" : json_string_value(json_object_get(log, "state")));
    json_decref(v);
    return state;
}

static void test_logs(void)
{
    struct seats s;
    open_seats(&s);
    CU_ASSERT_STRING_EQUAL(log_state(&s, 1), "none");
    CU_ASSERT_EQUAL(say_log(&s, "b", 5, 0), 0);
    CU_ASSERT_STRING_EQUAL(log_state(&s, 1), "agrees");
    json_t *v = shown(&s, 1), *log = json_object_get(v, "log");
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(log, "records")), 77);
    json_int_t age = json_integer_value(json_object_get(log, "age_seconds"));
    CU_ASSERT(age >= 30 && age <= 32);
    json_decref(v);
    log_age = -60; /* its clock is ahead */
    CU_ASSERT_EQUAL(say_log(&s, "b", 5, 0), 0);
    v = shown(&s, 1);
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(json_object_get(v, "log"), "age_seconds")),
                    0);
    json_decref(v);
    log_age = 30;
    CU_ASSERT_EQUAL(say_log(&s, "b", 6, 2), 0);
    CU_ASSERT_STRING_EQUAL(log_state(&s, 1), "doubted");
    CU_ASSERT_EQUAL(say_log(&s, "d", 0, 0), 0);
    CU_ASSERT_STRING_EQUAL(log_state(&s, 2), "unknown");
    CU_ASSERT_EQUAL(say_log(&s, "nobody", 1, 0), 0);
    CU_ASSERT_EQUAL(say_log(&s, "b", 6, FLEET_HOSTS_PROBLEMS + 1), -1);
    close_seats(&s);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("fleet_hosts", NULL, NULL);
    CU_add_test(s, "what hosts say", test_words);
    CU_add_test(s, "how old it is", test_age);
    CU_add_test(s, "what this host says", test_own);
    CU_add_test(s, "shares", test_shares);
    CU_add_test(s, "logs", test_logs);
}
