/* Holds the lists of names that are reserved, that only a proxy writes, or that carry credentials,
 * and compares a name with them whole, by its beginning or by its last words. */
#include "header_name.h"

#include <string.h>

/* Names below are lower case, and whatever is no letter and no digit is "-" in them (fold). */
static const struct slice reserved[] = {
    SLICE_INIT("host"),
    SLICE_INIT("content-length"),
    SLICE_INIT("transfer-encoding"),
    SLICE_INIT("te"),
    SLICE_INIT("trailer"),
    SLICE_INIT("connection"),
    SLICE_INIT("keep-alive"),
    SLICE_INIT("upgrade"),
    SLICE_INIT("expect"),
    SLICE_INIT("http2-settings"),
    SLICE_INIT("accept-encoding"),
    SLICE_INIT("content-encoding"),
    SLICE_INIT("sec-websocket-accept"),
    SLICE_INIT("sec-websocket-extensions"),
    SLICE_INIT("sec-websocket-key"),
    SLICE_INIT("sec-websocket-version"),
    SLICE_INIT("http-method-override"),
    SLICE_INIT("x-http-method"),
    SLICE_INIT("x-http-method-override"),
    SLICE_INIT("x-method-override"),
    SLICE_INIT("alt-used"),
    SLICE_INIT("alt-svc"),
};
static const struct slice reserved_starts[] = {SLICE_INIT("durward-")};

/* What a proxy tells an origin of who asked, how, and for what. A client that writes one of these
 * speaks as a proxy; whole families, since each server and each proxy has names of its own. */
static const struct slice forwarding_starts[] = {
    SLICE_INIT("x-forwarded"),
    SLICE_INIT("x-forward-"),
    SLICE_INIT("x-forwarder-"),
    SLICE_INIT("forwarded-"),
    SLICE_INIT("x-original-"),
    SLICE_INIT("x-originating-"),
    SLICE_INIT("x-override-"),
    SLICE_INIT("x-rewrite-"),
    SLICE_INIT("x-real-"),
    SLICE_INIT("x-remote-"),
    SLICE_INIT("x-envoy-"),
    SLICE_INIT("x-proxy-"),
    SLICE_INIT("proxy-"),
    SLICE_INIT("x-proxyuser-"),
    SLICE_INIT("x-client-cert-"),
    SLICE_INIT("client-cert-"),
    SLICE_INIT("x-ssl-"),
    SLICE_INIT("ssl-client-"),
    SLICE_INIT("x-tls-client-"),
    SLICE_INIT("x-arr-"),
    SLICE_INIT("x-cluster-client-"),
    SLICE_INIT("true-client-"),
    SLICE_INIT("x-true-client-"),
    SLICE_INIT("cf-connecting-"),
    SLICE_INIT("x-vercel-forwarded-"),
    SLICE_INIT("x-vercel-ip-"),
    SLICE_INIT("x-vercel-proxied-"),
    SLICE_INIT("x-appengine-"),
    SLICE_INIT("x-amzn-oidc-"),
    SLICE_INIT("x-amzn-mtls-"),
    SLICE_INIT("x-amzn-tls-"),
    SLICE_INIT("x-goog-authenticated-user-"),
    SLICE_INIT("x-goog-iap-"),
    SLICE_INIT("x-ms-client-principal-"),
    SLICE_INIT("x-auth-request-"),
    SLICE_INIT("x-authenticated-"),
    SLICE_INIT("x-webauth-"),
    SLICE_INIT("x-accel-"),
    SLICE_INIT("x-sendfile-"),
    SLICE_INIT("x-middleware-"),
    SLICE_INIT("x-invoke-"),
};
static const struct slice forwarding[] = {
    SLICE_INIT("via"),
    SLICE_INIT("max-forwards"),
    SLICE_INIT("proxy"), /* which CGI makes HTTP_PROXY of */
    SLICE_INIT("forwarded"),
    SLICE_INIT("x-forward"),
    SLICE_INIT("x-host"),
    SLICE_INIT("x-host-override"),
    SLICE_INIT("x-http-host-override"),
    SLICE_INIT("x-http-destinationurl"),
    SLICE_INIT("x-backend-host"),
    SLICE_INIT("x-request-uri"),
    SLICE_INIT("x-request-url"),
    SLICE_INIT("x-url"),
    SLICE_INIT("x-uri"),
    SLICE_INIT("x-path-info"),
    SLICE_INIT("x-script-name"),
    SLICE_INIT("x-matched-path"),
    SLICE_INIT("x-waws-unencoded-url"),
    SLICE_INIT("x-scheme"),
    SLICE_INIT("x-url-scheme"),
    SLICE_INIT("front-end-https"),
    SLICE_INIT("remote-addr"),
    SLICE_INIT("remote-host"),
    SLICE_INIT("remote-ip"),
    SLICE_INIT("remote-user"),
    SLICE_INIT("remote-groups"),
    SLICE_INIT("remote-email"),
    SLICE_INIT("remote-name"),
    SLICE_INIT("client-ip"),
    SLICE_INIT("client-cert"),
    SLICE_INIT("x-client-ip"),
    SLICE_INIT("x-client-addr"),
    SLICE_INIT("x-client-address"),
    SLICE_INIT("x-client-host"),
    SLICE_INIT("x-client-port"),
    SLICE_INIT("x-client-cert"),
    SLICE_INIT("x-client-dn"),
    SLICE_INIT("x-client-subject"),
    SLICE_INIT("x-client-issuer"),
    SLICE_INIT("x-client-san"),
    SLICE_INIT("x-client-verify"),
    SLICE_INIT("x-client-verified"),
    SLICE_INIT("x-custom-ip-authorization"),
    SLICE_INIT("x-azure-clientip"),
    SLICE_INIT("x-azure-socketip"),
    SLICE_INIT("fastly-client-ip"),
    SLICE_INIT("fly-client-ip"),
    SLICE_INIT("do-connecting-ip"),
    SLICE_INIT("cf-ipcountry"),
    SLICE_INIT("x-ms-client-principal"),
    SLICE_INIT("x-consumer-id"),
    SLICE_INIT("x-consumer-custom-id"),
    SLICE_INIT("x-consumer-username"),
    SLICE_INIT("x-consumer-groups"),
    SLICE_INIT("x-nginx-proxy"),
};

/* By their whole names, where the last words do not say it. */
static const struct slice credentials[] = {
    SLICE_INIT("authentication"),
    SLICE_INIT("www-authenticate"),
    SLICE_INIT("authentication-info"),
    SLICE_INIT("cookie"),
    SLICE_INIT("cookie2"),
    SLICE_INIT("set-cookie"),
    SLICE_INIT("set-cookie2"),
    SLICE_INIT("x-auth-email"),
    SLICE_INIT("x-amz-credential"),
    SLICE_INIT("x-amz-signature"),
    SLICE_INIT("signature"),
    SLICE_INIT("signature-input"),
    SLICE_INIT("dpop"),
    SLICE_INIT("client-cert"),
    SLICE_INIT("x-client-cert"),
    SLICE_INIT("x-ssl-client-cert"),
    SLICE_INIT("x-key"),
    SLICE_INIT("x-trackertoken"),
    SLICE_INIT("x-honeycomb-team"),
    SLICE_INIT("x-metabase-session"),
    SLICE_INIT("x-authentication"),
    SLICE_INIT("x-ms-authorization-auxiliary"),
    SLICE_INIT("bearer"),
};
/* Where the APIs that many clients speak with read their keys. */
static const struct slice keys[] = {
    SLICE_INIT("authorization"),
    SLICE_INIT("proxy-authorization"),
    SLICE_INIT("cookie"),
    SLICE_INIT("set-cookie"),
    SLICE_INIT("x-api-key"),
    SLICE_INIT("api-key"),
    SLICE_INIT("apikey"),
    SLICE_INIT("x-goog-api-key"),
    SLICE_INIT("private-token"),
    SLICE_INIT("job-token"),
    SLICE_INIT("deploy-token"),
    SLICE_INIT("x-auth-token"),
    SLICE_INIT("x-auth-key"),
    SLICE_INIT("x-access-token"),
    SLICE_INIT("x-amz-security-token"),
    SLICE_INIT("x-vault-token"),
    SLICE_INIT("x-subscription-token"),
    SLICE_INIT("x-rapidapi-key"),
    SLICE_INIT("ocp-apim-subscription-key"),
    SLICE_INIT("x-functions-key"),
    SLICE_INIT("x-authorization"),
    SLICE_INIT("authentication"),
    SLICE_INIT("signature"),
    SLICE_INIT("dpop"),
};
/* The last words of names: each behind a "-", or the whole name. A key of anything else than
 * access (idempotency, cache, routing) is none. */
static const struct slice credential_ends[] = {
    SLICE_INIT("-token"),
    SLICE_INIT("-apitoken"),
    SLICE_INIT("-authtoken"),
    SLICE_INIT("-accesstoken"),
    SLICE_INIT("-api-key"),
    SLICE_INIT("-apikey"),
    SLICE_INIT("-auth-key"),
    SLICE_INIT("-authkey"),
    SLICE_INIT("-access-key"),
    SLICE_INIT("-accesskey"),
    SLICE_INIT("-secret"),
    SLICE_INIT("-secret-key"),
    SLICE_INIT("-secretkey"),
    SLICE_INIT("-session-key"),
    SLICE_INIT("-subscription-key"),
    SLICE_INIT("-functions-key"),
    SLICE_INIT("-application-key"),
    SLICE_INIT("-app-key"),
    SLICE_INIT("-appkey"),
    SLICE_INIT("-master-key"),
    SLICE_INIT("-admin-key"),
    SLICE_INIT("-service-key"),
    SLICE_INIT("-private-key"),
    SLICE_INIT("-signing-key"),
    SLICE_INIT("-license-key"),
    SLICE_INIT("-insert-key"),
    SLICE_INIT("-query-key"),
    SLICE_INIT("-rapidapi-key"),
    SLICE_INIT("-mashape-key"),
    SLICE_INIT("-appwrite-key"),
    SLICE_INIT("-password"),
    SLICE_INIT("-passwd"),
    SLICE_INIT("-passphrase"),
    SLICE_INIT("-authorization"),
    SLICE_INIT("-auth"),
    SLICE_INIT("-credential"),
    SLICE_INIT("-credentials"),
    SLICE_INIT("-jwt"),
    SLICE_INIT("-jwt-assertion"),
};
/* Such last words where the value alone can tell: where a listing goes on, which state a store had,
 * which try of a request this is; and Atlassian's word that a request was not forged (no-check). */
static const struct slice place_ends[] = {
    SLICE_INIT("-page-token"),         SLICE_INIT("-next-token"),
    SLICE_INIT("-continuation-token"), SLICE_INIT("-sync-token"),
    SLICE_INIT("-skip-token"),         SLICE_INIT("-resume-token"),
    SLICE_INIT("-ms-session-token"),   SLICE_INIT("-idempotency-token"),
    SLICE_INIT("-x-atlassian-token"),
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

static bool any_is(struct slice name, const struct slice *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (slice_eq(name, list[i]))
            return true;
    return false;
}

static bool any_begins(struct slice name, const struct slice *list, size_t n)
{
    if (name.n < 3)
        return false;
    for (size_t i = 0; i < n; i++)
        if (list[i].p[0] == name.p[0] && list[i].p[2] == name.p[2] && /* most end here */
            slice_starts(name, list[i]))
            return true;
    return false;
}

/* The name has at least the "-" of fold. */
static bool any_ends(struct slice name, const struct slice *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].p[list[i].n - 1] == name.p[name.n - 1] && /* most end here */
            slice_ends(name, list[i]))
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
           any_ends(s, place_ends, ARRAY_LEN(place_ends)) || slice_ends(s, SLICE("-sid"));
}
