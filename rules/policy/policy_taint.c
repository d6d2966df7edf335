/* Which secrets a host has seen, or may see: by its name alone, for what listens on another port of
 * it, or without TLS, is the same origin's. A pattern with a leading dot counts for every name
 * below it, whether or not a request ever went there: what has been matched so far is known to no
 * other process, and to none after a restart. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy_private.h"

_Static_assert((int)POLICY_TAINTS_MAX == (int)POLICY_SITES_MAX, "one list a site");

/* What signs, and a client certificate's key, stay in the vault: no origin sees them. */
static bool is_sent(const struct credential *c)
{
    switch (c->kind) {
    case CREDENTIAL_CERTIFICATE:
    case CREDENTIAL_HMAC:
    case CREDENTIAL_SIGNATURE:
    case CREDENTIAL_AZURE:
    case CREDENTIAL_SSH_KEY:
    case CREDENTIAL_SSH_SIGNING:
    case CREDENTIAL_SSH_CERTIFICATE:
    case CREDENTIAL_SSH_PASSWORD:
    case CREDENTIAL_POSTGRES:
    case CREDENTIAL_REDIS:
    case CREDENTIAL_MYSQL:
    case CREDENTIAL_SMTP:
    case CREDENTIAL_IMAP:
        return false;
    default:
        return true;
    }
}

static bool same(const struct taint *a, const struct taint *b)
{
    return strcmp(a->secret, b->secret) == 0 && a->aws == b->aws &&
           strcmp(a->user ? a->user : "", b->user ? b->user : "") == 0;
}

static void add(struct arena *a, struct site *first, const struct taint *what)
{
    struct taint *t = first->taint;
    while (t && !same(t, what))
        t = t->next;
    if (t == NULL) {
        t = arena_zalloc(a, 1, sizeof *t);
        *t = *what;
        t->next = first->taint;
        first->taint = t;
    }
    if (what->on_reflect > t->on_reflect)
        t->on_reflect = what->on_reflect;
}

void policy_taint_add(struct arena *a, struct site *first, const struct rule *r)
{
    const struct credential *c = r->credential;
    if (c && is_sent(c))
        add(a, first,
            &(struct taint){.secret = c->secret,
                            .user = c->kind == CREDENTIAL_BASIC ? c->user : NULL,
                            .captured = c->captured,
                            .aws = c->kind == CREDENTIAL_AWS,
                            .on_reflect = r->on_reflect});
    for (size_t i = 0; i < r->n_captures; i++)
        add(a, first, &(struct taint){.secret = r->captures[i].secret, .captured = true});
}

size_t policy_taints(const struct policy *p, const struct authority *a,
                     const struct taint *ret[POLICY_TAINTS_MAX])
{
    const struct image_site *sites[POLICY_SITES_MAX];
    size_t n = 0, found = policy_image_hosts(policy_image_of(p), a, sites);
    for (size_t i = 0; i < found; i++)
        if ((ret[n] = policy_taints_at(p, sites[i])) != NULL)
            n++;
    return n;
}

bool policy_tainted(const struct policy *p, const struct authority *a)
{
    const struct taint *lists[POLICY_TAINTS_MAX];
    return policy_taints(p, a, lists) > 0;
}

bool policy_by_injector(const struct policy *p, const struct rule *r, const struct authority *a)
{
    return r->credential || r->ask || rule_read_again(r) || policy_tainted(p, a);
}

unsigned policy_served(const struct policy *p, const struct authority *a, bool injector)
{
    unsigned plain = policy_tainted(p, a) == injector ? POLICY_HOST_PLAIN : 0;
    return injector ? plain | POLICY_HOST_CREDENTIALED | POLICY_HOST_ASK : plain;
}

enum { NAMES_MAX = 64 }; /* that are told */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *policy_taint_text(const struct policy *p, const struct authority *a, char *buf,
                              size_t size)
{
    const struct taint *lists[POLICY_TAINTS_MAX];
    const char *name[NAMES_MAX];
    size_t n = 0, at = 0, found = policy_taints(p, a, lists);
    for (size_t i = 0; i < found; i++)
        for (const struct taint *t = lists[i]; t && n < NAMES_MAX; t = t->next)
            name[n++] = t->secret;
    if (n > 0)
        qsort(name, n, sizeof *name, by_name);
    buf[0] = 0;
    for (size_t i = 0; i < n && at < size; i++)
        if (i == 0 || strcmp(name[i], name[i - 1]) != 0)
            at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? ", " : "", name[i]);
    return n ? buf : NULL;
}
