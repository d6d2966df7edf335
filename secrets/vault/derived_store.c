/* Secrets that are kept behind an endpoint: HashiCorp Vault and OpenBao (KV version 2), AWS Secrets
 * Manager and Systems Manager parameters, 1Password Connect; and the logins of the first. */
#include "derived_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- asking ---- */

static int put_secret(struct token_request *r, const char *name, const char *scheme,
                      const struct secret *s)
{
    struct buf *to = token_request_field(r, name);
    return to ? buf_append_str(to, scheme) | buf_append_slice(to, secret_slice(s)) : -1;
}

/* {NAME: TEXT, SECRET_NAME: the secret}, each left out when it is NULL. */
static int put_json(struct token_request *r, const char *name, const char *text,
                    const char *secret_name, const struct secret *secret)
{
    json_t *v = json_object();
    int bad = name ? json_object_set_new(v, name, json_string(text)) : 0;
    if (secret_name) {
        struct slice s = secret_slice(secret);
        bad |= json_object_set_new(v, secret_name, json_stringn(s.p, s.n));
    }
    char *body = bad ? NULL : json_dumps(v, JSON_COMPACT);
    json_decref(v);
    bad = body ? buf_append_str(&r->body, body) : -1;
    if (body)
        explicit_bzero(body, strlen(body));
    free(body);
    return bad;
}

static int ask_vault(const struct derived *m, struct secret *const *in, const struct secret *old,
                     struct token_request *r)
{
    const char *space = derived_text(m, SPEC_NAMESPACE);
    int bad = derived_field(r, "x-vault-request", "true");
    if (*space)
        bad |= derived_field(r, "x-vault-namespace", space);
    if (m->kind == DERIVED_VAULT || m->kind == DERIVED_OPENBAO) {
        r->method = "GET";
        return bad | put_secret(r, "x-vault-token", "", in[0]);
    }
    bad |= derived_field(r, "content-type", "application/json");
    if (old)
        r->url = m->renew;
    if (old || m->kind == DERIVED_VAULT_TOKEN)
        return bad | put_secret(r, "x-vault-token", "", old ? old : in[0]) |
               put_json(r, NULL, NULL, NULL, NULL);
    if (m->kind == DERIVED_VAULT_APPROLE)
        return bad | put_json(r, "role_id", derived_text(m, SPEC_ROLE_ID), "secret_id", in[0]);
    return bad | put_json(r, "role", derived_text(m, SPEC_ROLE), "jwt", in[0]);
}

static int ask_aws(const struct derived *m, const struct secret *key, time_t now,
                   struct token_request *r, struct err *err)
{
    static const char type[] = "application/x-amz-json-1.1";
    bool parameter = m->kind == DERIVED_AWS_PARAMETER;
    json_t *v = json_object();
    int bad = json_object_set_new(v, parameter ? "Name" : "SecretId",
                                  json_string(derived_text(m, SPEC_NAME)));
    if (parameter)
        bad |= json_object_set_new(v, "WithDecryption", json_true());
    char *body = bad ? NULL : json_dumps(v, JSON_COMPACT);
    json_decref(v);
    bad = body ? buf_append_str(&r->body, body) : -1;
    free(body);
    return bad | derived_field(r, "content-type", type) |
           derived_sign_post(m, key, parameter ? "ssm" : "secretsmanager", type,
                             parameter ? "AmazonSSM.GetParameter" : "secretsmanager.GetSecretValue",
                             now, r, err);
}

int derived_store_ask(const struct derived *m, struct secret *const *in, const struct secret *old,
                      time_t now, struct token_request *r, struct err *err)
{
    switch (m->kind) {
    case DERIVED_AWS_SECRET:
    case DERIVED_AWS_PARAMETER:
        return ask_aws(m, in[0], now, r, err);
    case DERIVED_ONEPASSWORD:
        r->method = "GET";
        return put_secret(r, "authorization", "Bearer ", in[0]);
    default:
        return ask_vault(m, in, old, r);
    }
}

/* ---- the answer ---- */

static struct secret *text_secret(const json_t *v)
{
    const char *s = json_string_value(v);
    size_t n = json_string_length(v);
    return s && n > 0 && n <= SECRET_MAX ? secret_new(s, n) : NULL;
}

/* The whole text, or one field of it when it is a JSON object. */
static struct secret *field_of(const json_t *text, const char *field)
{
    if (*field == 0)
        return text_secret(text);
    const char *s = json_string_value(text);
    json_t *v = s ? json_loadb(s, json_string_length(text), JSON_REJECT_DUPLICATES, NULL) : NULL;
    struct secret *found = text_secret(json_object_get(v, field));
    json_decref(v);
    return found;
}

/* By the field's id or its label; one that two fields have is nobody's. */
static struct secret *item_field(const json_t *item, const char *name)
{
    const json_t *fields = json_object_get(item, "fields"), *found = NULL;
    for (size_t i = 0; i < json_array_size(fields); i++) {
        const json_t *f = json_array_get(fields, i);
        const char *id = json_string_value(json_object_get(f, "id"));
        const char *label = json_string_value(json_object_get(f, "label"));
        if ((id && strcmp(id, name) == 0) || (label && strcmp(label, name) == 0)) {
            if (found)
                return NULL;
            found = f;
        }
    }
    return text_secret(json_object_get(found, "value"));
}

/* {"auth": {"client_token", "lease_duration"}}; a lease of 0 never ends. */
static int take_login(const json_t *v, struct derived_answer *ret)
{
    const json_t *auth = json_object_get(v, "auth");
    json_int_t lease = json_integer_value(json_object_get(auth, "lease_duration"));
    ret->value = derived_token(json_object_get(auth, "client_token"));
    ret->seconds = derived_life(lease > 0 ? lease : DERIVED_LIFE);
    return ret->value ? 0 : -1;
}

int derived_store_take(const struct derived *m, const json_t *v, struct derived_answer *ret)
{
    const char *field = derived_text(m, SPEC_FIELD);
    ret->seconds = m->spec.ttl;
    switch (m->kind) {
    case DERIVED_VAULT:
    case DERIVED_OPENBAO:
        v = json_object_get(json_object_get(v, "data"), "data");
        ret->value = text_secret(json_object_get(v, derived_text(m, SPEC_KEY)));
        break;
    case DERIVED_AWS_SECRET:
        ret->value = field_of(json_object_get(v, "SecretString"), field);
        break;
    case DERIVED_AWS_PARAMETER:
        ret->value = text_secret(json_object_get(json_object_get(v, "Parameter"), "Value"));
        break;
    case DERIVED_ONEPASSWORD:
        ret->value = item_field(v, field);
        break;
    default:
        return take_login(v, ret);
    }
    return ret->value ? 0 : -1;
}

const char *derived_store_hint(const struct derived *m, unsigned status)
{
    bool refused = status == 401 || status == 403;
    switch (m->kind) {
    case DERIVED_VAULT:
    case DERIVED_OPENBAO:
        return refused         ? "its login may not read this path"
               : status == 404 ? "nothing is there; is 'mount' a KV version 2 mount?"
               : status == 503 ? "it is sealed or on standby"
                               : NULL;
    case DERIVED_VAULT_TOKEN:
    case DERIVED_VAULT_APPROLE:
    case DERIVED_VAULT_KUBERNETES:
        return refused || status == 400 ? "this login is refused"
               : status == 404          ? "there is no such login; look at its 'mount'"
               : status == 503          ? "it is sealed or on standby"
                                        : NULL;
    case DERIVED_ONEPASSWORD:
        return refused         ? "its token may not read this item"
               : status == 404 ? "there is no such vault or item; both are told by their UUID"
                               : NULL;
    default:
        return NULL;
    }
}

void derived_store_absent(const struct derived *m, struct err *err)
{
    bool kv = m->kind == DERIVED_VAULT || m->kind == DERIVED_OPENBAO;
    const char *field = derived_text(m, kv ? SPEC_KEY : SPEC_FIELD);
    if (*field)
        err_set(err, ERR_PARSE, "what is stored there has no text named '%s'%s", field,
                m->kind == DERIVED_ONEPASSWORD ? ", or more than one" : "");
    else
        err_set(err, ERR_PARSE, "what is stored there is no text, or empty");
}
