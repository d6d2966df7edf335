#include "watch.h"

#include "placeholder.h"
#include "websocket.h"

#include <stdlib.h>
#include <string.h>

struct watch {
    const struct gate *gate;
    const struct identity *who;
    char hold[PLACEHOLDER_MAX];
    size_t held;
    char joined[PLACEHOLDER_MAX + WEBSOCKET_PIECE_MAX];
};

struct watch *watch_new(const struct gate *g, const struct identity *who)
{
    struct watch *w = calloc(1, sizeof *w);
    if (w) {
        w->gate = g;
        w->who = who;
    }
    return w;
}

void watch_free(struct watch *w)
{
    free(w);
}

static const char *look(const struct watch *w, struct slice text)
{
    const struct refusal *why = guard_text(w->gate, w->who, text);
    return why ? why->code : NULL;
}

static const char *piece(void *self, struct slice in, struct slice *out)
{
    struct watch *w = self;
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
    struct watch *w = self;
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
    const struct watch *w = self;
    return w->held;
}

struct tunnel_filter watch_filter(struct watch *w)
{
    return (struct tunnel_filter){piece, rest, control, held, w};
}
