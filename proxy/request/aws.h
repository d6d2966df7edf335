/* AWS Signature Version 4 on the way through: what a client claims to have signed with its
 * placeholder, and the canonical request that is signed in its place. The gate lifts presigned
 * queries into fields and checks whose placeholder it is; the injector writes the canonical request
 * and the vault signs it (secrets/proto/aws_sign.h). */
#ifndef DURWARD_AWS_H
#define DURWARD_AWS_H

#include "authority.h"
#include "aws_chunks.h"
#include "aws_sign.h"
#include "http_head.h"
#include "policy.h"

enum { AWS_BODY_MAX = 8 * 1024 * 1024, AWS_SIGNED_MAX = 4096 };

enum aws_payload {
    AWS_HASHED = 1, /* by us, of the body that is gathered */
    AWS_CLAIMED,    /* by the client: held to it as the body passes */
    AWS_AS_SAID,    /* a word that S3 takes for "not signed" */
    AWS_CHUNKS,     /* chunks that are signed one by one as they pass (aws_upload.h) */
};

struct aws_claim {
    struct slice key_id; /* into the head */
    char region[AWS_SCOPE_MAX + 1], service[AWS_SCOPE_MAX + 1];
    char signed_names[AWS_SIGNED_MAX]; /* "host;x-amz-date" */
    enum aws_payload payload;
    char hash[AWS_HEX + 1];          /* CLAIMED: of the body; AS_SAID, CHUNKS: the word */
    uint64_t decoded;                /* CHUNKS: bytes of data */
    char trailer[AWS_TRAILER_NAMES]; /* CHUNKS: names of its fields; "": there is none */
};

/* A presigned query becomes fields, so that one form is left. NULL or a code to refuse with. */
const char *aws_lift(struct head *h);
/* What the one Authorization field says, or, without one, the rule. NULL or a code. */
const char *aws_claim(const struct head *h, const struct credential *c, struct aws_claim *ret);
/* Take off what is written anew. */
void aws_strip(struct head *h);

/* Set the fields that are signed and hash the canonical request: what the vault is to sign. body:
 * the gathered one, or empty. token: of the session, or empty. -1: too many fields, no memory. */
int aws_prepare(struct head *h, const struct authority *a, const struct aws_claim *claim,
                struct slice body, struct slice token, int64_t now, struct aws_scope *ret,
                char signed_names[AWS_SIGNED_MAX]) WUNUSED;
int aws_finish(struct head *h, const struct aws_scope *s, const char *signed_names,
               struct slice key_id, struct slice signature) WUNUSED;
/* The canonical request itself, for tests. */
int aws_canonical(struct buf *out, const struct head *h, const struct authority *a,
                  const char *service, const char *names, const char *payload,
                  char signed_names[AWS_SIGNED_MAX]) WUNUSED;

#endif
