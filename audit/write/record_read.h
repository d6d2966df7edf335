/* The logger's reading side of a journal: a strict, bounded decoder. What a writer appended is what
 * a possibly conquered process says; a byte that the format of audit/write/record.h does not allow
 * makes the record malformed, and the logger ends that channel. */
#ifndef DURWARD_RECORD_READ_H
#define DURWARD_RECORD_READ_H

#include "record.h"

/* One record, its fields pointing into the bytes that were read. */
struct record_view {
    enum record_kind kind;
    bool cut;
    uint64_t wall_ns;              /* the writer's clock */
    uint64_t counter;              /* 1 or more */
    struct slice field[RF_FIELDS]; /* n is 0: absent; any bytes, numbers checked */
};

/* The record at p. Returns its size; 0 when n bytes do not hold a whole one yet; -1 when it is
 * malformed, with a constant reason in *why. */
ssize_t record_read(struct record_view *v, const unsigned char *p, size_t n, const char **why);

#endif
