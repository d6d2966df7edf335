/* What is due, what is to be walked, and what is said of it. */
#define _GNU_SOURCE 1
#include "sync_engine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "sync_name.h"

enum { SCANS_MAX = 200, WALKED_NOT = 0, WALKED_SAME, WALKED_OTHER };

int64_t sync_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- what is said ---- */

static const struct {
    const char *type, *text, *would;
} words[] = {
    [SYNC_SAID_SENT] = {"sent", "sent", "would send"},
    [SYNC_SAID_RECEIVED] = {"received", "received", "would receive"},
    [SYNC_SAID_DELETED_INSIDE] = {"deleted_inside", "deleted inside", "would delete inside"},
    [SYNC_SAID_DELETED_HERE] = {"deleted_here", "deleted here", "would delete here"},
    [SYNC_SAID_CONFLICT] = {"conflict", "conflict", "conflict"},
    [SYNC_SAID_LEFT_OUT] = {"left_out", "left out", "left out"},
    [SYNC_SAID_FAILED] = {"failed", "failed", "failed"},
};

static void put_json(json_t *o)
{
    char *text = json_dumps(o, JSON_COMPACT | JSON_PRESERVE_ORDER);
    json_decref(o);
    if (text)
        printf("%s\n", text);
    free(text);
    (void)out_flush();
}

void sync_say(struct sync *e, enum sync_word word, struct sync_item *item, const char *path,
              const char *key, const char *text)
{
    char clean[2 * SYNC_PATH];
    bool again = word == SYNC_SAID_LEFT_OUT || word == SYNC_SAID_FAILED;
    if (item && again && item->said == word)
        return;
    if (item)
        item->said = (unsigned char)word;
    e->count[word]++;
    out_progress_end(&e->progress);
    if (e->wishes->json) {
        json_t *o = json_pack("{s:s, s:s, s:b}", "type", words[word].type, "path", path, "dry_run",
                              e->wishes->dry);
        if (key)
            json_object_set_new(o, key, json_string(text));
        put_json(o);
        return;
    }
    /* names are printed as they are: sync_name_ok has looked at them; other texts are not */
    printf("%s\t%s", e->wishes->dry ? words[word].would : words[word].text, path);
    if (key)
        printf("\t%s", out_clean(text, clean, sizeof clean));
    printf("\n");
    (void)out_flush();
}

void sync_say_state(const struct sync *e, const char *type, const char *text)
{
    if (e->wishes->json)
        put_json(json_pack("{s:s, s:s}", "type", type, "message", text));
    else
        out_error("%s", text);
}

/* ---- what is due ---- */

void sync_due(struct sync *e, struct sync_item *item, int ms)
{
    item->due = sync_now_ms() + ms;
    if (item->due < e->next_due)
        e->next_due = item->due;
}

static bool is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder); /* with its slash */
    return n == 1 || (strncmp(path, folder, n - 1) == 0 && (path[n - 1] == '/' || !path[n - 1]));
}

static bool is_in(const struct strlist *l, const char *path)
{
    for (size_t i = 0; i < l->n; i++)
        if (is_below(path, l->v[i]))
            return true;
    return false;
}

static void scan_later(struct sync *e, const char *folder)
{
    char slashed[SYNC_PATH + 1];
    snprintf(slashed, sizeof slashed, "%s/", folder);
    if (*folder && is_in(&e->scans, folder))
        return;
    if (*folder == '\0' || e->scans.n >= SCANS_MAX || strlist_add(&e->scans, slashed) < 0) {
        strlist_done(&e->scans);
        if (strlist_add(&e->scans, "/") < 0)
            e->broken = err_set(&e->err, ERR_INTERNAL, "out of memory") < 0;
    }
    if (e->scan_due == 0)
        e->scan_due = sync_now_ms() + SYNC_DEBOUNCE_MS;
}

static struct sync_item *get(struct sync *e, const char *path)
{
    struct sync_item *item = sync_table_get(e->table, path);
    if (item == NULL && !e->full_said) {
        e->full_said = true;
        sync_say(e, SYNC_SAID_FAILED, NULL, path, "message",
                 "there are more files than --max-files says");
    }
    return item;
}

void sync_touch(struct sync *e, const char *path, bool folder)
{
    if (folder && sync_wanted(e, path, true)) {
        scan_later(e, path);
        return;
    }
    if (folder || !sync_wanted(e, path, false))
        return;
    struct sync_item *item = get(e, path);
    if (item == NULL)
        return;
    item->tries = 0;
    sync_due(e, item, SYNC_DEBOUNCE_MS);
}

void sync_touch_all(struct sync *e)
{
    scan_later(e, "");
}

/* ---- walking ---- */

struct walking {
    struct sync *e;
    const char *folder; /* with its slash */
    bool inside;
};

static bool enter(void *arg, const char *path, bool folder)
{
    struct walking *w = arg;
    struct sync *e = w->e;
    if (!sync_name_ok(path)) {
        sync_say(e, SYNC_SAID_LEFT_OUT, NULL, "a name that cannot be carried", "reason", path);
        return false;
    }
    return !sync_name_own(path) && !sync_ignored(&e->ignore, path, folder) &&
           (!folder || sync_wanted(e, path, true));
}

static void entry(void *arg, const char *path, const struct sync_side *what)
{
    struct walking *w = arg;
    struct sync *e = w->e;
    struct sync_item *item = get(e, path);
    if (item == NULL)
        return;
    const char *known = w->inside ? item->inside : item->here;
    bool same = item->common && !item->diverged && what->kind == SYNC_KIND_FILE && what->still &&
                strcmp(known, what->version) == 0;
    *(w->inside ? &item->walked_inside : &item->walked_here) = same ? WALKED_SAME : WALKED_OTHER;
    *(w->inside ? &e->seen_inside : &e->seen_here) += 1;
    out_progress(&e->progress, "looking: %zu files", e->seen_here + e->seen_inside);
}

static void unknown(void *arg, const char *path, const char *why)
{
    struct walking *w = arg;
    char slashed[SYNC_PATH + 1];
    snprintf(slashed, sizeof slashed, "%s/", path);
    if (*path == '\0')
        w->e->broken = err_set(&w->e->err, ERR_UNREADY, "the directory %s cannot be read: %s",
                               w->inside ? "inside" : "here", why) < 0;
    else if (strlist_add(&w->e->unknown, slashed) < 0)
        w->e->broken = err_set(&w->e->err, ERR_LIMIT, "too many folders cannot be read") < 0;
    else
        sync_say(w->e, SYNC_SAID_FAILED, NULL, path, "message", why);
}

static void unsee(void *arg, struct sync_item *item)
{
    const struct walking *w = arg;
    if (is_below(item->path, w->folder))
        item->walked_here = item->walked_inside = WALKED_NOT;
}

static void settle(void *arg, struct sync_item *item)
{
    const struct walking *w = arg;
    bool same = item->walked_here == WALKED_SAME && item->walked_inside == WALKED_SAME;
    if (!is_below(item->path, w->folder) || same || is_in(&w->e->unknown, item->path))
        return;
    item->tries = 0;
    sync_due(w->e, item, 0);
}

static void scan(struct sync *e, const char *folder)
{
    char path[SYNC_PATH + 1];
    struct walking w = {.e = e, .folder = folder};
    struct sync_walk walk = {enter, entry, unknown, &w};
    struct err err = {0};
    snprintf(path, sizeof path, "%.*s", (int)(strlen(folder) - 1), folder);
    strlist_done(&e->unknown);
    sync_table_each(e->table, unsee, &w);
    sync_here_walk(&e->here, path, &walk);
    w.inside = true;
    if (!e->broken && sync_inside_walk(&e->inside, path, &walk, &err) == SYNC_GONE) {
        e->gone = true;
        scan_later(e, path);
        return;
    }
    if (!e->broken)
        sync_table_each(e->table, settle, &w);
    if (e->inside.odd) {
        sync_say(e, SYNC_SAID_LEFT_OUT, NULL, ".", "reason",
                 "names inside that cannot be carried: no plain text, or control characters");
        e->inside.odd = 0;
    }
}

static void scan_all(struct sync *e)
{
    struct strlist now = e->scans;
    e->scans = (struct strlist){0};
    e->scan_due = 0;
    for (size_t i = 0; i < now.n && !e->broken && !sync_is_stopped(e); i++)
        if (e->gone)
            scan_later(e, "");
        else
            scan(e, now.v[i]);
    strlist_done(&now);
}

/* ---- working ---- */

bool sync_is_stopped(struct sync *e)
{
    struct signalfd_siginfo s;
    if (!e->stopped && e->signals >= 0 && read(e->signals, &s, sizeof s) == sizeof s)
        e->stopped = true;
    return e->stopped;
}

struct working {
    struct sync *e;
    int64_t now;
    size_t done;
};

static void look_whether_due(void *arg, struct sync_item *item)
{
    struct working *w = arg;
    struct sync *e = w->e;
    if (item->due == 0)
        return;
    if (item->due > w->now || e->gone || e->broken || sync_is_stopped(e)) {
        if (item->due < e->next_due)
            e->next_due = item->due;
        return;
    }
    out_progress(&e->progress, "%zu of %zu: %.60s", ++w->done, sync_table_size(e->table),
                 item->path);
    item->due = 0;
    sync_examine(e, item);
}

void sync_walk_due(struct sync *e)
{
    if (e->scan_due && e->scan_due <= sync_now_ms() && !e->gone)
        scan_all(e);
}

void sync_work(struct sync *e)
{
    sync_walk_due(e);
    int64_t now = sync_now_ms();
    if (e->next_due > now || e->gone || e->broken)
        return;
    struct working w = {e, now, 0};
    e->next_due = INT64_MAX;
    sync_table_each(e->table, look_whether_due, &w);
    out_progress_end(&e->progress);
}

int sync_wait_ms(const struct sync *e)
{
    int64_t due = e->next_due, now = sync_now_ms();
    if (e->scan_due && e->scan_due < due)
        due = e->scan_due;
    if (due == INT64_MAX)
        return -1;
    return due <= now ? 0 : due - now > 60000 ? 60000 : (int)(due - now);
}

bool sync_is_idle(const struct sync *e)
{
    return e->scan_due == 0 && e->next_due == INT64_MAX;
}

void sync_done(struct sync *e)
{
    out_progress_end(&e->progress);
    strlist_done(&e->scans);
    strlist_done(&e->unknown);
    sync_ignore_free(&e->ignore);
    if (e->table)
        sync_table_free(e->table);
    if (e->here.root >= 0)
        close(e->here.root);
    if (e->signals >= 0)
        close(e->signals);
}

/* ---- what is ignored ---- */

static int read_file(struct sync *e, struct sync_ignore *g)
{
    char text[SYNC_IGNORE_BYTES + 1];
    int fd = openat(e->here.root, SYNC_IGNORE_FILE,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(&e->err, SYNC_IGNORE_FILE);
    ssize_t n = read(fd, text, sizeof text);
    int r = n < 0 ? err_sys(&e->err, SYNC_IGNORE_FILE)
            : n > SYNC_IGNORE_BYTES || memchr(text, 0, (size_t)n)
                ? err_set(&e->err, ERR_PARSE, SYNC_IGNORE_FILE " is too long, or no text")
                : 0;
    close(fd);
    if (r < 0)
        return -1;
    text[n] = '\0';
    return sync_ignore_add_text(g, text, &e->err) < 0 ? err_wrap(&e->err, SYNC_IGNORE_FILE) : 0;
}

int sync_read_ignored(struct sync *e)
{
    struct sync_ignore g = {0};
    int r = read_file(e, &g);
    for (size_t i = 0; r == 0 && i < e->wishes->patterns.n; i++)
        r = sync_ignore_add(&g, e->wishes->patterns.v[i], &e->err);
    if (r < 0) {
        sync_ignore_free(&g);
        return -1;
    }
    sync_ignore_free(&e->ignore);
    e->ignore = g;
    return 0;
}
