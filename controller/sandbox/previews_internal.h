/* Shared by previews.c (names, tokens, the porter) and preview_inside.c (connections inside). */
#ifndef DURWARD_PREVIEWS_INTERNAL_H
#define DURWARD_PREVIEWS_INTERNAL_H

#include <sys/queue.h>

#include "previews.h"

enum { PREVIEW_HASH = 32 };

struct preview_kind {
    const char *prefix;
    bool once;
    int64_t life;     /* seconds until it is good no more */
    unsigned seconds; /* that who shows it may look */
};

struct preview_token {
    unsigned char hash[PREVIEW_HASH];
    char sandbox[SANDBOX_ID_MAX + 1], service[WIRE_SERVICE_MAX + 1];
    bool once;
    unsigned port; /* inside, then */
    int64_t ends;  /* by CLOCK_BOOTTIME */
    unsigned seconds;
    TAILQ_ENTRY(preview_token) link;
};

struct previews {
    struct controller *controller;
    struct ipc *porter; /* NULL: the listener's gate is not there */
    size_t n_tokens;
    unsigned n_callers;
    TAILQ_HEAD(, preview_token) tokens; /* the oldest first */
    LIST_HEAD(, preview_caller) callers;
    LIST_HEAD(, preview_inside) insides;
};

/* Whose preview that host is, which of its services, at which port inside. NULL: nobody's. */
struct managed_sandbox *previews_named(struct controller *c, const char *host,
                                       char service[WIRE_SERVICE_MAX + 1], unsigned *port);
void previews_inside_free(struct previews *p);

#endif
