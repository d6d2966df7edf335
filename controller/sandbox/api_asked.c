/* Reads target and body for the API's routes: a key or parameter that is not listed, and a value of
 * another type or beyond its bounds, is an error that names it. */
#include "api_asked.h"

#include <ctype.h>
#include <event2/buffer.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "slice.h"

/* ---- the target ---- */

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent-decoding of a query's part; no NUL may come of it. NULL: malformed, or out of memory. */
static char *decode(struct slice s)
{
    char *to = malloc(s.n + 1);
    size_t n = 0;
    for (size_t i = 0; to && i < s.n; i++) {
        int c = s.p[i] == '+' ? ' ' : (unsigned char)s.p[i];
        if (c == '%') {
            int a = i + 2 < s.n ? hex(s.p[i + 1]) : -1, b = a < 0 ? -1 : hex(s.p[i + 2]);
            c = a < 0 || b < 0 ? 0 : a * 16 + b;
            i += 2;
        }
        if (c == 0) {
            free(to);
            return NULL;
        }
        to[n++] = (char)c;
    }
    if (to)
        to[n] = 0;
    return to;
}

static int add_param(struct asked *q, struct slice part, struct err *err)
{
    ssize_t eq = slice_find(part, '=');
    if (part.n == 0)
        return 0;
    if (eq < 1 || q->n_params == ASKED_PARAMS)
        return err_set(err, ERR_PARSE, "the query must be NAME=VALUE&…, %d at most", ASKED_PARAMS);
    struct asked_param *p = &q->params[q->n_params++];
    p->name = decode((struct slice){part.p, (size_t)eq});
    p->value = decode((struct slice){part.p + eq + 1, part.n - (size_t)eq - 1});
    if (p->name == NULL || p->value == NULL)
        return err_set(err, ERR_PARSE, "the query is not percent-encoded as it should be");
    return 0;
}

int asked_read(struct asked *q, const char *uri, struct err *err)
{
    memset(q, 0, sizeof *q);
    size_t n = strcspn(uri, "?#");
    if (uri[0] != '/' || n >= sizeof q->path || uri[n] == '#')
        return err_set(err, ERR_PARSE, "the request's target is malformed or too long");
    memcpy(q->path, uri, n);
    for (const char *p = uri[n] ? uri + n + 1 : ""; *p;) {
        size_t len = strcspn(p, "&");
        if (add_param(q, (struct slice){p, len}, err) < 0)
            return -1;
        p += len + (p[len] == '&');
    }
    return 0;
}

void asked_done(struct asked *q)
{
    for (unsigned i = 0; i < q->n_params; i++) {
        free(q->params[i].name);
        free(q->params[i].value);
    }
    q->n_params = 0;
}

int asked_id(const char *text, struct err *err)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");
    if (n == 0 || n > 64 || text[n])
        return err_set(err, ERR_PARSE, "an id is 1 to 64 of a-z, 0-9 and '-'");
    return 0;
}

bool asked_fits(struct asked *q, const char *pattern)
{
    char *p = q->path, *args[ASKED_ARGS] = {NULL}, *ends[ASKED_ARGS] = {NULL};
    unsigned n = 0;
    for (; *pattern; pattern++) {
        if (*pattern != '{') {
            if (*p++ != *pattern)
                return false;
            continue;
        }
        size_t len = strcspn(p, "/");
        if (len == 0 || len > 64 || n == ASKED_ARGS)
            return false;
        args[n] = p;
        ends[n++] = p + len;
        p += len;
        pattern++; /* the } */
    }
    if (*p)
        return false;
    for (unsigned i = 0; i < n; i++) {
        *ends[i] = 0;
        q->args[i] = args[i];
    }
    return true;
}

static bool listed(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = list; *p; p += strcspn(p, " "), p += *p == ' ')
        if (strcspn(p, " ") == n && memcmp(p, name, n) == 0)
            return true;
    return false;
}

int asked_only(const struct asked *q, const char *allowed, struct err *err)
{
    for (unsigned i = 0; i < q->n_params; i++) {
        const char *name = q->params[i].name;
        if (!listed(allowed, name))
            return err_set(err, ERR_PARSE, "unknown parameter '%.64s'", name);
        for (unsigned k = 0; k < i; k++)
            if (strcmp(q->params[k].name, name) == 0 && strcmp(name, "label") != 0)
                return err_set(err, ERR_PARSE, "parameter '%.64s' comes twice", name);
    }
    return 0;
}

const char *asked_param(const struct asked *q, const char *name)
{
    for (unsigned i = 0; i < q->n_params; i++)
        if (strcmp(q->params[i].name, name) == 0)
            return q->params[i].value;
    return NULL;
}

int asked_number(const struct asked *q, const char *name, int64_t min, int64_t max,
                 int64_t fallback, int64_t *ret, struct err *err)
{
    const char *text = asked_param(q, name);
    uint64_t v = 0;
    *ret = fallback;
    if (text == NULL)
        return 0;
    if (slice_u64(slice_str(text), (uint64_t)max, &v) < 0 || v < (uint64_t)min)
        return err_set(err, ERR_PARSE, "%s must be %lld to %lld", name, (long long)min,
                       (long long)max);
    *ret = (int64_t)v;
    return 0;
}

int asked_bool(const struct asked *q, const char *name, bool *ret, struct err *err)
{
    const char *text = asked_param(q, name);
    *ret = text && strcmp(text, "true") == 0;
    if (text && !*ret && strcmp(text, "false") != 0)
        return err_set(err, ERR_PARSE, "%s must be true or false", name);
    return 0;
}

int asked_path(const char *text, struct err *err)
{
    enum { PATH_TEXT_MAX = 4095 };
    if (text == NULL || text[0] != '/' || strlen(text) > PATH_TEXT_MAX)
        return err_set(err, ERR_PARSE, "path must be absolute and at most %d bytes", PATH_TEXT_MAX);
    return 0;
}

int asked_mode(const char *text, unsigned *ret, struct err *err)
{
    if (text == NULL)
        return 0;
    if (*text == '0')
        text++;
    if (strlen(text) != 3 || strspn(text, "01234567") != 3)
        return err_set(err, ERR_PARSE, "mode must be three octal digits");
    *ret = (unsigned)((text[0] - '0') << 6 | (text[1] - '0') << 3 | (text[2] - '0'));
    return 0;
}

/* ---- the body ---- */

json_t *asked_body(struct evhttp_request *req, const char *allowed, struct err *err)
{
    struct evbuffer *in = evhttp_request_get_input_buffer(req);
    size_t n = evbuffer_get_length(in);
    json_error_t why;
    const char *p = n ? (const char *)evbuffer_pullup(in, -1) : "";
    json_t *v = json_loadb(p, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (!json_is_object(v))
        err_set(err, ERR_PARSE, "the body must be a JSON object%s%s", v ? "" : ": ",
                v ? "" : why.text);
    else if (asked_keys(v, allowed, err) == 0)
        return v;
    json_decref(v);
    return NULL;
}

int asked_keys(const json_t *o, const char *allowed, struct err *err)
{
    const char *key;
    json_t *value;
    if (!json_is_object(o))
        return err_set(err, ERR_PARSE, "an object is expected");
    json_object_foreach((json_t *)o, key, value)
    {
        if (!listed(allowed, key))
            return err_set(err, ERR_PARSE, "unknown key '%.64s'", key);
    }
    return 0;
}

int asked_text(const json_t *o, const char *key, size_t max, const char **ret, struct err *err)
{
    const json_t *v = json_object_get(o, key);
    if (v == NULL)
        return 0;
    const char *s = json_string_value(v);
    if (s == NULL || strlen(s) != json_string_length(v) || strlen(s) > max)
        return err_set(err, ERR_PARSE, "%s must be a text without NUL of at most %zu bytes", key,
                       max);
    *ret = s;
    return 0;
}

int asked_integer(const json_t *o, const char *key, int64_t min, int64_t max, int64_t *ret,
                  struct err *err)
{
    const json_t *v = json_object_get(o, key);
    if (v == NULL)
        return 0;
    if (!json_is_integer(v) || json_integer_value(v) < min || json_integer_value(v) > max)
        return err_set(err, ERR_PARSE, "%s must be a whole number, %lld to %lld", key,
                       (long long)min, (long long)max);
    *ret = json_integer_value(v);
    return 0;
}

int asked_flag(const json_t *o, const char *key, bool *ret, struct err *err)
{
    const json_t *v = json_object_get(o, key);
    if (v && !json_is_boolean(v))
        return err_set(err, ERR_PARSE, "%s must be true or false", key);
    if (v)
        *ret = json_is_true(v);
    return 0;
}

static int from_base64(struct slice text, char **ret, size_t *n)
{
    char *to = malloc(text.n / 4 * 3 + 1);
    ssize_t got = to ? base64_read(text, to, text.n / 4 * 3) : -1;
    if (got < 0) {
        free(to);
        return -1;
    }
    *ret = to;
    *n = (size_t)got;
    return 0;
}

int asked_bytes(const json_t *o, const char *key, const char *encoding, char **ret, size_t *n,
                struct err *err)
{
    const json_t *v = json_object_get(o, key);
    const char *how = "utf-8";
    *ret = NULL;
    *n = 0;
    if (asked_text(o, encoding, 16, &how, err) < 0)
        return -1;
    bool base64 = strcmp(how, "base64") == 0;
    if (!base64 && strcmp(how, "utf-8") != 0)
        return err_set(err, ERR_PARSE, "%s must be utf-8 or base64", encoding);
    if (v == NULL)
        return 0;
    if (!json_is_string(v))
        return err_set(err, ERR_PARSE, "%s must be a text", key);
    if (base64 &&
        from_base64((struct slice){json_string_value(v), json_string_length(v)}, ret, n) < 0)
        return err_set(err, ERR_PARSE, "%s is not base64", key);
    if (base64)
        return 0;
    *n = json_string_length(v);
    *ret = malloc(*n + 1);
    if (*ret == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    memcpy(*ret, json_string_value(v), *n);
    return 0;
}

static bool in_set(const char *s, size_t max, const char *more)
{
    size_t n = strlen(s);
    if (n == 0 || n > max)
        return false;
    for (; *s; s++)
        if (!ascii_is_alnum(*s) && strchr(more, *s) == NULL)
            return false;
    return true;
}

bool asked_label_ok(const char *key, const char *value)
{
    if (!in_set(key, 63, "._/-") || strlen(value) > 255 * 4)
        return false;
    for (const char *p = value; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return false;
    return true;
}

/* Values are texts without NUL; ok says the rest. */
static int get_texts(const json_t *o, const char *key, size_t max,
                     bool (*ok)(const char *key, const char *value), json_t **ret, struct err *err)
{
    json_t *v = json_object_get(o, key), *value;
    const char *name;
    if (v == NULL)
        return 0;
    if (!json_is_object(v) || json_object_size(v) > max)
        return err_set(err, ERR_PARSE, "%s must be an object of at most %zu texts", key, max);
    json_object_foreach(v, name, value)
    {
        const char *s = json_string_value(value);
        if (s == NULL || strlen(s) != json_string_length(value) || !ok(name, s))
            return err_set(err, ERR_PARSE, "%s: '%.64s' is not a name, or its value no text", key,
                           name);
    }
    *ret = v;
    return 0;
}

int asked_labels(const json_t *o, const char *key, json_t **ret, struct err *err)
{
    return get_texts(o, key, 32, asked_label_ok, ret, err);
}

static bool variable_ok(const char *key, const char *value)
{
    return in_set(key, 128, "_") && !isdigit((unsigned char)key[0]) && strlen(value) <= 32768;
}

int asked_env(const json_t *o, const char *key, json_t **ret, struct err *err)
{
    return get_texts(o, key, 256, variable_ok, ret, err);
}

/* Control characters take six bytes each in JSON, and their time to be written: some are fine. */
static bool is_text(struct slice s)
{
    enum { SOME = 64, ONE_IN = 16 };
    size_t controls = 0;
    for (size_t i = 0; i < s.n; i++)
        controls += (unsigned char)s.p[i] < 0x20 && memchr("\t\n\r\033", s.p[i], 4) == NULL;
    return controls <= SOME + s.n / ONE_IN;
}

json_t *asked_encode(struct slice s, bool base64)
{
    if (!base64 && !is_text(s))
        return NULL;
    if (!base64)
        return json_stringn(s.n ? s.p : "", s.n); /* NULL when it is no UTF-8 */
    char *text = malloc(s.n / 3 * 4 + 5);
    if (text == NULL)
        return NULL;
    EVP_EncodeBlock((unsigned char *)text, (const unsigned char *)(s.n ? s.p : ""), (int)s.n);
    json_t *v = json_string_nocheck(text);
    free(text);
    return v;
}
