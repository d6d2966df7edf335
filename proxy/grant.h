/* One credentialed request in the injector: the grant checked against this process's own policy,
 * the secret fetched, *admitted* recorded, the slot filled, the origin spoken to. */
#ifndef DURWARD_GRANT_H
#define DURWARD_GRANT_H

#include "injector.h"
#include "stream.h"

struct grant;

struct grant_request {
    struct authority authority;
    uint32_t generation;
    char secret[128]; /* "" with client_credential: pass */
    char entry[16];
    char token[512];
    const char *sandbox;
    bool needs_token;
    struct head head; /* taken over */
};

struct grant *grant_new(struct injector *i, struct front front);
/* The front may be told fail before this returns; the grant is then gone. */
void grant_start(struct grant *g, struct grant_request *r);
struct back grant_back(struct grant *g);

#endif
