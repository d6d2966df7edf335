/* Keeps the tokens of the registry in memory, makes and ends them, and checks one that is shown: by
 * its id, its end, and its secret's hash compared in constant time. */
#include "bearer.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "controller_internal.h"
#include "fleet_notes.h"

struct bearers {
    struct registry *registry;
    const struct fleet_notes *fleet;
    TAILQ_HEAD(bearer_list, bearer) list; /* oldest first */
    size_t n;
};

static const struct {
    enum bearer_scope scope;
    const char *name;
} scopes[] = {
    {SCOPE_READ, "read"},           {SCOPE_SANDBOXES, "sandboxes"},   {SCOPE_EXEC, "exec"},
    {SCOPE_APPROVALS, "approvals"}, {SCOPE_IDENTITIES, "identities"}, {SCOPE_ADMIN, "admin"}};

int bearer_scope_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(scopes); i++)
        if (strcmp(scopes[i].name, name) == 0)
            return (int)scopes[i].scope;
    return -1;
}

const char *bearer_scope_name(unsigned of)
{
    for (size_t i = 0; i < ARRAY_LEN(scopes); i++)
        if (of & scopes[i].scope)
            return scopes[i].name;
    return "";
}

static int64_t now_seconds(void)
{
    return (int64_t)time(NULL);
}

/* ---- the list ---- */

static void forget(struct bearers *all, struct bearer *b)
{
    TAILQ_REMOVE(&all->list, b, link);
    all->n--;
    json_decref(b->policies);
    json_decref(b->labels);
    OPENSSL_cleanse(b, sizeof *b);
    free(b);
}

/* NULL: what is to be kept does not fit. */
static struct bearer *keep(struct bearers *all, const struct registry_bearer *row)
{
    struct bearer *b = calloc(1, sizeof *b);
    if (b == NULL)
        return NULL;
    snprintf(b->id, sizeof b->id, "%s", row->id);
    snprintf(b->name, sizeof b->name, "%s", row->name);
    memcpy(b->hash, row->hash, sizeof b->hash);
    b->scopes = (unsigned)row->scopes;
    b->created = row->created;
    b->expires = row->expires;
    b->volume_bytes = row->volume_bytes;
    b->max_sandboxes = row->max_sandboxes;
    b->policies = json_loads(row->policies, JSON_REJECT_DUPLICATES, NULL);
    b->labels = json_loads(row->labels, JSON_REJECT_DUPLICATES, NULL);
    TAILQ_INSERT_TAIL(&all->list, b, link);
    all->n++;
    if (json_is_array(b->policies) && json_is_object(b->labels))
        return b;
    forget(all, b); /* else it would see everything */
    return NULL;
}

static int load_each(void *arg, const struct registry_bearer *row)
{
    return keep(arg, row) ? 0 : -1;
}

struct bearers *bearers_load(struct registry *r, struct err *err)
{
    struct bearers *b = calloc(1, sizeof *b);
    if (b == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    b->registry = r;
    TAILQ_INIT(&b->list);
    if (registry_bearer_each(r, load_each, b, err) == 0)
        return b;
    if (!err->code)
        err_set(err, ERR_PARSE, "the registry holds a damaged token");
    bearers_free(b);
    return NULL;
}

void bearers_free(struct bearers *b)
{
    if (b == NULL)
        return;
    while (!TAILQ_EMPTY(&b->list))
        forget(b, TAILQ_FIRST(&b->list));
    free(b);
}

void bearers_fleet(struct bearers *b, const struct fleet_notes *n)
{
    b->fleet = n;
}

/* ---- making and ending ---- */

static int write_row(struct bearers *all, const struct registry_bearer *row, struct err *err)
{
    if (keep(all, row) == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    if (registry_bearer_add(all->registry, row, err) == 0)
        return 0;
    forget(all, TAILQ_LAST(&all->list, bearer_list));
    return -1;
}

/* Those whose time is over make room. */
static void prune(struct bearers *all)
{
    struct bearer *b, *next;
    for (b = TAILQ_FIRST(&all->list); b; b = next) {
        next = TAILQ_NEXT(b, link);
        if (b->expires <= now_seconds() && registry_bearer_delete(all->registry, b->id, NULL) == 0)
            forget(all, b);
    }
}

static int make_text(const char *id, char text[BEARER_TEXT_MAX], unsigned char hash[BEARER_HASH],
                     struct err *err)
{
    unsigned char raw[BEARER_SECRET];
    if (getrandom(raw, sizeof raw, 0) != sizeof raw)
        return err_sys(err, "getrandom");
    int at = snprintf(text, BEARER_TEXT_MAX, "%s.", id);
    char *secret = text + at;
    for (size_t i = 0; i < sizeof raw; i++)
        snprintf(secret + 2 * i, 3, "%02x", (unsigned)raw[i]);
    OPENSSL_cleanse(raw, sizeof raw);
    SHA256((const unsigned char *)secret, strlen(secret), hash);
    return 0;
}

const struct bearer *bearer_new(struct bearers *all, const struct bearer_wish *w,
                                char text[BEARER_TEXT_MAX], struct err *err)
{
    char id[SANDBOX_ID_MAX + 1];
    struct registry_bearer row = {.id = id,
                                  .name = w->name,
                                  .scopes = w->scopes,
                                  .created = now_seconds(),
                                  .expires = now_seconds() + w->ttl,
                                  .volume_bytes = w->volume_bytes,
                                  .max_sandboxes = w->max_sandboxes};
    prune(all);
    if (all->n >= BEARERS_MAX) {
        err_set(err, ERR_DENIED, "there are %d tokens already", BEARERS_MAX);
        return NULL;
    }
    char *policies = w->policies ? json_dumps(w->policies, JSON_COMPACT) : strdup("[]");
    char *labels = w->labels ? json_dumps(w->labels, JSON_COMPACT) : strdup("{}");
    row.policies = policies;
    row.labels = labels;
    int bad = policies && labels ? 0 : err_set(err, ERR_INTERNAL, "out of memory");
    if (bad == 0)
        bad = sandbox_make_id("tk", id, err);
    if (bad == 0)
        bad = make_text(id, text, row.hash, err);
    if (bad == 0)
        bad = write_row(all, &row, err);
    free(policies);
    free(labels);
    return bad ? NULL : TAILQ_LAST(&all->list, bearer_list);
}

int bearer_revoke(struct bearers *all, const char *id, struct err *err)
{
    struct bearer *b;
    TAILQ_FOREACH(b, &all->list, link)
    if (strcmp(b->id, id) == 0) {
        if (registry_bearer_delete(all->registry, id, err) < 0)
            return -1;
        forget(all, b);
        return 0;
    }
    return 1;
}

/* ---- asking ---- */

const struct bearer *bearer_find(const struct bearers *all, const char *id)
{
    const struct bearer *b;
    TAILQ_FOREACH(b, &all->list, link)
    if (strcmp(b->id, id) == 0)
        return b->expires > now_seconds() && !fleet_notes_stale(all->fleet) ? b : NULL;
    return NULL;
}

const struct bearer *bearer_check(const struct bearers *all, const char *text)
{
    char id[BEARER_ID_MAX + 1];
    unsigned char hash[BEARER_HASH];
    const char *dot = strchr(text, '.');
    if (dot == NULL || (size_t)(dot - text) >= sizeof id || strlen(dot + 1) != 2 * BEARER_SECRET)
        return NULL;
    snprintf(id, sizeof id, "%.*s", (int)(dot - text), text);
    const struct bearer *b = bearer_find(all, id);
    SHA256((const unsigned char *)dot + 1, 2 * BEARER_SECRET, hash);
    return b && CRYPTO_memcmp(b->hash, hash, sizeof hash) == 0 ? b : NULL;
}

static json_t *limit_json(int64_t most)
{
    return most < 0 ? json_null() : json_integer(most);
}

json_t *bearer_json(const struct bearer *b)
{
    json_t *list = json_array();
    for (size_t i = 0; i < ARRAY_LEN(scopes); i++)
        if (b->scopes & scopes[i].scope)
            json_array_append_new(list, json_string(scopes[i].name));
    return json_pack("{s:s, s:s, s:o, s:O, s:O, s:I, s:I, s:o, s:o}", "id", b->id, "name", b->name,
                     "scopes", list, "policies", b->policies, "labels", b->labels, "created_at",
                     (json_int_t)b->created, "expires_at", (json_int_t)b->expires, "volume_bytes",
                     limit_json(b->volume_bytes), "max_sandboxes", limit_json(b->max_sandboxes));
}

json_t *bearers_json(const struct bearers *all)
{
    const struct bearer *b;
    json_t *list = json_array();
    TAILQ_FOREACH(b, &all->list, link)
    if (b->expires > now_seconds())
        json_array_append_new(list, bearer_json(b));
    return list;
}

bool bearer_is_narrow(const struct bearer *b)
{
    return json_array_size(b->policies) || json_object_size(b->labels);
}

bool bearer_has_policy(const struct bearer *b, const char *policy)
{
    size_t i;
    json_t *name;
    json_array_foreach(b->policies, i,
                       name) if (strcmp(json_string_value(name), policy) == 0) return true;
    return json_array_size(b->policies) == 0;
}

bool bearer_sees(const struct bearer *b, const char *policy, const json_t *labels)
{
    const char *key;
    json_t *value;
    json_object_foreach(b->labels, key,
                        value) if (!json_equal(json_object_get(labels, key), value)) return false;
    return bearer_has_policy(b, policy);
}
