/* Credentials that are not a header field: query parameter, cookie, the client's placeholder. */
#include <stdio.h>
#include <string.h>

#include "header_name.h"
#include "rule.h"

/* One word of a query or of a cookie's name that nobody needs to escape. */
static bool plain_name_ok(const char *s)
{
    size_t n = strlen(s);
    return n > 0 && n <= 128 &&
           strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~") == n;
}

static const struct key named_keys[] = {
    KEY("name", AS(text), "", ""),
    KEY("secret", AS(name), "", ""),
};

/* { name: NAME, secret: SECRET }, or in short { NAME: SECRET }. */
static int read_named(struct arena *a, const struct node *n, const json_t *secrets,
                      struct credential *c, struct err *err)
{
    struct node name, secret;
    const char *text;
    if (node_is_object(n, err) < 0)
        return -1;
    void *only = json_object_size(n->value) == 1 ? json_object_iter(n->value) : NULL;
    bool is_short = only && strcmp(json_object_iter_key(only), "name") != 0 &&
                    strcmp(json_object_iter_key(only), "secret") != 0;
    if (is_short) {
        text = json_object_iter_key(only);
        node_get(n, text, &secret);
        name = secret;
    } else {
        if (node_keys(n, KEYS(named_keys), err) < 0)
            return -1;
        if (!node_get(n, "name", &name) || !node_get(n, "secret", &secret))
            return node_fail(n, err, "'%s' needs both: { name: NAME, secret: SECRET }", n->key);
        if (node_string(&name, &text, err) < 0)
            return -1;
    }
    if (!plain_name_ok(text))
        return node_fail(
            &name, err, "'%.60s' is not a name here (letters, digits, _ . - ~, at most 128)", text);
    c->name = arena_str(a, text);
    return rule_secret_read(a, &secret, secrets, NULL, &c->secret, err);
}

/* "/auth/token": a JSON pointer (RFC 6901) into the body. */
static bool pointer_ok(const char *s)
{
    for (const char *at = strchr(s, '~'); at; at = strchr(at + 1, '~'))
        if (at[1] != '0' && at[1] != '1')
            return false;
    for (const char *at = s; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == '"' || *at == '\\' || *at == 0x7f)
            return false;
    return strlen(s) <= 256 && s[1];
}

static const struct key slot_keys[] = {
    KEY("body", AS(strings), "", ""),
};

/* { body: FIELD }, or a list of fields. */
static int read_slots(struct arena *a, const struct node *n, struct credential *c, struct err *err)
{
    struct node at, item;
    const char *text;
    size_t count;
    if (node_keys(n, KEYS(slot_keys), err) < 0)
        return -1;
    if (!node_get(n, "body", &at))
        return node_fail(n, err, "'{ body: FIELD }' says in which field of a body");
    if (c->places & PLACE_BODY)
        return node_fail(n, err, "'body' stands twice in 'in'; its fields can be a list");
    if (node_strings(&at, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        char all[2048];
        if (node_strings_at(&at, i, &item, &text, err) < 0)
            return -1;
        if (text[0] == '/' ? !pointer_ok(text) : !plain_name_ok(text))
            return node_fail(&item, err,
                             "'%.60s' is not a field of a body: a JSON pointer (/auth/token) or a "
                             "form's field (refresh_token)",
                             text);
        int length = snprintf(all, sizeof all, "%s%s%s", c->slots, i ? "\n" : "", text);
        if (length < 0 || (size_t)length >= sizeof all)
            return node_fail(&item, err, "too many fields");
        c->slots = arena_str(a, all);
    }
    c->places |= PLACE_BODY;
    return 0;
}

static int read_places(struct arena *a, const struct node *n, struct credential *c, struct err *err)
{
    static const char *const words[] = {"header", "query", "path", "body"};
    size_t count = json_is_array(n->value) ? json_array_size(n->value) : 1, word;
    if (count == 0)
        return node_fail(n, err, "'in' is empty; it is header, query, path or { body: FIELD }");
    for (size_t i = 0; i < count; i++) {
        struct node item = json_is_array(n->value) ? node_item(n, i) : *n;
        if (json_is_object(item.value)) {
            if (read_slots(a, &item, c, err) < 0)
                return -1;
            continue;
        }
        if (node_word(&item, words, ARRAY_LEN(words), &word, err) < 0)
            return -1;
        if (1u << word == PLACE_BODY)
            return node_fail(&item, err,
                             "'body' says in which field, for what lies in another one the origin "
                             "may show: { body: /auth/token } (a JSON pointer), { body: "
                             "refresh_token } (a form's field), or a list of both");
        if (c->places & 1u << word)
            return node_fail(&item, err, "'%s' stands twice in 'in'", words[word]);
        c->places |= 1u << word;
    }
    return 0;
}

static int read_place_name(struct arena *a, const struct node *n, struct credential *c,
                           struct err *err)
{
    struct node at;
    const char *text;
    bool needs = c->places & (PLACE_HEADER | PLACE_QUERY), has = node_get(n, "name", &at);
    if (needs && !has)
        return node_fail(n, err, "'name' says which header or query parameter it is");
    if (has && !needs)
        return node_fail(&at, err, "'name' has no meaning for a path or a body");
    if (!has)
        return 0;
    if (node_string(&at, &text, err) < 0)
        return -1;
    if (!plain_name_ok(text))
        return node_fail(&at, err, "'%.60s' is not a name here", text);
    c->name = arena_str(a, text);
    if (!(c->places & PLACE_HEADER))
        return 0;
    struct slice s = slice_str(text);
    if (!header_name_ok(s) || header_name_is_reserved(s) || slice_ieq_str(s, "cookie"))
        return node_fail(&at, err, "'%.60s' is not a header in which a secret can go", text);
    char *own = arena_str(a, text);
    for (char *p = own; *p; p++)
        *p = ascii_lower(*p);
    c->header = own;
    return 0;
}

static const struct key placeholder_keys[] = {
    KEY("secret", AS(name), "", ""), KEY("in", OWN, "", ""),
    KEY("name", AS(text), "", ""),   KEY("count", UINT(1, PLACE_COUNT_MAX), "", ""),
    KEY("beside", OWN, "", ""),      KEY("or", OWN, "", ""),
};

/* { NAME: TEXT }, or { NAME: "*" } for what may be there with any text: lines "NAME=TEXT" and
 * "?NAME". */
static int read_fields(const struct node *all, char *put, size_t size, struct err *err)
{
    struct node at;
    const char *text;
    if (node_is_object(all, err) < 0)
        return -1;
    for (void *it = json_object_iter(all->value); it; it = json_object_iter_next(all->value, it)) {
        size_t used = strlen(put);
        node_get(all, json_object_iter_key(it), &at);
        if (node_string(&at, &text, err) < 0)
            return -1;
        bool free = strcmp(text, "*") == 0;
        if (!plain_name_ok(at.key) || (!free && !plain_name_ok(text)))
            return node_fail(&at, err,
                             "a field and its text have letters, digits, _ . - ~ here, at most "
                             "128; the text * is any");
        int length = snprintf(put + used, size - used, "%s%s%s%s%s", used ? "\n" : "",
                              free ? "?" : "", at.key, free ? "" : "=", free ? "" : text);
        if ((size_t)length >= size - used)
            return node_fail(&at, err, "too many fields");
    }
    return put[0] && put[strlen(put) - 1] != '|' ? 0
                                                 : node_fail(all, err, "'%s' is empty", all->key);
}

/* The names of a body that is described are those of its top. */
static int slots_at_top(const struct node *n, const struct credential *c, struct err *err)
{
    for (const char *at = c->slots; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : "") {
        size_t len = strcspn(at, "\n");
        if (at[0] == '/' && strcspn(at + 1, "/~") < len - 1)
            return node_fail(n, err, "beside '%s' the field is one of the body's top", n->key);
    }
    return 0;
}

/* What else the body has to hold, and what one without the secret is. */
static int read_beside(struct arena *a, const struct node *n, struct credential *c, struct err *err)
{
    struct node all, other;
    char put[2048] = "";
    bool has_other = node_get(n, "or", &other);
    if (!node_get(n, "beside", &all))
        return has_other ? node_fail(&other, err, "'or' goes with 'beside'") : 0;
    if (c->places != PLACE_BODY)
        return node_fail(&all, err, "'beside' goes with 'in: { body: FIELD }' alone");
    if (slots_at_top(&all, c, err) < 0 || read_fields(&all, put, sizeof put - 8, err) < 0)
        return -1;
    if (has_other) {
        snprintf(put + strlen(put), sizeof put - strlen(put), "\n|");
        if (read_fields(&other, put, sizeof put, err) < 0)
            return -1;
    }
    c->beside = arena_str(a, put);
    return 0;
}

/* { secret: SECRET, in: header|query|path|{ body: FIELD } or a list, name: NAME, count: N,
 * beside: { NAME: TEXT }, or: { NAME: TEXT } } */
static int read_placeholder(struct arena *a, const struct node *n, const json_t *secrets,
                            struct credential *c, struct err *err)
{
    struct node secret, in;
    if (node_keys(n, KEYS(placeholder_keys), err) < 0)
        return -1;
    if (!node_get(n, "secret", &secret) || !node_get(n, "in", &in))
        return node_fail(n, err,
                         "'placeholder' needs both: { secret: SECRET, in: header|query|path|{ "
                         "body: FIELD } }");
    c->count = 1;
    if (read_places(a, &in, c, err) < 0 || read_place_name(a, n, c, err) < 0 ||
        node_key_uint(n, placeholder_keys, "count", &c->count, err) < 0 ||
        read_beside(a, n, c, err) < 0)
        return -1;
    if (rule_secret_read(a, &secret, secrets, NULL, &c->secret, err) < 0)
        return -1;
    return json_object_get(json_object_get(json_object_get(secrets, c->secret), "captured"),
                           "claims")
               ? node_fail(&secret, err,
                           "'%s' has 'claims': what its sandbox gets for it holds more than its "
                           "placeholder; send it as bearer or in a header",
                           c->secret)
               : 0;
}

static const struct key aws_keys[] = {
    KEY("key", AS(name), "", ""),
    KEY("region", AS(text), "", ""),
    KEY("service", AS(text), "", ""),
};

/* SECRET, or { key: SECRET, region: R, service: S }: a signing pair, and what may be signed for. */
static int read_aws(struct arena *a, const struct node *n, const json_t *secrets,
                    struct credential *c, struct err *err)
{
    static const char *const names[] = {"region", "service"};
    const char **to[] = {&c->region, &c->service}, *text;
    struct node key = *n, at;
    c->header = "authorization";
    if (!json_is_string(n->value)) {
        if (node_keys(n, KEYS(aws_keys), err) < 0)
            return -1;
        if (!node_get(n, "key", &key))
            return node_fail(n, err, "'aws' names its key: { key: SECRET, region: R, service: S }");
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
            if (!node_get(n, names[i], &at))
                continue;
            if (node_string(&at, &text, err) < 0)
                return -1;
            if (strlen(text) > 64 || !plain_name_ok(text))
                return node_fail(&at, err, "'%.60s' is not a %s", text, names[i]);
            *to[i] = arena_str(a, text);
        }
    }
    return rule_secret_read(a, &key, secrets, "aws", &c->secret, err);
}

int rule_place_read(struct arena *a, const struct node *with, const json_t *secrets,
                    struct credential *c, struct err *err)
{
    struct node n;
    if (node_get(with, "placeholder", &n)) {
        c->kind = CREDENTIAL_PLACEHOLDER;
        return read_placeholder(a, &n, secrets, c, err);
    }
    if (node_get(with, "aws", &n)) {
        c->kind = CREDENTIAL_AWS;
        return read_aws(a, &n, secrets, c, err);
    }
    if (node_get(with, "client_certificate", &n)) {
        c->kind = CREDENTIAL_CERTIFICATE;
        return rule_secret_read(a, &n, secrets, "client_certificate", &c->secret, err);
    }
    bool query = node_get(with, "query", &n);
    if (!query)
        node_get(with, "cookie", &n);
    c->kind = query ? CREDENTIAL_QUERY : CREDENTIAL_COOKIE;
    return read_named(a, &n, secrets, c, err);
}

char *credential_text(const struct credential *c, char *buf, size_t size)
{
    static const char *const kinds[] = {
        [CREDENTIAL_BEARER] = "bearer",
        [CREDENTIAL_BASIC] = "basic, as user",
        [CREDENTIAL_HEADER] = "header",
        [CREDENTIAL_QUERY] = "query parameter",
        [CREDENTIAL_COOKIE] = "cookie",
        [CREDENTIAL_PLACEHOLDER] = "in place of its placeholder in",
        [CREDENTIAL_AWS] = "AWS signature",
        [CREDENTIAL_CERTIFICATE] = "TLS client certificate",
        [CREDENTIAL_HMAC] = "HMAC in header",
        [CREDENTIAL_SIGNATURE] = "HTTP message signature",
        [CREDENTIAL_AZURE] = "Azure SharedKey",
        [CREDENTIAL_SSH_KEY] = "SSH key",
        [CREDENTIAL_SSH_SIGNING] = "SSH signing key",
        [CREDENTIAL_SSH_CERTIFICATE] = "SSH certificate",
        [CREDENTIAL_SSH_PASSWORD] = "SSH password",
        [CREDENTIAL_POSTGRES] = "PostgreSQL login",
        [CREDENTIAL_REDIS] = "Redis login",
        [CREDENTIAL_MYSQL] = "MySQL login",
        [CREDENTIAL_SMTP] = "mail login",
        [CREDENTIAL_IMAP] = "mailbox login",
    };
    static const char *const places[] = {"header", "query", "path", "body"};
    const char *what = c->kind == CREDENTIAL_BASIC       ? c->user
                       : c->kind == CREDENTIAL_HEADER    ? c->header
                       : c->kind == CREDENTIAL_HMAC      ? c->header
                       : c->kind >= CREDENTIAL_SIGNATURE ? c->text
                       : c->places                       ? ""
                       : c->kind == CREDENTIAL_AWS       ? c->region
                                                         : c->name;
    int n = snprintf(buf, size, "%s%s%s", kinds[c->kind], *what ? " " : "", what);
    if (*c->service && n > 0 && (size_t)n < size)
        n += snprintf(buf + n, size - (size_t)n, " %s", c->service);
    for (unsigned i = 0, any = 0; i < ARRAY_LEN(places); i++)
        if (c->places & 1u << i && n > 0 && (size_t)n < size)
            n += snprintf(buf + n, size - (size_t)n, "%s %s%s%s", any++ ? " or" : "", places[i],
                          i == 2 ? "" : " ",
                          i < 2    ? c->name
                          : i == 3 ? c->slots
                                   : "");
    for (char *at = buf; (at = strchr(at, '\n')) != NULL;)
        *at = ' ';
    if (c->other && n > 0 && (size_t)n < size)
        snprintf(buf + n, size - (size_t)n, " %s %s", c->both ? "and" : "or",
                 kinds[c->other->kind]);
    if (c->places && c->count > 1 && n > 0 && (size_t)n < size)
        snprintf(buf + n, size - (size_t)n, ", %u times", c->count);
    return buf;
}
