/* Credentials that sign: what of a request goes into the signature, and where it stands. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "header_name.h"
#include "rule.h"

enum { TEMPLATE_MAX = 1024, HEADERS_MAX = 6, COMPONENTS_MAX = 16 };

/* What may stand in braces; `text`, `header`: there. */
static const struct {
    const char *name;
    bool text, header;
} parts[] = {{"method", true, false},     {"path", true, false},     {"query", true, false},
             {"target", true, false},     {"host", true, false},     {"body", true, false},
             {"body_sha256", true, true}, {"timestamp", true, true}, {"timestamp_ms", true, true},
             {"date", true, true},        {"nonce", true, true},     {"signature", false, true}};

static bool part_ok(struct slice name, bool in_header)
{
    if (slice_starts(name, SLICE("header:")) && !in_header)
        return header_name_ok((struct slice){name.p + 7, name.n - 7});
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (slice_eq_str(name, parts[i].name))
            return in_header ? parts[i].header : parts[i].text;
    return false;
}

static int check_template(const struct node *n, const char *text, bool in_header, struct err *err)
{
    if (strlen(text) > TEMPLATE_MAX)
        return node_fail(n, err, "longer than %d bytes", TEMPLATE_MAX);
    for (const char *p = text; *p; p++) {
        size_t len = strcspn(p, "}");
        if (*p == '}' ||
            (*p == '{' && (p[len] == 0 || !part_ok((struct slice){p + 1, len - 1}, in_header))))
            return node_fail(n, err, "'%.40s': in braces stand %s", p,
                             in_header ? "signature, timestamp, timestamp_ms, date, nonce, "
                                         "body_sha256"
                                       : "method, path, query, target, host, body, body_sha256, "
                                         "timestamp, timestamp_ms, date, nonce, header:NAME");
        if (in_header && ((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e))
            return node_fail(n, err, "a header's value is printable ASCII");
        if (*p == '{')
            p += len;
    }
    return 0;
}

static int read_header(struct arena *a, const struct node *n, struct credential *c,
                       struct header_edit *to, struct err *err)
{
    struct slice name = slice_str(n->key);
    const char *value;
    if (node_string(n, &value, err) < 0 || check_template(n, value, true, err) < 0)
        return -1;
    if (!header_name_ok(name) || header_name_is_reserved(name) || slice_ieq_str(name, "cookie"))
        return node_fail(n, err, "'%.60s' is not a header in which a signature can go", n->key);
    char *own = arena_str(a, n->key);
    for (char *p = own; *p; p++)
        *p = ascii_lower(*p);
    *to = (struct header_edit){own, arena_str(a, value)};
    if (strstr(value, "{signature}") && *c->header == 0)
        c->header = own;
    else if (strstr(value, "{signature}"))
        return node_fail(n, err, "one header holds the signature; '%s' does already", c->header);
    return 0;
}

/* All of it as one text: two credentials are the same when these are. */
static void describe(struct arena *a, const struct node *n, struct credential *c)
{
    char *text = json_dumps(n->value, JSON_COMPACT | JSON_SORT_KEYS);
    if (text == NULL)
        abort(); /* memory is out */
    c->name = arena_str(a, text);
    free(text);
}

static const struct key hmac_keys[] = {
    KEY("key", AS(name), "", ""),
    KEY("text", AS(template), "", ""),
    KEY("headers", OWN, "", ""),
    KEY("encoding", WORDS("hex", "base64"), "", ""),
};

static int read_hmac(struct arena *a, const struct node *n, const json_t *secrets,
                     struct credential *c, struct err *err)
{
    struct node key, text, headers;
    const char *template;
    size_t word = 0, i = 0;
    if (node_keys(n, KEYS(hmac_keys), err) < 0)
        return -1;
    if (!node_get(n, "key", &key) || !node_get(n, "text", &text) ||
        !node_get(n, "headers", &headers))
        return node_fail(n, err,
                         "'hmac' needs 'key', 'text' and 'headers': { key: SECRET, text: "
                         "\"{body}\", headers: { x-signature: \"{signature}\" } }");
    if (node_string(&text, &template, err) < 0 || check_template(&text, template, false, err) < 0 ||
        node_is_object(&headers, err) < 0 ||
        node_key_word(n, hmac_keys, "encoding", &word, err) < 0)
        return -1;
    if (json_object_size(headers.value) > HEADERS_MAX)
        return node_fail(&headers, err, "more than %d headers", HEADERS_MAX);
    struct header_edit *all = arena_zalloc(a, HEADERS_MAX, sizeof *all);
    c->text = arena_str(a, template);
    c->base64 = word == 1;
    c->signs = all;
    for (void *it = json_object_iter(headers.value); it;
         it = json_object_iter_next(headers.value, it), i++) {
        struct node at;
        node_get(&headers, json_object_iter_key(it), &at);
        if (read_header(a, &at, c, &all[i], err) < 0)
            return -1;
    }
    c->n_signs = i;
    if (*c->header == 0)
        return node_fail(&headers, err, "one of 'headers' holds \"{signature}\"");
    describe(a, n, c);
    return rule_secret_read(a, &key, secrets, "hmac", &c->secret, err);
}

/* ---- RFC 9421 ---- */

static bool component_ok(const char *s)
{
    static const char *const derived[] = {"@method",         "@target-uri", "@authority", "@scheme",
                                          "@request-target", "@path",       "@query"};
    if (*s != '@') {
        for (const char *p = s; *p; p++)
            if (*p != ascii_lower(*p))
                return false;
        return header_name_ok(slice_str(s)) &&
               (!header_name_is_reserved(slice_str(s)) || strcmp(s, "host") == 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(derived); i++)
        if (strcmp(s, derived[i]) == 0)
            return true;
    return false;
}

static int read_components(struct arena *a, const struct node *n, struct credential *c,
                           struct err *err)
{
    size_t count;
    if (node_strings(n, &count, err) < 0)
        return -1;
    if (count == 0 || count > COMPONENTS_MAX)
        return node_fail(n, err, "'components' names 1 to %d", COMPONENTS_MAX);
    struct header_edit *all = arena_zalloc(a, count, sizeof *all);
    for (size_t i = 0; i < count; i++) {
        struct node item;
        const char *text;
        if (node_strings_at(n, i, &item, &text, err) < 0)
            return -1;
        if (!component_ok(text))
            return node_fail(&item, err,
                             "'%.60s' is not a component: a header's name in lower case, @method, "
                             "@target-uri, @authority, @scheme, @request-target, @path, @query",
                             text);
        for (size_t k = 0; k < i; k++)
            if (strcmp(all[k].name, text) == 0)
                return node_fail(&item, err, "'%s' stands twice", text);
        all[i].name = arena_str(a, text);
    }
    c->signs = all;
    c->n_signs = count;
    return 0;
}

static int read_word(struct arena *a, const struct node *n, const char *key, const char **ret,
                     struct err *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-.";
    struct node at;
    const char *text;
    if (!node_get(n, key, &at))
        return 0;
    if (node_string(&at, &text, err) < 0)
        return -1;
    if (strlen(text) > 64 || strspn(text, letters) != strlen(text) || text[0] < 'a')
        return node_fail(&at, err, "'%s' begins with a letter and is of a-z 0-9 _ - .", key);
    *ret = arena_str(a, text);
    return 0;
}

static const struct key signature_keys[] = {
    KEY("key", AS(name), "", ""),
    KEY("components", OWN, "", ""),
    KEY("label", OWN, "", ""),
    KEY("tag", OWN, "", ""),
    KEY("expires", UINT(1, 86400), "", ""),
    KEY("nonce", AS(bool), "", ""),
};

static int read_signature(struct arena *a, const struct node *n, const json_t *secrets,
                          struct credential *c, struct err *err)
{
    struct node key, at;
    if (node_keys(n, KEYS(signature_keys), err) < 0)
        return -1;
    if (!node_get(n, "key", &key) || !node_get(n, "components", &at))
        return node_fail(n, err,
                         "'signature' needs both: { key: SECRET, components: [\"@method\", "
                         "\"@target-uri\", content-digest] }");
    c->header = "signature";
    c->text = "sig1";
    if (read_components(a, &at, c, err) < 0 || read_word(a, n, "label", &c->text, err) < 0 ||
        read_word(a, n, "tag", &c->prefix, err) < 0 ||
        node_key_uint(n, signature_keys, "expires", &c->count, err) < 0 ||
        node_key_bool(n, "nonce", &c->nonce, err) < 0)
        return -1;
    describe(a, n, c);
    return rule_secret_read(a, &key, secrets, "signature", &c->secret, err);
}

int rule_sign_read(struct arena *a, const struct node *with, const json_t *secrets,
                   struct credential *c, struct err *err)
{
    struct node n;
    if (node_get(with, "hmac", &n)) {
        c->kind = CREDENTIAL_HMAC;
        return read_hmac(a, &n, secrets, c, err);
    }
    if (node_get(with, "signature", &n)) {
        c->kind = CREDENTIAL_SIGNATURE;
        return read_signature(a, &n, secrets, c, err);
    }
    node_get(with, "azure", &n);
    c->kind = CREDENTIAL_AZURE;
    c->header = "authorization";
    return rule_secret_read(a, &n, secrets, "azure", &c->secret, err);
}
