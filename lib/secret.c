/* Maps pages for each secret, of memfd_secret where the kernel has it, and wipes them before they
 * are unmapped. */
#include "secret.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct secret {
    unsigned refs;
    size_t n, mapped;
    unsigned char *p;
};

static const char *backing = "unlocked";

static void *map_secret(size_t size)
{
#ifdef SYS_memfd_secret
    int fd = (int)syscall(SYS_memfd_secret, 02000000 /* O_CLOEXEC */);
    if (fd >= 0) {
        void *p = MAP_FAILED;
        if (ftruncate(fd, (off_t)size) == 0)
            p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        if (p != MAP_FAILED) {
            backing = "memfd_secret";
            return p;
        }
    }
#endif
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    backing = mlock(p, size) == 0 ? "mlock" : "unlocked";
    madvise(p, size, MADV_DONTDUMP);
    madvise(p, size, MADV_WIPEONFORK);
    return p;
}

struct secret *secret_alloc(size_t n)
{
    if (n == 0 || n > SECRET_MAX)
        return NULL;
    struct secret *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    s->mapped = (n + page - 1) / page * page;
    s->n = n;
    s->refs = 1;
    s->p = map_secret(s->mapped);
    if (s->p == NULL) {
        free(s);
        return NULL;
    }
    return s;
}

struct secret *secret_new(const void *p, size_t n)
{
    struct secret *s = secret_alloc(n);
    if (s)
        memcpy(s->p, p, n);
    return s;
}

struct secret *secret_ref(struct secret *s)
{
    s->refs++;
    return s;
}

void secret_unref(struct secret *s)
{
    if (s == NULL || --s->refs > 0)
        return;
    explicit_bzero(s->p, s->mapped);
    munmap(s->p, s->mapped);
    free(s);
}

struct slice secret_slice(const struct secret *s)
{
    return (struct slice){(const char *)s->p, s->n};
}

unsigned char *secret_bytes(struct secret *s)
{
    return s->p;
}

void secret_shorten(struct secret *s, size_t n)
{
    if (n >= s->n)
        return;
    explicit_bzero(s->p + n, s->n - n);
    s->n = n;
}

bool secret_eq(const struct secret *a, struct slice b)
{
    if (a->n != b.n)
        return false;
    unsigned diff = 0;
    for (size_t i = 0; i < b.n; i++)
        diff |= a->p[i] ^ (unsigned char)b.p[i];
    return diff == 0;
}

const char *secret_backing(void)
{
    return backing;
}
