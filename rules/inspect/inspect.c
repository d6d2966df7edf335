/* Passes a request's head and body to the reader of the rule's kind (inspect_*.c), and holds what
 * these share: media types, bounds, JSON, refusals. */
#include "inspect_internal.h"
#include "llm.h"
#include "mcp.h"
#include "media_type.h"

#include <stdio.h>
#include <string.h>

enum inspect_answer inspect_refuse(struct inspect_result *ret, unsigned status, const char *code,
                                   const char *detail)
{
    ret->status = status;
    ret->code = code;
    snprintf(ret->detail, sizeof ret->detail, "%s", detail);
    return INSPECT_REFUSED;
}

int inspect_json(struct slice body, json_t **ret, struct inspect_result *why)
{
    switch (body_json_read(body, ret)) {
    case BODY_JSON_OK:
        return 0;
    case BODY_JSON_TOO_MANY:
        inspect_refuse(why, 413, "too_large_to_inspect", "values");
        return -1;
    case BODY_JSON_BAD:
        break;
    }
    inspect_refuse(why, 400, "body_ambiguous", "");
    return -1;
}

static enum media media_of(struct slice type)
{
    if (media_type_is_json(type))
        return MEDIA_JSON;
    if (slice_ieq_str(type, "application/graphql"))
        return MEDIA_GRAPHQL;
    if (slice_ieq_str(type, "text/event-stream"))
        return MEDIA_EVENTS;
    return slice_ieq_str(type, "multipart/form-data") ? MEDIA_MULTIPART : MEDIA_OTHER;
}

enum media inspect_media(const struct inspect_request *r)
{
    if (r->n_types == 0)
        return MEDIA_NONE;
    if (r->n_types > 1 || slice_find(r->type, ',') >= 0)
        return MEDIA_OTHER;
    struct slice rest = r->type;
    ssize_t semi = slice_find(rest, ';');
    enum media m = media_of(slice_trim((struct slice){rest.p, semi < 0 ? rest.n : (size_t)semi}));
    while (semi >= 0) {
        rest = (struct slice){rest.p + semi + 1, rest.n - (size_t)semi - 1};
        semi = slice_find(rest, ';');
        if (!media_type_parameter_ok(
                slice_trim((struct slice){rest.p, semi < 0 ? rest.n : (size_t)semi})))
            return MEDIA_OTHER;
    }
    return m;
}

bool inspect_is_json(const struct inspect_request *r)
{
    return inspect_media(r) == MEDIA_JSON && !r->coded;
}

static void put_words(const char *what, const struct word_list *words, char *buf, size_t size)
{
    size_t used = strlen(buf);
    used += (size_t)snprintf(buf + used, size - used, "%s%s", what, words->n ? " " : " none");
    for (size_t i = 0; i < words->n && used < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? ", " : "", words->list[i]);
}

static void put_mcp(const struct mcp_rules *m, char *buf, size_t size)
{
    size_t asked = 0, narrowed = 0;
    for (size_t i = 0; i < m->n_tools; i++) {
        asked += m->tools[i].ask;
        narrowed += m->tools[i].n_conditions > 0;
    }
    if (m->methods.n)
        put_words(", methods", &m->methods, buf, size);
    if (m->by_resource)
        put_words(", resources", &m->resources, buf, size);
    if (m->by_prompt)
        put_words(", prompts", &m->prompts, buf, size);
    size_t used = strlen(buf);
    if (asked + narrowed && used < size)
        snprintf(buf + used, size - used, " (%zu ask, %zu with conditions)", asked, narrowed);
}

static void put_llm(const struct inspection *in, char *buf, size_t size)
{
    const struct llm_rules *l = in->llm;
    size_t used = (size_t)snprintf(buf, size, "calls to a model (");
    for (size_t i = 0, n = 0; i < LLM_APIS && used < size; i++)
        if (l->apis & 1u << i)
            used += (size_t)snprintf(buf + used, size - used, "%s%s", n++ ? ", " : "",
                                     llm_api_names[i]);
    if (used < size)
        used += (size_t)snprintf(buf + used, size - used, ")");
    if (l->by_model)
        put_words(", models", &l->models, buf, size);
    used = strlen(buf);
    if (l->max_tokens && used < size)
        snprintf(buf + used, size - used, ", at most %llu tokens an answer",
                 (unsigned long long)l->max_tokens);
    if (!l->tools_any)
        put_words(", tools that the provider runs:", &in->tools, buf, size);
}

char *inspection_text(const struct inspection *in, char *buf, size_t size)
{
    buf[0] = 0;
    switch (in->kind) {
    case INSPECT_GRAPHQL:
        snprintf(buf, size, "GraphQL%s", in->read_only ? ", queries only" : "");
        if (in->by_name)
            put_words(", operations", &in->operations, buf, size);
        if (in->by_field)
            put_words(", fields", &in->fields, buf, size);
        break;
    case INSPECT_MCP:
        put_words("MCP, tools", &in->tools, buf, size);
        put_mcp(in->mcp, buf, size);
        break;
    case INSPECT_SERVER_TOOLS:
        put_words("tools that a model's provider runs:", &in->tools, buf, size);
        break;
    case INSPECT_LLM:
        put_llm(in, buf, size);
        break;
    case INSPECT_GIT:
        snprintf(buf, size, "git%s%s", in->push ? "" : ", no uploads of git-lfs",
                 in->force ? ", forced updates too" : "");
        if (in->refs_given)
            put_words(in->deletes ? ", changes and deletes of" : ", changes of", &in->refs, buf,
                      size);
        break;
    }
    return buf;
}

size_t inspect_bound(const struct inspection *in)
{
    /* JSON around a GraphQL text has its escapes and its variables */
    return in->kind == INSPECT_GRAPHQL ? INSPECT_SMALL
           : in->kind == INSPECT_MCP   ? INSPECT_LARGE / 8
                                       : INSPECT_LARGE;
}

static enum inspect_answer mcp_head(const struct inspect_request *r, struct inspect_result *ret)
{
    if (!r->has_body) /* GET opens the stream of events, DELETE ends the session; OPTIONS is what
                         a browser asks before either */
        return slice_eq_str(r->method, "GET") || slice_eq_str(r->method, "DELETE") ||
                       slice_eq_str(r->method, "OPTIONS")
                   ? INSPECT_PASS
                   : inspect_refuse(ret, 403, "mcp", "no message");
    if (inspect_media(r) != MEDIA_JSON)
        return inspect_refuse(ret, 415, "content_type", "");
    return INSPECT_MORE;
}

/* Whatever is not said to be a form or an upload is read as JSON, said or not. */
enum inspect_answer inspect_tools_head(const struct inspect_request *r, struct inspect_result *ret)
{
    if (!r->has_body)
        return INSPECT_PASS;
    enum media m = inspect_media(r);
    if (m != MEDIA_JSON && m != MEDIA_NONE && m != MEDIA_MULTIPART)
        return inspect_refuse(ret, 415, "content_type", "");
    return INSPECT_MORE;
}

static enum inspect_answer by_kind(const struct inspection *in, const struct inspect_request *r,
                                   struct inspect_result *ret)
{
    switch (in->kind) {
    case INSPECT_GRAPHQL:
        return inspect_graphql_head(in, r, ret);
    case INSPECT_MCP:
        return mcp_head(r, ret);
    case INSPECT_SERVER_TOOLS:
        return inspect_tools_head(r, ret);
    case INSPECT_LLM:
        return inspect_llm_head(in, r, ret);
    case INSPECT_GIT:
        break;
    }
    return inspect_git_head(in, r, ret);
}

/* What is not read whole has no bound to its length. */
static bool streams(const struct inspection *in, const struct inspect_request *r)
{
    struct slice model;
    bool free;
    if (in->kind == INSPECT_LLM && llm_form_of(in->llm, r->path, &free, &model) != LLM_NONE)
        return false;
    return in->kind == INSPECT_GIT ||
           ((in->kind == INSPECT_SERVER_TOOLS || in->kind == INSPECT_LLM) &&
            inspect_media(r) == MEDIA_MULTIPART);
}

enum inspect_answer inspect_head(const struct inspection *in, const struct inspect_request *r,
                                 struct inspect_result *ret)
{
    if (r->has_body && r->coded)
        return inspect_refuse(ret, 415, "content_coding", "");
    enum inspect_answer a = by_kind(in, r, ret);
    if (a == INSPECT_MORE && !streams(in, r) && r->length > inspect_bound(in))
        return inspect_refuse(ret, 413, "too_large_to_inspect", "");
    return a;
}

/* A form's body begins with its boundary, and no JSON text does: the rest may stream. */
static enum inspect_answer multipart_body(struct slice body, bool whole, struct inspect_result *ret)
{
    if (slice_starts(body, SLICE("--")))
        return INSPECT_PASS;
    return body.n >= 2 || whole ? inspect_refuse(ret, 400, "body_ambiguous", "multipart")
                                : INSPECT_MORE;
}

enum inspect_answer inspect_body(const struct inspection *in, const struct inspect_request *r,
                                 struct slice body, bool whole, struct inspect_result *ret)
{
    if (in->kind == INSPECT_GIT)
        return inspect_git_body(in, r, body, whole, ret);
    if (streams(in, r))
        return multipart_body(body, whole, ret);
    if (!whole)
        return INSPECT_MORE;
    if (in->kind == INSPECT_GRAPHQL)
        return inspect_graphql_body(in, r, body, ret);
    if (in->kind == INSPECT_LLM)
        return inspect_llm_body(in, r, body, ret);
    return in->kind == INSPECT_MCP ? inspect_mcp_body(in, r, body, ret)
                                   : inspect_tools_body(in, body, ret);
}
