/* Keeps the list sorted by id and finds an id by halving it; when it is full, or out of memory, the
 * floor rises instead, which refuses more and never less. */
#include "revoked.h"

#include "wire.h"

#include "token.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct entry {
    char id[TOKEN_NAME_MAX + 1];
    uint64_t expires;
};

struct revoked {
    struct entry *list; /* in the order of their ids */
    size_t n, cap;
    uint64_t floor; /* tokens that expire up to then are refused, whoever's */
    uint64_t until; /* us of CLOCK_BOOTTIME; 0: for ever */
};

struct revoked *revoked_new(void)
{
    return calloc(1, sizeof(struct revoked));
}

void revoked_free(struct revoked *r)
{
    if (r)
        free(r->list);
    free(r);
}

size_t revoked_count(const struct revoked *r)
{
    return r->n;
}

/* Where the id is, or would be. */
static size_t place(const struct revoked *r, const char *id, bool *found)
{
    size_t from = 0, to = r->n;
    *found = false;
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        int order = strcmp(r->list[mid].id, id);
        if (order == 0) {
            *found = true;
            return mid;
        }
        if (order < 0)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

bool revoked_has(const struct revoked *r, const char *id, uint64_t expires)
{
    bool found;
    if (r == NULL)
        return false;
    if (expires <= r->floor)
        return true;
    place(r, id, &found);
    return found;
}

void revoked_until(struct revoked *r, uint64_t us)
{
    r->until = us;
}

uint64_t revoked_end(const struct revoked *r)
{
    return r ? r->until : 0;
}

/* By the clock that nobody sets, and which goes on while the host sleeps. */
bool revoked_stale(const struct revoked *r)
{
    struct timespec ts;
    if (r == NULL || r->until == 0)
        return false;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000 >= r->until;
}

const char *revoked_why(const struct revoked *r, const char *id, uint64_t expires)
{
    if (revoked_has(r, id, expires))
        return "token_revoked";
    return revoked_stale(r) ? "fleet_unread" : NULL;
}

void revoked_raise(struct revoked *r, uint64_t to)
{
    if (to > r->floor)
        r->floor = to;
}

/* The clock may be put back again, to when they were good. */
static void forget_expired(struct revoked *r, uint64_t now)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->n; i++)
        if (r->list[i].expires > now)
            r->list[kept++] = r->list[i];
        else
            revoked_raise(r, r->list[i].expires);
    r->n = kept;
}

static bool grow(struct revoked *r)
{
    if (r->n < r->cap)
        return true;
    size_t cap = r->cap ? r->cap * 2 : 64;
    struct entry *list = cap <= REVOKED_MAX ? realloc(r->list, cap * sizeof *list) : NULL;
    if (list == NULL)
        return false;
    r->list = list;
    r->cap = cap;
    return true;
}

void revoked_add(struct revoked *r, const char *id, uint64_t expires, uint64_t now)
{
    bool found;
    if (r->n == r->cap && r->n >= REVOKED_REMEMBERED)
        forget_expired(r, now);
    size_t at = place(r, id, &found);
    if (found) {
        if (r->list[at].expires < expires)
            r->list[at].expires = expires;
        return;
    }
    if (strlen(id) > TOKEN_NAME_MAX || !grow(r)) {
        revoked_raise(r, expires);
        return;
    }
    memmove(&r->list[at + 1], &r->list[at], (r->n - at) * sizeof r->list[0]);
    memcpy(r->list[at].id, id, strlen(id) + 1);
    r->list[at].expires = expires;
    r->n++;
}

void revoked_merge(struct revoked *r, const struct revoked *other, uint64_t now)
{
    for (size_t i = 0; i < other->n; i++)
        revoked_add(r, other->list[i].id, other->list[i].expires, now);
    revoked_raise(r, other->floor);
}

size_t revoked_put(const struct revoked *r, size_t from, struct msg *m)
{
    size_t n = from < r->n ? r->n - from : 0;
    if (n > REVOKED_IN_MESSAGE)
        n = REVOKED_IN_MESSAGE;
    msg_put_u64(m, r->floor);
    msg_put_u32(m, (uint32_t)n);
    for (size_t i = from; i < from + n; i++) {
        msg_put_str(m, r->list[i].id);
        msg_put_u64(m, r->list[i].expires);
    }
    return n;
}

int revoked_get(struct revoked *r, struct msg *m, uint64_t now)
{
    uint64_t floor, expires;
    uint32_t n;
    char id[TOKEN_NAME_MAX + 1];
    if (msg_get_u64(m, &floor) < 0 || msg_get_u32(m, &n) < 0 || n > REVOKED_IN_MESSAGE)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        if (msg_get_str(m, id, sizeof id) < 0 || msg_get_u64(m, &expires) < 0 || id[0] == 0)
            return -1;
        revoked_add(r, id, expires, now);
    }
    revoked_raise(r, floor);
    return msg_end(m);
}

int revoked_taken(struct ipc *parent, struct msg *m)
{
    struct msg answer;
    uint32_t n;
    if (msg_get_u32(m, &n) < 0 || msg_end(m) < 0)
        return -1;
    msg_init(&answer, W_REVOKED_TAKEN);
    msg_put_u32(&answer, n);
    return ipc_send(parent, &answer);
}

int revoked_take(struct revoked **r, struct msg *m, uint64_t now)
{
    if (*r == NULL)
        *r = revoked_new();
    return *r ? revoked_get(*r, m, now) : -1;
}

int revoked_take_until(struct revoked **r, struct msg *m)
{
    uint64_t us;
    if (msg_get_u64(m, &us) < 0 || msg_end(m) < 0 || us == 0)
        return -1;
    if (*r == NULL)
        *r = revoked_new();
    if (*r == NULL)
        return -1;
    revoked_until(*r, us);
    return 0;
}
