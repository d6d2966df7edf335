/* Letters and lengths, the same for whatever side a note comes from. */
#include "note.h"

#include <string.h>

static bool all_of(struct slice s, const char *more)
{
    for (size_t i = 0; i < s.n; i++)
        if (!ascii_is_alnum((char)s.p[i]) && (s.p[i] == 0 || strchr(more, s.p[i]) == NULL))
            return false;
    return s.n > 0;
}

bool note_kind_ok(const char *kind)
{
    return strlen(kind) <= NOTE_KIND_MAX && all_of(slice_str(kind), "_");
}

bool note_id_ok(const char *id)
{
    return strlen(id) <= NOTE_ID_MAX && all_of(slice_str(id), "-");
}

bool note_body_ok(struct slice body)
{
    return body.n <= NOTE_BODY_MAX && all_of(body, "-_.");
}

bool note_replaces(const char *kind)
{
    return strcmp(kind, "host") == 0;
}
