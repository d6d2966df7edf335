/* One audit record, as a role writes it into its journal: typed fields, bounded, no JSON. The
 * logger checks every field, adds what only it may say (time of receipt, sandbox, policy, channel,
 * sequence, hash) and renders the JSON line.
 *
 * Journal form of a record: u32 length of the rest, u8 kind, u64 wall clock (ns since 1970), u64
 * counter (the id is "<channel>-<counter>"; several records of one exchange share it), then fields:
 * u8 field, u16 length, bytes; each at most once, none empty. Numbers are decimal text. Big-endian.
 * At most RECORD_MAX bytes in all; a text field that is longer than RECORD_FIELD_MAX, or than the
 * room that is left, is cut and the record gets "cut":true (the top bit of the kind). */
#ifndef DURWARD_RECORD_H
#define DURWARD_RECORD_H

#include "compiler.h"
#include "slice.h"

enum { RECORD_MAX = 8192, RECORD_FIELD_MAX = 2048 };

enum record_kind {
    RECORD_ADMITTED = 1, /* before the first upstream byte */
    RECORD_DENIED,
    RECORD_COMPLETED,
    RECORD_ABORTED,
    RECORD_CONNECTION,  /* the dialer: a connection it made or refused */
    RECORD_DNS,         /* a name and how often: counts per sandbox and target */
    RECORD_PACKET,      /* a refused packet, counted */
    RECORD_TLS_REFUSED, /* the sandbox's client refused our leaf, or a handshake was refused */
    RECORD_LIFECYCLE,   /* sandbox created, started, ended; daemon started, reloaded */
    RECORD_CHECKPOINT,  /* the logger's own: signs the lines before it (audit/read/checkpoint.h) */
    RECORD_OPENED,      /* an admitted request became a WebSocket */
    RECORD_PROGRESS,    /* how far a long exchange has come, each limits.progress_seconds */
    RECORD_BODY,        /* a piece of a body, where the rule asks for it */
    RECORD_GAP,         /* the logger's own: what retention took out here (audit/read/gap.h) */
    RECORD_KINDS
};

enum record_field {                /* JSON name in the comment; text unless said */
                    RF_CODE = 1,   /* "code": constant reason, e.g. "no_rule" */
                    RF_SCHEME,     /* "scheme" */
                    RF_AUTHORITY,  /* "authority": host[:port] */
                    RF_METHOD,     /* "method" */
                    RF_PATH,       /* "path": no query; secrets and placeholders never */
                    RF_QUERY,      /* "query": name=<len>&… */
                    RF_RULE,       /* "rule": text of the rule */
                    RF_CREDENTIAL, /* "credential": the secret's name */
                    RF_STATUS,     /* "status": number, of the reply sent to the sandbox */
                    RF_UP,         /* "bytes_up": number, request body */
                    RF_DOWN,       /* "bytes_down": number, reply body */
                    RF_ADDRESS,    /* "address": where it was dialled */
                    RF_MS,         /* "ms": number, duration */
                    RF_COUNT,      /* "count": number */
                    RF_TARGET,     /* "target": DNS name, "udp 8.8.8.8:53", … */
                    RF_DETAIL,     /* "detail": free text of ours, e.g. a certificate error */
                    RF_ENTRY,      /* "entry": transparent|connect|forward|socks5 */
                    RF_EVENT,      /* "event": for lifecycle */
                    RF_SANDBOX, /* "sandbox": only from a writer whose channel belongs to no sandbox
                                   (injector, dialer, controller); from another it ends the channel
                                 */
                    RF_POLICY,  /* "policy": likewise, from a channel that belongs to no policy */
                    RF_REQUEST, /* "request": the id of the request that a connection was made for
                                 */
                    RF_FIRST,   /* "first": number; checkpoint */
                    RF_ROOT,    /* "root": hex; checkpoint */
                    RF_SIGNATURE,     /* "signature": hex; checkpoint */
                    RF_VIA,           /* "via": the upstream proxy of a connection */
                    RF_MESSAGES_UP,   /* "messages_up": number, whole WebSocket messages */
                    RF_MESSAGES_DOWN, /* "messages_down": likewise; bytes_up and bytes_down are
                                         then the payload of frames */
                    RF_CLOSE,    /* "close": number, code of the first close frame, either way */
                    RF_QUEUE_MS, /* "queue_ms": number, from the head until an origin is asked
                                    for: budget, approval, secret, a body that is read first */
                    RF_DIAL_MS,  /* "dial_ms": number, until there is a connection; absent when one
                                    was kept, as is */
                    RF_TLS_MS,   /* "tls_ms": number, the handshake with the origin */
                    RF_FIRST_MS, /* "first_ms": number, from then until the reply's head */
                    RF_TLS,      /* "tls": version and cipher of that handshake */
                    RF_PROTOCOL, /* "protocol": h2 or http/1.1, towards the origin */
                    RF_OFFSET,   /* "offset": number, of the piece of a body */
                    RF_BODY,     /* "body": its bytes */
                    RF_LAST,     /* "last": hex; gap */
                    RF_NODES,    /* "nodes": gap */
                    RF_BYTES,    /* "bytes": "unknown", from the logger only: of an end that it made
                                    itself, for a writer that died */
                    RF_REPAIRED, /* "repaired": what was mended of the reply's head */
                    RF_MODEL,    /* "model": of a call to one, as it was asked for */
                    RF_TOKENS_IN, /* "tokens_in": number, as the reply says; those of the next two
                                     among them */
                    RF_TOKENS_CACHED,  /* "tokens_cached": number, read from the provider's cache */
                    RF_TOKENS_WRITTEN, /* "tokens_cache_write": number, written into it */
                    RF_TOKENS_OUT,     /* "tokens_out": number */
                    RF_COST,    /* "cost_millionths": number, by the prices of the configuration */
                    RF_USAGE,   /* "usage": "unknown", where the reply does not say it: budgets are
                                   charged the estimate */
                    RF_USER,    /* "user": at the server of a broker */
                    RF_COMMAND, /* "command": that the server runs, as the sandbox wrote it */
                    RF_EXIT,    /* "exit_status": number, of that command */
                    RF_STATEMENTS, /* "statements": fingerprints of a session's, how often each */
                    RF_PATTERNS,   /* "patterns": what detectors found in the request's body, or in
                                      what came out, how often each; never the match */
                    RF_KEY,  /* "key_fingerprint": of the one that signs, as ssh-add shows it */
                    RF_HASH, /* "signed_hash": of what is signed, "sha512:" and hex */
                    RF_KUBERNETES, /* "kubernetes": verb, resource, namespace and name */
                    RF_FIELDS
};

struct record {
    enum record_kind kind;
    uint64_t counter; /* 0: the journal gives the next one */
    size_t n;
    uint64_t has; /* bits of the fields that are there */
    bool cut;
    unsigned char body[RECORD_MAX];
};

void record_init(struct record *r, enum record_kind kind, uint64_t counter);
/* Empty values, a second value of the same field, and text that is no number in a number's place
 * are left out. */
void record_put(struct record *r, enum record_field f, struct slice v);
void record_put_str(struct record *r, enum record_field f, const char *v);
void record_put_u64(struct record *r, enum record_field f, uint64_t v); /* at most INT64_MAX */
const char *record_kind_name(enum record_kind k);                       /* "admitted" … */
const char *record_field_name(enum record_field f);                     /* JSON name */
bool record_field_is_number(enum record_field f);

/* Serialise into out (RECORD_MAX + 32 bytes suffice); returns the size, 0 when out is too small. */
size_t record_encode(const struct record *r, uint64_t wall_ns, unsigned char *out, size_t size);

struct record_view; /* the logger's reading side: audit/write/record_read.h */

#endif
