/* Where messages end in a body of gRPC (length-prefixed messages: a flag byte, 4 bytes of length,
 * the message). Only a hint for when nothing more may come for a while; nothing is judged by it. */
#ifndef DURWARD_GRPC_MESSAGE_H
#define DURWARD_GRPC_MESSAGE_H

#include "http_head.h"

enum { GRPC_PREFIX = 5 };

struct grpc_message { /* all zero: at the beginning */
    unsigned char prefix[GRPC_PREFIX];
    uint32_t left; /* bytes of the message that are still to come */
    uint8_t n;     /* of the prefix */
};

/* gRPC proper (application/grpc, +anything), which needs trailers and so HTTP/2; not gRPC-Web. */
bool grpc_is(const struct head *h);
/* Has it a body of such messages: gRPC, gRPC-Web, or Connect's streams? */
bool grpc_has_messages(const struct head *h);
/* True: s ends where a message ends. */
bool grpc_message_over(struct grpc_message *m, struct slice s);

#endif
