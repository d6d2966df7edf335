/* Packs names and reads them one by one, refusing lengths that go beyond the bounds or the end of
 * the message. */
#include "secret_list.h"

static int put_u32(struct buf *to, uint32_t v)
{
    unsigned char b[4] = {(unsigned char)(v >> 24), (unsigned char)(v >> 16),
                          (unsigned char)(v >> 8), (unsigned char)v};
    return buf_append(to, b, sizeof b);
}

static int take_u32(struct slice *s, uint32_t *v)
{
    if (s->n < 4)
        return -1;
    const unsigned char *b = (const unsigned char *)s->p;
    *v = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    *s = (struct slice){s->p + 4, s->n - 4};
    return 0;
}

int secret_list_pack(struct buf *to, const char *const *names, size_t n)
{
    if (n > SECRET_LIST_MAX || put_u32(to, (uint32_t)n) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        struct slice name = slice_str(names[i]);
        if (name.n == 0 || name.n > SECRET_NAME_MAX || put_u32(to, (uint32_t)name.n) < 0 ||
            buf_append_slice(to, name) < 0)
            return -1;
    }
    return 0;
}

int secret_list_open(struct secret_list *l, struct slice packed)
{
    l->rest = packed;
    return take_u32(&l->rest, &l->left) < 0 || l->left > SECRET_LIST_MAX ? -1 : 0;
}

int secret_list_next(struct secret_list *l, struct slice *name)
{
    uint32_t n;
    if (l->left == 0)
        return l->rest.n == 0 ? 0 : -1;
    if (take_u32(&l->rest, &n) < 0 || n == 0 || n > SECRET_NAME_MAX || n > l->rest.n)
        return -1;
    *name = (struct slice){l->rest.p, n};
    l->rest = (struct slice){l->rest.p + n, l->rest.n - n};
    l->left--;
    return 1;
}
