/* Picks the oldest file for retention and reads it through, because only its last line says whether
 * it ends with a checkpoint and may go. */
#include "prune.h"

#include "line_reader.h"
#include "render.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t prune_total(int dirfd, const struct log_dir *d)
{
    struct stat st;
    uint64_t n = 0;
    for (size_t i = 0; i < d->n; i++)
        if (fstatat(dirfd, d->name[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
            n += (uint64_t)st.st_size;
    return n;
}

static bool is_old(int dirfd, const char *name, uint64_t seconds, uint64_t now_ns)
{
    struct stat st;
    return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           (uint64_t)st.st_mtim.tv_sec + seconds < now_ns / 1000000000U;
}

int prune_last_line(int dirfd, const char *name, struct chain *ret, struct err *err)
{
    struct render_head h;
    struct slice line;
    enum line_state st = LINE_WHOLE;
    int r = 0, fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct line_reader *lr = fd < 0 ? NULL : line_reader_new(fd);
    while (lr && (st = line_reader_next(lr, &line)) == LINE_WHOLE) {
        r = render_parse(line, &h) == 0 && h.kind == RECORD_CHECKPOINT;
        ret->seq = r ? h.seq : 0;
        if (r && chain_hash(line, ret->hash) < 0)
            break;
    }
    if (lr == NULL || st != LINE_END)
        r = err_sys(err, "cannot read %s", name);
    line_reader_free(lr);
    if (fd >= 0)
        close(fd);
    return r;
}

int prune_pick(int dirfd, const struct prune_limits *l, uint64_t now_ns, struct prune *ret,
               struct err *err)
{
    struct log_dir d;
    int r = 0;
    if (l->bytes == 0 && l->seconds == 0)
        return 0;
    if (log_dir_list(dirfd, &d, err) < 0)
        return -1;
    if (d.n > 1 && ((l->bytes && prune_total(dirfd, &d) > l->bytes) ||
                    (l->seconds && is_old(dirfd, d.name[0], l->seconds, now_ns)))) {
        memcpy(ret->name, d.name[0], LOG_NAME_MAX);
        r = prune_last_line(dirfd, d.name[0], &ret->last, err);
    }
    log_dir_done(&d);
    return r;
}
