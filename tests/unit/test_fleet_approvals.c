/* Answers from other hosts: one counts for the very request that it was given for, from a host that
 * this one names, and once. */
#include "fleet_bed.h"

#include "fleet_approvals.h"
#include "fleet_seal.h"
#include "held.h"

#include <openssl/sha.h>

struct seats {
    struct world w;
    EVP_PKEY *keys[3]; /* ours, of b whom we name, of c whom we do not */
    struct fleet_seal *b, *c;
    struct config_fleet_host known[1];
    struct config_fleet fleet;
    int injector;
};

/* Our configuration names b. */
static void name_b(struct seats *s)
{
    char config[1024], key[64];
    key_text(s->keys[1], key);
    snprintf(config, sizeof config,
             V "secrets:\n  p: { env: P }\n  l: { postgres_login: { user: fleet, password: p } }\n"
               "fleet: { postgres: 'postgres://db.example/fleet', login: l, hosts: { b: '%s' } }\n"
               "policies: { coder: { rules: [ { allow: a.example } ] } }\n",
             key);
    config_unref(s->w.c.config);
    s->w.c.config = good(config);
}

static void open_seats(struct seats *s)
{
    int fds[2];
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
    s->w.c.fleet_approvals = fleet_approvals_new(&s->w.c, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s->w.c.fleet_approvals);
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, &err), 0);
    s->injector = fds[0];
    approvals_holder(s->w.c.approvals, "coder", true, fds[1]);
    say_up(&s->w);
}

static void close_seats(struct seats *s)
{
    approvals_free(s->w.c.approvals);
    fleet_approvals_free(s->w.c.fleet_approvals);
    s->w.c.keys.fleet = NULL;
    close_world(&s->w);
    close(s->injector);
    fleet_seal_free(s->b);
    fleet_seal_free(s->c);
    for (size_t i = 0; i < 3; i++)
        EVP_PKEY_free(s->keys[i]);
}

static void hold(struct seats *s, uint32_t req, const char *path)
{
    static const char *const texts[] = {"", "GET", "https", "a.example", NULL, "", "ask", "", ""};
    struct msg m;
    msg_init(&m, W_PENDING_APPROVAL);
    msg_put_u32(&m, req);
    msg_put_u32(&m, 60);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        msg_put_str(&m, texts[i] ? texts[i] : path);
    msg_put_u64(&m, 0);
    msg_put_u8(&m, 0);
    CU_ASSERT_EQUAL(msg_send(s->injector, &m), 0);
    msg_done(&m);
    turn(&s->w);
}

/* What was put of that kind: its id and text. */
struct said {
    char kind[NOTE_KIND_MAX + 1], id[NOTE_ID_MAX + 1], body[4096], digest[65];
};

static void digest_of(struct slice text, char to[65])
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *)text.p, text.n, hash);
    for (size_t i = 0; i < sizeof hash; i++)
        snprintf(to + 2 * i, 3, "%02x", hash[i]);
}

static bool hear_note(struct seats *s, struct said *n)
{
    struct msg m;
    uint32_t number, seconds;
    if (!heard(&s->w, s->w.role, W_NOTE_PUT, &m))
        return false;
    CU_ASSERT(msg_get_u32(&m, &number) == 0 && msg_get_str(&m, n->kind, sizeof n->kind) == 0 &&
              msg_get_str(&m, n->id, sizeof n->id) == 0 &&
              msg_get_str(&m, n->body, sizeof n->body) == 0 && msg_get_u32(&m, &seconds) == 0);
    msg_done(&m);
    say_kept(&s->w, number, 1);
    digest_of(slice_str(n->body), n->digest);
    return true;
}

static void tell(struct seats *s, const char *kind, const char *id, const char *body)
{
    uint64_t after;
    say_up(&s->w);
    CU_ASSERT(hear_ask(&s->w, &after) != 0);
    say_note(&s->w, 1, kind, id, body);
}

/* An answer that by gives, under the key of named, to the note of that digest. */
static void answer(struct seats *s, const struct fleet_seal *by, const struct fleet_seal *named,
                   const char *id, const char *digest, json_t *allow)
{
    char note[NOTE_ID_MAX + 1];
    struct buf text;
    snprintf(note, sizeof note, "%s-%s", id, fleet_seal_key(named));
    json_t *v = json_pack("{s:s, s:o, s:s}", "asked", digest, "allow", allow, "who", "eve\n\033");
    buf_init(&text, NOTE_BODY_MAX);
    CU_ASSERT_EQUAL(fleet_seal_put(by, "answered", note, v, &text), 0);
    CU_ASSERT_EQUAL(buf_append(&text, "", 1), 0);
    tell(s, "answered", note, (const char *)buf_data(&text));
    buf_free(&text);
    json_decref(v);
}

/* How the injector's request ended; -1: it waits. */
static int answered(struct seats *s, uint32_t *req, char who[PENDING_APPROVAL_WHO_MAX])
{
    struct msg m;
    uint8_t end;
    if (!heard(&s->w, s->injector, W_PENDING_APPROVAL_ANSWER, &m))
        return -1;
    CU_ASSERT(msg_get_u32(&m, req) == 0 && msg_get_u8(&m, &end) == 0 &&
              msg_get_str(&m, who, PENDING_APPROVAL_WHO_MAX) == 0);
    msg_done(&m);
    return end;
}

static void test_answers(void)
{
    struct seats s;
    struct said one, two;
    char who[PENDING_APPROVAL_WHO_MAX];
    uint32_t req;
    open_seats(&s);
    hold(&s, 7, "/one");
    hold(&s, 8, "/two");
    CU_ASSERT_FATAL(hear_note(&s, &one) && hear_note(&s, &two));
    CU_ASSERT(strcmp(one.kind, "asked") == 0 && strcmp(one.id, two.id) != 0);
    answer(&s, s.c, s.c, one.id, one.digest, json_true()); /* whom we do not name */
    answer(&s, s.c, s.b, one.id, one.digest, json_true()); /* in another one's name */
    answer(&s, s.b, s.c, one.id, one.digest, json_true()); /* a second one of the same host */
    answer(&s, s.b, s.b, one.id, two.digest, json_true()); /* for another request */
    answer(&s, s.b, s.b, "ap-aaaaaaaa", one.digest, json_true());
    answer(&s, s.b, s.b, one.id, one.digest, json_integer(1));
    tell(&s, "answered", one.id, one.body);
    CU_ASSERT_EQUAL(answered(&s, &req, who), -1);
    answer(&s, s.b, s.b, one.id, one.digest, json_true());
    CU_ASSERT(answered(&s, &req, who) == PENDING_APPROVAL_ALLOWED && req == 7);
    CU_ASSERT_STRING_EQUAL(who, "eve?? at b");
    answer(&s, s.b, s.b, one.id, one.digest, json_false()); /* it is over */
    CU_ASSERT_EQUAL(answered(&s, &req, who), -1);
    answer(&s, s.b, s.b, two.id, two.digest, json_false());
    CU_ASSERT(answered(&s, &req, who) == PENDING_APPROVAL_DENIED && req == 8);
    close_seats(&s);
}

/* What another host holds is shown, and decided there alone. */
static void test_shown(void)
{
    struct seats s;
    struct buf text;
    struct said own;
    open_seats(&s);
    json_t *v = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I}", "sandbox", "sb-1",
                          "policy", "coder", "method", "GET", "url", "https://x/\033[2J", "query",
                          "", "rule", "ask", "credential", "", "content_type", "", "created",
                          (json_int_t)time(NULL), "expires", (json_int_t)time(NULL) + 60);
    buf_init(&text, NOTE_BODY_MAX);
    CU_ASSERT_EQUAL(fleet_seal_put(s.c, "asked", "ap-cccccccc", v, &text), 0);
    CU_ASSERT_EQUAL(buf_append(&text, "", 1), 0);
    tell(&s, "asked", "ap-cccccccc", (const char *)buf_data(&text));
    CU_ASSERT_PTR_NULL(approvals_show(s.w.c.approvals, "ap-cccccccc")); /* of nobody we name */
    buf_clear(&text);
    CU_ASSERT_EQUAL(fleet_seal_put(s.b, "asked", "ap-bbbbbbbb", v, &text), 0);
    CU_ASSERT_EQUAL(buf_append(&text, "", 1), 0);
    tell(&s, "asked", "ap-bbbbbbbb", (const char *)buf_data(&text));
    json_t *shown = approvals_show(s.w.c.approvals, "ap-bbbbbbbb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(shown);
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(shown, "url")), "https://x/?[2J");
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(shown, "host")), "b");
    CU_ASSERT_EQUAL(approvals_decide(s.w.c.approvals, "ap-bbbbbbbb", true, "us"), 1);
    CU_ASSERT_FALSE(approvals_wait_for(s.w.c.approvals, "sb-1"));
    tell(&s, "ended", "ap-bbbbbbbb", (const char *)buf_data(&text));
    json_decref(shown);
    shown = approvals_show(s.w.c.approvals, "ap-bbbbbbbb");
    CU_ASSERT_PTR_NOT_NULL(shown);
    json_decref(shown);
    json_decref(v);
    buf_free(&text);
    CU_ASSERT_FALSE(hear_note(&s, &own));
    hold(&s, 1, "/own");
    CU_ASSERT_TRUE(hear_note(&s, &own));
    close_seats(&s);
}

static int said_end;

static void on_end(void *arg UNUSED, enum fleet_answer end)
{
    said_end = (int)end;
}

static time_t begun; /* the same text, whenever it is made */

static json_t *answer_text(const struct seats *s UNUSED, int skew)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I}", "sandbox", "sb-1",
                     "policy", "coder", "method", "GET", "url", "https://x/", "query", "", "rule",
                     "ask", "credential", "", "content_type", "", "created",
                     (json_int_t)begun - skew, "expires", (json_int_t)begun + 60 - skew);
}

static void say_asked(struct seats *s, int skew)
{
    struct buf text;
    json_t *v = answer_text(s, skew);
    buf_init(&text, NOTE_BODY_MAX);
    CU_ASSERT_EQUAL(fleet_seal_put(s->b, "asked", "ap-bbbbbbbb", v, &text), 0);
    CU_ASSERT_EQUAL(buf_append(&text, "", 1), 0);
    tell(s, "asked", "ap-bbbbbbbb", (const char *)buf_data(&text));
    buf_free(&text);
    json_decref(v);
}

/* b holds it, and it is answered here; skew: b's clock is so much behind ours. */
static uint32_t answer_here(struct seats *s, bool allow, int skew)
{
    struct msg m;
    struct err err = {0};
    uint32_t number = 0;
    begun = time(NULL);
    say_asked(s, skew);
    said_end = -1;
    CU_ASSERT_EQUAL(fleet_approvals_answer(s->w.c.fleet_approvals, "ap-bbbbbbbb", allow, "us",
                                           on_end, NULL, &err),
                    0);
    if (heard(&s->w, s->w.role, W_NOTE_PUT, &m)) {
        CU_ASSERT_EQUAL(msg_get_u32(&m, &number), 0);
        msg_done(&m);
    }
    return number;
}

/* Another word of this host is there already: nobody is told that his was taken. */
static void test_other_word(void)
{
    struct seats s;
    open_seats(&s);
    uint32_t number = answer_here(&s, false, 120);
    CU_ASSERT(number != 0);
    say_kept(&s.w, number, 0);
    CU_ASSERT_EQUAL(said_end, FLEET_ANSWER_OTHER);
    close_seats(&s);
}

/* Of what b said it holds. */
static void digest_asked(struct seats *s, char digest[65])
{
    struct buf text;
    json_t *asked = answer_text(s, 120);
    buf_init(&text, NOTE_BODY_MAX);
    CU_ASSERT_EQUAL(fleet_seal_put(s->b, "asked", "ap-bbbbbbbb", asked, &text), 0);
    digest_of(buf_slice(&text), digest);
    buf_free(&text);
    json_decref(asked);
}

/* The holder's word on how it ended, with the key of whose answer that was. */
static void end(struct seats *s, const char *how, const char *by)
{
    struct buf text;
    char digest[65];
    digest_asked(s, digest);
    buf_init(&text, NOTE_BODY_MAX);
    json_t *v = json_pack("{s:s, s:s, s:s}", "asked", digest, "end", how, "by", by);
    CU_ASSERT_EQUAL(fleet_seal_put(s->b, "ended", "ap-bbbbbbbb", v, &text), 0);
    CU_ASSERT_EQUAL(buf_append(&text, "", 1), 0);
    tell(s, "ended", "ap-bbbbbbbb", (const char *)buf_data(&text));
    buf_free(&text);
    json_decref(v);
}

/* Whoever answered is told that it was so only if it was his word, and that one. */
static void test_ends(void)
{
    static const struct {
        const char *end;
        bool ours;
        enum fleet_answer told;
    } rows[] = {{"denied", true, FLEET_ANSWER_TAKEN},
                {"allowed", true, FLEET_ANSWER_OTHER}, /* another word of this host's */
                {"denied", false, FLEET_ANSWER_OTHER},
                {"over", true, FLEET_ANSWER_OTHER}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct seats s;
        open_seats(&s);
        struct fleet_seal *own = seal_of(s.keys[0]);
        CU_ASSERT(answer_here(&s, false, 120) != 0);
        end(&s, rows[i].end, fleet_seal_key(rows[i].ours ? own : s.c));
        CU_ASSERT_EQUAL(said_end, (int)rows[i].told);
        fleet_seal_free(own);
        close_seats(&s);
    }
}

/* What somebody was told is said is said, whatever becomes of this process; once. */
static void test_durable(void)
{
    struct seats s;
    struct said n;
    struct err err = {0};
    open_seats(&s);
    CU_ASSERT(answer_here(&s, true, 120) != 0);
    fleet_approvals_free(s.w.c.fleet_approvals);
    CU_ASSERT_EQUAL(said_end, FLEET_ANSWER_WAITS);
    approvals_free(s.w.c.approvals);
    end_notes(&s.w);
    begin_notes(&s.w);
    s.w.c.approvals = approvals_new(&s.w.c);
    s.w.c.fleet_approvals = fleet_approvals_new(&s.w.c, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s.w.c.fleet_approvals);
    say_asked(&s, 120);
    CU_ASSERT_EQUAL(fleet_approvals_answer(s.w.c.fleet_approvals, "ap-bbbbbbbb", false, "us",
                                           on_end, NULL, &err),
                    -1);
    CU_ASSERT_EQUAL(err.code, ERR_DENIED);
    say_up(&s.w);
    CU_ASSERT_FATAL(hear_note(&s, &n));
    CU_ASSERT(strcmp(n.kind, "answered") == 0 && strncmp(n.id, "ap-bbbbbbbb-", 12) == 0);
    say_up(&s.w);
    CU_ASSERT_FALSE(hear_note(&s, &n));
    close_seats(&s);
}

/* The database has no note any more: what this host knows of is put again. */
static bool hear_put_back(struct seats *s, struct said *n)
{
    uint64_t after;
    say_up(&s->w);
    uint32_t number = hear_ask(&s->w, &after);
    CU_ASSERT(number != 0);
    say_read(&s->w, number, 0);
    return hear_note(s, n);
}

/* Of an answer in an earlier life of this host only the database tells. It is the one that there
 * is, and is said again should the database lose it; what another host signed, or what answers
 * another request, is none. */
static void test_own(void)
{
    static const struct {
        bool ours, asked;
    } rows[] = {{true, true}, {false, true}, {true, false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct seats s;
        struct said n;
        struct err err = {0};
        char digest[65], note[NOTE_ID_MAX + 1];
        bool known = rows[i].ours && rows[i].asked;
        open_seats(&s);
        struct fleet_seal *own = seal_of(s.keys[0]);
        snprintf(note, sizeof note, "ap-bbbbbbbb-%s", fleet_seal_key(own));
        begun = time(NULL);
        say_asked(&s, 120);
        digest_asked(&s, digest);
        digest[0] ^= rows[i].asked ? 0 : 1;
        answer(&s, rows[i].ours ? own : s.b, own, "ap-bbbbbbbb", digest, json_true());
        CU_ASSERT_FALSE(hear_note(&s, &n));
        CU_ASSERT_EQUAL(hear_put_back(&s, &n), known);
        CU_ASSERT(!known || (strcmp(n.kind, "answered") == 0 && strcmp(n.id, note) == 0));
        CU_ASSERT(!known || strstr(n.body, fleet_seal_key(own)) == n.body);
        CU_ASSERT_EQUAL(fleet_approvals_answer(s.w.c.fleet_approvals, "ap-bbbbbbbb", false, "us",
                                               on_end, NULL, &err),
                        known ? -1 : 0);
        CU_ASSERT(!known || err.code == ERR_DENIED);
        fleet_seal_free(own);
        close_seats(&s);
    }
}

static void give_up(struct seats *s, uint32_t req)
{
    struct msg m;
    msg_init(&m, W_PENDING_APPROVAL_OVER);
    msg_put_u32(&m, req);
    CU_ASSERT_EQUAL(msg_send(s->injector, &m), 0);
    msg_done(&m);
    turn(&s->w);
}

/* Whoever asks again and again fills no other host's list, and no database. */
static void test_many(void)
{
    struct seats s;
    struct said n;
    uint32_t req = 0;
    open_seats(&s);
    for (; req < FLEET_SHOWN_EACH; req++) {
        hold(&s, req, "/many");
        CU_ASSERT(hear_note(&s, &n) && strcmp(n.kind, "asked") == 0);
        give_up(&s, req);
        CU_ASSERT(hear_note(&s, &n) && strcmp(n.kind, "ended") == 0);
    }
    hold(&s, req, "/one-more");
    CU_ASSERT_FALSE(hear_note(&s, &n));
    json_t *v = approvals_json(s.w.c.approvals, 0);
    CU_ASSERT_EQUAL(json_array_size(json_object_get(v, "approvals")), 1); /* here it is */
    json_decref(v);
    close_seats(&s);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("fleet_approvals", NULL, NULL);
    CU_add_test(s, "answers", test_answers);
    CU_add_test(s, "shown", test_shown);
    CU_add_test(s, "another word of this host", test_other_word);
    CU_add_test(s, "how it ended", test_ends);
    CU_add_test(s, "an answer that was said", test_durable);
    CU_add_test(s, "an answer of an earlier life", test_own);
    CU_add_test(s, "many", test_many);
}
