/* Reads a server's replies as far as their ends. */
#include "resp_reply.h"

#include <string.h>

enum { AT_TYPE = 0, AT_LINE, AT_LINE_LF, AT_NUMBER, AT_NUMBER_LF, AT_BODY, AT_CR, AT_LF };

void resp_replies_init(struct resp_replies *r)
{
    memset(r, 0, sizeof *r);
    buf_init_wiped(&r->error, RESP_ERROR_MAX);
}

void resp_replies_free(struct resp_replies *r)
{
    buf_free(&r->error);
}

static int bad(struct resp_replies *r, const char *why)
{
    r->why = why;
    return -1;
}

/* A value is whole; what it was the last of is, too. */
static void value_done(struct resp_replies *r)
{
    r->at = AT_TYPE;
    while (r->depth > 0 && --r->left[r->depth - 1] == 0)
        r->depth--;
}

static int number_done(struct resp_replies *r)
{
    bool bulk = r->type == '$' || r->type == '!' || r->type == '=';
    if (r->digits == 0 ||
        (r->minus && (r->number != 1 || r->digits != 1 || !strchr("$*", r->type))))
        return bad(r, "a length that is none");
    if (r->minus) { /* RESP2's null */
        value_done(r);
        return 0;
    }
    if (bulk) {
        if (r->number > RESP_BULK_MAX)
            return bad(r, "a value that is too long");
        r->at = r->number ? AT_BODY : AT_CR;
        return 0;
    }
    uint64_t n = r->type == '%' || r->type == '|' ? 2 * r->number : r->number;
    if (r->type == '|')
        n++; /* attributes stand before the value that they are about */
    if (n == 0) {
        value_done(r);
        return 0;
    }
    if (r->depth == RESP_DEPTH_MAX)
        return bad(r, "a reply that is too deep");
    r->left[r->depth++] = n;
    r->at = AT_TYPE;
    return 0;
}

static int type(struct resp_replies *r, char c)
{
    r->type = c;
    r->length = 0;
    r->number = r->digits = 0;
    r->minus = false;
    if (c != 0 && strchr("+-:_,#(", c)) {
        r->at = AT_LINE;
        r->in_error = c == '-' && r->depth == 0;
        buf_clear(&r->error);
        return 0;
    }
    if (c == 0 || !strchr("$!=*~>%|", c))
        return bad(r, "a reply of no known type");
    r->at = AT_NUMBER;
    return 0;
}

static int number(struct resp_replies *r, char c)
{
    if (c == '\r') {
        r->at = AT_NUMBER_LF;
        return 0;
    }
    if (c == '-' && r->digits == 0 && !r->minus) {
        r->minus = true;
        return 0;
    }
    if (c < '0' || c > '9' || r->digits == 10 || (r->digits && r->number == 0))
        return bad(r, "a length that is none");
    r->number = r->number * 10 + (uint64_t)(c - '0');
    r->digits++;
    return 0;
}

static int line(struct resp_replies *r, char c)
{
    if (c == '\n' || ++r->length > RESP_LINE_MAX)
        return bad(r, "a line that does not end");
    if (c == '\r')
        r->at = AT_LINE_LF;
    return 0;
}

/* One byte of what is no bulk's body. */
static int step(struct resp_replies *r, char c)
{
    switch (r->at) {
    case AT_TYPE:
        return type(r, c);
    case AT_LINE:
        return line(r, c);
    case AT_NUMBER:
        return number(r, c);
    case AT_CR:
        r->at = AT_LF;
        return c == '\r' ? 0 : bad(r, "a value that does not end");
    default:
        break;
    }
    if (c != '\n')
        return bad(r, "a line that does not end");
    if (r->at == AT_NUMBER_LF)
        return number_done(r);
    value_done(r);
    return 0;
}

/* Bytes of an error at the top are gathered; one that is too long goes on as it is. */
static int error_byte(struct resp_replies *r, char c, struct buf *out, resp_error_fn fn, void *arg)
{
    if (r->at == AT_TYPE) { /* its end was read */
        r->in_error = false;
        struct slice text = buf_slice(&r->error);
        return fn(arg, (struct slice){text.p, text.n - 1}, out);
    }
    if (buf_append(&r->error, &c, 1) == 0)
        return 0;
    r->in_error = false;
    return buf_append_slice(out, buf_slice(&r->error)) < 0 || buf_append(out, &c, 1) < 0 ? -1 : 0;
}

int resp_replies_read(struct resp_replies *r, struct slice in, struct buf *out, resp_error_fn fn,
                      void *arg)
{
    size_t from = 0; /* of what goes on as it is */
    for (size_t i = 0; i < in.n;) {
        if (r->at == AT_BODY) {
            size_t n = in.n - i < r->number ? in.n - i : (size_t)r->number;
            r->number -= n;
            if (r->number == 0)
                r->at = AT_CR;
            i += n;
            continue;
        }
        bool was = r->in_error && r->at != AT_TYPE;
        if (step(r, in.p[i]) < 0)
            return -1;
        if (r->in_error || was) {
            if (!was && buf_append(out, in.p + from, i - from) < 0)
                return bad(r, "no room");
            if (error_byte(r, in.p[i], out, fn, arg) < 0)
                return bad(r, "no room");
            from = i + 1;
        }
        i++;
    }
    return buf_append(out, in.p + from, in.n - from) < 0 ? bad(r, "no room") : 0;
}
