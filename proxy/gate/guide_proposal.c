/* Reads the JSON of a proposal: known members only, each bounded, a host and a method that a rule
 * can name, a path of characters that a rule is written with. */
#include "guide_proposal.h"

#include "method.h"

#include <jansson.h>
#include <string.h>

/* NULL where it is absent; false: it is no string, or longer than that. */
static bool member(const json_t *o, const char *key, size_t most, const char **ret)
{
    const json_t *v = json_object_get(o, key);
    *ret = json_string_value(v);
    return v == NULL || (*ret && strlen(*ret) <= most);
}

static bool known(const json_t *o)
{
    static const char *const keys[] = {"method", "host", "path", "reason", "scheme"};
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)o, key, v)
    {
        bool found = false;
        for (size_t i = 0; i < ARRAY_LEN(keys); i++)
            found = found || strcmp(key, keys[i]) == 0;
        if (!found)
            return false;
    }
    return json_is_object(o);
}

/* As a rule writes one: no query, no fragment, nothing that YAML or a terminal reads otherwise. */
static bool is_pattern(const char *path)
{
    if (path[0] != '/')
        return false;
    for (const char *p = path; *p; p++)
        if (*p <= 0x20 || *p >= 0x7f || strchr("?#\"'\\{}", *p))
            return false;
    return true;
}

static void put_reason(const char *text, struct guide_proposal *ret)
{
    size_t n = 0;
    for (const unsigned char *p = (const unsigned char *)text; *p && n < GUIDE_PROPOSAL_REASON; p++)
        if ((*p & 0xc0) != 0x80) /* a code point begins here */
            ret->reason[n++] = (char)(*p >= 0x20 && *p < 0x7f ? *p : '?');
    ret->reason[n] = 0;
}

static const char *take(const json_t *o, struct guide_proposal *ret)
{
    const char *method, *host, *path, *reason, *scheme;
    if (!known(o))
        return "it is an object with host, path, method, scheme and reason, and nothing else";
    if (!member(o, "method", sizeof ret->method - 1, &method) ||
        (method && method_bit(slice_str(method)) == 0))
        return "method is none that a rule can name";
    if (!member(o, "scheme", 8, &scheme) ||
        (scheme && strcmp(scheme, "https") != 0 && strcmp(scheme, "http") != 0))
        return "scheme is https or http";
    bool clear = scheme && strcmp(scheme, "http") == 0;
    if (!member(o, "host", HOST_TEXT_MAX + 8, &host) || host == NULL ||
        authority_parse(&ret->authority, clear ? SCHEME_HTTP : SCHEME_HTTPS, slice_str(host)) < 0)
        return "host is a name or address, with a port where it is not the usual one";
    if (!member(o, "path", GUIDE_PROPOSAL_PATH, &path) || (path && !is_pattern(path)))
        return "path begins with '/' and is at most 512 printable characters, without a query";
    if (!member(o, "reason", GUIDE_PROPOSAL_MAX, &reason))
        return "reason is a text";
    snprintf(ret->method, sizeof ret->method, "%s", method ? method : "GET");
    snprintf(ret->path, sizeof ret->path, "%s", path ? path : "/");
    put_reason(reason ? reason : "", ret);
    return NULL;
}

const char *guide_proposal_read(struct slice body, struct guide_proposal *ret)
{
    memset(ret, 0, sizeof *ret);
    json_t *o = json_loadb(body.p, body.n, JSON_REJECT_DUPLICATES, NULL);
    const char *wrong = o ? take(o, ret) : "it is not JSON";
    json_decref(o);
    return wrong;
}
