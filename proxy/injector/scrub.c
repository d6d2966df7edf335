/* Builds the automaton and runs it over a stream. While little is matched, a table of four-byte
 * pieces lets the search skip bytes in which no form begins. */
#include "scrub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every form has at least WINDOW bytes. While less than NEAR bytes are matched, the GRAM bytes at
 * the end of the window that begins with them tell: if they stand in no form's first WINDOW bytes,
 * no form begins in the window before them, and the search goes on behind it. */
enum { WINDOW = SCRUB_VALUE_MIN, NGRAM = 4, NEAR = 8, NODES_MAX = 1 << 22 };
/* Of the n-grams' table: as many bits as keep chance hits rare, within what a cache holds. */
enum { NGRAM_LEAST = 16, NGRAM_MOST = 21, NGRAM_SPARSE = 32 };

struct node {
    uint32_t child, next; /* first child, next sibling; 0: none */
    uint32_t fail;        /* the longest proper suffix that begins a form */
    uint16_t depth;
    uint16_t found; /* length of the longest form that ends here; 0: none */
    uint16_t of;    /* whose that form is */
    unsigned char byte;
};

/* What stands for a secret. */
struct mark {
    char text[160]; /* "[REDACTED:name]" */
    size_t n;
};

struct scrub_set {
    unsigned refs;
    struct mark *mark;
    size_t marks, longest;
    uint32_t n;
    struct buf memory; /* of the nodes */
    struct node *node; /* [0] is the root */
    uint32_t root[256];
    unsigned ngram_shift; /* of a hash to as many bits as the table has */
    unsigned char *ngram;
};

/* Bytes that are to be replaced, counted from the first byte held; start < 0: its beginning has
 * passed already. */
struct run {
    int64_t start, end;
    size_t of;
};

struct scrub {
    struct scrub_set *set;
    uint32_t at; /* the automaton's state */
    struct buf hold, out;
    unsigned char early[SCRUB_EARLY]; /* what scrub_early let pass last */
    size_t early_n;
    struct run *run; /* in order, none overlapping */
    size_t runs, runs_cap;
    uint64_t hits;
};

/* ---- the automaton ---- */

static uint32_t ngram_hash(const struct scrub_set *s, const unsigned char *p)
{
    uint32_t v;
    memcpy(&v, p, NGRAM);
    return (v * UINT32_C(2654435761)) >> s->ngram_shift;
}

static bool ngram_known(const struct scrub_set *s, const unsigned char *p)
{
    uint32_t h = ngram_hash(s, p);
    return s->ngram[h >> 3] >> (h & 7) & 1;
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

static void insert(struct scrub_set *s, struct slice form, uint16_t of)
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
    if (s->node[at].found == 0) { /* two secrets may have a form in common */
        s->node[at].found = (uint16_t)form.n;
        s->node[at].of = of;
    }
    for (size_t i = 0; i + NGRAM <= WINDOW; i++) {
        uint32_t h = ngram_hash(s, p + i);
        s->ngram[h >> 3] |= (unsigned char)(1 << (h & 7));
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
            if (c->found == 0) {
                c->found = s->node[c->fail].found;
                c->of = s->node[c->fail].of;
            }
            queue[tail++] = k;
        }
    }
    free(queue); /* numbers of nodes: nothing of the value */
    return 0;
}

static void set_mark(struct mark *m, const char *name)
{
    snprintf(m->text, sizeof m->text, "[REDACTED:%.128s]", name);
    m->n = strlen(m->text);
    for (size_t i = 10; i + 1 < m->n; i++) /* it must fit a field, JSON, markup */
        if (!ascii_is_alnum(m->text[i]) && !strchr("-_.:", m->text[i]))
            m->text[i] = '_';
}

/* Room for all of it, and nothing in it yet. */
static int set_alloc(struct scrub_set *s, size_t marks, size_t nodes, size_t forms)
{
    unsigned bits = NGRAM_LEAST;
    while (bits < NGRAM_MOST && (size_t)1 << bits < forms * (WINDOW - NGRAM + 1) * NGRAM_SPARSE)
        bits++;
    s->ngram_shift = 32 - bits;
    s->ngram = calloc((size_t)1 << (bits - 3), 1);
    s->mark = calloc(marks + 1, sizeof *s->mark);
    buf_init_wiped(&s->memory, nodes * sizeof *s->node);
    s->node = (struct node *)(void *)buf_reserve(&s->memory, nodes * sizeof *s->node);
    if (s->ngram == NULL || s->mark == NULL || s->node == NULL)
        return -1;
    s->node[0] = (struct node){.child = 0};
    s->n = 1;
    return 0;
}

struct scrub_set *scrub_set_join(const struct scrub_part *part, size_t n)
{
    size_t nodes = 1, forms = 0;
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < part[k].forms->n; i++, forms++) {
            nodes += part[k].forms->form[i].n;
            if (part[k].forms->form[i].n > SCRUB_LONGEST || part[k].forms->form[i].n < WINDOW)
                return NULL;
        }
    struct scrub_set *s = nodes <= NODES_MAX && n <= SCRUB_PARTS_MAX ? calloc(1, sizeof *s) : NULL;
    if (s == NULL)
        return NULL;
    s->refs = 1;
    if (set_alloc(s, n, nodes, forms) < 0) {
        scrub_set_unref(s);
        return NULL;
    }
    for (s->marks = 0; s->marks < n; s->marks++) {
        const struct scrub_forms *f = part[s->marks].forms;
        set_mark(&s->mark[s->marks], part[s->marks].name);
        for (size_t i = 0; i < f->n; i++)
            insert(s, scrub_forms_get(f, i), (uint16_t)s->marks);
    }
    buf_commit(&s->memory, s->n * sizeof *s->node);
    if (link_nodes(s) < 0) {
        scrub_set_unref(s);
        return NULL;
    }
    return s;
}

struct scrub_set *scrub_set_new(const struct scrub_forms *f, const char *name)
{
    return f->n ? scrub_set_join(&(struct scrub_part){f, name}, 1) : NULL;
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
    if (s->ngram)
        explicit_bzero(s->ngram, (size_t)1 << (32 - s->ngram_shift - 3));
    free(s->ngram);
    free(s->mark);
    explicit_bzero(s, sizeof *s);
    free(s);
}

size_t scrub_set_longest(const struct scrub_set *s)
{
    return s->longest;
}

/* ---- searching ---- */

/* A form was found; it joins with those that it overlaps. */
static int found(struct scrub *s, int64_t start, int64_t end, size_t of)
{
    bool passed = false; /* one that it joins has begun to pass, and was counted */
    while (s->runs > 0 && s->run[s->runs - 1].end > start) {
        const struct run *joined = &s->run[--s->runs];
        if (joined->start < start) {
            start = joined->start;
            of = joined->of;
        }
        if (joined->end > end)
            end = joined->end;
        passed |= joined->start < 0;
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
    s->run[s->runs++] = (struct run){start, end, of};
    return 0;
}

/* in stands `base` bytes behind the first that is held. */
static int search(struct scrub *s, struct slice in, int64_t base)
{
    const struct scrub_set *set = s->set;
    const unsigned char *p = (const unsigned char *)in.p;
    uint32_t at = s->at;
    size_t i = 0;
    while (i < in.n) {
        size_t depth = set->node[at].depth;
        if (depth < NEAR && in.n - i >= WINDOW - depth &&
            !ngram_known(set, p + i + WINDOW - NGRAM - depth)) {
            i += WINDOW - NGRAM + 1 - depth;
            at = 0;
            continue;
        }
        at = step(set, at, p[i++]);
        uint16_t n = set->node[at].found;
        if (n > 0 && found(s, base + (int64_t)i - n, base + (int64_t)i, set->node[at].of) < 0)
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
        const struct mark *m = &set->mark[s->run[r].of];
        for (int64_t k = start < 0 ? 0 : start; k < end; k++)
            p[k] = k - start < (int64_t)m->n ? m->text[k - start] : '*';
    }
}

/* n bytes from the first held have passed. */
static void advance(struct scrub *s, size_t n)
{
    size_t kept = 0;
    if (n == 0)
        return;
    for (size_t r = 0; r < s->runs; r++) {
        struct run moved = {s->run[r].start - (int64_t)n, s->run[r].end - (int64_t)n, s->run[r].of};
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
    if (s->set->longest == 0 && s->runs == 0 && buf_len(&s->hold) == 0) {
        *out = in; /* there is nothing to look for */
        return 0;
    }
    if (in.n > SCRUB_FEED_MAX || search(s, in, (int64_t)buf_len(&s->hold)) < 0)
        return -1;
    size_t have = buf_len(&s->hold) + in.n, depth = s->set->node[s->at].depth;
    return pass(s, in, have > depth ? have - depth : 0, out);
}

int scrub_early(struct scrub *s, struct slice *out)
{
    size_t n = buf_len(&s->hold);
    *out = (struct slice){"", 0};
    if (n == 0 || n > SCRUB_EARLY)
        return 0;
    memcpy(s->early, buf_data(&s->hold), n);
    s->early_n = n;
    return pass(s, *out, n, out);
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
    buf_init_wiped(&s->hold, SCRUB_LONGEST);
    buf_init_wiped(&s->out, SCRUB_LONGEST + SCRUB_FEED_MAX);
    return s;
}

/* Of a hit that has begun to pass, the rest is written as it began. */
static size_t mark_like(const struct scrub_set *set, const struct mark *m)
{
    size_t i = 0;
    while (i < set->marks && strcmp(set->mark[i].text, m->text) != 0)
        i++;
    return i < set->marks ? i : 0;
}

int scrub_switch(struct scrub *s, struct scrub_set *to)
{
    struct scrub_set *from = s->set;
    size_t kept = 0, held = buf_len(&s->hold), depth = from->node[s->at].depth;
    size_t gone = depth > held ? s->early_n : 0; /* a form may have begun in what passed early */
    for (size_t r = 0; r < s->runs; r++)
        if (s->run[r].start < 0) { /* the others are found again */
            s->run[kept] = s->run[r];
            s->run[kept++].of = mark_like(to, &from->mark[s->run[r].of]);
        }
    s->runs = kept;
    s->set = scrub_set_ref(to);
    s->at = 0;
    scrub_set_unref(from);
    if (search(s, (struct slice){(const char *)s->early, gone}, -(int64_t)gone) < 0)
        return -1;
    return search(s, buf_slice(&s->hold), 0);
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
    int r = search(&s, (struct slice){p, n}, 0);
    if (r == 0)
        render(&s, p, n);
    free(s.run);
    return r < 0 ? -1 : (ssize_t)s.runs;
}
