/* Secrets that are made of others: tokens that the vault gets from an endpoint, keys that it signs
 * with. Each kind is a table of its fields; what is read becomes one flat JSON object of strings,
 * which the vault takes (secrets/derived.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "authority.h"
#include "buf.h"
#include "config_tree.h"
#include "header_name.h"
#include "rule.h"

enum field_type { TEXT = 1, LIST, URL, WORD, SECRET, KEY, PAIR, SECONDS };

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
    struct mint_field fields[MINT_FIELDS_MAX];
};

static const struct mint_kind kinds[] = {
    {"oauth2",
     "${token_url}",
     {{"token_url", URL, true, NULL},
      {"client_id", TEXT, true, NULL},
      {"client_secret", SECRET, false, NULL},
      {"refresh_token", SECRET, false, NULL},
      {"scope", LIST, false, NULL},
      {"audience", TEXT, false, NULL},
      {"auth", WORD, false, "basic"}}},
    {"jwt",
     "${token_url}",
     {{"token_url", URL, true, NULL},
      {"key", KEY, true, NULL},
      {"key_id", TEXT, false, NULL},
      {"algorithm", WORD, false, "RS256"},
      {"issuer", TEXT, true, NULL},
      {"subject", TEXT, false, NULL},
      {"audience", TEXT, false, NULL},
      {"scope", LIST, false, NULL}}},
    {"google",
     "${token_url}",
     {{"service_account", KEY, true, NULL},
      {"scope", LIST, false, NULL},
      {"audience", TEXT, false, NULL},
      {"subject", TEXT, false, NULL},
      {"token_url", URL, false, "https://oauth2.googleapis.com/token"}}},
    {"github_app",
     "${api}/app/installations/${installation_id}/access_tokens",
     {{"app_id", TEXT, true, NULL},
      {"installation_id", TEXT, true, NULL},
      {"key", KEY, true, NULL},
      {"api", URL, false, "https://api.github.com"}}},
    {"entra",
     "${authority}/${tenant}/oauth2/v2.0/token",
     {{"tenant", TEXT, true, NULL},
      {"client_id", TEXT, true, NULL},
      {"client_secret", SECRET, true, NULL},
      {"scope", LIST, true, NULL},
      {"authority", URL, false, "https://login.microsoftonline.com"}}},
    {"aws_key",
     NULL,
     {{"access_key_id", SECRET, true, NULL},
      {"secret_access_key", SECRET, true, NULL},
      {"session_token", SECRET, false, NULL}}},
    {"hmac_key",
     NULL,
     {{"key", SECRET, true, NULL},
      {"algorithm", WORD, false, "sha256"},
      {"encoding", WORD, false, "text"}}},
    {"signature_key",
     NULL,
     {{"key", KEY, true, NULL}, {"key_id", TEXT, true, NULL}, {"algorithm", WORD, true, NULL}}},
    {"azure_key", NULL, {{"account", TEXT, true, NULL}, {"key", SECRET, true, NULL}}},
    {"captured", NULL, {{NULL, 0, false, NULL}}},
    {"client_certificate", NULL, {{"certificate", KEY, true, NULL}, {"key", KEY, true, NULL}}},
    {"aws_role",
     "${endpoint}",
     {{"key", PAIR, true, NULL},
      {"role_arn", TEXT, true, NULL},
      {"session_name", TEXT, false, "durward"},
      {"external_id", TEXT, false, NULL},
      {"region", TEXT, true, NULL},
      {"duration", SECONDS, false, "3600"},
      {"endpoint", URL, false, "https://sts.${region}.amazonaws.com/"}}},
};

static const struct mint_kind *kind_of(const json_t *object)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (json_object_get(object, kinds[i].name))
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

static int read_word(const struct node *n, const char *kind, const char *name, const char **ret,
                     struct err *err)
{
    static const struct {
        const char *kind, *name, *words[7];
    } all[] = {{"oauth2", "auth", {"basic", "post"}},
               {"jwt", "algorithm", {"RS256", "ES256"}},
               {"hmac_key", "algorithm", {"sha256", "sha512", "sha1"}},
               {"hmac_key", "encoding", {"text", "hex", "base64"}},
               {"signature_key",
                "algorithm",
                {"ed25519", "ecdsa-p256-sha256", "ecdsa-p384-sha384", "rsa-pss-sha512",
                 "rsa-v1_5-sha256", "hmac-sha256"}}};
    size_t i = 0, count = 0, word;
    while (i + 1 < ARRAY_LEN(all) &&
           (strcmp(all[i].kind, kind) != 0 || strcmp(all[i].name, name) != 0))
        i++;
    while (all[i].words[count])
        count++;
    if (node_word(n, all[i].words, count, &word, err) < 0)
        return -1;
    *ret = all[i].words[word];
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
    if (type != PAIR && kind)
        return node_fail(n, err, "'%s' is itself made of others; name a stored secret", *ret);
    return 0;
}

static int read_field(const struct config *c, const struct node *n, const struct mint_field *f,
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
        r = read_word(n, json_string_value(json_object_get(spec, "kind")), f->name, &text, err);
        break;
    case LIST:
        r = read_list(n, &list, err);
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
        r = read_reference(c, n, f->type, &text, err);
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
    const char *id = json_string_value(json_object_get(spec, "key_id"));
    if (strcmp(kind, "signature_key") == 0 && strpbrk(id, "\"\\ "))
        return node_fail(n, err, "'key_id' has no blank, quote or backslash");
    const char *account = json_string_value(json_object_get(spec, "account"));
    if (account && (strlen(account) > 64 || strpbrk(account, ":/ ")))
        return node_fail(n, err, "'account' is the name of a storage account");
    if (strcmp(kind, "oauth2") == 0 && !json_object_get(spec, "client_secret") &&
        !json_object_get(spec, "refresh_token"))
        return node_fail(n, err, "'oauth2' needs 'client_secret', 'refresh_token' or both");
    return 0;
}

static int read_fields(const struct config *c, const struct node *n, const struct mint_kind *kind,
                       json_t *spec, struct err *err)
{
    struct key keys[MINT_FIELDS_MAX];
    char text[1200];
    size_t n_keys = 0;
    while (n_keys < MINT_FIELDS_MAX && kind->fields[n_keys].name) {
        keys[n_keys] = (struct key){kind->fields[n_keys].name, NULL};
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

int config_read_mint(struct config *c, const struct node *n, struct config_secret *s,
                     struct err *err)
{
    const struct mint_kind *kind = kind_of(n->value);
    struct node at;
    char endpoint[1500];
    node_get(n, kind->name, &at);
    json_t *spec = json_object();
    put(spec, "kind", kind->name);
    int r = read_fields(c, &at, kind, spec, err);
    if (r == 0 && kind->endpoint) {
        r = expand(spec, kind->endpoint, endpoint, sizeof endpoint);
        if (r == 0)
            r = check_url(&at, endpoint, err);
        else
            node_fail(&at, err, "'%s' has too long a value", kind->name);
        put(spec, "endpoint", endpoint);
        s->endpoint = r == 0 ? arena_str(c->arena, endpoint) : NULL;
    }
    char *text = r == 0 ? json_dumps(spec, JSON_COMPACT) : NULL;
    if (r == 0 && (text == NULL || strlen(text) > MINT_SPEC_MAX))
        r = node_fail(&at, err, "'%s' is longer than %d bytes", kind->name, MINT_SPEC_MAX);
    s->store = STORE_MINT;
    s->source = r == 0 ? arena_str(c->arena, text) : "";
    free(text);
    json_decref(spec);
    return r;
}

/* Keys are text of several lines, and are never sent: a rule that names one is an error. */
void config_mark_keys(struct config *c)
{
    for (size_t i = 0; i < c->n_secrets; i++) {
        json_t *spec =
            c->secrets[i].store == STORE_MINT ? json_loads(c->secrets[i].source, 0, NULL) : NULL;
        const struct mint_kind *kind = NULL;
        for (size_t k = 0; spec && k < ARRAY_LEN(kinds); k++)
            if (strcmp(kinds[k].name, json_string_value(json_object_get(spec, "kind"))) == 0)
                kind = &kinds[k];
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
        json_t *rule = url ? json_pack("{s:s, s:[s]}", "allow", url, "methods", "POST") : NULL;
        if (rule && json_array_append_new(rules, rule) < 0)
            abort(); /* memory is out */
    }
    json_t *all = json_pack("{s:s, s:o}", "policy", "vault", "rules", rules);
    char *text = all && json_array_size(rules) > 0 ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    return text;
}
