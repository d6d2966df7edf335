/* Keeps the last lines of the log and sends them to at most two watchers, counting by kind what a
 * slow one was not sent. The watchers' side parses with subscribers_get, which stands here too. */
#include "subscribers.h"

#include "render.h"
#include "wire.h"

#include <stdlib.h>
#include <string.h>

enum { KEY_MAX = 64, WATCHERS = 2 };

struct watcher {
    struct ipc *ch; /* borrowed; NULL: nobody */
    uint64_t skipped[RECORD_KINDS];
};

struct subscribers {
    struct buf kept;
    struct watcher watchers[WATCHERS];
    char key[KEY_MAX];
    size_t key_length;
};

struct subscribers *subscribers_new(struct slice public_key)
{
    struct subscribers *a = calloc(1, sizeof *a);
    if (a == NULL)
        return NULL;
    buf_init(&a->kept, SUBSCRIBERS_KEPT);
    a->key_length = public_key.n < KEY_MAX ? public_key.n : KEY_MAX;
    memcpy(a->key, public_key.p, a->key_length);
    return a;
}

void subscribers_free(struct subscribers *a)
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

void subscribers_count(struct slice lines, uint64_t kinds[RECORD_KINDS])
{
    ssize_t nl;
    while ((nl = slice_find(lines, '\n')) >= 0) {
        kinds[kind_of((struct slice){lines.p, (size_t)nl})]++;
        lines.p += nl + 1;
        lines.n -= (size_t)nl + 1;
    }
}

struct slice subscribers_cut(struct slice lines, size_t max)
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

static void tell(struct subscribers *a, const struct watcher *w, enum subscribers_part part,
                 struct slice lines)
{
    struct msg m;
    msg_init(&m, W_WATCHED);
    msg_put_u8(&m, (uint8_t)part);
    for (size_t i = 0; i < RECORD_KINDS; i++)
        msg_put_u64(&m, w->skipped[i]);
    msg_put_bytes(&m, a->key, part == SUBSCRIBERS_LIVE ? 0 : a->key_length);
    msg_put_slice(&m, lines);
    ipc_send(w->ch, &m); /* a dead channel says so by its closed callback */
}

static void keep(struct subscribers *a, struct slice lines)
{
    while (lines.n > buf_room(&a->kept) && buf_len(&a->kept)) {
        /* many at once: what stays is moved to the front of the memory */
        struct slice oldest = subscribers_cut(buf_slice(&a->kept), SUBSCRIBERS_KEPT / 4);
        buf_drain(&a->kept, oldest.n);
    }
    if (buf_append_slice(&a->kept, lines) < 0)
        buf_clear(&a->kept); /* out of memory: what is kept has no gap */
}

static void show(struct subscribers *a, struct watcher *w, struct slice lines)
{
    struct slice part;
    for (; lines.n; lines = behind(lines, part)) {
        part = subscribers_cut(lines, SUBSCRIBERS_CHUNK);
        if (ipc_queued(w->ch) > SUBSCRIBERS_BEHIND)
            subscribers_count(part, w->skipped);
        else
            tell(a, w, SUBSCRIBERS_LIVE, part);
    }
}

void subscribers_lines(struct subscribers *a, struct slice lines)
{
    keep(a, lines);
    for (size_t i = 0; i < WATCHERS; i++)
        if (a->watchers[i].ch)
            show(a, &a->watchers[i], lines);
}

/* Whose it is already, a free one, or the first. */
static struct watcher *seat(struct subscribers *a, const struct ipc *ch)
{
    struct watcher *found = NULL;
    for (size_t i = WATCHERS; i-- > 0;)
        if (a->watchers[i].ch == NULL)
            found = &a->watchers[i];
    for (size_t i = 0; i < WATCHERS; i++)
        if (a->watchers[i].ch == ch)
            return &a->watchers[i];
    if (found == NULL)
        found = &a->watchers[0];
    memset(found, 0, sizeof *found);
    return found;
}

void subscribers_watch(struct subscribers *a, struct ipc *ch, bool kept)
{
    struct slice all = kept ? buf_slice(&a->kept) : (struct slice){"", 0}, part;
    struct watcher *w = seat(a, ch);
    w->ch = ch;
    for (; all.n && ipc_queued(ch) < 2 * SUBSCRIBERS_KEPT; all = behind(all, part)) {
        part = subscribers_cut(all, SUBSCRIBERS_CHUNK);
        tell(a, w, SUBSCRIBERS_KEPT_PART, part);
    }
    tell(a, w, SUBSCRIBERS_KEPT_END, (struct slice){"", 0});
}

void subscribers_leave(struct subscribers *a, const struct ipc *ch)
{
    for (size_t i = 0; a && i < WATCHERS; i++)
        if (a->watchers[i].ch == ch)
            a->watchers[i].ch = NULL;
}

int subscribers_get(struct msg *m, struct watched *w, struct slice *key)
{
    int r = msg_get_u8(m, &w->part);
    for (size_t i = 0; i < RECORD_KINDS; i++)
        r |= msg_get_u64(m, &w->skipped[i]);
    r |= msg_get_slice(m, KEY_MAX, key);
    r |= msg_get_slice(m, IPC_MSG_MAX, &w->lines);
    return r | msg_end(m);
}
