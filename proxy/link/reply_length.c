/* Counts what a head has promised of a body (RFC 9110 6.4.1, 8.6). */
#include "reply_length.h"

/* No length is said, or 0. */
static bool says_nothing(const struct head *h)
{
    const struct field *f = http_head_find(h, "content-length");
    uint64_t n = 0;
    return f == NULL || (http_head_count(h, "content-length") == 1 &&
                         slice_u64(f->value, UINT64_MAX, &n) == 0 && n == 0);
}

bool reply_length_begin(struct reply_length *r, bool head, const struct head *h)
{
    *r = (struct reply_length){h->body, h->length};
    if (head || h->status == 204 || h->status == 304)
        return h->body == BODY_NONE;
    return h->body != BODY_NONE || says_nothing(h);
}

bool reply_length_take(struct reply_length *r, size_t n)
{
    if (n == 0)
        return true;
    if (r->body == BODY_NONE || (r->body == BODY_LENGTH && n > r->left))
        return false;
    if (r->body == BODY_LENGTH)
        r->left -= n;
    return true;
}

bool reply_length_whole(const struct reply_length *r)
{
    return r->body != BODY_LENGTH || r->left == 0;
}
