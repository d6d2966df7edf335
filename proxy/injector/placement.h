/* Where a credential goes into a request's head and body. All that the injector does with the slot;
 * injection.c calls it in this order: begin, (buffer the body), check, apply. */
#ifndef DURWARD_PLACEMENT_H
#define DURWARD_PLACEMENT_H

#include "aws.h"
#include "body_buffer.h"
#include "injector_channel.h"
#include "policy.h"
#include "signed.h"

#include <openssl/evp.h>

enum { PLACEMENT_BODY_MAX = 1024 * 1024 };

enum placement_body { PLACEMENT_NO_BODY = 0, PLACEMENT_JSON, PLACEMENT_FORM };

struct placement {
    const struct credential *credential;
    const struct credential *slot; /* of a header: the one of its places that is filled */
    const struct credential *also; /* and the other one, where a rule has both; else NULL */
    enum placement_body body;      /* in which its placeholders count */
    EVP_MD_CTX *passing; /* a body that the client hashed and that is not through yet, or NULL */
    uint64_t left;       /* of it, when it is counted */
    bool broken;         /* it is another body than it said */
    struct buf shown;    /* the path, where placeholders may be: "[placeholder]" for each */
    /* Large, and set up without clearing them whole but for the kinds that sign: */
    struct injector_channel_marks marks;
    struct aws_claim claim; /* of CREDENTIAL_AWS, and what is signed in its place: */
    struct aws_scope scope;
    char signed_names[AWS_SIGNED_MAX];
    char key_id[129];
    char signature[AWS_HEX + 1]; /* of the head: a body of chunks is chained to it */
    struct signed_text text;     /* of the kinds of signed.h */
};

/* Of no credential yet. */
void placement_init(struct placement *f);

/* Takes out of the head what a gate may have left in the slot. NULL, or the code to refuse with
 * (403). The credential must outlive f. */
const char *placement_begin(struct placement *f, const struct credential *c,
                            const struct injector_channel_marks *marks, struct head *h);
/* How long a body must be gathered first, at most; 0: not at all. */
size_t placement_body_limit(const struct placement *f, const struct head *h);
/* With the body, if it was gathered: NULL, or the code to refuse with (403). */
const char *placement_check(const struct placement *f, const struct head *h,
                            const struct body_buffer *body);
/* After the check: there is a place for the value. Else a captured one is not asked for. */
bool placement_wanted(const struct placement *f, const struct head *h,
                      const struct body_buffer *body);
/* The value into its place; a gathered body is replaced and the head's length set. -1: it cannot go
 * there (a byte that would end the field), or memory is out. */
int placement_apply(const struct placement *f, struct head *h, struct body_buffer *body,
                    struct slice value) WUNUSED;
/* For kinds that sign: `value` is what the vault tells of the key, for AWS "KEYID" or "KEYID
 * TOKEN". Sets the fields that are signed; f->scope is then what the vault is to sign for
 * f->key_id, or f->text what it is to sign, and placement_signed takes its answer. NULL, or the
 * code of the refusal. */
bool placement_signs(const struct placement *f);
const char *placement_prepare(struct placement *f, struct head *h, const struct authority *a,
                              struct body_buffer *body, struct slice value) WUNUSED;
int placement_signed(struct placement *f, struct head *h, struct slice signature) WUNUSED;
/* The body as it passes, and its end. False: it is not the one that was signed, and what is given
 * here must not go on; of a counted body that is said before its last bytes. */
bool placement_pass(struct placement *f, const void *p, size_t n);
bool placement_passed(struct placement *f);
void placement_free(struct placement *f);
/* The body is one of signed chunks, each to be signed anew as it passes. */
bool placement_chunks(const struct placement *f);
/* A placeholder may be in the path, or the query: it is no text to record. */
bool placement_hides_path(const struct placement *f);
/* The path as people may see it; n 0: in no way. */
struct slice placement_path(const struct placement *f, const struct head *h);
bool placement_hides_query(const struct placement *f);

#endif
