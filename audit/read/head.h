/* DIR/head: how far the log goes, signed. One line of JSON with exactly these keys:
 * {"file":"audit-….jsonl","seq":N,"hash":"hex","time":"…","signature":"hex"}. The signature
 * (Ed25519) is over "durward audit head 1\n" and the four values, each followed by a newline.
 * Rewritten as a whole (temporary file, rename), so a reader sees the old or the new one. */
#ifndef DURWARD_HEAD_H
#define DURWARD_HEAD_H

#include "chain.h"
#include "err.h"
#include "log_dir.h"
#include "signing_key.h"
#include "timestamp.h"

struct head {
    char file[LOG_NAME_MAX];
    struct chain tip; /* seq and hash of the last signed line */
    char time[TIMESTAMP_MAX];
};

int head_write(int dirfd, const struct head *h, const struct signing_key *key, struct err *err);
/* 1: there and good. 0: there is none. -1 with err: malformed, or not signed by this key. */
int head_read(int dirfd, struct head *ret, const struct signing_key *key, struct err *err);

#endif
