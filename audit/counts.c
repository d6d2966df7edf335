#include "counts.h"

#include <stdio.h>
#include <string.h>

static uint64_t number(struct slice s)
{
    uint64_t n = 0;
    return slice_u64(s, INT64_MAX, &n) == 0 ? n : 0;
}

/* Only what a label can hold without quoting. */
static void label(char *to, size_t size, struct slice s)
{
    size_t n = 0;
    for (; n < s.n && n + 1 < size; n++) {
        char c = s.p[n];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '_' || c == '-' || c == '.';
        to[n] = plain ? c : '_';
    }
    to[n] = 0;
}

static struct count *find(struct counts *c, enum record_kind kind, const char *policy,
                          const char *code)
{
    for (size_t i = 0; i < c->n; i++) {
        struct count *e = &c->list[i];
        if (e->kind == kind && strcmp(e->policy, policy) == 0 && strcmp(e->code, code) == 0)
            return e;
    }
    return NULL;
}

static struct count *entry(struct counts *c, enum record_kind kind, const char *policy,
                           const char *code)
{
    struct count *e = find(c, kind, policy, code);
    if (e == NULL && c->n >= COUNTS_MAX) {
        policy = code = "other"; /* at most one such a kind */
        e = find(c, kind, policy, code);
    }
    if (e)
        return e;
    e = &c->list[c->n++];
    memset(e, 0, sizeof *e);
    e->kind = kind;
    snprintf(e->policy, sizeof e->policy, "%s", policy);
    snprintf(e->code, sizeof e->code, "%s", code);
    return e;
}

void counts_note(struct counts *c, const struct record_view *v, const struct render_source *from)
{
    char policy[COUNTS_NAME_MAX + 1], code[COUNTS_CODE_MAX + 1];
    struct slice named = v->field[RF_POLICY], status = v->field[RF_STATUS];
    label(policy, sizeof policy, from->policy[0] ? slice_str(from->policy) : named);
    label(code, sizeof code, v->field[RF_CODE]);
    if (v->kind == RECORD_COMPLETED && code[0] == 0 && status.n == 3)
        snprintf(code, sizeof code, "%cxx", status.p[0]);
    struct count *e = entry(c, v->kind, policy, code);
    e->records++;
    e->count += number(v->field[RF_COUNT]);
    e->up += number(v->field[RF_UP]);
    e->down += number(v->field[RF_DOWN]);
    c->changed = true;
}

void counts_put(struct msg *m, const struct counts *c)
{
    msg_put_u32(m, (uint32_t)c->n);
    for (size_t i = 0; i < c->n; i++) {
        const struct count *e = &c->list[i];
        msg_put_u8(m, (uint8_t)e->kind);
        msg_put_str(m, e->policy);
        msg_put_str(m, e->code);
        msg_put_u64(m, e->records);
        msg_put_u64(m, e->count);
        msg_put_u64(m, e->up);
        msg_put_u64(m, e->down);
    }
}

int counts_get(struct msg *m, struct counts *c)
{
    uint32_t n;
    c->n = 0;
    if (msg_get_u32(m, &n) < 0 || n > ARRAY_LEN(c->list))
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        struct count *e = &c->list[i];
        uint8_t kind;
        if (msg_get_u8(m, &kind) < 0 || kind == 0 || kind >= RECORD_KINDS ||
            msg_get_str(m, e->policy, sizeof e->policy) < 0 ||
            msg_get_str(m, e->code, sizeof e->code) < 0 || msg_get_u64(m, &e->records) < 0 ||
            msg_get_u64(m, &e->count) < 0 || msg_get_u64(m, &e->up) < 0 ||
            msg_get_u64(m, &e->down) < 0)
            return -1;
        e->kind = (enum record_kind)kind;
    }
    c->n = n;
    return 0;
}
