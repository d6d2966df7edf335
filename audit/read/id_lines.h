/* A bounded number of lines, by directory and id; a newer one takes an older one's place. */
#ifndef DURWARD_ID_LINES_H
#define DURWARD_ID_LINES_H

#include "slice.h"

struct line_id {
    unsigned tag;
    uint32_t channel;
    uint64_t counter;
};

struct id_lines;

struct id_lines *id_lines_new(size_t slots); /* a power of two */
void id_lines_free(struct id_lines *t);      /* NULL is fine */
void id_lines_clear(struct id_lines *t);     /* NULL is fine */
/* The line is copied. Out of memory: it is not kept. */
void id_lines_put(struct id_lines *t, const struct line_id *id, struct slice line);
bool id_lines_get(const struct id_lines *t, const struct line_id *id, struct slice *line);
void id_lines_drop(struct id_lines *t, const struct line_id *id);
size_t id_lines_count(const struct id_lines *t);

#endif
