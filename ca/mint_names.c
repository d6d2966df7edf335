/* Holds the signer's copies of policies and the names that each channel was given. A channel's own
 * names pass first, then reserved names are refused, then the policies decide. */
#include "mint_names.h"

#include "ipc.h"
#include "ipc_msg.h"
#include "peer.h"
#include "policy_message.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

enum { POLICIES_MAX = 1024, OWN_MAX = 8, RESERVED_MAX = 8 };

struct held {
    char name[PEER_NAME_MAX + 1];
    uint32_t generation;
    struct policy *policy;
    LIST_ENTRY(held) link;
};

struct names {
    size_t n;
    char host[OWN_MAX][HOST_TEXT_MAX];
};

struct mint_names {
    LIST_HEAD(, held) policies;
    size_t n_policies;
    struct names reserved;
};

struct mint_right {
    enum mint_scope scope;
    char policy[PEER_NAME_MAX + 1];
    struct names own;
};

_Static_assert((int)OWN_MAX == (int)RESERVED_MAX, "struct names is of both");

static bool has(const struct names *l, const char *host)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->host[i], host) == 0)
            return true;
    return false;
}

static int add(struct names *l, const char *host)
{
    size_t n = strlen(host);
    if (l->n == OWN_MAX || n == 0 || n >= sizeof l->host[0])
        return -1;
    memcpy(l->host[l->n++], host, n + 1);
    return 0;
}

/* ---- what all channels share ---- */

struct mint_names *mint_names_new(void)
{
    struct mint_names *n = calloc(1, sizeof *n);
    if (n)
        LIST_INIT(&n->policies);
    return n;
}

void mint_names_free(struct mint_names *n)
{
    struct held *h;
    while (n && (h = LIST_FIRST(&n->policies)) != NULL) {
        LIST_REMOVE(h, link);
        policy_free(h->policy);
        free(h);
    }
    free(n);
}

int mint_names_reserve(struct mint_names *n, const char *host, struct err *err)
{
    if (host == NULL || host[0] == 0)
        return 0;
    return add(&n->reserved, host) < 0 ? err_set(err, ERR_LIMIT, "too many names are reserved") : 0;
}

static struct held *find(const struct mint_names *n, const char *name)
{
    struct held *h;
    LIST_FOREACH(h, &n->policies, link)
    if (strcmp(h->name, name) == 0)
        return h;
    return NULL;
}

/* fd of what was told is closed. */
static int hold(struct mint_names *n, const struct policy_message *told, struct err *err)
{
    struct held *h = find(n, told->name);
    if (h && h->generation >= told->generation) {
        close(told->fd);
        return 0;
    }
    struct policy *fresh = policy_message_load(told, err);
    if (fresh == NULL)
        return -1;
    if (h == NULL && (n->n_policies == POLICIES_MAX || (h = calloc(1, sizeof *h)) == NULL)) {
        policy_free(fresh);
        return err_set(err, ERR_LIMIT, "too many policies");
    }
    if (h->policy == NULL) {
        memcpy(h->name, told->name, strlen(told->name) + 1);
        LIST_INSERT_HEAD(&n->policies, h, link);
        n->n_policies++;
    }
    policy_free(h->policy);
    h->policy = fresh;
    h->generation = told->generation;
    return 0;
}

int mint_names_policy(struct mint_names *n, struct msg *m, struct err *err)
{
    struct policy_message told;
    if (policy_message_get(m, &told) < 0)
        return -1;
    if (msg_end(m) < 0) {
        close(told.fd);
        return -1;
    }
    return hold(n, &told, err) < 0 ? 1 : 0;
}

/* ---- one channel ---- */

static int read_right(struct mint_right *r, struct slice extra)
{
    struct msg m;
    uint8_t scope;
    uint32_t n;
    msg_view(&m, 0, extra);
    if (msg_get_u8(&m, &scope) < 0 || scope == 0 || scope >= MINT_SCOPES ||
        msg_get_u32(&m, &n) < 0 || n > OWN_MAX)
        return -1;
    r->scope = (enum mint_scope)scope;
    for (uint32_t i = 0; i < n; i++) {
        char host[HOST_TEXT_MAX];
        if (msg_get_str(&m, host, sizeof host) < 0 || add(&r->own, host) < 0)
            return -1;
    }
    return msg_end(&m);
}

struct mint_right *mint_right_new(struct slice extra, const char *policy)
{
    struct mint_right *r = calloc(1, sizeof *r);
    bool named = policy[0] && strlen(policy) < sizeof r->policy;
    if (r == NULL || read_right(r, extra) < 0 || named != (r->scope == MINT_POLICY)) {
        free(r);
        return NULL;
    }
    memcpy(r->policy, policy, strlen(policy) + 1);
    return r;
}

void mint_right_free(struct mint_right *r)
{
    free(r);
}

enum mint_scope mint_right_scope(const struct mint_right *r)
{
    return r->scope;
}

/* That of MINT_OWN is "", which is nobody's. */
static bool holds(const struct mint_right *r, const struct mint_names *n,
                  const struct authority *host)
{
    const struct held *h;
    LIST_FOREACH(h, &n->policies, link)
    if ((r->scope == MINT_POLICIES || strcmp(h->name, r->policy) == 0) &&
        policy_serves_tls(h->policy, host))
        return true;
    return false;
}

int mint_right_check(const struct mint_right *r, const struct mint_names *n,
                     const struct authority *host, struct err *err)
{
    if (has(&r->own, host->host))
        return 0;
    if (has(&n->reserved, host->host))
        return err_set(err, ERR_DENIED, "the name is reserved");
    if (!holds(r, n, host))
        return err_set(err, ERR_DENIED, "no policy of this channel names the host");
    return 0;
}
