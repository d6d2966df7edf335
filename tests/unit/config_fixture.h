/* What the tests of the configuration share: text that parses, text that is refused with a place.
 */
#ifndef DURWARD_CONFIG_FIXTURE_H
#define DURWARD_CONFIG_FIXTURE_H

#include "config.h"
#include "tap_main.h"

#include <stdio.h>
#include <string.h>

static inline struct config *parsed(const char *text, struct err *err)
{
    return config_parse(slice_str(text), "/etc/durward/t.yaml", err);
}

/* The caller unrefs it. */
static inline struct config *good(const char *text)
{
    struct err e = {0};
    struct config *c = parsed(text, &e);
    if (c == NULL) {
        printf("# %s\n", e.text);
        CU_FAIL_FATAL("a configuration");
    }
    return c;
}

/* Refused with exactly this place and these words. */
static inline void says(const char *text, unsigned line, const char *want)
{
    struct err e = {0};
    char where[64];
    struct config *c = parsed(text, &e);
    snprintf(where, sizeof where, "/etc/durward/t.yaml:%u: ", line);
    if (c || strncmp(e.text, where, strlen(where)) != 0 || strstr(e.text, want) == NULL) {
        printf("# %s\n#   gives %s\n#   not %s%s\n", text, c ? "no error" : e.text, where, want);
        CU_FAIL("an error");
    }
    config_unref(c);
}

#define V "version: 1\n"

#endif
