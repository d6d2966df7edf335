/* Statements of whatever bytes: each is judged, none is carried that more of the rule would refuse
 * less, and one that is read has a fingerprint. */
#include "statement.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
    if (!right)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct statement_bounds loose = {STATEMENT_ANY, false, false, true},
                                         tight = {STATEMENT_ANY, true, true, false};
    struct statement s;
    if (size > 8192)
        return 0;
    statement_read((struct slice){(const char *)data, size}, &s);
    const char *a = statement_refusal(&s, &loose), *b = statement_refusal(&s, &tight);
    require(a == NULL || b != NULL);
    require(a || strlen(s.fingerprint) == STATEMENT_FINGERPRINT);
    require((s.classes & ~(unsigned)STATEMENT_ANY) == 0);
    return 0;
}
