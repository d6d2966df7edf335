/* Asks an MCP server, and whom it names, for what they say of themselves. */
#include "login_discover.h"

#include <stdio.h>
#include <string.h>

static const char hello[] =
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
    "\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"durward\",\"version\":\"1\"}}}";

/* What it says to whoever has no token. */
static int knock(struct login_net *n, const struct login_url *at, struct login_answer *a,
                 struct err *err)
{
    struct login_ask q = {.method = "POST",
                          .at = at,
                          .type = "application/json",
                          .body = {hello, sizeof hello - 1},
                          .head_only = true};
    if (login_http(n, &q, a, err) < 0)
        return -1;
    if (a->status == 401)
        return 0;
    if (a->status / 100 == 2)
        return err_set(err, ERR_UNREADY, "%s wants no login: a rule with `mcp` is enough",
                       at->text);
    return err_set(err, ERR_UPSTREAM,
                   "%s answers %u to whoever has no token, not 401: is that the URL of its MCP "
                   "endpoint?",
                   at->text, a->status);
}

/* 1: the document; 0: there is none. */
static int resource_document(struct login_net *n, const struct login_server *s,
                             const char *challenge, json_t **ret, struct err *err)
{
    static const char name[] = "oauth-protected-resource";
    char text[LOGIN_URL_MAX + 1];
    struct login_url at;
    int r = login_challenge(challenge, "resource_metadata", text, sizeof text);
    if (r < 0)
        return err_set(err, ERR_UPSTREAM, "the server's WWW-Authenticate cannot be read");
    if (r == 1) {
        if (login_url_read(&at, text, "the server's resource_metadata", err) < 0)
            return -1;
        if (!login_url_same_origin(&at, &s->at))
            return err_set(err, ERR_DENIED,
                           "the server says that its metadata lies at %s: another's word about it "
                           "is not taken",
                           at.at.host);
        return login_document(n, &at, ret, err);
    }
    if (login_url_known(&at, &s->at, name, false, err) < 0)
        return -1;
    r = login_document(n, &at, ret, err);
    if (r != 0 || strlen(login_url_path(&s->at)) < 2)
        return r;
    struct login_url root = s->at;
    root.text[root.path] = 0;
    return login_url_known(&at, &root, name, false, err) < 0 ? -1
                                                             : login_document(n, &at, ret, err);
}

static int find_resource(struct login_net *n, struct login_server *s, const char *challenge,
                         const char *issuer, struct err *err)
{
    json_t *v = NULL;
    struct login_url named;
    int r = resource_document(n, s, challenge, &v, err);
    if (r == 1)
        r = login_take_resource(s, v, issuer, err);
    else if (r == 0 && issuer == NULL)
        r = err_set(err, ERR_UPSTREAM,
                    "the server does not say who lets one in (RFC 9728); if you know it, name the "
                    "authorization server with --issuer URL");
    else if (r == 0 && login_url_read(&named, issuer, "--issuer", err) < 0)
        r = -1;
    else if (r == 0) {
        s->resource = s->at;
        snprintf(s->issuer, sizeof s->issuer, "%s", named.text);
    }
    json_decref(v);
    return r;
}

static int find_issuer(struct login_net *n, struct login_server *s, struct err *err)
{
    static const struct {
        const char *name;
        bool behind;
    } places[] = {{"oauth-authorization-server", false},
                  {"openid-configuration", false},
                  {"openid-configuration", true}};
    struct login_url issuer, at;
    json_t *v = NULL;
    int r = 0;
    if (login_url_read(&issuer, s->issuer, "the issuer", err) < 0)
        return -1;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(places); i++) {
        if (login_url_known(&at, &issuer, places[i].name, places[i].behind, err) < 0)
            return -1;
        r = login_document(n, &at, &v, err);
    }
    if (r == 0)
        return err_set(err, ERR_UPSTREAM,
                       "%s has no metadata of an authorization server (RFC 8414)", s->issuer);
    r = r < 0 ? -1 : login_take_issuer(s, v, err);
    json_decref(v);
    return r;
}

int login_discover(struct login_net *n, struct login_server *s, const char *issuer,
                   const char *scope, struct err *err)
{
    struct login_answer a;
    char said[LOGIN_SCOPE_MAX + 1];
    s->chosen = issuer != NULL;
    if (knock(n, &s->at, &a, err) < 0) {
        login_answer_done(&a);
        return -1;
    }
    login_answer_done(&a);
    if (scope)
        snprintf(s->scope, sizeof s->scope, "%s", scope);
    else if (login_challenge(a.challenge, "scope", said, sizeof said) == 1 && login_scope_ok(said))
        snprintf(s->scope, sizeof s->scope, "%s", said);
    if (find_resource(n, s, a.challenge, issuer, err) < 0 || find_issuer(n, s, err) < 0)
        return -1;
    size_t at = strlen(s->scope);
    if (scope == NULL && s->offline && strstr(s->scope, "offline_access") == NULL)
        snprintf(s->scope + at, sizeof s->scope - at, "%soffline_access", at ? " " : "");
    return 0;
}
