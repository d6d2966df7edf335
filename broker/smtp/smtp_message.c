/* Reads and writes a message's text. */
#include "smtp_message.h"

#include <string.h>

static int put(struct smtp_reader *r, const char *p, size_t n, struct buf *out)
{
    if (r->why)
        return 0;
    r->n += n;
    return buf_append(out, p, n);
}

static void refuse(struct smtp_reader *r, const char *why)
{
    if (r->why == NULL)
        r->why = why;
}

/* A byte of a line, whatever stands before it. */
static int in_line(struct smtp_reader *r, char c, struct buf *out)
{
    r->at = SMTP_IN_LINE;
    if (c == '\r') {
        r->at = SMTP_BEHIND_CR;
        return 0;
    }
    if (c == '\n') { /* ends a line, but begins none in which a dot means anything */
        r->column = 0;
        return put(r, "\r\n", 2, out);
    }
    if (c == 0)
        refuse(r, "a byte 0 in the message");
    if (++r->column > SMTP_TEXT_LINE_MAX)
        refuse(r, "a line of the message is longer than 998 bytes (RFC 5322)");
    return put(r, &c, 1, out);
}

static int behind_cr(struct smtp_reader *r, char c, struct buf *out)
{
    if (c == '\n') {
        r->at = SMTP_AT_START;
        r->column = 0;
        return put(r, "\r\n", 2, out);
    }
    refuse(r, "a carriage return alone in the message");
    return in_line(r, c, out);
}

/* 1: the end. */
static int step(struct smtp_reader *r, char c, struct buf *out)
{
    switch (r->at) {
    case SMTP_AT_START:
        if (c != '.')
            return in_line(r, c, out);
        r->at = SMTP_AT_DOT;
        return 0;
    case SMTP_BEHIND_CR:
        return behind_cr(r, c, out);
    case SMTP_AT_DOT:
        if (c == '\n')
            refuse(r, "a line with one dot that ends in a bare newline");
        if (c != '\r')
            return in_line(r, c, out); /* the dot was there for this one's sake */
        r->at = SMTP_AT_DOT_CR;
        return 0;
    case SMTP_AT_DOT_CR:
        if (c == '\n')
            return 1;
        refuse(r, "a carriage return alone in the message");
        return in_line(r, c, out);
    default:
        return in_line(r, c, out);
    }
}

int smtp_message_read(struct smtp_reader *r, struct slice *in, struct buf *out)
{
    while (in->n > 0) {
        char c = *in->p;
        in->p++;
        in->n--;
        int e = step(r, c, out);
        if (e != 0)
            return e;
    }
    return 0;
}

int smtp_message_write(struct smtp_writer *w, struct slice in, struct buf *out)
{
    for (size_t i = 0; i < in.n; i++) {
        char c = in.p[i];
        if (c == 0 || w->cr != (c == '\n') ||
            (c != '\r' && c != '\n' && ++w->column > SMTP_TEXT_LINE_MAX))
            return -1;
        if (!w->begun && c == '.' && buf_append(out, ".", 1) < 0)
            return -2;
        if (buf_append(out, &c, 1) < 0)
            return -2;
        w->cr = c == '\r';
        w->begun = c != '\n';
        if (c == '\n')
            w->column = 0;
    }
    return 0;
}

int smtp_message_end(const struct smtp_writer *w, struct buf *out)
{
    return w->begun ? -1 : buf_append(out, ".\r\n", 3);
}
