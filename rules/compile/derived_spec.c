/* Says and reads what a secret is made of: the names in the configuration, and the message. */
#include "derived_spec.h"

#include <stdlib.h>
#include <string.h>

const char *derived_kind_name(enum derived_kind k)
{
    static const char *const names[DERIVED_KINDS] = {
        [DERIVED_OAUTH2] = "oauth2",
        [DERIVED_JWT] = "jwt",
        [DERIVED_GOOGLE] = "google",
        [DERIVED_GITHUB_APP] = "github_app",
        [DERIVED_ENTRA] = "entra",
        [DERIVED_TOKEN_EXCHANGE] = "token_exchange",
        [DERIVED_GOOGLE_INSTANCE] = "google_instance",
        [DERIVED_AZURE_INSTANCE] = "azure_instance",
        [DERIVED_OAUTH_LOGIN] = "oauth_login",
        [DERIVED_AWS_KEY] = "aws_key",
        [DERIVED_AWS_ROLE] = "aws_role",
        [DERIVED_AWS_WEB_IDENTITY] = "aws_web_identity",
        [DERIVED_AWS_CONTAINER] = "aws_container",
        [DERIVED_AWS_INSTANCE] = "aws_instance",
        [DERIVED_CERTIFICATE] = "client_certificate",
        [DERIVED_VAULT] = "vault",
        [DERIVED_OPENBAO] = "openbao",
        [DERIVED_AWS_SECRET] = "aws_secret",
        [DERIVED_AWS_PARAMETER] = "aws_parameter",
        [DERIVED_ONEPASSWORD] = "onepassword",
        [DERIVED_VAULT_TOKEN] = "vault_token",
        [DERIVED_VAULT_APPROLE] = "vault_approle",
        [DERIVED_VAULT_KUBERNETES] = "vault_kubernetes",
        [DERIVED_AWS_SESSION] = "aws_session",
        [DERIVED_CAPTURED] = "captured",
        [DERIVED_HMAC_KEY] = "hmac_key",
        [DERIVED_SIGNATURE_KEY] = "signature_key",
        [DERIVED_AZURE_KEY] = "azure_key",
        [DERIVED_SSH_KEY] = "ssh_key",
        [DERIVED_POSTGRES_LOGIN] = "postgres_login",
        [DERIVED_REDIS_LOGIN] = "redis_login",
        [DERIVED_MYSQL_LOGIN] = "mysql_login",
        [DERIVED_SMTP_LOGIN] = "smtp_login",
        [DERIVED_IMAP_LOGIN] = "imap_login",
        [DERIVED_SSH_SIGNING_KEY] = "ssh_signing_key",
        [DERIVED_SSH_CERTIFICATE] = "ssh_certificate",
        [DERIVED_SSH_PASSWORD] = "ssh_password",
    };
    return names[k];
}

static const char *const fields[SPEC_FIELDS] = {
    [SPEC_ACCESS_KEY_ID] = "access_key_id",
    [SPEC_ACCOUNT] = "account",
    [SPEC_ADDRESS] = "address",
    [SPEC_ALGORITHM] = "algorithm",
    [SPEC_API] = "api",
    [SPEC_APP_ID] = "app_id",
    [SPEC_ASSERTION] = "assertion",
    [SPEC_AUDIENCE] = "audience",
    [SPEC_AUTH] = "auth",
    [SPEC_AUTHORITY] = "authority",
    [SPEC_CA] = "ca",
    [SPEC_CERTIFICATE] = "certificate",
    [SPEC_CLAIMS] = "claims",
    [SPEC_CLIENT_ID] = "client_id",
    [SPEC_CLIENT_SECRET] = "client_secret",
    [SPEC_DURATION] = "duration",
    [SPEC_ENCODING] = "encoding",
    [SPEC_ENDPOINT] = "endpoint",
    [SPEC_EXTENSIONS] = "extensions",
    [SPEC_EXTERNAL_ID] = "external_id",
    [SPEC_FIELD] = "field",
    [SPEC_FORCE_COMMAND] = "force_command",
    [SPEC_INSTALLATION_ID] = "installation_id",
    [SPEC_ISSUER] = "issuer",
    [SPEC_ITEM] = "item",
    [SPEC_JWT] = "jwt",
    [SPEC_KEEP] = "keep",
    [SPEC_KEY] = "key",
    [SPEC_KEY_ID] = "key_id",
    [SPEC_MINUTES] = "minutes",
    [SPEC_MOUNT] = "mount",
    [SPEC_NAME] = "name",
    [SPEC_NAMESPACE] = "namespace",
    [SPEC_NAMESPACES] = "namespaces",
    [SPEC_PASSWORD] = "password",
    [SPEC_PATH] = "path",
    [SPEC_PRINCIPALS] = "principals",
    [SPEC_REFRESH] = "refresh",
    [SPEC_REFRESH_TOKEN] = "refresh_token",
    [SPEC_REGION] = "region",
    [SPEC_RESOURCE] = "resource",
    [SPEC_ROLE] = "role",
    [SPEC_ROLE_ARN] = "role_arn",
    [SPEC_ROLE_ID] = "role_id",
    [SPEC_SCOPE] = "scope",
    [SPEC_SECRET_ACCESS_KEY] = "secret_access_key",
    [SPEC_SECRET_ID] = "secret_id",
    [SPEC_SERVICE_ACCOUNT] = "service_account",
    [SPEC_SESSION] = "session",
    [SPEC_SESSION_NAME] = "session_name",
    [SPEC_SESSION_TOKEN] = "session_token",
    [SPEC_SOURCE_ADDRESS] = "source_address",
    [SPEC_SUBJECT] = "subject",
    [SPEC_SUBJECT_TOKEN] = "subject_token",
    [SPEC_SUBJECT_TOKEN_TYPE] = "subject_token_type",
    [SPEC_TENANT] = "tenant",
    [SPEC_TO] = "to",
    [SPEC_TOKEN] = "token",
    [SPEC_TOKEN_URL] = "token_url",
    [SPEC_USER] = "user",
    [SPEC_VAULT] = "vault",
};

const char *spec_field_name(enum spec_field f)
{
    return fields[f];
}

bool derived_spec_same(const struct derived_spec *a, const struct derived_spec *b)
{
    bool same = a->kind == b->kind && a->ttl == b->ttl;
    for (size_t i = 1; same && i < SPEC_FIELDS; i++)
        same = slice_eq(slice_str(a->text[i]), slice_str(b->text[i]));
    return same;
}

size_t derived_spec_bytes(const struct derived_spec *s)
{
    size_t n = 1 + 4 + 1;
    for (size_t i = 1; i < SPEC_FIELDS; i++)
        if (slice_str(s->text[i]).n)
            n += 1 + 4 + strlen(s->text[i]);
    return n;
}

void derived_spec_put(struct msg *m, const struct derived_spec *s)
{
    uint8_t n = 0;
    for (size_t i = 1; i < SPEC_FIELDS; i++)
        n = (uint8_t)(n + (slice_str(s->text[i]).n > 0));
    msg_put_u8(m, (uint8_t)s->kind);
    msg_put_u32(m, s->ttl);
    msg_put_u8(m, n);
    for (size_t i = 1; i < SPEC_FIELDS; i++)
        if (slice_str(s->text[i]).n) {
            msg_put_u8(m, (uint8_t)i);
            msg_put_str(m, s->text[i]);
        }
}

static int get_fields(struct msg *m, struct derived_spec *ret)
{
    uint8_t n, f, last = 0;
    if (msg_get_u8(m, &n) < 0)
        return -1;
    for (; n > 0; n--) {
        struct slice text;
        if (msg_get_u8(m, &f) < 0 || f <= last || f >= SPEC_FIELDS ||
            msg_get_slice(m, SPEC_TEXT_MAX, &text) < 0 || text.n == 0 ||
            (ret->text[f] = slice_dup(text)) == NULL) /* or a zero byte is in it */
            return -1;
        last = f;
    }
    return 0;
}

int derived_spec_get(struct msg *m, struct derived_spec *ret)
{
    uint8_t kind;
    memset(ret, 0, sizeof *ret);
    if (msg_get_u8(m, &kind) < 0 || kind == 0 || kind >= DERIVED_KINDS ||
        msg_get_u32(m, &ret->ttl) < 0)
        return -1;
    ret->kind = (enum derived_kind)kind;
    if (get_fields(m, ret) == 0)
        return 0;
    derived_spec_clear(ret);
    return -1;
}

void derived_spec_clear(struct derived_spec *s)
{
    for (size_t i = 0; i < SPEC_FIELDS; i++)
        free((char *)(uintptr_t)s->text[i]);
    memset(s, 0, sizeof *s);
}
