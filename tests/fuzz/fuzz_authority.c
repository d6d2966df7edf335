/* authority_parse: what it accepts is canonical, and reading its own text again gives the same. */
#include "authority.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_canonical(const struct authority *a, enum scheme scheme)
{
    char text[300], again_text[300];
    struct authority again;
    authority_text_port(a, text, sizeof text);
    if (authority_parse(&again, scheme, slice_str(text)) != 0 || !authority_eq(a, &again))
        abort();
    authority_text_port(&again, again_text, sizeof again_text);
    if (strcmp(text, again_text) != 0)
        abort();
    for (const char *p = a->host; *p; p++)
        if ((*p >= 'A' && *p <= 'Z') || *p <= ' ' || *p > '~' || *p == '%' || *p == '@')
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = {(const char *)data, size};
    for (int s = SCHEME_HTTP; s <= SCHEME_HTTPS; s++) {
        struct authority a;
        if (authority_parse(&a, (enum scheme)s, text) == 0)
            check_canonical(&a, (enum scheme)s);
    }
    return 0;
}
