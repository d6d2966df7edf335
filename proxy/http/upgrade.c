/* Checks what a client asks for, in HTTP/1.1 and in HTTP/2, and that the origin's reply fits what
 * we asked. upgrade_key.c makes keys and their answers. */
#include "upgrade.h"

#include "base64.h"

enum { KEY_BYTES = 16 };

static int refuse(struct refusal *why, unsigned status, const char *code)
{
    *why = (struct refusal){status, code};
    return -1;
}

static bool one_is(const struct head *h, const char *name, const char *value)
{
    return http_head_count(h, name) == 1 && slice_ieq_str(http_head_find(h, name)->value, value);
}

/* Base64 of exactly 16 bytes, in its one canonical spelling. */
static bool key_ok(struct slice v)
{
    unsigned char raw[UPGRADE_KEY_TEXT];
    return v.n == UPGRADE_KEY_TEXT - 1 && base64_read(v, raw, sizeof raw) == KEY_BYTES;
}

/* Java's client declares a body of no bytes. */
static bool lengthless(const struct head *h)
{
    return http_head_count(h, "content-length") == 0 || one_is(h, "content-length", "0");
}

/* An offer that its client does without where nobody takes it: HTTP/2 or TLS on a connection in
 * clear (RFC 7540 3.2, RFC 2817). Java's client makes the one, Apache's the other, with each
 * request. */
static bool is_offer(struct slice protocol)
{
    return slice_ieq_str(protocol, "h2c") || slice_istarts(protocol, SLICE("TLS/"));
}

static bool only_offers(const struct head *h)
{
    for (size_t i = 0; i < h->n; i++) {
        struct slice v = h->fields[i].value;
        if (!slice_eq_str(h->fields[i].name, "upgrade"))
            continue;
        for (ssize_t comma = 0; comma >= 0;) {
            comma = slice_find(v, ',');
            size_t n = comma < 0 ? v.n : (size_t)comma;
            if (!is_offer(slice_trim((struct slice){v.p, n})))
                return false;
            if (comma >= 0)
                v = (struct slice){v.p + n + 1, v.n - n - 1};
        }
    }
    return true;
}

int upgrade_check_request(struct head *h, bool option, struct refusal *why)
{
    size_t n = http_head_count(h, "upgrade");
    /* RFC 9110 7.8: a server may take no notice of an offer. Without Upgrade the option names a
     * field that is not there, as the usual lines of nginx do for each request; neither goes on. */
    if (n == 0 || only_offers(h))
        return 0;
    if (!one_is(h, "upgrade", "websocket"))
        return refuse(why, 501, "upgrade");
    if (!option || h->minor == 0 || !slice_eq_str(h->method, "GET") || h->body != BODY_NONE ||
        !lengthless(h) || !one_is(h, "sec-websocket-version", "13") ||
        http_head_count(h, "sec-websocket-key") != 1 || !key_ok(upgrade_key(h)))
        return refuse(why, 400, "upgrade");
    h->upgrade = UPGRADE_WEBSOCKET;
    h->body = BODY_TUNNEL;
    return 0;
}

int upgrade_check_connect(struct head *h, struct slice protocol, bool end, struct refusal *why)
{
    if (!slice_eq_str(protocol, "websocket"))
        return refuse(why, 501, "upgrade");
    if (end || http_head_count(h, "content-length") > 0 || http_head_count(h, "expect") > 0 ||
        http_head_count(h, "sec-websocket-key") > 0 || !one_is(h, "sec-websocket-version", "13"))
        return refuse(why, 400, "upgrade");
    h->upgrade = UPGRADE_WEBSOCKET;
    h->body = BODY_TUNNEL;
    return 0;
}

struct slice upgrade_key(const struct head *h)
{
    return http_head_find(h, "sec-websocket-key")->value;
}

bool upgrade_reply_fits(const struct head *h, bool option, const char *accept)
{
    return h->status == 101 && option && one_is(h, "upgrade", "websocket") &&
           http_head_count(h, "sec-websocket-accept") == 1 &&
           slice_eq_str(http_head_find(h, "sec-websocket-accept")->value, accept) &&
           http_head_count(h, "sec-websocket-extensions") == 0 &&
           http_head_count(h, "content-length") == 0 &&
           http_head_count(h, "transfer-encoding") == 0;
}

/* A comma-separated list holds this very member. */
static bool lists(struct slice v, struct slice member)
{
    while (v.n > 0) {
        ssize_t comma = slice_find(v, ',');
        struct slice t = slice_trim((struct slice){v.p, comma < 0 ? v.n : (size_t)comma});
        if (slice_eq(t, member))
            return true;
        if (comma < 0)
            return false;
        v = (struct slice){v.p + comma + 1, v.n - (size_t)comma - 1};
    }
    return false;
}

bool upgrade_protocol_fits(const struct head *request, const struct head *reply)
{
    static const char name[] = "sec-websocket-protocol";
    size_t n = http_head_count(reply, name);
    if (n != 1)
        return n == 0;
    struct slice chosen = http_head_find(reply, name)->value;
    if (chosen.n == 0 || slice_find(chosen, ',') >= 0)
        return false;
    for (size_t i = 0; i < request->n; i++)
        if (slice_eq_str(request->fields[i].name, name) && lists(request->fields[i].value, chosen))
            return true;
    return false;
}
