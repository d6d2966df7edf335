/* Keeps keys and numbers; a value's number is from SHA-256, so that who may choose values finds no
 * second one with the number of another's. */
#include "sandbox_labels.h"

#include "ipc_msg.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

struct sandbox_labels {
    unsigned refs, n;
    struct label {
        char key[SANDBOX_LABEL_KEY_MAX + 1];
        uint64_t number;
    } list[];
};

uint64_t sandbox_labels_number(const char *key, const char *value)
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    uint64_t n = 0;
    EVP_MD_CTX *x = EVP_MD_CTX_new();
    bool ok = x && EVP_DigestInit_ex(x, EVP_sha256(), NULL) == 1 &&
              EVP_DigestUpdate(x, key, strlen(key) + 1) == 1 &&
              EVP_DigestUpdate(x, value, strlen(value)) == 1 &&
              EVP_DigestFinal_ex(x, hash, NULL) == 1;
    EVP_MD_CTX_free(x);
    if (!ok)
        abort(); /* memory is out, as in the arena */
    for (size_t i = 0; i < sizeof n; i++)
        n = n << 8 | hash[i];
    return n ? n : 1;
}

void sandbox_labels_put_one(struct msg *m, const char *key, const char *value)
{
    msg_put_str(m, key);
    msg_put_u64(m, sandbox_labels_number(key, value));
}

static const struct label *find(const struct sandbox_labels *l, const char *key)
{
    for (unsigned i = 0; l && i < l->n; i++)
        if (strcmp(l->list[i].key, key) == 0)
            return &l->list[i];
    return NULL;
}

struct sandbox_labels *sandbox_labels_get(struct msg *m)
{
    uint32_t n;
    if (msg_get_u32(m, &n) < 0 || n > SANDBOX_LABELS_MAX)
        return NULL;
    struct sandbox_labels *l = calloc(1, sizeof *l + n * sizeof l->list[0]);
    if (l == NULL)
        return NULL;
    l->refs = 1;
    for (uint32_t i = 0; i < n; i++) {
        struct label *to = &l->list[i];
        if (msg_get_str(m, to->key, sizeof to->key) < 0 || msg_get_u64(m, &to->number) < 0 ||
            to->key[0] == 0 || to->number == 0 || find(l, to->key)) {
            free(l);
            return NULL;
        }
        l->n++;
    }
    return l;
}

void sandbox_labels_put(const struct sandbox_labels *l, struct msg *m)
{
    msg_put_u32(m, l ? l->n : 0);
    for (unsigned i = 0; l && i < l->n; i++) {
        msg_put_str(m, l->list[i].key);
        msg_put_u64(m, l->list[i].number);
    }
}

struct sandbox_labels *sandbox_labels_ref(struct sandbox_labels *l)
{
    if (l)
        l->refs++;
    return l;
}

void sandbox_labels_unref(struct sandbox_labels *l)
{
    if (l && --l->refs == 0)
        free(l);
}

/* FNV-1a of the key, and of the number where there is one: two keys of one budget share no count.
 */
uint64_t sandbox_labels_count(const struct sandbox_labels *l, const char *key)
{
    const struct label *one = find(l, key);
    uint64_t h = 0xcbf29ce484222325u, number = one ? one->number : 0;
    for (const char *p = key; *p; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001b3u;
    h = (h ^ (one ? 2 : 1)) * 0x100000001b3u;
    for (unsigned i = 0; one && i < 64; i += 8)
        h = (h ^ (unsigned char)(number >> i)) * 0x100000001b3u;
    return h ? h : 1;
}
