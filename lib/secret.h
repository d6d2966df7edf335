/* Memory for secrets: pages of their own, locked, left out of core dumps, wiped on release. Where
 * the kernel has memfd_secret(2) the pages are not even mapped in the kernel's own address space
 * (and so not readable through /proc/PID/mem); else mmap + mlock + MADV_DONTDUMP +
 * MADV_WIPEONFORK. There is no way to print a secret. */
#ifndef DURWARD_SECRET_H
#define DURWARD_SECRET_H

#include "compiler.h"
#include "slice.h"

struct secret;

enum { SECRET_MAX = 64 * 1024 };

/* Copies n bytes (1..SECRET_MAX) in. NULL on failure. The caller wipes its own copy. */
struct secret *secret_new(const void *p, size_t n);
/* An empty one of n bytes to be filled through secret_bytes. */
struct secret *secret_alloc(size_t n);
struct secret *secret_ref(struct secret *s);
void secret_unref(struct secret *s); /* NULL is fine; the last one wipes */
struct slice secret_slice(const struct secret *s);
unsigned char *secret_bytes(struct secret *s);
/* Cut to n <= the present length (the rest is wiped). */
void secret_shorten(struct secret *s, size_t n);
bool secret_eq(const struct secret *a, struct slice b); /* constant time for equal lengths */
/* "memfd_secret", "mlock" or "unlocked": what this process's secret memory is. */
const char *secret_backing(void);

#endif
