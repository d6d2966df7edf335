/* GraphQL over HTTP: POST of JSON or of the text alone, GET with ?query=. Every operation of the
 * document must be allowed, whichever of them operationName picks. */
#include "graphql.h"
#include "inspect_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct judge {
    const struct inspection *in;
    struct inspect_result *ret;
    bool refused;
};

static const char code[] = "graphql";

static const char *type_name(enum graphql_type t)
{
    return t == GRAPHQL_QUERY ? "query" : t == GRAPHQL_MUTATION ? "mutation" : "subscription";
}

static bool refuse_named(struct judge *j, const char *what, struct slice name)
{
    char detail[INSPECT_DETAIL_MAX];
    snprintf(detail, sizeof detail, "%s %.*s", what, (int)(name.n < 100 ? name.n : 100),
             name.n ? name.p : "");
    inspect_refuse(j->ret, 403, code, detail);
    j->refused = true;
    return false;
}

static bool on_operation(void *arg, enum graphql_type type, struct slice name)
{
    struct judge *j = arg;
    if ((j->in->read_only && type != GRAPHQL_QUERY) ||
        (j->in->by_name && (name.n == 0 || !words_have(&j->in->operations, name))))
        return refuse_named(j, type_name(type), name);
    return true;
}

static bool on_field(void *arg, struct slice name)
{
    struct judge *j = arg;
    if (name.n == 0)
        return refuse_named(j, "fragment at the top", name);
    return words_have(&j->in->fields, name) || refuse_named(j, "field", name);
}

static enum inspect_answer judge(const struct inspection *in, struct slice text,
                                 struct inspect_result *ret)
{
    struct judge j = {.in = in, .ret = ret};
    struct graphql_visitor v = {on_operation, in->by_field ? on_field : NULL, &j};
    json_t *utf8 = json_stringn(text.p, text.n); /* NULL: it is none */
    int r = utf8 ? graphql_read(text, &v) : -1;
    json_decref(utf8);
    if (j.refused)
        return INSPECT_REFUSED;
    return r == 0 ? INSPECT_PASS : inspect_refuse(ret, 400, "body_ambiguous", "document");
}

/* One form parameter's value, into `to`. -1: broken, or too long. */
static ssize_t decode(struct slice s, char *to, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        unsigned v;
        char hex[3] = {0};
        if (n == size)
            return -1;
        if (s.p[i] != '%') {
            to[n++] = s.p[i] == '+' ? ' ' : s.p[i];
            continue;
        }
        if (s.n - i < 3)
            return -1;
        memcpy(hex, s.p + i + 1, 2);
        if (strspn(hex, "0123456789abcdefABCDEF") != 2)
            return -1;
        v = (unsigned)strtoul(hex, NULL, 16);
        to[n++] = (char)v;
        i += 2;
    }
    return (ssize_t)n;
}

/* The parameters that a GET may have. */
static int parameter_kind(struct slice name)
{
    static const char *const names[] = {"query", "operationName", "variables"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (slice_eq_str(name, names[i]))
            return (int)i;
    return -1;
}

/* The raw value of `query`: exactly one, and nothing unknown beside it. */
static int find_query(struct slice q, struct slice *ret)
{
    unsigned seen = 0;
    for (;;) {
        ssize_t amp = slice_find(q, '&');
        struct slice part = {q.p, amp < 0 ? q.n : (size_t)amp};
        ssize_t eq = slice_find(part, '=');
        if (eq < 0 || slice_find(part, ';') >= 0)
            return -1;
        int kind = parameter_kind((struct slice){part.p, (size_t)eq});
        if (kind < 0 || seen & 1u << kind)
            return -1;
        seen |= 1u << kind;
        if (kind == 0)
            *ret = (struct slice){part.p + eq + 1, part.n - (size_t)eq - 1};
        if (amp < 0)
            return seen & 1 ? 0 : -1;
        q = (struct slice){q.p + amp + 1, q.n - (size_t)amp - 1};
    }
}

static enum inspect_answer judge_query(const struct inspection *in, const struct inspect_request *r,
                                       struct inspect_result *ret)
{
    struct slice raw = {"", 0};
    if (!r->has_query || find_query(r->query, &raw) < 0)
        return inspect_refuse(ret, 403, code, "query parameters");
    size_t room = raw.n < GRAPHQL_MAX ? raw.n : GRAPHQL_MAX; /* decoding lengthens nothing */
    char *text = malloc(room + 1);
    if (text == NULL)
        return inspect_refuse(ret, 503, "memory", "");
    ssize_t n = decode(raw, text, room);
    enum inspect_answer a = n < 0 ? inspect_refuse(ret, 400, "body_ambiguous", "query")
                                  : judge(in, (struct slice){text, (size_t)n}, ret);
    free(text);
    return a;
}

enum inspect_answer inspect_graphql_head(const struct inspection *in,
                                         const struct inspect_request *r,
                                         struct inspect_result *ret)
{
    bool get = slice_eq_str(r->method, "GET") || slice_eq_str(r->method, "HEAD");
    if (get && !r->has_body)
        return judge_query(in, r, ret);
    if (!slice_eq_str(r->method, "POST") || !r->has_body)
        return inspect_refuse(ret, 403, code, "neither GET nor POST");
    if (r->has_query) /* many servers prefer it to the body */
        return inspect_refuse(ret, 403, code, "query parameters");
    enum media m = inspect_media(r);
    if (m != MEDIA_JSON && m != MEDIA_GRAPHQL)
        return inspect_refuse(ret, 415, "content_type", "");
    return INSPECT_MORE;
}

/* A hash for a document that we do not see. */
static bool persisted(const json_t *extensions)
{
    return json_object_get(extensions, "persistedQuery") ||
           body_json_twisted(extensions, "persistedQuery");
}

enum inspect_answer inspect_graphql_body(const struct inspection *in,
                                         const struct inspect_request *r, struct slice body,
                                         struct inspect_result *ret)
{
    static const char *const keys[] = {"query", "operationName", "variables", "extensions"};
    json_t *root;
    if (inspect_media(r) == MEDIA_GRAPHQL)
        return judge(in, body, ret);
    if (inspect_json(body, &root, ret) < 0)
        return INSPECT_REFUSED;
    enum inspect_answer a;
    const json_t *text = json_object_get(root, "query");
    if (json_is_array(root))
        a = inspect_refuse(ret, 403, code, "batch");
    else if (!json_is_object(root) || !body_json_only(root, keys, ARRAY_LEN(keys)))
        a = inspect_refuse(ret, 403, code, "unknown keys");
    else if (!json_is_string(text) || persisted(json_object_get(root, "extensions")))
        a = inspect_refuse(ret, 403, code, "no document");
    else
        a = judge(in, (struct slice){json_string_value(text), json_string_length(text)}, ret);
    json_decref(root);
    return a;
}
