/* Reads `identity` of a policy: which clouds the sandbox is somebody to, and as whom. */
#include "cloud_identity.h"

#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "header_name.h"
#include "rule.h"

enum { FIELD_MAX = 256 };

static const char *const aws_ways[] = {"instance", "container"};
static const char *const azure_ways[] = {"instance", "app-service"};

static const struct key aws_keys[] = {
    KEY("secret", AS(name), "required", "an `aws_key` or `aws_role`, which a rule signs with"),
    KEY("role", AS(text), "`durward`", "the role's name, as the service lists it"),
    KEY("region", AS(text), "not said", "of the instance; also `AWS_REGION`"),
    KEY("account", AS(text), "not said", "the account's number"),
    KEY("via", WORDS_OF(aws_ways), "`instance`",
        "`container`: the variables of a container's credentials endpoint are set, too"),
};

static const struct key google_keys[] = {
    KEY("secret", AS(name), "required", "the access token, often a `google`, that a rule sends"),
    KEY("project", AS(text), "not said", "the project's id"),
    KEY("number", AS(text), "not said", "the project's number"),
    KEY("email", AS(text), "`default@PROJECT.iam.gserviceaccount.com`", "of the service account"),
    KEY("zone", AS(text), "not said", "of the instance"),
    KEY("scopes", AS(strings), "all of the cloud platform", "what the token is said to be for"),
    KEY("id_tokens", OWN, "none",
        "mapping of an audience to the secret that is its ID token; for no other is one given out"),
};

static const struct key azure_keys[] = {
    KEY("tokens", OWN, "required",
        "mapping of a resource (`https://vault.azure.net`) to the secret that is its token, often "
        "an `entra`"),
    KEY("client_id", AS(text), "not said",
        "of a user-assigned identity: a request for another one is refused"),
    KEY("via", WORDS_OF(azure_ways), "`instance`",
        "`app-service`: the variables of App Service's endpoint are set, too"),
};

static const struct key cloud_keys[] = {
    KEY("aws", OWN, "no identity", "an instance's role, see below"),
    KEY("gcp", OWN, "no identity", "an instance's service account"),
    KEY("azure", OWN, "no identity", "a managed identity"),
};

/* What may stand in a line, a path and a variable as it is. */
static int read_text(struct arena *a, const struct node *n, const char *key, const char *otherwise,
                     const char **ret, struct err *err)
{
    struct node at;
    const char *text = otherwise;
    if (node_get(n, key, &at) && node_string(&at, &text, err) < 0)
        return -1;
    if (strlen(text) > FIELD_MAX / 2 ||
        text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                          "0123456789._@:+=,-")]) {
        return node_fail(&at, err, "'%s' is at most %d letters, digits and ._@:+=,-", key,
                         FIELD_MAX / 2);
    }
    *ret = arena_str(a, text);
    return 0;
}

static int read_secret(struct arena *a, const struct node *n, const json_t *secrets, bool signs,
                       const char **ret, struct err *err)
{
    struct node at;
    if (!node_get(n, "secret", &at))
        return node_fail(n, err, "'%s' needs 'secret'", n->key);
    return rule_secret_read(a, &at, secrets, signs ? "aws" : NULL, ret, err);
}

/* A name as the cloud's libraries write it, its last slash apart. */
static struct slice trimmed(struct slice name)
{
    if (name.n > 0 && name.p[name.n - 1] == '/')
        name.n--;
    return name;
}

static int read_tokens(struct arena *a, const struct node *n, const json_t *secrets,
                       struct cloud_token *list, size_t *count, struct err *err)
{
    if (node_is_object(n, err) < 0)
        return -1;
    if (json_object_size(n->value) > CLOUD_TOKENS_MAX || json_object_size(n->value) == 0)
        return node_fail(n, err, "'%s' is from 1 to %d tokens", n->key, CLOUD_TOKENS_MAX);
    for (void *it = json_object_iter(n->value); it; it = json_object_iter_next(n->value, it)) {
        struct node at;
        node_get(n, json_object_iter_key(it), &at);
        struct slice name = trimmed(slice_str(at.key));
        if (name.n == 0 || name.n > FIELD_MAX || strpbrk(at.key, " \t\r\n\"\\{}") ||
            !header_value_ok(slice_str(at.key)))
            return node_fail(&at, err, "'%.60s' is not an audience or resource", at.key);
        if (cloud_token_find(list, *count, name))
            return node_fail(&at, err, "'%.60s' is there twice, but for its last slash", at.key);
        struct cloud_token *t = &list[(*count)++];
        t->name = arena_slice(a, name);
        if (rule_secret_read(a, &at, secrets, NULL, &t->secret, err) < 0)
            return -1;
    }
    return 0;
}

static int read_aws(struct arena *a, const struct node *n, const json_t *secrets,
                    const struct cloud_aws **ret, struct err *err)
{
    struct cloud_aws *c = arena_zalloc(a, 1, sizeof *c);
    size_t via = CLOUD_INSTANCE;
    if (node_is_object(n, err) < 0 || node_keys(n, KEYS(aws_keys), err) < 0 ||
        read_secret(a, n, secrets, true, &c->secret, err) < 0 ||
        read_text(a, n, "role", "durward", &c->role, err) < 0 ||
        read_text(a, n, "region", "", &c->region, err) < 0 ||
        read_text(a, n, "account", "", &c->account, err) < 0 ||
        node_key_word(n, aws_keys, "via", &via, err) < 0)
        return -1;
    c->via = (enum cloud_via)via;
    *ret = c;
    return 0;
}

static int read_scopes(struct arena *a, const struct node *n, const char **ret, struct err *err)
{
    struct node at, item;
    struct buf all;
    size_t count;
    const char *text;
    *ret = "https://www.googleapis.com/auth/cloud-platform\n";
    if (!node_get(n, "scopes", &at))
        return 0;
    if (node_strings(&at, &count, err) < 0)
        return -1;
    int r = 0;
    buf_init(&all, 4096);
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = node_strings_at(&at, i, &item, &text, err);
        if (r == 0 && (strpbrk(text, " \t\r\n\"\\") || !header_value_ok(slice_str(text))))
            r = node_fail(&item, err, "'%.60s' is not a scope", text);
        if (r == 0 && buf_printf(&all, "%s\n", text) < 0)
            r = node_fail(&item, err, "longer than 4096 bytes together");
    }
    if (r == 0)
        *ret = arena_slice(a, buf_slice(&all));
    buf_free(&all);
    return r;
}

static int read_google(struct arena *a, const struct node *n, const json_t *secrets,
                       const struct cloud_google **ret, struct err *err)
{
    char email[FIELD_MAX];
    struct node at;
    struct cloud_google *c = arena_zalloc(a, 1, sizeof *c);
    if (node_is_object(n, err) < 0 || node_keys(n, KEYS(google_keys), err) < 0 ||
        read_secret(a, n, secrets, false, &c->secret, err) < 0 ||
        read_text(a, n, "project", "", &c->project, err) < 0)
        return -1;
    snprintf(email, sizeof email, *c->project ? "default@%s.iam.gserviceaccount.com" : "default%s",
             c->project);
    if (read_text(a, n, "number", "", &c->number, err) < 0 ||
        read_text(a, n, "email", email, &c->email, err) < 0 ||
        read_text(a, n, "zone", "", &c->zone, err) < 0 || read_scopes(a, n, &c->scopes, err) < 0)
        return -1;
    if (node_get(n, "id_tokens", &at) && read_tokens(a, &at, secrets, c->ids, &c->n_ids, err) < 0)
        return -1;
    *ret = c;
    return 0;
}

static int read_azure(struct arena *a, const struct node *n, const json_t *secrets,
                      const struct cloud_azure **ret, struct err *err)
{
    struct node at;
    size_t via = CLOUD_INSTANCE;
    struct cloud_azure *c = arena_zalloc(a, 1, sizeof *c);
    if (node_is_object(n, err) < 0 || node_keys(n, KEYS(azure_keys), err) < 0 ||
        read_text(a, n, "client_id", "", &c->client_id, err) < 0 ||
        node_key_word(n, azure_keys, "via", &via, err) < 0)
        return -1;
    c->via = (enum cloud_via)via;
    if (!node_get(n, "tokens", &at))
        return node_fail(n, err, "'azure' needs 'tokens': { RESOURCE: SECRET }");
    *ret = c;
    return read_tokens(a, &at, secrets, c->tokens, &c->n_tokens, err);
}

int cloud_identity_read(struct arena *a, const struct node *n, const json_t *secrets,
                        const struct cloud_identity **ret, struct err *err)
{
    struct node at;
    struct cloud_identity *c = arena_zalloc(a, 1, sizeof *c);
    if (node_is_object(n, err) < 0 || node_keys(n, KEYS(cloud_keys), err) < 0)
        return -1;
    if (node_get(n, "aws", &at) && read_aws(a, &at, secrets, &c->aws, err) < 0)
        return -1;
    if (node_get(n, "gcp", &at) && read_google(a, &at, secrets, &c->google, err) < 0)
        return -1;
    if (node_get(n, "azure", &at) && read_azure(a, &at, secrets, &c->azure, err) < 0)
        return -1;
    *ret = c;
    return 0;
}

/* ---- asked ---- */

bool cloud_identity_names(const struct cloud_identity *c, const char *host)
{
    return c && c->google && strcmp(host, CLOUD_GOOGLE) == 0;
}

bool cloud_identity_at(const struct cloud_identity *c, const struct authority *a)
{
    if (c == NULL || a->scheme != SCHEME_HTTP || a->port != 80)
        return false;
    if (cloud_identity_names(c, a->host))
        return true;
    if (strcmp(a->host, CLOUD_CONTAINER) == 0)
        return c->aws != NULL;
    return strcmp(a->host, CLOUD_ADDRESS) == 0 && (c->aws || c->google || c->azure);
}

const struct cloud_token *cloud_token_find(const struct cloud_token *list, size_t n,
                                           struct slice name)
{
    name = trimmed(name);
    for (size_t i = 0; i < n; i++)
        if (slice_eq_str(name, list[i].name))
            return &list[i];
    return NULL;
}

const char *cloud_identity_secret(const struct cloud_identity *c, size_t i, bool *signs)
{
    *signs = c && c->aws && i == 0;
    if (*signs)
        return c->aws->secret;
    i -= c && c->aws;
    if (c && c->google) {
        if (i <= c->google->n_ids)
            return i == 0 ? c->google->secret : c->google->ids[i - 1].secret;
        i -= c->google->n_ids + 1;
    }
    return c && c->azure && i < c->azure->n_tokens ? c->azure->tokens[i].secret : NULL;
}

bool cloud_identity_variable(const struct cloud_identity *c, size_t i, const char **name,
                             char value[CLOUD_VALUE_MAX])
{
    const struct cloud_aws *aws = c ? c->aws : NULL;
    const struct cloud_azure *azure = c ? c->azure : NULL;
    bool contained = aws && aws->via == CLOUD_SERVICE,
         served = azure && azure->via == CLOUD_SERVICE;
    const struct {
        bool set;
        const char *name, *before, *text, *after;
    } all[] = {
        {aws && *aws->region, "AWS_REGION", "", aws ? aws->region : "", ""},
        {aws && *aws->region, "AWS_DEFAULT_REGION", "", aws ? aws->region : "", ""},
        {contained, "AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://" CLOUD_CONTAINER,
         "/v1/credentials", ""},
        {contained, "AWS_CONTAINER_AUTHORIZATION_TOKEN", "{{placeholder ",
         contained ? aws->secret : "", "}}"},
        {served, "IDENTITY_ENDPOINT", "http://" CLOUD_ADDRESS, "/msi/token", ""},
        {served, "IDENTITY_HEADER", "{{placeholder ", served ? azure->tokens[0].secret : "", "}}"},
    };
    size_t k = 0;
    while (k < ARRAY_LEN(all) && (!all[k].set || i-- > 0))
        k++;
    if (k == ARRAY_LEN(all))
        return false;
    *name = all[k].name;
    snprintf(value, CLOUD_VALUE_MAX, "%s%s%s", all[k].before, all[k].text, all[k].after);
    return true;
}
