/* A row of a fleet's notes, from whoever has its database: any line. What is taken is of the
 * letters that notes have, and what is sealed has been said by a host that is known. */
#include "fleet_revocations.h"
#include "fleet_seal.h"
#include "note.h"
#include "notes.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
    if (!right)
        abort();
}

/* This host's own key is the only one that is known: 32 bytes of 7. */
static struct fleet_seal *made(void)
{
    static const struct config_fleet nobody;
    unsigned char raw[FLEET_KEY];
    struct err err;
    memset(raw, 7, sizeof raw);
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, raw, sizeof raw);
    struct fleet_seal *s = key ? fleet_seal_new(key, &nobody, &err) : NULL;
    require(s != NULL);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fleet_seal *seal;
    struct note_row row;
    char key[FLEET_REVOCATION_KEY];
    const char *host = "?";
    int64_t expires;
    if (seal == NULL)
        seal = made();
    if (note_row_read((struct slice){(const char *)data, size}, &row) < 0)
        return 0;
    require(note_kind_ok(row.kind) && note_id_ok(row.id) && note_body_ok(row.body));
    if (fleet_revocation_read(row.body, &expires, key) == 0)
        require(expires >= 0 && strspn(key, "0123456789abcdef-") == strlen(key) && key[0]);
    json_t *v = fleet_seal_get(seal, row.kind, row.id, row.body, &host);
    require(v == NULL || strcmp(host, "") == 0);
    json_decref(v);
    return 0;
}
