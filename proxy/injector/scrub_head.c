/* Copies a head and searches each value in the copy; also tells whether the body is coded, so that
 * nothing can be found in it. */
#include "scrub_head.h"

ssize_t scrub_head(const struct scrub_set *set, struct head *to, const struct head *from)
{
    ssize_t hits = 0;
    if (http_head_copy(to, from) < 0)
        return -1;
    for (size_t i = 0; i < to->n; i++) {
        struct slice v = to->fields[i].value; /* lies in to->raw */
        ssize_t n = scrub_whole(set, to->raw + (v.p - to->raw), v.n);
        if (n < 0)
            return -1;
        hits += n;
    }
    return hits;
}

bool scrub_head_coded(const struct head *h)
{
    static const char *const names[] = {"content-encoding", "grpc-encoding",
                                        "connect-content-encoding"};
    for (size_t i = 0; i < h->n; i++)
        for (size_t k = 0; k < ARRAY_LEN(names); k++)
            if (slice_eq_str(h->fields[i].name, names[k]) &&
                !slice_ieq_str(slice_trim(h->fields[i].value), "identity"))
                return true;
    return false;
}
