/* Keeps the bounded table of counts, in which the policy with most entries gives way first, and
 * writes it into a message for the parent and reads it back. */
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

/* ---- the table ---- */

static struct count *find(struct counts *c, enum record_kind kind, size_t owner, const char *code)
{
    for (size_t i = 0; i < c->n; i++) {
        struct count *e = &c->list[i];
        if (e->kind == kind && e->owner == owner && strcmp(e->code, code) == 0)
            return e;
    }
    return NULL;
}

/* 0: "other" */
static size_t policy_of(struct counts *c, const char *name, bool named)
{
    if (c->n_policies == 0)
        snprintf(c->policy[c->n_policies++].name, sizeof c->policy[0].name, "other");
    for (size_t i = 0; i < c->n_policies; i++)
        if (strcmp(c->policy[i].name, name) == 0)
            return i;
    if (c->n_policies >= (named ? COUNTS_NAMED : COUNTS_POLICIES))
        return 0;
    snprintf(c->policy[c->n_policies].name, sizeof c->policy[0].name, "%s", name);
    return c->n_policies++;
}

static struct count *add(struct counts *c, enum record_kind kind, size_t owner, const char *code)
{
    struct count *e = &c->list[c->n++];
    *e = (struct count){.kind = kind, .owner = owner};
    memcpy(e->policy, c->policy[owner].name, sizeof e->policy);
    snprintf(e->code, sizeof e->code, "%s", code);
    c->policy[owner].series++;
    return e;
}

static void take_out(struct counts *c, struct count *e)
{
    c->policy[e->owner].series--;
    c->n--;
    memmove(e, e + 1, (size_t)(&c->list[c->n] - e) * sizeof *e);
}

/* What is rarest of this policy becomes "other" of its kind. -> whether that made room. */
static bool fold(struct counts *c, size_t owner)
{
    struct count *least = NULL, *to;
    for (size_t i = 0; i < c->n; i++) {
        struct count *e = &c->list[i];
        if (e->owner == owner && strcmp(e->code, "other") != 0 &&
            (least == NULL || e->records < least->records))
            least = e;
    }
    if (least == NULL)
        return false;
    to = find(c, least->kind, owner, "other");
    if (to == NULL) {
        snprintf(least->code, sizeof least->code, "other");
        return fold(c, owner); /* at most once a kind */
    }
    to->records += least->records;
    to->count += least->count;
    to->up += least->up;
    to->down += least->down;
    take_out(c, least);
    return true;
}

static bool make_room(struct counts *c, size_t owner)
{
    size_t most = owner;
    if (c->n < COUNTS_MAX)
        return true;
    for (size_t i = 1; i < c->n_policies; i++)
        if (c->policy[i].series > c->policy[most].series)
            most = i;
    return fold(c, most);
}

static struct count *entry(struct counts *c, enum record_kind kind, size_t owner, const char *code)
{
    struct count *e = owner ? find(c, kind, owner, code) : NULL;
    bool poor = owner && c->policy[owner].series < COUNTS_MAX / c->n_policies;
    if (e)
        return e;
    if (owner && (c->n < COUNTS_MAX || (poor && make_room(c, owner))))
        return add(c, kind, owner, code);
    if (owner && (e = find(c, kind, owner, "other")) != NULL)
        return e;
    if (owner && make_room(c, owner)) {
        e = find(c, kind, owner, "other"); /* that may have made it */
        return e ? e : add(c, kind, owner, "other");
    }
    e = find(c, kind, 0, "other"); /* at most one a kind, behind COUNTS_MAX or not */
    return e ? e : add(c, kind, 0, "other");
}

void counts_note(struct counts *c, const struct record_view *v, const struct render_source *from)
{
    char policy[COUNTS_NAME_MAX + 1], code[COUNTS_CODE_MAX + 1];
    struct slice named = v->field[RF_POLICY], status = v->field[RF_STATUS];
    label(policy, sizeof policy, from->policy[0] ? slice_str(from->policy) : named);
    label(code, sizeof code, v->field[RF_CODE]);
    if (v->kind == RECORD_COMPLETED && code[0] == 0 && status.n == 3)
        snprintf(code, sizeof code, "%cxx", status.p[0]);
    struct count *e =
        entry(c, v->kind, policy_of(c, policy, from->policy[0] == 0 && named.n > 0), code);
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
