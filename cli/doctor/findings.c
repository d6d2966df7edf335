/* Collects findings as JSON objects and prints them as they are, or as coloured lines with their
 * remedies. */
#include "findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "out.h"

enum { TEXT_MAX = 1024 };

static const char *const names[] = {
    [FINDING_OK] = "ok", [FINDING_NOTE] = "note", [FINDING_WARN] = "warn", [FINDING_FAIL] = "fail"};

static const enum colour colours[] = {[FINDING_OK] = COLOUR_GREEN,
                                      [FINDING_NOTE] = COLOUR_DIM,
                                      [FINDING_WARN] = COLOUR_YELLOW,
                                      [FINDING_FAIL] = COLOUR_RED};

void findings_add(struct findings *f, const char *check, enum finding_state s, const char *fix,
                  const char *fmt, ...)
{
    char text[TEXT_MAX], clean[TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (f->list == NULL)
        f->list = json_array();
    f->fails += s == FINDING_FAIL;
    f->warns += s == FINDING_WARN;
    json_t *row = json_pack("{s:s, s:s, s:s}", "check", check, "state", names[s], "what",
                            out_clean(text, clean, sizeof clean));
    if (row && fix)
        json_object_set_new(row, "fix", json_string(fix));
    json_array_append_new(f->list, row);
}

static enum finding_state state_of(const json_t *row)
{
    const char *name = json_string_value(json_object_get(row, "state"));
    for (int s = FINDING_OK; s < FINDING_FAIL; s++)
        if (name && strcmp(names[s], name) == 0)
            return (enum finding_state)s;
    return FINDING_FAIL;
}

int findings_print(const struct findings *f, bool json)
{
    size_t i;
    json_t *row;
    if (json)
        return out_json(json_pack("{s:b, s:i, s:i, s:O}", "ok", f->fails == 0, "failures",
                                  (int)f->fails, "warnings", (int)f->warns, "findings", f->list));
    json_array_foreach(f->list, i, row)
    {
        enum finding_state s = state_of(row);
        const char *fix = json_string_value(json_object_get(row, "fix"));
        char padded[8];
        snprintf(padded, sizeof padded, "%-4s", names[s]);
        out_coloured(stdout, colours[s], padded);
        printf("  %-10s %s\n", json_string_value(json_object_get(row, "check")),
               json_string_value(json_object_get(row, "what")));
        if (fix)
            printf("                  -> %s\n", fix);
    }
    if (f->fails || f->warns)
        printf("\n%u would break, %u would work with less\n", f->fails, f->warns);
    else
        printf("\nnothing would break\n");
    return out_flush();
}

void findings_done(struct findings *f)
{
    json_decref(f->list);
    *f = (struct findings){0};
}
