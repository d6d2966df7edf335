/* Names that ask for another method, in bodies of every kind: what is found does not depend on how
 * the bytes are cut, and a name is found as well when all of it is percent-encoded. First byte: the
 * body's type; what follows up to the first line's end is the type's parameters. */
#include "override.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
    if (!right)
        abort();
}

static bool scan(struct slice type, struct slice body, size_t step)
{
    struct override_scan s;
    bool found = false;
    if (!override_begin(&s, type))
        return false;
    for (size_t i = 0; i < body.n; i += step) {
        size_t n = body.n - i < step ? body.n - i : step;
        bool now = override_data(&s, body.p + i, n);
        require(now || !found); /* it is not taken back */
        found = now;
        require(s.n <= OVERRIDE_LINE_MAX && s.boundary_n <= sizeof s.boundary);
    }
    return found;
}

static void names(struct slice name)
{
    static const char digits[] = "0123456789abcdef";
    if (name.n > 4096 || slice_find(name, '%') >= 0)
        return;
    char *coded = malloc(name.n * 3 + 1);
    require(coded != NULL);
    for (size_t i = 0; i < name.n; i++) {
        unsigned char c = (unsigned char)name.p[i];
        memcpy(coded + 3 * i, (char[]){'%', digits[c >> 4], digits[c & 15]}, 3);
    }
    if (override_parameter(name))
        require(override_parameter((struct slice){coded, name.n * 3}));
    free(coded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const types[] = {"application/x-www-form-urlencoded", "application/json",
                                        "application/a+json", "multipart/form-data", ""};
    char type[512];
    if (size < 2)
        return 0;
    struct slice body = {(const char *)data + 1, size - 1};
    ssize_t line = slice_find(body, '\n');
    struct slice more = {body.p, line < 0 ? 0 : (size_t)line};
    const char *kind = types[data[0] % ARRAY_LEN(types)];
    size_t n = strlen(kind);
    if (more.n > sizeof type - n)
        return 0;
    memcpy(type, kind, n);
    memcpy(type + n, more.p, more.n);
    body = (struct slice){body.p + more.n + (line >= 0), body.n - more.n - (line >= 0)};
    bool whole = scan((struct slice){type, n + more.n}, body, body.n ? body.n : 1);
    require(scan((struct slice){type, n + more.n}, body, 1) == whole);
    require(scan((struct slice){type, n + more.n}, body, 7) == whole);
    names(body);
    return 0;
}
