/* Shared by http2_server.c, http2_receive.c and http2_stream.c only. */
#ifndef DURWARD_HTTP2_SERVER_INTERNAL_H
#define DURWARD_HTTP2_SERVER_INTERNAL_H

#include "answer.h"
#include "http2_head.h"
#include "http2_server.h"
#include "faults.h"

#include <nghttp2/nghttp2.h>
#include <sys/queue.h>

struct http2_stream {
    struct http2_server *server;
    int32_t id;
    struct upstream upstream;  /* ops NULL: not yet, or no more */
    struct buf in, out;        /* body bytes that wait: for the upstream, for the client's window */
    struct buf trailers_in;    /* as http1_parse_trailers reads them */
    struct head *trailers_out; /* owned; NULL: none */
    struct head *held;     /* owned: its length was declared, and nothing has come that agrees */
    uint64_t length, left; /* as declared; of it not passed on yet */
    uint64_t received;     /* bytes of body */
    bool wide;             /* it has the wide window */
    bool counted;          /* one was declared */
    bool request_ended;    /* by the client */
    bool request_done;     /* the upstream was told */
    bool given_up;         /* refused by us in its body: fail follows */
    bool ours;             /* the reset is */
    bool fault;            /* the client's, and charged */
    bool malformed;        /* no request at all: reset behind its answer */
    bool tunnel;           /* the reply began one */
    bool head_request, replied, reply_ended, client_reset;
    bool head_sent;    /* the reply's */
    bool cut;          /* it failed before that: reset as soon as the client has the head */
    uint64_t begun;    /* ms, monotonic */
    time_t linger_at;  /* 0, or the reply went out whole at this time and the body still comes */
    size_t lingered;   /* bytes of it that were dropped since */
    bool push, resume; /* to be done in the next turn */
    unsigned retry;    /* seconds, told with a refusal; 0: nothing is known */
    struct answer_how how;      /* it is answered, if we have to */
    const char *why;            /* it is being reset; constant text */
    time_t read_at, written_at; /* monotonic seconds: the last progress of either body */
    LIST_ENTRY(http2_stream) link;
};

struct http2_server {
    struct io *io;
    const struct limits *limits;
    const struct http2_server_ops *ops;
    void *session;
    nghttp2_session *h2;
    struct event *soon, *tick;
    struct http2_head head; /* the block that is being read */
    LIST_HEAD(, http2_stream) streams;
    unsigned n_streams, n_wide;
    size_t out_total;        /* in the streams' out */
    uint64_t written, sent;  /* bytes given to the io; of them gone at the last tick */
    time_t sent_at, idle_at; /* idle_at: when the last stream ended */
    time_t block_at;         /* a field block is open since; 0: none */
    unsigned continuations;  /* of it */
    unsigned calm;           /* what the client has used up of its allowance */
    time_t calm_at;
    struct faults *shared;   /* with its sandbox's other connections: streams at fault, */
    unsigned faults, pauses; /* its points in that, and how often it was not read for it */
    uint64_t pause_until;    /* ms, monotonic */
    int depth;
    bool freed, bodies, told, draining, paused;
};

/* http2_stream.c */
void http2_stream_reset(struct http2_stream *st, uint32_t code); /* by us, for no fault */
struct http2_stream *http2_stream_new(struct http2_server *s, int32_t id);
/* Cancels the upstream, gives the window back. A head that was held is forgotten. */
void http2_stream_free(struct http2_stream *st);
/* Keep h (its storage moves) until the client has shown that no body follows. */
int http2_stream_hold(struct http2_stream *st, struct head *h);
void http2_stream_drop(struct head **h);
/* The reply is out, the body is not over: what comes of it is dropped, up to a bound. Clients there
 * are (curl 7.88) that throw the reply away when they are reset before they have sent theirs. */
void http2_stream_linger(struct http2_stream *st);
void http2_stream_linger_over(struct http2_stream *st);
struct requester http2_stream_requester(struct http2_stream *st);
/* last: of a frame that ends the stream. */
void http2_stream_data(struct http2_stream *st, const uint8_t *p, size_t n, bool last);
void http2_stream_head_sent(struct http2_stream *st); /* of the reply */
void http2_stream_continue(struct http2_stream *st);  /* 100: the client waits before its body */
/* Pass on what the upstream has room for, and the end. */
void http2_stream_push(struct http2_stream *st);
/* Give the request up: its upstream is told why; the client gets the refusal, or a reset if a reply
 * has begun. */
void http2_stream_give_up(struct http2_stream *st, unsigned status, const char *code);
void http2_stream_cancel(struct http2_stream *st, const char *code);

/* http2_receive.c */
nghttp2_session_callbacks *http2_receive_callbacks(void); /* NULL: no memory */
/* The request whose head was held begins. */
void http2_receive_begin_held(struct http2_stream *st);
/* It cannot become one any more. */
void http2_receive_refuse_held(struct http2_stream *st, unsigned status, const char *code);
/* This stream ends by the client's fault: charged once. */
void http2_receive_fault(struct http2_stream *st, const char *on);

/* http2_server.c */
/* What was submitted from outside a turn leaves in the next one. */
void http2_server_soon(struct http2_server *s);
/* A breach that ends the connection is told once, whatever follows of it. */
void http2_server_tell(struct http2_server *s, const char *code, const char *detail);
/* That, and GOAWAY with this error: every exchange ends with the code. */
void http2_server_end(struct http2_server *s, uint32_t error, const char *code, const char *detail);
void http2_server_arm(struct http2_server *s); /* look again in time */
time_t http2_server_now(void);

#endif
