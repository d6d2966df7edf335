/* Searches the fields of a copied head, and what a tunnel carries: its filter's functions over one
 * scrub, a control frame by itself and in place. */
#include "scrub_places.h"

#include "meter.h"

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

/* ---- a tunnel ---- */

static const char *piece(void *self, struct slice in, struct slice *out)
{
    struct scrub_frames *f = self;
    meter_add(METER_SCRUBBED_BYTES, in.n);
    return scrub_feed(f->scrub, in, out) < 0 ? "memory" : NULL;
}

static const char *rest(void *self, struct slice *out)
{
    struct scrub_frames *f = self;
    return scrub_end(f->scrub, out) < 0 ? "memory" : NULL;
}

static const char *control(void *self, char *p, size_t n)
{
    struct scrub_frames *f = self;
    ssize_t hits = scrub_whole(scrub_set(f->scrub), p, n);
    if (hits > 0)
        f->hits += (uint64_t)hits;
    return hits < 0 ? "memory" : NULL;
}

static size_t held(const void *self)
{
    const struct scrub_frames *f = self;
    return scrub_held(f->scrub);
}

struct tunnel_filter scrub_frames_filter(struct scrub_frames *f)
{
    return (struct tunnel_filter){piece, rest, control, held, f, NULL};
}
