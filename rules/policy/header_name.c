/* Holds the lists of names that are reserved, that only a proxy writes, or that carry credentials,
 * and compares a name with them whole, by its beginning or by its last words. */
#include "header_name.h"

#include <string.h>

/* Names below are lower case, and whatever is no letter and no digit is "-" in them (fold). */
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
    "sec-websocket-accept",
    "sec-websocket-extensions",
    "sec-websocket-key",
    "sec-websocket-version",
    "http-method-override",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "alt-used",
    "alt-svc",
};
static const char *const reserved_starts[] = {"durward-"};

/* What a proxy tells an origin of who asked, how, and for what. A client that writes one of these
 * speaks as a proxy; whole families, since each server and each proxy has names of its own. */
static const char *const forwarding_starts[] = {
    "x-forwarded",
    "x-forward-",
    "x-forwarder-",
    "forwarded-",
    "x-original-",
    "x-originating-",
    "x-override-",
    "x-rewrite-",
    "x-real-",
    "x-remote-",
    "x-envoy-",
    "x-proxy-",
    "proxy-",
    "x-proxyuser-",
    "x-client-cert-",
    "client-cert-",
    "x-ssl-",
    "ssl-client-",
    "x-tls-client-",
    "x-arr-",
    "x-cluster-client-",
    "true-client-",
    "x-true-client-",
    "cf-connecting-",
    "x-vercel-forwarded-",
    "x-vercel-ip-",
    "x-vercel-proxied-",
    "x-appengine-",
    "x-amzn-oidc-",
    "x-amzn-mtls-",
    "x-amzn-tls-",
    "x-goog-authenticated-user-",
    "x-goog-iap-",
    "x-ms-client-principal-",
    "x-auth-request-",
    "x-authenticated-",
    "x-webauth-",
    "x-accel-",
    "x-sendfile-",
    "x-middleware-",
    "x-invoke-",
};
static const char *const forwarding[] = {
    "via",
    "max-forwards",
    "proxy", /* which CGI makes HTTP_PROXY of */
    "forwarded",
    "x-forward",
    "x-host",
    "x-host-override",
    "x-http-host-override",
    "x-http-destinationurl",
    "x-backend-host",
    "x-request-uri",
    "x-request-url",
    "x-url",
    "x-uri",
    "x-path-info",
    "x-script-name",
    "x-matched-path",
    "x-waws-unencoded-url",
    "x-scheme",
    "x-url-scheme",
    "front-end-https",
    "remote-addr",
    "remote-host",
    "remote-ip",
    "remote-user",
    "remote-groups",
    "remote-email",
    "remote-name",
    "client-ip",
    "client-cert",
    "x-client-ip",
    "x-client-addr",
    "x-client-address",
    "x-client-host",
    "x-client-port",
    "x-client-cert",
    "x-client-dn",
    "x-client-subject",
    "x-client-issuer",
    "x-client-san",
    "x-client-verify",
    "x-client-verified",
    "x-custom-ip-authorization",
    "x-azure-clientip",
    "x-azure-socketip",
    "fastly-client-ip",
    "fly-client-ip",
    "do-connecting-ip",
    "cf-ipcountry",
    "x-ms-client-principal",
    "x-consumer-id",
    "x-consumer-custom-id",
    "x-consumer-username",
    "x-consumer-groups",
    "x-nginx-proxy",
};

/* By their whole names, where the last words do not say it. */
static const char *const credentials[] = {
    "authentication",
    "www-authenticate",
    "authentication-info",
    "cookie",
    "cookie2",
    "set-cookie",
    "set-cookie2",
    "x-auth-email",
    "x-amz-credential",
    "x-amz-signature",
    "signature",
    "signature-input",
    "dpop",
    "client-cert",
    "x-client-cert",
    "x-ssl-client-cert",
    "x-key",
    "x-trackertoken",
    "x-honeycomb-team",
    "x-metabase-session",
    "x-authentication",
    "x-ms-authorization-auxiliary",
    "bearer",
};
/* Where the APIs that many clients speak with read their keys. */
static const char *const keys[] = {
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "x-api-key",
    "api-key",
    "apikey",
    "x-goog-api-key",
    "private-token",
    "job-token",
    "deploy-token",
    "x-auth-token",
    "x-auth-key",
    "x-access-token",
    "x-amz-security-token",
    "x-vault-token",
    "x-subscription-token",
    "x-rapidapi-key",
    "ocp-apim-subscription-key",
    "x-functions-key",
    "x-authorization",
    "authentication",
    "signature",
    "dpop",
};
/* The last words of names: each behind a "-", or the whole name. A key of anything else than
 * access (idempotency, cache, routing) is none. */
static const char *const credential_ends[] = {
    "-token",         "-apitoken",        "-authtoken",    "-accesstoken",   "-api-key",
    "-apikey",        "-auth-key",        "-authkey",      "-access-key",    "-accesskey",
    "-secret",        "-secret-key",      "-secretkey",    "-session-key",   "-subscription-key",
    "-functions-key", "-application-key", "-app-key",      "-appkey",        "-master-key",
    "-admin-key",     "-service-key",     "-private-key",  "-signing-key",   "-license-key",
    "-insert-key",    "-query-key",       "-rapidapi-key", "-mashape-key",   "-appwrite-key",
    "-password",      "-passwd",          "-passphrase",   "-authorization", "-auth",
    "-credential",    "-credentials",     "-jwt",          "-jwt-assertion",
};
/* Such last words where the value alone can tell: where a listing goes on, which state a store had.
 */
static const char *const place_ends[] = {
    "-page-token", "-next-token",   "-continuation-token", "-sync-token",
    "-skip-token", "-resume-token", "-ms-session-token",
};

enum { FOLDED_MAX = 200, FOLDED_FRONT = 100 };

/* "-NAME", to compare last words with. Of a longer name than any of ours the middle is left out. */
static struct slice fold(struct slice name, char to[FOLDED_MAX])
{
    size_t cut = name.n < FOLDED_MAX - 1 ? 0 : name.n - (FOLDED_MAX - 1), n = 0;
    to[n++] = '-';
    for (size_t i = 0; i < name.n; i++) {
        if (i == FOLDED_FRONT)
            i += cut;
        to[n++] = ascii_is_alnum(name.p[i]) ? ascii_lower(name.p[i]) : '-';
    }
    return (struct slice){to, n};
}

static struct slice whole(struct slice folded)
{
    return (struct slice){folded.p + 1, folded.n - 1};
}

static bool any_is(struct slice name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (slice_eq_str(name, list[i]))
            return true;
    return false;
}

static bool any_begins(struct slice name, const char *const *list, size_t n)
{
    if (name.n < 3)
        return false;
    for (size_t i = 0; i < n; i++)
        if (list[i][0] == name.p[0] && list[i][2] == name.p[2] && /* most end here */
            slice_starts(name, slice_str(list[i])))
            return true;
    return false;
}

static bool any_ends(struct slice name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct slice end = slice_str(list[i]);
        if (name.n >= end.n && slice_eq((struct slice){name.p + name.n - end.n, end.n}, end))
            return true;
    }
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

bool header_name_is_forwarding(struct slice name)
{
    char text[FOLDED_MAX];
    struct slice s = whole(fold(name, text));
    return any_begins(s, forwarding_starts, ARRAY_LEN(forwarding_starts)) ||
           any_is(s, forwarding, ARRAY_LEN(forwarding));
}

bool header_name_is_reserved(struct slice name)
{
    char text[FOLDED_MAX];
    struct slice s = whole(fold(name, text));
    return (name.n > 0 && name.p[0] == ':') ||
           any_begins(s, reserved_starts, ARRAY_LEN(reserved_starts)) ||
           any_is(s, reserved, ARRAY_LEN(reserved)) || header_name_is_forwarding(name);
}

bool header_name_is_credential(struct slice name)
{
    char text[FOLDED_MAX];
    struct slice s = fold(name, text);
    if (any_ends(s, place_ends, ARRAY_LEN(place_ends)))
        return false;
    return any_ends(s, credential_ends, ARRAY_LEN(credential_ends)) ||
           any_is(whole(s), credentials, ARRAY_LEN(credentials)) ||
           slice_starts(s, SLICE("-proxy-auth"));
}

bool header_name_is_key(struct slice name)
{
    char text[FOLDED_MAX];
    return any_is(whole(fold(name, text)), keys, ARRAY_LEN(keys));
}

bool header_name_may_hold_credential(struct slice name)
{
    char text[FOLDED_MAX];
    struct slice s = fold(name, text);
    return slice_find_slice(s, SLICE("session")) >= 0 ||
           any_ends(s, place_ends, ARRAY_LEN(place_ends)) ||
           any_ends(s, (const char *const[]){"-sid"}, 1);
}
