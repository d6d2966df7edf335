/* Collects the leaves and subtrees from the checkpoint before a record to the one after it and
 * works out the record's path, or checks such a path without the log. */
#include "proof.h"

#include "checkpoint.h"
#include "gap.h"
#include "line_reader.h"
#include "log_dir.h"
#include "merkle.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEAVES_MAX = 1 << 26 };

struct search {
    uint64_t seq, index;
    struct merkle_part *part; /* of the lines since the last checkpoint */
    size_t n, room;
    uint64_t leaves;
    char *line; /* the record's, once found */
    json_t *proof;
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

static json_t *steps(const struct search *s)
{
    struct merkle_step path[MERKLE_LEVELS];
    char hex[CHAIN_HEX];
    int n = merkle_path(s->part, s->n, s->index, path);
    json_t *list = n < 0 ? NULL : json_array();
    for (int i = 0; list && i < n; i++)
        json_array_append_new(list, json_pack("{s:s,s:s}", "side", path[i].left ? "left" : "right",
                                              "hash", chain_hex(path[i].hash, hex)));
    return list;
}

/* 1: done; 0: go on; -1. */
static int take(struct search *s, struct slice line)
{
    struct render_head h;
    if (render_parse(line, &h) < 0)
        return -1;
    if (h.kind == RECORD_GAP && add_gap(s, line) < 0)
        return -1;
    if (h.kind == RECORD_GAP)
        return 0;
    if (h.kind == RECORD_CHECKPOINT && s->line) {
        s->proof = json_pack("{s:s,s:o,s:s%}", "line", s->line, "path", steps(s), "checkpoint",
                             line.p, line.n);
        return s->proof ? 1 : -1;
    }
    if (h.kind == RECORD_CHECKPOINT)
        s->n = s->leaves = 0;
    if (h.seq == s->seq) {
        s->index = s->leaves;
        s->line = slice_dup(line);
        if (s->line == NULL)
            return -1;
    }
    return add_leaf(s, line);
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

json_t *proof_make(int dirfd, uint64_t seq, struct err *err)
{
    struct log_dir d;
    struct search s = {.seq = seq};
    if (log_dir_list(dirfd, &d, err) < 0)
        return NULL;
    int r = 0;
    for (size_t i = 0; r == 0 && i < d.n; i++)
        r = search_file(&s, dirfd, d.name[i], err);
    log_dir_done(&d);
    if (r == 0)
        err_set(err, ERR_UNREADY,
                s.line ? "no checkpoint covers record %llu yet: there is one each minute"
                       : "there is no record %llu",
                (unsigned long long)seq);
    free(s.part);
    free(s.line);
    return s.proof;
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
