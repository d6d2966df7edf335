/* What of a secret that signs is told, and what it signs. */
#include "derived.h"
#include "derived_internal.h"

#include "aws_sign.h"
#include "text_sign.h"
#include "tls_sign.h"

#include <stdio.h>
#include <string.h>

struct secret *derived_told(const struct derived *m, struct slice value)
{
    if (m->kind == AWS_KEY || m->kind == AWS_ROLE)
        return aws_pair_told(value);
    char text[1300];
    if (m->kind >= HMAC_KEY) {
        int n = snprintf(text, sizeof text, "%s %s", derived_text(m, "algorithm"),
                         derived_text(m, m->kind == AZURE_KEY ? "account" : "key_id"));
        return secret_new(text, (size_t)n);
    }
    struct slice chain = tls_certificates(value);
    return chain.n ? secret_new(chain.p, chain.n) : NULL;
}

int derived_sign(const struct derived *m, struct slice value, uint32_t scheme, struct slice text,
                 struct buf *out, struct err *err)
{
    if (m->kind == HMAC_KEY)
        return text_sign_hmac(value, derived_text(m, "encoding"), derived_text(m, "algorithm"),
                              text, out, err);
    if (m->kind == AZURE_KEY)
        return text_sign_hmac(value, "base64", "sha256", text, out, err);
    if (m->kind == SIGNATURE_KEY)
        return text_sign_http(value, derived_text(m, "algorithm"), text, out, err);
    if (m->kind != CERTIFICATE || scheme > UINT16_MAX)
        return err_set(err, ERR_DENIED, "it does not sign that");
    return tls_sign(value, (uint16_t)scheme, text, out, err);
}

bool derived_is_stored(const struct derived *m)
{
    return m->kind >= VAULT && m->kind <= ONEPASSWORD;
}

bool derived_renews(const struct derived *m)
{
    return m->renew != NULL;
}

bool derived_needs_login(const struct derived *m)
{
    return m->kind == VAULT || m->kind == OPENBAO;
}

bool derived_is_itself(const struct derived *m)
{
    return m->kind == VAULT_TOKEN;
}
