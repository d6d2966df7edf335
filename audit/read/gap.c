/* Grows a gap record by record, joining two subtrees of the same size so that few roots are left,
 * writes its signed line, and parses and verifies it again. */
#include "gap.h"

#include "checkpoint.h"
#include "proc.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* Each node as "level:hash", a comma between two. */
enum { NODE_TEXT = CHAIN_HEX + 4, NODES_TEXT = GAP_NODES * NODE_TEXT + 1 };

static void nodes_text(const struct gap *g, char text[NODES_TEXT])
{
    char hex[CHAIN_HEX];
    size_t at = 0;
    text[0] = 0;
    for (size_t i = 0; i < g->n; i++)
        at += (size_t)snprintf(text + at, NODES_TEXT - at, "%s%u:%s", i ? "," : "",
                               g->node[i].level, chain_hex(g->node[i].hash, hex));
}

static int parse_node(struct slice one, struct merkle_part *ret)
{
    uint64_t level;
    ssize_t colon = slice_find(one, ':');
    if (colon <= 0 ||
        slice_u64((struct slice){one.p, (size_t)colon}, MERKLE_LEVELS - 2, &level) < 0)
        return -1;
    ret->level = (unsigned)level;
    return chain_unhex((struct slice){one.p + colon + 1, one.n - (size_t)colon - 1}, ret->hash);
}

static int parse_nodes(struct slice s, struct gap *g)
{
    ssize_t comma;
    g->n = 0;
    do {
        comma = slice_find(s, ',');
        struct slice one = {s.p, comma < 0 ? s.n : (size_t)comma};
        if (g->n == GAP_NODES || parse_node(one, &g->node[g->n++]) < 0)
            return -1;
        s.p += comma + 1;
        s.n -= (size_t)(comma + 1);
    } while (comma >= 0);
    return 0;
}

static int signed_text(const struct gap *g, struct buf *out)
{
    char prev[CHAIN_HEX], last[CHAIN_HEX], nodes[NODES_TEXT];
    nodes_text(g, nodes);
    return buf_printf(out, "durward audit gap 1\n%" PRIu64 "\n%" PRIu64 "\n%s\n%s\n%s\n%s\n%s\n",
                      g->first, g->count, chain_hex(g->prev, prev), chain_hex(g->last, last), nodes,
                      g->sandbox, g->time);
}

/* ---- making ---- */

static int join(struct gap *g)
{
    struct merkle_part *a = &g->node[g->n - 2], *b = &g->node[g->n - 1];
    if (merkle_join(a->hash, b->hash, a->hash) < 0)
        return -1;
    a->level++;
    g->n--;
    return 0;
}

int gap_add(struct gap *g, uint64_t at, const unsigned char line_hash[CHAIN_HASH])
{
    struct merkle_part *x = &g->node[g->n];
    if (g->n == GAP_NODES || merkle_leaf(line_hash, x->hash) < 0)
        return -1;
    x->at = at;
    x->level = 0;
    g->n++;
    memcpy(g->last, line_hash, CHAIN_HASH);
    g->count++;
    while (g->n > 1 && g->node[g->n - 2].level == g->node[g->n - 1].level &&
           g->node[g->n - 2].at % (UINT64_C(2) << g->node[g->n - 1].level) == 0)
        if (join(g) < 0)
            return -1;
    return 0;
}

int gap_render(struct gap *g, const struct signing_key *key, uint64_t now_ns, struct buf *out)
{
    char nodes[NODES_TEXT], last[CHAIN_HEX], count[24], sig[CHECKPOINT_SIGNATURE_HEX];
    struct buf text;
    buf_init(&text, NODES_TEXT + RENDER_LINE_MAX);
    timestamp_text(now_ns, g->time, sizeof g->time);
    int r = signed_text(g, &text);
    if (r == 0)
        r = signing_key_sign(key, buf_slice(&text), g->signature);
    buf_free(&text);
    if (r < 0)
        return -1;
    nodes_text(g, nodes);
    checkpoint_signature_hex(g->signature, sig);
    int n = snprintf(count, sizeof count, "%" PRIu64, g->count);
    struct chain before = {.seq = g->first - 1};
    memcpy(before.hash, g->prev, CHAIN_HASH);
    struct render_source from = {
        .role = role_name(ROLE_LOGGER), .sandbox = g->sandbox, .policy = ""};
    struct record_view v = {.kind = RECORD_GAP, .wall_ns = now_ns, .counter = g->first};
    v.field[RF_COUNT] = (struct slice){count, (size_t)n};
    v.field[RF_LAST] = slice_str(chain_hex(g->last, last));
    v.field[RF_NODES] = slice_str(nodes);
    v.field[RF_SIGNATURE] = slice_str(sig);
    return render_line(out, &before, &v, &from, 0, now_ns);
}

/* ---- reading ---- */

int gap_parse(struct slice line, struct gap *ret)
{
    const char *kind, *time, *last, *nodes, *signature, *sandbox;
    json_int_t count;
    struct slice rest;
    memset(ret, 0, sizeof *ret);
    if (chain_parse(line, &ret->first, ret->prev, &rest) < 0)
        return -1;
    json_t *j = json_loadb(line.p, line.n, JSON_REJECT_DUPLICATES, NULL);
    int r = json_unpack(j, "{s:s,s:s,s:s,s:I,s:s,s:s,s:s}", "kind", &kind, "time", &time, "sandbox",
                        &sandbox, "count", &count, "last", &last, "nodes", &nodes, "signature",
                        &signature);
    if (r == 0 && (strcmp(kind, "gap") != 0 || count < 1 || strlen(time) >= sizeof ret->time ||
                   strlen(sandbox) > RENDER_NAME_MAX || ret->first > INT64_MAX - (uint64_t)count ||
                   chain_unhex(slice_str(last), ret->last) < 0 ||
                   checkpoint_signature_unhex(signature, ret->signature) < 0 ||
                   parse_nodes(slice_str(nodes), ret) < 0))
        r = -1;
    if (r == 0) {
        ret->count = (uint64_t)count;
        snprintf(ret->time, sizeof ret->time, "%s", time);
        snprintf(ret->sandbox, sizeof ret->sandbox, "%s", sandbox);
    }
    json_decref(j);
    return r;
}

bool gap_signed_by(const struct gap *g, const struct signing_key *key)
{
    struct buf text;
    buf_init(&text, NODES_TEXT + RENDER_LINE_MAX);
    bool good =
        signed_text(g, &text) == 0 && signing_key_verify(key, buf_slice(&text), g->signature);
    buf_free(&text);
    return good;
}

int gap_grow(const struct gap *g, struct merkle *m)
{
    uint64_t before = m->n;
    for (size_t i = 0; i < g->n; i++)
        if (merkle_add_node(m, g->node[i].level, g->node[i].hash) < 0)
            return -1;
    return m->n - before == g->count ? 0 : -1;
}
