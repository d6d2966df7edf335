/* Signing for injectors: the key stays here. */
#include "aws_sign.h"
#include "host_agent.h"
#include "secret_client.h"
#include "ssh_certificate.h"
#include "ssh_sign.h"
#include "tls_sign.h"
#include "vault_internal.h"
#include "wire.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)SECRET_CLIENT_SIGNATURE_MAX >= (int)SSH_SIGNATURE_MAX &&
                   (int)SECRET_CLIENT_SIGNATURE_MAX >= (int)SSH_CERTIFICATE_MAX,
               "who asks takes what is signed here");

struct to_sign {
    char sandbox[65]; /* "": the key is no captured one */
    char key_id[129];
    struct aws_scope scope;
};

static void answer_bytes(struct channel *c, uint32_t req, bool ok, struct slice s)
{
    struct msg m;
    msg_init(&m, W_SIGNED);
    msg_put_u32(&m, req);
    msg_put_u8(&m, ok);
    msg_put_slice(&m, s);
    ipc_send(c->ipc, &m);
}

static void answer(struct channel *c, uint32_t req, const char *signature, const char *why)
{
    answer_bytes(c, req, signature != NULL, slice_str(signature ? signature : why));
}

static void sign_with(struct channel *c, uint32_t req, const struct to_sign *s,
                      struct secret *value, const char *why)
{
    struct aws_pair pair;
    char signature[AWS_HEX + 1];
    if (value == NULL)
        answer(c, req, NULL, why);
    else if (aws_pair_open(secret_slice(value), &pair) < 0)
        answer(c, req, NULL, "it is not a key that signs");
    else if (!slice_eq_str(pair.id, s->key_id))
        answer(c, req, NULL, "the key was changed meanwhile; ask again");
    else if (aws_sign(&pair, &s->scope, signature) < 0)
        answer(c, req, NULL, "signing failed");
    else
        answer(c, req, signature, "");
}

static void on_pair(void *arg, struct secret *value, unsigned ttl UNUSED, const char *why)
{
    struct asked *a = arg;
    struct channel *c = a->channel;
    uint32_t req = a->req;
    struct to_sign s = *(struct to_sign *)a->more;
    vault_asked_free(a);
    sign_with(c, req, &s, value, why);
}

int vault_sign(struct channel *c, struct msg *m)
{
    struct vault *v = c->vault;
    struct to_sign s;
    uint32_t req;
    uint8_t text;
    struct slice name;
    if (msg_get_u32(m, &req) < 0 || msg_get_slice(m, 128, &name) < 0 ||
        msg_get_str(m, s.sandbox, sizeof s.sandbox) < 0 ||
        msg_get_str(m, s.key_id, sizeof s.key_id) < 0 ||
        msg_get_str(m, s.scope.time, sizeof s.scope.time) < 0 ||
        msg_get_str(m, s.scope.region, sizeof s.scope.region) < 0 ||
        msg_get_str(m, s.scope.service, sizeof s.scope.service) < 0 ||
        msg_get_str(m, s.scope.hash, sizeof s.scope.hash) < 0 || msg_get_u8(m, &text) < 0 ||
        msg_get_str(m, s.scope.previous, sizeof s.scope.previous) < 0 || msg_end(m) < 0)
        return -1;
    s.scope.text = text;
    if (!aws_scope_ok(&s.scope))
        return -1;
    struct secret *own = s.sandbox[0] ? vault_captured_key(c, s.sandbox, name) : NULL;
    if (own) {
        sign_with(c, req, &s, own, "");
        return 0;
    }
    size_t i = vault_index(v, name);
    if (i == v->n || !c->released[i] || v->secrets[i].mint == NULL ||
        !derived_signs(v->secrets[i].mint)) {
        answer(c, req, NULL, "not released to this policy");
        return 0;
    }
    struct asked *a = vault_asked_new(c, req);
    void *more = a ? malloc(sizeof s) : NULL;
    if (more == NULL) {
        if (a)
            vault_asked_free(a);
        answer(c, req, NULL, "out of memory");
        return 0;
    }
    memcpy(more, &s, sizeof s);
    a->more = more;
    struct vault_wait *w = vault_entry_get(v->secrets[i].entry, on_pair, a);
    if (w)
        a->wait = w;
    return 0;
}

/* ---- other keys: a text, by the key's own way ---- */

static void on_key(void *arg, struct secret *value, unsigned ttl UNUSED, const char *why)
{
    struct asked *a = arg;
    struct channel *c = a->channel;
    uint32_t req = a->req;
    const struct derived *d = a->of;
    struct text_to_sign *t = a->more;
    const struct derived_whose who = {c->policy, t->sandbox};
    struct err err = {0};
    struct buf out;
    a->more = NULL;
    vault_asked_free(a);
    buf_init(&out, SECRET_CLIENT_SIGNATURE_MAX);
    if (value == NULL)
        answer(c, req, NULL, why);
    else if (host_agent_is(secret_slice(value))) {
        if (vault_agent_sign(c, req, d, secret_slice(value), t, &err) < 0)
            answer(c, req, NULL, err.text);
    } else if (derived_sign(d, &who, secret_slice(value), t->scheme, (struct slice){t->text, t->n},
                            &out, &err) < 0)
        answer(c, req, NULL, err.text);
    else
        answer_bytes(c, req, true, buf_slice(&out));
    buf_free(&out);
    free(t);
}

int vault_sign_text(struct channel *c, struct msg *m)
{
    struct vault *v = c->vault;
    uint32_t req, scheme;
    struct slice name, text;
    char sandbox[sizeof((struct text_to_sign *)0)->sandbox];
    if (msg_get_u32(m, &req) < 0 || msg_get_slice(m, 128, &name) < 0 ||
        msg_get_str(m, sandbox, sizeof sandbox) < 0 || msg_get_u32(m, &scheme) < 0 ||
        msg_get_slice(m, TLS_SIGNED_MAX, &text) < 0 || msg_end(m) < 0)
        return -1;
    size_t i = vault_index(v, name);
    if (i == v->n || !c->released[i] || v->secrets[i].mint == NULL ||
        !derived_signs(v->secrets[i].mint)) {
        answer(c, req, NULL, "not released to this policy");
        return 0;
    }
    struct asked *a = vault_asked_new(c, req);
    struct text_to_sign *t = a ? malloc(sizeof *t + text.n) : NULL;
    if (t == NULL) {
        if (a)
            vault_asked_free(a);
        answer(c, req, NULL, "out of memory");
        return 0;
    }
    memcpy(t->sandbox, sandbox, sizeof t->sandbox);
    t->scheme = scheme;
    t->n = text.n;
    memcpy(t->text, text.p, text.n);
    a->more = t;
    a->of = v->secrets[i].mint;
    struct vault_wait *w = vault_entry_get(v->secrets[i].entry, on_key, a);
    if (w)
        a->wait = w;
    return 0;
}
