/* W_BIND, parent → gate, once (a second ends the gate): what it is the gate of.
 *
 * Fields in order:
 *   mode:u8 (enum gate_mode), sandbox:str, tag_key:bytes(32), token_public:bytes (32 or empty)
 *   n × policy: name:str generation:u32           and one fd each: the policy's JSON in a memfd
 *   n × (placeholder:str, secret:str)
 *   n × (host:str, index:u32)                     synthetic names that a former gate had
 *   n × listener: kind:u8 (enum listener_kind) port:u32 name:str    and one fd each
 * Descriptors: all policies', then all listeners'. Channels to other roles come before it, each by
 * a W_PEER with `policy` set for dialer and injector channels. The gate answers W_BOUND when it
 * listens, which is not before its journal is there. */
#ifndef DURWARD_BIND_H
#define DURWARD_BIND_H

#include "compiler.h"

enum gate_mode {
    GATE_SPARE = 0,
    GATE_LOCAL,  /* one local sandbox: the listeners say who it is */
    GATE_BOUND,  /* a `listen` entry with a policy */
    GATE_TOKEN,  /* a `listen` entry whose clients show a token */
    GATE_PORTER, /* the listener of previews, which hands each connection on (proxy/gate/porter.h)
                  */
};

/* The kinds of listening sockets and packet sockets a gate may be given. */
enum listener_kind {
    LISTENER_TCP4 = 1, /* transparent: every TCP port where nf_tables serves, else the one named */
    LISTENER_TCP6,
    LISTENER_DNS_UDP4,
    LISTENER_DNS_UDP6,
    LISTENER_DNS_TCP4,
    LISTENER_DNS_TCP6,
    LISTENER_NFLOG,        /* our end of the packet log (controller/net/packets.h) */
    LISTENER_REMOTE_HTTP,  /* an operator's `listen` entry */
    LISTENER_REMOTE_HTTPS, /* the same in TLS; `name` is what its certificate is for */
    LISTENER_FORWARDED,    /* one with `forwarded`; in TLS if it has a name. After a W_FORWARDED */
    LISTENER_PORTER,       /* of GATE_PORTER alone */
};

#endif
