/* What the machine itself is: an instance, a container or a workload, whose metadata service or
 * projected token says so, and what that is exchanged for. */
#include "derived_internal.h"

#include "aws_sign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SESSION_SECONDS = 21600, URL_MAX = 2048 };

bool derived_is_ambient(const struct derived *m)
{
    return m->kind == DERIVED_TOKEN_EXCHANGE || m->kind == DERIVED_GOOGLE_INSTANCE ||
           m->kind == DERIVED_AZURE_INSTANCE || m->kind == DERIVED_AWS_WEB_IDENTITY ||
           m->kind == DERIVED_AWS_CONTAINER || m->kind == DERIVED_AWS_INSTANCE ||
           m->kind == DERIVED_AWS_SESSION;
}

/* ---- asking ---- */

/* The URL that is asked instead of the endpoint's own. */
static int ask_at(struct token_request *r, struct slice url)
{
    r->made = slice_dup(url);
    r->url = r->made ? r->made : r->url;
    return r->made ? 0 : -1;
}

static int put_text(const struct derived *m, struct buf *b, const char *name, enum spec_field f)
{
    return derived_form(b, name, slice_str(derived_text(m, f)));
}

/* RFC 8693 2.1. */
static int ask_exchange(const struct derived *m, struct secret *const *in, struct token_request *r)
{
    struct buf *b = &r->body;
    return derived_field(r, "content-type", "application/x-www-form-urlencoded") |
           derived_form(b, "grant_type", SLICE("urn:ietf:params:oauth:grant-type:token-exchange")) |
           put_text(m, b, "audience", SPEC_AUDIENCE) | put_text(m, b, "scope", SPEC_SCOPE) |
           derived_form(b, "requested_token_type",
                        SLICE("urn:ietf:params:oauth:token-type:access_token")) |
           put_text(m, b, "subject_token_type", SPEC_SUBJECT_TOKEN_TYPE) |
           derived_form(b, "subject_token", secret_slice(in[0]));
}

/* It is not signed: the token says who asks. */
static int ask_web_identity(const struct derived *m, struct secret *const *in,
                            struct token_request *r)
{
    struct buf *b = &r->body;
    return derived_field(r, "content-type", "application/x-www-form-urlencoded") |
           derived_form(b, "Action", SLICE("AssumeRoleWithWebIdentity")) |
           derived_form(b, "Version", SLICE("2011-06-15")) |
           put_text(m, b, "RoleArn", SPEC_ROLE_ARN) |
           put_text(m, b, "RoleSessionName", SPEC_SESSION_NAME) |
           put_text(m, b, "DurationSeconds", SPEC_DURATION) |
           derived_form(b, "WebIdentityToken", secret_slice(in[0]));
}

static int ask_azure(const struct derived *m, struct token_request *r)
{
    struct buf query, url;
    buf_init(&query, URL_MAX);
    buf_init(&url, 2 * URL_MAX);
    int bad = put_text(m, &query, "resource", SPEC_RESOURCE) |
              put_text(m, &query, "client_id", SPEC_CLIENT_ID);
    bad |= buf_printf(&url, "%s?api-version=2018-02-01&", derived_text(m, SPEC_ENDPOINT)) |
           buf_append_slice(&url, buf_slice(&query));
    bad = bad ? -1 : ask_at(r, buf_slice(&url));
    buf_free(&query);
    buf_free(&url);
    return bad | derived_field(r, "metadata", "true");
}

/* What a service tells a container by its variables: a path below the address that it may reach. */
static bool is_path(struct slice s)
{
    bool good = s.n > 1 && s.p[0] == '/';
    for (size_t i = 0; good && i < s.n; i++)
        good = ascii_is_alnum(s.p[i]) || strchr("/-._~", s.p[i]);
    return good && slice_find_slice(s, SLICE("..")) < 0 && slice_find_slice(s, SLICE("//")) < 0;
}

static int ask_container(const struct derived *m, struct secret *const *in, struct token_request *r,
                         struct err *err)
{
    const char *endpoint = derived_text(m, SPEC_ENDPOINT);
    bool has_path = *derived_text(m, SPEC_PATH), has_token = *derived_text(m, SPEC_TOKEN);
    int bad = 0;
    if (has_path) {
        struct slice path = secret_slice(in[0]);
        struct buf url;
        size_t n = strlen(endpoint);
        if (!is_path(path))
            return err_set(err, ERR_PARSE, "its 'path' is not the path of a URL");
        buf_init(&url, URL_MAX);
        bad =
            buf_append(&url, endpoint, n - (endpoint[n - 1] == '/')) | buf_append_slice(&url, path);
        bad = bad ? -1 : ask_at(r, buf_slice(&url));
        buf_free(&url);
    }
    struct buf *to = has_token ? token_request_field(r, "authorization") : NULL;
    return to ? bad | buf_append_slice(to, secret_slice(in[has_path])) : bad;
}

static int ask_session(struct token_request *r)
{
    char seconds[16];
    snprintf(seconds, sizeof seconds, "%d", SESSION_SECONDS);
    r->method = "PUT";
    return derived_field(r, "x-aws-ec2-metadata-token-ttl-seconds", seconds);
}

int derived_ambient_ask(const struct derived *m, struct secret *const *in, struct token_request *r,
                        struct err *err)
{
    struct buf *token;
    if (m->kind == DERIVED_TOKEN_EXCHANGE)
        return ask_exchange(m, in, r);
    if (m->kind == DERIVED_AWS_WEB_IDENTITY)
        return ask_web_identity(m, in, r);
    if (m->kind == DERIVED_AWS_SESSION)
        return ask_session(r);
    r->method = "GET";
    switch (m->kind) {
    case DERIVED_GOOGLE_INSTANCE:
        return derived_field(r, "metadata-flavor", "Google");
    case DERIVED_AZURE_INSTANCE:
        return ask_azure(m, r);
    case DERIVED_AWS_CONTAINER:
        return ask_container(m, in, r, err);
    default:
        token = token_request_field(r, "x-aws-ec2-metadata-token");
        return token ? buf_append_slice(token, secret_slice(in[0])) : -1;
    }
}

/* ---- the answer ---- */

static int take_pair(const json_t *c, const char *token, time_t now, struct derived_answer *ret)
{
    const char *id = json_string_value(json_object_get(c, "AccessKeyId"));
    const char *key = json_string_value(json_object_get(c, "SecretAccessKey"));
    const char *session = json_string_value(json_object_get(c, token));
    if (id && key && session)
        ret->value = aws_pair_pack(slice_str(id), slice_str(key), slice_str(session));
    ret->seconds = derived_life(derived_until(json_object_get(c, "Expiration"), now));
    return ret->value ? 0 : -1;
}

/* "3599" or 3599. */
static int64_t seconds_of(const json_t *v)
{
    uint64_t n;
    if (json_is_integer(v))
        return json_integer_value(v) > INT32_MAX ? INT32_MAX : json_integer_value(v);
    return slice_u64(slice_str(json_string_value(v)), INT32_MAX, &n) == 0 ? (int64_t)n : -1;
}

static int take_token(const json_t *v, struct derived_answer *ret)
{
    const char *type = json_string_value(json_object_get(v, "token_type"));
    int64_t life = seconds_of(json_object_get(v, "expires_in"));
    if (type && !slice_ieq_str(slice_str(type), "bearer"))
        return -1;
    ret->value = derived_token(json_object_get(v, "access_token"));
    ret->seconds = derived_life(life < 0 ? DERIVED_LIFE : life);
    return ret->value ? 0 : -1;
}

int derived_ambient_take(const struct derived *m, const json_t *v, struct slice text, time_t now,
                         struct derived_answer *ret)
{
    if (m->kind == DERIVED_AWS_SESSION) {
        json_t *token = json_stringn(text.p, text.n);
        ret->value = derived_token(token);
        ret->seconds = derived_life(SESSION_SECONDS);
        json_decref(token);
        return ret->value ? 0 : -1;
    }
    if (m->kind == DERIVED_AWS_WEB_IDENTITY) {
        v = json_object_get(v, "AssumeRoleWithWebIdentityResponse");
        v = json_object_get(json_object_get(v, "AssumeRoleWithWebIdentityResult"), "Credentials");
        return take_pair(v, "SessionToken", now, ret);
    }
    if (m->kind == DERIVED_AWS_CONTAINER || m->kind == DERIVED_AWS_INSTANCE)
        return take_pair(v, "Token", now, ret);
    return take_token(v, ret);
}
