/* Makes identities and tells the parent of them, signs a token and describes how to use it with the
 * listener that fits best, and revokes. */
#include "identities.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "fleet_revocations.h"
#include "placeholders.h"
#include "registry.h"
#include "proc.h"
#include "revoked.h"
#include "token.h"
#include "trust.h"
#include "wire.h"

static int64_t now_seconds(void)
{
    return (int64_t)time(NULL);
}

static int announce(struct controller *c, const struct identity *i, struct err *err)
{
    struct placeholders p;
    struct msg m;
    if (placeholders_make(c->config, i->policy, i->seed, c->keys.tag, &p, err) < 0)
        return -1;
    msg_init(&m, W_SANDBOX);
    msg_put_str(&m, i->id);
    msg_put_str(&m, i->policy);
    msg_put_u32(&m, (uint32_t)p.n);
    for (size_t k = 0; k < p.n; k++) {
        msg_put_str(&m, p.list[k].placeholder);
        msg_put_str(&m, p.list[k].secret);
    }
    placeholders_done(&p);
    msg_put_bytes(&m, "", 0); /* it has no brokers, */
    msg_put_u32(&m, 0);       /* and no labels */
    if (ipc_send(c->owner.parent, &m) < 0)
        return err_set(err, ERR_UNREADY, "the parent does not listen");
    return 0;
}

static bool has_policy(const struct config *c, const char *policy)
{
    for (size_t i = 0; i < config_policies(c); i++)
        if (strcmp(config_policy_name(c, i), policy) == 0)
            return true;
    return false;
}

static int make(struct controller *c, enum identity_kind kind, const char *policy, int64_t expires,
                struct identity *i, struct err *err)
{
    *i = (struct identity){.kind = kind, .expires = expires};
    if (strlen(policy) > IDENTITY_POLICY_MAX)
        return err_set(err, ERR_LIMIT, "the policy's name is too long for a remote identity");
    memcpy(i->policy, policy, strlen(policy) + 1);
    if (getrandom(i->seed, sizeof i->seed, 0) != sizeof i->seed)
        return err_sys(err, "getrandom");
    if (sandbox_make_id(kind == IDENTITY_TOKEN ? "rt" : "rp", i->id, err) < 0)
        return -1;
    return registry_add(c->registry, i, err);
}

/* The lasting identity of whoever reaches the listeners bound to this policy. */
static int listener_identity(struct controller *c, const char *policy, struct identity *i,
                             struct err *err)
{
    int r = registry_listener(c->registry, policy, i, err);
    if (r == 1)
        r = make(c, IDENTITY_LISTENER, policy, INT64_MAX, i, err);
    return r;
}

struct announcing {
    struct controller *controller;
    struct err *err;
    int bad;
    struct revoked *said; /* of the next message */
};

static int announce_each(void *arg, const struct identity *i)
{
    struct announcing *a = arg;
    if (has_policy(a->controller->config, i->policy) && announce(a->controller, i, a->err) < 0)
        a->bad = -1;
    return a->bad;
}

/* No token of these is good any more: said until the last of each would have expired. */
static int say_revoked(struct controller *c, const struct revoked *said, struct err *err)
{
    struct msg m;
    msg_init(&m, W_REVOKED);
    (void)revoked_put(said, 0, &m);
    return ipc_send(c->owner.parent, &m) < 0 ? err_set(err, ERR_UNREADY, "the parent is gone") : 0;
}

static int revoked_each(void *arg, const struct identity *i)
{
    struct announcing *a = arg;
    if (i->kind != IDENTITY_TOKEN)
        return 0;
    if (revoked_count(a->said) == REVOKED_IN_MESSAGE) {
        a->bad = say_revoked(a->controller, a->said, a->err);
        revoked_free(a->said);
        a->said = revoked_new();
    }
    if (a->said == NULL)
        a->bad = err_set(a->err, ERR_INTERNAL, "no memory for what is revoked");
    else
        revoked_add(a->said, i->id, (uint64_t)i->expires, 0);
    return a->bad;
}

static int say_all_revoked(struct controller *c, struct announcing *a, struct err *err)
{
    int64_t floor;
    int r = -1;
    a->said = revoked_new();
    if (a->said == NULL)
        return err_set(err, ERR_INTERNAL, "no memory for what is revoked");
    if (registry_revoked_floor(c->registry, &floor, err) == 0 &&
        registry_each_revoked(c->registry, revoked_each, a, err) == 0 && a->bad == 0) {
        revoked_raise(a->said, (uint64_t)floor);
        r = say_revoked(c, a->said, err);
    }
    revoked_free(a->said);
    a->said = NULL;
    return r;
}

int identities_announce(struct controller *c, struct err *err)
{
    size_t n;
    struct identity i;
    struct announcing a = {c, err, 0, NULL};
    if (c->registry == NULL)
        return 0;
    const struct config_listen *l = config_listens(c->config, &n);
    for (size_t k = 0; k < n; k++)
        if (l[k].policy && listener_identity(c, l[k].policy, &i, err) < 0)
            return -1;
    if (registry_prune(c->registry, now_seconds(), err) < 0 ||
        registry_each(c->registry, now_seconds(), announce_each, &a, err) < 0 ||
        say_all_revoked(c, &a, err) < 0)
        return -1;
    return a.bad;
}

/* How well it serves a client of this policy; 0: not at all. One that takes tokens is good wherever
 * the client runs; for a client on another host, one that can be reached from there comes first
 * among those, and one in TLS. */
static unsigned fitness(const struct config_listen *l, const char *policy, bool remote)
{
    if (l->forwarded) /* no proxy: only its provider can speak to it */
        return 0;
    if (l->policy && strcmp(l->policy, policy) != 0)
        return 0;
    unsigned fit = l->policy ? 1 : 8;
    if (remote)
        fit += (l->local ? 0U : 4U) + (l->kind == LISTEN_HTTPS ? 2U : 0U);
    return fit;
}

/* The best listener for this policy's clients; the first of those that are equal. */
static const struct config_listen *find_listener(const struct config *c, const char *policy,
                                                 bool remote)
{
    size_t n;
    const struct config_listen *l = config_listens(c, &n), *best = NULL;
    unsigned most = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned fit = fitness(&l[i], policy, remote);
        if (fit > most) {
            most = fit;
            best = &l[i];
        }
    }
    return best;
}

static int sign(struct controller *c, const struct identity *i, char *out, size_t size,
                struct err *err)
{
    struct token t = {.expiry = (uint64_t)i->expires};
    snprintf(t.sandbox, sizeof t.sandbox, "%s", i->id);
    snprintf(t.policy, sizeof t.policy, "%s", i->policy);
    memcpy(t.seed, i->seed, sizeof t.seed);
    return token_sign(c->keys.token, &t, out, size, err);
}

static json_t *env_object(struct controller *c, const struct identity *i, struct err *err)
{
    struct placeholders p;
    struct strlist env = {0};
    json_t *v = NULL;
    if (placeholders_make(c->config, i->policy, i->seed, c->keys.tag, &p, err) < 0)
        return NULL;
    if (placeholders_env(c->config, i->policy, &p, &env, err) == 0)
        v = json_object();
    for (size_t k = 0; v && k < env.n; k++) {
        char *eq = strchr(env.v[k], '=');
        *eq = 0;
        json_object_set_new(v, env.v[k], json_string(eq + 1));
        *eq = '=';
    }
    strlist_done(&env);
    placeholders_done(&p);
    return v;
}

/* Name → certificate; two while the CA is being changed. */
static json_t *hashed_certs(struct controller *c, struct err *err)
{
    struct slice rest = slice_str(c->ca_pem), pem;
    json_t *v = json_object();
    char name[16];
    int found;
    while ((found = trust_hashed_next(&rest, &pem, name, sizeof name, err)) > 0)
        json_object_set_new(v, name, json_stringn(pem.p, pem.n));
    if (found == 0 && json_object_size(v) > 0)
        return v;
    json_decref(v);
    if (found == 0)
        err_set(err, ERR_PARSE, "there is no CA certificate");
    return NULL;
}

static json_t *describe(struct controller *c, const struct identity *i,
                        const struct config_listen *l, struct err *err)
{
    char token[TOKEN_TEXT_MAX] = "", proxy[TOKEN_TEXT_MAX + 300];
    bool with_token = i->kind == IDENTITY_TOKEN;
    if (with_token && sign(c, i, token, sizeof token, err) < 0)
        return NULL;
    snprintf(proxy, sizeof proxy, "%s://%s%s%s%s", l->kind == LISTEN_HTTPS ? "https" : "http",
             with_token ? "sandbox:" : "", token, with_token ? "@" : "", l->reached_at);
    json_t *env = env_object(c, i, err), *certs = env ? hashed_certs(c, err) : NULL;
    if (certs == NULL) {
        json_decref(env);
        return NULL;
    }
    json_t *v = json_pack("{s:s, s:s, s:s, s:o, s:s, s:s, s:o}", "id", i->id, "policy", i->policy,
                          "proxy", proxy, "env", env, "trust_dir", c->trust_outside, "ca",
                          c->ca_pem, "ca_hashed", certs);
    if (v == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    if (with_token) {
        json_object_set_new(v, "token", json_string(token));
        json_object_set_new(v, "expires", json_integer(i->expires));
    }
    explicit_bzero(token, sizeof token);
    explicit_bzero(proxy, sizeof proxy);
    return v;
}

json_t *identities_issue(struct controller *c, const char *policy, unsigned ttl, bool remote,
                         struct err *err)
{
    struct identity i;
    const struct config_listen *l = find_listener(c->config, policy, remote);
    int bad;
    if (!has_policy(c->config, policy)) {
        err_set(err, ERR_PARSE, "there is no policy '%s'", policy);
        return NULL;
    }
    if (l == NULL) {
        err_set(err, ERR_PARSE,
                "no listener serves policy '%s': add one to `listen`, bound to the policy or for "
                "tokens",
                policy);
        return NULL;
    }
    if (l->policy)
        bad = listener_identity(c, policy, &i, err);
    else
        bad = make(c, IDENTITY_TOKEN, policy, now_seconds() + ttl, &i, err);
    if (bad == 0)
        bad = announce(c, &i, err);
    return bad ? NULL : describe(c, &i, l, err);
}

struct sought {
    const char *id, *policy;
    bool there;
};

static int is_sought(void *arg, const struct identity *i)
{
    struct sought *s = arg;
    s->there = strcmp(i->id, s->id) == 0 && strcmp(i->policy, s->policy) == 0;
    return s->there;
}

bool identities_are_of(struct controller *c, const char *id, const char *policy)
{
    struct sought s = {id, policy, false};
    struct err err = {0};
    return registry_each(c->registry, now_seconds(), is_sought, &s, &err) >= 0 && s.there;
}

int identities_revoke_of(struct controller *c, const char *id, const char *policy, struct err *err)
{
    struct sought s = {id, policy, false};
    if (registry_each(c->registry, 0, is_sought, &s, err) < 0)
        return -1;
    return s.there ? identities_revoke(c, id, err) : 1;
}

int identities_refuse(struct controller *c, const char *id, int64_t expires, struct err *err)
{
    struct revoked *said = revoked_new();
    if (said == NULL)
        return err_set(err, ERR_INTERNAL, "no memory for what is revoked");
    revoked_add(said, id, (uint64_t)expires, 0);
    int r = say_revoked(c, said, err);
    revoked_free(said);
    return r;
}

int identities_revoke(struct controller *c, const char *id, struct err *err)
{
    struct err unsaid = {0};
    int r = identities_revoke_told(c, id, err);
    if (r == 0 && fleet_revocations_say(c->revocations, id, 0, &unsaid) < 0)
        proc_log("a revocation is not said to the fleet: %s", unsaid.text);
    return r;
}

int identities_revoke_told(struct controller *c, const char *id, struct err *err)
{
    struct msg m;
    int64_t expires, latest = now_seconds() + TOKEN_LIFE_SECONDS + TOKEN_SKEW_SECONDS;
    int r = registry_revoke(c->registry, id, &expires, err);
    if (r != 0)
        return r;
    if (identities_refuse(c, id, expires > latest ? expires : latest, err) < 0)
        return -1;
    msg_init(&m, W_SANDBOX_GONE);
    msg_put_str(&m, id);
    return ipc_send(c->owner.parent, &m) < 0 ? err_set(err, ERR_UNREADY, "the parent is gone") : 0;
}
