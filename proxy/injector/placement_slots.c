/* Walks JSON with a stack of bounded depth, and forms field by field, and checks that every mark
 * lies in a field that the rule names. */
#include "placement_slots.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 32 };

struct level {
    bool array;
    size_t index;
    struct slice key; /* as written */
};

struct walk {
    const char *at, *end;
    const struct credential *credential;
    const struct injector_channel_marks *marks;
    struct level level[DEPTH_MAX];
    size_t depth;
};

static bool has_mark(const struct injector_channel_marks *marks, struct slice text)
{
    for (unsigned i = 0; i < marks->n; i++)
        if (slice_find_slice(text, slice_str(marks->text[i])) >= 0)
            return true;
    return false;
}

/* The next of the fields, which stand one a line. */
static bool next_slot(const char **rest, struct slice *ret)
{
    if (**rest == 0)
        return false;
    *ret = (struct slice){*rest, strcspn(*rest, "\n")};
    *rest += ret->n + ((*rest)[ret->n] == '\n');
    return true;
}

/* ---- JSON ---- */

/* One token of a pointer (RFC 6901), which is written with ~0 and ~1, against a name. */
static bool token_is(struct slice token, struct slice name)
{
    size_t k = 0;
    for (size_t i = 0; i < token.n; i++, k++) {
        char c = token.p[i];
        if (c == '~' && i + 1 < token.n)
            c = token.p[++i] == '1' ? '/' : '~';
        if (k == name.n || name.p[k] != c)
            return false;
    }
    return k == name.n;
}

static bool pointer_is_here(const struct walk *w, struct slice pointer)
{
    for (size_t d = 0; d < w->depth; d++) {
        char number[24];
        const struct level *l = &w->level[d];
        if (pointer.n == 0)
            return false;
        pointer = (struct slice){pointer.p + 1, pointer.n - 1}; /* its slash */
        ssize_t slash = slice_find(pointer, '/');
        struct slice token = {pointer.p, slash < 0 ? pointer.n : (size_t)slash};
        snprintf(number, sizeof number, "%zu", l->index);
        if (l->array ? !slice_eq_str(token, number) : !token_is(token, l->key))
            return false;
        pointer = (struct slice){pointer.p + token.n, pointer.n - token.n};
    }
    return pointer.n == 0;
}

static bool is_named(const struct walk *w)
{
    const char *rest = w->credential->slots;
    struct slice slot;
    while (next_slot(&rest, &slot))
        if (slot.p[0] == '/' && pointer_is_here(w, slot))
            return true;
    return false;
}

static void skip_blanks(struct walk *w)
{
    while (w->at < w->end && strchr(" \t\r\n", *w->at) && *w->at)
        w->at++;
}

static bool take(struct walk *w, char c)
{
    bool is = w->at < w->end && *w->at == c;
    w->at += is;
    return is;
}

static bool is_hex(char c)
{
    c = ascii_lower(c);
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* What stands between the quotes, as written. */
static bool take_string(struct walk *w, struct slice *ret)
{
    if (!take(w, '"'))
        return false;
    ret->p = w->at;
    while (w->at < w->end && *w->at != '"') {
        if ((unsigned char)*w->at < 0x20)
            return false;
        if (*w->at++ != '\\')
            continue;
        if (w->at == w->end || *w->at == 0 || !strchr("\"\\/bfnrtu", *w->at))
            return false;
        if (*w->at++ == 'u') {
            for (int i = 0; i < 4; i++, w->at++)
                if (w->at == w->end || !is_hex(*w->at))
                    return false;
        }
    }
    ret->n = (size_t)(w->at - ret->p);
    return take(w, '"');
}

static bool take_word(struct walk *w)
{
    static const char *const words[] = {"true", "false", "null"};
    size_t left = (size_t)(w->end - w->at), n = 0;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (slice_starts((struct slice){w->at, left}, slice_str(words[i]))) {
            w->at += strlen(words[i]);
            return true;
        }
    while (n < left && w->at[n] && strchr("+-.eE0123456789", w->at[n]))
        n++;
    w->at += n;
    return n > 0;
}

/* A key and its colon, where an object goes on. */
static bool take_key(struct walk *w)
{
    struct level *l = &w->level[w->depth - 1];
    skip_blanks(w);
    if (l->array)
        return true;
    if (!take_string(w, &l->key) || has_mark(w->marks, l->key))
        return false;
    skip_blanks(w);
    return take(w, ':');
}

/* After a value: what comes next in what holds it, and the ends of those that end here. -1: it is
 * no JSON, 0: all is over, 1: another value. */
static int after_value(struct walk *w)
{
    while (w->depth > 0) {
        struct level *l = &w->level[w->depth - 1];
        skip_blanks(w);
        if (take(w, ',')) {
            l->index++;
            return take_key(w) ? 1 : -1;
        }
        if (!take(w, l->array ? ']' : '}'))
            return -1;
        w->depth--;
    }
    skip_blanks(w);
    return w->at == w->end ? 0 : -1;
}

/* As after_value, of the value that begins here. */
static int take_value(struct walk *w)
{
    struct slice text;
    skip_blanks(w);
    bool array = w->at < w->end && *w->at == '[';
    if (array || (w->at < w->end && *w->at == '{')) {
        w->at++;
        skip_blanks(w);
        if (take(w, array ? ']' : '}'))
            return after_value(w);
        if (w->depth == DEPTH_MAX)
            return -1;
        w->level[w->depth++] = (struct level){.array = array};
        return take_key(w) ? 1 : -1;
    }
    if (w->at == w->end || *w->at != '"')
        return take_word(w) ? after_value(w) : -1;
    if (!take_string(w, &text))
        return -1;
    /* an escape before a mark would eat its first letters */
    if (has_mark(w->marks, text) && (!is_named(w) || slice_find(text, '\\') >= 0))
        return -1;
    return after_value(w);
}

static bool json_holds(const struct credential *c, const struct injector_channel_marks *marks,
                       struct slice body)
{
    struct walk w = {.at = body.p, .end = body.p + body.n, .credential = c, .marks = marks};
    int r;
    do
        r = take_value(&w);
    while (r > 0);
    return r == 0;
}

/* ---- forms ---- */

static bool field_is_named(const struct credential *c, struct slice name)
{
    const char *rest = c->slots;
    struct slice slot;
    while (next_slot(&rest, &slot))
        if (slot.p[0] != '/' && slice_eq(slot, name))
            return true;
    return false;
}

/* Some readers split at ';' too: a field with a mark has none. */
static bool form_holds(const struct credential *c, const struct injector_channel_marks *marks,
                       struct slice body)
{
    while (body.n > 0) {
        ssize_t and = slice_find(body, '&');
        struct slice part = {body.p, and < 0 ? body.n : (size_t) and };
        ssize_t is = slice_find(part, '=');
        struct slice name = {part.p, is < 0 ? part.n : (size_t)is};
        if (has_mark(marks, part) &&
            (is < 0 || !field_is_named(c, name) || slice_find(part, ';') >= 0))
            return false;
        size_t gone = part.n + (and >= 0);
        body = (struct slice){body.p + gone, body.n - gone};
    }
    return true;
}

bool placement_slots_hold(const struct credential *c, enum placement_body kind,
                          const struct injector_channel_marks *marks, struct slice body)
{
    if (!has_mark(marks, body))
        return true;
    return kind == PLACEMENT_JSON ? json_holds(c, marks, body) : form_holds(c, marks, body);
}

/* ---- beside it ---- */

enum { FIELDS_MAX = 64 };

struct named {
    struct slice name, text; /* text.p NULL: it is none */
};

struct fields {
    struct named list[FIELDS_MAX];
    size_t n;
};

static const struct named *find_field(const struct fields *all, struct slice name)
{
    for (size_t i = 0; i < all->n; i++)
        if (slice_eq(all->list[i].name, name))
            return &all->list[i];
    return NULL;
}

static bool is_mark(const struct injector_channel_marks *marks, struct slice text)
{
    for (unsigned i = 0; i < marks->n; i++)
        if (slice_eq_str(text, marks->text[i]))
            return true;
    return false;
}

/* The slots that are there have a mark and nothing else. -1: one has not, else how many. */
static int marked_slots(const struct credential *c, enum placement_body kind,
                        const struct injector_channel_marks *marks, const struct fields *all)
{
    const char *rest = c->slots;
    struct slice slot;
    int n = 0;
    while (next_slot(&rest, &slot)) {
        bool pointer = slot.p[0] == '/';
        if (pointer != (kind == PLACEMENT_JSON))
            continue;
        const struct named *f = find_field(all, (struct slice){slot.p + pointer, slot.n - pointer});
        if (f && (f->text.p == NULL || !is_mark(marks, f->text)))
            return -1;
        n += f != NULL;
    }
    return n;
}

/* What any reader takes for itself. */
static bool text_plain(struct slice text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] < ' ' || text.p[i] > '~')
            return false;
    return text.p != NULL;
}

/* One body of the rule's: from *rest up to the line "|" or the end each "NAME=TEXT" is there, a
 * "?NAME" may be. -1: it is not so, else how many were. */
static int described(const char **rest, const struct fields *all)
{
    struct slice want;
    int n = 0;
    bool ok = true;
    while (next_slot(rest, &want) && want.p[0] != '|') {
        bool free = want.p[0] == '?';
        ssize_t eq = free ? -1 : slice_find(want, '=');
        struct slice name = {want.p + free, (eq < 0 ? want.n : (size_t)eq) - free};
        const struct named *f = find_field(all, name);
        if (free)
            ok = ok && (f == NULL || text_plain(f->text));
        else
            ok = ok && f && f->text.p &&
                 slice_eq(f->text, (struct slice){want.p + eq + 1, want.n - (size_t)eq - 1});
        n += f != NULL;
    }
    return ok ? n : -1;
}

/* Nothing stands there but what the rule names. */
static enum placement_described is_described(const struct credential *c, enum placement_body kind,
                                             const struct injector_channel_marks *marks,
                                             const struct fields *all)
{
    const char *rest = c->beside;
    int slots = marked_slots(c, kind, marks, all);
    int fields = described(&rest, all);
    if (slots > 0 && fields >= 0 && (size_t)(slots + fields) == all->n)
        return PLACEMENT_WITH_MARK;
    fields = *rest ? described(&rest, all) : -1;
    return slots == 0 && fields >= 0 && (size_t)fields == all->n ? PLACEMENT_WITHOUT
                                                                 : PLACEMENT_NOT_DESCRIBED;
}

static bool json_fields(const json_t *v, struct fields *ret)
{
    const char *key;
    json_t *item;
    if (!json_is_object(v) || json_object_size(v) > FIELDS_MAX)
        return false;
    json_object_foreach((json_t *)(uintptr_t)v, key, item) ret->list[ret->n++] =
        (struct named){slice_str(key), {json_string_value(item), json_string_length(item)}};
    return true;
}

/* Names and what stands beside have no escapes; what else is there may. */
static bool form_fields(struct slice body, struct fields *ret)
{
    while (body.n > 0) {
        ssize_t and = slice_find(body, '&');
        struct slice part = {body.p, and < 0 ? body.n : (size_t) and };
        ssize_t is = slice_find(part, '=');
        size_t gone = part.n + (and >= 0);
        body = (struct slice){body.p + gone, body.n - gone};
        if (part.n == 0)
            continue;
        struct slice name = {part.p, is < 0 ? part.n : (size_t)is};
        if (is <= 0 || ret->n == FIELDS_MAX || slice_find(part, ';') >= 0 || find_field(ret, name))
            return false;
        ret->list[ret->n++] = (struct named){name, {part.p + is + 1, part.n - (size_t)is - 1}};
    }
    return true;
}

enum placement_described placement_slots_beside(const struct credential *c,
                                                enum placement_body kind,
                                                const struct injector_channel_marks *marks,
                                                struct slice body)
{
    struct fields all = {.n = 0};
    if (kind == PLACEMENT_NO_BODY)
        return PLACEMENT_NOT_DESCRIBED;
    json_t *v =
        kind == PLACEMENT_JSON ? json_loadb(body.p, body.n, JSON_REJECT_DUPLICATES, NULL) : NULL;
    bool ok = kind == PLACEMENT_JSON ? json_fields(v, &all) : form_fields(body, &all);
    enum placement_described r = ok ? is_described(c, kind, marks, &all) : PLACEMENT_NOT_DESCRIBED;
    json_decref(v);
    return r;
}
