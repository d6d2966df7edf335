#include "audience.h"

#include "render.h"
#include "wire.h"

#include <stdlib.h>
#include <string.h>

enum { KEY_MAX = 64 };

struct audience {
    struct buf kept;
    struct ipc *watcher; /* borrowed; NULL: nobody watches */
    uint64_t skipped[RECORD_KINDS];
    char key[KEY_MAX];
    size_t key_length;
};

struct audience *audience_new(struct slice public_key)
{
    struct audience *a = calloc(1, sizeof *a);
    if (a == NULL)
        return NULL;
    buf_init(&a->kept, AUDIENCE_KEPT);
    a->key_length = public_key.n < KEY_MAX ? public_key.n : KEY_MAX;
    memcpy(a->key, public_key.p, a->key_length);
    return a;
}

void audience_free(struct audience *a)
{
    if (a)
        buf_free(&a->kept);
    free(a);
}

/* ---- lines ---- */

static enum record_kind kind_of(struct slice line)
{
    static const struct slice key = SLICE("\"kind\":\"");
    struct slice head = {line.p, line.n < 160 ? line.n : 160};
    ssize_t at = slice_find_slice(head, key);
    if (at < 0)
        return 0;
    struct slice name = {line.p + at + key.n, line.n - (size_t)at - key.n};
    ssize_t end = slice_find(name, '"');
    return end < 0 ? 0 : render_kind((struct slice){name.p, (size_t)end});
}

void audience_tally(struct slice lines, uint64_t kinds[RECORD_KINDS])
{
    ssize_t nl;
    while ((nl = slice_find(lines, '\n')) >= 0) {
        kinds[kind_of((struct slice){lines.p, (size_t)nl})]++;
        lines.p += nl + 1;
        lines.n -= (size_t)nl + 1;
    }
}

struct slice audience_cut(struct slice lines, size_t max)
{
    if (lines.n <= max)
        return lines;
    const char *end = memrchr(lines.p, '\n', max);
    if (end == NULL)
        end = memchr(lines.p, '\n', lines.n);
    return end ? (struct slice){lines.p, (size_t)(end - lines.p) + 1} : lines;
}

static struct slice behind(struct slice all, struct slice part)
{
    return (struct slice){all.p + part.n, all.n - part.n};
}

/* ---- the watcher ---- */

static void tell(struct audience *a, enum audience_part part, struct slice lines)
{
    struct msg m;
    msg_init(&m, W_WATCHED);
    msg_put_u8(&m, (uint8_t)part);
    for (size_t i = 0; i < RECORD_KINDS; i++)
        msg_put_u64(&m, a->skipped[i]);
    msg_put_bytes(&m, a->key, part == AUDIENCE_KEPT_END ? a->key_length : 0);
    msg_put_slice(&m, lines);
    ipc_send(a->watcher, &m); /* a dead channel says so by its closed callback */
}

static void keep(struct audience *a, struct slice lines)
{
    while (lines.n > buf_room(&a->kept) && buf_len(&a->kept)) {
        /* many at once: what stays is moved to the front of the memory */
        struct slice oldest = audience_cut(buf_slice(&a->kept), AUDIENCE_KEPT / 4);
        buf_drain(&a->kept, oldest.n);
    }
    if (buf_append_slice(&a->kept, lines) < 0)
        buf_clear(&a->kept); /* out of memory: what is kept has no gap */
}

void audience_lines(struct audience *a, struct slice lines)
{
    struct slice part;
    keep(a, lines);
    for (; a->watcher && lines.n; lines = behind(lines, part)) {
        part = audience_cut(lines, AUDIENCE_CHUNK);
        if (ipc_queued(a->watcher) > AUDIENCE_BEHIND)
            audience_tally(part, a->skipped);
        else
            tell(a, AUDIENCE_LIVE, part);
    }
}

void audience_watch(struct audience *a, struct ipc *ch)
{
    struct slice all = buf_slice(&a->kept), part;
    if (a->watcher != ch)
        memset(a->skipped, 0, sizeof a->skipped);
    a->watcher = ch;
    for (; all.n && ipc_queued(ch) < 2 * AUDIENCE_KEPT; all = behind(all, part)) {
        part = audience_cut(all, AUDIENCE_CHUNK);
        tell(a, AUDIENCE_KEPT_PART, part);
    }
    tell(a, AUDIENCE_KEPT_END, (struct slice){"", 0});
}

void audience_leave(struct audience *a, const struct ipc *ch)
{
    if (a && a->watcher == ch)
        a->watcher = NULL;
}

int audience_get(struct msg *m, struct watched *w, struct slice *key)
{
    int r = msg_get_u8(m, &w->part);
    for (size_t i = 0; i < RECORD_KINDS; i++)
        r |= msg_get_u64(m, &w->skipped[i]);
    r |= msg_get_slice(m, KEY_MAX, key);
    r |= msg_get_slice(m, IPC_MSG_MAX, &w->lines);
    return r | msg_end(m);
}
