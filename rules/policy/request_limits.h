/* The bounds of what clients and origins may send and how long they may take, as every role knows
 * them; rules/compile/limits.c reads them. */
#ifndef DURWARD_REQUEST_LIMITS_H
#define DURWARD_REQUEST_LIMITS_H

/* Every cap and time-out. Units in the names; all documented in durward.yaml(5). */
struct limits {
    unsigned connections;      /* open client connections of a listener */
    unsigned mints;            /* new leaf certificates a second and gate */
    unsigned head_bytes;       /* request or reply head */
    unsigned headers;          /* fields in a head */
    unsigned target_bytes;     /* request target */
    unsigned head_seconds;     /* to receive a whole head, and for a TLS handshake */
    unsigned idle_seconds;     /* keep-alive idle towards the sandbox; also no progress in a body */
    unsigned tunnel_seconds;   /* nothing either way in a WebSocket */
    unsigned progress_seconds; /* between the progress records of a long exchange */
    unsigned dial_seconds;     /* resolve + connect + TLS to the origin */
    unsigned reply_seconds;    /* from the end of the request to the reply head */
    unsigned pool_idle_seconds; /* an idle upstream connection is kept so long */
    unsigned pool;              /* idle upstream connections of a gate or injector */
    unsigned approval_seconds;  /* a request that an ask rule holds is denied after */
    unsigned approvals;         /* requests of a sandbox that are held at a time */
    unsigned names;             /* synthetic DNS names of a sandbox */
};

#endif
