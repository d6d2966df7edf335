/* Fields of made secrets that are one of some words, and what keys that sign are called. */
#include <string.h>

#include "config_tree.h"

int config_mint_word(const struct node *n, const char *kind, const char *name, const char **ret,
                     struct err *err)
{
    static const struct {
        const char *kind, *name, *words[7];
    } all[] = {{"oauth2", "auth", {"basic", "post"}},
               {"jwt", "algorithm", {"RS256", "ES256"}},
               {"hmac_key", "algorithm", {"sha256", "sha512", "sha1"}},
               {"hmac_key", "encoding", {"text", "hex", "base64"}},
               {"signature_key",
                "algorithm",
                {"ed25519", "ecdsa-p256-sha256", "ecdsa-p384-sha384", "rsa-pss-sha512",
                 "rsa-v1_5-sha256", "hmac-sha256"}}};
    size_t i = 0, count = 0, word;
    while (i + 1 < ARRAY_LEN(all) &&
           (strcmp(all[i].kind, kind) != 0 || strcmp(all[i].name, name) != 0))
        i++;
    while (all[i].words[count])
        count++;
    if (node_word(n, all[i].words, count, &word, err) < 0)
        return -1;
    *ret = all[i].words[word];
    return 0;
}

int config_mint_key_ok(const struct node *n, const char *kind, const json_t *spec, struct err *err)
{
    const char *id = json_string_value(json_object_get(spec, "key_id"));
    if (strcmp(kind, "signature_key") == 0 && strpbrk(id, "\"\\ "))
        return node_fail(n, err, "'key_id' has no blank, quote or backslash");
    const char *account = json_string_value(json_object_get(spec, "account"));
    if (account && (strlen(account) > 64 || strpbrk(account, ":/ ")))
        return node_fail(n, err, "'account' is the name of a storage account");
    return 0;
}
