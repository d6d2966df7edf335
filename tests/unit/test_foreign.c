/* C5: a credential of the client's own on a rule that has one of ours, in each carrier: headers,
 * query parameters, sub-protocols. Refused, or with `replace` taken off (but never out of a query).
 */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "field_name.h"
#include "guard.h"
#include "http1_head.h"
#include "policy.h"
#include "tap_main.h"

static const char *const carriers[] = {
    "Authorization: Bearer x",
    "Authorization: Basic eDp5",
    "Authorization: Digest username=x",
    "Authorization: AWS4-HMAC-SHA256 Credential=x",
    "Authorization: Negotiate x",
    "X-Api-Key: x",
    "Api-Key: x",
    "ApiKey: x",
    "X-ApiKey: x",
    "X-Goog-Api-Key: x",
    "OpenAI-Api-Key: x",
    "Anthropic-Api-Key: x",
    "DD-Api-Key: x",
    "DD-Application-Key: x",
    "X-Functions-Key: x",
    "Ocp-Apim-Subscription-Key: x",
    "X-Auth-Key: x",
    "X-Auth-Email: x",
    "X-Auth-Token: x",
    "X-Access-Token: x",
    "X-Token: x",
    "Token: x",
    "Private-Token: x",
    "Job-Token: x",
    "Deploy-Token: x",
    "X-Gitlab-Token: x",
    "X-Github-Token: x",
    "X-Vault-Token: x",
    "X-Consul-Token: x",
    "X-Shopify-Access-Token: x",
    "X-Figma-Token: x",
    "X-Amz-Security-Token: x",
    "X-Amz-Credential: x",
    "X-Amz-Signature: x",
    "X-Goog-Iam-Authorization-Token: x",
    "X-Ms-Token: x",
    "X-Authorization: x",
    "X-Original-Authorization: x",
    "Authentication: x",
    "X-Basic-Auth: x",
    "X-User-Password: x",
    "X-Client-Secret: x",
    "X-Session-Id: ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "Mcp-Session-Id: sk-proj-0123456789abcdefghij",
    "X-Session-Id: Bearer x",
    "Vendor-Session: eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.AAAAAAAAAAAA",
    "X-Vendor-Sid: xoxb-0123456789-abcdefghij",
    "X-Session.Id: AKIAABCDEFGHIJKLMNOP",
    "X-Next-Page-Token: github_pat_0123456789abcdefghij",
    "X-Goog-Gcs-Idempotency-Token: sk-proj-0123456789abcdefghij",
    "X-Atlassian-Token: Bearer x",
    "Y-Atlassian-Token: no-check",
    "X-Special.Token: x",
    "X-Next-Api-Token: x",
    "X-Login-Passphrase: x",
    "X-Client-Cert: x",
    "DPoP: x",
    "Signature: sig1=:x:",
    "Cookie2: x",
    "X_Special_Token: x",
};

static const char *const parameters[] = {"access_token",
                                         "ACCESS_TOKEN",
                                         "access%5Ftoken",
                                         "api_key",
                                         "apikey",
                                         "X-Api-Key",
                                         "api_token",
                                         "key",
                                         "token",
                                         "auth",
                                         "auth_token",
                                         "oauth_token",
                                         "id_token",
                                         "jwt",
                                         "private_token",
                                         "client_secret",
                                         "client_assertion",
                                         "password",
                                         "sig",
                                         "Signature",
                                         "X-Amz-Signature",
                                         "X-Amz-Credential",
                                         "X-Amz-Security-Token",
                                         "X-Goog-Signature",
                                         "X-Goog-Credential",
                                         "AWSAccessKeyId",
                                         "GoogleAccessId",
                                         "subscription-key",
                                         "hapikey",
                                         "%61ccess_token"};

static const char *const harmless[] = {
    "Accept: application/json",  "User-Agent: token/1",
    "X-CSRF-Token: x",           "X-Github-Api-Version: 1",
    "X-Request-Id: x",           "X-Goog-Api-Client: x",
    "OpenAI-Organization: x",    "Anthropic-Version: x",
    "Idempotency-Key: x",        "X-Stainless-Lang: python",
    "X-Amz-Content-Sha256: x",   "Amz-Sdk-Request: x",
    "X-Tokens-Left: 1",          "If-Match: x",
    "Git-Protocol: version=2",   "X-Goog-User-Project: x",
    "X-Ms-Client-Request-Id: x", "Accept-Language: x",
};

/* Ids of sessions, requests and traces, as clients of MCP and vendors' SDKs send them. */
static const char *const ids[] = {
    "Mcp-Session-Id: 1868a90c-ecb5-4d2f-9d1c-6f1d1d6f0c11",
    "Mcp-Session-Id: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "Mcp-Session-Id: eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.AAAAAAAAAAAA",
    "MCP-Protocol-Version: 2025-06-18",
    "X-Session-Id: 1868a90c-ecb5-4d2f-9d1c-6f1d1d6f0c11",
    "X-Claude-Code-Session-Id: session_01AbCdEfGhIjKlMnOpQrStUv",
    "Session_Id: 01998877-6655-4433-2211-000000000000",
    "X-Amzn-Bedrock-Agentcore-Runtime-Session-Id: 0123456789abcdef0123456789abcdef0",
    "X-Ms-Client-Session-Id: 1868a90c-ecb5-4d2f-9d1c-6f1d1d6f0c11",
    "X-Ms-Session-Token: 0:-1#12345",
    "X-Goog-Session: projects/p/sessions/s",
    "Copilot-Session: abc",
    "X-Parse-Session: abc",
    "X-Vendor-Sid: 0123456789",
    "X-Next-Page-Token: CAIQAA",
    "X-Continuation-Token: CAIQAA",
    "X-Goog-Gcs-Idempotency-Token: 8e03978e-40d5-43e8-bc93-6894a57f9324",
    "X-Atlassian-Token: no-check",
    "X-Atlassian-Token: nocheck",
    "X-Request-Id: req_011CSHoEeqs5C35K2UUqR7Fy",
    "X-Correlation-Id: 1868a90c-ecb5-4d2f-9d1c-6f1d1d6f0c11",
    "X-Amzn-Trace-Id: Root=1-5759e988-bd862e3fe1be46a994272793",
    "X-Cloud-Trace-Context: 105445aa7843bc8bf206b12000100000/1;o=1",
    "Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "Tracestate: congo=t61rcWkgMzE",
    "X-Datadog-Trace-Id: 1234",
    "Idempotency-Key: 8e03978e-40d5-43e8-bc93-6894a57f9324",
    "X-Idempotency-Key: 8e03978e",
    "X-Cache-Key: a",
    "X-Routing-Key: a",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
};

/* What guard_foreign says of a head with this field and query. -1: no head at all. */
static int ask(enum client_credential client, const char *field, const char *query, size_t *left)
{
    static const struct limits limits = {.head_bytes = 32768, .headers = 100, .target_bytes = 8192};
    static const struct credential ours = {.kind = CREDENTIAL_HEADER,
                                           .secret = "s",
                                           .header = "x-slot",
                                           .prefix = "",
                                           .suffix = "",
                                           .name = ""};
    struct rule rule = {.credential = &ours, .client_credential = client};
    struct guard_answer why_not = {.where = ""};
    struct refusal why;
    struct head h;
    char text[600];
    int n = snprintf(text, sizeof text, "GET /%s%s HTTP/1.1\r\nHost: a.com\r\n%s%s\r\n",
                     query ? "?" : "", query ? query : "", field ? field : "", field ? "\r\n" : "");
    int r = http1_parse_request(&h, (struct slice){text, (size_t)n}, &limits, &why);
    if (r == 0)
        r = guard_foreign(&h, &rule, &why_not);
    else
        r = -1;
    *left = h.n;
    http_head_free(&h);
    return r;
}

static void headers(void)
{
    size_t left;
    CU_ASSERT(ARRAY_LEN(carriers) >= 40);
    for (size_t i = 0; i < ARRAY_LEN(carriers); i++) {
        int r = ask(CLIENT_REFUSE, carriers[i], NULL, &left);
        if (r != 1)
            printf("# %s: %d\n", carriers[i], r);
        CU_ASSERT_EQUAL(r, 1);
        CU_ASSERT_EQUAL(ask(CLIENT_REPLACE, carriers[i], NULL, &left), 0);
        CU_ASSERT_EQUAL(left, 1); /* Host alone */
        CU_ASSERT_EQUAL(ask(CLIENT_PASS, carriers[i], NULL, &left), 0);
        CU_ASSERT_EQUAL(left, 2);
    }
}

static void queries(void)
{
    size_t left;
    char query[100];
    for (size_t i = 0; i < ARRAY_LEN(parameters); i++) {
        snprintf(query, sizeof query, "a=b&%s=x", parameters[i]);
        int r = ask(CLIENT_REFUSE, NULL, query, &left);
        if (r != 1)
            printf("# %s: %d\n", query, r);
        CU_ASSERT_EQUAL(r, 1);
        CU_ASSERT_EQUAL(ask(CLIENT_REPLACE, NULL, query, &left), 1);
        CU_ASSERT_EQUAL(ask(CLIENT_PASS, NULL, query, &left), 0);
    }
}

static void others(void)
{
    size_t left;
    for (size_t i = 0; i < ARRAY_LEN(harmless); i++) {
        int r = ask(CLIENT_REFUSE, harmless[i], "page=1&tokens=2&keys=3", &left);
        if (r != 0)
            printf("# %s: %d\n", harmless[i], r);
        CU_ASSERT_EQUAL(r, 0);
        CU_ASSERT_EQUAL(left, 2);
    }
}

static void sessions(void)
{
    size_t left;
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        for (enum client_credential c = CLIENT_REFUSE; c <= CLIENT_PASS; c++) {
            int r = ask(c, ids[i], NULL, &left);
            if (r != 0 || left != 2)
                printf("# %s: %d, %zu left\n", ids[i], r, left);
            CU_ASSERT(r == 0 && left == 2);
        }
}

static void suite_foreign(void)
{
    CU_pSuite s = CU_add_suite("foreign", NULL, NULL);
    CU_add_test(s, "C5: headers", headers);
    CU_add_test(s, "C5: query parameters", queries);
    CU_add_test(s, "what is no credential", others);
    CU_add_test(s, "ids of sessions, requests and traces", sessions);
}

void tap_suites(void)
{
    suite_foreign();
}
