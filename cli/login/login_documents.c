/* Reads what an MCP server and its authorization server say of themselves. They may be anybody's:
 * each word is checked. */
#include "login_discover.h"

#include <stdio.h>
#include <string.h>

static const char *const auth_names[] = {
    [LOGIN_AUTH_NONE] = "none",
    [LOGIN_AUTH_POST] = "client_secret_post",
    [LOGIN_AUTH_BASIC] = "client_secret_basic",
};

const char *login_auth_name(enum login_auth a)
{
    return auth_names[a];
}

enum login_auth login_auth_read(const char *name)
{
    for (size_t i = LOGIN_AUTH_NONE; i < ARRAY_LEN(auth_names); i++)
        if (name && strcmp(name, auth_names[i]) == 0)
            return (enum login_auth)i;
    return 0;
}

bool login_scope_ok(const char *scope)
{
    for (const char *p = scope; *p; p++)
        if (*p < 0x20 || *p >= 0x7f || *p == '"' || *p == '\\')
            return false;
    return strlen(scope) <= LOGIN_SCOPE_MAX;
}

/* ---- WWW-Authenticate ---- */

static bool is_token(char c)
{
    return ascii_is_alnum(c) || (c && strchr("!#$%&'*+-.^_`|~/", c));
}

static const char *skip(const char *p)
{
    return p + strspn(p, " \t,");
}

/* A quoted text or a token at p, into to; where it ends, NULL: it is none, or too long. */
static const char *read_value(const char *p, char *to, size_t size)
{
    size_t n = 0;
    bool quoted = *p == '"';
    for (p += quoted; quoted ? *p && *p != '"' : is_token(*p); p++) {
        if (quoted && *p == '\\' && p[1])
            p++;
        if (n + 1 >= size)
            return NULL;
        to[n++] = *p;
    }
    to[n] = 0;
    if (quoted && *p != '"')
        return NULL;
    return p + quoted;
}

int login_challenge(const char *text, const char *name, char *to, size_t size)
{
    char word[64], value[LOGIN_CHALLENGE_MAX];
    bool bearer = false;
    int found = 0;
    to[0] = 0;
    for (const char *p = skip(text); *p; p = skip(p)) {
        if ((p = read_value(p, word, sizeof word)) == NULL || (word[0] == 0 && *p != '='))
            return -1;
        const char *eq = p + strspn(p, " \t");
        if (*eq != '=') { /* the name of a scheme */
            bearer = slice_ieq_str(slice_str(word), "bearer");
            continue;
        }
        p = eq + strspn(eq, "= \t"); /* a token68 ends in such signs */
        if (*p == ',' || *p == 0)
            continue;
        if ((p = read_value(p, value, sizeof value)) == NULL)
            return -1;
        if (!bearer || !slice_ieq_str(slice_str(word), name))
            continue;
        if ((found && strcmp(to, value) != 0) || strlen(value) >= size)
            return -1;
        snprintf(to, size, "%s", value);
        found = 1;
    }
    return found;
}

/* ---- documents ---- */

static const char *text_of(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    const char *s = json_string_value(v);
    return s && strlen(s) == json_string_length(v) ? s : NULL;
}

/* true: the list is not there, or has it. */
static bool lists(const json_t *o, const char *key, const char *word)
{
    const json_t *v = json_object_get(o, key), *item;
    bool has = v == NULL || json_is_null(v);
    size_t i;
    json_array_foreach(v, i, item) has =
        has || (json_is_string(item) && strcmp(json_string_value(item), word) == 0);
    return has;
}

/* All words of a list, where they are scopes, as one text. */
static void add_scopes(struct login_server *s, const json_t *list)
{
    const json_t *item;
    size_t i, at = strlen(s->scope);
    json_array_foreach(list, i, item)
    {
        const char *word = json_string_value(item);
        if (word && *word && strchr(word, ' ') == NULL && login_scope_ok(word) &&
            at + strlen(word) + 2 < sizeof s->scope)
            at +=
                (size_t)snprintf(s->scope + at, sizeof s->scope - at, "%s%s", at ? " " : "", word);
    }
}

/* The authorization server: the one that was asked for, or the first. */
static const char *choose(const json_t *list, const char *issuer)
{
    const json_t *item;
    size_t i;
    json_array_foreach(list, i, item)
    {
        const char *one = json_string_value(item);
        if (one && (issuer == NULL || login_url_same(one, issuer)))
            return one;
    }
    return NULL;
}

int login_take_resource(struct login_server *s, const json_t *v, const char *issuer,
                        struct err *err)
{
    const char *resource = text_of(v, "resource");
    if (resource == NULL)
        return err_set(err, ERR_UPSTREAM, "the server's metadata names no resource (RFC 9728)");
    if (login_url_read(&s->resource, resource, "the resource of the server's metadata", err) < 0)
        return -1;
    if (!login_url_plain(&s->resource) || !login_url_covers(&s->resource, &s->at))
        return err_set(err, ERR_DENIED,
                       "the server's metadata is about another resource, %s: a token for that is "
                       "not asked for",
                       s->resource.text);
    if (!lists(v, "bearer_methods_supported", "header"))
        return err_set(err, ERR_UPSTREAM, "the server takes no token in a header");
    const char *who = choose(json_object_get(v, "authorization_servers"), issuer);
    struct login_url read;
    if (who == NULL)
        return err_set(err, ERR_UPSTREAM,
                       issuer ? "the server's metadata does not name the authorization server "
                                "that --issuer says"
                              : "the server's metadata names no authorization server");
    if (login_url_read(&read, who, "the authorization server's issuer", err) < 0)
        return -1;
    if (strchr(login_url_path(&read), '?'))
        return err_set(err, ERR_DENIED, "the authorization server's issuer has a query");
    snprintf(s->issuer, sizeof s->issuer, "%s", read.text);
    if (s->scope[0] == 0)
        add_scopes(s, json_object_get(v, "scopes_supported"));
    return 0;
}

static int take_endpoint(const json_t *v, const char *key, struct login_url *to, struct err *err)
{
    const char *text = text_of(v, key);
    char what[80];
    snprintf(what, sizeof what, "the authorization server's %s", key);
    return login_url_read(to, text, what, err);
}

static void take_auths(struct login_server *s, const json_t *v)
{
    static const char key[] = "token_endpoint_auth_methods_supported";
    for (unsigned i = LOGIN_AUTH_NONE; i < ARRAY_LEN(auth_names); i++)
        if (lists(v, key, auth_names[i]))
            s->auths |= 1u << i;
}

int login_take_issuer(struct login_server *s, const json_t *v, struct err *err)
{
    const char *issuer = text_of(v, "issuer");
    if (issuer == NULL || !login_url_same(issuer, s->issuer))
        return err_set(err, ERR_DENIED,
                       "the metadata of %s is that of another issuer: it is not believed (RFC "
                       "8414, 3.3)",
                       s->issuer);
    if (take_endpoint(v, "authorization_endpoint", &s->authorize, err) < 0 ||
        take_endpoint(v, "token_endpoint", &s->token, err) < 0)
        return -1;
    if (!login_url_plain(&s->token))
        return err_set(err, ERR_PARSE,
                       "the authorization server's token_endpoint has a query or an "
                       "escape");
    s->one_origin = login_url_same_origin(&s->authorize, &s->token);
    s->registers = json_object_get(v, "registration_endpoint") != NULL;
    if (s->registers && take_endpoint(v, "registration_endpoint", &s->registration, err) < 0)
        return -1;
    if (!json_is_array(json_object_get(v, "code_challenge_methods_supported")) ||
        !lists(v, "code_challenge_methods_supported", "S256"))
        return err_set(err, ERR_DENIED,
                       "the authorization server does not say that it takes PKCE with S256: "
                       "without it a code could be used by whoever catches it");
    if (!lists(v, "response_types_supported", "code") ||
        !lists(v, "grant_types_supported", "authorization_code"))
        return err_set(err, ERR_UPSTREAM, "the authorization server gives no codes");
    s->says_issuer =
        json_is_true(json_object_get(v, "authorization_response_iss_parameter_supported"));
    snprintf(s->issuer, sizeof s->issuer, "%s", issuer);
    s->offline =
        json_object_get(v, "scopes_supported") && lists(v, "scopes_supported", "offline_access");
    take_auths(s, v);
    return 0;
}
