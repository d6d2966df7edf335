/* Scanning for placeholders in whatever a sandbox sends. One byte says where in the text a real
 * placeholder is put: it must be found there, and found pieces lie in the text, one after another.
 */
#include "placeholder.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct found {
    const char *end; /* of the last one, and the least that the next may begin at */
    struct slice text;
    const char *wanted; /* a placeholder must be found to begin here, or to cover it */
    bool seen;
};

static void on_found(void *arg, struct slice s)
{
    struct found *f = arg;
    if (s.n < 31 || s.p < f->end || s.p + s.n > f->text.p + f->text.n)
        abort();
    f->end = s.p + s.n;
    if (s.p <= f->wanted && f->wanted < s.p + s.n)
        f->seen = true;
}

static struct placeholder_key *key(void)
{
    static const unsigned char tag[PLACEHOLDER_TAG_KEY] = "an installation's key, 32 bytes";
    static struct placeholder_key *k;
    if (k == NULL && (k = placeholder_key_new(tag)) == NULL)
        abort();
    return k;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const kinds[] = {"github-pat", "openai", "anthropic", ""};
    static const unsigned char seed[PLACEHOLDER_SEED] = "sixteen bytes..";
    char p[PLACEHOLDER_MAX];
    struct slice plain = {(const char *)data, size};
    struct found f = {.end = plain.p, .text = plain, .wanted = plain.p};
    size_t before = placeholder_scan(key(), plain, on_found, &f);
    if (placeholder_is(key(), plain) && before != 1)
        abort();
    if (size < 2 || size > 65536)
        return 0;
    if (placeholder_make(key(), seed, "name", kinds[data[0] % 4], p) < 0)
        abort();
    size_t n = strlen(p), at = data[1] % (size - 1), total = size + n;
    char *text = malloc(total);
    if (text == NULL)
        return 0;
    memcpy(text, data, at);
    memcpy(text + at, p, n);
    memcpy(text + at + n, data + at, size - at);
    f = (struct found){.end = text, .text = {text, total}, .wanted = text + at};
    placeholder_scan(key(), f.text, on_found, &f);
    if (!f.seen)
        abort();
    free(text);
    return 0;
}
