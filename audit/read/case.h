/* A case: some records of a log, each with the proof that it stands there, as one JSON object that
 * is checked without the log.
 *
 *   {"durward_case":1, "checkpoints":[line,...],
 *    "records":[{"line", "checkpoint": which of them, "path":[{"side","hash"},...]},...],
 *    "unsigned":[line,...]}
 *
 * "unsigned" are the newest records, which no checkpoint covered when the case was made: nothing
 * proves them. That records are in it shows that they stand in the log; that others are not shows
 * nothing. */
#ifndef DURWARD_CASE_H
#define DURWARD_CASE_H

#include "err.h"
#include "signing_key.h"

#include <jansson.h>

enum { CASE_RECORDS_MAX = 20000 };

/* Of the records with these seqs, ascending. NULL with err: the log is damaged, or has not all. */
json_t *case_make(int dirfd, const uint64_t *seq, size_t n, struct err *err);

struct case_result {
    uint64_t records; /* proven */
    uint64_t not_signed;
};

/* 0: every record but the unsigned ones is proven, in the log's order. -1 with err. */
int case_check(const json_t *c, const struct signing_key *key, struct case_result *ret,
               struct err *err);

#endif
