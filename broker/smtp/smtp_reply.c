/* Reads a server's replies. */
#include "smtp_reply.h"

#include <string.h>

/* A line's length with its end; 0: not whole; -1: no line of a reply. */
static ssize_t line_read(struct slice in, unsigned *code, bool *last)
{
    ssize_t end = slice_find(in, '\n');
    if (end < 0)
        return 0;
    if (end < 4 || in.p[end - 1] != '\r')
        return -1;
    for (int i = 0; i < 3; i++)
        if (in.p[i] < '0' || in.p[i] > '9')
            return -1;
    *code = (unsigned)(in.p[0] - '0') * 100 + (unsigned)(in.p[1] - '0') * 10 +
            (unsigned)(in.p[2] - '0');
    *last = in.p[3] != '-';
    return in.p[3] == '-' || in.p[3] == ' ' || end == 4 ? end + 1 : -1;
}

ssize_t smtp_reply_read(struct slice in, struct smtp_reply *ret)
{
    struct slice rest = in;
    bool last = false;
    ret->code = 0;
    while (!last) {
        unsigned code = 0;
        ssize_t n = line_read(rest, &code, &last);
        if (n < 0 || in.n - rest.n + (size_t)n > SMTP_REPLY_MAX)
            return -1;
        if (n == 0)
            return in.n >= SMTP_REPLY_MAX ? -1 : 0;
        if (code < 200 || code > 599 || (ret->code && code != ret->code))
            return -1;
        ret->code = code;
        rest = (struct slice){rest.p + n, rest.n - (size_t)n};
    }
    ret->lines = (struct slice){in.p, in.n - rest.n};
    return (ssize_t)ret->lines.n;
}

bool smtp_reply_line(struct slice *rest, struct slice *text)
{
    ssize_t end = slice_find(*rest, '\n');
    if (end < 0)
        return false;
    *text = (struct slice){rest->p + 4, end > 4 ? (size_t)end - 5 : 0};
    *rest = (struct slice){rest->p + end + 1, rest->n - (size_t)end - 1};
    return true;
}

int smtp_reply_text(const struct smtp_reply *r, struct buf *out)
{
    struct slice rest = r->lines, text;
    for (bool first = true; smtp_reply_line(&rest, &text); first = false) {
        if (!first && buf_append(out, " ", 1) < 0)
            return -1;
        for (size_t i = 0; i < text.n; i++) {
            bool sign = (unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f;
            if (buf_append(out, sign ? "?" : text.p + i, 1) < 0)
                return -1;
        }
    }
    return 0;
}

static void read_mechanisms(struct slice text, struct smtp_server *s)
{
    while (text.n > 0) {
        ssize_t blank = slice_find(text, ' ');
        struct slice word = {text.p, blank < 0 ? text.n : (size_t)blank};
        s->plain |= slice_ieq_str(word, "PLAIN");
        s->login |= slice_ieq_str(word, "LOGIN");
        s->xoauth2 |= slice_ieq_str(word, "XOAUTH2");
        size_t used = word.n + (blank >= 0);
        text = (struct slice){text.p + used, text.n - used};
    }
}

void smtp_server_read(const struct smtp_reply *ehlo, struct smtp_server *ret)
{
    struct slice rest = ehlo->lines, text;
    memset(ret, 0, sizeof *ret);
    (void)smtp_reply_line(&rest, &text); /* its name */
    while (smtp_reply_line(&rest, &text)) {
        ret->starttls |= slice_ieq_str(text, "STARTTLS");
        ret->eight |= slice_ieq_str(text, "8BITMIME");
        ret->utf8 |= slice_ieq_str(text, "SMTPUTF8");
        ret->size |= slice_ieq_str(text, "SIZE") || slice_istarts(text, SLICE("SIZE "));
        if (slice_istarts(text, SLICE("AUTH ")))
            read_mechanisms((struct slice){text.p + 5, text.n - 5}, ret);
    }
}
