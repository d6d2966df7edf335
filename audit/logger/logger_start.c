/* The logger's start: directory, lock, key, head, what is left from before. */
#include "logger_internal.h"

#include "start_wait.h"
#include "timestamp.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NUMBERS_STEP = 256 };

static int open_dir(int at, const char *name, struct err *err)
{
    if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
        return err_sys(err, "cannot make %s in the audit directory", name);
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_sys(err, "cannot open %s in the audit directory", name) : fd;
}

static bool is_subdir_name(const char *s)
{
    size_t n = strlen(s);
    if (n >= LOG_NAME_MAX || !slice_starts((struct slice){s, n}, SLICE("run-")))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!ascii_is_alnum(s[i]) && s[i] != '-' && s[i] != '_')
            return false;
    return true;
}

static int open_dirs(struct logger *l, const char *subdir, struct err *err)
{
    if (subdir[0] && !is_subdir_name(subdir))
        return err_set(err, ERR_PARSE, "\"%s\" is not a name for a run's audit directory", subdir);
    l->dir =
        subdir[0] ? open_dir(l->base_dir, subdir, err) : fcntl(l->base_dir, F_DUPFD_CLOEXEC, 0);
    if (l->dir < 0)
        return -1;
    l->lock = openat(l->dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (l->lock < 0)
        return err_sys(err, "cannot open the lock of the audit directory");
    struct start_wait start_wait = {0};
    int locked;
    while ((locked = flock(l->lock, LOCK_EX | LOCK_NB)) < 0 && errno == EWOULDBLOCK &&
           start_wait_sleep(&start_wait)) {
    }
    if (locked < 0)
        return errno == EWOULDBLOCK
                   ? err_set(err, ERR_UNREADY, "another daemon writes to this directory")
                   : err_sys(err, "cannot lock the audit directory");
    l->journal_dir = open_dir(l->dir, "journal", err);
    return l->journal_dir < 0 ? -1 : 0;
}

/* ---- numbers of journals: never used twice in a directory ---- */

static int write_numbers(struct logger *l, uint32_t upto, struct err *err)
{
    char text[16];
    int n = snprintf(text, sizeof text, "%u\n", (unsigned)upto);
    int fd = openat(l->journal_dir, ".next.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(err, "cannot write the next journal's number");
    int r = write(fd, text, (size_t)n) == n && (!l->synced || fdatasync(fd) == 0) ? 0 : -1;
    if (r == 0)
        r = renameat(l->journal_dir, ".next.new", l->journal_dir, "next");
    if (r < 0)
        err_sys(err, "cannot write the next journal's number");
    close(fd);
    return r;
}

/* After everything seen in lines and leftovers. Without the file, in a directory that has a past,
 * the clock is further than any count can be. */
static void find_numbers(struct logger *l, bool fresh)
{
    char text[16];
    uint64_t v = 0;
    int fd = openat(l->journal_dir, "next", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (fd >= 0)
        close(fd);
    bool good = n > 1 && text[n - 1] == '\n' &&
                slice_u64((struct slice){text, (size_t)n - 1}, UINT32_MAX, &v) == 0 && v > 0;
    if (!good)
        v = fresh ? 1 : timestamp_now() / 1000000000U;
    l->next_channel = (uint32_t)v;
    if (l->seen_channel >= l->next_channel)
        l->next_channel = l->seen_channel + 1;
    l->reserved = l->next_channel;
}

uint32_t logger_number(struct logger *l, struct err *err)
{
    if (l->next_channel == l->reserved) {
        if (l->next_channel > UINT32_MAX - NUMBERS_STEP) {
            err_set(err, ERR_LIMIT, "journal numbers are used up; start a new audit directory");
            return 0;
        }
        if (write_numbers(l, l->reserved + NUMBERS_STEP, err) < 0)
            return 0;
        l->reserved += NUMBERS_STEP;
    }
    return l->next_channel++;
}

/* ---- journals left by an earlier logger ---- */

static int load_leftover(struct logger *l, const char *name)
{
    struct err err = {0};
    struct channel *ch = channel_new(l);
    if (ch == NULL)
        return -1;
    int r = journal_file_load(&ch->file, l->journal_dir, name, &err);
    if (r == 0) {
        ch->granted = UINT64_MAX;
        if (ch->file.channel > l->seen_channel)
            l->seen_channel = ch->file.channel;
        channel_close(ch);
        return 0;
    }
    channel_free(ch);
    if (r > 0) { /* no writer ever had it */
        unlinkat(l->journal_dir, name, 0);
        return 0;
    }
    char bad[NAME_MAX + 8];
    snprintf(bad, sizeof bad, "%s.bad", name);
    renameat(l->journal_dir, name, l->journal_dir, bad);
    logger_warn(l, "%s; kept as %s", err.text, bad);
    return 0;
}

static int load_leftovers(struct logger *l, struct err *err)
{
    int fd = openat(l->journal_dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL) {
        err_sys(err, "cannot read the journals");
        if (fd >= 0)
            close(fd);
        return -1;
    }
    int r = 0;
    for (struct dirent *e; r == 0 && (e = readdir(d)) != NULL;)
        if (slice_ends(slice_str(e->d_name), SLICE(".j")))
            r = load_leftover(l, e->d_name);
    closedir(d);
    return r < 0 ? err_set(err, ERR_INTERNAL, "out of memory") : 0;
}

static void on_line(void *arg, const struct render_head *h)
{
    struct logger *l = arg;
    struct channel *ch;
    if (h->channel > l->seen_channel)
        l->seen_channel = h->channel;
    TAILQ_FOREACH(ch, &l->channels, link)
    if (ch->file.channel == h->channel)
        channel_replay(ch, h);
}

static int open_log(struct logger *l, struct err *err)
{
    struct head head;
    struct err why = {0};
    uint64_t from = UINT64_MAX;
    struct channel *ch;
    bool broken = false;
    int had = head_read(l->dir, &head, l->key, &why);
    TAILQ_FOREACH(ch, &l->channels, link)
    if (ch->file.birth < from)
        from = ch->file.birth;
    l->log = log_file_open(l->dir, had > 0 ? &head : NULL, from, on_line, l, &broken, err);
    if (l->log == NULL)
        return -1;
    if (had > 0)
        l->signed_seq = head.tip.seq;
    find_numbers(l, log_file_seq(l->log) == 0 && TAILQ_EMPTY(&l->channels));
    const char *what = had < 0   ? why.text
                       : had > 0 ? "the log does not agree with its signed head"
                                 : "the log has no signed head";
    if (broken || had < 0) {
        logger_event(l, NULL, had > 0 ? "chain_broken" : "head_missing", what, 0);
        logger_warn(l,
                    "%s: it was changed from outside, or its daemon was killed in its first second",
                    what);
    }
    logger_event(l, NULL, "start", NULL, 0);
    return 0;
}

static void on_lines(void *logger, struct slice lines)
{
    struct logger *l = logger;
    subscribers_lines(l->subscribers, lines);
    logger_index(l, lines);
}

static int open_subscribers(struct logger *l, struct err *err)
{
    unsigned char raw[32];
    int r = signing_key_raw(l->key, raw);
    l->subscribers = r == 0 ? subscribers_new((struct slice){(const char *)raw, sizeof raw}) : NULL;
    if (l->subscribers == NULL)
        return err_set(err, ERR_INTERNAL, "the public key cannot be read");
    log_file_on_lines(l->log, on_lines, l);
    return 0;
}

int logger_start(struct logger *l, struct msg *m, struct err *err)
{
    uint8_t durability, compress, anchored;
    uint64_t burst, rate;
    char subdir[128];
    struct logger_keep *k = &l->keep;
    if ((msg_get_u8(m, &durability) | msg_get_str(m, subdir, sizeof subdir) |
         msg_get_u64(m, &k->rotate_bytes) | msg_get_u64(m, &k->rotate_seconds) |
         msg_get_u8(m, &compress) | msg_get_u64(m, &k->keep_bytes) |
         msg_get_u64(m, &k->keep_seconds) | msg_get_u64(m, &burst) | msg_get_u64(m, &rate) |
         msg_get_u8(m, &anchored) | logger_take_thresholds(l, m) | logger_fleet_take(l, m) |
         msg_get_fd(m, &l->base_dir) | msg_end(m)) < 0 ||
        durability > 1 || compress > 1 || anchored > 1 || k->rotate_bytes == 0 ||
        (l->shares = shares_new(burst, rate)) == NULL)
        return err_set(err, ERR_PARSE, "malformed W_INIT");
    k->compress = compress;
    l->may_use = UINT64_MAX;
    l->anchored = anchored;
    l->synced = durability == 1;
    if (open_dirs(l, subdir, err) < 0)
        return -1;
    l->key = signing_key_open(l->base_dir, err);
    if (l->key == NULL || load_leftovers(l, err) < 0 || open_log(l, err) < 0 ||
        open_subscribers(l, err) < 0 || logger_fleet_open(l, err) < 0)
        return -1;
    logger_clock(l); /* what later looks are compared with */
    return 0;
}
