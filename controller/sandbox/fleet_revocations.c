/* Says what is revoked here, and applies what others say: to tokens of this host by the registry,
 * to tokens of its key that another host gave by the parent's list. */
#include "fleet_revocations.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "controller_internal.h"
#include "fleet_notes.h"
#include "identities.h"
#include "proc.h"
#include "token.h"

static const char kind[] = "revoked";

enum { API_SECONDS_MAX = 366 * 86400, SLACK = 86400 };

/* A token that is refused here, and of which nobody here knows whether there ever was one. */
struct foreign {
    char id[NOTE_ID_MAX + 1];
    int64_t expires;
    bool own; /* this host has said it */
};

struct fleet_revocations {
    struct controller *controller;
    struct foreign *foreign; /* FLEET_FOREIGN_MAX of them; NULL: none yet */
    size_t n_foreign;
    char key[FLEET_REVOCATION_KEY];
    void (*api)(void *arg, const char *id);
    void *api_arg;
};

static int64_t now_seconds(void)
{
    return (int64_t)time(NULL);
}

static bool is_identity(const char *id)
{
    return strncmp(id, "rt-", 3) == 0;
}

static bool is_bearer(const char *id)
{
    return strncmp(id, "tk-", 3) == 0;
}

/* The last second at which any token of an identity that there is now could be good. */
static int64_t latest(void)
{
    return now_seconds() + TOKEN_LIFE_SECONDS + TOKEN_SKEW_SECONDS;
}

int fleet_revocation_read(struct slice body, int64_t *expires, char key[FLEET_REVOCATION_KEY])
{
    uint64_t number;
    ssize_t dot = slice_find(body, '.');
    if (dot < 0)
        return -1;
    struct slice rest = {body.p + dot + 1, body.n - (size_t)dot - 1};
    bool none = slice_eq_str(rest, "-");
    if (slice_u64((struct slice){body.p, (size_t)dot}, INT64_MAX, &number) < 0 ||
        (!none && rest.n != FLEET_REVOCATION_KEY - 1))
        return -1;
    for (size_t i = 0; i < rest.n && !none; i++)
        if (!(rest.p[i] >= '0' && rest.p[i] <= '9') && !(rest.p[i] >= 'a' && rest.p[i] <= 'f'))
            return -1;
    *expires = (int64_t)number;
    memcpy(key, rest.p, rest.n);
    key[rest.n] = 0;
    return 0;
}

static int say(struct fleet_revocations *f, const char *id, int64_t expires, const char *key,
               struct err *err)
{
    char body[64];
    int64_t left = expires - now_seconds() + SLACK;
    snprintf(body, sizeof body, "%lld.%s", (long long)expires, key);
    return fleet_notes_put(f->controller->fleet, kind, id, slice_str(body),
                           left > SLACK ? (uint32_t)left : SLACK, true, err);
}

int fleet_revocations_say(struct fleet_revocations *f, const char *id, int64_t expires,
                          struct err *err)
{
    return f ? say(f, id, expires < latest() ? latest() : expires, f->key, err) : 0;
}

/* Those that no token can have any more go. */
static void prune(struct fleet_revocations *f)
{
    size_t kept = 0;
    for (size_t i = 0; i < f->n_foreign; i++)
        if (f->foreign[i].expires > now_seconds())
            f->foreign[kept++] = f->foreign[i];
    f->n_foreign = kept;
}

/* Ids that are made up must not fill the list of what is revoked: when that is full, every token is
 * refused. 0; 1: it is known; -1: there are too many. */
static int take_foreign(struct fleet_revocations *f, const char *id, bool own)
{
    size_t n_own = 0;
    if (f->foreign == NULL)
        f->foreign = calloc(FLEET_FOREIGN_MAX, sizeof *f->foreign);
    if (f->foreign == NULL)
        return -1;
    prune(f);
    for (size_t i = 0; i < f->n_foreign; i++) {
        n_own += f->foreign[i].own;
        if (strcmp(f->foreign[i].id, id) == 0)
            return 1;
    }
    if (f->n_foreign >= FLEET_FOREIGN_MAX || (own && n_own >= FLEET_FOREIGN_OWN))
        return -1;
    struct foreign *one = &f->foreign[f->n_foreign++];
    *one = (struct foreign){.expires = latest(), .own = own};
    snprintf(one->id, sizeof one->id, "%s", id);
    return 0;
}

int fleet_revocations_foreign(struct fleet_revocations *f, const char *id, struct err *err)
{
    if (f == NULL || !note_id_ok(id) || !(is_identity(id) || is_bearer(id)))
        return 1;
    if (take_foreign(f, id, true) < 0)
        return err_set(err, ERR_UNREADY, "too many tokens of other hosts were revoked here");
    if (is_bearer(id))
        return say(f, id, now_seconds() + API_SECONDS_MAX, "-", err);
    if (identities_refuse(f->controller, id, latest(), err) < 0)
        return -1;
    return say(f, id, latest(), "-", err);
}

/* A failover may lose it to hosts that start later: whoever has read it says it again. One that
 * says that it is for longer than any token lives is none of a host's, and hosts would say it to
 * one another for ever. */
static void keep(struct fleet_revocations *f, const char *id, struct slice body, int64_t expires)
{
    int64_t left = expires - now_seconds();
    int64_t longest = is_bearer(id) ? API_SECONDS_MAX : latest() - now_seconds();
    if (left > 0 && left <= longest + SLACK && (is_identity(id) || is_bearer(id)))
        fleet_notes_keep(f->controller->fleet, kind, id, body, (uint32_t)left + SLACK);
}

_Static_assert(API_SECONDS_MAX + 2 * SLACK <= NOTE_SECONDS_MAX, "it can be said again");

/* A text of a database that may be anybody's: it can refuse what it names, and no more. */
static void on_note(void *arg, const char *id, struct slice body)
{
    struct fleet_revocations *f = arg;
    char key[FLEET_REVOCATION_KEY];
    struct err err = {0};
    int64_t expires;
    if (fleet_revocation_read(body, &expires, key) < 0)
        return;
    keep(f, id, body, expires);
    if (is_bearer(id) && f->api)
        f->api(f->api_arg, id);
    if (!is_identity(id))
        return;
    int r = identities_revoke_told(f->controller, id, &err);
    if (r == 0)
        controller_record(f->controller, id, "token_revoked", "by another host of the fleet");
    bool foreign = r == 1 && key[0] == '-';
    if (foreign && take_foreign(f, id, false) < 0) {
        proc_log("a token that another host has revoked is refused there alone: too many were");
        return;
    }
    if (foreign || (r == 1 && strcmp(key, f->key) == 0))
        r = identities_refuse(f->controller, id, expires < latest() ? expires : latest(), &err);
    if (r >= 0)
        return;
    proc_log("a token that another host has revoked: %s", err.text);
    (void)identities_refuse(f->controller, id, latest(), &err); /* whatever the disk does */
    fleet_notes_again(f->controller->fleet);
}

void fleet_revocations_on_api(struct fleet_revocations *f, void (*fn)(void *arg, const char *id),
                              void *arg)
{
    f->api = fn;
    f->api_arg = arg;
}

struct fleet_revocations *fleet_revocations_new(struct controller *c)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    struct fleet_revocations *f = calloc(1, sizeof *f);
    if (f == NULL)
        return NULL;
    f->controller = c;
    SHA256(c->keys.token_public, sizeof c->keys.token_public, hash);
    for (size_t i = 0; i < (FLEET_REVOCATION_KEY - 1) / 2; i++)
        snprintf(f->key + 2 * i, 3, "%02x", hash[i]);
    fleet_notes_reader(c->fleet, &(struct fleet_reader){.kind = kind, .note = on_note, .arg = f});
    return f;
}

void fleet_revocations_free(struct fleet_revocations *f)
{
    if (f)
        free(f->foreign);
    free(f);
}
