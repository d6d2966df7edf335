/* Patterns of what is left out, as a .gitignore has them: `*`, `?`, `[a-z]`, `**` between slashes,
 * a slash in front or within (it is of the whole path), one at the end (a directory), `!` (not,
 * after all), `#`. The last that fits decides; what lies in an ignored directory is ignored. */
#ifndef DURWARD_SYNC_IGNORE_H
#define DURWARD_SYNC_IGNORE_H

#include "err.h"
#include "strlist.h"

enum { SYNC_PATTERNS = 1000, SYNC_IGNORE_BYTES = 64 * 1024 };

struct sync_ignore {
    struct sync_pattern *v; /* owned */
    size_t n, room;
};

/* One line. -1 with err. */
int sync_ignore_add(struct sync_ignore *g, const char *line, struct err *err);
/* All lines of a text. */
int sync_ignore_add_text(struct sync_ignore *g, const char *text, struct err *err);
void sync_ignore_free(struct sync_ignore *g);
bool sync_ignored(const struct sync_ignore *g, const char *path, bool directory);
/* Names that are ignored wherever they lie: nobody need watch them. At most `max`. */
int sync_ignore_names(const struct sync_ignore *g, size_t max, struct strlist *ret) WUNUSED;

#endif
