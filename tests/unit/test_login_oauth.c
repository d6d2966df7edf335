/* What a login at an MCP server reads of strangers: URLs, challenges, documents, answers, tokens.
 */
#define _GNU_SOURCE 1
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "login_flow.h"
#include "tap_main.h"

static struct login_url url(const char *text)
{
    struct err err = {0};
    struct login_url u;
    CU_ASSERT_EQUAL_FATAL(login_url_read(&u, text, "it", &err), 0);
    return u;
}

static bool is_url(const char *text)
{
    struct err err = {0};
    struct login_url u;
    return login_url_read(&u, text, "it", &err) == 0;
}

static void urls(void)
{
    static const char *const bad[] = {"http://a.example/",
                                      "https://",
                                      "https:///x",
                                      "https://u@a.example/",
                                      "https://a.example/#x",
                                      "https://a.example/ x",
                                      "https://a.example/\"x",
                                      "https://a.example/\\x",
                                      "https://a.example:0/",
                                      "javascript:alert(1)",
                                      "https://a.example/\x7f",
                                      "-https://a.example",
                                      "https://1.2/"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_FALSE(is_url(bad[i]));
    char longest[LOGIN_URL_MAX + 2];
    memset(longest, 'x', sizeof longest);
    memcpy(longest, "https://a.example/", 18);
    longest[LOGIN_URL_MAX + 1] = 0;
    CU_ASSERT_FALSE(is_url(longest));
    longest[LOGIN_URL_MAX] = 0;
    CU_ASSERT_TRUE(is_url(longest));
    CU_ASSERT_TRUE(is_url("https://a.example:8443/x?y=z"));
    CU_ASSERT_TRUE(is_url("https://[2001:db8::1]/x"));
    struct login_url u = url("https://a.example/x?y");
    CU_ASSERT_STRING_EQUAL(login_url_path(&u), "/x?y");
    CU_ASSERT_FALSE(login_url_plain(&u));
    static const char *const odd[] = {"https://a.example/x%2Fy", "https://a.example/../x",
                                      "https://a.example//x", "https://a.example/*",
                                      "https://a.example/x,y"};
    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        u = url(odd[i]);
        CU_ASSERT_FALSE(login_url_plain(&u));
    }
    u = url("https://a.example/x-y_z/~0");
    CU_ASSERT_TRUE(login_url_plain(&u));
}

static bool covers(const char *a, const char *b)
{
    struct login_url x = url(a), y = url(b);
    return login_url_covers(&x, &y);
}

static void places(void)
{
    CU_ASSERT_TRUE(covers("https://a.example", "https://a.example/mcp"));
    CU_ASSERT_TRUE(covers("https://a.example/", "https://a.example/mcp"));
    CU_ASSERT_TRUE(covers("https://a.example/mcp", "https://a.example/mcp/"));
    CU_ASSERT_TRUE(covers("https://a.example/mcp/", "https://A.example:443/mcp/x"));
    CU_ASSERT_FALSE(covers("https://a.example/mcp", "https://a.example/mcpx"));
    CU_ASSERT_FALSE(covers("https://a.example/mcp/x", "https://a.example/mcp"));
    CU_ASSERT_FALSE(covers("https://a.example/", "https://b.example/"));
    CU_ASSERT_FALSE(covers("https://a.example/", "https://a.example:444/"));
    CU_ASSERT_TRUE(login_url_same("https://a.example", "https://a.example/"));
    CU_ASSERT_TRUE(login_url_same("https://a.example/x", "https://a.example/x"));
    CU_ASSERT_FALSE(login_url_same("https://a.example/x", "https://a.example/x/"));
    CU_ASSERT_FALSE(login_url_same("https://a.example", "https://a.example.evil"));
    struct err err = {0};
    struct login_url at, u = url("https://a.example/t/one/");
    CU_ASSERT_EQUAL(login_url_known(&at, &u, "x", false, &err), 0);
    CU_ASSERT_STRING_EQUAL(at.text, "https://a.example/.well-known/x/t/one");
    CU_ASSERT_EQUAL(login_url_known(&at, &u, "x", true, &err), 0);
    CU_ASSERT_STRING_EQUAL(at.text, "https://a.example/t/one/.well-known/x");
    u = url("https://a.example");
    CU_ASSERT_EQUAL(login_url_known(&at, &u, "x", false, &err), 0);
    CU_ASSERT_STRING_EQUAL(at.text, "https://a.example/.well-known/x");
}

static int query(const char *text, char *to, size_t size)
{
    return login_query(slice_str(text), "code", to, size);
}

static void queries(void)
{
    char to[8];
    CU_ASSERT_EQUAL(query("a=b&code=x%2Fy+z", to, sizeof to), 1);
    CU_ASSERT_STRING_EQUAL(to, "x/y z");
    CU_ASSERT_EQUAL(query("a=b&xcode=1&codes=2", to, sizeof to), 0);
    CU_ASSERT_EQUAL(query("code=x&code=x", to, sizeof to), -1);
    CU_ASSERT_EQUAL(query("code", to, sizeof to), -1);
    CU_ASSERT_EQUAL(query("code=%0a", to, sizeof to), -1);
    CU_ASSERT_EQUAL(query("code=%4", to, sizeof to), -1);
    CU_ASSERT_EQUAL(query("code=%", to, sizeof to), -1);
    CU_ASSERT_EQUAL(query("code=%g0", to, sizeof to), -1);
    CU_ASSERT_EQUAL(query("code=12345678", to, sizeof to), -1);
    CU_ASSERT_EQUAL(query("code=1234567", to, sizeof to), 1);
    struct buf b;
    buf_init(&b, 100);
    CU_ASSERT_EQUAL(login_form(&b, "a", SLICE("x y&/=%")), 0);
    CU_ASSERT_EQUAL(login_form(&b, "b", SLICE("-._~9")), 0);
    CU_ASSERT_TRUE(slice_eq_str(buf_slice(&b), "a=x%20y%26%2F%3D%25&b=-._~9"));
    buf_free(&b);
}

static int challenge(const char *text, char *to)
{
    return login_challenge(text, "resource_metadata", to, 40);
}

static void challenges(void)
{
    char to[40];
    CU_ASSERT_EQUAL(challenge("Bearer resource_metadata=\"https://a/b\"", to), 1);
    CU_ASSERT_STRING_EQUAL(to, "https://a/b");
    CU_ASSERT_EQUAL(challenge("bearer realm=\"a, Basic \\\"b\\\"\", RESOURCE_METADATA = x", to), 1);
    CU_ASSERT_STRING_EQUAL(to, "x");
    CU_ASSERT_EQUAL(challenge("Negotiate YWJj==, Bearer error=x,  resource_metadata=y", to), 1);
    CU_ASSERT_STRING_EQUAL(to, "y");
    CU_ASSERT_EQUAL(challenge("Basic resource_metadata=\"https://a/b\"", to), 0);
    CU_ASSERT_EQUAL(challenge("Bearer x=1, Digest resource_metadata=y", to), 0);
    CU_ASSERT_EQUAL(challenge("Bearer", to), 0);
    CU_ASSERT_EQUAL(challenge("", to), 0);
    CU_ASSERT_EQUAL(challenge("Bearer resource_metadata=a, resource_metadata=b", to), -1);
    CU_ASSERT_EQUAL(challenge("Bearer resource_metadata=a, Bearer resource_metadata=a", to), 1);
    CU_ASSERT_EQUAL(challenge("Bearer resource_metadata=\"a", to), -1);
    CU_ASSERT_EQUAL(challenge("Bearer \x01=a", to), -1);
    CU_ASSERT_EQUAL(
        challenge("Bearer resource_metadata=0123456789012345678901234567890123456789", to), -1);
}

static json_t *json(const char *text)
{
    json_t *v = json_loads(text, JSON_DECODE_ANY, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    return v;
}

/* "": it is taken; else the reason. */
static const char *resource(struct login_server *s, const char *text, const char *issuer)
{
    static struct err err;
    err = (struct err){0};
    memset(s, 0, sizeof *s);
    s->at = url("https://a.example/mcp");
    json_t *v = json(text);
    int r = login_take_resource(s, v, issuer, &err);
    json_decref(v);
    return r == 0 ? "" : err.text;
}

#define IS(said, want) CU_ASSERT_PTR_NOT_NULL(strstr(said, want))

static void resources(void)
{
    static struct login_server s;
    CU_ASSERT_STRING_EQUAL(resource(&s,
                                    "{\"resource\":\"https://a.example\",\"authorization_servers\":"
                                    "[\"https://i.example\",\"https://j.example\"],"
                                    "\"scopes_supported\":[\"r\",\"bad word\",\"w\",3]}",
                                    NULL),
                           "");
    CU_ASSERT_STRING_EQUAL(s.resource.text, "https://a.example");
    CU_ASSERT_STRING_EQUAL(s.issuer, "https://i.example");
    CU_ASSERT_STRING_EQUAL(s.scope, "r w");
    CU_ASSERT_STRING_EQUAL(resource(&s,
                                    "{\"resource\":\"https://a.example/mcp\",\"authorization_"
                                    "servers\":[\"https://i.example\",\"https://j.example\"]}",
                                    "https://j.example/"),
                           "");
    CU_ASSERT_STRING_EQUAL(s.issuer, "https://j.example");
    IS(resource(&s, "{}", NULL), "names no resource");
    IS(resource(&s, "{\"resource\":\"https://b.example/mcp\"}", NULL), "another resource");
    IS(resource(&s, "{\"resource\":\"https://a.example/m\"}", NULL), "another resource");
    IS(resource(&s, "{\"resource\":\"https://a.example/mcp\"}", NULL), "no authorization server");
    IS(resource(&s, "{\"resource\":\"https://a.example/mcp\",\"authorization_servers\":[3]}", NULL),
       "no authorization server");
    IS(resource(&s,
                "{\"resource\":\"https://a.example/mcp\",\"authorization_servers\":[\"http://"
                "i.example\"]}",
                NULL),
       "not https");
    IS(resource(&s,
                "{\"resource\":\"https://a.example/mcp\",\"authorization_servers\":[\"https://"
                "i.example\"]}",
                "https://k.example"),
       "--issuer");
    IS(resource(&s,
                "{\"resource\":\"https://a.example/mcp\",\"bearer_methods_supported\":[\"body\"]}",
                NULL),
       "no token in a header");
}

/* Of https://i.example, with another text for one part. */
static const char *issuer(struct login_server *s, const char *member, const char *value)
{
    static struct err err;
    json_t *v =
        json("{\"issuer\":\"https://i.example\",\"authorization_endpoint\":\"https://"
             "i.example/a?x=1\",\"token_endpoint\":\"https://i.example/t\",\"registration_"
             "endpoint\":\"https://i.example/r\",\"code_challenge_methods_supported\":[\"S256\"]}");
    json_t *other = value ? json(value) : NULL;
    if (other)
        json_object_set_new(v, member, other);
    else
        json_object_del(v, member);
    err = (struct err){0};
    memset(s, 0, sizeof *s);
    snprintf(s->issuer, sizeof s->issuer, "https://i.example");
    int r = login_take_issuer(s, v, &err);
    json_decref(v);
    return r == 0 ? "" : err.text;
}

static void issuers(void)
{
    static struct login_server s;
    CU_ASSERT_STRING_EQUAL(issuer(&s, "x", NULL), "");
    CU_ASSERT_TRUE(s.registers && !s.says_issuer && !s.offline && s.one_origin);
    CU_ASSERT_EQUAL(s.auths,
                    1u << LOGIN_AUTH_NONE | 1u << LOGIN_AUTH_POST | 1u << LOGIN_AUTH_BASIC);
    CU_ASSERT_STRING_EQUAL(issuer(&s, "token_endpoint", "\"https://t.example/t\""), "");
    CU_ASSERT_FALSE(s.one_origin);
    CU_ASSERT_STRING_EQUAL(issuer(&s, "registration_endpoint", NULL), "");
    CU_ASSERT_FALSE(s.registers);
    CU_ASSERT_STRING_EQUAL(
        issuer(&s, "token_endpoint_auth_methods_supported", "[\"private_key_jwt\"]"), "");
    CU_ASSERT_EQUAL(s.auths, 0);
    CU_ASSERT_STRING_EQUAL(issuer(&s, "scopes_supported", "[\"offline_access\"]"), "");
    CU_ASSERT_TRUE(s.offline);
    IS(issuer(&s, "issuer", NULL), "another issuer");
    IS(issuer(&s, "issuer", "\"https://i.example.evil\""), "another issuer");
    IS(issuer(&s, "issuer", "\"https://i.example/x\""), "another issuer");
    IS(issuer(&s, "token_endpoint", NULL), "token_endpoint");
    IS(issuer(&s, "token_endpoint", "\"http://i.example/t\""), "not https");
    IS(issuer(&s, "token_endpoint", "\"https://i.example/t?x\""), "query");
    IS(issuer(&s, "authorization_endpoint", "\"file:///etc/passwd\""), "not https");
    IS(issuer(&s, "registration_endpoint", "\"http://i.example/r\""), "not https");
    IS(issuer(&s, "code_challenge_methods_supported", NULL), "PKCE");
    IS(issuer(&s, "code_challenge_methods_supported", "[\"plain\"]"), "PKCE");
    IS(issuer(&s, "code_challenge_methods_supported", "null"), "PKCE");
    IS(issuer(&s, "response_types_supported", "[\"token\"]"), "no codes");
    IS(issuer(&s, "grant_types_supported", "[\"implicit\"]"), "no codes");
}

static int client(struct login_client *c, const char *text)
{
    static struct login_server s;
    struct login_attempt a = {.redirect = "http://127.0.0.1:1/callback"};
    struct err err = {0};
    s.auths = 1u << LOGIN_AUTH_BASIC;
    memset(c, 0, sizeof *c);
    json_t *v = json(text);
    int r = login_take_client(&s, &a, v, c, &err);
    json_decref(v);
    return r;
}

static void clients(void)
{
    static struct login_client c;
    CU_ASSERT_EQUAL(client(&c, "{\"client_id\":\"i\"}"), 0);
    CU_ASSERT_EQUAL(c.auth, LOGIN_AUTH_NONE);
    CU_ASSERT_EQUAL(client(&c, "{\"client_id\":\"i\",\"client_secret\":\"s\"}"), 0);
    CU_ASSERT_EQUAL(c.auth, LOGIN_AUTH_BASIC);
    CU_ASSERT_EQUAL(client(&c, "{\"client_id\":\"i\",\"client_secret\":\"s\",\"token_endpoint_auth_"
                               "method\":\"client_secret_post\"}"),
                    0);
    CU_ASSERT_EQUAL(c.auth, LOGIN_AUTH_POST);
    CU_ASSERT_EQUAL(client(&c, "{\"client_id\":\"i\",\"token_endpoint_auth_method\":\"client_"
                               "secret_post\"}"),
                    -1);
    CU_ASSERT_EQUAL(client(&c, "{\"client_id\":\"i\",\"client_secret\":\"s\",\"token_endpoint_auth_"
                               "method\":\"private_key_jwt\"}"),
                    -1);
    CU_ASSERT_EQUAL(client(&c, "{}"), -1);
    CU_ASSERT_EQUAL(client(&c, "{\"client_id\":\"\"}"), -1);
    CU_ASSERT_EQUAL(client(&c, "{\"client_id\":\"a\\nb\"}"), -1);
    CU_ASSERT_EQUAL(client(&c, "{\"client_id\":\"i\",\"client_secret\":\"a\\nb\"}"), -1);
    CU_ASSERT_EQUAL(
        client(&c, "{\"client_id\":\"i\",\"redirect_uris\":[\"https://evil.example\"]}"), -1);
    CU_ASSERT_EQUAL(
        client(&c, "{\"client_id\":\"i\",\"redirect_uris\":[\"http://127.0.0.1:1/callback\"]}"), 0);
}

static int answer_from(const char *text, bool says, bool one_origin, bool chosen, char *code)
{
    static struct login_server s;
    struct login_attempt a = {.state = "S"};
    struct err err = {0};
    s.says_issuer = says;
    s.one_origin = one_origin;
    s.chosen = chosen;
    snprintf(s.issuer, sizeof s.issuer, "https://i.example");
    return login_take_answer(&s, &a, slice_str(text), code, &err);
}

static int answer(const char *text, bool says, char *code)
{
    return answer_from(text, says, true, false, code);
}

static void answers(void)
{
    static char code[LOGIN_CODE_MAX + 1];
    CU_ASSERT_EQUAL(answer_from("state=S&code=c", false, false, false, code), -1);
    CU_ASSERT_EQUAL(answer_from("state=S&code=c", false, false, true, code), 1);
    CU_ASSERT_EQUAL(
        answer_from("state=S&code=c&iss=https%3A%2F%2Fi.example", false, false, false, code), 1);
    CU_ASSERT_EQUAL(answer("state=S&code=c", false, code), 1);
    CU_ASSERT_STRING_EQUAL(code, "c");
    CU_ASSERT_EQUAL(answer("state=S&code=c&iss=https%3A%2F%2Fi.example", true, code), 1);
    CU_ASSERT_EQUAL(answer("code=c", false, code), 0);
    CU_ASSERT_EQUAL(answer("state=T&code=c", false, code), 0);
    CU_ASSERT_EQUAL(answer("state=SS&code=c", false, code), 0);
    CU_ASSERT_EQUAL(answer("state=&code=c", false, code), 0);
    CU_ASSERT_EQUAL(answer("state=S&state=S&code=c", false, code), 0);
    CU_ASSERT_EQUAL(answer("error=access_denied&state=T", false, code), 0);
    CU_ASSERT_EQUAL(answer("state=S&code=c", true, code), -1);
    CU_ASSERT_EQUAL(answer("state=S&code=c&iss=https://evil.example", false, code), -1);
    CU_ASSERT_EQUAL(
        answer("state=S&code=c&iss=https://i.example&iss=https://i.example", true, code), -1);
    CU_ASSERT_EQUAL(answer("state=S&error=access_denied&code=c", false, code), -1);
    CU_ASSERT_EQUAL(answer("state=S", false, code), -1);
    CU_ASSERT_EQUAL(answer("state=S&code=", false, code), -1);
    CU_ASSERT_EQUAL(answer("state=S&code=c&code=d", false, code), -1);
}

static int tokens(const char *text)
{
    struct err err = {0};
    json_t *v = json(text);
    int r = login_take_tokens(v, &err);
    json_decref(v);
    return r;
}

static void token_answers(void)
{
    CU_ASSERT_EQUAL(tokens("{\"token_type\":\"bearer\",\"access_token\":\"a\"}"), 0);
    CU_ASSERT_EQUAL(tokens("{\"token_type\":\"Bearer\",\"access_token\":\"a\",\"expires_in\":60,"
                           "\"refresh_token\":\"b\"}"),
                    0);
    CU_ASSERT_EQUAL(tokens("{\"access_token\":\"a\"}"), -1);
    CU_ASSERT_EQUAL(tokens("{\"token_type\":\"DPoP\",\"access_token\":\"a\"}"), -1);
    CU_ASSERT_EQUAL(tokens("{\"token_type\":\"Bearer\",\"access_token\":\"a b\"}"), -1);
    CU_ASSERT_EQUAL(tokens("{\"token_type\":\"Bearer\",\"access_token\":\"\"}"), -1);
    CU_ASSERT_EQUAL(tokens("{\"token_type\":\"Bearer\",\"access_token\":\"a\",\"expires_in\":0}"),
                    -1);
    CU_ASSERT_EQUAL(
        tokens("{\"token_type\":\"Bearer\",\"access_token\":\"a\",\"expires_in\":1e300}"), -1);
    CU_ASSERT_EQUAL(
        tokens("{\"token_type\":\"Bearer\",\"access_token\":\"a\",\"refresh_token\":\"b\\n\"}"),
        -1);
    CU_ASSERT_EQUAL(
        tokens("{\"token_type\":\"Bearer\",\"access_token\":\"a\",\"expires_in\":\"60\"}"), 0);
    CU_ASSERT_EQUAL(
        tokens("{\"token_type\":\"Bearer\",\"access_token\":\"a\",\"expires_in\":\"1h\"}"), -1);
    CU_ASSERT_EQUAL(
        tokens("{\"token_type\":\"Bearer\",\"access_token\":\"a\",\"expires_in\":true}"), -1);
    char *text;
    CU_ASSERT_TRUE_FATAL(
        asprintf(&text, "{\"token_type\":\"Bearer\",\"access_token\":\"%020000d\"}", 1) > 0);
    CU_ASSERT_EQUAL(tokens(text), -1);
    free(text);
}

static void attempts(void)
{
    static struct login_server s;
    struct login_attempt a, b;
    struct login_client c = {.id = "i d"};
    struct err err = {0};
    struct buf to;
    CU_ASSERT_EQUAL_FATAL(login_attempt_begin(&a, 7, &err) | login_attempt_begin(&b, 7, &err), 0);
    CU_ASSERT_STRING_EQUAL(a.redirect, "http://127.0.0.1:7/callback");
    CU_ASSERT_TRUE(strlen(a.state) == 43 && strlen(a.verifier) == 43);
    CU_ASSERT_TRUE(strcmp(a.state, b.state) != 0 && strcmp(a.state, a.verifier) != 0 &&
                   strcmp(a.verifier, b.verifier) != 0);
    /* RFC 7636, appendix B */
    snprintf(a.verifier, sizeof a.verifier, "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
    snprintf(a.state, sizeof a.state, "S");
    s.authorize = url("https://i.example/a?x=1");
    s.resource = url("https://a.example/mcp");
    buf_init(&to, 4096);
    CU_ASSERT_EQUAL(login_ask_url(&s, &c, &a, &to, &err), 0);
    CU_ASSERT_TRUE(slice_eq_str(
        buf_slice(&to),
        "https://i.example/"
        "a?x=1&response_type=code&client_id=i%20d&redirect_uri=http%3A%2F%2F127.0."
        "0.1%3A7%2Fcallback&state=S&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&"
        "code_challenge_method=S256&resource=https%3A%2F%2Fa.example%2Fmcp"));
    buf_free(&to);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("login_oauth", NULL, NULL);
    CU_add_test(s, "URLs: https, and one reading", urls);
    CU_add_test(s, "which URL covers which, and where metadata lies", places);
    CU_add_test(s, "queries and forms", queries);
    CU_add_test(s, "WWW-Authenticate", challenges);
    CU_add_test(s, "what a resource says of itself", resources);
    CU_add_test(s, "what an authorization server says of itself", issuers);
    CU_add_test(s, "a client that was registered", clients);
    CU_add_test(s, "what a browser brings back", answers);
    CU_add_test(s, "tokens", token_answers);
    CU_add_test(s, "an attempt: PKCE, state, the URL", attempts);
}
