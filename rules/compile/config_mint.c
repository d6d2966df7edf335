/* Reads secrets that are made of others: tokens that the vault gets from an endpoint, keys that it
 * signs with. Each kind is a table of its fields; what is read is what the vault is told
 * (rules/compile/derived_spec.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "authority.h"
#include "buf.h"
#include "config_tree.h"
#include "quantity.h"
#include "header_name.h"
#include "rule.h"

/* PLACE: a URL that may be in clear, as metadata services are. RANGES: `to`, as in a rule. AUTH:
 * how a store lets us in, as a mapping; becomes the name of a login (read_auth). SIGNER: a PAIR, or
 * the keys of a role. From SECRET on a name of a secret. */
enum field_type {
    TEXT = 1,
    LIST,
    URL,
    PLACE,
    WORD,
    SECONDS,
    MINUTES,
    RANGES,
    SECRET,
    KEY,
    PAIR,
    SIGNER,
    AUTH
};

struct mint_field {
    enum spec_field field; /* 0: the end of the list */
    enum field_type type;
    bool needed;
    const char *standard; /* when it is absent; NULL: then it is left out */
};

struct mint_kind {
    const char *endpoint; /* of the token; ${NAME} are values of fields. NULL: none is needed */
    /* AMBIENT: what the machine is, told by its metadata service: in clear, and by GET. HIDDEN: the
     * login for one, declared by it. */
    enum { MADE, STORED, LOGIN, AMBIENT, HIDDEN } sort;
    const struct mint_field *fields;
};

#define METADATA "169.254.169.254/32"
#define GOOGLE_TOKEN                                                      \
    "http://169.254.169.254/computeMetadata/v1/instance/service-accounts" \
    "/${account}/token"

/* Rows of a kind: what it needs, what it may have, and what stands for what is absent. */
#define NEED(field, type)              \
    {                                  \
        SPEC_##field, type, true, NULL \
    }
#define MAY(field, type)                \
    {                                   \
        SPEC_##field, type, false, NULL \
    }
#define ELSE(field, type, standard)         \
    {                                       \
        SPEC_##field, type, false, standard \
    }
#define TO MAY(TO, RANGES)
#define FIELDS(...)             \
    (const struct mint_field[]) \
    {                           \
        __VA_ARGS__,            \
        {                       \
            0, 0, false, NULL   \
        }                       \
    }

/* HashiCorp Vault and OpenBao are asked alike. */
#define KEY_VALUE_STORE                                                                       \
    {                                                                                         \
        "${address}/v1/${mount}/data/${path}", STORED,                                        \
            FIELDS(NEED(ADDRESS, URL), MAY(NAMESPACE, TEXT), TO, ELSE(MOUNT, TEXT, "secret"), \
                   NEED(PATH, TEXT), NEED(KEY, TEXT), NEED(AUTH, AUTH))                       \
    }

static const struct mint_kind kinds[DERIVED_KINDS] = {
    [DERIVED_OAUTH2] = {"${token_url}", MADE,
                        FIELDS(NEED(TOKEN_URL, URL), TO, NEED(CLIENT_ID, TEXT),
                               MAY(CLIENT_SECRET, SECRET), MAY(REFRESH_TOKEN, SECRET),
                               MAY(SCOPE, LIST), MAY(AUDIENCE, TEXT), ELSE(AUTH, WORD, "basic"))},
    [DERIVED_JWT] = {"${token_url}", MADE,
                     FIELDS(NEED(TOKEN_URL, URL), TO, NEED(KEY, KEY), MAY(KEY_ID, TEXT),
                            ELSE(ALGORITHM, WORD, "RS256"), NEED(ISSUER, TEXT), MAY(SUBJECT, TEXT),
                            MAY(AUDIENCE, TEXT), MAY(SCOPE, LIST))},
    [DERIVED_GOOGLE] = {"${token_url}", MADE,
                        FIELDS(NEED(SERVICE_ACCOUNT, KEY), MAY(SCOPE, LIST), MAY(AUDIENCE, TEXT),
                               MAY(SUBJECT, TEXT),
                               ELSE(TOKEN_URL, URL, "https://oauth2.googleapis.com/token"), TO)},
    [DERIVED_OAUTH_LOGIN] = {"${token_url}", MADE,
                             FIELDS(NEED(SESSION, KEY), NEED(TOKEN_URL, URL), TO,
                                    MAY(CLIENT_ID, TEXT), MAY(RESOURCE, URL),
                                    ELSE(ENCODING, WORD, "form"), ELSE(REFRESH, WORD, "yes"))},
    [DERIVED_GITHUB_APP] = {"${api}/app/installations/${installation_id}/access_tokens", MADE,
                            FIELDS(NEED(APP_ID, TEXT), NEED(INSTALLATION_ID, TEXT), NEED(KEY, KEY),
                                   ELSE(API, URL, "https://api.github.com"), TO)},
    [DERIVED_ENTRA] = {"${authority}/${tenant}/oauth2/v2.0/token", MADE,
                       FIELDS(NEED(TENANT, TEXT), NEED(CLIENT_ID, TEXT), MAY(CLIENT_SECRET, SECRET),
                              MAY(ASSERTION, SECRET), NEED(SCOPE, LIST),
                              ELSE(AUTHORITY, URL, "https://login.microsoftonline.com"), TO)},
    [DERIVED_TOKEN_EXCHANGE] = {"${token_url}", MADE,
                                FIELDS(NEED(TOKEN_URL, URL), TO, NEED(SUBJECT_TOKEN, SECRET),
                                       ELSE(SUBJECT_TOKEN_TYPE, TEXT,
                                            "urn:ietf:params:oauth:token-type:jwt"),
                                       MAY(AUDIENCE, TEXT), MAY(SCOPE, LIST))},
    [DERIVED_GOOGLE_INSTANCE] = {"${endpoint}", AMBIENT,
                                 FIELDS(ELSE(ACCOUNT, TEXT, "default"),
                                        ELSE(ENDPOINT, PLACE, GOOGLE_TOKEN),
                                        ELSE(TO, RANGES, METADATA))},
    [DERIVED_AZURE_INSTANCE] =
        {"${endpoint}", AMBIENT,
         FIELDS(NEED(RESOURCE, TEXT), MAY(CLIENT_ID, TEXT),
                ELSE(ENDPOINT, PLACE, "http://169.254.169.254/metadata/identity/oauth2/token"),
                ELSE(TO, RANGES, METADATA))},
    [DERIVED_AWS_KEY] = {NULL, MADE,
                         FIELDS(NEED(ACCESS_KEY_ID, SECRET), NEED(SECRET_ACCESS_KEY, SECRET),
                                MAY(SESSION_TOKEN, SECRET))},
    [DERIVED_AWS_ROLE] = {"${endpoint}", MADE,
                          FIELDS(NEED(KEY, PAIR), NEED(ROLE_ARN, TEXT),
                                 ELSE(SESSION_NAME, TEXT, "durward"), MAY(EXTERNAL_ID, TEXT),
                                 NEED(REGION, TEXT), ELSE(DURATION, SECONDS, "3600"),
                                 ELSE(ENDPOINT, URL, "https://sts.${region}.amazonaws.com/"), TO)},
    [DERIVED_AWS_WEB_IDENTITY] =
        {"${endpoint}", MADE,
         FIELDS(NEED(JWT, SECRET), NEED(ROLE_ARN, TEXT), ELSE(SESSION_NAME, TEXT, "durward"),
                NEED(REGION, TEXT), ELSE(DURATION, SECONDS, "3600"),
                ELSE(ENDPOINT, URL, "https://sts.${region}.amazonaws.com/"), TO)},
    [DERIVED_AWS_CONTAINER] = {"${endpoint}", AMBIENT,
                               FIELDS(ELSE(ENDPOINT, PLACE, "http://169.254.170.2/"),
                                      MAY(PATH, SECRET), MAY(TOKEN, SECRET),
                                      ELSE(TO, RANGES, "169.254.170.0/24"))},
    [DERIVED_AWS_INSTANCE] = {"${endpoint}/latest/meta-data/iam/security-credentials/${role}",
                              AMBIENT,
                              FIELDS(NEED(ROLE, TEXT),
                                     ELSE(ENDPOINT, PLACE, "http://169.254.169.254"),
                                     ELSE(TO, RANGES, METADATA))},
    [DERIVED_CERTIFICATE] = {NULL, MADE, FIELDS(NEED(CERTIFICATE, KEY), NEED(KEY, KEY))},
    [DERIVED_VAULT] = KEY_VALUE_STORE,
    [DERIVED_OPENBAO] = KEY_VALUE_STORE,
    [DERIVED_AWS_SECRET] =
        {"${endpoint}", STORED,
         FIELDS(NEED(KEY, SIGNER), NEED(REGION, TEXT), NEED(NAME, TEXT), MAY(FIELD, TEXT),
                ELSE(ENDPOINT, URL, "https://secretsmanager.${region}.amazonaws.com/"), TO)},
    [DERIVED_AWS_PARAMETER] = {"${endpoint}", STORED,
                               FIELDS(NEED(KEY, SIGNER), NEED(REGION, TEXT), NEED(NAME, TEXT),
                                      ELSE(ENDPOINT, URL, "https://ssm.${region}.amazonaws.com/"),
                                      TO)},
    [DERIVED_ONEPASSWORD] = {"${address}/v1/vaults/${vault}/items/${item}", STORED,
                             FIELDS(NEED(ADDRESS, URL), TO, NEED(TOKEN, SECRET), NEED(VAULT, TEXT),
                                    NEED(ITEM, TEXT), ELSE(FIELD, TEXT, "password"))},
    [DERIVED_VAULT_TOKEN] = {"${address}/v1/auth/token/renew-self", LOGIN,
                             FIELDS(NEED(ADDRESS, URL), TO, MAY(NAMESPACE, TEXT),
                                    NEED(TOKEN, SECRET))},
    [DERIVED_VAULT_APPROLE] = {"${address}/v1/auth/${mount}/login", LOGIN,
                               FIELDS(NEED(ADDRESS, URL), TO, MAY(NAMESPACE, TEXT),
                                      ELSE(MOUNT, TEXT, "approle"), NEED(ROLE_ID, TEXT),
                                      NEED(SECRET_ID, SECRET))},
    [DERIVED_VAULT_KUBERNETES] = {"${address}/v1/auth/${mount}/login", LOGIN,
                                  FIELDS(NEED(ADDRESS, URL), TO, MAY(NAMESPACE, TEXT),
                                         ELSE(MOUNT, TEXT, "kubernetes"), NEED(ROLE, TEXT),
                                         NEED(JWT, SECRET))},
    [DERIVED_AWS_SESSION] = {"${address}/latest/api/token", HIDDEN,
                             FIELDS(NEED(ADDRESS, PLACE), ELSE(TO, RANGES, METADATA))},
    [DERIVED_CAPTURED] = {NULL, MADE, FIELDS(MAY(CLAIMS, LIST), MAY(KEEP, WORD))},
    [DERIVED_HMAC_KEY] = {NULL, MADE,
                          FIELDS(NEED(KEY, SECRET), ELSE(ALGORITHM, WORD, "sha256"),
                                 ELSE(ENCODING, WORD, "text"))},
    [DERIVED_SIGNATURE_KEY] = {NULL, MADE,
                               FIELDS(NEED(KEY, KEY), NEED(KEY_ID, TEXT), NEED(ALGORITHM, WORD))},
    [DERIVED_AZURE_KEY] = {NULL, MADE, FIELDS(NEED(ACCOUNT, TEXT), NEED(KEY, SECRET))},
    [DERIVED_SSH_KEY] = {NULL, MADE, FIELDS(NEED(KEY, KEY))},
    [DERIVED_POSTGRES_LOGIN] = {NULL, MADE,
                                FIELDS(NEED(USER, TEXT), NEED(PASSWORD, SECRET),
                                       ELSE(AUTH, WORD, "scram-sha-256"))},
    [DERIVED_REDIS_LOGIN] = {NULL, MADE,
                             FIELDS(ELSE(USER, TEXT, "default"), NEED(PASSWORD, SECRET))},
    [DERIVED_MYSQL_LOGIN] = {NULL, MADE,
                             FIELDS(NEED(USER, TEXT), NEED(PASSWORD, SECRET),
                                    ELSE(AUTH, WORD, "caching_sha2"))},
    [DERIVED_SSH_SIGNING_KEY] = {NULL, MADE, FIELDS(NEED(KEY, KEY), ELSE(NAMESPACES, LIST, "git"))},
    [DERIVED_SSH_CERTIFICATE] = {NULL, MADE,
                                 FIELDS(NEED(CA, KEY), NEED(PRINCIPALS, LIST),
                                        ELSE(MINUTES, MINUTES, "5"), MAY(SOURCE_ADDRESS, LIST),
                                        MAY(FORCE_COMMAND, TEXT), MAY(EXTENSIONS, LIST))},
    [DERIVED_SSH_PASSWORD] = {NULL, MADE, FIELDS(NEED(PASSWORD, SECRET))},
    [DERIVED_SMTP_LOGIN] = {NULL, MADE,
                            FIELDS(NEED(USER, TEXT), NEED(PASSWORD, SECRET),
                                   ELSE(AUTH, WORD, "plain"))},
    [DERIVED_IMAP_LOGIN] = {NULL, MADE,
                            FIELDS(NEED(USER, TEXT), NEED(PASSWORD, SECRET),
                                   ELSE(AUTH, WORD, "plain"))},
};

static enum derived_kind kind_of(const json_t *object)
{
    size_t k = 1;
    while (k < DERIVED_KINDS &&
           (kinds[k].sort == LOGIN || kinds[k].sort == HIDDEN ||
            json_object_get(object, derived_kind_name((enum derived_kind)k)) == NULL))
        k++;
    return (enum derived_kind)k;
}

bool config_is_minted(const json_t *declared)
{
    return kind_of(declared) < DERIVED_KINDS;
}

static const char *text_named(const struct derived_spec *spec, const char *name)
{
    size_t f = 1;
    while (f < SPEC_FIELDS && strcmp(spec_field_name((enum spec_field)f), name) != 0)
        f++;
    return f < SPEC_FIELDS ? spec->text[f] : NULL;
}

/* Text with ${NAME} of other fields filled in. -1: too long, or a field is not there. */
static int expand(const struct derived_spec *spec, const char *from, char *to, size_t size)
{
    size_t n = 0;
    while (*from) {
        const char *close = strncmp(from, "${", 2) == 0 ? strchr(from, '}') : NULL;
        char name[32];
        const char *value = NULL;
        size_t len = 1;
        if (close && (size_t)(close - from) - 2 < sizeof name) {
            snprintf(name, sizeof name, "%.*s", (int)(close - from - 2), from + 2);
            value = text_named(spec, name);
            if (value == NULL)
                return -1;
            len = strlen(value);
        }
        if (n + len >= size)
            return -1;
        memcpy(to + n, value ? value : from, len);
        n += len;
        from = close ? close + 1 : from + 1;
    }
    to[n] = 0;
    return 0;
}

/* https only, as the request carries a secret; but for metadata services, which know no other. */
static int check_url(const struct node *n, const char *url, bool clear, struct err *err)
{
    struct authority a;
    static const char scheme[] = "https://", plain[] = "http://";
    size_t head = sizeof scheme - 1;
    if (clear && strncmp(url, plain, sizeof plain - 1) == 0)
        head = sizeof plain - 1;
    else if (strncmp(url, scheme, head) != 0)
        return node_fail(n, err, "'%.200s': a token endpoint is https://HOST/PATH", url);
    const char *rest = url + head;
    size_t host = strcspn(rest, "/?#");
    if (authority_parse(&a, SCHEME_HTTPS, (struct slice){rest, host}) < 0 ||
        strpbrk(rest, "?#*%\\ ") || strstr(rest, "..") || strstr(rest + host, "//"))
        return node_fail(n, err, "'%.200s' is not a plain https://HOST[:PORT]/PATH", url);
    return 0;
}

static int read_list(const struct node *n, struct buf *out, struct err *err)
{
    size_t count;
    const char *text;
    struct node item;
    if (node_strings(n, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (node_strings_at(n, i, &item, &text, err) < 0)
            return -1;
        else if (buf_printf(out, "%s%s", i ? " " : "", text) < 0)
            return node_fail(n, err, "longer than 1000 bytes together");
    return buf_append(out, "", 1) < 0 ? node_fail(n, err, "longer than 1000 bytes") : 0;
}

/* The secret that a field names: declared before or after, and of the right sort. */
static int read_reference(const struct config *c, const struct node *n, enum field_type type,
                          const char **ret, struct err *err)
{
    const json_t *secrets = json_object_get(c->root, "secrets");
    if (node_string(n, ret, err) < 0 || rule_secret_known(n, *ret, secrets, err) < 0)
        return -1;
    enum derived_kind kind = kind_of(json_object_get(secrets, *ret));
    bool role = kind == DERIVED_AWS_ROLE;
    bool pair = !role && kind >= DERIVED_AWS_KEY && kind < DERIVED_CERTIFICATE;
    if (type == PAIR && !pair)
        return node_fail(n, err,
                         "'%s' is not an 'aws_key', nor of an instance, container or web identity",
                         *ret);
    if (type == SIGNER && !role && !pair)
        return node_fail(n, err, "'%s' is not an AWS key", *ret);
    if ((type == SECRET || type == KEY) && kind < DERIVED_KINDS)
        return node_fail(n, err, "'%s' is itself made of others; name a stored secret", *ret);
    return 0;
}

static bool is_of_agent(const struct config *c, const char *name)
{
    return json_object_get(json_object_get(json_object_get(c->root, "secrets"), name),
                           "ssh_agent") != NULL;
}

static int read_auth(struct config *c, const struct node *n, const struct derived_spec *spec,
                     const char **ret, struct err *err);

/* `to` of what was read, as a list again; NULL: there is none. */
static json_t *ranges_of(const struct derived_spec *spec)
{
    json_t *ret = NULL;
    const char *text = spec->text[SPEC_TO];
    while (text && *text) {
        size_t n = strcspn(text, " ");
        ret = ret ? ret : json_array();
        if (json_array_append_new(ret, json_stringn(text, n)) < 0)
            abort(); /* memory is out */
        text += n + (text[n] == ' ');
    }
    return ret;
}

/* Judged as that of a rule is. */
static int read_ranges(struct config *c, const struct node *n, struct buf *out, struct err *err)
{
    struct rule judged = {0};
    return rule_to_read(c->arena, n->up, &judged, err) < 0 ? -1 : read_list(n, out, err);
}

static int read_field(struct config *c, const struct node *n, const struct mint_field *f,
                      struct derived_spec *spec, struct err *err)
{
    const char *text = "";
    char number[16];
    unsigned time;
    struct buf list;
    int r;
    buf_init(&list, 1000);
    switch (f->type) {
    case WORD:
        r = config_mint_word(n, spec->kind, f->field, &text, err);
        break;
    case LIST:
    case RANGES:
        r = f->type == LIST ? read_list(n, &list, err) : read_ranges(c, n, &list, err);
        text = r == 0 ? (const char *)buf_data(&list) : "";
        break;
    case SECONDS:
    case MINUTES:
        r = f->type == SECONDS ? node_uint(n, 900, 43200, &time, err)
                               : node_uint(n, 1, 1440, &time, err);
        snprintf(number, sizeof number, "%u", r == 0 ? time : 0);
        text = number;
        break;
    case SECRET:
    case KEY:
    case PAIR:
    case SIGNER:
        r = read_reference(c, n, f->type, &text, err);
        if (r == 0 && is_of_agent(c, text) && spec->kind != DERIVED_SSH_KEY &&
            spec->kind != DERIVED_SSH_SIGNING_KEY)
            r = node_fail(n, err,
                          "'%s' is a key of an SSH agent, which serves 'ssh_key' and "
                          "'ssh_signing_key' and nothing else",
                          text);
        break;
    case AUTH:
        r = read_auth(c, n, spec, &text, err);
        break;
    default:
        r = node_string(n, &text, err);
        if (r == 0 && (f->type == URL || f->type == PLACE))
            r = check_url(n, text, f->type == PLACE, err);
    }
    if (r == 0 && (strlen(text) > 1000 || !header_value_ok(slice_str(text))))
        r = node_fail(n, err, "'%s' is at most 1000 bytes of printable ASCII",
                      spec_field_name(f->field));
    if (r == 0)
        spec->text[f->field] = arena_str(c->arena, text);
    buf_free(&list);
    return r;
}

/* What a table cannot say. */
static int check_kind(const struct node *n, const struct derived_spec *spec, struct err *err)
{
    const char *const *text = spec->text;
    if (spec->kind == DERIVED_GOOGLE && (text[SPEC_SCOPE] != NULL) == (text[SPEC_AUDIENCE] != NULL))
        return node_fail(n, err,
                         "'google' takes either 'scope' (an access token) or 'audience' (an ID "
                         "token)");
    if (config_mint_key_ok(n, spec, err) < 0 || config_mint_claims_ok(n, spec, err) < 0 ||
        config_mint_certificate_ok(n, spec, err) < 0)
        return -1;
    if (spec->kind == DERIVED_ENTRA && !text[SPEC_CLIENT_SECRET] == !text[SPEC_ASSERTION])
        return node_fail(n, err, "'entra' takes either 'client_secret' or 'assertion'");
    if (spec->kind == DERIVED_OAUTH_LOGIN && !text[SPEC_CLIENT_ID] == !text[SPEC_RESOURCE])
        return node_fail(n, err,
                         "'oauth_login' takes either 'client_id' or, of an MCP server, 'resource'");
    if (spec->kind == DERIVED_OAUTH2 && !text[SPEC_CLIENT_SECRET] && !text[SPEC_REFRESH_TOKEN])
        return node_fail(n, err, "'oauth2' needs 'client_secret', 'refresh_token' or both");
    return 0;
}

static int read_fields(struct config *c, const struct node *n, struct derived_spec *spec,
                       struct err *err)
{
    const struct mint_field *fields = kinds[spec->kind].fields;
    const char *kind = derived_kind_name(spec->kind);
    struct key keys[SPEC_FIELDS];
    char text[1200];
    size_t n_keys = 0;
    for (; fields[n_keys].field; n_keys++)
        keys[n_keys] = (struct key){.name = spec_field_name(fields[n_keys].field)};
    if (node_keys(n, keys, n_keys, err) < 0)
        return -1;
    for (const struct mint_field *f = fields; f->field; f++) {
        struct node at;
        if (node_get(n, spec_field_name(f->field), &at)) {
            if (read_field(c, &at, f, spec, err) < 0)
                return -1;
        } else if (f->needed) {
            return node_fail(n, err, "'%s' needs '%s'", kind, spec_field_name(f->field));
        } else if (f->standard) {
            if (expand(spec, f->standard, text, sizeof text) < 0)
                return node_fail(n, err, "'%s' has too long a value", kind);
            spec->text[f->field] = arena_str(c->arena, text);
        }
    }
    return check_kind(n, spec, err);
}

static bool is_ambient(enum derived_kind k)
{
    return kinds[k].sort == AMBIENT || kinds[k].sort == HIDDEN;
}

/* The endpoint of a secret whose fields are read. */
static int finish(struct config *c, const struct node *n, struct derived_spec *spec,
                  struct config_secret *s, struct err *err)
{
    char endpoint[SPEC_TEXT_MAX];
    struct pattern place; /* as the dialer reads it */
    struct err bad = {0};
    const char *kind = derived_kind_name(spec->kind), *from = kinds[spec->kind].endpoint;
    if (from) {
        if (expand(spec, from, endpoint, sizeof endpoint) < 0)
            return node_fail(n, err, "'%s' has too long a value", kind);
        if (check_url(n, endpoint, is_ambient(spec->kind), err) < 0)
            return -1;
        if (pattern_parse(c->arena, endpoint, &place, &bad) < 0)
            return node_fail(n, err, "'%.200s': %s", endpoint, bad.text);
        s->endpoint = spec->text[SPEC_ENDPOINT] = arena_str(c->arena, endpoint);
    }
    if (derived_spec_bytes(spec) > SPEC_BYTES_MAX)
        return node_fail(n, err, "'%s' is longer than %d bytes", kind, SPEC_BYTES_MAX);
    struct derived_spec *kept = arena_zalloc(c->arena, 1, sizeof *kept);
    *kept = *spec;
    s->store = STORE_MINT;
    s->source = "";
    s->derived = kept;
    return 0;
}

/* Logins that say the same are one: its name, which no secret of the configuration can have. */
static const char *login_for(struct config *c, const struct config_secret *login)
{
    char name[40];
    size_t declared = json_object_size(json_object_get(c->root, "secrets"));
    for (size_t i = declared; i < c->n_secrets; i++)
        if (derived_spec_same(c->secrets[i].derived, login->derived))
            return c->secrets[i].name;
    snprintf(name, sizeof name, "(login %zu)", c->n_secrets - declared + 1);
    struct config_secret *s = &c->secrets[c->n_secrets++];
    *s = *login;
    s->name = arena_str(c->arena, name);
    return s->name;
}

/* By the last words of their kinds. */
static const struct key auth_keys[] = {
    KEY("token", AS(name), "", ""),
    KEY("approle", OWN, "", ""),
    KEY("kubernetes", OWN, "", ""),
};

/* The way that lets us in, and what is said of it; a token is said right here. */
static int read_way(const struct node *n, struct node *at, enum derived_kind *ret, struct err *err)
{
    static const enum derived_kind made[ARRAY_LEN(auth_keys)] = {
        DERIVED_VAULT_TOKEN, DERIVED_VAULT_APPROLE, DERIVED_VAULT_KUBERNETES};
    size_t i = 0;
    if (node_keys(n, KEYS(auth_keys), err) < 0)
        return -1;
    if (json_object_size(n->value) != 1)
        return node_fail(n, err, "'auth' is one of 'token', 'approle' and 'kubernetes'");
    while (i + 1 < ARRAY_LEN(auth_keys) && json_object_get(n->value, auth_keys[i].name) == NULL)
        i++;
    *at = *n;
    *ret = made[i];
    if (made[i] != DERIVED_VAULT_TOKEN)
        node_get(n, auth_keys[i].name, at);
    return 0;
}

/* The address comes from the store; beside it only what belongs to this way. */
static int add_shared(const struct node *at, const struct derived_spec *spec, json_t *given,
                      struct err *err)
{
    static const enum spec_field shared[] = {SPEC_ADDRESS, SPEC_NAMESPACE, SPEC_TO};
    for (size_t i = 0; i < ARRAY_LEN(shared); i++) {
        const char *name = spec_field_name(shared[i]), *text = spec->text[shared[i]];
        if (json_object_get(given, name))
            return node_fail(at, err, "'%s' stands beside 'auth'", name);
        json_t *value = shared[i] == SPEC_TO ? ranges_of(spec) : text ? json_string(text) : NULL;
        if (value && json_object_set_new(given, name, value) < 0)
            abort(); /* memory is out */
    }
    return 0;
}

static int read_auth(struct config *c, const struct node *n, const struct derived_spec *spec,
                     const char **ret, struct err *err)
{
    struct config_secret login = {.kind = "", .hidden = true};
    struct derived_spec made = {.kind = 0};
    struct node at;
    if (read_way(n, &at, &made.kind, err) < 0 || node_is_object(&at, err) < 0)
        return -1;
    json_t *given = json_copy(at.value);
    struct node all = at;
    all.value = given;
    int r = given ? add_shared(&at, spec, given, err) : -1;
    if (r == 0)
        r = read_fields(c, &all, &made, err);
    if (r == 0)
        r = finish(c, n, &made, &login, err);
    if (r == 0)
        *ret = login_for(c, &login);
    json_decref(given);
    return r;
}

/* The second version of AWS's service wants the token of a session, which all that ask there share.
 */
static int read_session(struct config *c, const struct node *n, struct derived_spec *spec,
                        struct err *err)
{
    struct config_secret login = {.kind = "", .hidden = true};
    struct derived_spec made = {.kind = DERIVED_AWS_SESSION};
    made.text[SPEC_ADDRESS] = spec->text[SPEC_ENDPOINT];
    made.text[SPEC_TO] = spec->text[SPEC_TO];
    if (finish(c, n, &made, &login, err) < 0)
        return -1;
    spec->text[SPEC_AUTH] = login_for(c, &login);
    return 0;
}

static int read_ttl(const struct node *n, struct derived_spec *spec, struct err *err)
{
    struct node at;
    unsigned seconds = 300;
    if (node_get(n, "ttl", &at) && quantity_duration(&at, &seconds, err) < 0)
        return -1;
    spec->ttl = seconds;
    return 0;
}

int config_read_mint(struct config *c, const struct node *n, struct config_secret *s,
                     struct err *err)
{
    struct derived_spec spec = {.kind = kind_of(n->value)};
    struct node at;
    node_get(n, derived_kind_name(spec.kind), &at);
    if (read_fields(c, &at, &spec, err) < 0)
        return -1;
    if (kinds[spec.kind].sort == STORED && read_ttl(n, &spec, err) < 0)
        return -1;
    if (spec.kind == DERIVED_AWS_INSTANCE && read_session(c, &at, &spec, err) < 0)
        return -1;
    return finish(c, &at, &spec, s, err);
}

bool config_is_remote(const struct config_secret *s)
{
    return s->derived && kinds[s->derived->kind].sort == STORED;
}

bool config_secret_asks(const struct config_secret *s)
{
    return s->store == STORE_AGENT ||
           (s->derived && s->endpoint && !s->derived->text[SPEC_REFRESH_TOKEN]);
}

bool config_secret_signs(const struct config_secret *s)
{
    enum derived_kind k = s->derived ? s->derived->kind : DERIVED_KINDS;
    return k >= DERIVED_AWS_KEY && k <= DERIVED_CERTIFICATE;
}

/* Keys are text of several lines, and are never sent: a rule that names one is an error. */
static void mark_part(struct config *c, const char *name, bool key)
{
    for (size_t i = 0; name && i < c->n_secrets; i++)
        if (strcmp(c->secrets[i].name, name) == 0) {
            c->secrets[i].used = true;
            c->secrets[i].lines = c->secrets[i].lines || key;
        }
}

void config_mark_keys(struct config *c)
{
    for (size_t i = 0; i < c->n_secrets; i++) {
        const struct derived_spec *spec = c->secrets[i].derived;
        const struct mint_field *f = spec ? kinds[spec->kind].fields : NULL;
        for (; f && f->field; f++)
            if (f->type >= SECRET)
                mark_part(c, spec->text[f->field], f->type == KEY);
    }
}

/* A policy of the token endpoints: what the dialer lets the vault reach. */
char *config_endpoints_json(const struct config *c)
{
    json_t *rules = json_array();
    for (size_t i = 0; i < c->n_secrets; i++) {
        const char *url = c->secrets[i].endpoint;
        bool near = url && is_ambient(c->secrets[i].derived->kind);
        bool reads = near || config_is_remote(&c->secrets[i]);
        json_t *rule =
            url ? json_pack("{s:s, s:[s*, s], s:o*}", "allow", url, "methods", reads ? "GET" : NULL,
                            near ? "PUT" : "POST", "to", ranges_of(c->secrets[i].derived))
                : NULL;
        if (rule && json_array_append_new(rules, rule) < 0)
            abort(); /* memory is out */
    }
    json_t *all = json_pack("{s:s, s:o}", "policy", "vault", "rules", rules);
    char *text = all && json_array_size(rules) > 0 ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    return text;
}
