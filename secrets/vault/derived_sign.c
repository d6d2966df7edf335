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
    if (m->kind >= DERIVED_AWS_KEY && m->kind < DERIVED_CERTIFICATE)
        return aws_pair_told(value);
    char text[1300];
    if (m->kind >= DERIVED_HMAC_KEY) {
        int n =
            snprintf(text, sizeof text, "%s %s", derived_text(m, SPEC_ALGORITHM),
                     derived_text(m, m->kind == DERIVED_AZURE_KEY ? SPEC_ACCOUNT : SPEC_KEY_ID));
        return secret_new(text, (size_t)n);
    }
    struct slice chain = tls_certificates(value);
    return chain.n ? secret_new(chain.p, chain.n) : NULL;
}

int derived_sign(const struct derived *m, struct slice value, uint32_t scheme, struct slice text,
                 struct buf *out, struct err *err)
{
    if (m->kind == DERIVED_HMAC_KEY)
        return text_sign_hmac(value, derived_text(m, SPEC_ENCODING),
                              derived_text(m, SPEC_ALGORITHM), text, out, err);
    if (m->kind == DERIVED_AZURE_KEY)
        return text_sign_hmac(value, "base64", "sha256", text, out, err);
    if (m->kind == DERIVED_SIGNATURE_KEY)
        return text_sign_http(value, derived_text(m, SPEC_ALGORITHM), text, out, err);
    if (m->kind != DERIVED_CERTIFICATE || scheme > UINT16_MAX)
        return err_set(err, ERR_DENIED, "it does not sign that");
    return tls_sign(value, (uint16_t)scheme, text, out, err);
}

bool derived_is_stored(const struct derived *m)
{
    return m->kind >= DERIVED_VAULT && m->kind <= DERIVED_ONEPASSWORD;
}

bool derived_renews(const struct derived *m)
{
    return m->renew != NULL;
}

bool derived_needs_login(const struct derived *m)
{
    return m->kind == DERIVED_VAULT || m->kind == DERIVED_OPENBAO ||
           m->kind == DERIVED_AWS_INSTANCE;
}

bool derived_is_itself(const struct derived *m)
{
    return m->kind == DERIVED_VAULT_TOKEN;
}
