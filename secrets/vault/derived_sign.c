/* What of a secret that signs is told, and what it signs. */
#include "derived.h"
#include "derived_internal.h"

#include "aws_sign.h"
#include "mysql_proof.h"
#include "scram_proof.h"
#include "ssh_sign.h"
#include "text_sign.h"
#include "tls_sign.h"

#include <stdio.h>
#include <string.h>

struct secret *derived_told(const struct derived *m, struct slice value)
{
    if (m->kind >= DERIVED_AWS_KEY && m->kind < DERIVED_CERTIFICATE)
        return aws_pair_told(value);
    char text[1300];
    if (m->kind == DERIVED_SSH_KEY || m->kind == DERIVED_SSH_SIGNING_KEY) {
        struct err err = {0};
        struct buf public;
        struct secret *told = NULL;
        buf_init(&public, SSH_PUBLIC_MAX);
        if (ssh_key_public(value, &public, &err) == 0)
            told = secret_new(buf_data(&public), buf_len(&public));
        buf_free(&public);
        return told;
    }
    if (m->kind == DERIVED_SSH_CERTIFICATE) /* which one depends on who asks: DERIVED_CERTIFY */
        return ssh_key_ok(value) ? secret_new("ssh certificate", 15) : NULL;
    if (m->kind == DERIVED_SSH_PASSWORD)
        return secret_new("ssh password", 12);
    if (m->kind == DERIVED_POSTGRES_LOGIN) {
        int n = snprintf(text, sizeof text, "%s %s", derived_text(m, SPEC_AUTH),
                         derived_text(m, SPEC_USER));
        return secret_new(text, (size_t)n);
    }
    if (m->kind == DERIVED_REDIS_LOGIN) {
        int n = snprintf(text, sizeof text, "redis %s", derived_text(m, SPEC_USER));
        return secret_new(text, (size_t)n);
    }
    if (m->kind == DERIVED_MYSQL_LOGIN) {
        int n = snprintf(text, sizeof text, "mysql %s", derived_text(m, SPEC_USER));
        return secret_new(text, (size_t)n);
    }
    if (m->kind == DERIVED_SMTP_LOGIN || m->kind == DERIVED_IMAP_LOGIN) {
        int n =
            snprintf(text, sizeof text, "%s %s %s", m->kind == DERIVED_SMTP_LOGIN ? "smtp" : "imap",
                     derived_text(m, SPEC_AUTH), derived_text(m, SPEC_USER));
        return secret_new(text, (size_t)n);
    }
    if (m->kind >= DERIVED_HMAC_KEY) {
        int n =
            snprintf(text, sizeof text, "%s %s", derived_text(m, SPEC_ALGORITHM),
                     derived_text(m, m->kind == DERIVED_AZURE_KEY ? SPEC_ACCOUNT : SPEC_KEY_ID));
        return secret_new(text, (size_t)n);
    }
    struct slice chain = tls_certificates(value);
    return chain.n ? secret_new(chain.p, chain.n) : NULL;
}

static int64_t monotonic_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* A login goes no weaker way than its declaration names. */
static int prove(const struct derived *m, struct slice password, uint32_t scheme, struct slice text,
                 struct buf *out, struct err *err)
{
    const char *auth = derived_text(m, SPEC_AUTH);
    bool md5 = strcmp(auth, "md5") == 0, clear = strcmp(auth, "password") == 0;
    if (scheme == SCRAM_SHA_256)
        return scram_proof(m->scram, password, text, monotonic_seconds(), out, err);
    if (scheme == SCRAM_MD5 && (md5 || clear))
        return scram_md5(password, slice_str(derived_text(m, SPEC_USER)), text, out, err);
    if (scheme == SCRAM_CLEARTEXT && clear && text.n == 0)
        return buf_append_slice(out, password) < 0
                   ? err_set(err, ERR_LIMIT, "the password is too long to be sent")
                   : 0;
    return err_set(err, ERR_DENIED,
                   "the server wants a weaker login than 'auth: %s' of its declaration", auth);
}

/* Redis and SSH know no proof of a password, nor do mail servers a common one: the back of their
 * broker is given it, for one login. */
static int give(struct slice password, uint32_t scheme, struct slice text, struct buf *out,
                struct err *err)
{
    if (scheme != SCRAM_CLEARTEXT || text.n > 0)
        return err_set(err, ERR_DENIED, "it does not sign that");
    return buf_append_slice(out, password) < 0
               ? err_set(err, ERR_LIMIT, "the password is too long to be sent")
               : 0;
}

/* The certificate of who asks, or a login with it. */
static int certify(const struct derived *m, const struct derived_whose *who, struct slice ca,
                   uint32_t scheme, struct slice text, struct buf *out, struct err *err)
{
    uint64_t minutes = 0;
    int64_t now = time(NULL);
    const struct ssh_certificates_owner of = {who->policy, who->sandbox};
    if (scheme == 0)
        return ssh_certificates_sign(m->certificates, &of, text, now, out, err);
    if (scheme != DERIVED_CERTIFY || text.n > 0 ||
        slice_u64(slice_str(derived_text(m, SPEC_MINUTES)), 1440, &minutes) < 0)
        return err_set(err, ERR_DENIED, "it does not sign that");
    const struct ssh_certificates_terms terms = {
        .principals = derived_text(m, SPEC_PRINCIPALS),
        .source_address = derived_text(m, SPEC_SOURCE_ADDRESS),
        .force_command = derived_text(m, SPEC_FORCE_COMMAND),
        .extensions = derived_text(m, SPEC_EXTENSIONS),
        .minutes = (unsigned)minutes};
    return ssh_certificates_get(m->certificates, &terms, &of, ca, now, out, err);
}

int derived_sign(const struct derived *m, const struct derived_whose *who, struct slice value,
                 uint32_t scheme, struct slice text, struct buf *out, struct err *err)
{
    if (m->kind == DERIVED_SSH_CERTIFICATE)
        return certify(m, who, value, scheme, text, out, err);
    if (m->kind == DERIVED_HMAC_KEY)
        return text_sign_hmac(value, derived_text(m, SPEC_ENCODING),
                              derived_text(m, SPEC_ALGORITHM), text, out, err);
    if (m->kind == DERIVED_AZURE_KEY)
        return text_sign_hmac(value, "base64", "sha256", text, out, err);
    if (m->kind == DERIVED_SIGNATURE_KEY)
        return text_sign_http(value, derived_text(m, SPEC_ALGORITHM), text, out, err);
    if (m->kind == DERIVED_POSTGRES_LOGIN)
        return prove(m, value, scheme, text, out, err);
    if (m->kind == DERIVED_REDIS_LOGIN || m->kind == DERIVED_SMTP_LOGIN ||
        m->kind == DERIVED_IMAP_LOGIN || m->kind == DERIVED_SSH_PASSWORD)
        return give(value, scheme, text, out, err);
    if (m->kind == DERIVED_MYSQL_LOGIN)
        return mysql_proof(value, derived_text(m, SPEC_AUTH), scheme, text, out, err);
    if (m->kind == DERIVED_SSH_KEY)
        return ssh_key_sign(value, text, out, err);
    if (m->kind == DERIVED_SSH_SIGNING_KEY)
        return ssh_key_sign_text(value, derived_text(m, SPEC_NAMESPACES), scheme, text, out, err);
    if (m->kind != DERIVED_CERTIFICATE || scheme > UINT16_MAX)
        return err_set(err, ERR_DENIED, "it does not sign that");
    return tls_sign(value, (uint16_t)scheme, text, out, err);
}

int derived_agent_may(const struct derived *m, struct slice key, uint32_t scheme, struct slice text,
                      struct ssh_signing *ret, struct err *err)
{
    if (m->kind == DERIVED_SSH_KEY)
        return ssh_login_may(key, text, ret, err);
    if (m->kind == DERIVED_SSH_SIGNING_KEY)
        return ssh_text_may(key, derived_text(m, SPEC_NAMESPACES), scheme, text, ret, err);
    return err_set(err, ERR_DENIED, "it does not sign that");
}

void derived_forget(const struct derived *m)
{
    if (m->scram)
        scram_keys_forget(m->scram);
    if (m->certificates)
        ssh_certificates_forget(m->certificates);
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
