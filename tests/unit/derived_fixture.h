/* What tests of derived secrets share: one made, and what is asked for it. */
#ifndef DURWARD_DERIVED_FIXTURE_H
#define DURWARD_DERIVED_FIXTURE_H

#include "derived.h"
#include "tap_main.h"

#include <string.h>

/* From its JSON, which must be good; the caller's. */
static struct derived *derived_made(const char *spec)
{
    struct err err = {0};
    struct derived *m = derived_new(spec, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(m);
    return m;
}

/* The first field of that name; "" where there is none. */
static struct slice derived_field(const struct token_request *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->fields[i].name, name) == 0)
            return buf_slice(&r->fields[i].value);
    return SLICE("");
}

#endif
