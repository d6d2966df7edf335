/* A table of tools, open to the next free place; nothing is ever taken out of it. */
#include "mcp_pins.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 2 * MCP_PINS_MAX };

struct pin {
    unsigned char key[MCP_PIN_HASH]; /* of place and tool, or (of how many it has) of a place */
    char hash[MCP_PIN_TEXT + 1];     /* as first listed; "": a place's */
    unsigned n;                      /* of a place */
    bool used, changed;
};

struct mcp_pins {
    size_t n;
    struct pin slots[SLOTS];
};

struct mcp_pins *mcp_pins_new(void)
{
    return calloc(1, sizeof(struct mcp_pins));
}

void mcp_pins_free(struct mcp_pins *p)
{
    free(p);
}

static bool digest(struct slice a, struct slice b, unsigned char ret[MCP_PIN_HASH])
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1 &&
              EVP_DigestUpdate(ctx, a.p, a.n) == 1 && EVP_DigestUpdate(ctx, "\n", 1) == 1 &&
              EVP_DigestUpdate(ctx, b.p, b.n) == 1 && EVP_DigestFinal_ex(ctx, ret, NULL) == 1;
    EVP_MD_CTX_free(ctx);
    return ok;
}

static void put_hex(const unsigned char raw[MCP_PIN_HASH], char text[MCP_PIN_TEXT + 1])
{
    for (size_t i = 0; i < MCP_PIN_HASH; i++)
        snprintf(text + 2 * i, 3, "%02x", raw[i]);
}

bool mcp_pin_place(const char *host, struct slice path, char place[MCP_PIN_TEXT + 1])
{
    unsigned char raw[MCP_PIN_HASH];
    if (!digest(slice_str(host), path, raw))
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
    bool ok = said && digest(slice_str(said), SLICE(""), raw);
    if (ok)
        put_hex(raw, text);
    free(said);
    json_decref(copy);
    return ok;
}

/* Where it is, or would be. */
static struct pin *find(struct mcp_pins *p, const char *place, const char *tool)
{
    unsigned char key[MCP_PIN_HASH];
    uint32_t at;
    if (!digest(slice_str(place), slice_str(tool), key))
        return NULL;
    memcpy(&at, key, sizeof at);
    for (size_t i = 0; i < SLOTS; i++) {
        struct pin *s = &p->slots[(at + i) % SLOTS];
        if (s->used && memcmp(s->key, key, sizeof key) != 0)
            continue;
        memcpy(s->key, key, sizeof key);
        return s;
    }
    return NULL;
}

enum mcp_pin mcp_pins_see(struct mcp_pins *p, const char *place, const char *tool, const char *hash)
{
    struct pin *s = find(p, place, tool);
    if (s && s->used) {
        s->changed = strcmp(s->hash, hash) != 0;
        return s->changed ? MCP_PIN_CHANGED : MCP_PIN_SAME;
    }
    struct pin *all = find(p, place, "\n"); /* no tool's name in a list of one line */
    if (s == NULL || all == NULL || p->n + 2 > MCP_PINS_MAX || all->n >= MCP_PINS_SERVER)
        return MCP_PIN_FULL;
    p->n += all->used ? 1 : 2;
    all->used = true;
    all->n++;
    s = find(p, place, tool); /* the place may have taken its slot */
    if (s == NULL)
        return MCP_PIN_FULL;
    s->used = true;
    snprintf(s->hash, sizeof s->hash, "%s", hash);
    return MCP_PIN_NEW;
}

bool mcp_pins_changed(const struct mcp_pins *p, const char *place, const char *tool)
{
    const struct pin *s = find((struct mcp_pins *)(uintptr_t)p, place, tool);
    return s && s->used && s->changed;
}

void mcp_pins_mark(struct mcp_pins *p, const char *place, const char *tool, bool changed)
{
    struct pin *s = find(p, place, tool);
    if (s && s->used)
        s->changed = changed;
}
