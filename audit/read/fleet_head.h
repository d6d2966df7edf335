/* What a host says to the others of its fleet about its audit log, in one signed line: how far its
 * log goes, the latest line of each host that it has seen, and one Merkle root over these (so that
 * whoever signs his own head signs those of all others), and which of the others' lines it doubts:
 *
 * durward-fleet-head/1 HOST KEY NUMBER ANEW SEQ HASH TIME ROOT SEEN DOUBTS SIGNATURE
 *
 * KEY: the first 16 hex digits of the public key. NUMBER: of the line, 1 for the first that the
 * host made. ANEW: 1 where its log is not the one of the line before. SEQ, HASH: of the last line
 * of its log. ROOT: RFC 9162's tree over SHA-256 of the lines in SEEN, zeros for none. SEEN:
 * "HOST:NUMBER:HASH,…" by name, the host's own line before among them, "-" for none. DOUBTS:
 * "HOST:NUMBER:WORD,…", or "-". The signature (Ed25519) is over all before the last blank. */
#ifndef DURWARD_FLEET_HEAD_H
#define DURWARD_FLEET_HEAD_H

#include "buf.h"
#include "chain.h"
#include "fleet_line.h"
#include "signing_key.h"
#include "timestamp.h"

enum { FLEET_DOUBTS_MAX = 8, FLEET_KEY_ID = 16 };

enum fleet_doubt_kind {
    DOUBT_MISSING = 1, /* it was there, or another host saw it, and the database has it no more */
    DOUBT_CHANGED,     /* what the database has in its place is another line */
    DOUBT_UNSIGNED,    /* and this one is not its host's */
    DOUBT_FORKED,      /* its host signed two of that number */
    DOUBT_KINDS
};

struct fleet_seen {
    char host[FLEET_LINE_NAME + 1];
    uint64_t number;
    unsigned char hash[CHAIN_HASH];
};

struct fleet_doubt {
    char host[FLEET_LINE_NAME + 1];
    uint64_t number;
    enum fleet_doubt_kind kind;
};

struct fleet_head {
    char host[FLEET_LINE_NAME + 1], key[FLEET_KEY_ID + 1];
    uint64_t number;
    bool anew;
    struct chain log;
    char time[TIMESTAMP_MAX];
    size_t n_seen, n_doubts;
    struct fleet_seen seen[FLEET_LINE_HOSTS]; /* by name */
    struct fleet_doubt doubt[FLEET_DOUBTS_MAX];
    unsigned char hash[CHAIN_HASH]; /* of the whole line */
};

const char *fleet_doubt_word(enum fleet_doubt_kind k);
bool fleet_host_ok(struct slice name);
void fleet_key_id(const struct signing_key *key, char id[FLEET_KEY_ID + 1]);
/* The root over what it has seen; zeros for nothing. */
int fleet_head_root(const struct fleet_head *h, unsigned char root[CHAIN_HASH]) WUNUSED;
/* Its line, signed, without a newline; sets key and hash. */
int fleet_head_make(struct fleet_head *h, const struct signing_key *key, struct buf *out) WUNUSED;
/* 0, or -1: it is none. Each line has one writing alone. Who signed it is not looked at. */
int fleet_head_parse(struct slice line, struct fleet_head *ret) WUNUSED;
/* Host and number alone, of a line that was read before. */
int fleet_head_peek(struct slice line, char host[FLEET_LINE_NAME + 1], uint64_t *number) WUNUSED;
bool fleet_head_signed_by(struct slice line, const struct signing_key *key);
/* What it has seen of that host; NULL: nothing. */
const struct fleet_seen *fleet_head_saw(const struct fleet_head *h, const char *host);

#endif
