/* Counts a body's prefixes and lengths as its bytes pass, of gRPC and of Connect; it keeps no byte
 * of a message. */
#include "grpc_message.h"

#include <string.h>

static bool has_type(const struct head *h, struct slice type, const char *behind)
{
    const struct field *f = http_head_find(h, "content-type");
    return f && slice_istarts(f->value, type) &&
           (f->value.n == type.n || strchr(behind, f->value.p[type.n]));
}

bool grpc_is(const struct head *h)
{
    return has_type(h, SLICE("application/grpc"), "+; ");
}

bool grpc_has_messages(const struct head *h)
{
    return has_type(h, SLICE("application/grpc"), "+; -") ||
           has_type(h, SLICE("application/connect"), "+");
}

bool grpc_message_over(struct grpc_message *m, struct slice s)
{
    while (s.n > 0) {
        if (m->left > 0) {
            size_t n = s.n < m->left ? s.n : m->left;
            m->left -= (uint32_t)n;
            s = (struct slice){s.p + n, s.n - n};
            continue;
        }
        m->prefix[m->n++] = (unsigned char)s.p[0];
        s = (struct slice){s.p + 1, s.n - 1};
        if (m->n == GRPC_PREFIX) {
            m->left = (uint32_t)m->prefix[1] << 24 | (uint32_t)m->prefix[2] << 16 |
                      (uint32_t)m->prefix[3] << 8 | m->prefix[4];
            m->n = 0;
        }
    }
    return m->n == 0 && m->left == 0;
}
