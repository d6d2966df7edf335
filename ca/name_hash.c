/* Sums up what all spellings of a name have in common: of each attribute its type, and of its value
 * the letters and digits of ASCII, in lower case. RFC 5280 and OpenSSL compare without regard to
 * case, to white space that surrounds or repeats, to which of the string types was chosen, and to
 * the order of the attributes of one RDN. */
#include "name_hash.h"

static const uint32_t basis = 2166136261u, prime = 16777619u; /* FNV-1a */

static uint32_t mix(uint32_t h, unsigned char c)
{
    return (h ^ c) * prime;
}

/* Bytes of one character; 0: not text, which is compared as it is. */
static size_t width_of(int tag)
{
    switch (tag) {
    case 12: /* UTF8String: no byte of a character beyond ASCII is one of ASCII */
    case 19: /* PrintableString */
    case 20: /* T61String, which OpenSSL reads as Latin-1 */
    case 22: /* IA5String */
    case 26: /* VisibleString */
        return 1;
    case 28: /* UniversalString */
        return 4;
    case 30: /* BMPString */
        return 2;
    default:
        return 0;
    }
}

static uint32_t mix_text(uint32_t h, struct slice text, size_t width)
{
    const unsigned char *p = (const unsigned char *)text.p;
    for (size_t i = 0; width && i + width <= text.n; i += width) {
        unsigned char high = 0, c = p[i + width - 1];
        for (size_t k = 0; k + 1 < width; k++)
            high |= p[i + k];
        if (c >= 'A' && c <= 'Z')
            c = (unsigned char)(c + ('a' - 'A'));
        if (high == 0 && ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')))
            h = mix(h, c);
    }
    return h;
}

void name_hash_begin(struct name_hash *h)
{
    *h = (struct name_hash){.whole = basis};
}

void name_hash_attribute(struct name_hash *h, struct slice oid, int tag, struct slice value)
{
    uint32_t one = basis;
    for (size_t i = 0; i < oid.n; i++)
        one = mix(one, (unsigned char)oid.p[i]);
    h->rdn += mix_text(one, value, width_of(tag)); /* in whatever order they come */
}

void name_hash_rdn(struct name_hash *h)
{
    for (unsigned shift = 0; shift < 32; shift += 8)
        h->whole = mix(h->whole, (unsigned char)(h->rdn >> shift));
    h->rdn = 0;
}

uint32_t name_hash_end(const struct name_hash *h)
{
    return h->whole;
}
