/* Goes over each byte of a command once, in pieces of any size. */
#include "imap_reader.h"

static enum imap_seen violation(struct imap_found *ret, const char *why)
{
    ret->why = why;
    return IMAP_VIOLATION;
}

/* "{12}" or "{12+}" at the line's end. 1: it is one; -1: of a size that cannot be. */
static int announced(struct slice line, struct imap_found *ret)
{
    size_t n = line.n;
    if (n < 3 || line.p[n - 1] != '}')
        return 0;
    ret->waits = line.p[n - 2] != '+';
    size_t end = n - (ret->waits ? 1 : 2), from = end;
    while (from > 0 && line.p[from - 1] >= '0' && line.p[from - 1] <= '9')
        from--;
    if (from == end || from == 0 || line.p[from - 1] != '{')
        return 0;
    return slice_u64((struct slice){line.p + from, end - from}, UINT32_MAX, &ret->size) < 0 ? -1
                                                                                            : 1;
}

static enum imap_seen on_line(struct imap_reader *r, struct slice in, struct imap_found *ret)
{
    if (r->quoted)
        return violation(ret, "a line ends within quotes");
    int e = announced((struct slice){in.p + r->line, r->at - 1 - r->line}, ret);
    if (e < 0)
        return violation(ret, "a literal of such a size cannot be");
    r->cr = false;
    r->line = ++r->at;
    ret->n = r->at;
    return e ? IMAP_LITERAL : IMAP_WHOLE;
}

static const char *on_byte(struct imap_reader *r, char c)
{
    if ((unsigned char)c < 0x20 || c == 0x7f)
        return "a control character";
    if (r->escaped)
        r->escaped = false;
    else if (r->quoted && c == '\\')
        r->escaped = true;
    else if (c == '"')
        r->quoted = !r->quoted;
    return NULL;
}

enum imap_seen imap_reader_next(struct imap_reader *r, struct slice in, struct imap_found *ret)
{
    *ret = (struct imap_found){.n = 0};
    for (; r->at < in.n; r->at++) {
        char c = in.p[r->at];
        if (r->at >= IMAP_COMMAND_MAX)
            return violation(ret, "a command is too long");
        if (r->skip) {
            if (c == 0)
                return violation(ret, "a byte 0");
            if (--r->skip == 0)
                r->line = r->at + 1;
        } else if (r->cr) {
            return c == '\n' ? on_line(r, in, ret) : violation(ret, "a return alone");
        } else if (c == '\r') {
            r->cr = true;
        } else {
            const char *why = on_byte(r, c);
            if (why)
                return violation(ret, why);
        }
    }
    return IMAP_MORE;
}

bool imap_reader_take(struct imap_reader *r, const struct imap_found *f)
{
    r->skip = f->size;
    return f->size < IMAP_COMMAND_MAX - r->at;
}
