/* Shared by injection.c (the request: checked, filled, sent) and the other injection_*.c only. */
#ifndef DURWARD_INJECTION_INTERNAL_H
#define DURWARD_INJECTION_INTERNAL_H

#include "mcp_pins.h"
#include "aws_upload.h"
#include "placement.h"
#include "byte_range.h"
#include "body_buffer.h"
#include "detector.h"
#include "injection.h"
#include "grpc_message.h"
#include "inspect.h"
#include "mcp_reply.h"
#include "relay.h"
#include "reply_length.h"
#include "scrub_places.h"
#include "secret.h"

struct budget_call;
struct injection_call;    /* injection_llm.c */
struct injection_session; /* injection_session.c */
struct price;

enum injection_state {
    G_NEW = 0,
    G_HELD,
    G_BUDGET,
    G_BODY,
    G_SECRET,
    G_RECORDING,
    G_OPEN,
    G_RENEWING, /* a 401 is held, and another credential awaited */
    G_CAPTURING,
    G_DRAINING, /* the origin is gone, and the downstream has not had all of the reply */
    G_DONE
};

struct injection {
    struct relay relay; /* first */
    struct injector *injector;
    enum injection_state state;
    struct authority authority;
    char entry[16], token[512];
    struct injection_decided decided;
    struct quota_part exchange; /* of those of all sandboxes */
    struct injection_renewal
        *renewal;            /* injection_renew.c; NULL: its credential cannot be renewed */
    bool renewed;            /* this is the second time that it is sent */
    struct body_buffer body; /* of the request, when the slot or a signature needs it whole */
    struct pending_approval *pending_approval; /* G_HELD */
    char approval[200];                        /* who has decided; "" where nobody was asked */
    bool waited;         /* held, or for its budget: what comes of the body had no room */
    unsigned retry;      /* seconds, told with a refusal; 0: nothing is */
    struct event *later; /* G_BODY: it is */
    struct secret_wait *secret_wait;
    struct sign_wait *sign_wait;
    struct aws_upload *upload;       /* NULL: the body is not one of signed chunks */
    struct override_watch *override; /* of the body, where the method matters */
    struct secret *value;
    struct secret *own;       /* what it went with, where its reply is searched; else NULL */
    struct client_cert *cert; /* NULL: the credential is none */
    struct journal_wait *wait;
    uint64_t counter;
    unsigned refuse_status;
    const char *refuse_code;
    char refuse_detail[128];
    struct origin *origin;
    struct injector_channel_blanks blanks;
    struct body_buffer reply;  /* the body of one with new secrets in it */
    struct origin_facts facts; /* G_CAPTURING: of the origin that is gone */
    struct wanted *wanted;     /* what its host gets of secrets, awaited before it is admitted */
    size_t n_wanted, left;
    bool searched; /* the host gets some: the reply is looked through for all of them */
    bool asking;   /* for what is wanted */
    bool linked;   /* in the injector's list */
    LIST_ENTRY(injection) link;
    enum on_reflect on_reflect;
    bool admitted;
    bool body_whole;  /* and what the search held of it is out */
    bool filled;      /* the credential is in */
    bool unsearched;  /* some value is too short to look for: none of it goes into the log */
    bool in_messages; /* the reply's body is a stream of them */
    bool coded;       /* it is, and there is nothing that could be found in it */
    struct grpc_message message;
    bool judged;  /* mcp, llm: the body of the request was read, and may pass */
    bool charged; /* and the budget was told of it */
    char message_text[INSPECT_DETAIL_MAX]; /* what is called, for people and the record */
    struct injection_call *call;           /* llm; NULL: it is none */
    struct injection_session *session;     /* llm, over a WebSocket; NULL: it is none */
    const struct budget *tool_budget;      /* mcp: of the tool that is called; its policy's */
    struct mcp_reply *messages;            /* mcp: the reply is read by messages; or NULL */
    bool wants_events;                     /* mcp: events are asked for, by GET */
    struct quota_part messages_held;
    bool messages_whole;     /* it is one, and its head is held until it is whole */
    struct scrub *scrub;     /* NULL: not searched */
    struct byte_range range; /* what part of a file was asked for, where a wider one is fetched */
    struct byte_cut cut;     /* of the wider one's reply */
    struct reply_length length; /* of what goes to the gate, which ends the channel of who lies */
    bool misframed;             /* and more or less goes than its head says */
    bool bodiless;              /* HEAD is asked for */
    uint64_t head_hits;
    struct scrub_frames frames;
    /* Large, and set up without clearing them whole: */
    struct placement placement;
    struct head head;
    struct head held;             /* of the reply that is gathered */
    char found[DETECT_FOUND_MAX]; /* by detectors, as the gate says */
};

extern const struct downstream_ops injection_downstream_ops; /* injection_reply.c */

/* injection_capture.c: a reply that the rule captures of. */
bool injection_captures(const struct injection *g, const struct head *h);
void injection_capture_begin(struct injection *g, const struct head *h);
void injection_capture_data(struct injection *g, const void *p, size_t n);
void injection_capture_end(struct injection *g);
/* injection_renew.c: a credential that its origin refuses before its time. The value is here, and
 * can be made anew. */
void injection_renew_begin(struct injection *g);
/* Before it is in: what it takes to send the request once more is kept, where there is room. */
void injection_renew_keep(struct injection *g);
/* True: the reply is held, and the vault asked for another value. */
bool injection_renew_holds(struct injection *g, const struct head *reply) WUNUSED;
/* The origin is gone; code: it failed, else NULL. True: the reply is held, and nothing is to be
 * done about that. */
bool injection_renew_gone(struct injection *g, unsigned status, const char *code) WUNUSED;
void injection_renew_end(struct injection *g);
/* injection.c: the secret is got (anew), and the request goes on. */
void injection_secret(struct injection *g);
/* injection_reply.c: the reply goes on as it came. False: the injection is gone. */
bool injection_take_reply(struct injection *g, const struct head *h);
/* Nothing more comes of the reply. */
void injection_reply_end(struct injection *g);
/* The origin is gone, and the injection is not. */
void injection_leave_origin(struct injection *g);
/* injection_mcp.c: the rule reads messages. */
bool injection_mcp(const struct injection *g);
/* Its bodies are read again here (injection_judge.c): messages, or calls to models. */
bool injection_judges(const struct injection *g);
/* By the head: how much of the body is to be held; 0: the injection went on, or was denied. */
size_t injection_judge_begin(struct injection *g);
void injection_judge(struct injection *g); /* the body is whole: on, or denied */
/* What is held would pass by this rule too. */
bool injection_judge_still(const struct injection *g, const struct rule *rule);
/* What the reply is read as; DOUBTFUL: it is not, and some client would read messages in it. */
enum mcp_form injection_mcp_form(const struct injection *g, const struct head *reply);
/* What tools of servers were; NULL: out of memory. Where this one is asked; false: the same. */
struct mcp_pins *injection_pins(const struct injection *g);
bool injection_place(const struct injection *g, char place[MCP_PIN_TEXT + 1]);
void injection_mcp_asked(struct injection *g); /* what its reply has to be known for */
/* -1: memory */
int injection_mcp_reply(struct injection *g, const struct head *reply, enum mcp_form form) WUNUSED;
/* False: the injection is gone. */
bool injection_mcp_feed(struct injection *g, const void *p, size_t n) WUNUSED;
bool injection_mcp_close(struct injection *g) WUNUSED;
size_t injection_mcp_room(const struct injection *g);
struct slice injection_mcp_out(const struct injection *g);
void injection_mcp_drain(struct injection *g, size_t n);
void injection_mcp_record(const struct injection *g, struct record *r);
void injection_mcp_end(struct injection *g);
/* injection_reply.c: what may go on, as far as there is room. False: the injection is gone. */
bool injection_mcp_pump(struct injection *g);
/* injection_llm.c: a call to a model. NULL, or why it may not go where tokens have a budget.
 * unread: no call is known at its path. */
const char *injection_llm_barred(const struct injection *g, bool unread);
/* What its body asks for. False: denied. */
bool injection_llm_take(struct injection *g, const struct llm_call *asked) WUNUSED;
/* The estimate for its budgets. False: nobody counts it. */
bool injection_llm_call(const struct injection *g, struct budget_call *ret);
void injection_llm_reply(struct injection *g, const struct head *reply);
/* What our asking for its usage added to the reply is to be taken out. -1: memory is out. */
int injection_llm_cuts(struct injection *g) WUNUSED;
/* s: what goes on of it instead. -1: the same. */
int injection_llm_cut(struct injection *g, struct slice *s) WUNUSED;
struct slice injection_llm_cut_end(const struct injection *g); /* what was held of it */
size_t injection_llm_held(const struct injection *g);
void injection_llm_feed(struct injection *g, const void *p, size_t n);
void injection_llm_close(struct injection *g); /* the reply is whole */
void injection_llm_record(struct injection *g, const struct origin_facts *facts, struct record *r);
void injection_llm_end(struct injection *g); /* before the budget is left */
/* Tokens have a budget here, or money has. */
bool injection_llm_counts(const struct injection *g, bool money);
/* Of the dearest of these models, one a line. False: *which has no price. */
bool injection_llm_price(const struct injection *g, const char *models, struct price *ret,
                         struct slice *which);
/* The first of them, in letters that need no escape. */
void injection_llm_model(const char *models, char *to, size_t size);
/* injection_session.c: a session with a model over a WebSocket. False: denied. */
bool injection_session_begin(struct injection *g, struct inspect_result *why) WUNUSED;
/* As the origin has agreed to it. -1: memory is out. */
int injection_session_filters(struct injection *g, struct tunnel_filter *up,
                              struct tunnel_filter *down) WUNUSED;
void injection_session_record(struct injection *g, struct record *r);
void injection_session_end(struct injection *g); /* before the tunnel goes */
/* injection_reply.c: a whole reply, and the record of it. Ends the injection. */
void injection_pass_whole(struct injection *g, struct head *h, struct slice body);

/* injection_taint.c: what else the reply is searched for. Which host it is: before anything else.
 */
void injection_taint_begin(struct injection *g);
/* All of it at hand, or the injection denied; then injection_admit. */
void injection_search(struct injection *g);
void injection_admit(struct injection *g);
/* A value that is about to go there, or came from there (sandbox: whose, of a captured one, else
 * NULL); replies under way are searched for it from here on. -1: out of memory. */
int injection_remember(struct injector *i, const char *name, const char *sandbox,
                       struct secret *value) WUNUSED;
/* g->scrub, for all that is known. -1: too much, or out of memory. */
int injection_scrub_begin(struct injection *g) WUNUSED;
void injection_taint_end(struct injection *g);

/* injection_record.c: r with what is told of the request. */
void injection_record_request(struct injection *g, struct record *r, enum record_kind kind);

void injection_set_state(struct injection *g, enum injection_state s);
void injection_release(struct injection *g);
uint64_t injection_hits(const struct injection *g); /* how often the reply held the secret so far */
/* Each of these ends the injection. */
void injection_tell_fail(struct injection *g, unsigned status, const char *code);
void injection_abandon(struct injection *g, unsigned status, const char *code);
void injection_end_record(struct injection *g, enum record_kind kind, const char *code);

/* Refused and recorded; the injection may be gone when it returns. */
void injection_deny(struct injection *g, unsigned status, const char *code, const char *detail);
/* Its sandbox has all its part of this (SHARE), or there is no more. */
void injection_deny_full(struct injection *g, enum quota_end end, const char *what);
/* Nothing more is awaited of people: on with the body, the secret, the record. */
void injection_proceed(struct injection *g);
/* injection_budget.c: true: leave is asked for, and injection_proceed or injection_deny follows. */
bool injection_budget(struct injection *g);
/* injection_approval.c: the rule asks. Ends in injection_proceed or injection_deny. */
void injection_await_approval(struct injection *g);

#endif
