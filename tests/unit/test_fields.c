/* The fields of a request that will be written: what is judged is what goes out (A25, A26, B20). */
#include "field_name.h"
#include "guard_bed.h"
#include "header_name.h"
#include "http1_write.h"

/* Each family, in the spellings that somebody reads. */
static const char *const forwarding[] = {
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Forwarded-Port",
    "X-Forwarded-Uri",
    "X-Forwarded-Path",
    "X-Forwarded-Method",
    "X-Forwarded-User",
    "X-Forwarded-Groups",
    "X-Forwarded-Email",
    "X-Forwarded-Preferred-Username",
    "X-Forwarded-Client-Cert",
    "X-Forwarded-Scheme",
    "X-Forwarded-Prefix",
    "X-Forwarded-Server",
    "X-Forwarded-Ssl",
    "X-Forwarded",
    "X-ForwardedFor",
    "X-Forward-For",
    "X-Forwarder-For",
    "Forwarded",
    "Forwarded-For",
    "X-Original-Uri",
    "X-Original-Url",
    "X-Original-Method",
    "X-Original-Host",
    "X-Original-Path",
    "X-Original-Remote-Addr",
    "X-Originating-IP",
    "X-Override-URL",
    "X-Rewrite-URL",
    "X-Real-IP",
    "X-Real-Port",
    "X-Remote-User",
    "X-Remote-Groups",
    "X-Remote-Group",
    "X-Remote-Extra-Scopes",
    "X-Remote-IP",
    "X-Remote-Addr",
    "Remote-User",
    "Remote-Groups",
    "Remote-Addr",
    "X-Envoy-Original-Path",
    "X-Envoy-Original-Method",
    "X-Envoy-External-Address",
    "X-Envoy-Internal",
    "X-Envoy-Peer-Metadata",
    "X-Client-IP",
    "Client-IP",
    "X-Client-Cert-Chain",
    "X-Client-DN",
    "X-Client-Verify",
    "Client-Cert-Chain",
    "X-SSL-Client-Verify",
    "SSL-Client-S-DN",
    "X-ARR-ClientCert",
    "X-ARR-SSL",
    "X-Proxy-URL",
    "X-ProxyUser-Ip",
    "Proxy",
    "Proxy-Host",
    "X-Cluster-Client-Ip",
    "True-Client-IP",
    "X-True-Client-IP",
    "CF-Connecting-IP",
    "CF-Connecting-IPv6",
    "CF-IPCountry",
    "Fastly-Client-IP",
    "Fly-Client-IP",
    "DO-Connecting-IP",
    "X-Azure-ClientIP",
    "X-Azure-SocketIP",
    "X-Vercel-Forwarded-For",
    "X-Vercel-IP-Country",
    "X-Appengine-User-Ip",
    "X-Amzn-Oidc-Identity",
    "X-Amzn-Mtls-Clientcert",
    "X-Goog-Authenticated-User-Email",
    "X-Ms-Client-Principal",
    "X-Ms-Client-Principal-Name",
    "X-Auth-Request-User",
    "X-Auth-Request-Groups",
    "X-Authenticated-User",
    "X-WebAuth-User",
    "X-Consumer-Username",
    "X-Accel-Mapping",
    "X-Sendfile-Type",
    "X-Middleware-Subrequest",
    "X-Invoke-Path",
    "X-Matched-Path",
    "X-Host",
    "X-HTTP-Host-Override",
    "X-Scheme",
    "X-Url-Scheme",
    "Front-End-Https",

    "Via",
    "Max-Forwards",
};

/* What clients and vendors' SDKs send of their own. */
static const char *const legitimate[] = {
    "Accept",
    "Accept-Language",
    "User-Agent",
    "Content-Type",
    "Content-Language",
    "Origin",
    "Referer",
    "Priority",
    "DNT",
    "Sec-Fetch-Mode",
    "X-Client-Version",
    "X-Client-Name",
    "X-Client-Info",
    "X-Client-Id",
    "X-Client-Data",
    "X-Client-Trace-Id",
    "X-Client-Request-Id",
    "X-Client-Transaction-Id",
    "X-Client-User-Agent",
    "X-Stripe-Client-User-Agent",
    "X-Stainless-Lang",
    "X-Stainless-Package-Version",
    "X-Stainless-OS",
    "X-Stainless-Arch",
    "X-Stainless-Runtime",
    "X-Stainless-Retry-Count",
    "X-Stainless-Timeout",
    "X-Stainless-Async",
    "X-Stainless-Helper-Method",
    "Anthropic-Version",
    "Anthropic-Beta",
    "OpenAI-Organization",
    "OpenAI-Project",
    "OpenAI-Beta",
    "X-Goog-Api-Client",
    "X-Goog-User-Project",
    "X-Goog-Request-Params",
    "X-Ms-Client-Request-Id",
    "X-Ms-Version",
    "X-Ms-Date",
    "X-Amz-Date",
    "X-Amz-Target",
    "X-Amz-Content-Sha256",
    "Amz-Sdk-Invocation-Id",
    "X-Amzn-Trace-Id",
    "X-GitHub-Api-Version",
    "X-GitHub-Media-Type",
    "X-Requested-With",
    "X-Request-Id",
    "X-Correlation-Id",
    "X-B3-TraceId",
    "Traceparent",
    "Tracestate",
    "Baggage",
    "Mcp-Session-Id",
    "Mcp-Protocol-Version",
    "Last-Event-Id",
    "Git-Protocol",
    "Idempotency-Key",
    "If-Match",
    "If-None-Match",
    "Prefer",
    "Depth",
    "Destination",
    "X-Vercel-Ai-Ui-Message-Stream",
    "X-Npm-Session",
    "Npm-In-Ci",
    "X-Cache-Key",
    "X-Tenant",
    "X-Team",
    "X-Remotely",
    "X-Realm",
    "X-Originally",
    "X-Envoyed",
    "Proximity",
    "Viable",
    "X-Hostname",
};

static void spell(char *to, const char *name, char mark)
{
    for (; *name; name++)
        *to++ = *name == '-' ? mark : *name;
    *to = 0;
}

/* The fields, made and judged. */
static int made(struct head *h, const struct rule *r)
{
    struct guard_answer a = {.where = ""};
    if (guard_fields(h, r, false) < 0)
        return -1;
    return guard_conditions(h, r, h->query, h->has_query, &a) ? -1 : 0;
}

/* -1: the head itself is refused. */
static int left_of(size_t r, const char *name, bool *kept)
{
    static const char tenant[] = "X-Tenant: a\r\nRange: bytes=0-0\r\n";
    char all[4096];
    struct refusal why;
    struct head h;
    int n = snprintf(all, sizeof all, "GET / HTTP/1.1\r\nHost: x\r\n%s%s: v\r\n\r\n",
                     r == R_TENANT || r == R_TENANT_PLAIN ? tenant : "", name);
    int ok = http1_parse_request(&h, (struct slice){all, (size_t)n}, &limits, &why) < 0
                 ? -1
                 : made(&h, rule(r));
    *kept = false;
    for (size_t i = 0; ok == 0 && i < h.n; i++)
        *kept |= field_same(h.fields[i].name, slice_str(name));
    http_head_free(&h);
    return ok;
}

static void families(void)
{
    static const char marks[] = "-_.~";
    static const size_t rules[] = {R_BEARER, R_REPLACE, R_PASS, R_PLAIN};
    char name[128];
    bool kept = false;
    CU_ASSERT(ARRAY_LEN(forwarding) >= 90);
    for (size_t i = 0; i < ARRAY_LEN(forwarding); i++)
        for (size_t k = 0; k < 4 * ARRAY_LEN(rules); k++) {
            spell(name, forwarding[i], marks[k % 4]);
            int r = left_of(rules[k / 4], name, &kept);
            if (r == 0 && kept)
                printf("# %s goes on\n", name);
            CU_ASSERT(r < 0 || !kept);
            CU_ASSERT(marks[k % 4] != '-' || r == 0); /* as it is written usually: dropped */
            CU_ASSERT(header_name_is_reserved(slice_str(name)));
        }
}

/* What carries a credential too is refused as one, and where nothing of ours goes it is dropped. */
static void certificates(void)
{
    static const char *const names[] = {"X-Client-Cert",
                                        "X-SSL-Client-Cert",
                                        "Client-Cert",
                                        "X-Original-Authorization",
                                        "X-Custom-IP-Authorization",
                                        "X-Forwarded-Access-Token"};
    bool kept = true;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char field[200];
        snprintf(field, sizeof field, "%s: v\r\n", names[i]);
        expect(R_BEARER, "/", field, "foreign_credential");
        CU_ASSERT(left_of(R_PLAIN, names[i], &kept) == 0 && !kept);
        CU_ASSERT(left_of(R_PASS, names[i], &kept) == 0 && !kept);
    }
}

static void others(void)
{
    bool kept = false;
    for (size_t i = 0; i < ARRAY_LEN(legitimate); i++)
        for (size_t r = R_BEARER; r <= R_PLAIN; r++) {
            int ok = left_of(r, legitimate[i], &kept);
            if (ok < 0 || !kept)
                printf("# %s is lost\n", legitimate[i]);
            CU_ASSERT(ok == 0 && kept);
        }
    for (size_t i = 0; i < ARRAY_LEN(legitimate); i++)
        CU_ASSERT(!header_name_is_forwarding(slice_str(legitimate[i])));
}

/* No condition or edit is of a field that is dropped after it was judged. */
static void speakable(void)
{
    struct slice name;
    for (size_t i = 0; (name = field_known(i)).n > 0; i++)
        if (field_kinds(name) & (FIELD_HOP | FIELD_ROUTE | FIELD_OVERRIDE))
            CU_ASSERT(header_name_is_reserved(name));
}

static void spoken(void)
{
    static const struct {
        const char *fields, *want;
    } v[] = {
        {"X-Tenant: a\r\n", "ok"},
        {"x-tenant: a\r\nX-Other: b\r\n", "ok"},
        {"X-Tenant: b\r\n", "header"},
        {"X-Tenant: a\r\nX-Tenant: a\r\n", "header"},
        {"X-Tenant: a\r\nConnection: X-Tenant\r\n", "header"},
        {"X-Tenant: a\r\nConnection: close, x-tenant\r\n", "header"},
        {"X-Tenant: a\r\nX_Tenant: b\r\n", "header"},
        {"X-Tenant: a\r\nX.Tenant: b\r\n", "header"},
        {"X_Tenant: a\r\n", "header"},
        {"X-Tenant: a\r\nX_Tenant: b\r\nConnection: X_Tenant\r\n", "ok"},
        {"X-Tenant: a\r\nX_Set: evil\r\n", "header"},
        {"X-Tenant: a\r\nX-Set: evil\r\n", "ok"},
        {"X-Tenant: a\r\nX-Set: evil\r\nConnection: X-Set\r\n", "ok"},
        {"X-Tenant: a\r\nx_gone: evil\r\n", "header"},
        {"X-Tenant: a\r\nX-Gone: evil\r\n", "ok"},
        {"X-Tenant: a\r\nX_Tenants: b\r\n", "ok"},
    };
    char fields[300];
    for (size_t i = 0; i < ARRAY_LEN(v); i++) {
        expect(R_TENANT_PLAIN, "/", v[i].fields, v[i].want);
        snprintf(fields, sizeof fields, "%sRange: bytes=0-0\r\n", v[i].fields);
        expect(R_TENANT, "/", fields, v[i].want);
    }
    expect(R_TENANT, "/", "X-Tenant: a\r\n", "header"); /* no Range */
}

static unsigned dice(uint64_t *state, unsigned n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*state >> 33) % n;
}

static size_t same(const struct head *h, const char *name, const char *value, bool *all)
{
    size_t n = 0;
    *all = true;
    for (size_t i = 0; i < h->n; i++)
        if (field_same(h->fields[i].name, slice_str(name))) {
            n++;
            *all = *all && slice_eq_str(h->fields[i].value, value);
        }
    return n;
}

/* Whatever fields come in whatever spelling, what an origin that folds names reads on the wire is
 * what the rule says. */
static void written(void)
{
    static const char *const names[] = {"X-Tenant", "X-Set",       "X-Gone",  "X-Remote-User",
                                        "Range",    "X-Client-IP", "X-Other", "Cookie"};
    static const char *const values[] = {"a", "b", "one", "X-Tenant", "close, x-set"};
    static const char marks[] = "--_.";
    uint64_t state = 20261122;
    unsigned accepted = 0;
    for (unsigned round = 0; round < 100000; round++) {
        char fields[2000], name[64];
        size_t at = 0, r = round % 2 ? R_TENANT : R_TENANT_PLAIN;
        struct authority to;
        struct refusal why;
        struct head h, out;
        struct buf b;
        bool all;
        at += (size_t)snprintf(fields, sizeof fields, "GET / HTTP/1.1\r\nHost: x\r\n");
        for (unsigned i = dice(&state, 7); i > 0; i--) {
            spell(name, names[dice(&state, 8)], marks[dice(&state, 4)]);
            at += (size_t)snprintf(fields + at, sizeof fields - at, "%s: %s\r\n", name,
                                   values[dice(&state, 3)]);
            if (dice(&state, 4) == 0)
                at += (size_t)snprintf(fields + at, sizeof fields - at, "Connection: x, %s\r\n",
                                       name);
        }
        at += (size_t)snprintf(fields + at, sizeof fields - at, "\r\n");
        bool read = http1_parse_request(&h, (struct slice){fields, at}, &limits, &why) == 0;
        if (read && made(&h, rule(r)) == 0 && guard_edit(&h, rule(r)) == 0) {
            CU_ASSERT_FATAL(authority_parse(&to, SCHEME_HTTPS, SLICE("x.example")) == 0);
            buf_init(&b, 65536);
            CU_ASSERT_FATAL(http1_write_request(&b, &h, &to) == 0);
            CU_ASSERT_FATAL(http1_parse_request(&out, buf_slice(&b), &limits, &why) == 0);
            accepted++;
            CU_ASSERT_FATAL(same(&out, "x-tenant", "a", &all) == 1 && all);
            CU_ASSERT_FATAL(same(&out, "x-set", "one", &all) == 1 && all);
            CU_ASSERT_FATAL(same(&out, "x-gone", "", &all) == 0);
            CU_ASSERT_FATAL(same(&out, "x-remote-user", "", &all) == 0);
            CU_ASSERT_FATAL(same(&out, "x-client-ip", "", &all) == 0);
            CU_ASSERT_FATAL(r == R_TENANT_PLAIN || same(&out, "range", "", &all) == 1);
            http_head_free(&out);
            buf_free(&b);
        }
        http_head_free(&h);
    }
    printf("# %u accepted\n", accepted);
    CU_ASSERT(accepted > 1000);
}

static const struct {
    size_t rule;
    const char *key, *authorization, *want; /* M: mine, B: "Bearer " and mine, T: a stranger's */
    const char *left;                       /* of authorization; NULL: it is gone */
    bool both;                              /* x-api-key is left as well */
} either_rows[] = {
    {R_EACH, "", "", "ok", NULL},
    {R_EACH, "M", "", "ok", NULL},
    {R_EACH, "", "B", "ok", ""},
    {R_EACH, "M", "B", "ok", "", true},
    {R_EACH, "M", "Bearer x", "foreign_credential", NULL},
    {R_EACH, "x", "B", "foreign_credential", NULL},
    {R_EACH, "T", "B", "cross_sandbox", NULL},
    {R_EITHER, "", "", "ok", NULL},
    {R_EITHER, "M", "", "ok", NULL},
    {R_EITHER, "", "B", "ok", ""},
    {R_EITHER, "", "M", "ok", ""},
    {R_EITHER, "M", "B", "secret_blocked", NULL},
    {R_EITHER_REPLACE, "M", "B", "secret_blocked", NULL},
    {R_EITHER_PASS, "M", "B", "secret_blocked", NULL},
    {R_EITHER, "B", "", "ok", NULL},
    {R_EITHER, "x", "", "foreign_credential", NULL},
    {R_EITHER, "", "Bearer x", "foreign_credential", NULL},
    {R_EITHER, "M", "Bearer x", "foreign_credential", NULL},
    {R_EITHER, "x", "B", "foreign_credential", NULL},
    {R_EITHER, "T", "", "cross_sandbox", NULL},
    {R_EITHER, "M", "T", "cross_sandbox", NULL},
    {R_EITHER_REPLACE, "x", "", "ok", NULL},
    {R_EITHER_REPLACE, "", "Bearer x", "ok", ""},
    {R_EITHER_REPLACE, "x", "B", "ok", NULL},
    {R_EITHER_PASS, "", "B", "ok", ""},
    {R_EITHER_PASS, "x", "", "pass", NULL},
    {R_EITHER_PASS, "M", "Bearer x", "pass", "Bearer x"},
    {R_EITHER_PASS, "x", "B", "pass", NULL},
};

/* A rule whose secret may go in either of two fields, or in each of them: where the client wrote
 * its placeholder. */
static void either(void)
{
    for (size_t i = 0; i < ARRAY_LEN(either_rows); i++) {
        const char *said[2] = {either_rows[i].key, either_rows[i].authorization};
        static const char *const names[2] = {"X-Api-Key", "Authorization"};
        char fields[2000] = "";
        size_t at = 0;
        struct head h;
        for (int k = 0; k < 2; k++) {
            const char *s = said[k];
            if (*s)
                at += (size_t)snprintf(fields + at, sizeof fields - at, "%s",
                                       strcmp(s, "M") == 0   ? line(names[k], "", mine)
                                       : strcmp(s, "B") == 0 ? line(names[k], "Bearer ", mine)
                                       : strcmp(s, "T") == 0 ? line(names[k], "", stranger)
                                                             : line(names[k], "", s));
        }
        const char *got = judge(either_rows[i].rule, "/", fields, &h);
        const struct field *f = http_head_find(&h, "authorization");
        bool good = strcmp(got, either_rows[i].want) == 0;
        if (good && (strcmp(got, "ok") == 0 || strcmp(got, "pass") == 0))
            good = either_rows[i].left ? f && slice_eq_str(f->value, either_rows[i].left) : !f;
        if (good && strcmp(got, "ok") == 0)
            good = http_head_count(&h, "x-api-key") == (either_rows[i].both ? 1 : 0);
        if (!good)
            printf("# %zu: %s %s\n", i, got, f ? "left" : "gone");
        CU_ASSERT(good);
        http_head_free(&h);
    }
}

/* What the rule calls no credential passes, by that name alone and unless an issuer's token is in
 * it.
 */
static void declared(void)
{
    static const struct {
        const char *field, *want;
    } v[] = {
        {"X-Foo-Token: 8f14e45f\r\n", "ok"},
        {"X-Foo-Token: eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.c2ln\r\n", "ok"},
        {"X-Bar-Token: 8f14e45f\r\n", "foreign_credential"},
        {"X_Foo_Token: 8f14e45f\r\n", "header"},
        {"X-Foo-Token: Bearer 8f14e45f\r\n", "foreign_credential"},
        {"X-Foo-Token: sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
         "foreign_credential"},
        {"X-Foo-Token: ghp_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n", "foreign_credential"},
    };
    for (size_t i = 0; i < ARRAY_LEN(v); i++)
        expect(R_NONE_OF_THESE, "/", v[i].field, v[i].want);
    expect(R_BEARER, "/", v[0].field, "foreign_credential");
    expect(R_NONE_OF_THESE, "/", line("X-Foo-Token", "", mine), "secret_blocked");
}

/* Where it was, in words, and nothing of what it said. */
static void named(void)
{
    static const struct {
        size_t rule;
        const char *target, *fields, *want; /* M: mine */
    } v[] = {
        {R_BEARER, "/", "X-Api-Key: VALUE\r\n", "header x-api-key"},
        {R_BEARER, "/", "Authorization: VALUE\r\n", "header authorization"},
        {R_BEARER, "/?access%5Ftoken=VALUE", "", "query parameter access_token"},
        {R_BEARER, "/", "Sec-WebSocket-Protocol: bearer, VALUE\r\n",
         "header sec-websocket-protocol"},
        {R_BEARER, "/?a=M", "", "query; the rule fills header authorization"},
        {R_BEARER, "/M", "", "path; the rule fills header authorization"},
        {R_BEARER, "/", "X-A: M\r\nX-B: M\r\n", "header x-a; the rule fills header authorization"},
        {R_EITHER, "/", "X-A: M\r\n",
         "header x-a; the rule fills header x-api-key or header authorization"},
        {R_EITHER, "/", "X-Api-Key: M\r\nAuthorization: Bearer M\r\n",
         "two places, the second is header authorization; the rule fills header x-api-key or "
         "header "
         "authorization"},
        {R_QUERY, "/?b=M", "", "query; the rule fills query parameter api_key"},
        {R_COOKIE, "/", "X-A: M\r\n", "header x-a; the rule fills cookie sid"},
        {R_PATH, "/?b=M", "", "query; the rule fills path"},
        {R_MARK, "/", "X-A: M\r\n", "header x-a; the rule fills header X-Tok"},
        {R_PLAIN, "/", "Authorization: M\r\n", "header authorization"},
        {R_EITHER, "/", "Authorization: Bearer VALUE\r\n", "header authorization"},
        {R_QUERY, "/?api_key=VALUE", "", "query parameter api_key"},
        {R_COOKIE, "/", "Cookie: sid=VALUE\r\n", "cookie sid"},
        {R_MARK, "/?x-tok=M", "X-Tok: VALUE\r\n", "header x-tok"},
        {R_TENANT_PLAIN, "/", "X-Tenant: a\r\nX_Set: VALUE\r\n", "header x_set"},
    };
    for (size_t i = 0; i < ARRAY_LEN(v); i++) {
        char said[2][1200];
        const char *from[2] = {v[i].target, v[i].fields};
        struct head h;
        for (int k = 0; k < 2; k++) {
            char *to = said[k];
            *to = 0;
            for (const char *p = from[k]; *p; p++)
                to +=
                    snprintf(to, sizeof said[k] - (size_t)(to - said[k]), "%.*s",
                             *p == 'M' && p[1] != '-' ? PLACEHOLDER_MAX : 1, *p == 'M' ? mine : p);
        }
        const char *got = judge(v[i].rule, said[0], said[1], &h);
        if (strcmp(where, v[i].want) != 0)
            printf("# %s %s: %s at '%s'\n", v[i].target, v[i].fields, got, where);
        CU_ASSERT_STRING_EQUAL(where, v[i].want);
        http_head_free(&h);
    }
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("fields", setup, teardown);
    CU_add_test(s, "forwarding fields, by family (A26)", families);
    CU_add_test(s, "what is forwarded and a credential", certificates);
    CU_add_test(s, "clients' own fields", others);
    CU_add_test(s, "fields that no rule may speak of", speakable);
    CU_add_test(s, "fields that a rule speaks of", spoken);
    CU_add_test(s, "what is written, on 100,000 heads", written);
    CU_add_test(s, "one of two places", either);
    CU_add_test(s, "fields that a rule calls no credential", declared);
    CU_add_test(s, "where a refused field was", named);
}
