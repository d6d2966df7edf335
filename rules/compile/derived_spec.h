/* What a secret that is made of others is made of: its kind and the texts that its declaration
 * gives, checked with the configuration. The parent tells the vault (W_INIT), which makes it
 * (secrets/vault/derived.h). A text is one that the kind has, or it is not there.
 *
 * In a message: kind:u8 ttl:u32 n:u8, n × (field:u8, text:str), in the order of the fields. */
#ifndef DURWARD_DERIVED_SPEC_H
#define DURWARD_DERIVED_SPEC_H

#include "ipc_msg.h"

/* From DERIVED_VAULT on: what is kept behind an endpoint, and the logins for it; from
 * DERIVED_HMAC_KEY on: keys that sign texts. */
enum derived_kind {
    DERIVED_OAUTH2 = 1,
    DERIVED_JWT,
    DERIVED_GOOGLE,
    DERIVED_GITHUB_APP,
    DERIVED_ENTRA,
    DERIVED_TOKEN_EXCHANGE,
    DERIVED_GOOGLE_INSTANCE,
    DERIVED_AZURE_INSTANCE,
    DERIVED_OAUTH_LOGIN,
    DERIVED_AWS_KEY,
    DERIVED_AWS_ROLE,
    DERIVED_AWS_WEB_IDENTITY,
    DERIVED_AWS_CONTAINER,
    DERIVED_AWS_INSTANCE,
    DERIVED_CERTIFICATE,
    DERIVED_VAULT,
    DERIVED_OPENBAO,
    DERIVED_AWS_SECRET,
    DERIVED_AWS_PARAMETER,
    DERIVED_ONEPASSWORD,
    DERIVED_VAULT_TOKEN,
    DERIVED_VAULT_APPROLE,
    DERIVED_VAULT_KUBERNETES,
    DERIVED_AWS_SESSION,
    DERIVED_CAPTURED,
    DERIVED_HMAC_KEY,
    DERIVED_SIGNATURE_KEY,
    DERIVED_AZURE_KEY,
    DERIVED_SSH_KEY,
    DERIVED_POSTGRES_LOGIN,
    DERIVED_REDIS_LOGIN,
    DERIVED_MYSQL_LOGIN,
    DERIVED_SMTP_LOGIN,
    DERIVED_IMAP_LOGIN,
    DERIVED_SSH_SIGNING_KEY,
    DERIVED_SSH_CERTIFICATE,
    DERIVED_SSH_PASSWORD,
    DERIVED_KINDS
};

/* One that names a secret has the name; `to` has ranges, `claims` names with blanks between. */
enum spec_field {
    SPEC_ACCESS_KEY_ID = 1,
    SPEC_ACCOUNT,
    SPEC_ADDRESS,
    SPEC_ALGORITHM,
    SPEC_API,
    SPEC_APP_ID,
    SPEC_ASSERTION,
    SPEC_AUDIENCE,
    SPEC_AUTH,
    SPEC_AUTHORITY,
    SPEC_CA,
    SPEC_CERTIFICATE,
    SPEC_CLAIMS,
    SPEC_CLIENT_ID,
    SPEC_CLIENT_SECRET,
    SPEC_DURATION,
    SPEC_ENCODING,
    SPEC_ENDPOINT,
    SPEC_EXTENSIONS,
    SPEC_EXTERNAL_ID,
    SPEC_FIELD,
    SPEC_FORCE_COMMAND,
    SPEC_INSTALLATION_ID,
    SPEC_ISSUER,
    SPEC_ITEM,
    SPEC_JWT,
    SPEC_KEEP,
    SPEC_KEY,
    SPEC_KEY_ID,
    SPEC_MINUTES,
    SPEC_MOUNT,
    SPEC_NAME,
    SPEC_NAMESPACE,
    SPEC_NAMESPACES,
    SPEC_PASSWORD,
    SPEC_PATH,
    SPEC_PRINCIPALS,
    SPEC_REFRESH,
    SPEC_REFRESH_TOKEN,
    SPEC_REGION,
    SPEC_RESOURCE,
    SPEC_ROLE,
    SPEC_ROLE_ARN,
    SPEC_ROLE_ID,
    SPEC_SCOPE,
    SPEC_SECRET_ACCESS_KEY,
    SPEC_SECRET_ID,
    SPEC_SERVICE_ACCOUNT,
    SPEC_SESSION,
    SPEC_SESSION_NAME,
    SPEC_SESSION_TOKEN,
    SPEC_SOURCE_ADDRESS,
    SPEC_SUBJECT,
    SPEC_SUBJECT_TOKEN,
    SPEC_SUBJECT_TOKEN_TYPE,
    SPEC_TENANT,
    SPEC_TO,
    SPEC_TOKEN,
    SPEC_TOKEN_URL,
    SPEC_USER,
    SPEC_VAULT,
    SPEC_FIELDS
};

enum { SPEC_TEXT_MAX = 1500, SPEC_BYTES_MAX = 4000, SPEC_CLAIMS_MAX = 16 };

struct derived_spec {
    enum derived_kind kind;
    uint32_t ttl;                  /* seconds that what a store gives may be kept */
    const char *text[SPEC_FIELDS]; /* NULL: not given */
};

/* As the configuration says them. */
const char *derived_kind_name(enum derived_kind k); /* "oauth2" */
const char *spec_field_name(enum spec_field f);     /* "token_url" */

bool derived_spec_same(const struct derived_spec *a, const struct derived_spec *b);
size_t derived_spec_bytes(const struct derived_spec *s); /* in a message */
void derived_spec_put(struct msg *m, const struct derived_spec *s);
/* Its texts are the caller's: derived_spec_clear. -1: bad, and there is nothing to clear. */
int derived_spec_get(struct msg *m, struct derived_spec *ret);
void derived_spec_clear(struct derived_spec *s);

#endif
