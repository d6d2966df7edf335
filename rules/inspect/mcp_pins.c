/* A table of tools, open to the next free place; without a sandbox that left it is made anew. */
#include "mcp_pins.h"

#include "quota.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 2 * MCP_PINS_MAX, NAME_MAX_HERE = 64 };

/* Who was the first to list. */
struct lister {
    char name[NAME_MAX_HERE + 1];
    struct quota_part part;
    bool gone;
    LIST_ENTRY(lister) link;
};

struct pin {
    unsigned char key[MCP_PIN_HASH]; /* of place and tool, or (of how many it has) of a place */
    char hash[MCP_PIN_TEXT + 1];     /* as first listed; "": a place's */
    unsigned n;                      /* of a place */
    struct lister *by;               /* NULL: free */
    bool changed;
};

struct mcp_pins {
    struct quota quota;
    LIST_HEAD(, lister) listers;
    struct pin *slots;
};

struct mcp_pins *mcp_pins_new(void)
{
    struct mcp_pins *p = calloc(1, sizeof *p);
    struct pin *slots = calloc(SLOTS, sizeof *slots);
    if (p == NULL || slots == NULL) {
        free(p);
        free(slots);
        return NULL;
    }
    p->slots = slots;
    p->quota = (struct quota){.total = MCP_PINS_MAX, .each = MCP_PINS_SANDBOX};
    return p;
}

static void lister_free(struct lister *l)
{
    LIST_REMOVE(l, link);
    quota_leave(&l->part);
    free(l);
}

void mcp_pins_free(struct mcp_pins *p)
{
    struct lister *l;
    if (p == NULL)
        return;
    while ((l = LIST_FIRST(&p->listers)) != NULL)
        lister_free(l);
    free(p->slots);
    free(p);
}

/* Of the parts, with the end of a line between each two. */
static bool digest(const struct slice *parts, size_t n, unsigned char ret[MCP_PIN_HASH])
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1;
    for (size_t i = 0; i < n && ok; i++)
        ok = (i == 0 || EVP_DigestUpdate(ctx, "\n", 1) == 1) &&
             EVP_DigestUpdate(ctx, parts[i].p, parts[i].n) == 1;
    ok = ok && EVP_DigestFinal_ex(ctx, ret, NULL) == 1;
    EVP_MD_CTX_free(ctx);
    return ok;
}

static void put_hex(const unsigned char raw[MCP_PIN_HASH], char text[MCP_PIN_TEXT + 1])
{
    for (size_t i = 0; i < MCP_PIN_HASH; i++)
        snprintf(text + 2 * i, 3, "%02x", raw[i]);
}

bool mcp_pin_place(const char *host, struct slice path, const char *sandbox,
                   char place[MCP_PIN_TEXT + 1])
{
    struct slice parts[] = {slice_str(host), path, slice_str(sandbox)};
    unsigned char raw[MCP_PIN_HASH];
    if (!digest(parts, ARRAY_LEN(parts), raw))
        return false;
    put_hex(raw, place);
    return true;
}

bool mcp_pin_hash(const json_t *tool, char text[MCP_PIN_TEXT + 1])
{
    unsigned char raw[MCP_PIN_HASH];
    json_t *copy = json_copy((json_t *)(uintptr_t)tool);
    (void)json_object_del(copy, "_meta");
    char *said = copy ? json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENSURE_ASCII) : NULL;
    bool ok = said && digest((struct slice[]){slice_str(said), SLICE("")}, 2, raw);
    if (ok)
        put_hex(raw, text);
    free(said);
    json_decref(copy);
    return ok;
}

/* Where it is, or would be. */
static struct pin *place_in(struct pin *slots, const unsigned char key[MCP_PIN_HASH])
{
    uint32_t at;
    memcpy(&at, key, sizeof at);
    for (size_t i = 0; i < SLOTS; i++) {
        struct pin *s = &slots[(at + i) % SLOTS];
        if (s->by == NULL || memcmp(s->key, key, MCP_PIN_HASH) == 0)
            return s;
    }
    return NULL;
}

/* tool NULL: the place's own. */
static bool key_of(const char *place, const char *tool, const char *sha256,
                   unsigned char key[MCP_PIN_HASH])
{
    struct slice parts[] = {slice_str(place), slice_str(tool ? tool : ""),
                            slice_str(sha256 ? sha256 : "")};
    return digest(parts, tool ? ARRAY_LEN(parts) : 1, key);
}

static struct lister *lister_of(struct mcp_pins *p, const char *name)
{
    struct lister *l;
    LIST_FOREACH(l, &p->listers, link)
    if (strcmp(l->name, name) == 0)
        return l;
    return NULL;
}

static struct lister *lister_new(struct mcp_pins *p, const char *name)
{
    struct lister *l = lister_of(p, name);
    if (l || strlen(name) > NAME_MAX_HERE || (l = calloc(1, sizeof *l)) == NULL)
        return l;
    snprintf(l->name, sizeof l->name, "%s", name);
    LIST_INSERT_HEAD(&p->listers, l, link);
    return l;
}

/* One that is gone, and all that it listed. False: there is none, or memory is out. */
static bool drop_gone(struct mcp_pins *p)
{
    struct lister *l;
    LIST_FOREACH(l, &p->listers, link)
    if (l->gone)
        break;
    struct pin *slots = l ? calloc(SLOTS, sizeof *slots) : NULL;
    if (slots == NULL)
        return false;
    for (size_t i = 0; i < SLOTS; i++)
        if (p->slots[i].by && p->slots[i].by != l)
            *place_in(slots, p->slots[i].key) = p->slots[i];
    free(p->slots);
    p->slots = slots;
    lister_free(l);
    return true;
}

static bool take_room(struct mcp_pins *p, struct lister *l, size_t n)
{
    while (quota_take(&p->quota, &l->part, slice_str(l->name), n) != QUOTA_TAKEN)
        if (!drop_gone(p))
            return false;
    return true;
}

/* The hash that it has to have is kept with it, so that another policy begins anew. */
static bool differs(const struct pin *s, const struct mcp_tool_at *at, const char *hash)
{
    return at->sha256 ? strncmp(hash, at->sha256, strlen(at->sha256)) != 0
                      : strcmp(s->hash, hash) != 0;
}

static enum mcp_pin add(struct mcp_pins *p, const struct mcp_tool_at *at,
                        const unsigned char key[MCP_PIN_HASH], const char *hash)
{
    unsigned char whole[MCP_PIN_HASH];
    struct lister *l = lister_new(p, at->sandbox);
    if (l == NULL || !key_of(at->place, NULL, NULL, whole))
        return MCP_PIN_FULL;
    l->gone = false;
    struct pin *all = place_in(p->slots, whole);
    if (all == NULL || (all->by && all->n >= MCP_PINS_SERVER) || !take_room(p, l, all->by ? 1 : 2))
        return MCP_PIN_FULL;
    all = place_in(p->slots, whole); /* room may have moved it */
    if (all->by == NULL)
        *all = (struct pin){.by = l};
    memcpy(all->key, whole, sizeof whole);
    all->n++;
    struct pin *s = place_in(p->slots, key);
    *s = (struct pin){.by = l};
    memcpy(s->key, key, MCP_PIN_HASH);
    snprintf(s->hash, sizeof s->hash, "%s", hash);
    s->changed = differs(s, at, hash);
    return s->changed ? MCP_PIN_CHANGED : MCP_PIN_NEW;
}

enum mcp_pin mcp_pins_see(struct mcp_pins *p, const struct mcp_tool_at *at, const char *hash)
{
    unsigned char key[MCP_PIN_HASH];
    struct pin *s = key_of(at->place, at->tool, at->sha256, key) ? place_in(p->slots, key) : NULL;
    if (s == NULL)
        return MCP_PIN_FULL;
    if (s->by == NULL)
        return add(p, at, key, hash);
    struct lister *l = lister_of(p, at->sandbox);
    if (l) /* its gate was started again */
        l->gone = false;
    s->changed = s->changed || differs(s, at, hash);
    return s->changed ? MCP_PIN_CHANGED : MCP_PIN_SAME;
}

static bool has_room(const struct mcp_pins *p, const struct mcp_tool_at *at)
{
    unsigned char whole[MCP_PIN_HASH];
    const struct lister *l;
    if (!key_of(at->place, NULL, NULL, whole))
        return false;
    const struct pin *all = place_in(p->slots, whole);
    if (all == NULL || (all->by && all->n >= MCP_PINS_SERVER))
        return false;
    LIST_FOREACH(l, &p->listers, link)
    if (l->gone)
        return true;
    return quota_would(&p->quota, slice_str(at->sandbox), all->by ? 1 : 2) == QUOTA_TAKEN;
}

enum mcp_pin mcp_pins_look(const struct mcp_pins *p, const struct mcp_tool_at *at)
{
    unsigned char key[MCP_PIN_HASH];
    const struct pin *s =
        key_of(at->place, at->tool, at->sha256, key) ? place_in(p->slots, key) : NULL;
    if (s && s->by)
        return s->changed ? MCP_PIN_CHANGED : MCP_PIN_SAME;
    return s && has_room(p, at) ? MCP_PIN_NEW : MCP_PIN_FULL;
}

void mcp_pins_gone(struct mcp_pins *p, const char *sandbox)
{
    struct lister *l = p ? lister_of(p, sandbox) : NULL;
    if (l)
        l->gone = true;
}
