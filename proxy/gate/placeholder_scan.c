/* A tunnel's filter (tunnel.h): puts what it held back before the next piece, looks for
 * placeholders in both together, and holds back again what may be the beginning of one. */
#include "placeholder_scan.h"

#include "placeholder.h"
#include "websocket.h"

#include <stdlib.h>
#include <string.h>

struct placeholder_scan {
    const struct gate *gate;
    const struct identity *who;
    char hold[PLACEHOLDER_MAX];
    size_t held;
    char joined[PLACEHOLDER_MAX + WEBSOCKET_PIECE_MAX];
};

struct placeholder_scan *placeholder_scan_new(const struct gate *g, const struct identity *who)
{
    struct placeholder_scan *w = calloc(1, sizeof *w);
    if (w) {
        w->gate = g;
        w->who = who;
    }
    return w;
}

void placeholder_scan_free(struct placeholder_scan *w)
{
    free(w);
}

static const char *look(const struct placeholder_scan *w, struct slice text)
{
    const struct refusal *why = guard_text(w->gate, w->who, text);
    return why ? why->code : NULL;
}

static const char *piece(void *self, struct slice in, struct slice *out)
{
    struct placeholder_scan *w = self;
    if (in.n > WEBSOCKET_PIECE_MAX)
        return "memory";
    if (w->held > 0) {
        memcpy(w->joined, w->hold, w->held);
        memcpy(w->joined + w->held, in.p, in.n);
        in = (struct slice){w->joined, w->held + in.n};
    }
    w->held = placeholder_partial(in);
    *out = (struct slice){in.p, in.n - w->held};
    memcpy(w->hold, out->p + out->n, w->held);
    return look(w, (struct slice){in.p, out->n + placeholder_beyond(in, out->n)});
}

static const char *rest(void *self, struct slice *out)
{
    struct placeholder_scan *w = self;
    *out = (struct slice){w->hold, w->held};
    w->held = 0;
    return look(w, *out);
}

static const char *control(void *self, char *p, size_t n)
{
    return look(self, (struct slice){p, n});
}

static size_t held(const void *self)
{
    const struct placeholder_scan *w = self;
    return w->held;
}

struct tunnel_filter placeholder_scan_filter(struct placeholder_scan *w)
{
    return (struct tunnel_filter){piece, rest, control, held, w, NULL};
}
