/* A tunnel's filter (tunnel.h) that has each message judged whole: it keeps a copy as the message
 * passes, and holds its last byte back until it was judged. A message without its end is none, so
 * whoever is behind has not been asked for anything by then. What the filter inside holds back is
 * held beside. */
#ifndef DURWARD_MESSAGE_JUDGE_H
#define DURWARD_MESSAGE_JUDGE_H

#include "quota.h"
#include "tunnel.h"

struct message_judge;

struct message_judge_order {
    struct quota *total; /* bytes that are held of all, and whose part of them these are */
    const char *owner;   /* outlives the hold */
    size_t max;          /* of a message */
    /* NULL: it may go on; *wait: not before tunnel_go_on. Or why the tunnel must end: constant. */
    const char *(*judge)(void *arg, struct slice message, bool *wait);
    void *arg;
    const struct tunnel_filter *inner; /* copied; NULL: none */
};

struct message_judge *message_judge_new(const struct message_judge_order *o); /* NULL: no memory */
void message_judge_free(struct message_judge *h);                             /* NULL is fine */
struct tunnel_filter message_judge_filter(struct message_judge *h);

#endif
