/* Prints what was noted of a sandbox's files when it began. */
#include "run_notes.h"

#include <stdio.h>
#include <string.h>

#include "out.h"
#include "slice.h"

static const struct slice masked = SLICE("masked: "), others = SLICE("masked: and others");

/* One line after another; those of files, or the rest. */
static const char *next_note(const char *p, bool files, struct slice *ret)
{
    while (*p) {
        *ret = (struct slice){p, strcspn(p, "\n")};
        p += ret->n + (p[ret->n] == '\n');
        if (ret->n > 0 && slice_starts(*ret, masked) == files)
            return p;
    }
    return NULL;
}

static char *clean_note(struct slice s, char to[1000])
{
    char text[4200];
    snprintf(text, sizeof text, "%.*s", SL(s));
    return out_clean(text, to, 1000);
}

void run_notes_print(const char *notes)
{
    enum { SHOWN = 8 };
    char clean[1000], list[SHOWN * 1002 + 1] = "", rest[64] = "";
    struct slice s;
    size_t n = 0;
    bool more = false;
    for (const char *p = notes; (p = next_note(p, true, &s)) != NULL;) {
        size_t at = strlen(list);
        more |= slice_eq(s, others);
        if (slice_eq(s, others) || ++n > SHOWN)
            continue;
        snprintf(list + at, sizeof list - at, "%s%s", at ? ", " : "",
                 clean_note((struct slice){s.p + masked.n, s.n - masked.n}, clean));
    }
    if (n > SHOWN)
        snprintf(rest, sizeof rest, " and %zu%s more", n - SHOWN, more ? " or" : "");
    if (n)
        out_note("%zu%s %s with credentials hidden from the sandbox: %s%s", n, more ? "+" : "",
                 n == 1 ? "file" : "files", list, rest);
    for (const char *p = notes; (p = next_note(p, false, &s)) != NULL;)
        out_note("%s", clean_note(s, clean));
}
