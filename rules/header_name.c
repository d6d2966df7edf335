#include "header_name.h"

#include <string.h>

static const char *const reserved[] = {
    "host",
    "content-length",
    "transfer-encoding",
    "te",
    "trailer",
    "connection",
    "keep-alive",
    "upgrade",
    "expect",
    "http2-settings",
    "accept-encoding",
    "content-encoding",
    "forwarded",
    "via",
    "max-forwards",
    "x-real-ip",
    "x-original-url",
    "x-rewrite-url",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "alt-used",
    "alt-svc",
};
static const char *const reserved_starts[] = {"proxy-", "x-forwarded-", "durward-", ":"};

static const char *const credentials[] = {
    "authorization",
    "www-authenticate",
    "authentication-info",
    "cookie",
    "cookie2",
    "set-cookie",
    "set-cookie2",
    "x-api-key",
    "api-key",
    "apikey",
    "x-apikey",
    "x-auth-key",
    "x-auth-email",
    "x-functions-key",
    "ocp-apim-subscription-key",
    "dd-application-key",
    "x-consul-token",
    "x-amz-security-token",
    "x-amz-credential",
    "x-amz-signature",
    "x-csrf-token",
    "x-xsrf-token",
    "signature",
    "signature-input",
    "dpop",
    "x-client-cert",
    "x-ssl-client-cert",
    "x-rapidapi-key",
    "x-mashape-key",
    "x-appwrite-key",
    "x-master-key",
    "x-parse-master-key",
    "x-license-key",
    "x-insert-key",
    "x-query-key",
    "x-key",
    "x-trackertoken",
    "x-honeycomb-team",
    "x-metabase-session",
    "x-authentication",
    "x-ms-authorization-auxiliary",
    "x-jwt",
    "jwt",
    "bearer",
};
static const char *const credential_ends[] = {
    "-token",       "-api-key",    "-apikey",        "-access-key", "-secret",
    "-secret-key",  "-password",   "-authorization", "-auth",       "-credential",
    "-credentials", "-session-id", "-session-key",   "-jwt",        "-jwt-assertion",
};

static bool any_is(struct slice name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (slice_ieq_str(name, list[i]))
            return true;
    return false;
}

bool header_name_ok(struct slice name)
{
    if (name.n == 0 || name.n > 128)
        return false;
    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] == 0 || (!ascii_is_alnum(name.p[i]) && !strchr("!#$%&'*+-.^_`|~", name.p[i])))
            return false;
    return true;
}

bool header_value_ok(struct slice value)
{
    if (value.n > 4096 || slice_trim(value).n != value.n)
        return false;
    for (size_t i = 0; i < value.n; i++) {
        unsigned char c = (unsigned char)value.p[i];
        if (c != '\t' && (c < 0x20 || c > 0x7e))
            return false;
    }
    return true;
}

bool header_name_is_reserved(struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(reserved_starts); i++)
        if (slice_istarts(name, slice_str(reserved_starts[i])))
            return true;
    return any_is(name, reserved, ARRAY_LEN(reserved));
}

bool header_name_is_credential(struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(credential_ends); i++) {
        struct slice end = slice_str(credential_ends[i]);
        if (name.n >= end.n && slice_ieq((struct slice){name.p + name.n - end.n, end.n}, end))
            return true;
    }
    return any_is(name, credentials, ARRAY_LEN(credentials)) ||
           slice_istarts(name, SLICE("proxy-auth"));
}
