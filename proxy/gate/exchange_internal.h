/* Shared by exchange.c, exchange_budget.c and exchange_reply.c only. */
#ifndef DURWARD_EXCHANGE_INTERNAL_H
#define DURWARD_EXCHANGE_INTERNAL_H

#include "exchange.h"

#include "inspect.h"
#include "journal.h"
#include "mcp_answer.h"
#include "relay.h"

struct exchange {
    struct relay relay; /* first */
    struct gate *gate;
    struct identity who;
    enum exchange_state state;
    struct authority authority;
    const char *entry;
    const struct rule *rule;
    struct policy *policy; /* whose rule it is; a reference */
    char rule_text[256];
    bool inject;
    bool by_injector; /* credentialed, asked, or of a host that gets a secret by another rule */
    struct origin *origin;
    struct prepared *answer; /* of a metadata service, or a link's, until it is sent; else NULL */
    const struct inbound *inbound; /* it is from outside, to a service; else NULL */
    struct preview_ask *asked;     /* EXCHANGE_INBOUND */
    bool is_link;                  /* what was asked about is a link's token */
    struct journal_wait *wait;
    struct body_inspection *body_inspection; /* until what it holds has gone on */
    struct override_watch *override;         /* of its body, where the method matters */
    struct exchange_outward *outward; /* its body goes through detectors; NULL: it does not */
    uint64_t counter;                 /* of the record id */
    unsigned refuse_status;
    const char *refuse_code;
    char refuse_detail[INSPECT_DETAIL_MAX];
    char rpc_id[INSPECT_RPC_ID]; /* mcp */
    struct mcp_refused *calls;   /* mcp: how each would be answered; NULL: none wants it */
    struct mcp_stream *events;   /* mcp: the reply is one of the older transport's; or NULL */
    bool refuse_field;           /* it names the field that was refused */
    bool admitted;
    unsigned retry; /* seconds, told with a refusal; 0: nothing is */
    uint64_t taken; /* bytes of the body that came before it was admitted */
    struct placeholder_scan *placeholder_scan;
    struct exchange_session *session; /* with a model, over a WebSocket; NULL: it is none */
    struct head head;                 /* last: large, and set up without clearing it whole */
};

/* exchange.c */
void exchange_set_state(struct exchange *x, enum exchange_state s);
void exchange_free(struct exchange *x);
/* Before its downstream is told fail: what the answer is to say beside the code. */
void exchange_tell_how(const struct exchange *x, const struct downstream *f);
/* Frees it, then tells the downstream: the record, if there is one, is written. id: of the record.
 */
void exchange_tell_end(struct exchange *x, unsigned status, const char *code, const char *id);
/* The same with the id of its own record. */
void exchange_tell_fail(struct exchange *x, unsigned status, const char *code);
/* A reply whose events may hold answers of ours (mcp_stream.h). */
void exchange_events(struct exchange *x, const struct head *reply);
/* Records the refusal, then tells it. */
void exchange_deny(struct exchange *x, unsigned status, const char *code);
/* Of what was admitted here, once; code: constant text. */
void exchange_end_record(struct exchange *x, enum record_kind kind, const char *code);
/* What the inspection still holds goes on. */
void exchange_pump(struct exchange *x);

/* The body is not to go on: the origin never has the end of it. False: a record is being written,
 * try again. */
bool exchange_refuse_body(struct exchange *x, unsigned status, const char *code) WUNUSED;
/* What the rule asks of the body, or the way on. */
void exchange_ask(struct exchange *x);
/* Bytes of the body, behind the detectors; where they go, and how many. */
void exchange_pass(struct exchange *x, const void *p, size_t n);
void exchange_pass_end(struct exchange *x);
size_t exchange_pass_room(struct exchange *x);
/* There is room for more of the body: of what is held here, then of the client's. */
void exchange_wanted(void *self);

/* exchange_outward.c: the detectors of its rule, if it has any. False: refused. */
bool exchange_outward(struct exchange *x) WUNUSED;
bool exchange_outward_waits(const struct exchange *x); /* exchange_ask follows */
void exchange_outward_data(struct exchange *x, const void *p, size_t n);
void exchange_outward_end(struct exchange *x);
size_t exchange_outward_room(struct exchange *x);
void exchange_outward_pump(struct exchange *x);
/* What was found so far, for the record, whoever writes it. */
void exchange_outward_found(struct exchange *x);
void exchange_outward_free(struct exchange *x);

/* It may go: recorded, then to the origin. */
void exchange_open_plain(struct exchange *x);

/* exchange_budget.c: the rule or its policy has a budget. Ends in exchange_open_plain or a refusal.
 */
void exchange_budget(struct exchange *x);

/* exchange_session.c: its messages are judged on their way to inner. -1: memory is out. */
int exchange_session(struct exchange *x, const struct tunnel_filter *inner,
                     struct tunnel_filter *up) WUNUSED;
void exchange_session_free(struct exchange *x);

/* exchange_metadata.c: the request is for a metadata service that the policy's identity has. All
 * that follows is done. */
void exchange_metadata(struct exchange *x);
/* What sends x->answer; ops NULL: memory is out. */
struct upstream exchange_answer_open(struct exchange *x);
void exchange_answer_free(struct exchange *x);

/* exchange_reply.c */
extern const struct downstream_ops exchange_downstream_ops;

#endif
