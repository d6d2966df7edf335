/* The functions of a tunnel's filter (tunnel.h) over one scrub; a control frame is searched by
 * itself and in place. */
#include "scrub_frames.h"

#include "meter.h"

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
    return (struct tunnel_filter){piece, rest, control, held, f};
}
