/* One request (a POST, or a GET without a body) to a token endpoint, as the vault sees it. The
 * vault has no sockets: whoever starts it brings the means (secrets/vault/vault_role.c), which
 * reach only the endpoints of the configuration. */
#ifndef DURWARD_TOKEN_FETCH_H
#define DURWARD_TOKEN_FETCH_H

#include "buf.h"

enum { TOKEN_FIELDS_MAX = 8 };

struct token_request {
    const char *method; /* "POST" unless said otherwise; constant */
    const char *url;    /* https://HOST[:PORT]/PATH; lives as long as its mint, or is */
    char *made;         /* this one's own; else NULL */
    struct {
        const char *name; /* lower case, constant */
        struct buf value; /* wiped */
    } fields[TOKEN_FIELDS_MAX];
    size_t n;
    struct buf body; /* wiped */
};

void token_request_init(struct token_request *r, const char *url);
void token_request_free(struct token_request *r);
/* A field whose value is to be written by the caller; NULL when there are too many. */
struct buf *token_request_field(struct token_request *r, const char *name);

/* status 0: there was no whole answer, why says so (constant text). */
typedef void (*token_fetch_fn)(void *arg, unsigned status, struct slice body, const char *why);

struct token_fetcher {
    void *self;
    /* The request is copied. fn runs later, once. NULL when it cannot be started. */
    void *(*start)(void *self, const struct token_request *r, token_fetch_fn fn, void *arg);
    void (*cancel)(void *fetch); /* fn will not run */
    /* The dialer's channel; the roots to verify endpoints with and the limits. Descriptors are
     * owned from here on. */
    void (*attach)(void *self, int dialer_fd, uint32_t channel);
    int (*roots)(void *self, int roots_fd, struct slice limits);
};

#endif
