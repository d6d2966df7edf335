/* Fields of made secrets that are one of some words, and what keys that sign are called. */
#include <string.h>

#include "config_tree.h"

int config_mint_word(const struct node *n, enum derived_kind kind, enum spec_field field,
                     const char **ret, struct err *err)
{
    static const struct {
        enum derived_kind kind;
        enum spec_field field;
        const char *words[7];
    } all[] = {{DERIVED_OAUTH2, SPEC_AUTH, {"basic", "post"}},
               {DERIVED_OAUTH_LOGIN, SPEC_ENCODING, {"form", "json"}},
               {DERIVED_OAUTH_LOGIN, SPEC_REFRESH, {"yes", "no"}},
               {DERIVED_JWT, SPEC_ALGORITHM, {"RS256", "ES256"}},
               {DERIVED_CAPTURED, SPEC_KEEP, {"home"}},
               {DERIVED_POSTGRES_LOGIN, SPEC_AUTH, {"scram-sha-256", "md5", "password"}},
               {DERIVED_MYSQL_LOGIN, SPEC_AUTH, {"caching_sha2", "ed25519", "native"}},
               {DERIVED_SMTP_LOGIN, SPEC_AUTH, {"plain", "login", "xoauth2"}},
               {DERIVED_IMAP_LOGIN, SPEC_AUTH, {"plain", "login", "xoauth2"}},
               {DERIVED_HMAC_KEY, SPEC_ALGORITHM, {"sha256", "sha512", "sha1"}},
               {DERIVED_HMAC_KEY, SPEC_ENCODING, {"text", "hex", "base64"}},
               {DERIVED_SIGNATURE_KEY,
                SPEC_ALGORITHM,
                {"ed25519", "ecdsa-p256-sha256", "ecdsa-p384-sha384", "rsa-pss-sha512",
                 "rsa-v1_5-sha256", "hmac-sha256"}}};
    size_t i = 0, count = 0, word;
    while (i + 1 < ARRAY_LEN(all) && (all[i].kind != kind || all[i].field != field))
        i++;
    while (all[i].words[count])
        count++;
    if (node_word(n, all[i].words, count, &word, err) < 0)
        return -1;
    *ret = all[i].words[word];
    return 0;
}

int config_mint_key_ok(const struct node *n, const struct derived_spec *spec, struct err *err)
{
    if (spec->kind == DERIVED_SIGNATURE_KEY && strpbrk(spec->text[SPEC_KEY_ID], "\"\\ "))
        return node_fail(n, err, "'key_id' has no blank, quote or backslash");
    const char *user = spec->text[SPEC_USER];
    if (user && (strlen(user) == 0 || strlen(user) > 63))
        return node_fail(n, err, "'user' is the name of a role: 1 to 63 bytes");
    const char *account = spec->text[SPEC_ACCOUNT];
    if (account && (strlen(account) > 64 || strpbrk(account, ":/ ")))
        return node_fail(n, err, "'account' is the name of a storage account");
    return 0;
}

/* A claim of a token: its name, or a JSON pointer. */
static bool claim_ok(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] <= ' ' || s[i] >= 0x7f || s[i] == '"' || s[i] == '\\' ||
            (s[i] == '~' && (i + 1 == n || (s[i + 1] != '0' && s[i + 1] != '1'))))
            return false;
    return n > (s[0] == '/') && n <= 250;
}

int config_mint_claims_ok(const struct node *n, const struct derived_spec *spec, struct err *err)
{
    const char *at = spec->text[SPEC_CLAIMS];
    for (size_t count = 0; at && *at; count++) {
        size_t len = strcspn(at, " ");
        if (!claim_ok(at, len) || count == SPEC_CLAIMS_MAX)
            return node_fail(n, err,
                             "'claims' has at most %d names or JSON pointers, without blanks: "
                             "[exp, /realm/plan]",
                             SPEC_CLAIMS_MAX);
        at += len + (at[len] == ' ');
    }
    return 0;
}
