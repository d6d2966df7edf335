/* A hash table in memory, lines of JSON on disk. A line that is no whole JSON is the last one of a
 * command that was killed. */
#define _GNU_SOURCE 1
#include "sync_table.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "paths.h"

enum { BUCKETS = 1 << 16, LINE_MAX_BYTES = 64 * 1024, COMPACT_LINES = 20000 };

struct sync_table {
    struct sync_item *buckets[BUCKETS];
    size_t n, common, max;
    char *file; /* NULL: nothing is kept */
    int fd;     /* -1 likewise */
    char *head; /* first line */
    size_t lines;
};

/* ---- in memory ---- */

static struct sync_item **slot(const struct sync_table *t, const char *path)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (const unsigned char *s = (const unsigned char *)path; *s; s++)
        h = (h ^ *s) * UINT64_C(1099511628211);
    struct sync_item *const *at = &t->buckets[(h ^ h >> 32) % BUCKETS];
    while (*at && strcmp((*at)->path, path) != 0)
        at = &(*at)->next;
    return (struct sync_item **)at;
}

struct sync_item *sync_table_find(const struct sync_table *t, const char *path)
{
    return *slot(t, path);
}

struct sync_item *sync_table_get(struct sync_table *t, const char *path)
{
    struct sync_item **at = slot(t, path);
    if (*at || t->n >= t->max)
        return *at;
    struct sync_item *item = calloc(1, sizeof *item);
    if (item == NULL || (item->path = strdup(path)) == NULL) {
        free(item);
        return NULL;
    }
    t->n++;
    return *at = item;
}

static void item_free(struct sync_item *item)
{
    free(item->path);
    free(item);
}

void sync_table_drop(struct sync_table *t, struct sync_item *item)
{
    struct sync_item **at = slot(t, item->path);
    *at = item->next;
    t->n--;
    t->common -= item->common;
    item_free(item);
}

void sync_table_each(struct sync_table *t, void (*fn)(void *arg, struct sync_item *item), void *arg)
{
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct sync_item *item = t->buckets[i], *next; item; item = next) {
            next = item->next;
            fn(arg, item);
        }
}

size_t sync_table_size(const struct sync_table *t)
{
    return t->n;
}

size_t sync_table_common(const struct sync_table *t)
{
    return t->common;
}

void sync_table_bound(struct sync_table *t, size_t max)
{
    t->max = max;
}

struct hash_wish {
    const unsigned char *hash;
    bool found;
};

static void look_for_hash(void *arg, struct sync_item *item)
{
    struct hash_wish *w = arg;
    w->found |= (item->common && memcmp(item->hash, w->hash, SYNC_HASH) == 0) ||
                (item->intended && memcmp(item->intent, w->hash, SYNC_HASH) == 0);
}

bool sync_table_has_hash(struct sync_table *t, const unsigned char hash[SYNC_HASH])
{
    struct hash_wish w = {hash, false};
    sync_table_each(t, look_for_hash, &w);
    return w.found;
}

/* ---- lines ---- */

static void hex_of(const unsigned char hash[SYNC_HASH], char to[2 * SYNC_HASH + 1])
{
    for (int i = 0; i < SYNC_HASH; i++)
        snprintf(to + 2 * i, 3, "%02x", hash[i]);
}

static int hash_of(const json_t *v, unsigned char to[SYNC_HASH])
{
    const char *s = json_string_value(v);
    if (s == NULL || strlen(s) != 2 * SYNC_HASH || strspn(s, "0123456789abcdef") != 2 * SYNC_HASH)
        return -1;
    for (int i = 0; i < SYNC_HASH; i++) {
        const char pair[3] = {s[2 * i], s[2 * i + 1], 0};
        to[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
    return 0;
}

/* Takes the reference. One write: a kill leaves all of the line, or the beginning of it. */
static int put_line(int fd, json_t *v, struct err *err)
{
    char *text = v ? json_dumps(v, JSON_COMPACT) : NULL, *line = NULL;
    bool made = text && asprintf(&line, "%s\n", text) >= 0;
    json_decref(v);
    free(text);
    if (!made)
        return err_set(err, ERR_INTERNAL, "out of memory");
    size_t n = strlen(line);
    int r =
        write(fd, line, n) == (ssize_t)n ? 0 : err_sys(err, "what is in common cannot be noted");
    free(line);
    return r;
}

static json_t *common_json(const struct sync_item *item)
{
    char hash[2 * SYNC_HASH + 1];
    if (!item->common)
        return json_pack("{s:s, s:b}", "path", item->path, "gone", 1);
    hex_of(item->hash, hash);
    return json_pack("{s:s, s:s, s:I, s:b, s:b, s:s, s:s}", "path", item->path, "hash", hash,
                     "size", (json_int_t)item->size, "exec", item->exec, "diverged", item->diverged,
                     "here", item->here, "inside", item->inside);
}

static json_t *intent_json(const struct sync_item *item)
{
    char hash[2 * SYNC_HASH + 1];
    hex_of(item->intent, hash);
    return json_pack("{s:s, s:s, s:s}", "path", item->path, "intent", hash, "to",
                     item->intended_here ? "here" : "inside");
}

static void take_version(const json_t *v, char to[FILE_VERSION_TEXT])
{
    struct file_version ignored;
    const char *s = json_string_value(v);
    bool fine = s && file_version_read(s, &ignored) == 0;
    snprintf(to, FILE_VERSION_TEXT, "%s", fine ? s : "");
}

static void set_common(struct sync_table *t, struct sync_item *item, bool common)
{
    t->common += common;
    t->common -= item->common;
    item->common = common;
}

static void take_line(struct sync_table *t, const json_t *v)
{
    const char *path = json_string_value(json_object_get(v, "path"));
    struct sync_item *item = path ? sync_table_get(t, path) : NULL;
    if (item == NULL)
        return;
    if (hash_of(json_object_get(v, "intent"), item->intent) == 0) {
        const char *to = json_string_value(json_object_get(v, "to"));
        item->intended = true;
        item->intended_here = to && strcmp(to, "here") == 0;
        return;
    }
    item->intended = false;
    set_common(t, item, hash_of(json_object_get(v, "hash"), item->hash) == 0);
    item->size = (uint64_t)json_integer_value(json_object_get(v, "size"));
    item->exec = json_is_true(json_object_get(v, "exec"));
    item->diverged = json_is_true(json_object_get(v, "diverged"));
    take_version(json_object_get(v, "here"), item->here);
    take_version(json_object_get(v, "inside"), item->inside);
    if (!item->common)
        sync_table_drop(t, item);
}

/* ---- the file ---- */

static int read_lines(struct sync_table *t, int fd, struct err *err)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    FILE *f = own < 0 ? NULL : fdopen(own, "r");
    if (f == NULL)
        return err_sys(err, "%s", t->file);
    bool first = true;
    for (; (n = getline(&line, &room, f)) > 0; first = false) {
        bool whole = line[n - 1] == '\n';
        line[n - whole] = '\0';
        if (first && strcmp(line, t->head) != 0)
            break; /* of something else: it is begun anew */
        json_t *v = first || !whole ? NULL : json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        if (json_is_object(v))
            take_line(t, v);
        json_decref(v);
    }
    free(line);
    fclose(f);
    return 0;
}

struct writing {
    int fd, bad;
    struct err *err;
};

static void write_item(void *arg, struct sync_item *item)
{
    struct writing *w = arg;
    if (w->bad == 0 && item->common)
        w->bad = put_line(w->fd, common_json(item), w->err);
    if (w->bad == 0 && item->intended)
        w->bad = put_line(w->fd, intent_json(item), w->err);
}

/* All that is known, without what was noted before it: written beside, then renamed. The lock is
 * taken on the new file before it has the name. */
static int compact(struct sync_table *t, struct err *err)
{
    char *next;
    if (asprintf(&next, "%s.new", t->file) < 0)
        return err_set(err, ERR_INTERNAL, "out of memory");
    int fd = open(next, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct writing w = {fd, 0, err};
    if (fd < 0 || fchmod(fd, 0600) < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        w.bad = err_sys(err, "%s", next);
    if (w.bad == 0) {
        size_t n = strlen(t->head);
        if (write(fd, t->head, n) != (ssize_t)n || write(fd, "\n", 1) != 1)
            w.bad = err_sys(err, "%s", next);
    }
    sync_table_each(t, write_item, &w);
    if (w.bad == 0 && (fdatasync(fd) < 0 || rename(next, t->file) < 0))
        w.bad = err_sys(err, "%s", t->file);
    free(next);
    if (w.bad) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    if (t->fd >= 0)
        close(t->fd);
    t->fd = fd;
    t->lines = 0;
    return 0;
}

static int locked_open(const char *file, struct err *err)
{
    struct stat a, b;
    for (;;) {
        int fd = open(file, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
            return err_sys(err, "%s", file);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
            int r = errno == EWOULDBLOCK
                        ? err_set(err, ERR_DENIED, "another 'durward sandbox sync' works on both")
                        : err_sys(err, "%s", file);
            close(fd);
            return r;
        }
        if (fstat(fd, &a) == 0 && stat(file, &b) == 0 && a.st_ino == b.st_ino)
            return fd; /* else it was replaced meanwhile */
        close(fd);
    }
}

static char *file_name(const char *sandbox, const char *here, const char *inside, struct err *err)
{
    unsigned char sum[EVP_MAX_MD_SIZE] = {0};
    char *both = NULL, *name = NULL, *state = paths_user_state_dir(err);
    if (state == NULL)
        return NULL;
    char *folder = paths_join(state, "sync"), *file = NULL;
    if (asprintf(&both, "%s\n%s", here, inside) >= 0 &&
        EVP_Digest(both, strlen(both), sum, NULL, EVP_sha256(), NULL) == 1 &&
        asprintf(&name, "%s-%02x%02x%02x%02x%02x%02x", sandbox, sum[0], sum[1], sum[2], sum[3],
                 sum[4], sum[5]) >= 0) {
        if (paths_make_private(folder, err) == 0)
            file = paths_join(folder, name);
    } else {
        err_set(err, ERR_INTERNAL, "out of memory");
    }
    free(both);
    free(name);
    free(folder);
    free(state);
    return file;
}

struct sync_table *sync_table_open(const char *sandbox, const char *here, const char *inside,
                                   bool keep, struct err *err)
{
    struct sync_table *t = calloc(1, sizeof *t);
    json_t *head = json_pack("{s:i, s:s, s:s, s:s}", "durward_sync", 1, "sandbox", sandbox, "here",
                             here, "inside", inside);
    if (t == NULL || head == NULL || (t->head = json_dumps(head, JSON_COMPACT)) == NULL) {
        json_decref(head);
        free(t);
        err_set(err, ERR_INTERNAL, "out of memory, or no UTF-8: %.200s", here);
        return NULL;
    }
    json_decref(head);
    t->fd = -1;
    t->max = SIZE_MAX;
    t->file = file_name(sandbox, here, inside, err);
    int bad = t->file ? 0 : -1;
    int fd = bad    ? -1
             : keep ? locked_open(t->file, err)
                    : open(t->file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (bad == 0 && fd < 0 && keep)
        bad = -1;
    if (bad == 0 && fd >= 0)
        bad = read_lines(t, fd, err);
    if (keep && bad == 0) {
        t->fd = fd;
        fd = -1;
        bad = compact(t, err);
    }
    if (fd >= 0)
        close(fd);
    if (bad) {
        sync_table_free(t);
        return NULL;
    }
    return t;
}

static void free_item(void *arg, struct sync_item *item)
{
    (void)arg;
    item_free(item);
}

void sync_table_free(struct sync_table *t)
{
    sync_table_each(t, free_item, NULL);
    if (t->fd >= 0)
        close(t->fd);
    free(t->file);
    free(t->head);
    free(t);
}

static int put(struct sync_table *t, json_t *v, struct err *err)
{
    if (t->fd < 0) {
        json_decref(v);
        return 0;
    }
    int r = put_line(t->fd, v, err);
    return r == 0 && ++t->lines > COMPACT_LINES + 2 * t->n ? compact(t, err) : r;
}

int sync_table_note(struct sync_table *t, struct sync_item *item, bool common, struct err *err)
{
    set_common(t, item, common);
    item->intended = false;
    return put(t, common_json(item), err);
}

int sync_table_intend(struct sync_table *t, struct sync_item *item, bool here,
                      const unsigned char hash[SYNC_HASH], struct err *err)
{
    memcpy(item->intent, hash, SYNC_HASH);
    item->intended = true;
    item->intended_here = here;
    return put(t, intent_json(item), err);
}
