/* One request of a role's own to an endpoint of the configuration, for processes that can open no
 * connection by themselves: a descriptor from the dialer, whose policy for this channel is those
 * endpoints, TLS with the endpoint verified, one request, an answer of at most 64 KiB. Of the vault
 * (token endpoints) and the exporter. */
#ifndef DURWARD_FETCH_H
#define DURWARD_FETCH_H

#include "dial_client.h"
#include "origin.h"
#include "token_fetch.h"

enum { FETCH_REPLY_MAX = 64 * 1024 };

struct fetch_means {
    struct dial_client *dial;
    struct limits limits;
    struct origin_env env; /* without roots nothing can be asked: they and the limits come later */
    const char *word;      /* begins the ids that the dialer records */
    uint32_t last;
};

/* Everything that needs files is made here, before the role is confined. -1: out of memory. */
int fetch_means_init(struct fetch_means *m, struct event_base *base, const char *word, bool wipe);
/* roots_fd is taken. limits: a struct limits. */
int fetch_means_roots(struct fetch_means *m, int roots_fd, struct slice limits, struct err *err);
void fetch_means_done(struct fetch_means *m);

/* As of struct token_fetcher; self is a struct fetch_means. Also http:// URLs, in clear. */
void *fetch_start(void *self, const struct token_request *r, token_fetch_fn fn, void *arg);
void fetch_cancel(void *fetch);

#endif
