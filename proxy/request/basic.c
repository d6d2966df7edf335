/* Decodes the pair and splits it at its first colon. */
#include "basic.h"

#include "base64.h"

int basic_decode(struct slice value, char *out, size_t size, struct slice *pair)
{
    if (!slice_istarts(value, SLICE("basic ")))
        return -1;
    struct slice b = slice_trim((struct slice){value.p + 6, value.n - 6});
    ssize_t n = b.n ? base64_read(b, out, size) : -1;
    if (n < 0)
        return -1;
    *pair = (struct slice){out, (size_t)n};
    return 0;
}

int basic_split(struct slice pair, struct slice *user, struct slice *password)
{
    ssize_t colon = slice_find(pair, ':');
    if (colon < 0)
        return -1;
    *user = (struct slice){pair.p, (size_t)colon};
    *password = (struct slice){pair.p + colon + 1, pair.n - (size_t)colon - 1};
    return 0;
}
