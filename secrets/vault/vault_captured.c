/* Replies that hold new secrets, on an injector's channel, and those secrets. */
#include "aws_sign.h"
#include "captured_internal.h"
#include "captured_token.h"
#include "placeholder.h"
#include "secret_list.h"
#include "vault_internal.h"
#include "wire.h"

#include <stdio.h>
#include <string.h>

enum { SANDBOX_MAX = 65, CAPTURE_PATH = 129 };

/* ok: the body and the values that were taken out of it; else why. */
static void put_answer(struct msg *m, uint32_t req, bool ok, struct slice body,
                       const struct captured_field *f, size_t n)
{
    struct captured_words words;
    captured_words_of(f, n, &words);
    msg_init(m, W_CAPTURED);
    msg_put_u32(m, req);
    msg_put_u8(m, ok);
    msg_put_slice(m, body);
    msg_put_u32(m, (uint32_t)words.n);
    for (size_t i = 0; i < words.n; i++)
        msg_put_slice(m, words.word[i].value);
}

static void answer(struct channel *c, uint32_t req, bool ok, struct slice body)
{
    struct msg m;
    put_answer(&m, req, ok, body, NULL, 0);
    ipc_send(c->ipc, &m);
}

void vault_captured_refuse(struct channel *c, uint32_t req, const char *why)
{
    answer(c, req, false, slice_str(why));
}

static bool is_captured(const struct channel *c, const char *secret)
{
    const struct vault *v = c->vault;
    size_t i = vault_index(v, slice_str(secret));
    return i < v->n && c->released[i] && v->secrets[i].mint &&
           derived_is_captured(v->secrets[i].mint);
}

struct asked_field {
    char path[CAPTURE_PATH], secret[SECRET_NAME_MAX + 1], placeholder[PLACEHOLDER_MAX];
};

static int read_fields(struct msg *m, struct asked_field *to, struct captured_field *f, uint32_t *n)
{
    if (msg_get_u32(m, n) < 0 || *n > CAPTURED_FIELDS_MAX)
        return -1;
    for (uint32_t i = 0; i < *n; i++) {
        if (msg_get_str(m, to[i].path, sizeof to[i].path) < 0 ||
            msg_get_str(m, to[i].secret, sizeof to[i].secret) < 0 ||
            msg_get_str(m, to[i].placeholder, sizeof to[i].placeholder) < 0)
            return -1;
        f[i] = (struct captured_field){to[i].path, to[i].placeholder, to[i].secret, NULL};
    }
    return 0;
}

/* What stands for tokens whose claims their sandbox may see: made of the values, so the reply is
 * read once to find these, and then written. */
struct shaped {
    char text[CAPTURED_FIELDS_MAX][CAPTURED_TOKEN_MAX];
    struct captured_words values;
};

static bool holds_value(void *arg, struct slice text)
{
    return captured_holds(arg, text);
}

static const char *claims_of(const struct channel *c, const char *secret)
{
    size_t i = vault_index(c->vault, slice_str(secret));
    return derived_claims(c->vault->secrets[i].mint);
}

static int shape(const struct channel *c, struct slice body, enum captured_form form,
                 struct captured_field *f, size_t n, struct shaped *ret, struct err *err)
{
    struct buf unused;
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any = any || claims_of(c, f[i].secret);
    if (!any)
        return 0;
    buf_init_wiped(&unused, CAPTURED_WRITTEN_MAX);
    int r = captured_rewrite(body, form, f, n, &unused, err);
    buf_free(&unused);
    captured_words_of(f, n, &ret->values);
    for (size_t i = 0; r == 0 && i < n; i++) {
        const char *claims = f[i].value ? claims_of(c, f[i].secret) : NULL;
        if (claims && captured_token(secret_slice(f[i].value), claims, f[i].placeholder,
                                     holds_value, &ret->values, ret->text[i]))
            f[i].placeholder = ret->text[i];
    }
    for (size_t i = 0; i < n; i++) {
        secret_unref(f[i].value);
        f[i].value = NULL;
    }
    return r;
}

int vault_capture(struct channel *c, struct msg *m)
{
    uint32_t req, n;
    uint8_t form;
    char sandbox[SANDBOX_MAX];
    struct asked_field asked[CAPTURED_FIELDS_MAX];
    struct captured_field f[CAPTURED_FIELDS_MAX];
    struct slice body;
    struct err err = {0};
    struct buf out;
    if (msg_get_u32(m, &req) < 0 || msg_get_str(m, sandbox, sizeof sandbox) < 0 ||
        read_fields(m, asked, f, &n) < 0 || msg_get_u8(m, &form) < 0 || form > CAPTURED_XML ||
        msg_get_slice(m, CAPTURED_REPLY_MAX, &body) < 0 || msg_end(m) < 0)
        return -1;
    char owner[VAULT_OWNER_MAX];
    int r = 0;
    snprintf(owner, sizeof owner, "%s|%s", c->policy, sandbox);
    for (uint32_t i = 0; i < n && r == 0; i++)
        if (!is_captured(c, f[i].secret))
            r = err_set(&err, ERR_DENIED, "not released to this policy");
    buf_init_wiped(&out, CAPTURED_WRITTEN_MAX);
    struct shaped shaped;
    if (r == 0)
        r = shape(c, body, form, f, n, &shaped, &err);
    if (r == 0)
        r = captured_rewrite(body, form, f, n, &out, &err);
    for (uint32_t i = 0; i < n && r == 0; i++)
        if (f[i].value && captured_put(c->vault->captured, owner, f[i].secret, f[i].value) < 0)
            r = err_set(&err, ERR_INTERNAL, "out of memory");
    size_t values = 0;
    for (uint32_t i = 0; i < n; i++)
        values += f[i].value ? secret_slice(f[i].value).n + 4 * CAPTURED_PARTS : 0;
    if (r == 0 && values + buf_len(&out) > IPC_MSG_MAX - 64)
        r = err_set(&err, ERR_LIMIT, "its secrets are too long");
    struct msg now, *said = &now;
    if (r == 0 && vault_home_takes(c, owner, f, n))
        r = (said = vault_home_save(c, req, f, n, &err)) ? 0 : -1;
    if (r == 0)
        put_answer(said, req, true, buf_slice(&out), f, n);
    else
        vault_captured_refuse(c, req, err.text);
    if (r == 0 && said == &now)
        ipc_send(c->ipc, &now);
    for (uint32_t i = 0; i < n; i++)
        secret_unref(f[i].value);
    buf_free(&out);
    return 0;
}

int vault_captured_get(struct channel *c, struct msg *m)
{
    uint32_t req;
    char sandbox[SANDBOX_MAX], name[SECRET_NAME_MAX + 1];
    if (msg_get_u32(m, &req) < 0 || msg_get_str(m, sandbox, sizeof sandbox) < 0 ||
        msg_get_str(m, name, sizeof name) < 0 || msg_end(m) < 0)
        return -1;
    char owner[VAULT_OWNER_MAX];
    snprintf(owner, sizeof owner, "%s|%s", c->policy, sandbox);
    struct secret *s = is_captured(c, name) ? captured_get(c->vault->captured, owner, name) : NULL;
    struct secret *told = s ? aws_pair_told(secret_slice(s)) : NULL; /* the key itself stays */
    if (s && told == NULL)
        told = secret_ref(s); /* it is none */
    answer(c, req, told != NULL,
           told ? secret_slice(told) : SLICE("no reply to this sandbox has held one yet"));
    secret_unref(told);
    return 0;
}

/* Of an AWS key the session token, for nothing else of it is ever sent. */
static struct slice sent_of(struct secret *s)
{
    struct aws_pair pair;
    return aws_pair_open(secret_slice(s), &pair) < 0 ? secret_slice(s) : pair.token;
}

int vault_captured_all(struct channel *c, struct msg *m)
{
    uint32_t req;
    char name[SECRET_NAME_MAX + 1];
    struct secret *all[CAPTURED_LIST_MAX];
    if (msg_get_u32(m, &req) < 0 || msg_get_str(m, name, sizeof name) < 0 || msg_end(m) < 0)
        return -1;
    if (!is_captured(c, name)) {
        answer(c, req, false, SLICE("not released to this policy"));
        return 0;
    }
    size_t n = captured_list(c->vault->captured, c->policy, name, all), sent = 0;
    for (size_t i = 0; i < n; i++)
        sent += sent_of(all[i]).n > 0;
    struct msg r;
    msg_init(&r, W_CAPTURED);
    msg_put_u32(&r, req);
    msg_put_u8(&r, true);
    msg_put_slice(&r, SLICE(""));
    msg_put_u32(&r, (uint32_t)sent);
    for (size_t i = 0; i < n; i++)
        if (sent_of(all[i]).n > 0)
            msg_put_slice(&r, sent_of(all[i]));
    ipc_send(c->ipc, &r);
    return 0;
}

struct secret *vault_captured_key(struct channel *c, const char *sandbox, struct slice name)
{
    char owner[VAULT_OWNER_MAX], text[SECRET_NAME_MAX + 1];
    snprintf(owner, sizeof owner, "%s|%s", c->policy, sandbox);
    snprintf(text, sizeof text, "%.*s", SL(name));
    return is_captured(c, text) ? captured_get(c->vault->captured, owner, text) : NULL;
}

int vault_captured_gone(struct vault *v, struct msg *m)
{
    char sandbox[SANDBOX_MAX];
    if (msg_get_str(m, sandbox, sizeof sandbox) < 0 || msg_end(m) < 0)
        return -1;
    captured_forget(v->captured, sandbox);
    return 0;
}
