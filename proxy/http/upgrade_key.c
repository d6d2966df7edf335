/* A handshake's key and its answer, with OpenSSL: whoever only reads heads is not linked with it.
 */
#include "upgrade.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <string.h>

enum { KEY_BYTES = 16, SHA1_BYTES = 20 };

int upgrade_accept(struct slice key, char to[UPGRADE_ACCEPT_TEXT])
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; /* RFC 6455 1.3 */
    unsigned char sum[EVP_MAX_MD_SIZE];
    char text[UPGRADE_KEY_TEXT - 1 + sizeof guid - 1];
    unsigned n;
    if (key.n != UPGRADE_KEY_TEXT - 1)
        return -1;
    memcpy(text, key.p, key.n);
    memcpy(text + key.n, guid, sizeof guid - 1);
    if (EVP_Digest(text, sizeof text, sum, &n, EVP_sha1(), NULL) != 1 || n != SHA1_BYTES)
        return -1;
    EVP_EncodeBlock((unsigned char *)to, sum, SHA1_BYTES);
    return 0;
}

int upgrade_make_key(char to[UPGRADE_KEY_TEXT])
{
    unsigned char raw[KEY_BYTES];
    if (RAND_bytes(raw, sizeof raw) != 1)
        return -1;
    EVP_EncodeBlock((unsigned char *)to, raw, sizeof raw);
    return 0;
}
