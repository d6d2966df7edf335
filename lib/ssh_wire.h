/* The data types of SSH (RFC 4251 5), read from a slice and written into a buffer: bytes, u32 and
 * strings with their length in front. */
#ifndef DURWARD_SSH_WIRE_H
#define DURWARD_SSH_WIRE_H

#include "buf.h"

/* Each takes from the front. 0, or -1 when there is not that much. */
int ssh_wire_u8(struct slice *s, uint8_t *ret);
int ssh_wire_u32(struct slice *s, uint32_t *ret);
int ssh_wire_string(struct slice *s, struct slice *ret); /* lies in *s */

/* Each appends. 0, or -1 when there is no room. */
int ssh_wire_put_u8(struct buf *b, uint8_t v) WUNUSED;
int ssh_wire_put_u32(struct buf *b, uint32_t v) WUNUSED;
int ssh_wire_put_string(struct buf *b, struct slice s) WUNUSED;
/* A positive number whose bytes these are, highest first. */
int ssh_wire_put_mpint(struct buf *b, struct slice s) WUNUSED;

#endif
