/* A refusal as its client reads it: the sentence of its code (answer_words.h) in the form that this
 * client shows. Nothing of the request is in it but, for JSON-RPC, the number of the message. */
#ifndef DURWARD_ANSWER_H
#define DURWARD_ANSWER_H

#include "http_head.h"

enum answer_form {
    ANSWER_TEXT = 0, /* curl, go, cargo; git prints it as the remote's words */
    ANSWER_JSON,     /* as the SDKs of APIs print it */
    ANSWER_NPM,      /* "error" is text */
    ANSWER_REGISTRY, /* of container images: "errors" */
    ANSWER_PROBLEM,  /* RFC 9457 */
    ANSWER_HTML,
    ANSWER_RPC, /* JSON-RPC 2.0 */
    ANSWER_GRPC,
    ANSWER_GRPC_WEB,
    ANSWER_KUBE, /* a Status of Kubernetes */
};

enum {
    ANSWER_RPC_ID = 20,
    ANSWER_LINE = 400,
    ANSWER_LONG = 640,
    ANSWER_BODY = 2048,
    ANSWER_MARK = 128
};

/* How a request is to be answered. */
struct answer_how {
    enum answer_form form;
    char rpc_id[ANSWER_RPC_ID]; /* digits; "": null */
};

struct answer {
    unsigned status;
    char reason[ANSWER_LONG]; /* HTTP/1 only */
    char denied[ANSWER_MARK]; /* Durward-Denied: CODE ID */
    char error[ANSWER_MARK];  /* X-Proxy-Error: CLASS CODE */
    const char *type;         /* of the body */
    unsigned retry;           /* seconds; 0: not said */
    char grpc_status[4];      /* "": no gRPC */
    char grpc_message[ANSWER_LONG];
    size_t n; /* of the body; 0: there is none */
    char body[ANSWER_BODY];
};

/* The form that its head asks for. framed: by HTTP/2, which gRPC needs. */
struct answer_how answer_how(const struct head *h, bool framed);
/* Its rule reads it as JSON-RPC: id as in the message, or "". */
void answer_rpc(struct answer_how *how, const char *id);
/* id: of the record, or NULL. retry: what is known of it, or 0. */
void answer_make(struct answer *a, const struct answer_how *how, unsigned status, const char *code,
                 const char *id, unsigned retry);

#endif
