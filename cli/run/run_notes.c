/* Prints what was noted of a sandbox's files when it began. */
#include "run_notes.h"

#include <stdio.h>
#include <string.h>

#include "out.h"
#include "slice.h"

void run_notes_print(const char *notes)
{
    enum { SHOWN = 8 };
    static const struct slice masked = SLICE("masked: "), others = SLICE("masked: and others");
    char text[4200], clean[1000], list[SHOWN * 1002 + 1] = "", rest[64] = "";
    size_t n = 0;
    bool more = false;
    for (const char *p = notes; *p; p += *p == '\n') {
        struct slice s = {p, strcspn(p, "\n")};
        p += s.n;
        bool file = slice_starts(s, masked);
        more |= slice_eq(s, others);
        if (s.n == 0 || slice_eq(s, others) || (file && ++n > SHOWN))
            continue;
        size_t skip = file ? masked.n : 0, at = strlen(list);
        snprintf(text, sizeof text, "%.*s", (int)(s.n - skip), s.p + skip);
        out_clean(text, clean, sizeof clean);
        if (file)
            snprintf(list + at, sizeof list - at, "%s%s", at ? ", " : "", clean);
        else
            out_error("%s", clean);
    }
    if (n > SHOWN)
        snprintf(rest, sizeof rest, " and %zu%s more", n - SHOWN, more ? " or" : "");
    if (n)
        out_error("%zu%s %s with credentials hidden from the sandbox: %s%s", n, more ? "+" : "",
                  n == 1 ? "file" : "files", list, rest);
}
