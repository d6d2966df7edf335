/* Counts points by sandbox or by address, in a book. A count that is paid off goes when somebody
 * else joins; when the book is full, newcomers share one count, which is nobody's who is in it. */
#include "faults.h"

#include "authority.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Of those who found the book full. No sandbox and no address has this name. */
static const char beyond[] = "*";

static void settle(struct faults *p, uint64_t now)
{
    uint64_t back = now > p->at ? (now - p->at) * FAULTS_SECOND / 1000 : 0;
    if (back == 0)
        return; /* less than a point: `at` stays, so that it is not lost */
    faults_give(p, back > FAULTS_MAX * 4 ? FAULTS_MAX * 4 : (unsigned)back);
    p->at = now;
}

static void sweep(struct faults_book *b, uint64_t now)
{
    struct faults *p, *next;
    for (p = LIST_FIRST(&b->owners); p; p = next) {
        next = LIST_NEXT(p, link);
        if (p->refs == 0 && faults_fresh(p, now)) {
            LIST_REMOVE(p, link);
            b->n--;
            free(p);
        }
    }
}

void faults_key_of(char key[FAULTS_KEY], const struct sockaddr *from)
{
    struct authority a;
    struct sockaddr_in6 net;
    key[0] = 0;
    if (from->sa_family == AF_INET6) {
        memcpy(&net, from, sizeof net);
        if (!IN6_IS_ADDR_V4MAPPED(&net.sin6_addr))
            memset(&net.sin6_addr.s6_addr[8], 0, 8);
        from = (const struct sockaddr *)&net;
    }
    if (authority_from_sockaddr(&a, SCHEME_HTTPS, from) == 0)
        snprintf(key, FAULTS_KEY, "%.*s", FAULTS_KEY - 1, a.host);
}

static struct faults *find(const struct faults_book *b, const char *key)
{
    struct faults *p;
    LIST_FOREACH(p, &b->owners, link)
    if (faults_are_of(p, key))
        return p;
    return NULL;
}

struct faults *faults_join(struct faults_book *b, const char *key, uint64_t now)
{
    sweep(b, now);
    struct faults *p = find(b, key);
    if (p == NULL && b->n >= FAULTS_OWNERS) {
        key = beyond;
        p = find(b, key);
    }
    if (p == NULL) {
        p = calloc(1, sizeof *p);
        if (p == NULL)
            return NULL;
        snprintf(p->key, sizeof p->key, "%s", key);
        p->at = now;
        LIST_INSERT_HEAD(&b->owners, p, link);
        b->n++;
    }
    p->refs++;
    return p;
}

/* Whoever leaves with a debt is remembered until it is paid. */
void faults_leave(struct faults *p)
{
    if (p)
        p->refs--;
}

bool faults_are_of(const struct faults *p, const char *key)
{
    return strncmp(p->key, key, FAULTS_KEY - 1) == 0;
}

void faults_book_free(struct faults_book *b)
{
    while (!LIST_EMPTY(&b->owners)) {
        struct faults *p = LIST_FIRST(&b->owners);
        LIST_REMOVE(p, link);
        free(p);
    }
    b->n = 0;
}

bool faults_take(struct faults *p, unsigned n, uint64_t now)
{
    settle(p, now);
    if (p->used == 0)
        p->at = now;
    p->used = p->used > FAULTS_MAX * 2 ? p->used : p->used + n;
    return p->used > FAULTS_MAX;
}

void faults_give(struct faults *p, unsigned n)
{
    p->used = p->used > n ? p->used - n : 0;
}

bool faults_slow(struct faults *p, uint64_t now)
{
    settle(p, now);
    return p->used > FAULTS_SLOW;
}

bool faults_fresh(struct faults *p, uint64_t now)
{
    settle(p, now);
    return p->used == 0;
}

uint64_t faults_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
