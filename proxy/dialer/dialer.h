/* The dialer: the only role that connects. It knows no sandbox bytes, only authorities, and repeats
 * the host decision of the channel's policy for each of them (attacks D2 to D9).
 *
 * W_INIT, parent → dialer, fields in order:
 *   n × (host:str, port:u32, address:str)   upstream.resolve; port 443 filled in where it was
 * absent n × cidr:str                            addresses never to be dialled (our own listeners)
 *   proxy:u8 (enum scheme; 0: none), and then host:str port:u32 user:str secret:str (its password's
 *     name, or "") and n × direct:str (host, .host, address or range)
 *   dial_seconds:u32
 *   token_public:bytes                      32 bytes, or none: no token is accepted
 *   synced:u8                               audit durability of its journal
 *   hold:u32                                seconds of a lease of the fleet's shares; 0: no fleet
 *   the roots' memfd                        when proxy is https
 *   the budgets' memfd                      proxy/link/budget_ledger.h
 * Answer: W_READY {} (confined by then) or W_FAILED.
 *
 * W_PEER kind gate or injector: a policy of that name has come by W_POLICY before; of several the
 * highest generation counts for all channels of the name. extra = "token" for a gate whose requests
 * must carry one. kind fleet: its channel for
 * shares, or with policy PEER_FLEET that for its own connections. kind logger: the journal's
 * channel. kind vault: where the proxy's password comes from.
 *
 * A gate's channel gets descriptors for what a plain allow rule names, an injector's for what a
 * credentialed or an ask rule names; never both. */
#ifndef DURWARD_DIALER_H
#define DURWARD_DIALER_H

#include "err.h"

struct event_base;
struct dialer;
struct landlock_place;

/* SHARED: of a channel that several sandboxes use, whose far end gives each its part of them
 * (dial_client.h). */
enum {
    DIALER_CHANNEL_DIALS = 256,
    DIALER_SHARED_DIALS = 4096,
    DIALER_CHANNELS = 4096,
    DIALER_POLICIES = 1024
};

struct dialer_options {
    const char *servers; /* NULL: the host's; see resolve.h */
    /* before W_READY, to these files; NULL: not (tests) */
    int (*confine)(const struct landlock_place *places, size_t n, struct err *err);
    void (*ended)(void *arg); /* the control channel is gone; may be NULL */
    void *arg;
};

/* On a control channel to the parent, owned from here on. NULL when memory is out. */
struct dialer *dialer_new(struct event_base *base, int control_fd, const struct dialer_options *o);
void dialer_free(struct dialer *d);

/* The role's main: descriptor 3 is the control channel. Returns the exit status. */
int dialer_main(void);

#endif
