/* Synthetic names of one sandbox: which index (and so which synthetic address) a host name has.
 * Given in order, kept for the sandbox's life, never reused; they outlive the gate that asked. */
#ifndef DURWARD_NAME_TABLE_H
#define DURWARD_NAME_TABLE_H

#include "compiler.h"

struct name_table;

/* The first index given is 2; 1 is the gate itself (proxy/gate/gate_names.h). */
enum { NAME_TABLE_FIRST = 2, NAME_TABLE_LAST = 4096 };

/* limit: how many names, at most as many as there are indexes. NULL when memory is out. */
struct name_table *name_table_new(unsigned limit);
void name_table_free(struct name_table *t); /* NULL is fine */
/* The index of this canonical host name, new if need be; 0 when full. */
uint32_t name_table_index(struct name_table *t, const char *host);
size_t name_table_count(const struct name_table *t);
/* Every name, in any order. */
void name_table_each(const struct name_table *t,
                     void (*fn)(void *arg, const char *host, uint32_t index), void *arg);

#endif
