/* Hashes lines and parses the two keys at the front of each. The process keeps one digest context,
 * because looking SHA-256 up costs more than hashing a line. */
#include "chain.h"

#include <openssl/evp.h>
#include <string.h>

void chain_genesis(struct chain *c)
{
    memset(c, 0, sizeof *c);
}

/* The one-shot calls look the algorithm up each time, which costs more than hashing a line: this
 * process keeps what it has found. */
static EVP_MD_CTX *hasher(void)
{
    static EVP_MD_CTX *ready;
    EVP_MD *sha256 = ready ? NULL : EVP_MD_fetch(NULL, "SHA256", NULL);
    EVP_MD_CTX *made = sha256 ? EVP_MD_CTX_new() : NULL;
    if (made && EVP_DigestInit_ex2(made, sha256, NULL) == 1)
        ready = made;
    EVP_MD_free(sha256);
    return ready;
}

int chain_hash(struct slice line, unsigned char hash[CHAIN_HASH])
{
    unsigned n = 0;
    EVP_MD_CTX *c = hasher();
    if (c == NULL || EVP_DigestInit_ex2(c, NULL, NULL) != 1 ||
        EVP_DigestUpdate(c, line.p, line.n) != 1 || EVP_DigestFinal_ex(c, hash, &n) != 1)
        return -1;
    return n == CHAIN_HASH ? 0 : -1;
}

int chain_step(struct chain *c, struct slice line)
{
    if (chain_hash(line, c->hash) < 0)
        return -1;
    c->seq++;
    return 0;
}

char *chain_hex(const unsigned char hash[CHAIN_HASH], char out[CHAIN_HEX])
{
    static const char digit[] = "0123456789abcdef";
    for (size_t i = 0; i < CHAIN_HASH; i++) {
        out[2 * i] = digit[hash[i] >> 4];
        out[2 * i + 1] = digit[hash[i] & 15];
    }
    out[CHAIN_HEX - 1] = 0;
    return out;
}

/* Each line of the log has 64 of them: no branch that a processor would have to guess. */
static unsigned nibble(char c, unsigned *bad)
{
    unsigned digit = (unsigned char)c - '0', letter = (unsigned char)c - 'a';
    *bad |= (digit > 9) & (letter > 5);
    return digit > 9 ? letter + 10 : digit;
}

int chain_unhex(struct slice hex, unsigned char hash[CHAIN_HASH])
{
    unsigned bad = 0;
    if (hex.n != CHAIN_HEX - 1)
        return -1;
    for (size_t i = 0; i < CHAIN_HASH; i++) {
        unsigned high = nibble(hex.p[2 * i], &bad);
        hash[i] = (unsigned char)(high << 4 | nibble(hex.p[2 * i + 1], &bad));
    }
    return bad ? -1 : 0;
}

int chain_parse(struct slice line, uint64_t *seq, unsigned char prev[CHAIN_HASH],
                struct slice *rest)
{
    static const struct slice first = SLICE("{\"seq\":"), second = SLICE("\"prev\":\"");
    if (!slice_starts(line, first) || line.p[line.n - 1] != '}')
        return -1;
    struct slice s = {line.p + first.n, line.n - first.n};
    ssize_t comma = slice_find(s, ',');
    if (comma <= 0 || s.p[0] == '0' ||
        slice_u64((struct slice){s.p, (size_t)comma}, INT64_MAX, seq) < 0)
        return -1;
    s.p += comma + 1;
    s.n -= (size_t)comma + 1;
    size_t hex = CHAIN_HEX - 1;
    if (!slice_starts(s, second) || s.n < second.n + hex + 2 || s.p[second.n + hex] != '"' ||
        chain_unhex((struct slice){s.p + second.n, hex}, prev) < 0)
        return -1;
    size_t used = second.n + hex + 1;
    *rest = (struct slice){s.p + used, s.n - used};
    return rest->p[0] == ',' ? 0 : -1;
}
