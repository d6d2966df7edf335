/* Secrets that are made of others: the requests, and what is taken from an answer. What the
 * requests are worth is for tests/functional/tokens.t, against servers that others wrote. */
#include "aws_sign.h"
#include "derived_fixture.h"
#include "refresh_tokens.h"
#include "tap_main.h"
#include "wire.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void suite_derived(void);

enum { NOW = 1767322800 }; /* 2026-01-02T03:00:00Z */

#define OAUTH(more) \
    "{\"kind\":\"oauth2\",\"endpoint\":\"https://a.example/t\",\"client_id\":\"i d\"" more "}"
#define APP                                                      \
    "{\"kind\":\"github_app\",\"endpoint\":\"https://a.example/" \
    "x\",\"app_id\":\"1\",\"key\":\"k\"}"
#define ID                                                   \
    "{\"kind\":\"google\",\"endpoint\":\"https://a.example/" \
    "x\",\"audience\":\"a\",\"service_account\":\"k\"}"

#define AT "\"endpoint\":\"https://a.example/x\",\"ttl\":\"60\","
#define KV "{\"kind\":\"vault\"," AT "\"key\":\"k\",\"auth\":\"l\"}"
#define ROLE                                                         \
    "{\"kind\":\"vault_approle\",\"address\":\"https://a.example\"," \
    "\"endpoint\":\"https://a.example/l\",\"role_id\":\"r\",\"secret_id\":\"s\"}"
#define MANAGER                                                           \
    "{\"kind\":\"aws_secret\"," AT "\"region\":\"r\",\"name\":\"n/\\\"\"" \
    ",\"key\":\"p\",\"field\":\"f\"}"
#define SSM     "{\"kind\":\"aws_parameter\"," AT "\"region\":\"r\",\"name\":\"n\",\"key\":\"p\"}"
#define CONNECT "{\"kind\":\"onepassword\"," AT "\"token\":\"t\",\"field\":\"f\"}"

static void test_requests(void)
{
    struct err err = {0};
    struct token_request r;
    struct secret *in[DERIVED_INPUTS_MAX] = {secret_new("s:&\xc3\xbc", 5), secret_new("r+", 2)};
    struct derived *m =
        derived_made(OAUTH(",\"client_secret\":\"a\",\"auth\":\"basic\",\"scope\":\"x y\""));
    CU_ASSERT_STRING_EQUAL(derived_input(m, 0), "a");
    CU_ASSERT_PTR_NULL(derived_input(m, 1));
    CU_ASSERT(!derived_signs(m) && !derived_is_local(m) && derived_refreshes(m) == -1);
    CU_ASSERT_EQUAL(derived_request(m, in, NULL, NOW, &r, &err), 0);
    CU_ASSERT_STRING_EQUAL(r.url, "https://a.example/t");
    CU_ASSERT(slice_eq(buf_slice(&r.body), SLICE("grant_type=client_credentials&scope=x%20y")));
    CU_ASSERT(
        slice_eq(derived_field(&r, "authorization"), SLICE("Basic aSUyMGQ6cyUzQSUyNiVDMyVCQw==")));
    token_request_free(&r);
    derived_free(m);
    m = derived_made(OAUTH(",\"client_secret\":\"a\",\"refresh_token\":\"b\",\"auth\":\"post\""));
    CU_ASSERT_EQUAL(derived_refreshes(m), 1);
    CU_ASSERT_EQUAL(derived_request(m, in, NULL, NOW, &r, &err), 0);
    CU_ASSERT(slice_eq(buf_slice(&r.body), SLICE("grant_type=refresh_token&refresh_token=r%2B&"
                                                 "client_id=i%20d&client_secret=s%3A%26%C3%BC")));
    CU_ASSERT_EQUAL(derived_field(&r, "authorization").n, 0);
    token_request_free(&r);
    derived_free(m);
    m = derived_made(APP); /* what is no key says so and nothing of itself */
    CU_ASSERT_EQUAL(derived_request(m, in, NULL, NOW, &r, &err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "not a private key"));
    CU_ASSERT_PTR_NULL(strstr(err.text, "s:&"));
    token_request_free(&r);
    derived_free(m);
    secret_unref(in[0]);
    secret_unref(in[1]);
}

#define MCP                                                                       \
    "{\"kind\":\"oauth_login\",\"endpoint\":\"https://i.example/t\",\"session\":" \
    "\"f\",\"encoding\":\"form\",\"refresh\":\"yes\",\"resource\":\"https://a.example/mcp\"}"

/* What is asked with such a file; *basic: how the client proves itself, beside the body. */
static void asks(const char *session, const char *body, const char *basic)
{
    struct err err = {0};
    struct token_request r;
    struct derived *m = derived_made(MCP);
    struct secret *in[DERIVED_INPUTS_MAX] = {secret_new(session, strlen(session))};
    int ok = derived_request(m, in, NULL, NOW, &r, &err);
    CU_ASSERT_EQUAL(ok, body ? 0 : -1);
    if (body) {
        CU_ASSERT(slice_eq_str(buf_slice(&r.body), body));
        CU_ASSERT(slice_eq_str(derived_field(&r, "authorization"), basic));
    } else {
        CU_ASSERT(strstr(err.text, "durward login mcp NAME URL") ||
                  strstr(err.text, "a login at another server"));
    }
    token_request_free(&r);
    derived_free(m);
    secret_unref(in[0]);
}

/* The file says who the client is; the request for what the token is. */
static void test_logins(void)
{
#define FOR   "grant_type=refresh_token&refresh_token=r&resource=https%3A%2F%2Fa.example%2Fmcp"
#define THERE "\"resource\":\"https://a.example/mcp\",\"token_url\":\"https://i.example/t\","
    asks("{" THERE
         "\"access\":\"a\",\"refresh\":\"r\",\"client\":{\"id\":\"i d\",\"auth\":\"none\"}}",
         FOR "&client_id=i%20d", "");
    asks("{" THERE
         "\"access\":\"a\",\"refresh\":\"r\",\"client\":{\"id\":\"i\",\"secret\":\"s&\",\"auth\":"
         "\"client_secret_post\"}}",
         FOR "&client_id=i&client_secret=s%26", "");
    asks("{" THERE
         "\"access\":\"a\",\"refresh\":\"r\",\"client\":{\"id\":\"i\",\"secret\":\"s\",\"auth\":"
         "\"client_secret_basic\"}}",
         FOR, "Basic aTpz");
    asks("{" THERE "\"access\":\"a\",\"refresh\":\"\"}", NULL, "");
    asks("{\"access\":\"a\",\"refresh\":\"r\",\"resource\":\"https://b.example/mcp\",\"token_url\":"
         "\"https://i.example/t\"}",
         NULL, "");
    asks("{\"access\":\"a\",\"refresh\":\"r\",\"resource\":\"https://a.example/mcp\",\"token_url\":"
         "\"https://j.example/t\"}",
         NULL, "");
    asks("{\"access\":\"a\",\"refresh\":\"r\"}", NULL, "");
#undef THERE
#undef FOR
}

static const struct {
    const char *spec;
    unsigned status;
    const char *body, *value; /* value NULL: an error with these words in `words` */
    unsigned seconds;
    const char *words;
} answers[] = {
    {OAUTH(""), 200, "{\"access_token\":\"t\",\"token_type\":\"Bearer\",\"expires_in\":3600}", "t",
     3540, ""},
    {OAUTH(""), 200, "{\"access_token\":\"t\",\"expires_in\":\"100\"}", "t", 89, ""},
    {OAUTH(""), 200, "{\"access_token\":\"t\"}", "t", 269, ""},
    {OAUTH(""), 200, "{\"access_token\":\"t\",\"expires_in\":99999999}", "t", 86340, ""},
    {OAUTH(""), 200, "{\"access_token\":\"t\",\"expires_in\":0}", NULL, 0, "without a token"},
    {OAUTH(""), 200, "{\"access_token\":\"t\",\"expires_in\":1}", NULL, 0, "without a token"},
    {OAUTH(""), 200, "{\"access_token\":\"t\",\"token_type\":\"mac\"}", NULL, 0, "without"},
    {OAUTH(""), 200, "{\"access_token\":\"t\",\"token_type\":\"DPoP\"}", NULL, 0, "without"},
    {OAUTH(""), 200, "{\"access_token\":\"t\",\"token_type\":\"N_A\"}", NULL, 0, "without"},
    {OAUTH(""), 200, "{\"access_token\":\"t\",\"token_type\":\"bot\"}", "t", 269, ""},
    {OAUTH(""), 200, "{\"access_token\":\"t\",\"token_type\":\"jwt-bearer\"}", "t", 269, ""},
    {OAUTH(""), 200, "{\"ok\":false,\"error\":\"invalid_refresh_token\"}", NULL, 0,
     "answered 200 invalid_refresh_token"},
    {OAUTH(""), 200, "{\"error\":\"the secret ghp_x is bad\"}", NULL, 0, "answered 200"},
    {OAUTH(""), 200, "{\"access_token\":\"a\\r\\nX: y\"}", NULL, 0, "without"},
    {OAUTH(""), 200, "{\"access_token\":\"\"}", NULL, 0, "without"},
    {OAUTH(""), 200, "{\"access_token\":1}", NULL, 0, "without"},
    {OAUTH(""), 200, "<html>", NULL, 0, "without"},
    {OAUTH(""), 200, "", NULL, 0, "without"},
    {OAUTH(""), 302, "{\"access_token\":\"t\"}", NULL, 0, "answered 302"},
    {OAUTH(""), 400, "{\"error\":\"invalid_grant\"}", NULL, 0, "answered 400 invalid_grant"},
    {OAUTH(""), 400, "{\"error\":\"the secret ghp_x is bad\"}", NULL, 0, "answered 400"},
    {MCP, 400, "{\"error\":\"invalid_grant\"}", NULL, 0,
     "400 invalid_grant; log in again on the host: durward login mcp NAME URL"},
    {MCP, 503, "{}", NULL, 0, "answered 503"},
    {APP, 201, "{\"token\":\"g\",\"expires_at\":\"2026-01-02T04:00:00Z\"}", "g", 3540, ""},
    {APP, 201, "{\"token\":\"g\",\"expires_at\":\"2026-01-02T02:00:00Z\"}", "g", 269, ""},
    {ID, 200, "{\"id_token\":\"e30.eyJleHAiOjE3NjczMjY0MDB9.x\"}", "e30.eyJleHAiOjE3NjczMjY0MDB9.x",
     3540, ""},
    {ID, 200, "{\"id_token\":\"e30\"}", "e30", 269, ""},
    {KV, 200, "{\"data\":{\"data\":{\"k\":\"v\"}}}", "v", 60, ""},
    {KV, 200, "{\"data\":{\"data\":{\"K\":\"v\"}}}", NULL, 0, "no text named 'k'"},
    {KV, 200, "{\"data\":{\"data\":{\"k\":5}}}", NULL, 0, "no text named 'k'"},
    {KV, 200, "{\"data\":{\"data\":{\"k\":\"\"}}}", NULL, 0, "no text named 'k'"},
    {KV, 200, "{\"data\":{\"k\":\"v\"}}", NULL, 0, "no text named 'k'"}, /* version 1 */
    {KV, 404, "{\"data\":{\"data\":null}}", NULL, 0, "404: nothing is there"},
    {KV, 403, "{\"errors\":[\"ghp_x\"]}", NULL, 0, "its login may not read"},
    {KV, 503, "", NULL, 0, "sealed"},
    {KV, 500, "", NULL, 0, "answered 500"},
    {ROLE, 200, "{\"auth\":{\"client_token\":\"t\",\"lease_duration\":600}}", "t", 540, ""},
    {ROLE, 200, "{\"auth\":{\"client_token\":\"t\",\"lease_duration\":0}}", "t", 269, ""},
    {ROLE, 200, "{\"auth\":{\"client_token\":\"t\",\"lease_duration\":-9}}", "t", 269, ""},
    {ROLE, 200, "{\"auth\":{\"client_token\":\"t\",\"lease_duration\":1}}", NULL, 0, "without a"},
    {ROLE, 200, "{\"auth\":{\"client_token\":\"t\\r\\nX: y\",\"lease_duration\":60}}", NULL, 0,
     "without a token"},
    {ROLE, 200, "{\"auth\":null}", NULL, 0, "without a token"},
    {ROLE, 400, "{}", NULL, 0, "400: this login is refused"},
    {MANAGER, 200, "{\"SecretString\":\"{\\\"f\\\":\\\"v\\\"}\"}", "v", 60, ""},
    {MANAGER, 200, "{\"SecretString\":\"{\\\"f\\\":1}\"}", NULL, 0, "no text named 'f'"},
    {MANAGER, 200, "{\"SecretString\":\"{\\\"f\\\":\\\"v\\\",\\\"f\\\":\\\"w\\\"}\"}", NULL, 0,
     "no text named 'f'"},
    {MANAGER, 200, "{\"SecretString\":\"f\"}", NULL, 0, "no text named 'f'"},
    {MANAGER, 200, "{\"SecretBinary\":\"Zg==\"}", NULL, 0, "no text named 'f'"},
    {MANAGER, 400, "{\"__type\":\"a.b#ResourceNotFoundException\",\"Message\":\"ghp_x\"}", NULL, 0,
     "answered 400 ResourceNotFoundException"},
    {MANAGER, 400, "{\"__type\":\"ghp_x is bad\"}", NULL, 0, "answered 400"},
    {SSM, 200, "{\"Parameter\":{\"Value\":\"v\"}}", "v", 60, ""},
    {SSM, 200, "{\"Parameter\":[]}", NULL, 0, "no text, or empty"},
    {CONNECT, 200, "{\"fields\":[{\"id\":\"f\",\"value\":\"v\"},{\"label\":\"g\"}]}", "v", 60, ""},
    {CONNECT, 200, "{\"fields\":[{\"id\":\"x\",\"label\":\"f\",\"value\":\"v\"}]}", "v", 60, ""},
    {CONNECT, 200,
     "{\"fields\":[{\"id\":\"f\",\"value\":\"v\"},{\"label\":\"f\",\"value\":\"w\"}]}", NULL, 0,
     "or more than one"},
    {CONNECT, 200, "{\"fields\":{}}", NULL, 0, "no text named 'f'"},
    {CONNECT, 200, "[]", NULL, 0, "no text named 'f'"},
    {CONNECT, 401, "", NULL, 0, "its token may not read this item"},
};

static void test_answers(void)
{
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct err err = {0};
        struct derived_answer got;
        struct derived *m = derived_made(answers[i].spec);
        int r = derived_reply(m, answers[i].status, slice_str(answers[i].body), NOW, &got, &err);
        if ((r == 0) != (answers[i].value != NULL) || (r == 0 && got.seconds != answers[i].seconds))
            printf("# row %zu: %d %u %s\n", i, r, got.seconds, err.text);
        CU_ASSERT_EQUAL(r, answers[i].value ? 0 : -1);
        CU_ASSERT_EQUAL(got.seconds, answers[i].seconds);
        if (r == 0)
            CU_ASSERT(secret_eq(got.value, slice_str(answers[i].value)));
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, answers[i].words));
        CU_ASSERT_PTR_NULL(strstr(err.text, "ghp_x"));
        secret_unref(got.value);
        derived_free(m);
    }
}

/* What is asked of stores; what they are worth is for tests/functional/stores_servers.t. */
static void test_stores(void)
{
    struct err err = {0};
    struct token_request r;
    struct secret *in[DERIVED_INPUTS_MAX] = {secret_new("s\"1", 3)}, *old = secret_new("o", 1);
    struct derived *m = derived_made(KV);
    CU_ASSERT(derived_is_stored(m) && derived_needs_login(m) && !derived_renews(m));
    CU_ASSERT(!derived_signs(m) && !derived_is_local(m));
    CU_ASSERT_EQUAL(derived_request(m, in, NULL, NOW, &r, &err), 0);
    CU_ASSERT_STRING_EQUAL(r.method, "GET");
    CU_ASSERT(buf_len(&r.body) == 0 && slice_eq(derived_field(&r, "x-vault-token"), SLICE("s\"1")));
    CU_ASSERT(slice_eq(derived_field(&r, "x-vault-request"), SLICE("true")));
    token_request_free(&r);
    derived_free(m);
    m = derived_made(ROLE);
    CU_ASSERT(!derived_is_stored(m) && derived_renews(m) && !derived_is_itself(m));
    CU_ASSERT_EQUAL(derived_request(m, in, NULL, NOW, &r, &err), 0);
    CU_ASSERT_STRING_EQUAL(r.url, "https://a.example/l");
    CU_ASSERT(slice_eq(buf_slice(&r.body), SLICE("{\"role_id\":\"r\",\"secret_id\":\"s\\\"1\"}")));
    token_request_free(&r);
    CU_ASSERT_EQUAL(derived_request(m, in, old, NOW, &r, &err), 0); /* to prolong it */
    CU_ASSERT_STRING_EQUAL(r.url, "https://a.example/v1/auth/token/renew-self");
    CU_ASSERT(slice_eq(derived_field(&r, "x-vault-token"), SLICE("o")));
    CU_ASSERT(slice_eq(buf_slice(&r.body), SLICE("{}")));
    token_request_free(&r);
    derived_free(m);
    m = derived_made(CONNECT);
    CU_ASSERT_EQUAL(derived_request(m, in, NULL, NOW, &r, &err), 0);
    CU_ASSERT(slice_eq(derived_field(&r, "authorization"), SLICE("Bearer s\"1")));
    token_request_free(&r);
    derived_free(m);
    secret_unref(in[0]);
    in[0] = aws_pair_pack(SLICE("AKID"), SLICE("key"), SLICE("session"));
    m = derived_made(MANAGER);
    CU_ASSERT_EQUAL(derived_request(m, in, NULL, NOW, &r, &err), 0);
    CU_ASSERT(slice_eq(buf_slice(&r.body), SLICE("{\"SecretId\":\"n/\\\"\"}")));
    CU_ASSERT(slice_eq(derived_field(&r, "x-amz-target"), SLICE("secretsmanager.GetSecretValue")));
    CU_ASSERT(slice_eq(derived_field(&r, "x-amz-security-token"), SLICE("session")));
    CU_ASSERT(slice_starts(derived_field(&r, "authorization"),
                           SLICE("AWS4-HMAC-SHA256 Credential=AKID/20260102/r/secretsmanager/")));
    token_request_free(&r);
    derived_free(m);
    secret_unref(in[0]);
    secret_unref(old);
}

static void test_rotated(void)
{
    struct err err = {0};
    struct derived_answer got;
    struct derived *m = derived_made(OAUTH(",\"refresh_token\":\"b\""));
    CU_ASSERT_EQUAL(derived_reply(m, 200, SLICE("{\"access_token\":\"t\",\"refresh_token\":\"n\"}"),
                                  NOW, &got, &err),
                    0);
    CU_ASSERT(secret_eq(got.rotated, SLICE("n")));
    secret_unref(got.value);
    secret_unref(got.rotated);
    /* spent it is, whatever came with the new one */
    static const char *const unusable[] = {"\"access_token\":\"t\",\"token_type\":\"DPoP\"",
                                           "\"access_token\":\"t\",\"expires_in\":0",
                                           "\"access_token\":\"t t\"", "\"access_token\":null"};
    for (size_t i = 0; i < ARRAY_LEN(unusable); i++) {
        char text[200];
        snprintf(text, sizeof text, "{%s,\"refresh_token\":\"n\"}", unusable[i]);
        CU_ASSERT_EQUAL(derived_reply(m, 200, slice_str(text), NOW, &got, &err), -1);
        CU_ASSERT(got.value == NULL && got.rotated && secret_eq(got.rotated, SLICE("n")));
        secret_unref(got.rotated);
    }
    CU_ASSERT_EQUAL(derived_reply(m, 400, SLICE("{\"refresh_token\":\"n\"}"), NOW, &got, &err), -1);
    CU_ASSERT_PTR_NULL(got.rotated);
    derived_free(m);
}

static void test_sessions(void)
{
    static const char text[] = "{\"access\":\"a\",\"refresh\":\"r\",\"expires\":7}";
    struct secret *session = secret_new(text, strlen(text)), *next = secret_new("n\"", 2);
    struct secret *refresh = derived_session_refresh(session),
                  *with = derived_session_with(session, next);
    CU_ASSERT(refresh && secret_eq(refresh, SLICE("r")));
    CU_ASSERT_FATAL(with != NULL);
    CU_ASSERT(secret_eq(with, SLICE("{\"access\":\"a\",\"refresh\":\"n\\\"\",\"expires\":7}")));
    CU_ASSERT_PTR_NULL(derived_session_refresh(next)); /* it is no session */
    CU_ASSERT_PTR_NULL(derived_session_with(next, refresh));
    secret_unref(session);
    secret_unref(next);
    secret_unref(refresh);
    secret_unref(with);
}

static void test_role(void)
{
    struct err err = {0};
    struct derived_answer got;
    struct aws_pair pair;
    struct derived *m =
        derived_made("{\"kind\":\"aws_role\",\"key\":\"k\",\"endpoint\":\"https://a.example/\"}");
    CU_ASSERT(derived_signs(m) && !derived_is_local(m));
    const char *text = "{\"AssumeRoleResponse\":{\"AssumeRoleResult\":{\"Credentials\":{"
                       "\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"k\",\"SessionToken\":\"t\","
                       "\"Expiration\":1767326400.0}}}}";
    CU_ASSERT_EQUAL(derived_reply(m, 200, slice_str(text), NOW, &got, &err), 0);
    CU_ASSERT_EQUAL(got.seconds, 3540);
    CU_ASSERT(aws_pair_open(secret_slice(got.value), &pair) == 0 &&
              slice_eq(pair.token, SLICE("t")));
    secret_unref(got.value);
    CU_ASSERT_EQUAL(derived_reply(m, 200, SLICE("{}"), NOW, &got, &err), -1);
    CU_ASSERT_EQUAL(derived_reply(m, 403, slice_str(text), NOW, &got, &err), -1);
    derived_free(m);
}

/* ---- what the parent keeps ---- */

static int nothing(struct ipc *ch UNUSED, struct msg *m UNUSED, void *arg UNUSED)
{
    return 0;
}

static void closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg UNUSED)
{
}

/* Asks and says what came back: the value, "ok", "failed" or "bad". */
static const char *say(const char *dir, uint16_t type, const char *name, const char *value)
{
    static char text[256];
    struct event_base *base = event_base_new();
    int fds[2];
    uint32_t req;
    uint8_t ok;
    struct slice got;
    struct msg m;
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    struct ipc *ch = ipc_new(base, fds[0], nothing, closed, NULL);
    msg_init(&m, type);
    msg_put_u32(&m, 7);
    msg_put_str(&m, name);
    if (value)
        msg_put_str(&m, value);
    snprintf(text, sizeof text, "bad");
    int r = refresh_tokens_message(dir, ch, &m);
    msg_done(&m);
    event_base_loop(base, EVLOOP_NONBLOCK);
    if (r == 0 && msg_recv(fds[1], &m) == 1) {
        CU_ASSERT(msg_get_u32(&m, &req) == 0 && req == 7);
        if (m.type == W_TOKEN_SAVED && msg_get_u8(&m, &ok) == 0)
            snprintf(text, sizeof text, "%s", ok ? "ok" : "failed");
        else if (m.type == W_TOKEN_FOUND && msg_get_slice(&m, 200, &got) == 0)
            snprintf(text, sizeof text, "%.*s", SL(got));
        msg_done(&m);
    }
    ipc_free(ch);
    close(fds[1]);
    event_base_free(base);
    return text;
}

static void test_kept(void)
{
    char dir[] = "/tmp/durward-kept-XXXXXX", path[100], aside[100];
    struct stat st;
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    CU_ASSERT_STRING_EQUAL(say(dir, W_TOKEN_GET, "a", NULL), "");
    CU_ASSERT_STRING_EQUAL(say(dir, W_TOKEN_SAVE, "a", "one"), "ok");
    CU_ASSERT_STRING_EQUAL(say(dir, W_TOKEN_SAVE, "a", "two"), "ok");
    CU_ASSERT_STRING_EQUAL(say(dir, W_TOKEN_GET, "a", NULL), "two");
    CU_ASSERT_STRING_EQUAL(say(dir, W_TOKEN_GET, "b", NULL), "");
    snprintf(path, sizeof path, "%s/tokens/a", dir);
    CU_ASSERT(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
    chmod(path, 0640); /* what others can read is not used */
    CU_ASSERT_STRING_EQUAL(say(dir, W_TOKEN_GET, "a", NULL), "");
    chmod(path, 0600);
    CU_ASSERT_STRING_EQUAL(say(dir, W_TOKEN_GET, "a", NULL), "two");
    CU_ASSERT_STRING_EQUAL(say(dir, W_TOKEN_GET, "a", "more behind it"), "bad");
    if (geteuid() == 0) { /* nor what another user could have put there */
        CU_ASSERT_EQUAL(chown(path, 1, 0), 0);
        CU_ASSERT_STRING_EQUAL(say(dir, W_TOKEN_GET, "a", NULL), "");
        CU_ASSERT_EQUAL(chown(path, 0, 0), 0);
    }
    snprintf(aside, sizeof aside, "%s/aside", dir);
    CU_ASSERT(rename(path, aside) == 0 && symlink(aside, path) == 0);
    CU_ASSERT_STRING_EQUAL(say(dir, W_TOKEN_GET, "a", NULL), "");
    CU_ASSERT(unlink(path) == 0 && mkdir(path, 0700) == 0); /* a name that cannot be taken */
    CU_ASSERT_STRING_EQUAL(say(dir, W_TOKEN_SAVE, "a", "x"), "failed");
    CU_ASSERT(rmdir(path) == 0 && rename(aside, path) == 0);
    static const char *const names[] = {"", ".", "..", "../x", "a/b", ".a", "a b", "-a", "a\n"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CU_ASSERT_STRING_EQUAL(say(dir, W_TOKEN_GET, names[i], NULL), "bad");
        CU_ASSERT_STRING_EQUAL(say(dir, W_TOKEN_SAVE, names[i], "x"), "bad");
    }
    CU_ASSERT_STRING_EQUAL(say("/nonexistent", W_TOKEN_SAVE, "a", "x"), "failed");
    CU_ASSERT_STRING_EQUAL(say("/nonexistent", W_TOKEN_GET, "a", NULL), "");
    unlink(path);
    snprintf(path, sizeof path, "%s/tokens", dir);
    CU_ASSERT_EQUAL(rmdir(path), 0); /* nothing else was left in it */
    rmdir(dir);
}

/* ---- what the vault is told ---- */

static void test_said(void)
{
    struct derived_spec said = {.kind = DERIVED_VAULT, .ttl = 60}, got;
    struct msg m;
    for (size_t i = 1; i < DERIVED_KINDS; i++)
        CU_ASSERT_PTR_NOT_NULL(derived_kind_name((enum derived_kind)i));
    for (size_t i = 1; i < SPEC_FIELDS; i++)
        said.text[i] = spec_field_name((enum spec_field)i);
    said.text[SPEC_PATH] = NULL;
    said.text[SPEC_TO] = ""; /* as if it were not given */
    msg_init(&m, 0);
    derived_spec_put(&m, &said);
    CU_ASSERT_EQUAL(buf_len(&m.body), derived_spec_bytes(&said));
    CU_ASSERT_EQUAL_FATAL(derived_spec_get(&m, &got), 0);
    CU_ASSERT_EQUAL(msg_end(&m), 0);
    CU_ASSERT(derived_spec_same(&said, &got) && got.text[SPEC_PATH] == NULL);
    said.text[SPEC_PATH] = "x";
    CU_ASSERT(!derived_spec_same(&said, &got));
    derived_spec_clear(&got);
    msg_done(&m);
}

/* kind, fields with their texts */
static int read_said(unsigned kind, unsigned n, const unsigned *fields, struct slice text)
{
    struct derived_spec got;
    struct msg m;
    msg_init(&m, 0);
    msg_put_u8(&m, (uint8_t)kind);
    msg_put_u32(&m, 0);
    msg_put_u8(&m, (uint8_t)n);
    for (unsigned i = 0; i < n; i++) {
        msg_put_u8(&m, (uint8_t)fields[i]);
        msg_put_slice(&m, text);
    }
    int r = derived_spec_get(&m, &got);
    if (r == 0)
        derived_spec_clear(&got);
    msg_done(&m);
    return r;
}

static void test_said_badly(void)
{
    static const unsigned good[] = {SPEC_KEY, SPEC_PATH}, twice[] = {SPEC_KEY, SPEC_KEY},
                          turned[] = {SPEC_PATH, SPEC_KEY}, none[] = {0}, past[] = {SPEC_FIELDS};
    static char longer[SPEC_TEXT_MAX + 1];
    memset(longer, 'a', sizeof longer);
    struct slice a = SLICE("a");
    CU_ASSERT_EQUAL(read_said(DERIVED_VAULT, 2, good, a), 0);
    CU_ASSERT_EQUAL(read_said(0, 2, good, a), -1);
    CU_ASSERT_EQUAL(read_said(DERIVED_KINDS, 2, good, a), -1);
    CU_ASSERT_EQUAL(read_said(DERIVED_VAULT, 2, twice, a), -1);
    CU_ASSERT_EQUAL(read_said(DERIVED_VAULT, 2, turned, a), -1);
    CU_ASSERT_EQUAL(read_said(DERIVED_VAULT, 1, none, a), -1);
    CU_ASSERT_EQUAL(read_said(DERIVED_VAULT, 1, past, a), -1);
    CU_ASSERT_EQUAL(read_said(DERIVED_VAULT, 1, good, SLICE("")), -1);
    CU_ASSERT_EQUAL(read_said(DERIVED_VAULT, 1, good, (struct slice){"a\0b", 3}), -1);
    CU_ASSERT_EQUAL(read_said(DERIVED_VAULT, 1, good, (struct slice){longer, SPEC_TEXT_MAX}), 0);
    CU_ASSERT_EQUAL(read_said(DERIVED_VAULT, 1, good, (struct slice){longer, sizeof longer}), -1);
}

void suite_derived(void)
{
    CU_pSuite s = CU_add_suite("derived", NULL, NULL);
    CU_add_test(s, "what the vault is told", test_said);
    CU_add_test(s, "what is said badly is refused", test_said_badly);
    CU_add_test(s, "stores behind endpoints", test_stores);
    CU_add_test(s, "what endpoints are asked", test_requests);
    CU_add_test(s, "a login whose file names the client", test_logins);
    CU_add_test(s, "what they answer", test_answers);
    CU_add_test(s, "a refresh token that is replaced", test_rotated);
    CU_add_test(s, "a session with another refresh token", test_sessions);
    CU_add_test(s, "a role's keys", test_role);
    CU_add_test(s, "what is kept in files", test_kept);
}

void tap_suites(void)
{
    suite_derived();
}
