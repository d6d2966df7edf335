/* What becomes of a command: a refused one is replaced by a word that no server knows, whose error
 * becomes ours in its place. So the server's own order of answers is right in every pipeline, and
 * its transaction fails as after any command that it refuses. What is allowed goes on as it comes,
 * from the moment when nothing that follows can be a reason against it. */
#include "redis_front.h"

#include <stdio.h>
#include <string.h>

static void note_refused(struct redis_client *c)
{
    struct record r;
    const struct redis_judged *j = &c->judged;
    record_init(&r, RECORD_DENIED, 0);
    record_put_str(&r, RF_METHOD, "connect");
    record_put_str(&r, RF_PATH, "/");
    record_put_str(&r, RF_RULE, c->rule->text);
    record_put_str(&r, RF_DETAIL, j->why);
    if (j->command)
        record_put_str(&r, RF_STATEMENTS, j->command->name);
    front_denied(c->of->front, &r, &c->at, "redis_command");
}

/* ---- what waits for the rest of its command ---- */

static void set_held(struct redis_client *c, size_t n)
{
    c->of->held += n - c->held;
    c->held = n;
}

static void pass_on(struct redis_client *c)
{
    c->passing = REDIS_PASSING;
    set_held(c, 0);
}

static void take_back(struct redis_client *c)
{
    buf_cut(&c->up, c->held);
    set_held(c, 0);
    c->passing = REDIS_DROPPED;
}

/* One that is long, or where the sandbox's share is used up, is with the server before all of it is
 * known. The server does nothing before it has it whole. */
static const char *put(struct redis_client *c, enum resp_event e)
{
    size_t had = buf_len(&c->up);
    if (resp_put_read(&c->up, &c->commands, e) < 0)
        return "memory";
    if (c->passing == REDIS_PASSING)
        return NULL;
    set_held(c, c->held + buf_len(&c->up) - had);
    if (c->judged.settled || c->held > REDIS_HELD_MAX ||
        (c->held > REDIS_HELD_LEAST && c->of->held > REDIS_HELD_OF_ALL))
        pass_on(c);
    return NULL;
}

/* ---- what stands for a command ---- */

/* why NULL: a login, which is answered with OK. */
static int put_word(struct redis_client *c, const char *why)
{
    char word[REDIS_MARK];
    int n = snprintf(word, sizeof word, REDIS_WORD "%016llX-%u", (unsigned long long)c->mark,
                     (unsigned)c->n_refused);
    c->why[c->n_refused++ % REDIS_REFUSALS] = why;
    return resp_put_array(&c->up, 1) < 0 ||
                   resp_put_bulk(&c->up, (struct slice){word, (size_t)n}) < 0
               ? -1
               : 0;
}

/* Without its login, which is not the sandbox's to make. */
static int put_hello(struct redis_client *c)
{
    const struct redis_hello *h = &c->judged.hello;
    size_t n = 1 + (h->version != 0) + (h->has_name ? 2 : 0);
    if (resp_put_array(&c->up, n) < 0 || resp_put_bulk(&c->up, SLICE("HELLO")) < 0 ||
        (h->version && resp_put_bulk(&c->up, (struct slice){&h->version, 1}) < 0))
        return -1;
    return h->has_name && (resp_put_bulk(&c->up, SLICE("SETNAME")) < 0 ||
                           resp_put_bulk(&c->up, (struct slice){h->name, h->n_name}) < 0)
               ? -1
               : 0;
}

/* Its place is behind what came before, while the rest of it is read and dropped. */
static const char *refuse(struct redis_client *c)
{
    if (c->judged.why)
        note_refused(c);
    if (c->passing == REDIS_PASSING)
        return "redis_command";
    take_back(c);
    return put_word(c, c->judged.why) < 0 ? "memory" : NULL;
}

const char *redis_answer_up(struct redis_client *c, enum resp_event e)
{
    const struct resp_commands *r = &c->commands;
    struct redis_judged *j = &c->judged;
    bool over = (e == RESP_ARGUMENT || e == RESP_LONG_END) && resp_command_over(r);
    bool going = c->passing != REDIS_DROPPED;
    if (e == RESP_BEGUN) {
        redis_judge_begin(j, c->rule->redis, r->n);
        c->passing = REDIS_HELD;
        going = true;
    } else if (going && (e == RESP_ARGUMENT || e == RESP_LONG)) {
        redis_judge_argument(j, r->i, e == RESP_ARGUMENT ? &r->said : NULL);
    }
    if (over && going)
        redis_judge_end(j);
    if (going && (j->why || j->login))
        return refuse(c);
    if (going && redis_judged_hello(j)) { /* written anew, once it is whole */
        take_back(c);
        c->passing = over ? REDIS_DROPPED : REDIS_HELD;
        return over && put_hello(c) < 0 ? "memory" : NULL;
    }
    const char *why = going ? put(c, e) : NULL;
    if (over && c->passing == REDIS_HELD)
        pass_on(c);
    return why;
}

int redis_answer_down(void *client, struct slice line, struct buf *out)
{
    const struct redis_client *c = client;
    char mark[REDIS_MARK];
    uint64_t i = 0;
    int n = snprintf(mark, sizeof mark, REDIS_WORD "%016llX-", (unsigned long long)c->mark);
    ssize_t at = slice_find_slice(line, (struct slice){mark, (size_t)n});
    if (at < 0)
        return buf_append_slice(out, line) < 0 || buf_append(out, "\r\n", 2) < 0 ? -1 : 0;
    struct slice rest = {line.p + at + n, line.n - (size_t)at - (size_t)n};
    size_t digits = 0;
    while (digits < rest.n && rest.p[digits] >= '0' && rest.p[digits] <= '9')
        digits++;
    const char *why = "a command that its rule does not allow";
    if (slice_u64((struct slice){rest.p, digits}, UINT32_MAX, &i) == 0 && i < c->n_refused &&
        c->n_refused - i <= REDIS_REFUSALS)
        why = c->why[i % REDIS_REFUSALS];
    return why ? buf_printf(out, "-NOPERM durward: refused: %s\r\n", why)
               : buf_append_str(out, "+OK\r\n");
}
