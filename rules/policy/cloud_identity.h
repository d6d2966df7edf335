/* Who a sandbox is to a cloud: what the metadata services at their well-known addresses say, which
 * its gate answers itself (`identity` of a policy). They give out placeholders of the policy's
 * secrets; what is real goes in on the way to the cloud, by the rules. */
#ifndef DURWARD_CLOUD_IDENTITY_H
#define DURWARD_CLOUD_IDENTITY_H

#include "arena.h"
#include "authority.h"
#include "err.h"
#include "node.h"

/* Where clouds have their metadata services: http, port 80. */
#define CLOUD_ADDRESS   "169.254.169.254" /* of an instance, whichever cloud's */
#define CLOUD_CONTAINER "169.254.170.2"   /* AWS: of a container */
#define CLOUD_GOOGLE    "metadata.google.internal"

enum { CLOUD_TOKENS_MAX = 32 };

/* `via`: which of its services the environment of the sandbox leads to. Both are answered. */
enum cloud_via { CLOUD_INSTANCE = 0, CLOUD_SERVICE };

/* A token that is for one audience or resource. */
struct cloud_token {
    const char *name; /* no slash at its end */
    const char *secret;
};

struct cloud_aws {
    const char *secret, *role, *region, *account; /* the last two may be "" */
    enum cloud_via via;
};

struct cloud_google {
    const char *secret, *project, *number, *email, *zone; /* number, zone may be "" */
    const char *scopes;                                   /* one a line, each with its newline */
    struct cloud_token ids[CLOUD_TOKENS_MAX];
    size_t n_ids;
};

struct cloud_azure {
    const char *client_id; /* may be "" */
    enum cloud_via via;
    struct cloud_token tokens[CLOUD_TOKENS_MAX];
    size_t n_tokens;
};

/* What is NULL the sandbox has no identity of. */
struct cloud_identity {
    const struct cloud_aws *aws;
    const struct cloud_google *google;
    const struct cloud_azure *azure;
};

/* secrets: as in rule_read. */
int cloud_identity_read(struct arena *a, const struct node *n, const json_t *secrets,
                        const struct cloud_identity **ret, struct err *err);
/* Its metadata service is there: http, port 80. c may be NULL: none is. */
bool cloud_identity_at(const struct cloud_identity *c, const struct authority *a);
/* The name among them that a resolver has to know. */
bool cloud_identity_names(const struct cloud_identity *c, const char *host);
/* The token for this audience or resource, with or without a slash at its end; NULL: none. */
const struct cloud_token *cloud_token_find(const struct cloud_token *list, size_t n,
                                           struct slice name);
/* The i-th secret that it gives placeholders of, and whether it signs (AWS); NULL past the end. */
const char *cloud_identity_secret(const struct cloud_identity *c, size_t i, bool *signs);
/* The i-th variable that leads the clouds' own libraries to it, and its value with
 * "{{placeholder NAME}}" still inside. False past the end. */
enum { CLOUD_VALUE_MAX = 256 };
bool cloud_identity_variable(const struct cloud_identity *c, size_t i, const char **name,
                             char value[CLOUD_VALUE_MAX]);

#endif
