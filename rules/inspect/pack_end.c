/* Steps through a pack's objects as their bytes come, and keeps nothing of them. */
#include "pack_end.h"

#include "pack.h"

#include <string.h>

enum { OBJECT_TAG = 4, OBJECT_OFS_DELTA = 6, OBJECT_REF_DELTA = 7, NUMBER_MAX = 10 };

void pack_end_init(struct pack_end *e, unsigned id_n)
{
    memset(e, 0, sizeof *e);
    e->id_n = id_n;
}

void pack_end_done(struct pack_end *e)
{
    if (e->has_z)
        inflateEnd(&e->z);
    e->has_z = false;
}

static void go(struct pack_end *e, enum pack_end_state to)
{
    e->state = to;
    e->have = 0;
}

static void next_object(struct pack_end *e)
{
    go(e, e->objects ? PACK_END_TYPE : PACK_END_SUM);
}

static void on_head(struct pack_end *e, unsigned char c)
{
    e->head[e->have++] = c;
    if (e->have < sizeof e->head)
        return;
    e->objects = (uint32_t)e->head[8] << 24 | (uint32_t)e->head[9] << 16 |
                 (uint32_t)e->head[10] << 8 | e->head[11];
    if (memcmp(e->head, "PACK\0\0\0\2", 8) != 0)
        go(e, PACK_END_BAD);
    else
        next_object(e);
}

static void begin_data(struct pack_end *e)
{
    int r;
    if (e->has_z) {
        r = inflateReset(&e->z);
    } else {
        r = inflateInit(&e->z);
        e->has_z = r == Z_OK;
    }
    go(e, r == Z_OK ? PACK_END_DATA : PACK_END_BAD);
}

static void on_size_end(struct pack_end *e)
{
    if (e->type == OBJECT_OFS_DELTA)
        go(e, PACK_END_OFFSET);
    else if (e->type == OBJECT_REF_DELTA)
        go(e, PACK_END_ID);
    else if (e->type >= 1 && e->type <= OBJECT_TAG)
        begin_data(e);
    else
        go(e, PACK_END_BAD);
}

static void on_byte(struct pack_end *e, unsigned char c)
{
    bool more = c & 128;
    switch (e->state) {
    case PACK_END_HEAD:
        on_head(e, c);
        break;
    case PACK_END_TYPE:
        e->type = c >> 4 & 7;
        e->objects--;
        if (more)
            go(e, PACK_END_SIZE);
        else
            on_size_end(e);
        break;
    case PACK_END_SIZE:
    case PACK_END_OFFSET:
        if (more && ++e->have == NUMBER_MAX)
            go(e, PACK_END_BAD);
        else if (!more && e->state == PACK_END_SIZE)
            on_size_end(e);
        else if (!more)
            begin_data(e);
        break;
    case PACK_END_ID:
        if (++e->have == e->id_n)
            begin_data(e);
        break;
    case PACK_END_SUM:
        if (++e->have == e->id_n)
            go(e, PACK_END_WHOLE);
        break;
    default:
        go(e, PACK_END_BAD);
        break;
    }
}

/* -> what is left of the bytes. */
static struct slice on_data(struct pack_end *e, struct slice in)
{
    unsigned char waste[16384];
    unsigned some = in.n < 1u << 20 ? (unsigned)in.n : 1u << 20;
    e->z.next_in = (unsigned char *)(uintptr_t)in.p;
    e->z.avail_in = some;
    e->z.next_out = waste;
    e->z.avail_out = sizeof waste;
    int r = inflate(&e->z, Z_NO_FLUSH);
    unsigned used = some - e->z.avail_in;
    e->inflated += sizeof waste - e->z.avail_out;
    if ((r != Z_OK && r != Z_STREAM_END) || e->inflated > PACK_INFLATED_MAX)
        go(e, PACK_END_BAD);
    else if (r == Z_STREAM_END)
        next_object(e);
    return (struct slice){in.p + used, in.n - used};
}

enum pack_end_state pack_end_take(struct pack_end *e, struct slice in)
{
    while (in.n > 0 && e->state < PACK_END_WHOLE) {
        if (e->state == PACK_END_DATA) {
            in = on_data(e, in);
        } else {
            on_byte(e, (unsigned char)*in.p);
            in = (struct slice){in.p + 1, in.n - 1};
        }
    }
    return e->state;
}
