/* Reads a client's commands, strictly, and writes them. */
#include "resp_command.h"

#include <string.h>

enum { AT_STAR = 0, AT_COUNT, AT_COUNT_LF, AT_DOLLAR, AT_SIZE, AT_SIZE_LF, AT_BODY, AT_CR, AT_LF };
enum { DIGITS_MAX = 7 };

void resp_commands_init(struct resp_commands *r)
{
    memset(r, 0, sizeof *r);
    buf_init_wiped(&r->bytes, RESP_COMMAND_MAX);
    buf_init(&r->ends, RESP_ARGUMENTS_MAX * sizeof(size_t));
}

void resp_commands_free(struct resp_commands *r)
{
    buf_free(&r->bytes);
    buf_free(&r->ends);
}

struct slice resp_argument(const struct resp_commands *r, size_t i)
{
    size_t from = 0, to;
    const unsigned char *ends = buf_data(&r->ends);
    if (i > 0)
        memcpy(&from, ends + (i - 1) * sizeof from, sizeof from);
    memcpy(&to, ends + i * sizeof to, sizeof to);
    return (struct slice){(const char *)buf_data(&r->bytes) + from, to - from};
}

static enum resp_event bad(struct resp_commands *r, const char *why)
{
    r->why = why;
    return RESP_VIOLATION;
}

/* A digit of a number; the end of it is CR. */
static enum resp_event digit(struct resp_commands *r, char c, int next)
{
    if (c == '\r') {
        if (r->digits == 0)
            return bad(r, "a number without digits");
        r->at = next;
        return RESP_MORE;
    }
    if (c < '0' || c > '9')
        return bad(r, "a number that is not in its plain form");
    if (r->digits == DIGITS_MAX || (r->digits > 0 && r->number == 0))
        return bad(r, "a number that is too long");
    r->number = r->number * 10 + (size_t)(c - '0');
    r->digits++;
    return RESP_MORE;
}

static enum resp_event count_done(struct resp_commands *r)
{
    if (r->number == 0)
        return bad(r, "a command without arguments");
    if (r->number > RESP_ARGUMENTS_MAX)
        return bad(r, "a command with too many arguments");
    r->left = r->number;
    r->at = AT_DOLLAR;
    return RESP_MORE;
}

static enum resp_event size_done(struct resp_commands *r)
{
    if (r->number > RESP_COMMAND_MAX - buf_len(&r->bytes))
        return bad(r, "a command that is too long");
    r->at = r->number ? AT_BODY : AT_CR;
    return RESP_MORE;
}

static enum resp_event argument_done(struct resp_commands *r)
{
    size_t end = buf_len(&r->bytes);
    if (buf_append(&r->ends, &end, sizeof end) < 0)
        return bad(r, "no memory for a command");
    r->at = AT_DOLLAR;
    if (--r->left > 0)
        return RESP_MORE;
    r->at = AT_STAR;
    r->n = buf_len(&r->ends) / sizeof end;
    return RESP_COMMAND;
}

static enum resp_event step(struct resp_commands *r, char c)
{
    bool is_mark = c == (r->at == AT_STAR     ? '*'
                         : r->at == AT_DOLLAR ? '$'
                         : r->at == AT_CR     ? '\r'
                                              : '\n');
    switch (r->at) {
    case AT_COUNT:
        return digit(r, c, AT_COUNT_LF);
    case AT_SIZE:
        return digit(r, c, AT_SIZE_LF);
    default:
        break;
    }
    if (!is_mark)
        return bad(r, r->at == AT_STAR ? "a command that is no array (inline commands are refused)"
                                       : "a command that is not in its plain form");
    switch (r->at) {
    case AT_STAR:
        buf_clear(&r->bytes);
        buf_clear(&r->ends);
        r->n = 0;
        /* fall through */
    case AT_DOLLAR:
        r->at = r->at == AT_STAR ? AT_COUNT : AT_SIZE;
        r->number = r->digits = 0;
        return RESP_MORE;
    case AT_COUNT_LF:
        return count_done(r);
    case AT_SIZE_LF:
        return size_done(r);
    case AT_CR:
        r->at = AT_LF;
        return RESP_MORE;
    default:
        return argument_done(r);
    }
}

enum resp_event resp_commands_read(struct resp_commands *r, struct slice *in)
{
    while (in->n > 0 && r->why == NULL) {
        enum resp_event e = RESP_MORE;
        if (r->at == AT_BODY) {
            size_t n = in->n < r->number ? in->n : r->number;
            if (buf_append(&r->bytes, in->p, n) < 0)
                return bad(r, "no memory for a command");
            r->number -= n;
            if (r->number == 0)
                r->at = AT_CR;
            *in = (struct slice){in->p + n, in->n - n};
            continue;
        }
        e = step(r, *in->p);
        *in = (struct slice){in->p + 1, in->n - 1};
        if (e != RESP_MORE)
            return e;
    }
    return r->why ? RESP_VIOLATION : RESP_MORE;
}

int resp_put_array(struct buf *out, size_t n)
{
    return buf_printf(out, "*%zu\r\n", n);
}

int resp_put_bulk(struct buf *out, struct slice s)
{
    if (buf_room(out) < s.n + 32)
        return -1;
    return buf_printf(out, "$%zu\r\n", s.n) < 0 || buf_append_slice(out, s) < 0 ||
                   buf_append(out, "\r\n", 2) < 0
               ? -1
               : 0;
}
