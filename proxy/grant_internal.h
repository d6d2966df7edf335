/* Shared by grant.c (the request: checked, filled, recorded) and grant_reply.c only. */
#ifndef DURWARD_GRANT_INTERNAL_H
#define DURWARD_GRANT_INTERNAL_H

#include "aws_upload.h"
#include "fill.h"
#include "gather.h"
#include "grant.h"
#include "grpc_message.h"
#include "relay.h"
#include "scrub_frames.h"
#include "secret.h"

enum grant_state {
    G_NEW = 0,
    G_HELD,
    G_BUDGET,
    G_BODY,
    G_SECRET,
    G_RECORDING,
    G_OPEN,
    G_CAPTURING,
    G_DONE
};

struct grant {
    struct relay relay; /* first */
    struct injector *injector;
    enum grant_state state;
    struct authority authority;
    char entry[16], token[512];
    struct grant_decided decided;
    struct fill fill;
    struct gather body;  /* of the request, when the slot or a signature needs it whole */
    struct hold *hold;   /* G_HELD */
    char approval[200];  /* who has decided; "" where nobody was asked */
    bool waited;         /* held, or for its budget: what comes of the body had no room */
    unsigned retry;      /* seconds, told with a refusal; 0: nothing is */
    struct event *later; /* G_BODY: it is */
    struct secret_wait *secret_wait;
    struct sign_wait *sign_wait;
    struct aws_upload *upload; /* NULL: the body is not one of signed chunks */
    struct secret *value;
    struct client_cert *cert; /* NULL: the credential is none */
    struct journal_wait *wait;
    uint64_t counter;
    unsigned refuse_status;
    const char *refuse_code;
    char refuse_detail[128];
    struct origin *origin;
    struct hop_blanks blanks;
    struct gather reply;       /* the body of one with new secrets in it */
    struct origin_facts facts; /* G_CAPTURING: of the origin that is gone */
    bool admitted;
    bool body_whole;  /* and what the search held of it is out */
    bool filled;      /* the credential is in: the reply is looked through */
    bool unsearched;  /* but for a value that is too short: none of it goes into the log */
    bool in_messages; /* the reply's body is a stream of them */
    struct grpc_message message;
    struct scrub *scrub; /* NULL: not filled, or too short a value */
    uint64_t head_hits;
    struct scrub_frames frames;
    /* Large, and set up without clearing them whole: */
    struct head head;
    struct head held; /* of the reply that is gathered */
};

extern const struct front_ops grant_front_ops; /* grant_reply.c */

/* grant_capture.c: a reply that the rule captures of. */
bool grant_captures(const struct grant *g, const struct head *h);
void grant_capture_begin(struct grant *g, const struct head *h);
void grant_capture_data(struct grant *g, const void *p, size_t n);
void grant_capture_end(struct grant *g);
/* grant_upload.c: a body of signed chunks. The sandbox whose captured key signs; "": the key is a
 * configured one. */
const char *grant_key_owner(const struct grant *g);
int grant_upload_begin(struct grant *g) WUNUSED; /* -1: memory */
struct back grant_upload_back(struct grant *g);  /* the origin, behind what signs */
/* grant_reply.c: a whole reply, and the record of it. Ends the grant. */
void grant_pass_whole(struct grant *g, struct head *h, struct slice body);

/* grant_record.c: r with what is told of the request. */
void grant_record_request(struct grant *g, struct record *r, enum record_kind kind);

void grant_set_state(struct grant *g, enum grant_state s);
void grant_release(struct grant *g);
uint64_t grant_hits(const struct grant *g); /* how often the reply held the secret so far */
/* Each of these ends the grant. */
void grant_tell_fail(struct grant *g, unsigned status, const char *code);
void grant_abandon(struct grant *g, unsigned status, const char *code);
void grant_end_record(struct grant *g, enum record_kind kind, const char *code);

/* Refused and recorded; the grant may be gone when it returns. */
void grant_deny(struct grant *g, unsigned status, const char *code, const char *detail);
/* Nothing more is awaited of people: on with the body, the secret, the record. */
void grant_proceed(struct grant *g);
/* grant_budget.c: true: leave is asked for, and grant_proceed or grant_deny follows. */
bool grant_budget(struct grant *g);
/* grant_hold.c: the rule asks. Ends in grant_proceed or grant_deny. */
void grant_hold(struct grant *g);

#endif
