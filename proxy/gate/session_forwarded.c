/* Requests that a provider sends on to a URL of ours (Vercel's forwardURL): as the sandbox wrote
 * them, with where they were going and who asked in five fields of the provider's. The listener is
 * bound to a policy; the token says which sandbox of ours it is, and that the provider sent it. */
#include "session_internal.h"

#include "oidc.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const own[] = {"vercel-forwarded-host", "vercel-forwarded-scheme",
                                  "vercel-forwarded-port", "vercel-forwarded-path",
                                  "vercel-sandbox-oidc-token"};
enum { FIELD_HOST = 0, FIELD_SCHEME, FIELD_PORT, FIELD_PATH, FIELD_TOKEN };

static int refuse(struct refusal *why, unsigned status, const char *code)
{
    *why = (struct refusal){status, code};
    return -1;
}

/* Each once: what a sandbox wrote beside the provider's own makes two. */
static int take_fields(struct head *h, struct slice v[ARRAY_LEN(own)], struct refusal *why)
{
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        const struct field *f = http_head_find(h, own[i]);
        if (f == NULL || f->value.n == 0)
            return i == FIELD_TOKEN ? refuse(why, 403, "token_missing")
                                    : refuse(why, 400, "malformed_host");
        if (http_head_count(h, own[i]) != 1)
            return refuse(why, 400, "malformed_host");
        v[i] = f->value;
    }
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        http_head_remove(h, own[i]);
    return 0;
}

static int identify(struct session *s, struct slice token, struct refusal *why)
{
    char name[OIDC_NAME_MAX + 1];
    const char *code = s->gate->oidc
                           ? oidc_verify(s->gate->oidc, token, time(NULL), name, sizeof name)
                           : "token_invalid";
    if (code)
        return refuse(why, 403, code);
    snprintf(s->who.sandbox, sizeof s->who.sandbox, "vercel:%s", name);
    return 0;
}

static int destination(struct authority *a, const struct slice v[ARRAY_LEN(own)],
                       struct refusal *why)
{
    uint64_t port;
    if (slice_eq_str(v[FIELD_SCHEME], "https"))
        a->scheme = SCHEME_HTTPS;
    else if (slice_eq_str(v[FIELD_SCHEME], "http"))
        a->scheme = SCHEME_HTTP;
    else
        return refuse(why, 400, "malformed_host");
    if (slice_u64(v[FIELD_PORT], 65535, &port) < 0 || v[FIELD_PORT].p[0] == '0' ||
        authority_host(a, v[FIELD_HOST]) < 0) {
        memset(a, 0, sizeof *a);
        return refuse(why, 400, "malformed_host");
    }
    a->port = (uint16_t)port;
    return 0;
}

/* The path that was asked for. A query stands in it or, where it has none, in our own URL's. */
static int retarget(struct session *s, struct head *h, struct slice path, struct refusal *why)
{
    struct slice query = h->query;
    bool had = h->has_query, respelled = h->respelled;
    if (http1_retarget(h, path, &s->gate->limits, why) < 0)
        return -1;
    if (had && h->has_query && !slice_eq(query, h->query))
        return refuse(why, 400, "bad_target");
    if (had && !h->has_query) {
        h->query = query;
        h->has_query = true;
        h->respelled |= respelled;
    }
    return 0;
}

int session_forwarded(struct session *s, struct head *h, struct authority *a, struct refusal *why)
{
    struct slice v[ARRAY_LEN(own)];
    char text[HOST_TEXT_MAX + 16];
    s->who.sandbox[0] = 0; /* of the request before */
    if (h->form != TARGET_ORIGIN)
        return refuse(why, 400, "bad_target");
    if (take_fields(h, v, why) < 0 || identify(s, v[FIELD_TOKEN], why) < 0 ||
        destination(a, v, why) < 0 || retarget(s, h, v[FIELD_PATH], why) < 0)
        return -1;
    if (http_head_set(h, "host", slice_str(authority_text(a, text, sizeof text))) < 0)
        return refuse(why, 503, "memory");
    return 0;
}
