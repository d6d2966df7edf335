/* What strangers say while a user logs in at an MCP server: the first byte says whether the rest is
 * a WWW-Authenticate challenge, the query of the browser's redirect, or one of three documents. */
#include "login_flow.h"

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
    if (!right)
        abort();
}

/* A scheme's parameter is told as it stands, once, and within its bound. */
static void challenge(const char *text)
{
    char small[16], large[2048];
    int r = login_challenge(text, "resource_metadata", large, sizeof large);
    require(r >= -1 && r <= 1 && (r == 1 || r < 0 || large[0] == 0));
    require(strlen(large) < sizeof large && strlen(large) <= strlen(text));
    if (login_challenge(text, "resource_metadata", small, sizeof small) == 1)
        require(r == 1 && strcmp(small, large) == 0);
}

/* A value that was read is printable, and is read again of what it is written as. */
static void value(struct slice query, const char *name)
{
    char to[512], again[512];
    struct buf b;
    if (login_query(query, name, to, sizeof to) != 1)
        return;
    for (const char *p = to; *p; p++)
        require(*p >= 0x20 && *p < 0x7f);
    buf_init(&b, 4 * sizeof to);
    require(login_form(&b, name, slice_str(to)) == 0);
    if (to[0])
        require(login_query(buf_slice(&b), name, again, sizeof again) == 1 &&
                strcmp(to, again) == 0);
    buf_free(&b);
}

/* Nobody ends the wait who does not know the state of the attempt. */
static void redirect(struct slice query)
{
    static const char *const names[] = {"state", "code", "iss", "error"};
    static struct login_server s = {.issuer = "https://i.example", .one_origin = true};
    struct login_attempt a = {.state = "S0123456789012345678901234567890123456789ab"};
    char code[LOGIN_CODE_MAX + 1] = "", state[LOGIN_RANDOM + 1];
    struct err err = {0};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        value(query, names[i]);
    int r = login_take_answer(&s, &a, query, code, &err);
    bool knows =
        login_query(query, "state", state, sizeof state) == 1 && strcmp(state, a.state) == 0;
    require(knows ? r != 1 || code[0] : r == 0 && code[0] == 0);
}

static void document(char kind, struct slice text)
{
    static struct login_server s;
    struct err err = {0};
    json_t *v = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, NULL);
    memset(&s, 0, sizeof s);
    require(login_url_read(&s.at, "https://a.example/mcp", "it", &err) == 0);
    snprintf(s.issuer, sizeof s.issuer, "https://i.example");
    if (kind == 'r' && login_take_resource(&s, v, NULL, &err) == 0)
        require(login_url_covers(&s.resource, &s.at) && login_scope_ok(s.scope) &&
                strncmp(s.issuer, "https://", 8) == 0);
    if (kind == 'i' && login_take_issuer(&s, v, &err) == 0)
        require(strncmp(s.token.text, "https://", 8) == 0 &&
                strncmp(s.authorize.text, "https://", 8) == 0);
    if (kind == 't' && login_take_tokens(v, &err) == 0)
        require(login_life(v) >= 0 && json_string_length(json_object_get(v, "access_token")) > 0);
    json_decref(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct slice rest = {(const char *)data + 1, size - 1};
    char *text = data[0] == 'w' ? slice_dup(rest) : NULL;
    if (text)
        challenge(text);
    else if (data[0] == 'q')
        redirect(rest);
    else
        document((char)data[0], rest);
    free(text);
    return 0;
}
