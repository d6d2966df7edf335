/* `forwarded` of a listener: who sends requests on to it, and how he shows that he is it. */
#include <string.h>

#include "config_tree.h"

/* https://HOST[:PORT][/PATH], as the provider's tokens name it: no query, no slash at the end. */
static int read_url(struct config *c, const struct node *n, const char *key, const char **ret,
                    struct err *err)
{
    struct node at;
    struct authority a;
    const char *value;
    if (!node_get(n, key, &at))
        return node_fail(n, err, "'%s' is missing", key);
    if (node_string(&at, &value, err) < 0)
        return -1;
    struct slice rest = slice_str(value);
    if (!slice_starts(rest, SLICE("https://")))
        return node_fail(&at, err, "'%.200s' is not an https:// URL", value);
    rest.p += 8;
    rest.n -= 8;
    ssize_t slash = slice_find(rest, '/');
    struct slice host = {rest.p, slash < 0 ? rest.n : (size_t)slash};
    if (authority_parse(&a, SCHEME_HTTPS, host) < 0 || strlen(value) > 2000 ||
        strpbrk(value, "?#% \t\"\\") || value[strlen(value) - 1] == '/')
        return node_fail(&at, err,
                         "'%.200s' is not https://HOST[/PATH], without a query or a slash at its "
                         "end",
                         value);
    *ret = arena_str(c->arena, value);
    return 0;
}

static int read_id(struct config *c, const struct node *n, const char *key, const char **ret,
                   struct err *err)
{
    struct node at;
    const char *value;
    if (!node_get(n, key, &at))
        return 0;
    if (node_string(&at, &value, err) < 0)
        return -1;
    if (strlen(value) > 128)
        return node_fail(&at, err, "longer than 128 bytes");
    *ret = arena_str(c->arena, value);
    return 0;
}

static const struct key forwarded_keys[] = {
    KEY("url", AS(base_url), "required",
        "what the provider was told, `https://HOST[/PATH]` without a slash at the end: the "
        "audience of its tokens"),
    KEY("issuer", AS(base_url), "required", "who signs, exactly as the tokens say it"),
    KEY("team", AS(id), "required",
        "whose sandboxes these are (`team_id` of the token). The provider signs for all of its "
        "customers: without it anybody's sandbox would be yours"),
    KEY("project", AS(id), "any of the team's", "only those of this project (`project_id`)"),
    KEY("keys", AS(path), "required",
        "file with the issuer's key set (RFC 7517; what ISSUER/.well-known/jwks says), of which "
        "the RSA keys with a `kid` count. Nothing fetches it; it is read again at each reload"),
};

int config_read_forwarded(struct config *c, const struct node *n, struct config_listen *l,
                          struct err *err)
{
    struct config_forwarded *f = arena_zalloc(c->arena, 1, sizeof *f);
    struct node at;
    if (node_is_object(n, err) < 0 || node_keys(n, KEYS(forwarded_keys), err) < 0 ||
        read_url(c, n, "url", &f->url, err) < 0 || read_url(c, n, "issuer", &f->issuer, err) < 0 ||
        read_id(c, n, "team", &f->team, err) < 0 || read_id(c, n, "project", &f->project, err) < 0)
        return -1;
    if (l->policy == NULL)
        return node_fail(n, err, "what is sent on needs a 'policy' beside 'forwarded'");
    if (f->team == NULL)
        return node_fail(n, err,
                         "'team' is missing: the provider signs for all of its customers, so say "
                         "whose sandboxes these are");
    if (!node_get(n, "keys", &at))
        return node_fail(n, err,
                         "'keys' is missing: the file with the issuer's key set "
                         "(ISSUER/.well-known/jwks)");
    l->forwarded = f;
    return config_file(c, &at, &f->keys, err);
}
