/* What the detectors of a policy's `redact_output` find is made unreadable in what comes out of an
 * execution: outputs of a command, contents of a file. What may be the beginning of something waits
 * until it is decided: by what comes, by the end, or, of a command whose output is followed, after
 * QUIET_MS in which nothing came. Placeholders, of this installation's, are no secrets. */
#include "execution_internal.h"

#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>

#include "controller_internal.h"
#include "detect_stream.h"
#include "placeholder.h"

enum { QUIET_MS = 500 };

struct redact {
    struct detect_rules rules;
    struct detect_stream *stream[2]; /* of each output; NULL: none is begun */
    uint32_t found[DETECTORS];
    char text[DETECT_FOUND_MAX];
    bool unreadable;
    struct event *quiet; /* NULL: nobody follows */
    struct placeholder_key *placeholders;
    struct quota_part part;
};

static bool is_own(void *arg, struct slice text)
{
    const struct redact *r = arg;
    return placeholder_scan(r->placeholders, text, NULL, NULL) > 0;
}

static bool is_held(const struct redact *r)
{
    return (r->stream[0] && !detect_stream_empty(r->stream[0])) ||
           (r->stream[1] && !detect_stream_empty(r->stream[1]));
}

static void wait_on(struct execution *e)
{
    const struct timeval quiet = {0, QUIET_MS * 1000};
    struct redact *r = e->redact;
    if (r->quiet && is_held(r))
        event_add(r->quiet, &quiet);
}

static void on_quiet(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct execution *e = arg;
    for (int i = 0; i < 2 && !e->paused; i++) /* else there may be more that is not read yet */
        redact_end(e, i);
    wait_on(e);
}

int redact_begin(struct execution *e, bool followed, struct err *err)
{
    struct controller *c = e->managed_sandbox->controller;
    uint32_t what = config_policy_sandbox(c->config, e->managed_sandbox->policy)->redact_output;
    if (what == 0)
        return 0;
    struct redact *r = e->redact = calloc(1, sizeof *r);
    if (r && quota_take(&c->redacting, &r->part, slice_str(e->managed_sandbox->id),
                        (1 + (size_t)e->split) * DETECT_STREAM_SIZE) != QUOTA_TAKEN)
        return err_set(err, ERR_FULL,
                       "too many of its commands and files are looked through at once: ask again "
                       "when one has ended");
    if (r)
        r->placeholders = placeholder_key_new(c->keys.tag);
    if (r && followed)
        r->quiet = event_new(c->base, -1, 0, on_quiet, e);
    if (r == NULL || r->placeholders == NULL || (followed && r->quiet == NULL))
        return err_set(err, ERR_INTERNAL, "out of memory");
    r->rules.redact = what;
    return 0;
}

/* Nothing more of it goes out. */
static void give_up(struct execution *e)
{
    e->redact->unreadable = true;
    e->truncated = true;
    execution_signal(e, SIGKILL);
}

static void go_on(struct execution *e, int i)
{
    struct detect_stream *s = e->redact->stream[i];
    struct slice ready = detect_stream_ready(s);
    if (ready.n > 0)
        flow_give(e, i, ready.p, ready.n);
    detect_stream_went(s, ready.n);
    if (detect_stream_state(s) != DETECT_PASSES)
        give_up(e);
}

void redact_take(struct execution *e, int i, const void *bytes, size_t n)
{
    struct redact *r = e->redact;
    const char *p = bytes;
    if (r->stream[i] == NULL && !r->unreadable)
        r->stream[i] = detect_stream_new(&r->rules, DETECT_PLAIN, is_own, r);
    if (r->stream[i] == NULL && !r->unreadable)
        give_up(e);
    while (n > 0 && !r->unreadable) {
        size_t room = detect_stream_room(r->stream[i]), now = n < room ? n : room;
        detect_stream_take(r->stream[i], p, now);
        p += now;
        n -= now;
        go_on(e, i);
    }
    wait_on(e);
}

void redact_end(struct execution *e, int i)
{
    struct redact *r = e->redact;
    if (r == NULL || r->stream[i] == NULL)
        return;
    if (!r->unreadable) {
        detect_stream_end(r->stream[i]);
        go_on(e, i);
    }
    for (unsigned k = 0; k < DETECTORS; k++)
        r->found[k] += detect_stream_counts(r->stream[i])[k];
    detect_stream_free(r->stream[i]);
    r->stream[i] = NULL;
}

const char *redact_found(const struct execution *e)
{
    return e->redact ? detect_found_text(e->redact->found, e->redact->text) : "";
}

bool redact_unreadable(const struct execution *e)
{
    return e->redact && e->redact->unreadable;
}

void redact_free(struct execution *e)
{
    struct redact *r = e->redact;
    if (r == NULL)
        return;
    for (int i = 0; i < 2; i++)
        detect_stream_free(r->stream[i]);
    if (r->quiet)
        event_free(r->quiet);
    placeholder_key_free(r->placeholders);
    quota_leave(&r->part);
    free(r);
    e->redact = NULL;
}
