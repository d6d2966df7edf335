/* Patterns `[scheme://]host[:port][/path-glob]` and their algebra.
 *
 * No scheme is https; no port is the scheme's. A leading dot is one or more labels under the name,
 * never the name itself. In a path `*` alone is one segment (not an empty one); beside other bytes
 * it is any run of bytes, also none, of that segment. A last segment `**` is any rest, none at all
 * included: "/x" and "/x/" too. No path is any path. The query is never part of it.
 *
 * Inside, a path is a list of segments with WILD for each star. The set of a pattern is the product
 * of its host's set and its segments' sets, all of them not empty, which makes containment and
 * intersection exact when taken part by part (doc/durward.yaml.5.md, "Which rule decides"). */
#ifndef DURWARD_PATTERN_H
#define DURWARD_PATTERN_H

#include "arena.h"
#include "authority.h"
#include "err.h"

enum {
    PATTERN_MAX = 2048, /* bytes of a pattern's text */
    PATTERN_SEGMENTS = 64,
    PATTERN_WILD = 0, /* a star in a segment's text: no checked path has a NUL, however encoded */
};

enum segment_kind { SEGMENT_LITERAL = 0, SEGMENT_ANY, SEGMENT_GLOB };

struct segment {
    struct slice text; /* owned by the arena */
    enum segment_kind kind;
};

struct pattern {
    const char *text; /* as written */
    enum scheme scheme;
    uint16_t port;
    bool subdomains; /* the host began with a dot */
    enum host_kind kind;
    struct slice host; /* canonical, without the dot */
    bool tail;         /* ends in "**", or no path was given */
    bool any_path;     /* no path was given, or "/" and "**" */
    unsigned n_segments;
    const struct segment *segments;
    /* Of the shortest path: bytes, and those of them that are given; stars. See pattern_order. */
    unsigned units, literals, stars;
};

/* Parse. -1 with a message without location ("...; hint"). */
int pattern_parse(struct arena *a, const char *text, struct pattern *ret, struct err *err);
/* The same host with another path: "/acme/x" + "/info/refs". Used for git rules. */
int pattern_with_path(struct arena *a, const struct pattern *p, struct slice path,
                      struct pattern *ret, struct err *err);
/* The pattern as a restriction compares it, in one reading of %2F (see path_fold), trimmed or not
 * (path_trim, parameters kept). -1 when that reading has more than PATTERN_SEGMENTS. */
int pattern_fold(struct arena *a, const struct pattern *p, int reading, bool trim,
                 struct pattern *ret);
/* The same segments? Of patterns of one host. */
bool pattern_same_path(const struct pattern *a, const struct pattern *b);

/* The same pattern with all that matching reads in one block: fewer cache lines among many. */
void pattern_pack(struct arena *a, struct pattern *p);

bool pattern_matches_host(const struct pattern *p, const struct authority *a); /* not the port */
bool pattern_matches_path(const struct pattern *p, struct slice path);
/* Scheme, host and port, then path. */
bool pattern_matches(const struct pattern *p, const struct authority *a, struct slice path);

/* Every request of `inner` is one of `outer`. */
bool pattern_contains(const struct pattern *outer, const struct pattern *inner);
/* Some request is in both; then, when url is not NULL, one such URL is written to it. */
bool pattern_intersects(const struct pattern *a, const struct pattern *b, char *url, size_t size);
/* A total preorder that agrees with containment: when b strictly contains a, the result is
 * negative (a comes first). */
int pattern_order(const struct pattern *a, const struct pattern *b);

/* A leading dot on this name covers names of strangers: a coarse guard (see suffix.c). */
bool pattern_public_suffix(const char *host);

#endif
