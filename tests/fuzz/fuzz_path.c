/* path_check and path_fold: no read past the end, folding is a fixed point, what passes has no dot
 * segment in any reading. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void paths(struct slice text)
{
    const char *why;
    char *once = malloc(text.n + 1), *twice = malloc(text.n + 1);
    int ok = path_check(text, &why);
    must((ok == 0) == (why == NULL));
    for (int r = PATH_SLASH_BYTE; r <= PATH_SLASH_SPLIT; r++) {
        size_t n = path_fold(text, (enum path_reading)r, once);
        must(n <= text.n);
        size_t m = path_fold((struct slice){once, n}, (enum path_reading)r, twice);
        must(n == m && memcmp(once, twice, n) == 0);
    }
    /* what passes has no dot segment when read with %2F as a slash */
    size_t n = path_fold(text, PATH_SLASH_SPLIT, once);
    once[n] = 0;
    if (ok == 0)
        must(strstr(once, "/../") == NULL && strstr(once, "/./") == NULL);
    free(once);
    free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    paths((struct slice){(const char *)data, size});
    return 0;
}
