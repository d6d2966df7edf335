/* Takes the listed claims out of a token and writes a token of them. Its signature is not checked:
 * it came over verified TLS, and what is made of it is believed by nobody but its own program. */
#include "captured_token.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "capture.h"

enum { NAME_BYTES = 256 };

/* The claims of a token of three parts; NULL: it is none. New reference. */
static json_t *claims_of(struct slice value)
{
    ssize_t first = slice_find(value, '.');
    struct slice rest = {value.p + first + 1, value.n - (size_t)(first + 1)};
    ssize_t second = first > 0 ? slice_find(rest, '.') : -1;
    struct buf text;
    json_t *v = NULL;
    if (second <= 0 || (size_t)second + 1 == rest.n ||
        slice_find((struct slice){rest.p + second + 1, rest.n - (size_t)second - 1}, '.') >= 0)
        return NULL;
    buf_init_wiped(&text, CAPTURED_VALUE_MAX);
    if (base64url_decode(&text, (struct slice){rest.p, (size_t)second}) == 0)
        v = json_loadb((const char *)buf_data(&text), buf_len(&text), JSON_REJECT_DUPLICATES, NULL);
    buf_free(&text);
    if (v && !json_is_object(v)) {
        json_decref(v);
        v = NULL;
    }
    return v;
}

/* One step of a pointer, with ~0 and ~1 undone; how much of the text it was. */
static size_t step(const char *at, size_t n, char name[NAME_BYTES])
{
    size_t i = 0, k = 0;
    for (; i < n && at[i] != '/' && k + 1 < NAME_BYTES; i++) {
        char c = at[i];
        if (c == '~' && i + 1 < n)
            c = at[++i] == '1' ? '/' : '~';
        name[k++] = c;
    }
    name[k] = 0;
    return i;
}

/* As an identifier, a plan or an address is: nothing that a reader could take for more. */
static bool is_plain(const json_t *v)
{
    static const char more[] = " ._@:/+~|=-";
    const char *s = json_string_value(v);
    if (json_is_integer(v) || json_is_boolean(v))
        return true;
    if (s == NULL || json_string_length(v) > CAPTURED_CLAIM_MAX)
        return false;
    for (; *s; s++)
        if (!ascii_is_alnum(*s) && !strchr(more, *s))
            return false;
    return true;
}

/* The claim at the place, put at the same one. */
static void carry(const json_t *from, json_t *to, const char *place, size_t n)
{
    char name[NAME_BYTES];
    bool pointer = place[0] == '/';
    for (;;) {
        if (pointer) {
            size_t used = step(place + 1, n - 1, name);
            place += used + 1;
            n -= used + 1;
        } else {
            snprintf(name, sizeof name, "%.*s", (int)n, place);
            n = 0;
        }
        json_t *v = json_object_get(from, name);
        if (n == 0) {
            if (v && is_plain(v) && json_object_set(to, name, v) < 0)
                abort(); /* memory is out */
            return;
        }
        if (!json_is_object(v))
            return;
        json_t *deeper = json_object_get(to, name);
        if (deeper == NULL &&
            ((deeper = json_object()) == NULL || json_object_set_new(to, name, deeper) < 0))
            abort(); /* memory is out */
        if (!json_is_object(deeper))
            return;
        from = v;
        to = deeper;
    }
}

static int put(struct buf *out, struct slice claims, const char *placeholder)
{
    return base64url_append(out, SLICE("{\"alg\":\"none\",\"typ\":\"JWT\"}")) |
           buf_append_str(out, ".") | base64url_append(out, claims) | buf_append_str(out, ".") |
           buf_append(out, placeholder, strlen(placeholder) + 1);
}

bool captured_token(struct slice value, const char *claims, const char *placeholder,
                    bool (*secret)(void *arg, struct slice text), void *arg,
                    char to[CAPTURED_TOKEN_MAX])
{
    json_t *all = claims_of(value), *some = json_object();
    struct buf out;
    if (some == NULL)
        abort(); /* memory is out */
    while (all && *claims) {
        size_t n = strcspn(claims, " ");
        carry(all, some, claims, n);
        claims += n + (claims[n] == ' ');
    }
    char *text = all ? json_dumps(some, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    buf_init(&out, CAPTURED_TOKEN_MAX);
    bool ok = text && !secret(arg, slice_str(text)) && put(&out, slice_str(text), placeholder) == 0;
    if (ok)
        memcpy(to, buf_data(&out), buf_len(&out));
    buf_free(&out);
    free(text);
    json_decref(some);
    json_decref(all);
    return ok;
}
