/* Redis' commands and replies of whatever bytes: whole and in pieces they read the same, and a
 * command, written anew, reads the same again; what the judge has let pass it does not take back.
 * First byte: how much at a time. */
#include "redis_judge.h"
#include "resp_reply.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
    if (!right)
        abort();
}

static const char *const keys[] = {"job:*", "*a*b"}, *const names[] = {"@read", "config|*", "!get"};
static const struct redis_terms terms[] = {
    {.tls = true},
    {.read_only = true},
    {.keys = keys, .n_keys = 2, .has_database = true, .database = 2},
    {.commands = names, .n_commands = 3},
};

struct reading {
    bool violation;
    struct buf again; /* commands, as they were read */
    struct redis_judged judged[ARRAY_LEN(terms)];
};

static void judge(struct reading *r, const struct resp_commands *c, enum resp_event e)
{
    bool over = (e == RESP_ARGUMENT || e == RESP_LONG_END) && resp_command_over(c);
    for (size_t i = 0; i < ARRAY_LEN(terms); i++) {
        struct redis_judged *j = &r->judged[i];
        bool settled = j->settled && e != RESP_BEGUN;
        if (e == RESP_BEGUN)
            redis_judge_begin(j, &terms[i], c->n);
        else if (e == RESP_ARGUMENT || e == RESP_LONG)
            redis_judge_argument(j, c->i, e == RESP_ARGUMENT ? &c->said : NULL);
        if (over)
            redis_judge_end(j);
        require(!settled || (j->settled && j->why == NULL && !j->login));
        require(!over || j->why || j->command);
        require(!(i == 1 && over && j->why == NULL && j->command->classes & REDIS_WRITE));
    }
}

static struct reading read_all(struct slice in, size_t step, bool judged)
{
    struct reading r = {.violation = false};
    struct resp_commands c;
    buf_init(&r.again, 1 << 22);
    resp_commands_init(&c);
    while (in.n > 0 && !r.violation) {
        struct slice piece = {in.p, in.n < step ? in.n : step};
        in = (struct slice){in.p + piece.n, in.n - piece.n};
        enum resp_event e;
        do {
            e = resp_commands_read(&c, &piece);
            require(resp_put_read(&r.again, &c, e) == 0);
            if (judged && e != RESP_MORE && e != RESP_VIOLATION)
                judge(&r, &c, e);
        } while (e != RESP_MORE && e != RESP_VIOLATION);
        r.violation = e == RESP_VIOLATION;
        require(r.violation || piece.n == 0);
    }
    resp_commands_free(&c);
    return r;
}

static int on_error(void *arg UNUSED, struct slice line, struct buf *out)
{
    require(line.n > 0 && line.p[0] == '-' && slice_find(line, '\r') < 0);
    return buf_append_slice(out, line) < 0 || buf_append(out, "\r\n", 2) < 0 ? -1 : 0;
}

/* What comes out is what went in, however it is cut. */
static void replies(struct slice in, size_t step)
{
    struct resp_replies whole, pieces;
    struct buf a, b;
    int said = 0;
    resp_replies_init(&whole);
    resp_replies_init(&pieces);
    buf_init(&a, 1 << 18);
    buf_init(&b, 1 << 18);
    int good = resp_replies_read(&whole, in, &a, on_error, NULL);
    for (size_t i = 0; i < in.n && said == 0; i += step)
        said =
            resp_replies_read(&pieces, (struct slice){in.p + i, in.n - i < step ? in.n - i : step},
                              &b, on_error, NULL);
    require(good == said);
    require(buf_len(&b) <= in.n && memcmp(buf_data(&b), in.p, buf_len(&b)) == 0);
    if (good == 0)
        require(slice_eq(buf_slice(&a), buf_slice(&b)));
    buf_free(&a);
    buf_free(&b);
    resp_replies_free(&whole);
    resp_replies_free(&pieces);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > 65536)
        return 0;
    size_t step = data[0] ? data[0] : 1;
    struct slice in = {(const char *)data + 1, size - 1};
    struct reading whole = read_all(in, in.n, true), pieces = read_all(in, step, false);
    require(whole.violation == pieces.violation);
    require(slice_eq(buf_slice(&whole.again), buf_slice(&pieces.again)));
    require(slice_starts(in, buf_slice(&whole.again)));
    struct reading again = read_all(buf_slice(&whole.again), 4096, false);
    require(!again.violation && slice_eq(buf_slice(&again.again), buf_slice(&whole.again)));
    buf_free(&whole.again);
    buf_free(&pieces.again);
    buf_free(&again.again);
    replies(in, step);
    return 0;
}
