#include "basic.h"

#include <limits.h>
#include <openssl/evp.h>

static bool alphabet(char c)
{
    return ascii_is_alnum(c) || c == '+' || c == '/';
}

int basic_decode(struct slice value, char *out, size_t size, struct slice *pair)
{
    if (!slice_istarts(value, SLICE("basic ")))
        return -1;
    struct slice b = slice_trim((struct slice){value.p + 6, value.n - 6});
    if (b.n == 0 || b.n % 4 != 0 || b.n > INT_MAX || b.n / 4 * 3 > size)
        return -1;
    /* EVP_DecodeBlock takes blanks, "-" and any number of "=", and counts none of them */
    size_t pad = 0;
    while (pad < 2 && b.p[b.n - 1 - pad] == '=')
        pad++;
    for (size_t i = 0; i < b.n - pad; i++)
        if (!alphabet(b.p[i]))
            return -1;
    int n = EVP_DecodeBlock((unsigned char *)out, (const unsigned char *)b.p, (int)b.n);
    if (n < (int)pad)
        return -1;
    *pair = (struct slice){out, (size_t)n - pad};
    return 0;
}

int basic_split(struct slice pair, struct slice *user, struct slice *password)
{
    ssize_t colon = slice_find(pair, ':');
    if (colon < 0)
        return -1;
    *user = (struct slice){pair.p, (size_t)colon};
    *password = (struct slice){pair.p + colon + 1, pair.n - (size_t)colon - 1};
    return 0;
}
