/* Canonical authorities and path checks: no crash, no read past the end, fixed points. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "authority.h"
#include "path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void authorities(struct slice text)
{
    struct authority a, b;
    char once[300], twice[300];
    if (authority_parse(&a, SCHEME_HTTPS, text) < 0)
        return;
    must(a.port != 0 && strlen(a.host) <= HOST_MAX);
    authority_text(&a, once, sizeof once);
    must(authority_parse(&b, SCHEME_HTTPS, slice_str(once)) == 0);
    must(authority_eq(&a, &b));
    authority_text(&b, twice, sizeof twice);
    must(strcmp(once, twice) == 0);
    authority_text_port(&a, once, sizeof once);
    must(authority_parse(&b, SCHEME_HTTP, slice_str(once)) == 0);
    must(authority_same_host(&a, &b) && a.port == b.port);
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
    struct slice text = {(const char *)data, size};
    struct authority a;
    (void)authority_host(&a, text);
    authorities(text);
    paths(text);
    return 0;
}
