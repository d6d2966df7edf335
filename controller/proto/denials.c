/* Adds up counts, makes codes and targets fit for a terminal, and puts the list into a message and
 * reads it there. */
#include "denials.h"

#include <string.h>

static bool code_ok(const char *code)
{
    size_t n = strspn(code, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return n > 0 && n <= DENIAL_CODE_MAX && code[n] == 0;
}

static void clean(char *to, size_t size, const char *from)
{
    size_t n = 0;
    for (; from[n] && n + 1 < size; n++)
        to[n] = from[n] >= 0x20 && from[n] < 0x7f ? from[n] : '?';
    to[n] = 0;
}

static void count_up(struct denial *e, uint32_t count)
{
    e->count = e->count > UINT32_MAX - count ? UINT32_MAX : e->count + count;
}

static struct denial *find(struct denials *d, const char *code, const char *target, bool failed)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->list[i].failed == failed && strcmp(d->list[i].code, code) == 0 &&
            strcmp(d->list[i].target, target) == 0)
            return &d->list[i];
    if (d->n > DENIALS_MAX)
        return &d->list[DENIALS_MAX];
    struct denial *e = &d->list[d->n++];
    bool last = d->n > DENIALS_MAX;
    clean(e->code, sizeof e->code, last ? "other" : code);
    clean(e->target, sizeof e->target, last ? "other" : target);
    e->count = 0;
    e->failed = failed && !last;
    return e;
}

bool denials_valid(const char *code, uint32_t count)
{
    return code_ok(code) && count > 0;
}

static int add(struct denials *d, const char *code, const char *target, uint32_t count, bool failed)
{
    char text[DENIAL_TARGET_MAX + 1];
    if (!denials_valid(code, count))
        return -1;
    clean(text, sizeof text, target);
    count_up(find(d, code, text, failed), count);
    return 0;
}

int denials_add(struct denials *d, const char *code, const char *target, uint32_t count)
{
    return add(d, code, target, count, false);
}

int denials_fail(struct denials *d, const char *code, const char *target, uint32_t count)
{
    return add(d, code, target, count, true);
}

static void grow(uint64_t *to, uint64_t n)
{
    *to = *to > UINT64_MAX - n ? UINT64_MAX : *to + n;
}

void denials_call(struct denials *d, const struct denial_calls *calls)
{
    grow(&d->calls.n, calls->n);
    grow(&d->calls.tokens_in, calls->tokens_in);
    grow(&d->calls.tokens_out, calls->tokens_out);
    grow(&d->calls.cost, calls->cost);
}

void denials_put(const struct denials *d, struct msg *m)
{
    msg_put_u32(m, (uint32_t)d->n);
    for (size_t i = 0; i < d->n; i++) {
        msg_put_str(m, d->list[i].code);
        msg_put_str(m, d->list[i].target);
        msg_put_u32(m, d->list[i].count);
        msg_put_u8(m, d->list[i].failed);
    }
    msg_put_u64(m, d->calls.n);
    msg_put_u64(m, d->calls.tokens_in);
    msg_put_u64(m, d->calls.tokens_out);
    msg_put_u64(m, d->calls.cost);
}

int denials_get(struct denials *d, struct msg *m)
{
    uint32_t n, count;
    if (msg_get_u32(m, &n) < 0 || n > DENIALS_MAX + 1)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        char code[DENIAL_CODE_MAX + 1], target[DENIAL_TARGET_MAX + 1];
        uint8_t failed;
        if (msg_get_str(m, code, sizeof code) < 0 || msg_get_str(m, target, sizeof target) < 0 ||
            msg_get_u32(m, &count) < 0 || msg_get_u8(m, &failed) < 0 || failed > 1 ||
            add(d, code, target, count, failed != 0) < 0)
            return -1;
    }
    struct denial_calls *c = &d->calls;
    return msg_get_u64(m, &c->n) < 0 || msg_get_u64(m, &c->tokens_in) < 0 ||
                   msg_get_u64(m, &c->tokens_out) < 0 || msg_get_u64(m, &c->cost) < 0
               ? -1
               : 0;
}
