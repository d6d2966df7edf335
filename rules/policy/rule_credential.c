/* Reads what a rule does to header fields: `with` as bearer, basic or header, `set_headers` and
 * `remove_headers`. Checks that the secrets named there are declared. */
#include <stdio.h>
#include <string.h>

#include "header_name.h"
#include "nearest.h"
#include "rule.h"

static const struct key with_keys[] = {
    KEY("bearer", AS(name), "", ""),
    KEY("basic", OWN, "", ""),
    KEY("header", OWN, "", ""),
    KEY("query", OWN, "", ""),
    KEY("cookie", OWN, "", ""),
    KEY("placeholder", OWN, "", ""),
    KEY("aws", OWN, "", ""),
    KEY("azure", AS(name), "", ""),
    KEY("hmac", OWN, "", ""),
    KEY("signature", OWN, "", ""),
    KEY("client_certificate", AS(name), "", ""),
    KEY("ssh_key", AS(name), "", ""),
    KEY("ssh_certificate", AS(name), "", ""),
    KEY("ssh_password", AS(name), "", ""),
    KEY("ssh_signing_key", AS(name), "", ""),
    KEY("postgres_login", AS(name), "", ""),
    KEY("redis_login", AS(name), "", ""),
    KEY("mysql_login", AS(name), "", ""),
    KEY("smtp_login", AS(name), "", ""),
    KEY("imap_login", AS(name), "", ""),
};

struct names {
    const json_t *object;
};

static const char *secret_name(size_t i, const void *arg)
{
    const json_t *object = ((const struct names *)arg)->object;
    void *it = json_object_iter((json_t *)object);
    while (it && i--)
        it = json_object_iter_next((json_t *)object, it);
    return it ? json_object_iter_key(it) : NULL;
}

int rule_secret_known(const struct node *n, const char *name, const json_t *secrets,
                      struct err *err)
{
    if (!node_name_ok(name))
        return node_fail(n, err, "'%.60s' is not a secret's name (letters, digits, _ . -)", name);
    if (secrets == NULL || json_object_get(secrets, name))
        return 0;
    struct names names = {secrets};
    size_t count = json_object_size(secrets);
    ssize_t best = count <= 1000 ? nearest(name, count, secret_name, &names) : -1;
    if (best >= 0)
        return node_fail(n, err, "no secret '%s' is declared; did you mean '%s'?", name,
                         secret_name((size_t)best, &names));
    return node_fail(n, err, "no secret '%s' is declared; add it under 'secrets'", name);
}

/* Secrets that sign and are never sent, and the word in `with` that they are for. */
static const struct {
    const char *made, *word, *example;
} signers[] = {
    {"aws_key", "aws", "aws_key: { access_key_id: SECRET, secret_access_key: SECRET }"},
    {"aws_role", "aws", ""},
    {"aws_web_identity", "aws", ""},
    {"aws_container", "aws", ""},
    {"aws_instance", "aws", ""},
    {"client_certificate", "client_certificate",
     "client_certificate: { certificate: SECRET, key: SECRET }"},
    {"hmac_key", "hmac", "hmac_key: { key: SECRET }"},
    {"signature_key", "signature",
     "signature_key: { key: SECRET, key_id: ID, algorithm: ed25519 }"},
    {"azure_key", "azure", "azure_key: { account: NAME, key: SECRET }"},
    {"ssh_key", "ssh_key", "ssh_key: { key: SECRET }"},
    {"ssh_certificate", "ssh_certificate", "ssh_certificate: { ca: SECRET, principals: [NAME] }"},
    {"ssh_password", "ssh_password", "ssh_password: { password: SECRET }"},
    {"ssh_signing_key", "ssh_signing_key", "ssh_signing_key: { key: SECRET }"},
    {"postgres_login", "postgres_login", "postgres_login: { user: NAME, password: SECRET }"},
    {"redis_login", "redis_login", "redis_login: { user: NAME, password: SECRET }"},
    {"mysql_login", "mysql_login", "mysql_login: { user: NAME, password: SECRET }"},
    {"smtp_login", "smtp_login", "smtp_login: { user: NAME, password: SECRET }"},
    {"imap_login", "imap_login", "imap_login: { user: NAME, password: SECRET }"},
};

int rule_secret_read(struct arena *a, const struct node *n, const json_t *secrets,
                     const char *signs, const char **ret, struct err *err)
{
    const char *name, *word = NULL, *example = "";
    if (node_string(n, &name, err) < 0 || rule_secret_known(n, name, secrets, err) < 0)
        return -1;
    const json_t *declared = json_object_get(secrets, name);
    if (json_object_get(declared, "ssh_agent"))
        return node_fail(n, err,
                         "'%s' is a key of an SSH agent; declare 'ssh_key: { key: %s }' or "
                         "'ssh_signing_key: { key: %s }' under 'secrets', and name that",
                         name, name, name);
    for (size_t i = 0; i < ARRAY_LEN(signers); i++) {
        if (json_object_get(declared, signers[i].made))
            word = signers[i].word;
        if (signs && *example == 0 && strcmp(signers[i].word, signs) == 0)
            example = signers[i].example;
    }
    if (declared && word && (signs == NULL || strcmp(signs, word) != 0))
        return node_fail(n, err, "'%s' signs requests and is never sent; use 'with: { %s: %s }'",
                         name, word, name);
    bool captured = signs && strcmp(signs, "aws") == 0 && json_object_get(declared, "captured");
    if (declared && word == NULL && signs && !captured)
        return node_fail(n, err, "'%s' is not a signing key; declare one with '%s' under 'secrets'",
                         name, example);
    *ret = arena_str(a, name);
    return 0;
}

static int read_secret(struct arena *a, const struct node *n, const json_t *secrets,
                       const char **ret, struct err *err)
{
    return rule_secret_read(a, n, secrets, NULL, ret, err);
}

static const struct key basic_keys[] = {
    KEY("user", AS(text), "", ""),
    KEY("password", AS(name), "", ""),
};

static int read_basic(struct arena *a, const struct node *n, const json_t *secrets,
                      struct credential *c, struct err *err)
{
    struct node user, password;
    const char *name;
    if (!json_is_object(n->value))
        return node_fail(n, err, "'basic' is written as { user: NAME, password: SECRET }");
    if (node_keys(n, KEYS(basic_keys), err) < 0)
        return -1;
    if (!node_get(n, "user", &user) || !node_get(n, "password", &password))
        return node_fail(n, err, "'basic' needs both: { user: NAME, password: SECRET }");
    if (node_text(&user, &name, err) < 0)
        return -1;
    if (!header_value_ok(slice_str(name)) || strpbrk(name, ":\t") || strlen(name) > 256)
        return node_fail(&user, err, "a user name is printable ASCII without a colon");
    c->kind = CREDENTIAL_BASIC;
    c->header = "authorization";
    c->user = arena_str(a, name);
    return read_secret(a, &password, secrets, &c->secret, err);
}

/* Put around the secret: blanks at the ends are meant ("token "). */
static int read_affix(struct arena *a, const struct node *n, const char *key, const char **ret,
                      struct err *err)
{
    struct node at;
    const char *text;
    if (!node_get(n, key, &at))
        return 0;
    if (node_text(&at, &text, err) < 0)
        return -1;
    if (strlen(text) > 256 || !header_value_ok(slice_trim(slice_str(text))) || strchr(text, '\t'))
        return node_fail(&at, err, "'%s' is at most 256 bytes of printable ASCII", key);
    *ret = arena_str(a, text);
    return 0;
}

static int read_header_name(struct arena *a, const struct node *n, const char *name,
                            struct credential *c, struct err *err)
{
    struct slice s = slice_str(name);
    if (!header_name_ok(s))
        return node_fail(n, err, "'%.60s' is not a header's name", name);
    if (header_name_is_reserved(s))
        return node_fail(n, err, "'%s' frames or routes the message; a secret cannot go there",
                         name);
    if (slice_ieq_str(s, "cookie") || slice_ieq_str(s, "set-cookie"))
        return node_fail(n, err,
                         "a cookie is not a header of its own; write 'with: { cookie: { NAME: "
                         "SECRET } }'");
    char *own = arena_str(a, name);
    for (char *p = own; *p; p++)
        *p = ascii_lower(*p);
    c->header = own;
    return 0;
}

static const struct key header_keys[] = {
    KEY("name", AS(text), "", ""),      KEY("secret", AS(name), "", ""),
    KEY("prefix", AS(any), "", ""),     KEY("suffix", AS(any), "", ""),
    KEY("or", WORDS("bearer"), "", ""), KEY("and", WORDS("bearer"), "", ""),
};

/* Some APIs take a key in a field of their own and a token as bearer, and some clients have it both
 * ways: the same secret then goes where the client wrote its placeholder. The clients of others
 * write one key in both fields, always (`and`). */
static int read_other(struct arena *a, const struct node *n, struct credential *c, struct err *err)
{
    struct node at;
    size_t word;
    const char *key = node_get(n, "or", &at) ? "or" : "and";
    bool both = node_get(n, "and", &at);
    if (!node_get(n, key, &at))
        return 0;
    if (both && strcmp(key, "or") == 0)
        return node_fail(&at, err, "'or' and 'and' exclude each other");
    if (node_key_word(n, header_keys, key, &word, err) < 0)
        return -1;
    c->both = both;
    if (strcmp(c->header, "authorization") == 0)
        return node_fail(&at, err, "a bearer is in the header authorization too; name another one");
    struct credential *other = arena_zalloc(a, 1, sizeof *other);
    *other = *c;
    other->kind = CREDENTIAL_BEARER;
    other->header = "authorization";
    other->prefix = "Bearer ";
    other->suffix = "";
    c->other = other;
    return 0;
}

/* { name: x-api-key, secret: NAME, prefix: "", suffix: "", or: bearer } (or `and: bearer`), or in
 * short { x-api-key: NAME }. */
static int read_header(struct arena *a, const struct node *n, const json_t *secrets,
                       struct credential *c, struct err *err)
{
    struct node name, secret;
    const char *text;
    c->kind = CREDENTIAL_HEADER;
    if (node_is_object(n, err) < 0)
        return -1;
    void *only = json_object_size(n->value) == 1 ? json_object_iter(n->value) : NULL;
    if (only && strcmp(json_object_iter_key(only), "name") != 0 &&
        strcmp(json_object_iter_key(only), "secret") != 0) {
        node_get(n, json_object_iter_key(only), &secret);
        if (read_header_name(a, &secret, secret.key, c, err) < 0)
            return -1;
        return read_secret(a, &secret, secrets, &c->secret, err);
    }
    if (node_keys(n, KEYS(header_keys), err) < 0)
        return -1;
    if (!node_get(n, "name", &name) || !node_get(n, "secret", &secret))
        return node_fail(n, err, "'header' needs both: { name: x-api-key, secret: SECRET }");
    if (node_string(&name, &text, err) < 0 || read_header_name(a, &name, text, c, err) < 0 ||
        read_affix(a, n, "prefix", &c->prefix, err) < 0 ||
        read_affix(a, n, "suffix", &c->suffix, err) < 0 ||
        read_secret(a, &secret, secrets, &c->secret, err) < 0)
        return -1;
    return read_other(a, n, c, err);
}

/* Logins by brokers, and the certificate's word that may stand beside those of databases. */
static const struct {
    const char *word;
    enum credential_kind kind;
    bool in_tls; /* its connection may show a certificate */
} logins[] = {
    {"ssh_key", CREDENTIAL_SSH_KEY, false},
    {"ssh_certificate", CREDENTIAL_SSH_CERTIFICATE, false},
    {"ssh_password", CREDENTIAL_SSH_PASSWORD, false},
    {"ssh_signing_key", CREDENTIAL_SSH_SIGNING, false},
    {"postgres_login", CREDENTIAL_POSTGRES, true},
    {"redis_login", CREDENTIAL_REDIS, true},
    {"mysql_login", CREDENTIAL_MYSQL, true},
    {"smtp_login", CREDENTIAL_SMTP, false},
    {"imap_login", CREDENTIAL_IMAP, false},
};

static bool is_login_in_tls(const struct node *with)
{
    struct node n;
    for (size_t i = 0; i < ARRAY_LEN(logins); i++)
        if (logins[i].in_tls && node_get(with, logins[i].word, &n))
            return json_object_size(with->value) == 2;
    return false;
}

/* A mapping of one key that is known, or of a login and a certificate. */
static int holds_one(const struct node *with, struct err *err)
{
    struct node n;
    if (!json_is_object(with->value))
        return node_fail(with, err, "'with' says how a secret is sent, such as { bearer: SECRET }");
    if (node_keys(with, with_keys, ARRAY_LEN(with_keys), err) < 0)
        return -1;
    if (json_object_size(with->value) > 1 && node_get(with, "client_certificate", &n))
        return is_login_in_tls(with)
                   ? 0
                   : node_fail(&n, err,
                               "'client_certificate' stands alone, or beside one of "
                               "postgres_login, redis_login, mysql_login: a rule sends one "
                               "credential, and its certificate's connections serve no other");
    if (json_object_size(with->value) != 1)
        return node_fail(
            with, err,
            "'with' holds one of bearer, basic, header, query, cookie, placeholder, aws, "
            "client_certificate, hmac, signature, azure, ssh_key, ssh_certificate, "
            "ssh_password, "
            "ssh_signing_key, postgres_login, redis_login, mysql_login, smtp_login, imap_login");
    return 0;
}

static struct credential *credential_new(struct arena *a)
{
    struct credential *c = arena_zalloc(a, 1, sizeof *c);
    c->prefix = c->suffix = c->header = c->name = c->region = c->service = c->text = c->slots =
        c->beside = "";
    return c;
}

/* logins[i], and the certificate that its connection shows, if there is one. */
static int read_login(struct arena *a, const struct node *with, size_t i, const json_t *secrets,
                      struct credential *c, struct err *err)
{
    struct node n;
    c->kind = logins[i].kind;
    node_get(with, logins[i].word, &n);
    if (rule_secret_read(a, &n, secrets, logins[i].word, &c->secret, err) < 0)
        return -1;
    if (!node_get(with, "client_certificate", &n))
        return 0;
    struct credential *certificate = credential_new(a);
    c->other = certificate;
    c->both = true;
    certificate->kind = CREDENTIAL_CERTIFICATE;
    return rule_secret_read(a, &n, secrets, "client_certificate", &certificate->secret, err);
}

int rule_credential_read(struct arena *a, const struct node *with, const json_t *secrets,
                         const struct credential **ret, struct err *err)
{
    struct credential *c = credential_new(a);
    struct node n;
    *ret = c;
    if (holds_one(with, err) < 0)
        return -1;
    if (node_get(with, "basic", &n))
        return read_basic(a, &n, secrets, c, err);
    if (node_get(with, "header", &n))
        return read_header(a, &n, secrets, c, err);
    if (node_get(with, "hmac", &n) || node_get(with, "signature", &n) ||
        node_get(with, "azure", &n))
        return rule_sign_read(a, with, secrets, c, err);
    for (size_t i = 0; i < ARRAY_LEN(logins); i++)
        if (node_get(with, logins[i].word, &n))
            return read_login(a, with, i, secrets, c, err);
    if (!node_get(with, "bearer", &n))
        return rule_place_read(a, with, secrets, c, err);
    c->kind = CREDENTIAL_BEARER;
    c->header = "authorization";
    c->prefix = "Bearer ";
    return read_secret(a, &n, secrets, &c->secret, err);
}

static int read_edit(struct arena *a, const struct node *n, const char *name, const char *value,
                     struct rule *ret, struct header_edit *edits, struct err *err)
{
    struct slice s = slice_str(name);
    if (!header_name_ok(s))
        return node_fail(n, err, "'%.60s' is not a header's name", name);
    if (header_name_is_reserved(s))
        return node_fail(n, err, "'%s' frames or routes the message; it cannot be edited", name);
    if (header_name_is_credential(s))
        return node_fail(n, err, "'%s' carries credentials; use 'with' for it", name);
    if (value && !header_value_ok(slice_str(value)))
        return node_fail(n, err, "the value of '%s' must be printable ASCII, no blank at its ends",
                         name);
    char *own = arena_str(a, name);
    for (char *p = own; *p; p++)
        *p = ascii_lower(*p);
    for (size_t i = 0; i < ret->n_headers; i++)
        if (strcmp(ret->headers[i].name, own) == 0)
            return node_fail(
                n, err,
                "'%s' stands in 'headers' too: a condition is on what will be written, "
                "and this edit writes something else",
                own);
    for (size_t i = 0; i < ret->n_edits; i++)
        if (strcmp(edits[i].name, own) == 0)
            return node_fail(n, err, "'%s' is edited twice", own);
    edits[ret->n_edits++] = (struct header_edit){own, arena_str(a, value)};
    return 0;
}

int rule_edits_read(struct arena *a, const struct node *rule, struct rule *ret, struct err *err)
{
    struct node set, remove;
    size_t n_set = 0, n_remove = 0;
    bool sets = node_get(rule, "set_headers", &set);
    bool removes = node_get(rule, "remove_headers", &remove);
    if (sets && node_is_object(&set, err) < 0)
        return -1;
    if (removes && node_strings(&remove, &n_remove, err) < 0)
        return -1;
    n_set = sets ? json_object_size(set.value) : 0;
    if (n_set + n_remove > 64)
        return node_fail(sets ? &set : &remove, err, "more than 64 header edits in a rule");
    struct header_edit *edits = arena_zalloc(a, n_set + n_remove + 1, sizeof *edits);
    ret->edits = edits;
    void *it = sets ? json_object_iter(set.value) : NULL;
    for (; it; it = json_object_iter_next(set.value, it)) {
        struct node at;
        const char *value;
        node_get(&set, json_object_iter_key(it), &at);
        if (node_text(&at, &value, err) < 0 ||
            read_edit(a, &at, at.key, value, ret, edits, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < n_remove; i++) {
        struct node at;
        const char *name;
        if (node_strings_at(&remove, i, &at, &name, err) < 0 ||
            read_edit(a, &at, name, NULL, ret, edits, err) < 0)
            return -1;
    }
    return 0;
}
