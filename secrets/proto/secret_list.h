/* Names of secrets as bytes of one message field: u32 count, then u32 length and bytes of each,
 * big-endian. The `extra` of W_PEER to the vault: what a channel may have. */
#ifndef DURWARD_SECRET_LIST_H
#define DURWARD_SECRET_LIST_H

#include "buf.h"

enum { SECRET_NAME_MAX = 128, SECRET_LIST_MAX = 512 };

/* Appends; -1 when the buffer's maximum would be crossed or a bound above is. */
int secret_list_pack(struct buf *to, const char *const *names, size_t n);

struct secret_list {
    struct slice rest;
    uint32_t left;
};

/* Start reading. -1 when it is malformed. */
int secret_list_open(struct secret_list *l, struct slice packed);
/* The next name, at most SECRET_NAME_MAX bytes. 1; 0 at the end; -1 malformed. */
int secret_list_next(struct secret_list *l, struct slice *name);

#endif
