/* What tests of derived secrets share: one made, and what is asked for it. */
#ifndef DURWARD_DERIVED_FIXTURE_H
#define DURWARD_DERIVED_FIXTURE_H

#include "derived.h"
#include "tap_main.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* As the vault is told: from an object of texts by their names. */
static void derived_said(struct msg *m, const char *json)
{
    struct derived_spec s = {.kind = 1};
    const char *name;
    uint64_t ttl = 0;
    json_t *v = json_loads(json, 0, NULL), *value;
    const char *kind = json_string_value(json_object_get(v, "kind"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(kind);
    while (s.kind < DERIVED_KINDS && strcmp(derived_kind_name(s.kind), kind) != 0)
        s.kind++;
    CU_ASSERT_FATAL(s.kind < DERIVED_KINDS);
    json_object_foreach(v, name, value)
    {
        enum spec_field f = 1;
        while (f < SPEC_FIELDS && strcmp(spec_field_name(f), name) != 0)
            f++;
        if (f < SPEC_FIELDS)
            s.text[f] = json_string_value(value);
        if (strcmp(name, "ttl") == 0)
            CU_ASSERT(slice_u64(slice_str(json_string_value(value)), 86400, &ttl) == 0);
        if (f == SPEC_FIELDS && strcmp(name, "ttl") != 0)
            CU_ASSERT_STRING_EQUAL_FATAL(name, "kind");
    }
    s.ttl = (uint32_t)ttl;
    derived_spec_put(m, &s);
    json_decref(v);
}

/* One that the vault has read; the caller's. */
static UNUSED struct derived *derived_made(const char *json)
{
    struct derived_spec s;
    struct msg m;
    msg_init(&m, 0);
    derived_said(&m, json);
    CU_ASSERT_EQUAL_FATAL(derived_spec_get(&m, &s), 0);
    CU_ASSERT_EQUAL(msg_end(&m), 0);
    msg_done(&m);
    struct derived *d = derived_new(&s);
    CU_ASSERT_PTR_NOT_NULL_FATAL(d);
    return d;
}

/* The first field of that name; "" where there is none. */
static UNUSED struct slice derived_field(const struct token_request *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->fields[i].name, name) == 0)
            return buf_slice(&r->fields[i].value);
    return SLICE("");
}

#endif
