/* Keeps captured values in a list, the last used first. Beyond CAPTURED_MAX the policy that has
 * most loses the one that it used longest ago, so that no policy's replies push out what others
 * have. captured_rewrite.c finds them in replies. */
#include "captured.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

/* ---- what is kept ---- */

/* What one policy has. It is there as long as it has something. */
struct share {
    size_t n;
    LIST_ENTRY(share) link;
    char policy[];
};

struct kept {
    char *owner, *secret;
    struct secret *value;
    struct share *share;
    TAILQ_ENTRY(kept) link;
};

struct captured {
    size_t n;
    LIST_HEAD(, share) shares;
    TAILQ_HEAD(kept_list, kept) list; /* last used first */
};

struct captured *captured_new(void)
{
    struct captured *c = calloc(1, sizeof *c);
    if (c) {
        LIST_INIT(&c->shares);
        TAILQ_INIT(&c->list);
    }
    return c;
}

static size_t policy_length(const char *owner)
{
    return strcspn(owner, "|");
}

static struct share *share_of(struct captured *c, const char *owner)
{
    struct share *s;
    size_t n = policy_length(owner);
    LIST_FOREACH(s, &c->shares, link)
    if (strncmp(s->policy, owner, n) == 0 && s->policy[n] == 0)
        return s;
    s = calloc(1, sizeof *s + n + 1);
    if (s == NULL)
        return NULL;
    memcpy(s->policy, owner, n);
    LIST_INSERT_HEAD(&c->shares, s, link);
    return s;
}

static void drop(struct captured *c, struct kept *k)
{
    TAILQ_REMOVE(&c->list, k, link);
    c->n--;
    if (--k->share->n == 0) {
        LIST_REMOVE(k->share, link);
        free(k->share);
    }
    secret_unref(k->value);
    free(k->owner);
    free(k->secret);
    free(k);
}

void captured_free(struct captured *c)
{
    if (c == NULL)
        return;
    while (!TAILQ_EMPTY(&c->list))
        drop(c, TAILQ_FIRST(&c->list));
    free(c);
}

void captured_forget(struct captured *c, const char *sandbox)
{
    struct kept *k, *next;
    for (k = TAILQ_FIRST(&c->list); k; k = next) {
        next = TAILQ_NEXT(k, link);
        const char *bar = strchr(k->owner, '|');
        if (bar && strcmp(bar + 1, sandbox) == 0)
            drop(c, k);
    }
}

static struct kept *find(struct captured *c, const char *owner, const char *secret)
{
    struct kept *k;
    TAILQ_FOREACH(k, &c->list, link)
    if (strcmp(k->owner, owner) == 0 && strcmp(k->secret, secret) == 0)
        break;
    if (k) {
        TAILQ_REMOVE(&c->list, k, link);
        TAILQ_INSERT_HEAD(&c->list, k, link);
    }
    return k;
}

struct secret *captured_get(struct captured *c, const char *owner, const char *secret)
{
    const struct kept *k = find(c, owner, secret);
    return k ? k->value : NULL;
}

static void make_room(struct captured *c)
{
    struct share *s, *most = LIST_FIRST(&c->shares);
    struct kept *k;
    LIST_FOREACH(s, &c->shares, link)
    if (s->n > most->n)
        most = s;
    TAILQ_FOREACH_REVERSE(k, &c->list, kept_list, link)
    if (k->share == most) {
        drop(c, k);
        return;
    }
}

int captured_put(struct captured *c, const char *owner, const char *secret, struct secret *value)
{
    struct kept *k = find(c, owner, secret);
    if (k) {
        secret_ref(value);
        secret_unref(k->value);
        k->value = value;
        return 0;
    }
    k = calloc(1, sizeof *k);
    struct share *share = k ? share_of(c, owner) : NULL;
    if (share == NULL) {
        free(k);
        return -1;
    }
    share->n++;
    k->share = share;
    k->owner = strdup(owner);
    k->secret = strdup(secret);
    k->value = secret_ref(value);
    TAILQ_INSERT_HEAD(&c->list, k, link);
    c->n++;
    if (k->owner == NULL || k->secret == NULL) {
        drop(c, k);
        return -1;
    }
    if (c->n > CAPTURED_MAX)
        make_room(c);
    return 0;
}

size_t captured_list(const struct captured *c, const char *policy, const char *secret,
                     struct secret *ret[CAPTURED_LIST_MAX])
{
    const struct kept *k;
    size_t n = 0, bytes = 0, prefix = strlen(policy);
    TAILQ_FOREACH(k, &c->list, link)
    {
        if (strncmp(k->owner, policy, prefix) != 0 || k->owner[prefix] != '|' ||
            strcmp(k->secret, secret) != 0)
            continue;
        bytes += secret_slice(k->value).n;
        if (n == CAPTURED_LIST_MAX || bytes > CAPTURED_LIST_BYTES)
            break;
        ret[n++] = k->value;
    }
    return n;
}
