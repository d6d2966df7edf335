/* Keeps each host's lines by number, in arrays that are thinned when they are long. */
#include "witness.h"

#include <stdlib.h>
#include <string.h>

/* What all lines of the file may take (fleet_file.h), were each as long as its hosts allow. */
enum { KEEP_BYTES = 2 << 20, LINE_BYTES = 450, SEEN_BYTES = 150, TWINS_MAX = 16 };

struct doubt {
    uint64_t number;
    enum fleet_doubt_kind kind; /* 0: the place is free */
    bool again;                 /* since all was looked at */
};

struct host {
    char name[FLEET_LINE_NAME + 1];
    struct signing_key *key;
    struct witness_known *known;
    size_t n, room, twins; /* twins: of a number that another one has */
    struct fleet_head *latest;
    struct doubt doubt[WITNESS_DOUBTS];
    /* the highest number that another host has seen of it: whose word that is, and when */
    uint64_t told, told_ns, told_wrong; /* told_wrong: told with another hash than ours */
    unsigned char told_hash[CHAIN_HASH];
    char told_by[FLEET_LINE_NAME + 1];
};

struct witness {
    size_t n;
    struct host host[FLEET_LINE_HOSTS]; /* by name */
};

struct witness *witness_new(void)
{
    return calloc(1, sizeof(struct witness));
}

void witness_free(struct witness *w)
{
    for (size_t i = 0; w && i < w->n; i++) {
        signing_key_free(w->host[i].key);
        free(w->host[i].known);
        free(w->host[i].latest);
    }
    free(w);
}

int witness_add(struct witness *w, const char *name, const unsigned char raw[CHAIN_HASH],
                struct err *err)
{
    size_t at = 0;
    if (w->n == FLEET_LINE_HOSTS || !fleet_host_ok(slice_str(name)) ||
        witness_find(w, name) != SIZE_MAX)
        return err_set(err, ERR_PARSE, "'%s' cannot be one more host of the fleet", name);
    struct signing_key *key = signing_key_from_raw(raw, err);
    if (key == NULL)
        return -1;
    while (at < w->n && strcmp(w->host[at].name, name) < 0)
        at++;
    memmove(&w->host[at + 1], &w->host[at], (w->n - at) * sizeof w->host[0]);
    memset(&w->host[at], 0, sizeof w->host[at]);
    memcpy(w->host[at].name, name, strlen(name));
    w->host[at].key = key;
    w->n++;
    return 0;
}

size_t witness_hosts(const struct witness *w)
{
    return w->n;
}

const char *witness_name(const struct witness *w, size_t host)
{
    return w->host[host].name;
}

const struct signing_key *witness_key(const struct witness *w, size_t host)
{
    return w->host[host].key;
}

size_t witness_find(const struct witness *w, const char *name)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->host[i].name, name) == 0)
            return i;
    return SIZE_MAX;
}

const struct fleet_head *witness_latest(const struct witness *w, size_t host)
{
    return w->host[host].latest;
}

const struct witness_known *witness_known(const struct witness *w, size_t host, size_t *n)
{
    *n = w->host[host].n;
    return w->host[host].known;
}

/* ---- what is kept ---- */

uint64_t witness_keep(const struct witness *w)
{
    uint64_t n = w->n ? w->n : 1, keep = KEEP_BYTES / (n * (LINE_BYTES + SEEN_BYTES * n));
    return keep < WITNESS_KEEP_MIN ? WITNESS_KEEP_MIN : keep > FLEET_KEEP ? FLEET_KEEP : keep;
}

/* The latest all; of those before, up to twice as far back, each second one, and so on. */
bool witness_keeps(uint64_t keep, uint64_t number, uint64_t latest)
{
    uint64_t age = latest > number ? latest - number : 0;
    unsigned even = number ? (unsigned)__builtin_ctzll(number) : 0;
    return age >> even < keep;
}

static uint64_t latest_number(const struct host *h)
{
    return h->n ? h->known[h->n - 1].number : 0;
}

static void thin(const struct witness *w, struct host *h)
{
    uint64_t latest = latest_number(h);
    size_t kept = 0;
    for (size_t i = 0; i < h->n; i++)
        if (witness_keeps(witness_keep(w), h->known[i].number, latest))
            h->known[kept++] = h->known[i];
    h->n = kept;
}

/* The first of this number or a later one. */
static size_t place(const struct host *h, uint64_t number)
{
    size_t at = h->n;
    while (at > 0 && h->known[at - 1].number >= number)
        at--;
    return at;
}

static int insert(const struct witness *w, struct host *h, const struct witness_known *k)
{
    const size_t most = WITNESS_KNOWN_FACTOR * witness_keep(w);
    if (h->n >= most)
        thin(w, h);
    if (h->n == h->room) {
        size_t room = h->room ? 2 * h->room : 64;
        void *grown = h->n >= most ? NULL : realloc(h->known, room * sizeof *h->known);
        if (grown == NULL)
            return -1;
        h->known = grown;
        h->room = room;
    }
    size_t at = place(h, k->number);
    memmove(&h->known[at + 1], &h->known[at], (h->n - at) * sizeof *h->known);
    h->known[at] = *k;
    h->n++;
    return 0;
}

/* ---- taking a line ---- */

static uint64_t when(const struct fleet_head *head)
{
    uint64_t ns = 0;
    return timestamp_parse(head->time, 0, &ns, NULL) == 0 ? ns : 0;
}

/* What it says of another host's line: is it ours? */
static void note_seen(struct host *h, const struct fleet_seen *s, const struct fleet_head *by)
{
    size_t at = place(h, s->number);
    bool known = at < h->n && h->known[at].number == s->number, same = false;
    for (; at < h->n && h->known[at].number == s->number; at++)
        same |= memcmp(h->known[at].hash, s->hash, CHAIN_HASH) == 0;
    if (known && !same)
        h->told_wrong = s->number;
    if (s->number <= h->told)
        return;
    h->told = s->number;
    h->told_ns = when(by);
    memcpy(h->told_hash, s->hash, CHAIN_HASH);
    memcpy(h->told_by, by->host, sizeof h->told_by);
}

static int keep_latest(struct host *h, const struct fleet_head *head)
{
    if (h->latest && head->number < h->latest->number)
        return 0;
    if (h->latest == NULL && (h->latest = malloc(sizeof *h->latest)) == NULL)
        return -1;
    *h->latest = *head;
    return 0;
}

static enum witness_taken take_signed(struct witness *w, struct host *h,
                                      const struct fleet_head *head)
{
    size_t at = place(h, head->number);
    bool twin = at < h->n && h->known[at].number == head->number;
    for (size_t i = at; i < h->n && h->known[i].number == head->number; i++)
        if (memcmp(h->known[i].hash, head->hash, CHAIN_HASH) == 0)
            return WITNESS_KNOWN;
    if (twin && h->twins == TWINS_MAX)
        return WITNESS_FULL;
    if (!twin && !witness_keeps(witness_keep(w), head->number, latest_number(h)))
        return WITNESS_KNOWN; /* so old that it was let go, or would be */
    struct witness_known k = {
        .number = head->number, .anew = head->anew, .log = head->log, .ns = when(head)};
    memcpy(k.hash, head->hash, CHAIN_HASH);
    const struct fleet_seen *own = fleet_head_saw(head, head->host);
    if (own)
        memcpy(k.before, own->hash, CHAIN_HASH);
    if (insert(w, h, &k) < 0 || keep_latest(h, head) < 0)
        return WITNESS_FULL;
    h->twins += twin;
    if (!twin && head->number == h->told && memcmp(h->told_hash, head->hash, CHAIN_HASH) != 0)
        h->told_wrong = head->number;
    for (size_t i = 0; i < head->n_seen; i++) {
        size_t other = witness_find(w, head->seen[i].host);
        if (other != SIZE_MAX && &w->host[other] != h)
            note_seen(&w->host[other], &head->seen[i], head);
    }
    return twin ? WITNESS_FORKED : WITNESS_NEW;
}

enum witness_taken witness_take(struct witness *w, struct slice line, bool check,
                                struct fleet_head *head)
{
    if (fleet_head_parse(line, head) < 0)
        return WITNESS_MALFORMED;
    size_t i = witness_find(w, head->host);
    if (i == SIZE_MAX)
        return WITNESS_STRANGER;
    if (check && !fleet_head_signed_by(line, w->host[i].key))
        return WITNESS_UNSIGNED;
    return take_signed(w, &w->host[i], head);
}

uint64_t witness_heard(const struct witness *w, size_t host)
{
    const struct host *h = &w->host[host];
    uint64_t own = h->latest ? when(h->latest) : 0;
    return h->latest && h->told >= h->latest->number && h->told_ns < own ? h->told_ns : own;
}

bool witness_misses(const struct witness *w, size_t host, size_t by, uint64_t ns, uint64_t *number)
{
    const struct host *h = &w->host[host];
    const struct fleet_head *other = w->host[by].latest;
    if (other == NULL || by == host)
        return false;
    const struct fleet_seen *seen = fleet_head_saw(other, h->name);
    *number = seen ? seen->number : 0;
    size_t at = place(h, *number + 1);
    return at < h->n && when(other) > h->known[at].ns + ns;
}

/* ---- what is wrong ---- */

struct telling {
    witness_fault_fn fn;
    void *arg;
    size_t host;
};

static void tell(const struct telling *t, enum witness_fault_kind kind, uint64_t number,
                 uint64_t last, const char *by)
{
    struct witness_fault f = {kind, number, last, by};
    t->fn(t->arg, t->host, &f);
}

/* Of two that stand side by side. */
static void tell_pair(const struct telling *t, const struct witness_known *a,
                      const struct witness_known *b)
{
    if (b->number == a->number) {
        tell(t, FAULT_FORKED, b->number, 0, NULL);
        return;
    }
    if (b->number == a->number + 1 && memcmp(b->before, a->hash, CHAIN_HASH) != 0)
        tell(t, FAULT_FORKED, a->number, 0, NULL);
    if (b->log.seq < a->log.seq ||
        (b->log.seq == a->log.seq && memcmp(b->log.hash, a->log.hash, CHAIN_HASH) != 0))
        tell(t, FAULT_BACK, b->number, 0, NULL);
}

void witness_faults(const struct witness *w, size_t host, witness_fault_fn fn, void *arg)
{
    const struct host *h = &w->host[host];
    const struct telling t = {fn, arg, host};
    uint64_t latest = latest_number(h), keep = witness_keep(w);
    uint64_t next = latest > keep ? latest - keep + 1 : 1; /* must be there */
    if (h->n == 0)
        tell(&t, FAULT_NONE, 0, 0, NULL);
    for (size_t i = 0; i < h->n; i++) {
        const struct witness_known *k = &h->known[i];
        if (k->number > next)
            tell(&t, FAULT_MISSING, next, k->number - 1, NULL);
        if (k->number >= next)
            next = k->number + 1;
        if (i > 0)
            tell_pair(&t, k - 1, k);
        if (k->anew)
            tell(&t, FAULT_ANEW, k->number, 0, NULL);
    }
    if (h->told > latest)
        tell(&t, FAULT_UNSEEN, h->told, 0, h->told_by);
    if (h->told_wrong)
        tell(&t, FAULT_FORKED, h->told_wrong, 0, NULL);
}

/* ---- doubts ---- */

/* What the database rightly has no more is nothing to doubt. */
static bool is_over(const struct host *h, const struct doubt *d)
{
    return d->number + FLEET_KEEP <= latest_number(h);
}

void witness_doubt(struct witness *w, size_t host, uint64_t number, enum fleet_doubt_kind kind)
{
    struct host *h = &w->host[host];
    struct doubt *at = NULL;
    for (size_t i = 0; i < WITNESS_DOUBTS; i++) {
        struct doubt *d = &h->doubt[i];
        if (d->kind && d->number == number) {
            d->kind = kind;
            d->again = true;
            return;
        }
        if (d->kind == 0 || is_over(h, d))
            at = d;
    }
    if (at)
        *at = (struct doubt){number, kind, true};
}

void witness_undoubt(struct witness *w, size_t host, uint64_t number)
{
    for (size_t i = 0; i < WITNESS_DOUBTS; i++)
        if (w->host[host].doubt[i].number == number)
            w->host[host].doubt[i].kind = 0;
}

void witness_settle(struct witness *w, size_t host)
{
    for (size_t i = 0; i < WITNESS_DOUBTS; i++) {
        struct doubt *d = &w->host[host].doubt[i];
        if (!d->again)
            d->kind = 0;
        d->again = false;
    }
}

/* Of one host: the doubt of this number, counted from 0, if it has so many. */
struct saying {
    struct fleet_doubt *to;
    const char *host;
    size_t want, n;
};

static void count_doubt(struct saying *s, uint64_t number, enum fleet_doubt_kind kind)
{
    if (s->n++ != s->want)
        return;
    memset(s->to, 0, sizeof *s->to);
    memcpy(s->to->host, s->host, strlen(s->host));
    s->to->number = number;
    s->to->kind = kind;
}

static void count_fault(void *arg, size_t host UNUSED, const struct witness_fault *f)
{
    if (f->kind == FAULT_MISSING || f->kind == FAULT_UNSEEN)
        count_doubt(arg, f->number, DOUBT_MISSING);
    if (f->kind == FAULT_FORKED)
        count_doubt(arg, f->number, DOUBT_FORKED);
}

static bool nth_doubt(const struct witness *w, size_t host, size_t want, struct fleet_doubt *to)
{
    const struct host *h = &w->host[host];
    struct saying s = {to, h->name, want, 0};
    for (size_t k = 0; k < WITNESS_DOUBTS; k++)
        if (h->doubt[k].kind && !is_over(h, &h->doubt[k]))
            count_doubt(&s, h->doubt[k].number, h->doubt[k].kind);
    witness_faults(w, host, count_fault, &s);
    return s.n > want;
}

/* One of each host before a second of any, so that none fills the line by itself. */
static void say_doubts(const struct witness *w, struct fleet_head *to)
{
    bool more = true;
    for (size_t want = 0; more && want < FLEET_DOUBTS_MAX; want++) {
        more = false;
        for (size_t i = 0; i < w->n && to->n_doubts < FLEET_DOUBTS_MAX; i++)
            if (nth_doubt(w, i, want, &to->doubt[to->n_doubts])) {
                to->n_doubts++;
                more = true;
            }
    }
}

void witness_say(const struct witness *w, struct fleet_head *to)
{
    to->n_seen = to->n_doubts = 0;
    for (size_t i = 0; i < w->n; i++) {
        const struct host *h = &w->host[i];
        if (h->latest == NULL)
            continue;
        struct fleet_seen *seen = &to->seen[to->n_seen++];
        memset(seen, 0, sizeof *seen);
        memcpy(seen->host, h->name, sizeof seen->host);
        seen->number = h->latest->number;
        memcpy(seen->hash, h->latest->hash, CHAIN_HASH);
    }
    say_doubts(w, to);
}
