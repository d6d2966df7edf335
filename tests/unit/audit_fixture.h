/* What the audit tests share: a directory of their own, a logger inside the test's event loop, and
 * the lines that it wrote. */
#ifndef DURWARD_TEST_AUDIT_FIXTURE_H
#define DURWARD_TEST_AUDIT_FIXTURE_H

#include "config.h"
#include "counts.h"
#include "ipc.h"
#include "journal.h"
#include "line_reader.h"
#include "log_dir.h"
#include "logger.h"
#include "proc.h"
#include "wire.h"

#include <event2/event.h>
#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FIXTURE_LINES = 4096, FIXTURE_WAIT_MS = 8000 };

struct fixture_lines {
    size_t n;
    char *text[FIXTURE_LINES];
    json_t *json[FIXTURE_LINES];
};

struct rig {
    struct event_base *base;
    struct logger *logger;
    struct ipc *control; /* the parent's end */
    bool ready;
    char failed[512];     /* text of W_FAILED */
    char log[1024];       /* text of the last W_LOG */
    struct counts counts; /* of the last W_COUNTS */
    char anchor[1024];    /* the last W_ANCHOR */
    unsigned anchors;
    unsigned notices; /* W_NOTICE */
    unsigned logs;
    unsigned corrupt; /* W_CORRUPT */
};

/* What the loggers of this program are told of old files; a test may change it. */
static UNUSED struct {
    uint64_t rotate_bytes, keep_bytes, keep_seconds;
    uint64_t share_burst, share_rate;
    bool compress;
} fixture_keep = {
    .rotate_bytes = 64 << 20, .share_burst = UINT64_C(1) << 40, .share_rate = 1 << 30};

/* Likewise of thresholds. */
static UNUSED struct {
    struct config_threshold list[NOTIFY_MAX];
    size_t n;
} fixture_thresholds;

/* And of the hosts of a fleet. */
static UNUSED struct {
    const char *host; /* NULL: none */
    size_t n;
    const char *name[4];
    unsigned char key[4][32];
} fixture_fleet;

static inline char *fixture_dir(void)
{
    const char *tmp = getenv("TMPDIR");
    char path[256];
    snprintf(path, sizeof path, "%s/durward-audit-XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(path) ? strdup(path) : NULL;
}

static inline int fixture_remove_one(const char *path, const struct stat *st UNUSED,
                                     int type UNUSED, struct FTW *f UNUSED)
{
    return remove(path);
}

static inline void fixture_remove(char *dir)
{
    nftw(dir, fixture_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(dir);
}

static inline int fixture_open(const char *dir)
{
    return open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static inline uint64_t fixture_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Every line of dir's files, in order. */
static inline void fixture_read(const char *dir, struct fixture_lines *ret)
{
    struct log_dir d;
    int dirfd = fixture_open(dir);
    ret->n = 0;
    if (log_dir_list(dirfd, &d, NULL) == 0) {
        for (size_t i = 0; i < d.n; i++) {
            int fd = openat(dirfd, d.name[i], O_RDONLY);
            struct line_reader *r = line_reader_new(fd);
            struct slice s;
            while (ret->n < FIXTURE_LINES && line_reader_next(r, &s) == LINE_WHOLE) {
                ret->text[ret->n] = slice_dup(s);
                ret->json[ret->n] = json_loadb(s.p, s.n, JSON_ALLOW_NUL, NULL);
                ret->n++;
            }
            line_reader_free(r);
            close(fd);
        }
        log_dir_done(&d);
    }
    close(dirfd);
}

static inline void fixture_lines_done(struct fixture_lines *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->text[i]);
        json_decref(l->json[i]);
    }
    l->n = 0;
}

static inline const char *fixture_text(const struct fixture_lines *l, size_t i, const char *key)
{
    const char *s = json_string_value(json_object_get(l->json[i], key));
    return s ? s : "";
}

/* Lines whose key is this value (and whose second key is, if given). */
static inline size_t fixture_count2(const struct fixture_lines *l, const char *key,
                                    const char *value, const char *key2, const char *value2)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        n += strcmp(fixture_text(l, i, key), value) == 0 &&
             (key2 == NULL || strcmp(fixture_text(l, i, key2), value2) == 0);
    return n;
}

static inline size_t fixture_count(const struct fixture_lines *l, const char *key,
                                   const char *value)
{
    return fixture_count2(l, key, value, NULL, NULL);
}

static inline int rig_message(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct rig *r = arg;
    uint8_t level;
    if (m->type == W_READY) {
        r->ready = true;
        return 0;
    }
    if (m->type == W_FAILED)
        return msg_get_str(m, r->failed, sizeof r->failed);
    if (m->type == W_LOG) {
        r->logs++;
        return msg_get_u8(m, &level) | msg_get_str(m, r->log, sizeof r->log);
    }
    if (m->type == W_ANCHOR) {
        r->anchors++;
        return msg_get_str(m, r->anchor, sizeof r->anchor);
    }
    if (m->type == W_NOTICE) {
        r->notices++;
        return 0;
    }
    if (m->type == W_CORRUPT) {
        r->corrupt++;
        return 0;
    }
    if (m->type == W_COUNTS)
        return counts_get(m, &r->counts) | msg_end(m);
    return -1;
}

static inline void rig_closed(struct ipc *ch, const char *why UNUSED, void *arg)
{
    struct rig *r = arg;
    ipc_free(ch);
    r->control = NULL;
}

/* Turn the loop until cond says so or time is up; what cond said last. */
static inline bool rig_until(struct event_base *base, bool (*cond)(void *arg), void *arg)
{
    uint64_t end = fixture_ms() + FIXTURE_WAIT_MS;
    while (!cond(arg)) {
        if (fixture_ms() > end)
            return false;
        struct timeval t = {0, 20000};
        event_base_loopexit(base, &t);
        event_base_loop(base, EVLOOP_ONCE);
    }
    return true;
}

static inline void rig_turns(struct event_base *base, unsigned ms)
{
    uint64_t end = fixture_ms() + ms;
    while (fixture_ms() < end) {
        struct timeval t = {0, 5000};
        event_base_loopexit(base, &t);
        event_base_loop(base, EVLOOP_ONCE);
    }
}

static inline bool rig_answered(void *arg)
{
    struct rig *r = arg;
    return r->ready || r->failed[0];
}

static inline bool rig_ended(void *arg)
{
    struct rig *r = arg;
    return logger_finished(r->logger);
}

static inline bool rig_journal_ready(void *arg)
{
    return journal_ready(arg);
}

static inline void rig_start_on(struct rig *r, struct event_base *base, const char *dir,
                                bool synced, const char *subdir)
{
    int fds[2];
    struct msg m;
    memset(r, 0, sizeof *r);
    r->base = base;
    ipc_pair(fds, NULL);
    r->logger = logger_new(base, fds[1], NULL);
    r->control = ipc_new(base, fds[0], rig_message, rig_closed, r);
    msg_init(&m, W_INIT);
    msg_put_u8(&m, synced);
    msg_put_str(&m, subdir);
    msg_put_u64(&m, fixture_keep.rotate_bytes);
    msg_put_u64(&m, 0);
    msg_put_u8(&m, fixture_keep.compress);
    msg_put_u64(&m, fixture_keep.keep_bytes);
    msg_put_u64(&m, fixture_keep.keep_seconds);
    msg_put_u64(&m, fixture_keep.share_burst);
    msg_put_u64(&m, fixture_keep.share_rate);
    msg_put_u8(&m, 1);
    msg_put_u32(&m, (uint32_t)fixture_thresholds.n);
    for (size_t i = 0; i < fixture_thresholds.n; i++) {
        const struct config_threshold *t = &fixture_thresholds.list[i];
        msg_put_u8(&m, (uint8_t)t->measure);
        msg_put_u64(&m, t->limit);
        msg_put_u32(&m, t->seconds);
        msg_put_u8(&m, (uint8_t)t->then);
    }
    msg_put_str(&m, fixture_fleet.host ? fixture_fleet.host : "");
    msg_put_u32(&m, fixture_fleet.host ? 1 : 0);
    msg_put_u32(&m, (uint32_t)fixture_fleet.n);
    for (size_t i = 0; i < fixture_fleet.n; i++) {
        msg_put_str(&m, fixture_fleet.name[i]);
        msg_put_bytes(&m, fixture_fleet.key[i], 32);
    }
    msg_put_fd(&m, fixture_open(dir));
    ipc_send(r->control, &m);
    rig_until(base, rig_answered, r);
}

static inline void rig_start(struct rig *r, const char *dir, bool synced, const char *subdir)
{
    rig_start_on(r, event_base_new(), dir, synced, subdir);
}

/* A raw channel to the logger for a writer; the caller's end. */
static inline int rig_peer_fd(struct rig *r, enum role role, uint32_t handle, const char *sandbox,
                              const char *policy)
{
    int fds[2];
    struct msg m;
    ipc_pair(fds, NULL);
    msg_init(&m, W_PEER);
    msg_put_u8(&m, (uint8_t)role);
    msg_put_u32(&m, handle);
    msg_put_str(&m, sandbox);
    msg_put_str(&m, policy);
    msg_put_u32(&m, 1);
    msg_put_u32(&m, 0); /* wire */
    msg_put_bytes(&m, "", 0);
    msg_put_fd(&m, fds[1]);
    ipc_send(r->control, &m);
    return fds[0];
}

static inline struct journal *rig_journal(struct rig *r, enum role role, const char *sandbox,
                                          bool synced)
{
    struct journal *j = journal_new(r->base, synced);
    journal_attach(j, rig_peer_fd(r, role, 1, sandbox, "coder"), 1);
    rig_until(r->base, rig_journal_ready, j);
    return j;
}

/* The daemon ends: control closes, the logger drains. True when it ended well. */
static inline bool rig_stop_keep(struct rig *r)
{
    ipc_free(r->control);
    r->control = NULL;
    bool ok = rig_until(r->base, rig_ended, r) && logger_ok(r->logger);
    logger_free(r->logger);
    r->logger = NULL;
    return ok;
}

static inline bool rig_stop(struct rig *r)
{
    bool ok = rig_stop_keep(r);
    event_base_free(r->base);
    return ok;
}

/* The logger is gone at once, as after SIGKILL: nothing is drained, nothing signed. */
static inline void rig_kill(struct rig *r)
{
    logger_free(r->logger);
    r->logger = NULL;
    ipc_free(r->control);
    r->control = NULL;
}

#endif
