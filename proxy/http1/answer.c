/* Chooses the form of a refusal by the request, and writes it. */
#include "answer.h"

#include "answer_words.h"
#include "http1_write.h"
#include "mcp_error.h"

#include <stdio.h>
#include <string.h>

enum { WORD_MAX = 64 };

/* ---- which form ---- */

static bool has_text(struct slice s, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= s.n; i++)
        if (slice_ieq_str((struct slice){s.p + i, n}, word))
            return true;
    return false;
}

/* A media type without its parameters. ANSWER_TEXT with *known false: it says nothing. */
static enum answer_form form_of(struct slice type, bool *known)
{
    *known = true;
    if (slice_ieq_str(type, "application/problem+json"))
        return ANSWER_PROBLEM;
    if (slice_istarts(type, SLICE("application/vnd.npm.")))
        return ANSWER_NPM;
    if (slice_istarts(type, SLICE("application/vnd.docker.")) ||
        slice_istarts(type, SLICE("application/vnd.oci.")))
        return ANSWER_REGISTRY;
    if (slice_ieq_str(type, "text/html") || slice_ieq_str(type, "application/xhtml+xml"))
        return ANSWER_HTML;
    if (has_text(type, "json") || slice_ieq_str(type, "text/event-stream"))
        return ANSWER_JSON;
    *known = slice_ieq_str(type, "text/plain");
    return ANSWER_TEXT;
}

/* What stands before the first c; *rest behind it. */
static struct slice split(struct slice s, char c, struct slice *rest)
{
    ssize_t at = slice_find(s, c);
    size_t n = at < 0 ? s.n : (size_t)at;
    *rest = at < 0 ? SLICE("") : (struct slice){s.p + n + 1, s.n - n - 1};
    return slice_trim((struct slice){s.p, n});
}

/* In thousandths (RFC 9110 12.4.2); what cannot be read counts as 1. */
static unsigned weight(struct slice parameters)
{
    while (parameters.n > 0) {
        struct slice p = split(parameters, ';', &parameters);
        if (!slice_istarts(p, SLICE("q=")))
            continue;
        unsigned q = p.n > 2 && p.p[2] == '0' ? 0 : 1000, unit = 100;
        for (size_t i = 4; q < 1000 && i < p.n && p.p[i] >= '0' && p.p[i] <= '9'; i++, unit /= 10)
            q += (unsigned)(p.p[i] - '0') * unit;
        return q;
    }
    return 1000;
}

/* The form that Accept likes best, of those that it names. */
static bool accepted(struct slice accept, enum answer_form *ret)
{
    unsigned best = 0;
    while (accept.n > 0) {
        struct slice parameters, one = split(accept, ',', &accept);
        struct slice type = split(one, ';', &parameters);
        bool known;
        enum answer_form f = form_of(type, &known);
        unsigned q = known ? weight(parameters) : 0;
        if (q > best) {
            best = q;
            *ret = f;
        }
    }
    return best > 0;
}

/* A message to an MCP server (Streamable HTTP): its client says which version it speaks, or that it
 * takes the answer as JSON and as events. */
static bool is_mcp(const struct head *h, const struct field *accept)
{
    return http_head_find(h, "mcp-protocol-version") != NULL ||
           (accept && has_text(accept->value, "application/json") &&
            has_text(accept->value, "text/event-stream"));
}

struct answer_how answer_how(const struct head *h, bool framed)
{
    struct answer_how how = {ANSWER_TEXT, ""};
    const struct field *content = http_head_find(h, "content-type");
    const struct field *accept = http_head_find(h, "accept");
    struct slice rest, type = content ? split(content->value, ';', &rest) : SLICE("");
    bool known;
    if (slice_istarts(type, SLICE("application/grpc-web")))
        how.form = ANSWER_GRPC_WEB;
    else if (framed && slice_istarts(type, SLICE("application/grpc")))
        how.form = ANSWER_GRPC;
    else if (http_head_find(h, "npm-command"))
        how.form = ANSWER_NPM;
    else if (slice_ieq_str(type, "application/json") && is_mcp(h, accept))
        how.form = ANSWER_RPC;
    else if (accept == NULL || !accepted(accept->value, &how.form))
        how.form = has_text(type, "json") ? form_of(type, &known) : ANSWER_TEXT;
    return how;
}

void answer_rpc(struct answer_how *how, const char *id)
{
    how->form = ANSWER_RPC;
    snprintf(how->rpc_id, sizeof how->rpc_id, "%s", id);
    if (how->rpc_id[strspn(how->rpc_id, "0123456789")] != 0)
        how->rpc_id[0] = 0;
}

/* ---- the text ---- */

static const char *said(enum answer_class c)
{
    return c == ANSWER_DENIED    ? "Durward denied this request"
           : c == ANSWER_REFUSED ? "Durward refused this request"
                                 : "Durward could not complete this request";
}

/* The form depends on it that nothing has to be escaped. */
static const char *plain(const char *word)
{
    static const char ok[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t n = word ? strspn(word, ok) : 0;
    return n > 0 && n < WORD_MAX && word[n] == 0 ? word : "-";
}

static void put_json(struct answer *a, enum answer_form form, const char *message,
                     const char *class, const char *code, const char *id)
{
    int n;
    a->type = "application/json";
    if (form == ANSWER_NPM)
        n = snprintf(a->body, sizeof a->body,
                     "{\"error\":\"%s (%s %s)\",\"message\":\"%s\",\"type\":\"durward_%s\","
                     "\"code\":\"%s\",\"id\":\"%s\"}\n",
                     message, code, id, message, class, code, id);
    else if (form == ANSWER_REGISTRY)
        n = snprintf(a->body, sizeof a->body,
                     "{\"errors\":[{\"code\":\"DENIED\",\"message\":\"%s (%s %s)\",\"detail\":"
                     "{\"type\":\"durward_%s\",\"code\":\"%s\",\"id\":\"%s\"}}],"
                     "\"message\":\"%s\"}\n",
                     message, code, id, class, code, id, message);
    else
        n = snprintf(a->body, sizeof a->body,
                     "{\"error\":{\"message\":\"%s\",\"type\":\"durward_%s\",\"code\":\"%s\","
                     "\"id\":\"%s\"},\"message\":\"%s\"}\n",
                     message, class, code, id, message);
    a->n = (size_t)n;
}

static void put_rpc(struct answer *a, const struct answer_how *how, const char *message,
                    const char *class, const char *code, const char *id)
{
    a->type = "application/json";
    a->n = (size_t)snprintf(a->body, sizeof a->body,
                            "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":%d,"
                            "\"message\":\"%s\",\"data\":{\"type\":\"durward_%s\","
                            "\"code\":\"%s\",\"id\":\"%s\"}}}\n",
                            how->rpc_id[0] ? how->rpc_id : "null", MCP_ERROR_REFUSED, message,
                            class, code, id);
}

/* kubectl prints its message. */
static void put_kube(struct answer *a, const char *message, const char *code, const char *id)
{
    a->type = "application/json";
    a->n = (size_t)snprintf(
        a->body, sizeof a->body,
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
        "\"message\":\"%s (%s %s)\",\"reason\":\"%s\",\"code\":%u}\n",
        message, code, id,
        a->status == 403   ? "Forbidden"
        : a->status == 503 ? "ServiceUnavailable"
                           : "",
        a->status);
}

static void put_problem(struct answer *a, const struct answer_words *w, const char *code,
                        const char *id)
{
    const char *class = answer_class_name(w->class);
    a->type = "application/problem+json";
    a->n = (size_t)snprintf(a->body, sizeof a->body,
                            "{\"type\":\"urn:durward:%s:%s\",\"title\":\"%s\",\"status\":%u,"
                            "\"detail\":\"%s: %s. %s.\",\"code\":\"%s\",\"id\":\"%s\"}\n",
                            class, code, said(w->class), a->status, said(w->class), w->why, w->way,
                            code, id);
}

static void put_html(struct answer *a, const struct answer_words *w, const char *code,
                     const char *id)
{
    a->type = "text/html; charset=utf-8";
    a->n = (size_t)snprintf(a->body, sizeof a->body,
                            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
                            "<meta name=\"viewport\" content=\"width=device-width\">"
                            "<title>%s</title><h1>%s</h1><p>Reason: %s.</p><p>%s.</p>"
                            "<p><code>%s %s %s</code></p></html>\n",
                            said(w->class), said(w->class), w->why, w->way,
                            answer_class_name(w->class), code, id);
}

/* The last line is for programs. */
static void put_text(struct answer *a, const struct answer_words *w, const char *code,
                     const char *id)
{
    a->type = "text/plain; charset=utf-8";
    a->n = (size_t)snprintf(a->body, sizeof a->body, "%s: %s.\n%s.\n%s %s %s\n", said(w->class),
                            w->why, w->way, answer_class_name(w->class), code, id);
}

/* gRPC's own table for a status that came without one of its own. */
static unsigned grpc_status(unsigned status)
{
    switch (status) {
    case 403:
        return 7; /* PERMISSION_DENIED */
    case 407:
        return 16; /* UNAUTHENTICATED */
    case 408:
        return 4; /* DEADLINE_EXCEEDED */
    case 413:
    case 429:
        return 8; /* RESOURCE_EXHAUSTED */
    case 405:
    case 501:
    case 505:
        return 12; /* UNIMPLEMENTED */
    case 502:
    case 503:
    case 504:
        return 14; /* UNAVAILABLE */
    default:
        return 3; /* INVALID_ARGUMENT */
    }
}

/* Trailers alone, which come with status 200: a client of gRPC looks at no other. */
static void put_grpc(struct answer *a, enum answer_form form, const char *message, const char *code,
                     const char *id)
{
    a->type = form == ANSWER_GRPC ? "application/grpc" : "application/grpc-web";
    snprintf(a->grpc_status, sizeof a->grpc_status, "%u", grpc_status(a->status));
    snprintf(a->grpc_message, sizeof a->grpc_message, "%s (%s %s)", message, code, id);
    a->status = 200;
}

void answer_make(struct answer *a, const struct answer_how *how, unsigned status, const char *code,
                 const char *id, unsigned retry)
{
    const struct answer_words *w = answer_words(status, code);
    const char *class = answer_class_name(w->class);
    char message[ANSWER_LINE];
    a->status = status;
    a->retry = retry ? retry : status == 503 ? w->retry : 0;
    a->grpc_status[0] = a->grpc_message[0] = a->body[0] = 0;
    a->n = 0;
    snprintf(a->denied, sizeof a->denied, "%s %s", code, id ? id : "-");
    code = plain(code);
    id = plain(id);
    snprintf(a->error, sizeof a->error, "%s %s", class, code);
    snprintf(message, sizeof message, "%s: %s. %s.", said(w->class), w->why, w->way);
    bool framed = how->form == ANSWER_GRPC || how->form == ANSWER_GRPC_WEB; /* the status is 200 */
    snprintf(a->reason, sizeof a->reason, "%s - %s: %s. %s. (%s %s)",
             http1_reason(framed ? 200 : status), said(w->class), w->why, w->way, code, id);
    if (framed)
        put_grpc(a, how->form, message, code, id);
    else if (how->form == ANSWER_RPC)
        put_rpc(a, how, message, class, code, id);
    else if (how->form == ANSWER_KUBE)
        put_kube(a, message, code, id);
    else if (how->form == ANSWER_PROBLEM)
        put_problem(a, w, code, id);
    else if (how->form == ANSWER_HTML)
        put_html(a, w, code, id);
    else if (how->form == ANSWER_TEXT)
        put_text(a, w, code, id);
    else
        put_json(a, how->form, message, class, code, id);
}
