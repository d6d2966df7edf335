/* Reads a client's commands, strictly, and writes them. */
#include "resp_command.h"

#include <string.h>

enum { AT_STAR = 0, AT_COUNT, AT_COUNT_LF, AT_DOLLAR, AT_SIZE, AT_SIZE_LF, AT_BODY, AT_CR, AT_LF };
enum { DIGITS_MAX = 9 };

void resp_commands_init(struct resp_commands *r)
{
    memset(r, 0, sizeof *r);
    buf_init_wiped(&r->bytes, RESP_HELD_MAX);
}

void resp_commands_free(struct resp_commands *r)
{
    buf_free(&r->bytes);
}

bool resp_command_over(const struct resp_commands *r)
{
    return r->i + 1 == r->n;
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
    r->n = r->number;
    r->i = SIZE_MAX; /* none yet */
    r->at = AT_DOLLAR;
    return RESP_BEGUN;
}

static enum resp_event size_done(struct resp_commands *r)
{
    if (r->number > RESP_ARGUMENT_MAX)
        return bad(r, "an argument that is too long");
    r->i++;
    r->length = r->number;
    r->at = r->number ? AT_BODY : AT_CR;
    buf_clear(&r->bytes);
    return r->length > RESP_HELD_MAX ? RESP_LONG : RESP_MORE;
}

static enum resp_event argument_done(struct resp_commands *r)
{
    r->at = r->i + 1 == r->n ? AT_STAR : AT_DOLLAR;
    if (r->length > RESP_HELD_MAX)
        return RESP_LONG_END;
    if (r->length > 0 && r->said.p == NULL)
        r->said = buf_slice(&r->bytes);
    return RESP_ARGUMENT;
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
        return bad(r, r->at == AT_STAR
                          ? "a command that is not an array (inline commands are refused)"
                          : "a command that is not in its plain form");
    switch (r->at) {
    case AT_STAR:
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

static void take(struct slice *in, size_t n)
{
    *in = (struct slice){in->p + n, in->n - n};
}

/* Bytes of an argument: a piece of a long one, a whole one where it lies, or what is kept of it. */
static enum resp_event body(struct resp_commands *r, struct slice *in)
{
    size_t n = in->n < r->number ? in->n : r->number;
    bool whole = r->number == r->length && in->n >= r->length + 2;
    r->number -= n;
    if (r->number == 0)
        r->at = AT_CR;
    if (r->length > RESP_HELD_MAX || whole)
        r->said = (struct slice){in->p, n};
    else if (buf_append(&r->bytes, in->p, n) < 0)
        return bad(r, "no memory for a command");
    take(in, n);
    return r->length > RESP_HELD_MAX ? RESP_PIECE : RESP_MORE;
}

enum resp_event resp_commands_read(struct resp_commands *r, struct slice *in)
{
    r->said = (struct slice){NULL, 0};
    while (in->n > 0 && r->why == NULL) {
        enum resp_event e;
        if (r->at == AT_BODY) {
            e = body(r, in);
        } else {
            e = step(r, *in->p);
            take(in, 1);
        }
        if (e != RESP_MORE)
            return e;
    }
    return r->why ? RESP_VIOLATION : RESP_MORE;
}

int resp_put_array(struct buf *out, size_t n)
{
    return buf_printf(out, "*%zu\r\n", n);
}

int resp_put_length(struct buf *out, size_t n)
{
    return buf_printf(out, "$%zu\r\n", n);
}

int resp_put_bulk(struct buf *out, struct slice s)
{
    if (buf_room(out) < s.n + 32)
        return -1;
    return resp_put_length(out, s.n) < 0 || buf_append_slice(out, s) < 0 ||
                   buf_append(out, "\r\n", 2) < 0
               ? -1
               : 0;
}

int resp_put_read(struct buf *out, const struct resp_commands *r, enum resp_event e)
{
    switch (e) {
    case RESP_BEGUN:
        return resp_put_array(out, r->n);
    case RESP_ARGUMENT:
        return resp_put_bulk(out, r->said);
    case RESP_LONG:
        return resp_put_length(out, r->length);
    case RESP_PIECE:
        return buf_append_slice(out, r->said);
    case RESP_LONG_END:
        return buf_append(out, "\r\n", 2);
    default:
        return 0;
    }
}
