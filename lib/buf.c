/* Doubles a buffer, takes 64 KiB where it needs more than 16, and adds a quarter beyond that. It
 * grows into fresh memory, since realloc could leave a copy of what must be wiped. */
#include "buf.h"

#include "assertion.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUF_DOUBLES = 64 * 1024 }; /* larger ones grow by less: what they do not use adds up */

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){.max = max};
}

void buf_init_wiped(struct buf *b, size_t max)
{
    *b = (struct buf){.max = max, .wipe = true};
}

static void buf_touch(struct buf *b, size_t to)
{
    if (b->top < to)
        b->top = to;
}

/* ---- memory ---- */

/* Blocks of the two sizes that a stream reads and writes by. A few are kept for the next, as each
 * request needs some: the heap would split and join them, and give its end back to the kernel. */
enum { SMALL = 16 * 1024, LARGE = 64 * 1024, SMALL_KEPT = 8, LARGE_KEPT = 2 };

#if defined(__SANITIZE_ADDRESS__) /* which is to see each use of what was freed */
static unsigned char *block_take(size_t n)
{
    return malloc(n);
}

static void block_give(unsigned char *p, size_t n UNUSED)
{
    free(p);
}
#else
struct kept {
    unsigned n;
    unsigned char *block[SMALL_KEPT];
};
static _Thread_local struct kept small, large;

static unsigned char *block_take(size_t n)
{
    struct kept *k = n == SMALL ? &small : n == LARGE ? &large : NULL;
    return k && k->n > 0 ? k->block[--k->n] : malloc(n);
}

static void block_give(unsigned char *p, size_t n)
{
    struct kept *k = n == SMALL ? &small : n == LARGE ? &large : NULL;
    if (p && k && k->n < (unsigned)(n == SMALL ? SMALL_KEPT : LARGE_KEPT))
        k->block[k->n++] = p;
    else
        free(p);
}
#endif

static void buf_release(struct buf *b)
{
    if (b->base && b->wipe)
        explicit_bzero(b->base, b->top);
    block_give(b->base, b->cap);
}

void buf_free(struct buf *b)
{
    buf_release(b);
    b->base = NULL;
    b->off = b->len = b->cap = b->top = 0;
}

size_t buf_len(const struct buf *b)
{
    return b->len;
}

size_t buf_room(const struct buf *b)
{
    return b->len < b->max ? b->max - b->len : 0;
}

unsigned char *buf_data(const struct buf *b)
{
    return b->base ? b->base + b->off : (unsigned char *)"";
}

struct slice buf_slice(const struct buf *b)
{
    return (struct slice){(const char *)buf_data(b), b->len};
}

static int buf_grow(struct buf *b, size_t need)
{
    size_t cap = b->cap ? b->cap : 512;
    if (need > SMALL && need <= LARGE)
        cap = LARGE; /* who reads more than a block reads as much as there is */
    while (cap < need)
        cap += cap < BUF_DOUBLES ? cap : cap / 4;
    if (cap > b->max && need <= b->max)
        cap = b->max;
    unsigned char *p = block_take(cap);
    if (p == NULL)
        return -1;
    if (b->len)
        memcpy(p, b->base + b->off, b->len);
    buf_release(b);
    b->base = p;
    b->cap = cap;
    b->off = 0;
    b->top = b->len;
    return 0;
}

unsigned char *buf_space(struct buf *b, size_t n)
{
    size_t need;
    if (__builtin_add_overflow(b->len, n, &need) || need > b->max)
        return NULL;
    if (b->off + need > b->cap) {
        if (need <= b->cap && b->off >= b->cap / 2) {
            memmove(b->base, b->base + b->off, b->len);
            b->off = 0;
        } else if (buf_grow(b, need) < 0) {
            return NULL;
        }
    }
    return b->base + b->off + b->len;
}

unsigned char *buf_reserve(struct buf *b, size_t n)
{
    unsigned char *p = buf_space(b, n);
    if (p)
        buf_touch(b, b->off + b->len + n);
    return p;
}

void buf_commit(struct buf *b, size_t n)
{
    ASSERT(n <= b->cap - b->off - b->len); /* of what was reserved */
    b->len += n;
    buf_touch(b, b->off + b->len);
}

int buf_append(struct buf *b, const void *p, size_t n)
{
    if (n == 0)
        return 0;
    unsigned char *to = buf_reserve(b, n);
    if (to == NULL)
        return -1;
    memcpy(to, p, n);
    b->len += n;
    return 0;
}

int buf_append_slice(struct buf *b, struct slice s)
{
    return buf_append(b, s.p, s.n);
}

int buf_append_str(struct buf *b, const char *s)
{
    return buf_append(b, s, strlen(s));
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
    /* Into the room that there is, which mostly does; the terminator that vsnprintf insists on is
     * not counted. */
    size_t room = b->base ? b->cap - b->off - b->len : 0;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(room ? (char *)b->base + b->off + b->len : NULL, room, fmt, ap);
    va_end(ap);
    buf_touch(b, b->cap); /* as far as it came */
    if (n < 0 || (size_t)n > buf_room(b))
        return -1;
    if ((size_t)n >= room) {
        size_t old_max = b->max;
        b->max = old_max + 1;
        unsigned char *to = buf_reserve(b, (size_t)n + 1);
        b->max = old_max;
        if (to == NULL)
            return -1;
        va_start(ap, fmt);
        vsnprintf((char *)to, (size_t)n + 1, fmt, ap);
        va_end(ap);
    }
    b->len += (size_t)n;
    return 0;
}

void buf_drain(struct buf *b, size_t n)
{
    if (n > b->len)
        n = b->len;
    if (b->wipe && n)
        explicit_bzero(b->base + b->off, n);
    b->off += n;
    b->len -= n;
    if (b->len > 0)
        return;
    if (b->wipe && b->top == b->off)
        b->top = 0; /* all that there was is clear already */
    b->off = 0;
}

void buf_cut(struct buf *b, size_t n)
{
    ASSERT(n <= b->len);
    if (b->wipe && n)
        explicit_bzero(b->base + b->off + b->len - n, n);
    b->len -= n;
}

void buf_clear(struct buf *b)
{
    buf_drain(b, b->len);
}

void buf_shrink(struct buf *b)
{
    if (b->len == 0)
        buf_free(b);
}
