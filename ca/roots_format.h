/* What lies in the memfd between roots_pack.c and roots.c: a header, the index sorted by hash, the
 * certificates in DER. Numbers are the machine's own; it never leaves it. */
#ifndef DURWARD_ROOTS_FORMAT_H
#define DURWARD_ROOTS_FORMAT_H

#include <stdint.h>

#define ROOTS_MAGIC 0x44575255u

enum { ROOTS_NAMED = 1 }; /* the user's, not the system's */

struct roots_header {
    uint32_t magic;
    uint32_t count;
};

struct roots_entry {
    uint32_t hash;   /* name_hash.h of the subject */
    uint32_t offset; /* from the end of the index */
    uint32_t length;
    uint32_t flags;
};

#endif
