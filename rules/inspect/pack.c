/* Reads a whole pack (gitformat-pack(5)), keeps its commits alone, and follows their parents from
 * the new id to the old. body_inspection.c asks it about a push that must be a fast-forward. */
#include "pack.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    OBJECT_COMMIT = 1,
    OBJECT_TREE,
    OBJECT_BLOB,
    OBJECT_TAG,
    OBJECT_OFS_DELTA = 6,
    OBJECT_REF_DELTA = 7,
    ID_MAX = 32
};

struct commit {
    size_t at; /* its offset in the pack */
    unsigned char id[ID_MAX];
    char *text; /* owned, n bytes */
    size_t n;
    bool reached;
};

struct pack {
    struct slice in;
    size_t at;
    size_t id_n; /* 20 or 32 */
    size_t inflated;
    uint64_t looked; /* at commits, one by one */
    struct commit *commits;
    size_t n, cap;
};

/* Who pushes chooses how often is searched. False: it was too often, and nothing more is shown. */
static bool may_look(struct pack *p)
{
    p->looked += p->n;
    return p->looked <= PACK_LOOKED_MAX;
}

struct object {
    size_t begin; /* its offset */
    int type;
    uint64_t size;
    size_t base; /* of OBJECT_OFS_DELTA */
    unsigned char base_id[ID_MAX];
};

static int byte(struct pack *p)
{
    return p->at < p->in.n ? (unsigned char)p->in.p[p->at++] : -1;
}

/* "PACK", version, number of objects. */
static int64_t read_header(struct pack *p)
{
    const unsigned char *h = (const unsigned char *)p->in.p;
    if (p->in.n < 12 + p->id_n || memcmp(h, "PACK\0\0\0\2", 8) != 0)
        return -1;
    p->at = 12;
    return (int64_t)((uint32_t)h[8] << 24 | (uint32_t)h[9] << 16 | (uint32_t)h[10] << 8 | h[11]);
}

static int read_base(struct pack *p, struct object *o)
{
    if (o->type == OBJECT_REF_DELTA) {
        if (p->in.n - p->at < p->id_n)
            return -1;
        memcpy(o->base_id, p->in.p + p->at, p->id_n);
        p->at += p->id_n;
        return 0;
    }
    int c = byte(p);
    uint64_t back = c < 0 ? 0 : (uint64_t)c & 127;
    while (c >= 0 && c & 128) {
        if (back > UINT32_MAX)
            return -1;
        c = byte(p);
        back = (back + 1) << 7 | ((uint64_t)c & 127);
    }
    if (c < 0 || back == 0 || back > o->begin)
        return -1;
    o->base = o->begin - (size_t)back;
    return 0;
}

static int read_object(struct pack *p, struct object *o)
{
    o->begin = p->at;
    int c = byte(p);
    if (c < 0)
        return -1;
    o->type = c >> 4 & 7;
    o->size = (uint64_t)c & 15;
    for (unsigned shift = 4; c & 128; shift += 7) {
        if (shift > 32 || (c = byte(p)) < 0)
            return -1;
        o->size |= ((uint64_t)c & 127) << shift;
    }
    if (o->type == OBJECT_OFS_DELTA || o->type == OBJECT_REF_DELTA)
        return read_base(p, o);
    return o->type >= OBJECT_COMMIT && o->type <= OBJECT_TAG ? 0 : -1;
}

/* Past the object's compressed bytes; into `to` when it is not NULL (o->size bytes). */
static int inflate_object(struct pack *p, const struct object *o, char *to)
{
    unsigned char waste[16384];
    uint64_t out = 0;
    int r = Z_OK;
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)(p->in.p + p->at),
                  .avail_in = (unsigned)(p->in.n - p->at)};
    if (p->in.n - p->at > UINT32_MAX / 2 || inflateInit(&z) != Z_OK)
        return -1;
    while (r == Z_OK) {
        uint64_t left = o->size - out;
        z.next_out = to ? (unsigned char *)to + out : waste;
        z.avail_out = to ? (unsigned)left : (unsigned)sizeof waste;
        unsigned had = z.avail_out;
        r = inflate(&z, Z_NO_FLUSH);
        out += had - z.avail_out;
        p->inflated += had - z.avail_out;
        if (out > o->size || p->inflated > PACK_INFLATED_MAX)
            r = Z_DATA_ERROR;
    }
    p->at = p->in.n - z.avail_in;
    inflateEnd(&z);
    return r == Z_STREAM_END && out == o->size ? 0 : -1;
}

/* ---- commits ---- */

static int name_commit(const struct pack *p, struct commit *c)
{
    char head[32];
    unsigned n = 0;
    EVP_MD_CTX *m = EVP_MD_CTX_new();
    const EVP_MD *kind = p->id_n == 20 ? EVP_sha1() : EVP_sha256();
    int k = snprintf(head, sizeof head, "commit %zu", c->n) + 1; /* its NUL too */
    bool ok = m && EVP_DigestInit_ex(m, kind, NULL) && EVP_DigestUpdate(m, head, (size_t)k) &&
              EVP_DigestUpdate(m, c->text, c->n) && EVP_DigestFinal_ex(m, c->id, &n);
    EVP_MD_CTX_free(m);
    return ok && n == p->id_n ? 0 : -1;
}

/* Takes text. */
static int add_commit(struct pack *p, size_t at, char *text, size_t n)
{
    if (p->n == p->cap) {
        size_t cap = p->cap ? p->cap * 2 : 64;
        struct commit *grown =
            cap <= PACK_COMMITS ? realloc(p->commits, cap * sizeof *grown) : NULL;
        if (grown == NULL) {
            free(text);
            return -1;
        }
        p->commits = grown;
        p->cap = cap;
    }
    struct commit *c = &p->commits[p->n++];
    *c = (struct commit){.at = at, .text = text, .n = n};
    return name_commit(p, c);
}

static const struct commit *base_of(struct pack *p, const struct object *o)
{
    if (!may_look(p))
        return NULL;
    for (size_t i = 0; i < p->n; i++)
        if (o->type == OBJECT_OFS_DELTA ? p->commits[i].at == o->base
                                        : memcmp(p->commits[i].id, o->base_id, p->id_n) == 0)
            return &p->commits[i];
    return NULL;
}

static int delta_size(struct slice *d, size_t *ret)
{
    *ret = 0;
    for (unsigned shift = 0; d->n > 0 && shift < 28; shift += 7) {
        unsigned char c = (unsigned char)*d->p++;
        d->n--;
        *ret |= (size_t)(c & 127) << shift;
        if (!(c & 128))
            return 0;
    }
    return -1;
}

/* The bytes of a copy instruction that its flags announce, least first. */
static int delta_number(struct slice *d, unsigned flags, unsigned count, size_t *ret)
{
    *ret = 0;
    for (unsigned i = 0; i < count; i++) {
        if (!(flags & 1u << i))
            continue;
        if (d->n == 0)
            return -1;
        *ret |= (size_t)(unsigned char)*d->p++ << (8 * i);
        d->n--;
    }
    return 0;
}

/* gitformat-pack(5), "Deltified representation". to: want bytes. */
static int delta_apply(struct slice base, struct slice d, char *to, size_t want)
{
    size_t out = 0;
    while (d.n > 0) {
        unsigned char op = (unsigned char)*d.p++;
        size_t from = 0, n = op;
        d.n--;
        if (op & 128) {
            if (delta_number(&d, op & 15u, 4, &from) < 0 ||
                delta_number(&d, op >> 4 & 7u, 3, &n) < 0)
                return -1;
            n = n ? n : 0x10000;
            if (from > base.n || n > base.n - from || n > want - out)
                return -1;
            memcpy(to + out, base.p + from, n);
        } else {
            if (op == 0 || n > d.n || n > want - out)
                return -1;
            memcpy(to + out, d.p, n);
            d.p += n;
            d.n -= n;
        }
        out += n;
    }
    return out == want ? 0 : -1;
}

static int take_delta(struct pack *p, const struct object *o, const struct commit *base)
{
    char *text = malloc(o->size + 1), *whole = NULL;
    size_t from = 0, to = 0;
    struct slice d = {text, o->size};
    if (text == NULL || inflate_object(p, o, text) < 0 || delta_size(&d, &from) < 0 ||
        delta_size(&d, &to) < 0 || from != base->n || to > PACK_COMMIT_MAX ||
        (p->inflated += to) > PACK_INFLATED_MAX || (whole = malloc(to + 1)) == NULL ||
        delta_apply((struct slice){base->text, base->n}, d, whole, to) < 0) {
        free(text);
        free(whole);
        return -1;
    }
    free(text);
    return add_commit(p, o->begin, whole, to);
}

/* A delta upon what is no commit of this pack is none itself, or cannot be read: skipped. */
static int take_object(struct pack *p)
{
    struct object o = {0};
    if (read_object(p, &o) < 0)
        return -1;
    bool delta = o.type == OBJECT_OFS_DELTA || o.type == OBJECT_REF_DELTA;
    const struct commit *base = delta ? base_of(p, &o) : NULL;
    if (o.size > PACK_COMMIT_MAX || (base == NULL && o.type != OBJECT_COMMIT))
        return inflate_object(p, &o, NULL);
    if (base)
        return take_delta(p, &o, base);
    char *text = malloc(o.size + 1);
    if (text == NULL || inflate_object(p, &o, text) < 0) {
        free(text);
        return -1;
    }
    return add_commit(p, o.begin, text, o.size);
}

/* ---- descent ---- */

static int unhex(struct slice hex, unsigned char *to)
{
    for (size_t i = 0; i + 1 < hex.n; i += 2) {
        char two[3] = {hex.p[i], hex.p[i + 1], 0}, *end;
        to[i / 2] = (unsigned char)strtoul(two, &end, 16);
        if (*end)
            return -1;
    }
    return 0;
}

static struct commit *find_commit(struct pack *p, const unsigned char *id)
{
    if (!may_look(p))
        return NULL;
    for (size_t i = 0; i < p->n; i++)
        if (memcmp(p->commits[i].id, id, p->id_n) == 0)
            return &p->commits[i];
    return NULL;
}

/* The parent lines follow the tree line (gitformat: "parent" SP id LF). */
static bool reach_parents(struct pack *p, const struct commit *c, const unsigned char *want,
                          struct commit **queue, size_t *n)
{
    unsigned char id[ID_MAX];
    size_t hex = 2 * p->id_n, line = 7 + hex + 1;
    struct slice s = {c->text, c->n};
    if (s.n < 6 + hex || memcmp(s.p, "tree ", 5) != 0 || s.p[5 + hex] != '\n')
        return false;
    s = (struct slice){s.p + 6 + hex, s.n - 6 - hex};
    for (; s.n >= line && memcmp(s.p, "parent ", 7) == 0 && s.p[line - 1] == '\n';
         s = (struct slice){s.p + line, s.n - line}) {
        if (p->looked > PACK_LOOKED_MAX || unhex((struct slice){s.p + 7, hex}, id) < 0)
            return false;
        if (memcmp(id, want, p->id_n) == 0)
            return true;
        struct commit *parent = find_commit(p, id);
        if (parent && !parent->reached) {
            parent->reached = true;
            queue[(*n)++] = parent;
        }
    }
    return false;
}

static bool descends(struct pack *p, const struct push_command *c)
{
    unsigned char from[ID_MAX], to[ID_MAX];
    struct commit **queue = calloc(p->n + 1, sizeof *queue);
    bool found = false;
    if (queue && unhex(c->new_id, from) == 0 && unhex(c->old_id, to) == 0) {
        for (size_t i = 0; i < p->n; i++)
            p->commits[i].reached = false;
        size_t n = 0;
        struct commit *first = find_commit(p, from);
        if (first) {
            first->reached = true;
            queue[n++] = first;
        }
        for (size_t i = 0; i < n && !found; i++)
            found = reach_parents(p, queue[i], to, queue, &n);
    }
    free(queue);
    return found;
}

enum pack_answer pack_shows(struct slice in, const struct push *push)
{
    struct pack p = {.in = in, .id_n = push->n ? push->commands[0].old_id.n / 2 : 20};
    enum pack_answer a = PACK_SHOWN;
    int64_t n = read_header(&p);
    for (int64_t i = 0; i < n; i++)
        if (take_object(&p) < 0) {
            n = -1;
            break;
        }
    if (n < 0 || p.in.n - p.at != p.id_n) /* its checksum is all that is left */
        a = PACK_BAD;
    for (size_t i = 0; i < push->n && a == PACK_SHOWN; i++) {
        const struct push_command *c = &push->commands[i];
        if (!push_id_is_zero(c->old_id) && !push_id_is_zero(c->new_id) && !descends(&p, c))
            a = PACK_NOT_SHOWN;
    }
    for (size_t i = 0; i < p.n; i++)
        free(p.commits[i].text);
    free(p.commits);
    return a;
}
