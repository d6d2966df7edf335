/* Collects the leaves and subtrees from the checkpoint before a record to the one after it and
 * works out the paths of all records that are wanted there, or checks a path without the log. From
 * one record to the next it goes by the index, and reads the whole log only when the signed root
 * says that something was missing. */
#include "proof.h"

#include "checkpoint.h"
#include "gap.h"
#include "line_reader.h"
#include "log_dir.h"
#include "log_walk.h"
#include "merkle.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LEAVES_MAX = 1 << 26,
    NEAR = 20000, /* a record this far behind a checkpoint is read up to, not looked for */
};

enum { TAKE_ON = 0, TAKE_DONE = 1, TAKE_FAR = 2 };

/* A record that was met and waits for the checkpoint that covers it. */
struct waiting {
    uint64_t seq;
    char *line;
};

struct search {
    const uint64_t *seq; /* ascending */
    size_t n_seq, met;
    struct merkle_part *part; /* of the lines since the last checkpoint */
    size_t n, room;
    uint64_t leaves;
    struct waiting *waiting;
    struct merkle_want *want; /* as many */
    size_t n_waiting;
    proof_fn fn;
    void *arg;
    bool ended; /* fn said so: reading again is no help */
    /* by the index */
    bool walks;
    bool open;       /* a checkpoint was read, or the log from its beginning */
    uint64_t target; /* looked for */
    size_t told;     /* of seq */
};

static int add_part(struct search *s, unsigned level, const unsigned char hash[CHAIN_HASH])
{
    if (s->n == s->room) {
        size_t room = s->room ? s->room * 2 : 1024;
        void *grown = room > LEAVES_MAX ? NULL : realloc(s->part, room * sizeof *s->part);
        if (grown == NULL)
            return -1;
        s->part = grown;
        s->room = room;
    }
    struct merkle_part *p = &s->part[s->n++];
    *p = (struct merkle_part){.at = s->leaves, .level = level};
    memcpy(p->hash, hash, CHAIN_HASH);
    s->leaves += UINT64_C(1) << level;
    return 0;
}

static int add_leaf(struct search *s, struct slice line)
{
    unsigned char hash[CHAIN_HASH];
    return chain_hash(line, hash) < 0 || merkle_leaf(hash, hash) < 0 ? -1 : add_part(s, 0, hash);
}

/* What retention took out is in the tree all the same. */
static int add_gap(struct search *s, struct slice line)
{
    struct gap *g = malloc(sizeof *g);
    int r = g && gap_parse(line, g) == 0 ? 0 : -1;
    for (size_t i = 0; r == 0 && i < g->n; i++)
        r = add_part(s, g->node[i].level, g->node[i].hash);
    free(g);
    return r;
}

static bool is_wanted(const struct search *s, uint64_t seq)
{
    size_t from = 0, to = s->n_seq;
    if (s->walks) /* in turn: what was told may be read again */
        return s->met < s->n_seq && s->seq[s->met] == seq;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (s->seq[middle] < seq)
            from = middle + 1;
        else
            to = middle;
    }
    return from < s->n_seq && s->seq[from] == seq;
}

static int keep(struct search *s, uint64_t seq, struct slice line)
{
    if (s->met == s->n_seq)
        return -1; /* the log has a number twice */
    struct waiting *w = &s->waiting[s->n_waiting];
    s->want[s->n_waiting].index = s->leaves;
    *w = (struct waiting){seq, slice_dup(line)};
    if (w->line == NULL)
        return -1;
    s->n_waiting++;
    s->met++;
    return 0;
}

/* What was read between is all that the checkpoint covers. */
static bool leads_to_root(const struct search *s, struct slice checkpoint)
{
    struct checkpoint c;
    unsigned char hash[CHAIN_HASH], root[CHAIN_HASH];
    const struct merkle_want *w = &s->want[0]; /* the tree is one: any leaf tells */
    return checkpoint_parse(checkpoint, &c) == 0 &&
           chain_hash(slice_str(s->waiting[0].line), hash) == 0 &&
           merkle_climb(hash, w->path, w->n, root) == 0 && memcmp(root, c.root, CHAIN_HASH) == 0;
}

/* All that wait are told, with this checkpoint or without any. */
static int tell(struct search *s, struct slice checkpoint)
{
    int r = 0;
    if (checkpoint.n && s->n_waiting && merkle_paths(s->part, s->n, s->want, s->n_waiting) < 0)
        return -1;
    if (checkpoint.n && s->n_waiting && s->walks && !leads_to_root(s, checkpoint))
        return -1;
    for (size_t i = 0; r == 0 && i < s->n_waiting; i++) {
        struct proof_record p = {.seq = s->waiting[i].seq,
                                 .line = slice_str(s->waiting[i].line),
                                 .path = s->want[i].path,
                                 .steps = checkpoint.n ? s->want[i].n : -1,
                                 .checkpoint = checkpoint};
        r = s->fn(s->arg, &p);
    }
    s->ended |= r != 0;
    return r ? -1 : 0;
}

static void forget(struct search *s)
{
    for (size_t i = 0; i < s->n_waiting; i++)
        free(s->waiting[i].line);
    s->n_waiting = 0;
}

/* It covers what was read, and a new tree begins with it. */
static int take_checkpoint(struct search *s, uint64_t seq, struct slice line)
{
    if (s->open && tell(s, line) < 0)
        return -1;
    forget(s);
    s->n = s->leaves = 0;
    s->open = true;
    s->told = s->met;
    if (s->met == s->n_seq)
        return TAKE_DONE;
    return s->walks && seq > s->target && s->seq[s->met] > seq + NEAR ? TAKE_FAR : TAKE_ON;
}

/* A record that is wanted. By the index: in turn, and not before a checkpoint. */
static int take_wanted(struct search *s, uint64_t seq, struct slice line)
{
    if (s->walks && !s->open)
        return -1;
    return keep(s, seq, line);
}

static int take(struct search *s, struct slice line)
{
    struct render_head h;
    int r = TAKE_ON;
    if (render_parse(line, &h) < 0)
        return -1;
    if (h.kind == RECORD_GAP)
        return s->open ? add_gap(s, line) : TAKE_ON;
    if (h.kind == RECORD_CHECKPOINT && (r = take_checkpoint(s, h.seq, line)) != TAKE_ON)
        return r;
    if (s->walks && s->met < s->n_seq && h.seq > s->seq[s->met])
        return -1; /* one was left out */
    if (is_wanted(s, h.seq) && take_wanted(s, h.seq, line) < 0)
        return -1;
    return s->open ? add_leaf(s, line) : TAKE_ON;
}

static int take_walked(void *arg, struct slice line)
{
    return take(arg, line);
}

/* 0: all are told. -1: what is not told yet has to be looked for in the whole log. */
static int walk(struct search *s, struct log_walk *w)
{
    int r = TAKE_FAR;
    s->walks = true;
    while (r == TAKE_FAR) {
        forget(s);
        s->n = s->leaves = 0;
        s->met = s->told;
        s->target = s->seq[s->met];
        r = log_walk_from(w, s->target, &s->open, take_walked, s);
    }
    if (r == 0 && (s->met < s->n_seq || tell(s, SLICE("")) < 0))
        r = -1;
    forget(s);
    return r < 0 ? -1 : 0;
}

static int search_file(struct search *s, int dirfd, const char *name, struct err *err)
{
    struct slice line;
    int r = 0, fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct line_reader *lr = fd < 0 ? NULL : line_reader_new(fd);
    if (lr == NULL)
        r = err_sys(err, "cannot open %s", name);
    while (r == 0 && line_reader_next(lr, &line) == LINE_WHOLE)
        if ((r = take(s, line)) < 0)
            err_set(err, ERR_PARSE, "%s is damaged: see 'durward audit verify'", name);
    line_reader_free(lr);
    if (fd >= 0)
        close(fd);
    return r;
}

static int search_all(struct search *s, int dirfd, struct err *err)
{
    struct log_dir d;
    if (log_dir_list(dirfd, &d, err) < 0)
        return -1;
    int r = 0;
    for (size_t i = 0; r == 0 && i < d.n; i++)
        r = search_file(s, dirfd, d.name[i], err);
    log_dir_done(&d);
    if (r == 0 && tell(s, SLICE("")) < 0)
        r = err_set(err, ERR_INTERNAL, "out of memory");
    return r < 0 ? -1 : 0;
}

/* By the index first; what that did not tell, from the log's beginning. */
static int search_log(struct search *s, int dirfd, struct err *err)
{
    struct log_walk *w = log_walk_new(dirfd, err);
    if (w == NULL)
        return -1;
    int r = s->n_seq ? walk(s, w) : 0;
    log_walk_free(w);
    if (r == 0)
        return 0;
    if (s->ended)
        return err_set(err, ERR_INTERNAL, "out of memory");
    s->seq += s->told;
    s->n_seq -= s->told;
    s->met = s->told = s->n = s->leaves = 0;
    s->walks = false;
    s->open = true;
    return search_all(s, dirfd, err);
}

int proof_each(int dirfd, const uint64_t *seq, size_t n, proof_fn fn, void *arg, struct err *err)
{
    struct search s = {.seq = seq, .n_seq = n, .fn = fn, .arg = arg};
    s.waiting = calloc(n ? n : 1, sizeof *s.waiting);
    s.want = calloc(n ? n : 1, sizeof *s.want);
    int r = s.waiting && s.want ? search_log(&s, dirfd, err)
                                : err_set(err, ERR_INTERNAL, "out of memory");
    forget(&s);
    free(s.part);
    free(s.waiting);
    free(s.want);
    return r;
}

json_t *proof_path(const struct proof_record *p)
{
    char hex[CHAIN_HEX];
    json_t *list = json_array();
    for (int i = 0; list && i < p->steps; i++)
        json_array_append_new(list,
                              json_pack("{s:s,s:s}", "side", p->path[i].left ? "left" : "right",
                                        "hash", chain_hex(p->path[i].hash, hex)));
    return list;
}

struct one {
    bool met;
    json_t *proof;
};

static int take_one(void *arg, const struct proof_record *p)
{
    struct one *o = arg;
    o->met = true;
    if (p->steps < 0)
        return 0;
    o->proof = json_pack("{s:s%,s:o,s:s%}", "line", p->line.p, p->line.n, "path", proof_path(p),
                         "checkpoint", p->checkpoint.p, p->checkpoint.n);
    return o->proof ? 0 : -1;
}

json_t *proof_make(int dirfd, uint64_t seq, struct err *err)
{
    struct one o = {0};
    if (proof_each(dirfd, &seq, 1, take_one, &o, err) < 0)
        return NULL;
    if (o.proof == NULL)
        err_set(err, ERR_UNREADY,
                o.met ? "no checkpoint covers record %llu yet: there is one each minute"
                      : "there is no record %llu",
                (unsigned long long)seq);
    return o.proof;
}

static int parse_path(const json_t *list, struct merkle_step path[MERKLE_LEVELS])
{
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > MERKLE_LEVELS)
        return -1;
    for (size_t i = 0; i < n; i++) {
        const char *side, *hash;
        if (json_unpack(json_array_get(list, i), "{s:s,s:s}", "side", &side, "hash", &hash) < 0 ||
            chain_unhex(slice_str(hash), path[i].hash) < 0 ||
            (strcmp(side, "left") != 0 && strcmp(side, "right") != 0))
            return -1;
        path[i].left = strcmp(side, "left") == 0;
    }
    return (int)n;
}

int proof_check(const json_t *proof, const struct signing_key *key, uint64_t *seq, struct err *err)
{
    const char *line, *last;
    json_t *list;
    struct merkle_step path[MERKLE_LEVELS];
    struct checkpoint c;
    unsigned char hash[CHAIN_HASH], prev[CHAIN_HASH], root[CHAIN_HASH];
    struct slice rest;
    int n = -1;
    if (json_unpack((json_t *)(uintptr_t)proof, "{s:s,s:o,s:s}", "line", &line, "path", &list,
                    "checkpoint", &last) == 0)
        n = parse_path(list, path);
    if (n < 0 || chain_parse(slice_str(line), seq, prev, &rest) < 0 ||
        checkpoint_parse(slice_str(last), &c) < 0)
        return err_set(err, ERR_PARSE, "this is not a proof");
    if (!checkpoint_signed_by(&c, key))
        return err_set(err, ERR_DENIED, "the proof's checkpoint is not signed by this key");
    if (*seq < c.first || *seq > c.last)
        return err_set(err, ERR_DENIED, "the proof's checkpoint does not cover record %llu",
                       (unsigned long long)*seq);
    if (chain_hash(slice_str(line), hash) < 0 || merkle_climb(hash, path, n, root) < 0)
        return err_set(err, ERR_INTERNAL, "SHA-256 failed");
    if (memcmp(root, c.root, CHAIN_HASH) != 0)
        return err_set(err, ERR_DENIED, "record %llu is not the one that was signed",
                       (unsigned long long)*seq);
    return 0;
}
