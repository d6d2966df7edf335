/* What becomes of a command: a refused one is replaced by a word that no server knows, whose error
 * becomes ours in its place. So the server's own order of answers is right in every pipeline, and
 * its transaction fails as after any command that it refuses. */
#include "redis_front.h"

#include <stdio.h>
#include <string.h>

static void note_refused(struct redis_client *c, const struct redis_judged *j)
{
    struct record r;
    record_init(&r, RECORD_DENIED, 0);
    record_put_str(&r, RF_METHOD, "connect");
    record_put_str(&r, RF_PATH, "/");
    record_put_str(&r, RF_RULE, c->rule->text);
    record_put_str(&r, RF_DETAIL, j->why);
    if (j->command)
        record_put_str(&r, RF_STATEMENTS, j->command->name);
    front_denied(c->of->front, &r, &c->at, "redis_command");
}

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
    struct redis_hello h;
    if (redis_hello_read(&c->commands, &h) < 0)
        return -1;
    size_t n = 1 + (h.version.p != NULL) + (h.name.p ? 2 : 0);
    if (resp_put_array(&c->up, n) < 0 || resp_put_bulk(&c->up, SLICE("HELLO")) < 0 ||
        (h.version.p && resp_put_bulk(&c->up, h.version) < 0))
        return -1;
    return h.name.p && (resp_put_bulk(&c->up, SLICE("SETNAME")) < 0 ||
                        resp_put_bulk(&c->up, h.name) < 0)
               ? -1
               : 0;
}

int redis_answer_up(struct redis_client *c)
{
    struct redis_judged j;
    redis_judge(c->rule->redis, &c->commands, &j);
    if (j.why)
        note_refused(c, &j);
    if (j.why || j.login)
        return put_word(c, j.why);
    if (strcmp(j.command->name, "hello") == 0)
        return put_hello(c);
    if (resp_put_array(&c->up, c->commands.n) < 0)
        return -1;
    for (size_t i = 0; i < c->commands.n; i++)
        if (resp_put_bulk(&c->up, resp_argument(&c->commands, i)) < 0)
            return -1;
    return 0;
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
