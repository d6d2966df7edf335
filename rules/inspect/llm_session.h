/* A session with a model over a WebSocket (`llm` beside `websocket`): OpenAI's realtime API, and
 * its responses by events. Each message is one JSON event. The gate and the injector judge the
 * client's events; the injector reads from the provider's what answers took. What is here is pure:
 * the caller holds the bytes. */
#ifndef DURWARD_LLM_SESSION_H
#define DURWARD_LLM_SESSION_H

#include "inspect.h"
#include "json_scan.h"
#include "llm_reply.h"

enum { LLM_EVENT_MAX = 1 << 20 /* bytes of a client's event */ };

struct llm_session {
    enum llm_form form; /* LLM_EVENTS: realtime; LLM_RESPONSES */
    char models[LLM_MODELS_MAX + 1];
    uint64_t context; /* tokens of what was said in it, estimated */
};

enum llm_asks {
    LLM_ASKS_NOTHING = 0,
    LLM_ASKS_ANSWER,
    LLM_ASKS_PERHAPS, /* audio: the provider may begin an answer when it likes */
};

/* By the head of the request for it: INSPECT_PASS, with form and models in ret->call. */
enum inspect_answer llm_session_begin(struct llm_session *s, const struct inspection *in,
                                      const struct inspect_request *r, struct inspect_result *ret);
/* One event of the client's, whole. INSPECT_PASS, with what it asks for in ret->call. */
enum inspect_answer llm_session_event(struct llm_session *s, const struct inspection *in,
                                      struct slice event, enum llm_asks *asks,
                                      struct inspect_result *ret);

enum llm_tells {
    LLM_TELLS_NOTHING = 0,
    LLM_TELLS_BEGUN, /* an answer was */
    LLM_TELLS_ENDED, /* an answer did, with what it took */
    LLM_TELLS_HEARD, /* what was said was written down, by another model, and took so much */
    LLM_TELLS_ERROR,
};

/* The provider's events, of any length, as they come. Zeroed: none yet. */
struct llm_events {
    struct json_scan scan;
    bool open, broken;
    bool failed; /* the answer did, and says nothing of what it took */
    bool twice;  /* a number stands there twice, or is none */
    unsigned has;
    uint64_t n[4];
    char type[JSON_SCAN_TEXT + 1];
};

void llm_events_feed(struct llm_events *e, struct slice s);
/* That was one event. u: what it says of tokens; `seen` of any event, for an answer that is cut. */
enum llm_tells llm_events_end(struct llm_events *e, struct llm_usage *u);

#endif
