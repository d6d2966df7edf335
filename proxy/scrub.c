#include "scrub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every form has at least WINDOW bytes. While less than NEAR bytes are matched, the GRAM bytes at
 * the end of the window that begins with them tell: if they stand in no form's first WINDOW bytes,
 * no form begins in the window before them, and the search goes on behind it. */
enum { WINDOW = SCRUB_VALUE_MIN, GRAM = 4, NEAR = 8, GRAM_BITS = 1 << 16, NODES_MAX = 1 << 20 };

struct node {
    uint32_t child, next; /* first child, next sibling; 0: none */
    uint32_t fail;        /* the longest proper suffix that begins a form */
    uint16_t depth;
    uint16_t found; /* length of the longest form that ends here; 0: none */
    unsigned char byte;
};

struct scrub_set {
    unsigned refs;
    char text[160]; /* "[REDACTED:name]" */
    size_t text_n, longest;
    uint32_t n;
    struct buf memory; /* of the nodes */
    struct node *node; /* [0] is the root */
    uint32_t root[256];
    unsigned char gram[GRAM_BITS / 8];
};

/* Bytes that are to be replaced, counted from the first byte held; start < 0: its beginning has
 * passed already. */
struct run {
    int64_t start, end;
};

struct scrub {
    struct scrub_set *set;
    uint32_t at; /* the automaton's state */
    struct buf hold, out;
    struct run *run; /* in order, none overlapping */
    size_t runs, runs_cap;
    uint64_t hits;
};

/* ---- the automaton ---- */

static uint32_t gram_hash(const unsigned char *p)
{
    uint32_t v;
    memcpy(&v, p, GRAM);
    return (v * UINT32_C(2654435761)) >> 16;
}

static bool gram_known(const struct scrub_set *s, const unsigned char *p)
{
    uint32_t h = gram_hash(p);
    return s->gram[h >> 3] >> (h & 7) & 1;
}

static uint32_t child_of(const struct scrub_set *s, uint32_t at, unsigned char c)
{
    if (at == 0)
        return s->root[c];
    uint32_t k = s->node[at].child;
    while (k && s->node[k].byte != c)
        k = s->node[k].next;
    return k;
}

static void insert(struct scrub_set *s, struct slice form)
{
    const unsigned char *p = (const unsigned char *)form.p;
    uint32_t at = 0;
    for (size_t i = 0; i < form.n; i++) {
        uint32_t k = child_of(s, at, p[i]);
        if (k == 0) {
            k = s->n++;
            s->node[k] = (struct node){.next = s->node[at].child, .byte = p[i]};
            s->node[k].depth = (uint16_t)(i + 1);
            s->node[at].child = k;
            if (at == 0)
                s->root[p[i]] = k;
        }
        at = k;
    }
    s->node[at].found = (uint16_t)form.n;
    for (size_t i = 0; i + GRAM <= WINDOW; i++) {
        uint32_t h = gram_hash(p + i);
        s->gram[h >> 3] |= (unsigned char)(1 << (h & 7));
    }
    if (form.n > s->longest)
        s->longest = form.n;
}

static uint32_t step(const struct scrub_set *s, uint32_t at, unsigned char c)
{
    for (;;) {
        uint32_t k = child_of(s, at, c);
        if (k || at == 0)
            return k;
        at = s->node[at].fail;
    }
}

/* Level by level, so that what a fail link needs is there. */
static int link_nodes(struct scrub_set *s)
{
    uint32_t *queue = calloc(s->n, sizeof *queue);
    if (queue == NULL)
        return -1;
    size_t head = 0, tail = 1; /* the root */
    while (head < tail) {
        uint32_t at = queue[head++];
        for (uint32_t k = s->node[at].child; k; k = s->node[k].next) {
            struct node *c = &s->node[k];
            c->fail = at ? step(s, s->node[at].fail, c->byte) : 0;
            if (c->found == 0)
                c->found = s->node[c->fail].found;
            queue[tail++] = k;
        }
    }
    free(queue); /* numbers of nodes: nothing of the value */
    return 0;
}

struct scrub_set *scrub_set_new(const struct scrub_forms *f, const char *name)
{
    size_t nodes = 1;
    for (size_t i = 0; i < f->n; i++) {
        nodes += f->form[i].n;
        if (f->form[i].n > SCRUB_LONGEST || f->form[i].n < WINDOW)
            return NULL;
    }
    struct scrub_set *s = f->n && nodes <= NODES_MAX ? calloc(1, sizeof *s) : NULL;
    if (s == NULL)
        return NULL;
    s->refs = 1;
    snprintf(s->text, sizeof s->text, "[REDACTED:%.128s]", name);
    s->text_n = strlen(s->text);
    for (size_t i = 10; i + 1 < s->text_n; i++) /* it must fit a field, JSON, markup */
        if (!ascii_is_alnum(s->text[i]) && !strchr("-_.:", s->text[i]))
            s->text[i] = '_';
    buf_init_wiped(&s->memory, nodes * sizeof *s->node);
    s->node = (struct node *)(void *)buf_reserve(&s->memory, nodes * sizeof *s->node);
    if (s->node == NULL) {
        scrub_set_unref(s);
        return NULL;
    }
    s->node[0] = (struct node){.child = 0};
    s->n = 1;
    for (size_t i = 0; i < f->n; i++)
        insert(s, scrub_forms_get(f, i));
    buf_commit(&s->memory, s->n * sizeof *s->node);
    if (link_nodes(s) < 0) {
        scrub_set_unref(s);
        return NULL;
    }
    return s;
}

struct scrub_set *scrub_set_ref(struct scrub_set *s)
{
    s->refs++;
    return s;
}

void scrub_set_unref(struct scrub_set *s)
{
    if (s == NULL || --s->refs > 0)
        return;
    buf_free(&s->memory);
    explicit_bzero(s, sizeof *s);
    free(s);
}

size_t scrub_set_longest(const struct scrub_set *s)
{
    return s->longest;
}

/* ---- searching ---- */

/* A form was found; it joins with those that it overlaps. */
static int found(struct scrub *s, int64_t start, int64_t end)
{
    bool passed = false; /* one that it joins has begun to pass, and was counted */
    while (s->runs > 0 && s->run[s->runs - 1].end > start) {
        if (s->run[--s->runs].start < start)
            start = s->run[s->runs].start;
        passed |= s->run[s->runs].start < 0;
    }
    if (start < 0 && !passed)
        s->hits++; /* it began in what scrub_early let pass */
    if (s->runs == s->runs_cap) {
        size_t cap = s->runs_cap ? s->runs_cap * 2 : 8;
        struct run *more = reallocarray(s->run, cap, sizeof *more);
        if (more == NULL)
            return -1;
        s->run = more;
        s->runs_cap = cap;
    }
    s->run[s->runs++] = (struct run){start, end};
    return 0;
}

/* in stands behind what is held. */
static int search(struct scrub *s, struct slice in)
{
    const struct scrub_set *set = s->set;
    const unsigned char *p = (const unsigned char *)in.p;
    int64_t base = (int64_t)buf_len(&s->hold);
    uint32_t at = s->at;
    size_t i = 0;
    while (i < in.n) {
        size_t depth = set->node[at].depth;
        if (depth < NEAR && in.n - i >= WINDOW - depth &&
            !gram_known(set, p + i + WINDOW - GRAM - depth)) {
            i += WINDOW - GRAM + 1 - depth;
            at = 0;
            continue;
        }
        at = step(set, at, p[i++]);
        uint16_t n = set->node[at].found;
        if (n > 0 && found(s, base + (int64_t)i - n, base + (int64_t)i) < 0)
            return -1;
        while (at && set->node[at].child == 0) /* nothing longer begins with these bytes */
            at = set->node[at].fail;
    }
    s->at = at;
    return 0;
}

/* ---- replacing ---- */

/* The part of each run that lies in the n bytes from the first held. */
static void render(const struct scrub *s, char *p, size_t n)
{
    const struct scrub_set *set = s->set;
    for (size_t r = 0; r < s->runs && s->run[r].start < (int64_t)n; r++) {
        int64_t start = s->run[r].start;
        int64_t end = s->run[r].end < (int64_t)n ? s->run[r].end : (int64_t)n;
        for (int64_t k = start < 0 ? 0 : start; k < end; k++)
            p[k] = k - start < (int64_t)set->text_n ? set->text[k - start] : '*';
    }
}

/* n bytes from the first held have passed. */
static void advance(struct scrub *s, size_t n)
{
    size_t kept = 0;
    if (n == 0)
        return;
    for (size_t r = 0; r < s->runs; r++) {
        struct run moved = {s->run[r].start - (int64_t)n, s->run[r].end - (int64_t)n};
        if (s->run[r].start >= 0 && moved.start < 0)
            s->hits++;
        if (moved.end > 0)
            s->run[kept++] = moved;
    }
    s->runs = kept;
}

/* Let n bytes of what is held and in pass, and hold the rest. */
static int pass(struct scrub *s, struct slice in, size_t n, struct slice *out)
{
    size_t held = buf_len(&s->hold);
    if (held == 0 && (s->runs == 0 || s->run[0].start >= (int64_t)n)) {
        *out = (struct slice){in.p, n};
    } else {
        size_t first = n < held ? n : held;
        buf_clear(&s->out);
        unsigned char *to = buf_reserve(&s->out, n ? n : 1);
        if (to == NULL)
            return -1;
        if (first)
            memcpy(to, buf_data(&s->hold), first);
        if (n > first)
            memcpy(to + first, in.p, n - first);
        buf_commit(&s->out, n);
        render(s, (char *)to, n);
        *out = (struct slice){(const char *)to, n};
    }
    size_t of_in = n > held ? n - held : 0;
    buf_drain(&s->hold, n < held ? n : held);
    advance(s, n);
    return buf_append(&s->hold, in.p + of_in, in.n - of_in);
}

int scrub_feed(struct scrub *s, struct slice in, struct slice *out)
{
    *out = (struct slice){"", 0};
    if (in.n == 0)
        return 0;
    if (in.n > SCRUB_FEED_MAX || search(s, in) < 0)
        return -1;
    size_t have = buf_len(&s->hold) + in.n, depth = s->set->node[s->at].depth;
    return pass(s, in, have > depth ? have - depth : 0, out);
}

int scrub_early(struct scrub *s, struct slice *out)
{
    size_t n = buf_len(&s->hold);
    *out = (struct slice){"", 0};
    return n > 0 && n <= SCRUB_EARLY ? pass(s, *out, n, out) : 0;
}

int scrub_end(struct scrub *s, struct slice *out)
{
    s->at = 0;
    *out = (struct slice){"", 0};
    size_t n = buf_len(&s->hold);
    return n ? pass(s, *out, n, out) : 0;
}

const struct scrub_set *scrub_set(const struct scrub *s)
{
    return s->set;
}

size_t scrub_held(const struct scrub *s)
{
    return buf_len(&s->hold);
}

uint64_t scrub_hits(const struct scrub *s)
{
    return s->hits;
}

struct scrub *scrub_new(struct scrub_set *set)
{
    struct scrub *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->set = scrub_set_ref(set);
    buf_init_wiped(&s->hold, set->longest);
    buf_init_wiped(&s->out, set->longest + SCRUB_FEED_MAX);
    return s;
}

void scrub_free(struct scrub *s)
{
    if (s == NULL)
        return;
    buf_free(&s->hold);
    buf_free(&s->out);
    free(s->run);
    scrub_set_unref(s->set);
    free(s);
}

ssize_t scrub_whole(const struct scrub_set *set, char *p, size_t n)
{
    struct scrub s = {.set = (struct scrub_set *)set};
    int r = search(&s, (struct slice){p, n});
    if (r == 0)
        render(&s, p, n);
    free(s.run);
    return r < 0 ? -1 : (ssize_t)s.runs;
}
