/* How hosts, sites and ways are hashed, alike for whoever builds an index and whoever asks an image
 * of it. FNV-1a; who finds a collision gains nothing: sites are compared whole, arms matched whole.
 * Internal to rules/. */
#ifndef DURWARD_POLICY_HASH_H
#define DURWARD_POLICY_HASH_H

#include "authority.h"
#include "policy_index.h"

static inline uint64_t policy_mix(uint64_t h, const void *p, size_t n)
{
    const unsigned char *b = p;
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * 0x100000001b3u;
    return h;
}

static inline uint64_t policy_host_hash(struct slice host, bool subdomains)
{
    unsigned char dot = subdomains;
    return policy_mix(policy_mix(0xcbf29ce484222325u, &dot, 1), host.p, host.n);
}

static inline uint64_t policy_site_hash(uint64_t host, enum scheme scheme, uint16_t port)
{
    unsigned char tag[3] = {(unsigned char)scheme, (unsigned char)(port >> 8),
                            (unsigned char)(port & 0xff)};
    return policy_mix(host, tag, sizeof tag);
}

static inline uint64_t policy_segment_hash(uint64_t h, struct slice segment)
{
    return policy_mix(policy_mix(h, "/", 1), segment.p, segment.n);
}

/* segments: as many as the way wants, the last one at least `prefix` bytes. */
static inline uint64_t policy_way_hash(uint64_t site, bool restricting, const struct way *w,
                                       const struct slice *segments)
{
    unsigned char tag[] = {restricting, w->depth, w->stars, w->prefix};
    uint64_t h = policy_mix(site, tag, sizeof tag);
    for (unsigned d = 0; d < w->depth; d++)
        if (!(w->stars & 1u << d))
            h = policy_segment_hash(h, segments[d]);
    return w->prefix ? policy_segment_hash(h, (struct slice){segments[w->depth].p, w->prefix}) : h;
}

/* Where a table of mask + 1 buckets is looked at first. */
static inline size_t policy_hash_start(uint64_t h, size_t mask)
{
    return (size_t)(h ^ h >> 29 ^ h >> 47) & mask;
}

#endif
