/* Reads and writes the data types of SSH, with every length checked. */
#include "ssh_wire.h"

int ssh_wire_u8(struct slice *s, uint8_t *ret)
{
    if (s->n < 1)
        return -1;
    *ret = (unsigned char)s->p[0];
    *s = (struct slice){s->p + 1, s->n - 1};
    return 0;
}

int ssh_wire_u32(struct slice *s, uint32_t *ret)
{
    const unsigned char *p = (const unsigned char *)s->p;
    if (s->n < 4)
        return -1;
    *ret = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    *s = (struct slice){s->p + 4, s->n - 4};
    return 0;
}

int ssh_wire_string(struct slice *s, struct slice *ret)
{
    struct slice rest = *s;
    uint32_t n;
    if (ssh_wire_u32(&rest, &n) < 0 || n > rest.n)
        return -1;
    *ret = (struct slice){rest.p, n};
    *s = (struct slice){rest.p + n, rest.n - n};
    return 0;
}

int ssh_wire_put_u8(struct buf *b, uint8_t v)
{
    return buf_append(b, &v, 1);
}

int ssh_wire_put_u32(struct buf *b, uint32_t v)
{
    const unsigned char p[4] = {(unsigned char)(v >> 24), (unsigned char)(v >> 16),
                                (unsigned char)(v >> 8), (unsigned char)v};
    return buf_append(b, p, sizeof p);
}

int ssh_wire_put_string(struct buf *b, struct slice s)
{
    if (s.n > UINT32_MAX || ssh_wire_put_u32(b, (uint32_t)s.n) < 0)
        return -1;
    return buf_append_slice(b, s);
}

int ssh_wire_put_mpint(struct buf *b, struct slice s)
{
    while (s.n > 0 && s.p[0] == 0)
        s = (struct slice){s.p + 1, s.n - 1};
    bool pad = s.n > 0 && ((unsigned char)s.p[0] & 0x80);
    if (s.n >= UINT32_MAX || ssh_wire_put_u32(b, (uint32_t)(s.n + pad)) < 0 ||
        (pad && ssh_wire_put_u8(b, 0) < 0))
        return -1;
    return buf_append_slice(b, s);
}
