/* A reply with secrets in it, read and written with placeholders: what its forms have in common,
 * and JSON. */
#include "captured_internal.h"

#include "aws_sign.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

const char *const captured_parts[CAPTURED_PARTS] = {"AccessKeyId", "SecretAccessKey",
                                                    "SessionToken"};

/* ---- what is found ---- */

/* What can stand in a header field or a form. */
static bool value_ok(struct slice s)
{
    if (s.n > CAPTURED_VALUE_MAX || s.p[0] == ' ' || s.p[s.n - 1] == ' ')
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < 0x20 || s.p[i] >= 0x7f)
            return false;
    return true;
}

/* One name has one value in a reply. */
static int settle(const struct captured_search *s, struct captured_field *f, struct slice value)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->fields[i].secret, f->secret) == 0 && s->fields[i].value &&
            !secret_eq(s->fields[i].value, value))
            return err_set(s->err, ERR_PARSE, "two values for '%s' in one reply", f->secret);
    if (f->value == NULL && (f->value = secret_new(value.p, value.n)) == NULL)
        return err_set(s->err, ERR_INTERNAL, "out of memory");
    return 0;
}

int captured_take(const struct captured_search *s, struct captured_field *f, struct slice text)
{
    if (text.p && text.n < CAPTURED_VALUE_MIN)
        return 0;
    if (text.p == NULL || !value_ok(text))
        return err_set(s->err, ERR_PARSE, "'%s' is not the text of a secret", f->path);
    return settle(s, f, text);
}

int captured_take_pair(const struct captured_search *s, struct captured_field *f,
                       const struct slice part[CAPTURED_PARTS])
{
    struct secret *pair = NULL;
    bool ok = true;
    for (size_t i = 0; i < CAPTURED_PARTS; i++)
        ok = ok && part[i].p && part[i].n >= CAPTURED_VALUE_MIN && value_ok(part[i]);
    if (ok)
        pair = aws_pair_pack(part[0], part[1], part[2]);
    if (pair == NULL)
        return err_set(s->err, ERR_PARSE, "'%s' is not the text of a secret, nor an AWS key",
                       f->path);
    int r = settle(s, f, secret_slice(pair));
    secret_unref(pair);
    return r;
}

/* What a name ends with: of "x:token", "a.token" and "a[token]" the token. */
static struct slice last_of(struct slice name)
{
    if (name.n && name.p[name.n - 1] == ']')
        name.n--;
    for (size_t i = name.n; i > 0; i--)
        if (strchr(".:[", name.p[i - 1]))
            return (struct slice){name.p + i, name.n - i};
    return name;
}

/* The same word as another program writes it: accessToken, access-token, Access_Token. */
static bool same_word(struct slice a, struct slice b)
{
    size_t i = 0, k = 0;
    for (;;) {
        while (i < a.n && (a.p[i] == '_' || a.p[i] == '-'))
            i++;
        while (k < b.n && (b.p[k] == '_' || b.p[k] == '-'))
            k++;
        if (i == a.n || k == b.n)
            return i == a.n && k == b.n;
        if (ascii_lower(a.p[i++]) != ascii_lower(b.p[k++]))
            return false;
    }
}

/* Tokens by their names in every answer of OAuth's and OpenID's (RFC 6749, 5.1). A server may give
 * more of them than the rule's author knew, if whoever asks wants that (`offline_token=true`). */
static bool is_token(struct slice word)
{
    static const char *const tokens[] = {"access_token", "refresh_token", "id_token"};
    for (size_t i = 0; i < ARRAY_LEN(tokens); i++)
        if (same_word(word, slice_str(tokens[i])))
            return true;
    return false;
}

bool captured_missed(const struct captured_search *s, struct slice name, struct slice value)
{
    struct slice last = last_of(name);
    if (value.n >= CAPTURED_VALUE_MIN && is_token(last))
        return true;
    for (size_t i = 0; value.n >= CAPTURED_VALUE_MIN && i < s->n; i++) {
        const char *dot = strrchr(s->fields[i].path, '.');
        if (last.n && same_word(last, slice_str(dot ? dot + 1 : s->fields[i].path)))
            return true;
    }
    return false;
}

int captured_say_missed(const struct captured_search *s, struct slice name)
{
    return err_set(s->err, ERR_PARSE, "'%.*s' stands where no path of the rule's capture leads",
                   (int)(name.n < 80 ? name.n : 80), name.p);
}

/* ---- what is written ---- */

static int longest_first(const void *a, const void *b)
{
    size_t n = ((const struct slice *)a)->n, m = ((const struct slice *)b)->n;
    return n < m ? 1 : n > m ? -1 : 0;
}

void captured_words_of(const struct captured_field *fields, size_t n, struct captured_words *ret)
{
    *ret = (struct captured_words){.n = 0};
    for (size_t i = 0; i < n; i++) {
        struct slice value =
                         fields[i].value ? secret_slice(fields[i].value) : (struct slice){"", 0},
                     by = slice_str(fields[i].placeholder);
        struct aws_pair pair;
        if (value.n == 0)
            continue;
        if (aws_pair_open(value, &pair) < 0) { /* no line ends in a text */
            ret->word[ret->n].value = value;
            ret->word[ret->n++].by = by;
            continue;
        }
        const struct slice part[CAPTURED_PARTS] = {pair.id, pair.key, pair.token};
        for (size_t k = 0; k < CAPTURED_PARTS; k++) {
            ret->word[ret->n].value = part[k];
            ret->word[ret->n++].by = by;
        }
    }
    qsort(ret->word, ret->n, sizeof ret->word[0], longest_first);
}

bool captured_holds(const struct captured_words *w, struct slice text)
{
    for (size_t i = 0; i < w->n; i++)
        if (slice_find_slice(text, w->word[i].value) >= 0)
            return true;
    return false;
}

static int replace(struct buf *out, struct slice text, struct slice value, struct slice by)
{
    ssize_t at;
    while ((at = slice_find_slice(text, value)) >= 0) {
        size_t used = (size_t)at + value.n;
        if (buf_append(out, text.p, (size_t)at) < 0 || buf_append_slice(out, by) < 0)
            return -1;
        text = (struct slice){text.p + used, text.n - used};
    }
    return buf_append_slice(out, text);
}

/* Once each, so that a placeholder that holds one is no endless work. */
int captured_replace(const struct captured_words *w, struct slice text, struct buf *out)
{
    struct buf now, next;
    buf_init_wiped(&now, CAPTURED_WRITTEN_MAX);
    int r = buf_append_slice(&now, text);
    for (size_t i = 0; r == 0 && i < w->n; i++) {
        if (slice_find_slice(buf_slice(&now), w->word[i].value) < 0)
            continue;
        buf_init_wiped(&next, CAPTURED_WRITTEN_MAX);
        r = replace(&next, buf_slice(&now), w->word[i].value, w->word[i].by);
        buf_free(&now);
        now = next;
    }
    if (r == 0)
        r = buf_append_slice(out, buf_slice(&now));
    buf_free(&now);
    return r;
}

int captured_rewrite(struct slice body, enum captured_form form, struct captured_field *fields,
                     size_t n, struct buf *out, struct err *err)
{
    struct captured_search s = {fields, n, err};
    for (size_t i = 0; i < n; i++)
        fields[i].value = NULL;
    switch (form) {
    case CAPTURED_JSON:
        return captured_json(body, &s, out);
    case CAPTURED_FORM:
        return captured_form(body, &s, out);
    case CAPTURED_XML:
        return captured_xml(body, &s, out);
    }
    return err_set(err, ERR_PARSE, "it is in no form that is read");
}

/* ---- JSON ---- */

static struct slice text_of(const json_t *v)
{
    return (struct slice){json_string_value(v), json_string_length(v)};
}

static int take(const struct captured_search *s, struct captured_field *f, const json_t *v)
{
    struct slice part[CAPTURED_PARTS];
    if (json_is_null(v))
        return 0;
    if (!json_is_object(v))
        return captured_take(s, f, text_of(v));
    for (size_t i = 0; i < CAPTURED_PARTS; i++)
        part[i] = text_of(json_object_get(v, captured_parts[i]));
    return captured_take_pair(s, f, part);
}

static int look(const struct captured_search *s, struct captured_field *f, const json_t *v,
                const char *path)
{
    const char *key;
    json_t *item;
    size_t i, len = strcspn(path, ".");
    bool any = path[0] == '*';
    if (*path == 0)
        return take(s, f, v);
    const char *rest = path[len] ? path + len + 1 : path + len;
    if (json_is_object(v)) {
        json_object_foreach((json_t *)v, key, item) if ((any || (strlen(key) == len &&
                                                                 memcmp(key, path, len) == 0)) &&
                                                        look(s, f, item, rest) < 0) return -1;
        return 0;
    }
    if (any && json_is_array(v))
        json_array_foreach(v, i, item) if (look(s, f, item, rest) < 0) return -1;
    return 0;
}

static int clean_text(json_t *v, const struct captured_words *w)
{
    struct buf text;
    if (!captured_holds(w, text_of(v)))
        return 0;
    buf_init_wiped(&text, CAPTURED_WRITTEN_MAX);
    int r = captured_replace(w, text_of(v), &text);
    if (r == 0)
        r = json_string_setn(v, buf_slice(&text).p, buf_len(&text));
    buf_free(&text);
    return r;
}

static int clean(json_t *v, const struct captured_words *w)
{
    const char *key;
    json_t *item;
    size_t i;
    if (json_is_string(v))
        return clean_text(v, w);
    if (json_is_object(v))
        json_object_foreach(v, key, item) if (captured_holds(w, slice_str(key)) ||
                                              clean(item, w) < 0) return -1;
    if (json_is_array(v))
        json_array_foreach(v, i, item) if (clean(item, w) < 0) return -1;
    return 0;
}

/* Nothing is left under a name that is captured elsewhere; name: of what holds v, of an array of
 * texts too. */
static int none_missed(const struct captured_search *s, const struct captured_words *w,
                       struct slice name, const json_t *v)
{
    const char *key;
    json_t *item;
    size_t i;
    if (json_is_string(v) && captured_missed(s, name, text_of(v)) && !captured_holds(w, text_of(v)))
        return captured_say_missed(s, name);
    for (i = 1; json_is_object(v) && i < CAPTURED_PARTS; i++) {
        struct slice part = text_of(json_object_get(v, captured_parts[i]));
        if (part.p && captured_missed(s, name, part) && !captured_holds(w, part))
            return captured_say_missed(s, name);
    }
    if (json_is_object(v))
        json_object_foreach((json_t *)v, key,
                            item) if (none_missed(s, w, slice_str(key), item) < 0) return -1;
    if (json_is_array(v))
        json_array_foreach(v, i, item) if (none_missed(s, w, name, item) < 0) return -1;
    return 0;
}

static int append(const char *p, size_t n, void *arg)
{
    return buf_append(arg, p, n);
}

int captured_json(struct slice body, const struct captured_search *s, struct buf *out)
{
    json_t *v = json_loadb(body.p, body.n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    struct captured_words words;
    int r = v ? 0 : err_set(s->err, ERR_PARSE, "it is not JSON");
    for (size_t i = 0; r == 0 && i < s->n; i++)
        r = look(s, &s->fields[i], v, s->fields[i].path);
    captured_words_of(s->fields, s->n, &words);
    if (r == 0)
        r = none_missed(s, &words, (struct slice){"", 0}, v);
    if (r == 0 && (clean(v, &words) < 0 ||
                   json_dump_callback(v, append, out, JSON_COMPACT | JSON_ENCODE_ANY) < 0))
        r = err_set(s->err, ERR_LIMIT, "it cannot be written with placeholders");
    json_decref(v);
    return r;
}
