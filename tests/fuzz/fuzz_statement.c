/* Statements of whatever bytes: each is judged, none is carried that more of the rule would refuse
 * less, one that is read has a fingerprint, and what is remembered of one is what another of other
 * numbers says. */
#include "statement_cache.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
    if (!right)
        abort();
}

/* The same with each digit another. */
static void remember(const char *text, size_t size, const struct statement *said)
{
    char other[8192];
    struct statement_cache *cache = statement_cache_new();
    struct statement s, t;
    require(cache != NULL);
    for (size_t i = 0; i < size; i++)
        other[i] =
            text[i] >= '0' && text[i] <= '9' ? (char)('0' + (text[i] - '0' + 4) % 10) : text[i];
    for (int i = 0; i < 2; i++) {
        (void)statement_cache_read(cache, (struct slice){text, size}, &s);
        require(memcmp(&s, said, sizeof s) == 0);
    }
    (void)statement_cache_read(cache, (struct slice){other, size}, &s);
    statement_read((struct slice){other, size}, &t);
    require(memcmp(&s, &t, sizeof s) == 0);
    statement_cache_free(cache);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct statement_bounds loose = {STATEMENT_ANY, false, false, true},
                                         tight = {STATEMENT_ANY, true, true, false};
    struct statement s;
    if (size > 8192)
        return 0;
    statement_read((struct slice){(const char *)data, size}, &s);
    remember((const char *)data, size, &s);
    const char *a = statement_refusal(&s, &loose), *b = statement_refusal(&s, &tight);
    require(a == NULL || b != NULL);
    require(a || strlen(s.fingerprint) == STATEMENT_FINGERPRINT);
    require((s.classes & ~(unsigned)STATEMENT_ANY) == 0);
    return 0;
}
