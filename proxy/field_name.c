#include "field_name.h"

#include "header_name.h"

static const struct known {
    const char *name;
    unsigned kinds;
} table[] = {
    {"connection", FIELD_HOP},
    {"proxy-connection", FIELD_HOP},
    {"keep-alive", FIELD_HOP},
    {"te", FIELD_HOP},
    {"trailer", FIELD_HOP},
    {"transfer-encoding", FIELD_HOP},
    {"upgrade", FIELD_HOP},
    {"proxy-authenticate", FIELD_HOP},
    {"proxy-authorization", FIELD_HOP},
    {"proxy-authentication-info", FIELD_HOP},
    {"http2-settings", FIELD_HOP},
    {"sec-websocket-key", FIELD_HOP},
    {"sec-websocket-accept", FIELD_HOP},
    {"sec-websocket-version", FIELD_HOP},
    {"sec-websocket-extensions", FIELD_HOP},
    {"host", FIELD_ROUTE},
    {"content-length", FIELD_ROUTE},
    {"expect", FIELD_ROUTE},
    {"max-forwards", FIELD_ROUTE},
    {"via", FIELD_ROUTE},
    {"forwarded", FIELD_ROUTE},
    {"x-forwarded-for", FIELD_ROUTE},
    {"x-forwarded-host", FIELD_ROUTE},
    {"x-forwarded-proto", FIELD_ROUTE},
    {"x-forwarded-port", FIELD_ROUTE},
    {"x-forwarded-server", FIELD_ROUTE},
    {"x-forwarded-prefix", FIELD_ROUTE},
    {"x-original-url", FIELD_ROUTE},
    {"x-original-host", FIELD_ROUTE},
    {"x-rewrite-url", FIELD_ROUTE},
    {"x-real-ip", FIELD_ROUTE},
    {"x-host", FIELD_ROUTE},
    {"x-http-host-override", FIELD_ROUTE},
    {"x-client-ip", FIELD_ROUTE},
    {"true-client-ip", FIELD_ROUTE},
    {"cf-connecting-ip", FIELD_ROUTE},
    {"authorization", FIELD_CREDENTIAL},
    {"x-api-key", FIELD_CREDENTIAL},
    {"api-key", FIELD_CREDENTIAL},
    {"apikey", FIELD_CREDENTIAL},
    {"x-goog-api-key", FIELD_CREDENTIAL},
    {"private-token", FIELD_CREDENTIAL},
    {"job-token", FIELD_CREDENTIAL},
    {"deploy-token", FIELD_CREDENTIAL},
    {"x-auth-token", FIELD_CREDENTIAL},
    {"x-access-token", FIELD_CREDENTIAL},
    {"x-gitlab-token", FIELD_CREDENTIAL},
    {"x-amz-security-token", FIELD_CREDENTIAL},
    {"x-github-token", FIELD_CREDENTIAL},
    {"x-vault-token", FIELD_CREDENTIAL},
    {"x-auth-key", FIELD_CREDENTIAL},
    {"x-token", FIELD_CREDENTIAL},
    {"token", FIELD_CREDENTIAL},
    {"authentication", FIELD_CREDENTIAL},
    {"x-authorization", FIELD_CREDENTIAL},
    {"openai-api-key", FIELD_CREDENTIAL},
    {"anthropic-api-key", FIELD_CREDENTIAL},
    {"x-ms-token", FIELD_CREDENTIAL},
    {"x-http-method-override", FIELD_OVERRIDE},
    {"x-http-method", FIELD_OVERRIDE},
    {"x-method-override", FIELD_OVERRIDE},
    {"content-type", FIELD_OTHER},
    {"content-encoding", FIELD_OTHER},
    {"accept-encoding", FIELD_OTHER},
    {"if-range", FIELD_OTHER},
};

unsigned field_kinds(struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (slice_eq_str(name, table[i].name))
            return table[i].kinds;
    return 0;
}

bool field_is_credential(struct slice name)
{
    static const char *const others[] = {"cookie",       "set-cookie",   "set-cookie2",
                                         "x-csrf-token", "x-xsrf-token", "csrf-token"};
    char plain[128]; /* a longer one is no header_name_ok() of any API */
    if (name.n > sizeof plain)
        return false;
    for (size_t i = 0; i < name.n; i++)
        plain[i] = name.p[i] == '_' ? '-' : name.p[i];
    struct slice s = {plain, name.n};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (slice_eq_str(s, others[i]))
            return false;
    return (field_kinds(s) & FIELD_CREDENTIAL) || header_name_is_credential(s);
}

bool field_same(struct slice name, struct slice known)
{
    if (name.n != known.n)
        return false;
    for (size_t i = 0; i < name.n; i++) {
        char a = name.p[i] == '_' ? '-' : name.p[i], b = known.p[i] == '_' ? '-' : known.p[i];
        if (a != b)
            return false;
    }
    return true;
}

bool field_is_twin(struct slice name)
{
    if (slice_find(name, '_') < 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (field_same(name, slice_str(table[i].name)))
            return true;
    return false;
}
