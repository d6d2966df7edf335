/* Reads and writes an envelope. */
#include "smtp_facts.h"

#include <string.h>

enum { EIGHT = 1, UTF8 = 2 };

static int put_text(struct buf *out, struct slice s)
{
    const unsigned char n[2] = {(unsigned char)(s.n >> 8), (unsigned char)s.n};
    return buf_append(out, n, sizeof n) < 0 ? -1 : buf_append_slice(out, s);
}

static bool take(struct slice *in, size_t n, struct slice *ret)
{
    if (in->n < n)
        return false;
    *ret = (struct slice){in->p, n};
    *in = (struct slice){in->p + n, in->n - n};
    return true;
}

static bool take_text(struct slice *in, struct slice *ret)
{
    struct slice n;
    return take(in, 2, &n) &&
           take(in, (size_t)((unsigned char)n.p[0] << 8 | (unsigned char)n.p[1]), ret);
}

int smtp_facts_put(struct buf *out, const struct smtp_facts *f)
{
    unsigned char head[9] = {(unsigned char)((f->eight ? EIGHT : 0) | (f->utf8 ? UTF8 : 0))};
    for (int i = 0; i < 8; i++)
        head[1 + i] = (unsigned char)(f->envelope.size >> (56 - 8 * i));
    if (buf_append(out, head, sizeof head) < 0 || put_text(out, f->envelope.sender) < 0)
        return -1;
    for (size_t i = 0; i < f->envelope.n; i++)
        if (put_text(out, f->envelope.recipients[i]) < 0)
            return -1;
    return 0;
}

int smtp_facts_read(struct slice in, struct smtp_facts *ret)
{
    struct slice head;
    struct smtp_envelope *e = &ret->envelope;
    memset(ret, 0, sizeof *ret);
    if (!take(&in, 9, &head) || (unsigned char)head.p[0] > (EIGHT | UTF8) ||
        !take_text(&in, &e->sender))
        return -1;
    ret->eight = head.p[0] & EIGHT;
    ret->utf8 = head.p[0] & UTF8;
    for (int i = 1; i < 9; i++)
        e->size = e->size << 8 | (unsigned char)head.p[i];
    if (e->sender.n > 0 && !smtp_address_ok(e->sender, ret->utf8))
        return -1;
    while (in.n > 0) {
        if (e->n == SMTP_RECIPIENTS_MAX || !take_text(&in, &e->recipients[e->n]) ||
            !smtp_address_ok(e->recipients[e->n], ret->utf8))
            return -1;
        e->n++;
    }
    return e->n > 0 ? 0 : -1;
}

void smtp_facts_domains(const struct smtp_envelope *e, struct buf *out)
{
    for (size_t i = 0; i < e->n; i++) {
        struct slice domain = smtp_address_domain(e->recipients[i]);
        size_t first = 0, n = 0;
        while (!slice_ieq(smtp_address_domain(e->recipients[first]), domain))
            first++;
        for (size_t k = i; k < e->n && first == i; k++)
            n += slice_ieq(smtp_address_domain(e->recipients[k]), domain);
        if (n > 0 && buf_printf(out, "%s%.*s:%zu", i ? " " : "", SL(domain), n) < 0)
            return;
    }
}
