/* Targets of API requests: reading never leaves its bounds, and what fits a pattern with an id has
 * an argument of a segment's length. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api_asked.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void check(const struct asked *q, const char *pattern)
{
    struct asked copy = *q;
    if (!asked_fits(&copy, pattern))
        return;
    for (unsigned i = 0; i < ASKED_ARGS && copy.args[i]; i++)
        if (strlen(copy.args[i]) > 64 || strchr(copy.args[i], '/') || *copy.args[i] == 0)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static const char *const patterns[] = {"/v1/sandboxes", "/v1/sandboxes/{}",
                                           "/v1/sandboxes/{}/files/list",
                                           "/v1/sandboxes/{}/exec/{}"};
    struct asked q;
    struct err err;
    int64_t v;
    unsigned mode = 0;
    bool flag;
    char *uri = malloc(n + 1);
    if (uri == NULL)
        return 0;
    memcpy(uri, p, n);
    uri[n] = 0;
    if (asked_read(&q, uri, &err) == 0) {
        for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
            check(&q, patterns[i]);
        if (asked_only(&q, "label limit path mode recursive", &err) == 0 &&
            asked_number(&q, "limit", 1, 1000, 100, &v, &err) == 0 && (v < 1 || v > 1000))
            abort();
        (void)asked_bool(&q, "recursive", &flag, &err);
        if (asked_mode(asked_param(&q, "mode"), &mode, &err) == 0 && mode > 0777)
            abort();
        (void)asked_path(asked_param(&q, "path"), &err);
    }
    asked_done(&q);
    free(uri);
    return 0;
}
