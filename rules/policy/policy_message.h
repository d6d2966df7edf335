/* What the parent's messages say of a policy and of the limits, alike to every role. */
#ifndef DURWARD_POLICY_MESSAGE_H
#define DURWARD_POLICY_MESSAGE_H

#include "ipc_msg.h"
#include "policy.h"
#include "request_limits.h"

enum { POLICY_NAME_MAX = 64 };

/* A policy as it is sent: its image lies in a sealed file. */
struct policy_message {
    char name[POLICY_NAME_MAX + 1];
    uint32_t generation;
    int fd;
};

/* Name, generation and descriptor; what else the message has comes before or after. On success the
 * caller owns fd, or hands it to policy_message_load. -1: bad, and nothing was taken. */
int policy_message_get(struct msg *m, struct policy_message *ret);
/* The policy, of the image that fd is; fd is closed. NULL with err: it is not sealed, or is
 * damaged.
 */
struct policy *policy_message_load(const struct policy_message *p, struct err *err);
int limits_get(struct msg *m, struct limits *ret); /* -1: bad */

#endif
