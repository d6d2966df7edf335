/* Reads the provider's events of a session with a model as they pass: which answers begin and end,
 * and what they took. Nothing of an event is held but a few numbers. */
#include "llm_session.h"

#include <stdio.h>
#include <string.h>

enum { AUDIO_OUT = 534 /* letters of base64 to a token, in the densest format */ };
enum { IN = 0, OUT, CACHED, SECONDS };

static const struct {
    const char *at;
    unsigned what;
    bool heard;
} counts[] = {
    {"response.usage.input_tokens", IN, false},
    {"response.usage.output_tokens", OUT, false},
    {"response.usage.input_token_details.cached_tokens", CACHED, false},
    {"response.usage.input_tokens_details.cached_tokens", CACHED, false},
    {"usage.input_tokens", IN, true},
    {"usage.output_tokens", OUT, true},
    {"usage.seconds", SECONDS, true},
};
enum { HEARD = 1 << 8 };

static void on_value(void *arg, const char *path, enum json_scan_kind kind, struct slice text)
{
    struct llm_events *e = arg;
    if (strcmp(path, "type") == 0 && kind == JSON_SCAN_STRING)
        snprintf(e->type, sizeof e->type, "%.*s", SL(text));
    if (strcmp(path, "response.status") == 0 && slice_eq_str(text, "failed"))
        e->failed = true;
    for (size_t i = 0; kind == JSON_SCAN_NUMBER && i < ARRAY_LEN(counts); i++) {
        if (strcmp(counts[i].at, path) != 0)
            continue;
        ssize_t dot = counts[i].what == SECONDS ? slice_find(text, '.') : -1;
        struct slice whole = {text.p, dot < 0 ? text.n : (size_t)dot};
        unsigned bit = 1u << counts[i].what;
        if ((e->has & bit) || slice_u64(whole, UINT64_C(1) << 40, &e->n[counts[i].what]) < 0)
            e->twice = true;
        e->has |= bit | (counts[i].heard ? HEARD : 0u);
        e->n[counts[i].what] += dot >= 0;
    }
}

void llm_events_feed(struct llm_events *e, struct slice s)
{
    static const char *const said[] = {"delta", NULL};
    if (!e->open) {
        memset(e, 0, sizeof *e);
        json_scan_begin(&e->scan);
        e->scan.counted = said;
        e->open = true;
    }
    if (!e->broken && json_scan_feed(&e->scan, s, on_value, e) < 0)
        e->broken = true;
}

static bool ends_answer(const char *type)
{
    static const char *const types[] = {"response.done", "response.completed",
                                        "response.incomplete", "response.failed",
                                        "response.cancelled"};
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (strcmp(type, types[i]) == 0)
            return true;
    return false;
}

enum llm_tells llm_events_end(struct llm_events *e, struct llm_usage *u)
{
    memset(u, 0, sizeof *u);
    if (!e->open)
        return LLM_TELLS_NOTHING;
    e->open = false;
    if (!e->broken && json_scan_end(&e->scan, on_value, e) < 0)
        e->broken = true;
    bool audio = slice_ends(slice_str(e->type), SLICE("audio.delta"));
    u->seen = (e->scan.said + (audio ? AUDIO_OUT : 4) - 1) / (audio ? AUDIO_OUT : 4);
    if (e->broken)
        return LLM_TELLS_NOTHING;
    u->in = e->n[IN];
    u->out = e->n[OUT];
    u->cached = e->n[CACHED] < u->in ? e->n[CACHED] : u->in;
    u->any = (e->has & (1u << IN | 1u << OUT)) != 0;
    u->known = !e->twice && (((e->has >> IN & 1) && (e->has >> OUT & 1)) || (e->failed && !u->any));
    if (ends_answer(e->type))
        return LLM_TELLS_ENDED;
    if (strcmp(e->type, "response.created") == 0)
        return LLM_TELLS_BEGUN;
    if (strcmp(e->type, "error") == 0)
        return LLM_TELLS_ERROR;
    if ((e->has & HEARD) == 0)
        return LLM_TELLS_NOTHING;
    if (!u->any) /* a tenth of a second is a token */
        u->in = e->n[SECONDS] * 10;
    return LLM_TELLS_HEARD;
}
