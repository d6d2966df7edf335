/* The controller's end of a fleet's notes, with a role that says what it likes: what waits is said
 * until it is kept, nothing is known before all was read, and a note can refuse and no more. */
#include "fleet_bed.h"
#include "fleet_said.h"
#include "registry_internal.h"

static int put(struct world *w, const char *id, bool durable)
{
    struct err err = {0};
    return fleet_notes_put(w->c.fleet, "revoked", id, SLICE("1.-"), 60, durable, &err);
}

/* ---- tests ---- */

static void test_put(void)
{
    struct world w;
    char id[NOTE_ID_MAX + 1];
    open_world(&w);
    CU_ASSERT_EQUAL(put(&w, "rt-a", false), 0);
    CU_ASSERT_EQUAL(hear_put(&w, id), 0); /* there is no database */
    say_up(&w);
    uint32_t first = hear_put(&w, id);
    CU_ASSERT(first != 0 && strcmp(id, "rt-a") == 0);
    CU_ASSERT_EQUAL(put(&w, "rt-a", false), 0); /* it waits already */
    CU_ASSERT_EQUAL(hear_put(&w, id), 0);
    say_up(&w); /* another connection: nobody knows what became of it */
    uint32_t second = hear_put(&w, id);
    CU_ASSERT(second != 0 && second != first);
    say_kept(&w, first, 1); /* of the one before */
    say_kept(&w, second, 1);
    say_up(&w);
    CU_ASSERT_EQUAL(hear_put(&w, id), 0);
    for (int i = 0; i < 100; i++) {
        snprintf(id, sizeof id, "rt-%d", i);
        CU_ASSERT_EQUAL(put(&w, id, false), 0);
    }
    int n = 0;
    while ((first = hear_put(&w, id)) != 0) {
        second = first;
        n++;
    }
    CU_ASSERT_EQUAL(n, NOTES_OPEN_MAX / 2); /* the role takes no more at a time */
    say_kept(&w, second, 0);
    CU_ASSERT(hear_put(&w, id) != 0);
    CU_ASSERT_EQUAL(put(&w, "no letter:", false), -1);
    close_world(&w);
}

/* What must not be lost is there after a death, until it is kept. */
static void test_durable(void)
{
    struct world w;
    char id[NOTE_ID_MAX + 1];
    open_world(&w);
    CU_ASSERT_EQUAL(put(&w, "rt-a", true), 0);
    CU_ASSERT_EQUAL(put(&w, "rt-b", false), 0);
    end_notes(&w);
    begin_notes(&w);
    say_up(&w);
    uint32_t number = hear_put(&w, id);
    CU_ASSERT(number != 0 && strcmp(id, "rt-a") == 0);
    CU_ASSERT_EQUAL(hear_put(&w, id), 0);
    say_kept(&w, number, 1);
    end_notes(&w);
    begin_notes(&w);
    say_up(&w);
    CU_ASSERT_EQUAL(hear_put(&w, id), 0);
    close_world(&w);
}

/* Nothing is known before the last answer, and then from the first question on. */
static void test_known(void)
{
    struct world w;
    uint64_t after, from = now_us();
    open_world(&w);
    CU_ASSERT_TRUE(fleet_notes_stale(w.c.fleet));
    say_up(&w);
    uint32_t number = hear_ask(&w, &after);
    uint64_t to = now_us();
    CU_ASSERT(number != 0 && after == 0);
    say_note(&w, 41, "unknown", "x", "y");
    usleep(20000);
    say_read(&w, number, 1);
    CU_ASSERT_TRUE(fleet_notes_stale(w.c.fleet));
    CU_ASSERT_EQUAL(hear_until(&w), 0);
    number = hear_ask(&w, &after);
    CU_ASSERT(number != 0 && after == 41);
    say_read(&w, number + 1, 0); /* nobody asked that */
    CU_ASSERT_TRUE(fleet_notes_stale(w.c.fleet));
    say_read(&w, number, 0);
    CU_ASSERT_FALSE(fleet_notes_stale(w.c.fleet));
    uint64_t until = hear_until(&w);
    CU_ASSERT(until >= from + KNOWN * 1000000 && until <= to + KNOWN * 1000000);
    say_read(&w, number, 0); /* once */
    CU_ASSERT_EQUAL(hear_until(&w), 0);
    say_up(&w);
    CU_ASSERT(hear_ask(&w, &after) != 0 && after == 0); /* all again */
    close_world(&w);
}

/* A database that is slow: what is answered late counts, and nothing is said or asked twice. */
static void test_slow(void)
{
    struct world w;
    uint64_t after;
    char id[NOTE_ID_MAX + 1];
    open_world(&w);
    CU_ASSERT_EQUAL(put(&w, "rt-a", false), 0);
    say_up(&w);
    uint32_t kept = hear_put(&w, id), asked = hear_ask(&w, &after);
    for (int i = 0; i < 7; i++) {
        later(1);
        turn(&w);
    }
    for (int i = 0; i < NOTES_AT_ONCE; i++)
        say_note(&w, 1, "unknown", "x", "y");
    CU_ASSERT_EQUAL(hear_put(&w, id), 0);
    CU_ASSERT_EQUAL(hear_ask(&w, &after), 0);
    say_read(&w, asked, 0);
    CU_ASSERT(hear_until(&w) != 0);
    say_kept(&w, kept, NOTE_FAILED);
    later(1);
    CU_ASSERT(hear_put(&w, id) != 0 && strcmp(id, "rt-a") == 0);
    CU_ASSERT_FALSE(ended(&w));
    close_world(&w);
}

/* What cannot be applied is not known: a registry that cannot be written is no reason to go on. */
static void test_unapplied(void)
{
    struct world w;
    uint64_t after;
    struct identity i = {
        .kind = IDENTITY_TOKEN, .id = "rt-own", .policy = "coder", .expires = time(NULL) + 600};
    struct err err = {0};
    char got[NOTE_ID_MAX + 1];
    open_world(&w);
    CU_ASSERT_EQUAL(registry_add(w.c.registry, &i, &err), 0);
    sqlite3_exec(w.c.registry->db, "PRAGMA query_only=1", NULL, NULL, NULL);
    say_up(&w);
    uint32_t number = hear_ask(&w, &after);
    say_note(&w, 9, "revoked", "rt-own", "99999999999.-");
    CU_ASSERT_STRING_EQUAL(hear_revoked(&w, got), "rt-own");
    say_read(&w, number, 0);
    CU_ASSERT_TRUE(fleet_notes_stale(w.c.fleet));
    sqlite3_exec(w.c.registry->db, "PRAGMA query_only=0", NULL, NULL, NULL);
    later(1);
    number = hear_ask(&w, &after);
    CU_ASSERT(number != 0 && after == 0);
    say_note(&w, 9, "revoked", "rt-own", "99999999999.-");
    say_read(&w, number, 0);
    CU_ASSERT_FALSE(fleet_notes_stale(w.c.fleet));
    close_world(&w);
}

static void test_role_lies(void)
{
    struct world w;
    uint64_t after;
    open_world(&w);
    say_note(&w, 1, "revoked", "rt-a", "1.-"); /* nobody asked */
    CU_ASSERT_TRUE(ended(&w));
    attach(&w);
    say_up(&w);
    CU_ASSERT(hear_ask(&w, &after) != 0);
    for (int i = 0; i < NOTES_AT_ONCE; i++)
        say_note(&w, 1, "unknown", "x", "y");
    CU_ASSERT_FALSE(ended(&w));
    say_note(&w, 1, "unknown", "x", "y");
    CU_ASSERT_TRUE(ended(&w));
    static const char *const bad[][3] = {{"re voked", "rt-a", "1.-"}, {"revoked", "rt'a", "1.-"},
                                         {"revoked", "rt-a", "1 2"},  {"", "rt-a", "1.-"},
                                         {"revoked", "", "1.-"},      {"revoked", "rt-a", ""}};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        attach(&w);
        say_up(&w);
        CU_ASSERT(hear_ask(&w, &after) != 0);
        say_note(&w, 1, bad[i][0], bad[i][1], bad[i][2]);
        CU_ASSERT_TRUE(ended(&w));
    }
    close_world(&w);
}

static const char *of(struct world *w, const char *id, const char *said, char got[NOTE_ID_MAX + 1])
{
    uint64_t after;
    say_up(w);
    CU_ASSERT(hear_ask(w, &after) != 0);
    say_note(w, 1, "revoked", id, said);
    return hear_revoked(w, got);
}

/* Its own token by the registry; of its key; of nobody knows which; and no other. */
static void test_revocations(void)
{
    struct world w;
    char got[NOTE_ID_MAX + 1], id[NOTE_ID_MAX + 1];
    struct err err = {0};
    open_world(&w);
    CU_ASSERT_STRING_EQUAL(of(&w, "rt-far", "99999999999.0123456789abcdef", got), "");
    CU_ASSERT_STRING_EQUAL(of(&w, "rt-any", "99999999999.-", got), "rt-any");
    CU_ASSERT_EQUAL(fleet_revocations_say(w.c.revocations, "rt-x", 5, &err), 0);
    CU_ASSERT(hear_put(&w, id) != 0 && strcmp(id, "rt-x") == 0);
    CU_ASSERT_STRING_EQUAL(of(&w, "rt-key", heard_body, got), "rt-key"); /* of this host's key */
    static const char *const none[] = {"1",
                                       "1.",
                                       ".-",
                                       "x.-",
                                       "1.0123456789ABCDEF",
                                       "-1.-",
                                       "1.0123456789abcde",
                                       "1.0123456789abcdef0"};
    for (size_t k = 0; k < ARRAY_LEN(none); k++)
        CU_ASSERT_STRING_EQUAL(of(&w, "rt-any", none[k], got), "");
    CU_ASSERT_STRING_EQUAL(of(&w, "rp-any", "1.-", got), "");
    CU_ASSERT_STRING_EQUAL(of(&w, "sb-any", "1.-", got), "");
    CU_ASSERT_EQUAL(fleet_revocations_foreign(w.c.revocations, "rt-else", &err), 0);
    CU_ASSERT_STRING_EQUAL(hear_revoked(&w, got), "rt-else");
    CU_ASSERT_EQUAL(fleet_revocations_foreign(w.c.revocations, "rp-else", &err), 1);
    CU_ASSERT_EQUAL(fleet_revocations_foreign(w.c.revocations, "rt-'", &err), 1);
    CU_ASSERT_EQUAL(fleet_revocations_foreign(NULL, "rt-else", &err), 1);
    for (int i = 0; i < FLEET_FOREIGN_MAX + 2; i++) { /* ids that somebody makes up */
        snprintf(id, sizeof id, "rt-%d", i);
        bool taken = strcmp(of(&w, id, "99999999999.-", got), id) == 0;
        CU_ASSERT_EQUAL(taken, i < FLEET_FOREIGN_MAX - 2); /* two are known from above */
    }
    CU_ASSERT_STRING_EQUAL(of(&w, "rt-again", heard_body, got), "rt-again");
    close_world(&w);
}

/* Of one host, whoever may revoke there. */
static void test_made_up(void)
{
    struct world w;
    char id[NOTE_ID_MAX + 1];
    struct err err = {0};
    open_world(&w);
    for (int i = 0; i < FLEET_FOREIGN_OWN + 1; i++) {
        snprintf(id, sizeof id, "rt-%d", i);
        CU_ASSERT_EQUAL(fleet_revocations_foreign(w.c.revocations, id, &err),
                        i < FLEET_FOREIGN_OWN ? 0 : -1);
        CU_ASSERT_EQUAL(fleet_revocations_foreign(w.c.revocations, "rt-0", &err), 0);
    }
    CU_ASSERT_EQUAL(err.code, ERR_UNREADY);
    close_world(&w);
}

/* Everything is read anew on another connection; rows: what is there. */
static void read_all(struct world *w, const char *const *ids, size_t n)
{
    uint64_t after;
    char body[32];
    say_up(w);
    uint32_t number = hear_ask(w, &after);
    CU_ASSERT(number != 0 && after == 0);
    snprintf(body, sizeof body, "%lld.-", (long long)time(NULL) + 3600);
    for (size_t i = 0; i < n; i++)
        say_note(w, i + 1, "revoked", ids[i], body);
    say_read(w, number, 0);
}

/* How many are put, and kept; id: the last. */
static int put_back(struct world *w, char id[NOTE_ID_MAX + 1])
{
    uint32_t number;
    int n = 0;
    char last[NOTE_ID_MAX + 1] = "";
    while ((number = hear_put(w, id)) != 0) {
        snprintf(last, sizeof last, "%s", id);
        say_kept(w, number, NOTE_MINE);
        n++;
    }
    snprintf(id, NOTE_ID_MAX + 1, "%s", last);
    return n;
}

/* One for longer than any token lives is nobody's: it is not said again. */
static void test_for_ever(void)
{
    struct world w;
    uint64_t after;
    char id[NOTE_ID_MAX + 1];
    open_world(&w);
    say_up(&w);
    uint32_t number = hear_ask(&w, &after);
    say_note(&w, 1, "revoked", "rt-ever", "99999999999.-");
    say_note(&w, 2, "revoked", "tk-ever", "99999999999.-");
    say_read(&w, number, 0);
    read_all(&w, NULL, 0);
    CU_ASSERT_EQUAL(put_back(&w, id), 0);
    close_world(&w);
}

/* What is over makes room; what finds none is said once and no more. */
static void test_room(void)
{
    char id[NOTE_ID_MAX + 1];
    struct fleet_said *s = fleet_said_new();
    for (int i = 0; i < FLEET_SAID_MAX; i++) {
        snprintf(id, sizeof id, "rt-%d", i);
        CU_ASSERT_EQUAL(fleet_said_add(s, "revoked", id, SLICE("1.-"), 1000, 10), 0);
    }
    CU_ASSERT_EQUAL(fleet_said_add(s, "revoked", "rt-0", SLICE("1.-"), 1000, 10), 0);
    CU_ASSERT_EQUAL(fleet_said_add(s, "revoked", "rt-x", SLICE("1.-"), 1009, 10), -1);
    CU_ASSERT_EQUAL(fleet_said_add(s, "revoked", "rt-x", SLICE("1.-"), 1010, 10), 0);
    fleet_said_free(s);
    s = fleet_said_new(); /* what is held and answered leaves half of it to revocations */
    static char large[NOTE_BODY_MAX];
    memset(large, 'a', sizeof large);
    int n = 0;
    do
        snprintf(id, sizeof id, "ap-%d", n++);
    while (fleet_said_add(s, "asked", id, (struct slice){large, sizeof large}, 1000, 10) == 0);
    CU_ASSERT_EQUAL(n - 1, FLEET_SAID_BYTES / 2 / NOTE_BODY_MAX);
    CU_ASSERT_EQUAL(fleet_said_add(s, "revoked", "rt-x", SLICE("1.-"), 1000, 10), 0);
    fleet_said_free(s);
}

/* A database may forget what it said was on disk: each host that knows it says it again. */
static void test_lost(void)
{
    static const char *const ids[] = {"rt-read", "rt-own"};
    struct world w;
    uint64_t after;
    char id[NOTE_ID_MAX + 1];
    struct err err = {0};
    open_world(&w);
    read_all(&w, ids, 1);
    CU_ASSERT_EQUAL(put(&w, "rt-own", true), 0);
    CU_ASSERT_EQUAL(put_back(&w, id), 1);
    read_all(&w, ids, 2);
    CU_ASSERT_EQUAL(put_back(&w, id), 0); /* all is there */
    struct msg m;
    msg_init(&m, W_NOTES_HINT);
    say(&w, &m);
    uint32_t number = hear_ask(&w, &after);
    CU_ASSERT(number != 0 && after == 2);
    say_read(&w, number, 0);
    CU_ASSERT_EQUAL(put_back(&w, id), 0); /* what came since: nothing */
    read_all(&w, ids, 1);
    CU_ASSERT(put_back(&w, id) == 1 && strcmp(id, "rt-own") == 0);
    read_all(&w, NULL, 0);
    CU_ASSERT_EQUAL(put_back(&w, id), 2);
    CU_ASSERT(fleet_notes_put(w.c.fleet, "asked", "ap-a", SLICE("x"), 1, false, &err) == 0 &&
              put_back(&w, id) == 1);
    CU_ASSERT(fleet_notes_put(w.c.fleet, "asked", "ap-b", SLICE("x"), 60, false, &err) == 0 &&
              put_back(&w, id) == 1);
    CU_ASSERT(fleet_notes_put(w.c.fleet, "host", "k", SLICE("x"), 60, false, &err) == 0 &&
              put_back(&w, id) == 1);
    later(2);
    fleet_notes_forget(w.c.fleet, "asked", "ap-b");
    read_all(&w, ids, 2);
    CU_ASSERT_EQUAL(put_back(&w, id), 0); /* over, not wanted any more, and said anew anyway */
    read_all(&w, NULL, 0);
    CU_ASSERT_EQUAL(put_back(&w, id), 2);
    msg_init(&m, W_NOTES_HINT); /* one that shows nothing all the same is told once */
    say(&w, &m);
    number = hear_ask(&w, &after);
    CU_ASSERT(number != 0 && after == 0);
    say_read(&w, number, 0);
    CU_ASSERT_EQUAL(put_back(&w, id), 0);
    say_up(&w); /* and a question that failed midway is no end of what was begun */
    number = hear_ask(&w, &after);
    say_note(&w, 1, "revoked", "rt-read", "99999999999.-");
    say_read(&w, number, 1);
    number = hear_ask(&w, &after);
    CU_ASSERT(number != 0 && after == 1);
    say_read(&w, number, 2);
    msg_init(&m, W_NOTES_HINT);
    say(&w, &m);
    number = hear_ask(&w, &after);
    CU_ASSERT(number != 0 && after == 1);
    say_read(&w, number, 0);
    CU_ASSERT(put_back(&w, id) == 1 && strcmp(id, "rt-own") == 0);
    close_world(&w);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("fleet_notes", NULL, NULL);
    CU_add_test(s, "said until it is kept", test_put);
    CU_add_test(s, "what must not be lost", test_durable);
    CU_add_test(s, "up to when nothing was missed", test_known);
    CU_add_test(s, "a slow database", test_slow);
    CU_add_test(s, "what cannot be applied", test_unapplied);
    CU_add_test(s, "a role that lies", test_role_lies);
    CU_add_test(s, "revocations", test_revocations);
    CU_add_test(s, "ids that are made up", test_made_up);
    CU_add_test(s, "one for ever", test_for_ever);
    CU_add_test(s, "what the database lost", test_lost);
    CU_add_test(s, "room for that", test_room);
}
