/* What the injector and the vault say of new secrets in replies (W_CAPTURE): what is looked for, in
 * which form the reply is, and how much of it there may be. */
#ifndef DURWARD_CAPTURE_H
#define DURWARD_CAPTURE_H

#include "secret.h"

enum {
    CAPTURED_VALUE_MAX = 16384,   /* bytes */
    CAPTURED_VALUE_MIN = 8,       /* what is shorter is no secret and stays */
    CAPTURED_REPLY_MAX = 65536,   /* of a reply that is looked into */
    CAPTURED_WRITTEN_MAX = 65536, /* of the same with placeholders: it goes to a gate at once */
    CAPTURED_FIELDS_MAX = 8,
    CAPTURED_PARTS = 3, /* of an AWS key: its id, secret and token */
    CAPTURED_VALUES_MAX = CAPTURED_FIELDS_MAX * CAPTURED_PARTS,
    CAPTURED_LIST_MAX = 256,         /* of one name, told together, */
    CAPTURED_LIST_BYTES = 32 * 1024, /* and their bytes */
    CAPTURED_DEPTH_MAX = 32,         /* of elements */
};

/* What is looked for, and what is found. */
struct captured_field {
    const char *path;        /* rules/policy/policy.h: struct capture */
    const char *placeholder; /* of this sandbox for the secret */
    const char *secret;
    struct secret *value; /* found, or NULL; the caller unrefs */
};

/* Captured secrets that stay with a home (`keep: home`), as its file and messages have them: a line
 * "NAME BASE64" for each. */
enum { CAPTURED_KEPT_MAX = 64 * 1024 };

/* What a reply is written in, as its Content-Type says. */
enum captured_form { CAPTURED_JSON = 0, CAPTURED_FORM, CAPTURED_XML };

#endif
