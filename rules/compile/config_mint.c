/* Secrets that are made of others: tokens that the vault gets from an endpoint, keys that it signs
 * with. Each kind is a table of its fields; what is read becomes one flat JSON object of strings,
 * which the vault takes (secrets/vault/derived.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "authority.h"
#include "buf.h"
#include "config_tree.h"
#include "quantity.h"
#include "header_name.h"
#include "rule.h"

/* RANGES: `to`, as in a rule. AUTH: how a store lets us in, as a mapping; becomes the name of a
 * login (read_auth). SIGNER: a PAIR, or the keys of a role. From SECRET on a name of a secret. */
enum field_type { TEXT = 1, LIST, URL, WORD, SECONDS, RANGES, SECRET, KEY, PAIR, SIGNER, AUTH };

struct mint_field {
    const char *name;
    enum field_type type;
    bool needed;
    const char *standard; /* when it is absent; NULL: then it is left out */
};

enum { MINT_FIELDS_MAX = 11, MINT_SPEC_MAX = 4000 };

struct mint_kind {
    const char *name;
    const char *endpoint; /* of the token; %s are values of fields. NULL: none is needed */
    enum { MADE, STORED, LOGIN } sort;
    struct mint_field fields[MINT_FIELDS_MAX];
};

#define VAULT_READ "${address}/v1/${mount}/data/${path}"

static const struct mint_kind kinds[] = {
    {"oauth2",
     "${token_url}",
     MADE,
     {{"token_url", URL, true, NULL},
      {"to", RANGES, false, NULL},
      {"client_id", TEXT, true, NULL},
      {"client_secret", SECRET, false, NULL},
      {"refresh_token", SECRET, false, NULL},
      {"scope", LIST, false, NULL},
      {"audience", TEXT, false, NULL},
      {"auth", WORD, false, "basic"}}},
    {"jwt",
     "${token_url}",
     MADE,
     {{"token_url", URL, true, NULL},
      {"to", RANGES, false, NULL},
      {"key", KEY, true, NULL},
      {"key_id", TEXT, false, NULL},
      {"algorithm", WORD, false, "RS256"},
      {"issuer", TEXT, true, NULL},
      {"subject", TEXT, false, NULL},
      {"audience", TEXT, false, NULL},
      {"scope", LIST, false, NULL}}},
    {"google",
     "${token_url}",
     MADE,
     {{"service_account", KEY, true, NULL},
      {"scope", LIST, false, NULL},
      {"audience", TEXT, false, NULL},
      {"subject", TEXT, false, NULL},
      {"token_url", URL, false, "https://oauth2.googleapis.com/token"},
      {"to", RANGES, false, NULL}}},
    {"github_app",
     "${api}/app/installations/${installation_id}/access_tokens",
     MADE,
     {{"app_id", TEXT, true, NULL},
      {"installation_id", TEXT, true, NULL},
      {"key", KEY, true, NULL},
      {"api", URL, false, "https://api.github.com"},
      {"to", RANGES, false, NULL}}},
    {"entra",
     "${authority}/${tenant}/oauth2/v2.0/token",
     MADE,
     {{"tenant", TEXT, true, NULL},
      {"client_id", TEXT, true, NULL},
      {"client_secret", SECRET, true, NULL},
      {"scope", LIST, true, NULL},
      {"authority", URL, false, "https://login.microsoftonline.com"},
      {"to", RANGES, false, NULL}}},
    {"aws_key",
     NULL,
     MADE,
     {{"access_key_id", SECRET, true, NULL},
      {"secret_access_key", SECRET, true, NULL},
      {"session_token", SECRET, false, NULL}}},
    {"hmac_key",
     NULL,
     MADE,
     {{"key", SECRET, true, NULL},
      {"algorithm", WORD, false, "sha256"},
      {"encoding", WORD, false, "text"}}},
    {"signature_key",
     NULL,
     MADE,
     {{"key", KEY, true, NULL}, {"key_id", TEXT, true, NULL}, {"algorithm", WORD, true, NULL}}},
    {"azure_key", NULL, MADE, {{"account", TEXT, true, NULL}, {"key", SECRET, true, NULL}}},
    {"captured", NULL, MADE, {{NULL, 0, false, NULL}}},
    {"client_certificate",
     NULL,
     MADE,
     {{"certificate", KEY, true, NULL}, {"key", KEY, true, NULL}}},
    {"aws_role",
     "${endpoint}",
     MADE,
     {{"key", PAIR, true, NULL},
      {"role_arn", TEXT, true, NULL},
      {"session_name", TEXT, false, "durward"},
      {"external_id", TEXT, false, NULL},
      {"region", TEXT, true, NULL},
      {"duration", SECONDS, false, "3600"},
      {"endpoint", URL, false, "https://sts.${region}.amazonaws.com/"},
      {"to", RANGES, false, NULL}}},
    {"vault",
     VAULT_READ,
     STORED,
     {{"address", URL, true, NULL},
      {"namespace", TEXT, false, NULL},
      {"to", RANGES, false, NULL},
      {"mount", TEXT, false, "secret"},
      {"path", TEXT, true, NULL},
      {"key", TEXT, true, NULL},
      {"auth", AUTH, true, NULL}}},
    {"openbao",
     VAULT_READ,
     STORED,
     {{"address", URL, true, NULL},
      {"namespace", TEXT, false, NULL},
      {"to", RANGES, false, NULL},
      {"mount", TEXT, false, "secret"},
      {"path", TEXT, true, NULL},
      {"key", TEXT, true, NULL},
      {"auth", AUTH, true, NULL}}},
    {"vault_token",
     "${address}/v1/auth/token/renew-self",
     LOGIN,
     {{"address", URL, true, NULL},
      {"to", RANGES, false, NULL},
      {"namespace", TEXT, false, NULL},
      {"token", SECRET, true, NULL}}},
    {"vault_approle",
     "${address}/v1/auth/${mount}/login",
     LOGIN,
     {{"address", URL, true, NULL},
      {"to", RANGES, false, NULL},
      {"namespace", TEXT, false, NULL},
      {"mount", TEXT, false, "approle"},
      {"role_id", TEXT, true, NULL},
      {"secret_id", SECRET, true, NULL}}},
    {"vault_kubernetes",
     "${address}/v1/auth/${mount}/login",
     LOGIN,
     {{"address", URL, true, NULL},
      {"to", RANGES, false, NULL},
      {"namespace", TEXT, false, NULL},
      {"mount", TEXT, false, "kubernetes"},
      {"role", TEXT, true, NULL},
      {"jwt", SECRET, true, NULL}}},
    {"aws_secret",
     "${endpoint}",
     STORED,
     {{"key", SIGNER, true, NULL},
      {"region", TEXT, true, NULL},
      {"name", TEXT, true, NULL},
      {"field", TEXT, false, NULL},
      {"endpoint", URL, false, "https://secretsmanager.${region}.amazonaws.com/"},
      {"to", RANGES, false, NULL}}},
    {"aws_parameter",
     "${endpoint}",
     STORED,
     {{"key", SIGNER, true, NULL},
      {"region", TEXT, true, NULL},
      {"name", TEXT, true, NULL},
      {"endpoint", URL, false, "https://ssm.${region}.amazonaws.com/"},
      {"to", RANGES, false, NULL}}},
    {"onepassword",
     "${address}/v1/vaults/${vault}/items/${item}",
     STORED,
     {{"address", URL, true, NULL},
      {"to", RANGES, false, NULL},
      {"token", SECRET, true, NULL},
      {"vault", TEXT, true, NULL},
      {"item", TEXT, true, NULL},
      {"field", TEXT, false, "password"}}},
};

/* How to be let in by a vault; `auth` has their last word, and this is their first. */
#define LOGIN_PREFIX "vault_"

static const struct mint_kind *kind_named(const char *name)
{
    for (size_t i = 0; name && i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

static const struct mint_kind *kind_of(const json_t *object)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i].sort != LOGIN && json_object_get(object, kinds[i].name))
            return &kinds[i];
    return NULL;
}

bool config_is_minted(const json_t *declared)
{
    return kind_of(declared) != NULL;
}

static void put(json_t *spec, const char *name, const char *value)
{
    if (json_object_set_new(spec, name, json_string(value)) < 0)
        abort(); /* memory is out */
}

/* Text with ${NAME} of other fields filled in. -1: too long, or a field is not there. */
static int expand(const json_t *spec, const char *from, char *to, size_t size)
{
    size_t n = 0;
    while (*from) {
        const char *close = strncmp(from, "${", 2) == 0 ? strchr(from, '}') : NULL;
        char name[32];
        const char *value = NULL;
        size_t len = 1;
        if (close && (size_t)(close - from) - 2 < sizeof name) {
            snprintf(name, sizeof name, "%.*s", (int)(close - from - 2), from + 2);
            value = json_string_value(json_object_get(spec, name));
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

/* https only: the request carries a secret. */
static int check_url(const struct node *n, const char *url, struct err *err)
{
    struct authority a;
    static const char scheme[] = "https://";
    size_t head = sizeof scheme - 1;
    if (strncmp(url, scheme, head) != 0)
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
    const json_t *declared = json_object_get(secrets, *ret);
    const struct mint_kind *kind = kind_of(declared);
    if (type == PAIR && (kind == NULL || strcmp(kind->name, "aws_key") != 0))
        return node_fail(n, err, "'%s' is not an 'aws_key'", *ret);
    bool role = kind && strcmp(kind->name, "aws_role") == 0;
    if (type == SIGNER && (kind == NULL || (!role && strcmp(kind->name, "aws_key") != 0)))
        return node_fail(n, err, "'%s' is neither an 'aws_key' nor an 'aws_role'", *ret);
    if ((type == SECRET || type == KEY) && kind)
        return node_fail(n, err, "'%s' is itself made of others; name a stored secret", *ret);
    return 0;
}

static int read_auth(struct config *c, const struct node *n, const json_t *spec, const char **ret,
                     struct err *err);

/* `to` of what was read, as a list again; NULL: there is none. */
static json_t *ranges_of(const json_t *spec)
{
    json_t *ret = NULL;
    const char *text = json_string_value(json_object_get(spec, "to"));
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
                      json_t *spec, struct err *err)
{
    const char *text = "";
    char number[16];
    unsigned seconds;
    struct buf list;
    int r;
    buf_init(&list, 1000);
    switch (f->type) {
    case WORD:
        r = config_mint_word(n, json_string_value(json_object_get(spec, "kind")), f->name, &text,
                             err);
        break;
    case LIST:
    case RANGES:
        r = f->type == LIST ? read_list(n, &list, err) : read_ranges(c, n, &list, err);
        text = r == 0 ? (const char *)buf_data(&list) : "";
        break;
    case SECONDS:
        r = node_uint(n, 900, 43200, &seconds, err);
        snprintf(number, sizeof number, "%u", r == 0 ? seconds : 0);
        text = number;
        break;
    case SECRET:
    case KEY:
    case PAIR:
    case SIGNER:
        r = read_reference(c, n, f->type, &text, err);
        break;
    case AUTH:
        r = read_auth(c, n, spec, &text, err);
        break;
    default:
        r = node_string(n, &text, err);
        if (r == 0 && f->type == URL)
            r = check_url(n, text, err);
    }
    if (r == 0 && (strlen(text) > 1000 || !header_value_ok(slice_str(text))))
        r = node_fail(n, err, "'%s' is at most 1000 bytes of printable ASCII", f->name);
    if (r == 0)
        put(spec, f->name, text);
    buf_free(&list);
    return r;
}

/* What a table cannot say. */
static int check_kind(const struct node *n, const char *kind, const json_t *spec, struct err *err)
{
    bool scope = json_object_get(spec, "scope"), audience = json_object_get(spec, "audience");
    if (strcmp(kind, "google") == 0 && scope == audience)
        return node_fail(n, err,
                         "'google' takes either 'scope' (an access token) or 'audience' (an ID "
                         "token)");
    if (config_mint_key_ok(n, kind, spec, err) < 0)
        return -1;
    if (strcmp(kind, "oauth2") == 0 && !json_object_get(spec, "client_secret") &&
        !json_object_get(spec, "refresh_token"))
        return node_fail(n, err, "'oauth2' needs 'client_secret', 'refresh_token' or both");
    return 0;
}

static int read_fields(struct config *c, const struct node *n, const struct mint_kind *kind,
                       json_t *spec, struct err *err)
{
    struct key keys[MINT_FIELDS_MAX];
    char text[1200];
    size_t n_keys = 0;
    while (n_keys < MINT_FIELDS_MAX && kind->fields[n_keys].name) {
        keys[n_keys] = (struct key){.name = kind->fields[n_keys].name};
        n_keys++;
    }
    if (node_keys(n, keys, n_keys, err) < 0)
        return -1;
    for (size_t i = 0; i < n_keys; i++) {
        const struct mint_field *f = &kind->fields[i];
        struct node at;
        if (node_get(n, f->name, &at)) {
            if (read_field(c, &at, f, spec, err) < 0)
                return -1;
        } else if (f->needed) {
            return node_fail(n, err, "'%s' needs '%s'", kind->name, f->name);
        } else if (f->standard) {
            if (expand(spec, f->standard, text, sizeof text) < 0)
                return node_fail(n, err, "'%s' has too long a value", kind->name);
            put(spec, f->name, text);
        }
    }
    return check_kind(n, kind->name, spec, err);
}

/* The JSON and the endpoint of a secret whose fields are read. */
static int finish(struct config *c, const struct node *n, const struct mint_kind *kind,
                  json_t *spec, struct config_secret *s, struct err *err)
{
    char endpoint[1500];
    struct pattern place; /* as the dialer reads it */
    struct err bad = {0};
    int r = 0;
    if (kind->endpoint) {
        r = expand(spec, kind->endpoint, endpoint, sizeof endpoint);
        if (r == 0)
            r = check_url(n, endpoint, err);
        else
            node_fail(n, err, "'%s' has too long a value", kind->name);
        if (r == 0 && pattern_parse(c->arena, endpoint, &place, &bad) < 0)
            r = node_fail(n, err, "'%.200s': %s", endpoint, bad.text);
        put(spec, "endpoint", endpoint);
        s->endpoint = r == 0 ? arena_str(c->arena, endpoint) : NULL;
    }
    char *text = r == 0 ? json_dumps(spec, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    if (r == 0 && (text == NULL || strlen(text) > MINT_SPEC_MAX))
        r = node_fail(n, err, "'%s' is longer than %d bytes", kind->name, MINT_SPEC_MAX);
    s->store = STORE_MINT;
    s->source = r == 0 ? arena_str(c->arena, text) : "";
    free(text);
    return r;
}

/* Logins that say the same are one: its name, which no secret of the configuration can have. */
static const char *login_for(struct config *c, const struct config_secret *login)
{
    char name[40];
    size_t declared = json_object_size(json_object_get(c->root, "secrets"));
    for (size_t i = declared; i < c->n_secrets; i++)
        if (strcmp(c->secrets[i].source, login->source) == 0)
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

static int read_auth(struct config *c, const struct node *n, const json_t *spec, const char **ret,
                     struct err *err)
{
    struct config_secret login = {.kind = "", .hidden = true};
    struct node at = *n;
    char name[40];
    if (node_keys(n, KEYS(auth_keys), err) < 0)
        return -1;
    if (json_object_size(n->value) != 1)
        return node_fail(n, err, "'auth' is one of 'token', 'approle' and 'kubernetes'");
    const char *way = json_object_iter_key(json_object_iter(n->value));
    bool token = strcmp(way, "token") == 0;
    snprintf(name, sizeof name, LOGIN_PREFIX "%s", way);
    if (!token)
        node_get(n, way, &at);
    const struct mint_kind *kind = kind_named(name);
    /* the address comes from the store; beside it only what belongs to this way */
    json_t *given = node_is_object(&at, err) == 0 ? json_copy(at.value) : NULL;
    if (given == NULL)
        return -1;
    int r = 0;
    static const char *const shared[] = {"address", "namespace", "to"};
    for (size_t i = 0; i < ARRAY_LEN(shared) && r == 0; i++) {
        if (json_object_get(given, shared[i]))
            r = node_fail(&at, err, "'%s' stands beside 'auth'", shared[i]);
        else if (json_object_get(spec, shared[i]))
            json_object_set(given, shared[i], json_object_get(spec, shared[i]));
    }
    json_t *made = json_object(), *ranges = ranges_of(spec);
    if (ranges && r == 0)
        json_object_set(given, "to", ranges);
    json_decref(ranges);
    struct node all = at;
    all.value = given;
    put(made, "kind", name);
    if (r == 0)
        r = read_fields(c, &all, kind, made, err);
    if (r == 0)
        r = finish(c, n, kind, made, &login, err);
    if (r == 0)
        *ret = login_for(c, &login);
    json_decref(made);
    json_decref(given);
    return r;
}

static int read_ttl(const struct node *n, json_t *spec, struct err *err)
{
    struct node at;
    char text[16];
    unsigned seconds = 300;
    if (node_get(n, "ttl", &at) && quantity_duration(&at, &seconds, err) < 0)
        return -1;
    snprintf(text, sizeof text, "%u", seconds);
    put(spec, "ttl", text);
    return 0;
}

int config_read_mint(struct config *c, const struct node *n, struct config_secret *s,
                     struct err *err)
{
    const struct mint_kind *kind = kind_of(n->value);
    struct node at;
    node_get(n, kind->name, &at);
    json_t *spec = json_object();
    put(spec, "kind", kind->name);
    int r = read_fields(c, &at, kind, spec, err);
    if (r == 0 && kind->sort == STORED)
        r = read_ttl(n, spec, err);
    if (r == 0)
        r = finish(c, &at, kind, spec, s, err);
    json_decref(spec);
    return r;
}

static const struct mint_kind *kind_of_spec(const json_t *spec)
{
    return kind_named(json_string_value(json_object_get(spec, "kind")));
}

bool config_is_remote(const struct config_secret *s)
{
    json_t *spec = s->store == STORE_MINT ? json_loads(s->source, 0, NULL) : NULL;
    const struct mint_kind *kind = kind_of_spec(spec);
    json_decref(spec);
    return kind && kind->sort == STORED;
}

bool config_secret_asks(const struct config_secret *s)
{
    return s->store == STORE_MINT && s->endpoint && !strstr(s->source, "\"refresh_token\":");
}

bool config_secret_signs(const struct config_secret *s)
{
    static const char *const signers[] = {"\"kind\":\"aws_key\"", "\"kind\":\"aws_role\"",
                                          "\"kind\":\"client_certificate\""};
    for (size_t i = 0; i < ARRAY_LEN(signers); i++)
        if (s->store == STORE_MINT && strstr(s->source, signers[i]))
            return true;
    return false;
}

/* Keys are text of several lines, and are never sent: a rule that names one is an error. */
void config_mark_keys(struct config *c)
{
    for (size_t i = 0; i < c->n_secrets; i++) {
        json_t *spec =
            c->secrets[i].store == STORE_MINT ? json_loads(c->secrets[i].source, 0, NULL) : NULL;
        const struct mint_kind *kind = kind_of_spec(spec);
        for (size_t f = 0; kind && f < MINT_FIELDS_MAX && kind->fields[f].name; f++) {
            const char *name = json_string_value(json_object_get(spec, kind->fields[f].name));
            for (size_t j = 0; name && kind->fields[f].type >= SECRET && j < c->n_secrets; j++)
                if (strcmp(c->secrets[j].name, name) == 0) {
                    c->secrets[j].used = true;
                    c->secrets[j].lines = c->secrets[j].lines || kind->fields[f].type == KEY;
                }
        }
        json_decref(spec);
    }
}

/* A policy of the token endpoints: what the dialer lets the vault reach. */
char *config_endpoints_json(const struct config *c)
{
    json_t *rules = json_array();
    for (size_t i = 0; i < c->n_secrets; i++) {
        const char *url = c->secrets[i].endpoint;
        json_t *spec = url ? json_loads(c->secrets[i].source, 0, NULL) : NULL;
        bool reads = config_is_remote(&c->secrets[i]);
        json_t *rule = url ? json_pack("{s:s, s:[s*, s], s:o*}", "allow", url, "methods",
                                       reads ? "GET" : NULL, "POST", "to", ranges_of(spec))
                           : NULL;
        json_decref(spec);
        if (rule && json_array_append_new(rules, rule) < 0)
            abort(); /* memory is out */
    }
    json_t *all = json_pack("{s:s, s:o}", "policy", "vault", "rules", rules);
    char *text = all && json_array_size(rules) > 0 ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    return text;
}
