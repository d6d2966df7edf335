/* Writes requests, replies, upgrades, trailers and refusals from their parts; what frames the body
 * is written here and never taken from the fields. */
#include "http1_write.h"

#include <inttypes.h>
#include <string.h>

const char *http1_reason(unsigned status)
{
    static const struct {
        unsigned status;
        const char *text;
    } t[] = {
        {101, "Switching Protocols"},
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {206, "Partial Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {303, "See Other"},
        {304, "Not Modified"},
        {307, "Temporary Redirect"},
        {308, "Permanent Redirect"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {407, "Proxy Authentication Required"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {411, "Length Required"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {422, "Unprocessable Content"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < ARRAY_LEN(t); i++)
        if (t[i].status == status)
            return t[i].text;
    return "Status";
}

static int write_fields(struct buf *out, const struct head *h)
{
    for (size_t i = 0; i < h->n; i++) {
        const struct field *f = &h->fields[i];
        if (buf_append_slice(out, f->name) < 0 || buf_append_str(out, ": ") < 0 ||
            buf_append_slice(out, f->value) < 0 || buf_append_str(out, "\r\n") < 0)
            return -1;
    }
    return 0;
}

static int write_framing(struct buf *out, enum body_kind body, uint64_t length)
{
    if (body == BODY_LENGTH)
        return buf_printf(out, "content-length: %" PRIu64 "\r\n", length);
    if (body == BODY_CHUNKED)
        return buf_append_str(out, "transfer-encoding: chunked\r\n");
    return 0;
}

static bool may_have_body(struct slice method)
{
    return slice_eq(method, SLICE("POST")) || slice_eq(method, SLICE("PUT")) ||
           slice_eq(method, SLICE("PATCH"));
}

bool http1_expects_body(struct slice method)
{
    static const char *const with[] = {"POST",   "PUT",    "PATCH", "PROPFIND", "PROPPATCH",
                                       "REPORT", "SEARCH", "LOCK",  "MERGE",    "CHECKOUT"};
    for (size_t i = 0; i < ARRAY_LEN(with); i++)
        if (slice_eq_str(method, with[i]))
            return true;
    return false;
}

int http1_write_request(struct buf *out, const struct head *h, const struct authority *a)
{
    char host[HOST_TEXT_MAX + 16];
    authority_text(a, host, sizeof host);
    if (buf_append_slice(out, h->method) < 0 || buf_append_str(out, " ") < 0 ||
        buf_append_slice(out, h->path) < 0)
        return -1;
    if (h->has_query && (buf_append_str(out, "?") < 0 || buf_append_slice(out, h->query) < 0))
        return -1;
    if (buf_printf(out, " HTTP/1.1\r\nhost: %s\r\n", host) < 0 || write_fields(out, h) < 0)
        return -1;
    bool zero = h->body == BODY_NONE && may_have_body(h->method);
    if (write_framing(out, zero ? BODY_LENGTH : h->body, zero ? 0 : h->length) < 0)
        return -1;
    bool odd =
        (h->body == BODY_LENGTH || h->body == BODY_CHUNKED) && !http1_expects_body(h->method);
    return buf_append_str(out, odd ? "connection: close\r\n\r\n" : "\r\n");
}

int http1_write_reply(struct buf *out, const struct head *h, enum body_kind body, uint64_t length,
                      bool close, bool head_request)
{
    if (buf_printf(out, "HTTP/1.1 %u %s\r\n", h->status, http1_reason(h->status)) < 0 ||
        write_fields(out, h) < 0)
        return -1;
    bool zero = body == BODY_NONE && !head_request && h->status >= 200 && h->status != 204 &&
                h->status != 304 && http_head_find(h, "content-length") == NULL;
    if (write_framing(out, zero ? BODY_LENGTH : body, zero ? 0 : length) < 0)
        return -1;
    if (close && buf_append_str(out, "connection: close\r\n") < 0)
        return -1;
    return buf_append_str(out, "\r\n");
}

int http1_write_upgrade(struct buf *out, const struct head *h, const char *accept)
{
    if (buf_printf(out, "HTTP/1.1 101 %s\r\n", http1_reason(101)) < 0 || write_fields(out, h) < 0)
        return -1;
    return buf_printf(out,
                      "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: %s\r\n"
                      "\r\n",
                      accept);
}

int http1_write_trailers(struct buf *out, const struct head *h)
{
    return buf_append_str(out, "0\r\n") < 0 || write_fields(out, h) < 0
               ? -1
               : buf_append_str(out, "\r\n");
}

int http1_write_refusal(struct buf *out, const struct answer *a, bool close, bool head_request,
                        const char *extra_field)
{
    if (buf_printf(out,
                   "HTTP/1.1 %u %s\r\ncontent-type: %s\r\n"
                   "Durward-Denied: %s\r\nX-Proxy-Error: %s\r\n%scache-control: no-store\r\n%s",
                   a->status, a->reason, a->type, a->denied, a->error,
                   close ? "connection: close\r\n" : "", extra_field) < 0)
        return -1;
    if (a->retry && buf_printf(out, "retry-after: %u\r\n", a->retry) < 0)
        return -1;
    if (a->grpc_status[0] && buf_printf(out, "grpc-status: %s\r\ngrpc-message: %s\r\n",
                                        a->grpc_status, a->grpc_message) < 0)
        return -1;
    if (buf_printf(out, "content-length: %zu\r\n\r\n", a->n) < 0)
        return -1;
    return head_request ? 0 : buf_append(out, a->body, a->n);
}
