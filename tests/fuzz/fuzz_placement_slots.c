/* Where placeholders stand in a body: what is taken to hold them in the named fields alone is read
 * in the same way by another JSON library, and by a plain reading of a form. First byte: the kind
 * of body. */
#include "placement_slots.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct credential credential = {.slots = "/a\n/b/0\n/c~1d/e~0\nuser\npass",
                                             .beside = "x=a\n?y\n|\nz=1"};
static const char *const pointers[] = {"/a", "/b/0", "/c~1d/e~0"};
static const struct injector_channel_marks marks = {.n = 2, .text = {"MARK-ONE", "TWO+MARK"}};

static void require(bool right)
{
    if (!right)
        abort();
}

static bool marked(const char *text, size_t n)
{
    for (unsigned i = 0; i < marks.n; i++)
        if (slice_find_slice((struct slice){text, n}, slice_str(marks.text[i])) >= 0)
            return true;
    return false;
}

static void must_be_named(const json_t *v, const char *at)
{
    bool named = false;
    for (size_t i = 0; i < ARRAY_LEN(pointers); i++)
        named |= strcmp(at, pointers[i]) == 0;
    require(named || !marked(json_string_value(v), json_string_length(v)));
}

/* at: a pointer; names in it are written with ~0 and ~1. */
static void walk(const json_t *v, const char *at)
{
    char below[1024];
    const char *key;
    json_t *child;
    size_t i;
    if (json_is_string(v))
        must_be_named(v, at);
    json_array_foreach(v, i, child)
    {
        snprintf(below, sizeof below, "%s/%zu", at, i);
        walk(child, below);
    }
    json_object_foreach((json_t *)(uintptr_t)v, key, child)
    {
        size_t n = (size_t)snprintf(below, sizeof below, "%s/", at);
        require(!marked(key, strlen(key)));
        for (const char *k = key; *k && n + 3 < sizeof below; k++) {
            if (*k == '~' || *k == '/')
                below[n++] = '~';
            below[n++] = *k == '~' ? '0' : *k == '/' ? '1' : *k;
        }
        below[n < sizeof below ? n : sizeof below - 1] = 0;
        walk(child, below);
    }
}

/* Escapes may spell a mark that nobody fills: only what is written plainly is compared. */
static void json_is(struct slice body)
{
    if (slice_find(body, '\\') >= 0)
        return;
    json_t *v = json_loadb(body.p, body.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (v)
        walk(v, "");
    json_decref(v);
}

static void form_is(struct slice body)
{
    while (body.n > 0) {
        size_t n = 0;
        while (n < body.n && body.p[n] != '&')
            n++;
        if (marked(body.p, n))
            require(slice_starts((struct slice){body.p, n}, SLICE("user=")) ||
                    slice_starts((struct slice){body.p, n}, SLICE("pass=")));
        n += n < body.n;
        body = (struct slice){body.p + n, body.n - n};
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct slice body = {(const char *)data + 1, size - 1};
    enum placement_body kind = data[0] & 1 ? PLACEMENT_JSON : PLACEMENT_FORM;
    bool holds = placement_slots_hold(&credential, kind, &marks, body);
    enum placement_described described = placement_slots_beside(&credential, kind, &marks, body);
    require(described != PLACEMENT_WITHOUT || !marked(body.p, body.n) || !holds);
    require(holds || marked(body.p, body.n));
    if (holds && kind == PLACEMENT_JSON)
        json_is(body);
    else if (holds)
        form_is(body);
    return 0;
}
