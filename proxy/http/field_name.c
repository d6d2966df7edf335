/* The table of known names and the questions about it; to its comparison "_" and every other mark
 * are "-". */
#include "field_name.h"

#include "field_value.h"
#include "header_name.h"

#include <string.h>

/* In the order of their bytes: looked up for each field of each message. */
static const struct known {
    struct slice name;
    unsigned kinds;
} table[] = {
    {SLICE_INIT("accept-encoding"), FIELD_OTHER},
    {SLICE_INIT("anthropic-api-key"), FIELD_CREDENTIAL},
    {SLICE_INIT("api-key"), FIELD_CREDENTIAL},
    {SLICE_INIT("apikey"), FIELD_CREDENTIAL},
    {SLICE_INIT("authentication"), FIELD_CREDENTIAL},
    {SLICE_INIT("authorization"), FIELD_CREDENTIAL},
    {SLICE_INIT("cf-connecting-ip"), FIELD_ROUTE},
    {SLICE_INIT("connection"), FIELD_HOP},
    {SLICE_INIT("content-encoding"), FIELD_OTHER},
    {SLICE_INIT("content-length"), FIELD_ROUTE},
    {SLICE_INIT("content-type"), FIELD_OTHER},
    {SLICE_INIT("deploy-token"), FIELD_CREDENTIAL},
    {SLICE_INIT("expect"), FIELD_ROUTE},
    {SLICE_INIT("forwarded"), FIELD_ROUTE},
    {SLICE_INIT("host"), FIELD_ROUTE},
    {SLICE_INIT("http-method-override"), FIELD_OVERRIDE},
    {SLICE_INIT("http2-settings"), FIELD_HOP},
    {SLICE_INIT("if-range"), FIELD_OTHER},
    {SLICE_INIT("job-token"), FIELD_CREDENTIAL},
    {SLICE_INIT("keep-alive"), FIELD_HOP},
    {SLICE_INIT("max-forwards"), FIELD_ROUTE},
    {SLICE_INIT("openai-api-key"), FIELD_CREDENTIAL},
    {SLICE_INIT("private-token"), FIELD_CREDENTIAL},
    {SLICE_INIT("proxy-authenticate"), FIELD_HOP},
    {SLICE_INIT("proxy-authentication-info"), FIELD_HOP},
    {SLICE_INIT("proxy-authorization"), FIELD_HOP},
    {SLICE_INIT("proxy-connection"), FIELD_HOP},
    {SLICE_INIT("sec-websocket-accept"), FIELD_HOP},
    {SLICE_INIT("sec-websocket-extensions"), FIELD_HOP},
    {SLICE_INIT("sec-websocket-key"), FIELD_HOP},
    {SLICE_INIT("sec-websocket-version"), FIELD_HOP},
    {SLICE_INIT("te"), FIELD_HOP},
    {SLICE_INIT("token"), FIELD_CREDENTIAL},
    {SLICE_INIT("trailer"), FIELD_HOP},
    {SLICE_INIT("transfer-encoding"), FIELD_HOP},
    {SLICE_INIT("true-client-ip"), FIELD_ROUTE},
    {SLICE_INIT("upgrade"), FIELD_HOP},
    {SLICE_INIT("via"), FIELD_ROUTE},
    {SLICE_INIT("x-access-token"), FIELD_CREDENTIAL},
    {SLICE_INIT("x-amz-security-token"), FIELD_CREDENTIAL},
    {SLICE_INIT("x-api-key"), FIELD_CREDENTIAL},
    {SLICE_INIT("x-auth-key"), FIELD_CREDENTIAL},
    {SLICE_INIT("x-auth-token"), FIELD_CREDENTIAL},
    {SLICE_INIT("x-authorization"), FIELD_CREDENTIAL},
    {SLICE_INIT("x-client-ip"), FIELD_ROUTE},
    {SLICE_INIT("x-forwarded-for"), FIELD_ROUTE},
    {SLICE_INIT("x-forwarded-host"), FIELD_ROUTE},
    {SLICE_INIT("x-forwarded-port"), FIELD_ROUTE},
    {SLICE_INIT("x-forwarded-prefix"), FIELD_ROUTE},
    {SLICE_INIT("x-forwarded-proto"), FIELD_ROUTE},
    {SLICE_INIT("x-forwarded-server"), FIELD_ROUTE},
    {SLICE_INIT("x-github-token"), FIELD_CREDENTIAL},
    {SLICE_INIT("x-gitlab-token"), FIELD_CREDENTIAL},
    {SLICE_INIT("x-goog-api-key"), FIELD_CREDENTIAL},
    {SLICE_INIT("x-host"), FIELD_ROUTE},
    {SLICE_INIT("x-http-host-override"), FIELD_ROUTE},
    {SLICE_INIT("x-http-method"), FIELD_OVERRIDE},
    {SLICE_INIT("x-http-method-override"), FIELD_OVERRIDE},
    {SLICE_INIT("x-method-override"), FIELD_OVERRIDE},
    {SLICE_INIT("x-ms-token"), FIELD_CREDENTIAL},
    {SLICE_INIT("x-original-host"), FIELD_ROUTE},
    {SLICE_INIT("x-original-url"), FIELD_ROUTE},
    {SLICE_INIT("x-real-ip"), FIELD_ROUTE},
    {SLICE_INIT("x-rewrite-url"), FIELD_ROUTE},
    {SLICE_INIT("x-token"), FIELD_CREDENTIAL},
    {SLICE_INIT("x-vault-token"), FIELD_CREDENTIAL},
};

static int compare(struct slice a, struct slice b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int d = n ? memcmp(a.p, b.p, n) : 0;
    return d ? d : a.n < b.n ? -1 : a.n > b.n;
}

unsigned field_kinds(struct slice name)
{
    size_t low = 0, high = ARRAY_LEN(table);
    while (low < high) {
        size_t middle = (low + high) / 2;
        int d = compare(name, table[middle].name);
        if (d == 0)
            return table[middle].kinds;
        if (d < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return header_name_is_forwarding(name) ? FIELD_ROUTE : 0;
}

struct slice field_known(size_t i)
{
    return i < ARRAY_LEN(table) ? table[i].name : SLICE("");
}

bool field_is_credential(struct slice name)
{
    static const char *const others[] = {"cookie",       "set-cookie",   "set-cookie2",
                                         "x-csrf-token", "x-xsrf-token", "csrf-token"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (field_same(name, slice_str(others[i])))
            return false;
    return header_name_is_credential(name);
}

bool field_holds_credential(const struct field *f)
{
    if (field_is_credential(f->name))
        return true;
    /* where a session of MCP is named its own protocol allows a JWT, and forbids it to authenticate
     */
    bool mcp = field_same(f->name, SLICE("mcp-session-id"));
    return header_name_may_hold_credential(f->name) && field_value_is_credential(f->value, mcp);
}

static char folded(char c)
{
    return ascii_is_alnum(c) ? ascii_lower(c) : '-';
}

bool field_same(struct slice name, struct slice known)
{
    if (name.n != known.n)
        return false;
    for (size_t i = 0; i < name.n; i++)
        if (folded(name.p[i]) != folded(known.p[i]))
            return false;
    return true;
}

bool field_is_twin(struct slice name)
{
    size_t i = 0;
    while (i < name.n && (ascii_is_alnum(name.p[i]) || name.p[i] == '-'))
        i++;
    if (i == name.n)
        return false;
    for (i = 0; i < ARRAY_LEN(table); i++)
        if (field_same(name, table[i].name))
            return true;
    return false;
}
