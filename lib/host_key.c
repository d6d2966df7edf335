/* Makes the host key of a sandbox's brokers, and writes both halves as SSH does. */
#include "host_key.h"

#include "base64.h"
#include "ssh_wire.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

enum { BLOB_MAX = 512, PAD = 8 };

int host_key_make(struct slice seed, unsigned char key[HOST_KEY_SEED])
{
    static const unsigned char label[] = "durward: host key of brokers";
    unsigned n = 0;
    return HMAC(EVP_sha256(), seed.p, (int)seed.n, label, sizeof label - 1, key, &n) &&
                   n == HOST_KEY_SEED
               ? 0
               : -1;
}

static int public_half(const unsigned char *key, unsigned char ret[32])
{
    size_t n = 32;
    EVP_PKEY *p = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, key, HOST_KEY_SEED);
    int r = p && EVP_PKEY_get_raw_public_key(p, ret, &n) == 1 && n == 32 ? 0 : -1;
    EVP_PKEY_free(p);
    return r;
}

static int put_public(const unsigned char public[32], struct buf *b)
{
    return ssh_wire_put_string(b, SLICE("ssh-ed25519")) < 0
               ? -1
               : ssh_wire_put_string(b, (struct slice){(const char *)public, 32});
}

int host_key_public(const unsigned char key[HOST_KEY_SEED], struct buf *out)
{
    unsigned char public[32];
    struct buf blob;
    buf_init(&blob, BLOB_MAX);
    int r = public_half(key, public) < 0 || put_public(public, &blob) < 0 ||
                    buf_append_str(out, "ssh-ed25519 ") < 0 ||
                    base64_append(out, buf_slice(&blob)) < 0
                ? -1
                : 0;
    buf_free(&blob);
    return r;
}

/* The part that a passphrase would encrypt. */
static int put_private(const unsigned char *key, const unsigned char *public, struct buf *b)
{
    unsigned char pad = 0;
    if (ssh_wire_put_u32(b, 1) < 0 || ssh_wire_put_u32(b, 1) < 0 || put_public(public, b) < 0 ||
        ssh_wire_put_u32(b, HOST_KEY_SEED + 32) < 0 || buf_append(b, key, HOST_KEY_SEED) < 0 ||
        buf_append(b, public, 32) < 0 || ssh_wire_put_string(b, SLICE("")) < 0)
        return -1;
    while (buf_len(b) % PAD != 0)
        if (ssh_wire_put_u8(b, ++pad) < 0)
            return -1;
    return 0;
}

int host_key_private(const unsigned char key[HOST_KEY_SEED], struct buf *out)
{
    static const char magic[] = "openssh-key-v1"; /* its NUL is part of it */
    unsigned char public[32];
    struct buf half, private, blob;
    buf_init(&half, BLOB_MAX);
    buf_init_wiped(&private, BLOB_MAX);
    buf_init_wiped(&blob, BLOB_MAX);
    int r = public_half(key, public) < 0 || put_public(public, &half) < 0 ||
                    put_private(key, public, &private) < 0 ||
                    buf_append(&blob, magic, sizeof magic) < 0 ||
                    ssh_wire_put_string(&blob, SLICE("none")) < 0 ||
                    ssh_wire_put_string(&blob, SLICE("none")) < 0 ||
                    ssh_wire_put_string(&blob, SLICE("")) < 0 || ssh_wire_put_u32(&blob, 1) < 0 ||
                    ssh_wire_put_string(&blob, buf_slice(&half)) < 0 ||
                    ssh_wire_put_string(&blob, buf_slice(&private)) < 0 ||
                    buf_append_str(out, "-----BEGIN OPENSSH PRIVATE KEY-----\n") < 0 ||
                    base64_append(out, buf_slice(&blob)) < 0 ||
                    buf_append_str(out, "\n-----END OPENSSH PRIVATE KEY-----\n") < 0
                ? -1
                : 0;
    buf_free(&half);
    buf_free(&private);
    buf_free(&blob);
    return r;
}
