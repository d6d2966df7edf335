/* Credentials that are a signature over a text made of the request: generic HMAC, HTTP message
 * signatures (RFC 9421), Azure Storage's SharedKey. The injector writes the text, the vault signs
 * it (secrets/vault/text_sign.h), the injector puts the signature into its fields. */
#ifndef DURWARD_SIGNED_H
#define DURWARD_SIGNED_H

#include "authority.h"
#include "http_head.h"
#include "policy.h"

enum {
    SIGNED_TEXT_MAX = 60 * 1024,       /* the text, and a body that is part of it */
    SIGNED_BODY_MAX = 8 * 1024 * 1024, /* a body that is hashed into it */
};

struct signed_text {
    struct buf text;    /* wiped */
    char timestamp[64]; /* seconds.milliseconds of the signature's moment */
    char date[40];      /* the same as IMF-fixdate (RFC 9110 5.6.7) */
    char nonce[33];     /* hexadecimal */
    char hash[65];      /* of the body, hexadecimal */
    char params[2200];  /* SIGNATURE: the value of @signature-params; AZURE: the account */
};

bool signed_kind(const struct credential *c);
/* How long a body must be gathered, at most; 0: it is not part of the text. */
size_t signed_body_limit(const struct credential *c);
/* Sets the fields that are signed too and writes the text. told: what the vault says of the key.
 * NULL, or the code to refuse with. */
const char *signed_prepare(struct signed_text *s, const struct credential *c, struct head *h,
                           const struct authority *a, struct slice body, struct slice told,
                           int64_t now_ms) WUNUSED;
int signed_finish(const struct signed_text *s, const struct credential *c, struct head *h,
                  struct slice signature) WUNUSED;
void signed_free(struct signed_text *s);

#endif
