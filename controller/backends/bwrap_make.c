/* The backend's `make`, in a launcher: what launcher_layout.c does, and then bubblewrap, whose
 * command line is in bwrap.c. */
#define _GNU_SOURCE 1
#include "bwrap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend.h"
#include "launcher_internal.h"
#include "nested.h"

/* From here on only what bubblewrap is to have stays open. */
static int become_bwrap(const struct plan *plan, uid_t outside,
                        const struct nested_namespaces *nested, struct err *err)
{
    /* where descriptors lay that nobody needs any more */
    const struct bwrap_fds fds = {.filter = LAUNCHER_FILTER,
                                  .info = LAUNCHER_INFO,
                                  .outer = LAUNCHER_PROGRAM,
                                  .inner = LAUNCHER_OWNERS};
    const struct bwrap_root root = {.directory = ROOTFS_ROOT,
                                    .empty_file = ROOTFS_EMPTY,
                                    .terminals = ROOTFS_PTS,
                                    .init = ROOTFS_INIT,
                                    .outside = outside};
    if (dup2(LAUNCHER_ERRORS, STDERR_FILENO) < 0)
        return err_sys(err, "dup");
    for (int fd = LAUNCHER_INIT; fd <= LAUNCHER_INFO; fd++)
        if (fcntl(fd, F_SETFD, 0) < 0)
            return err_sys(err, "fcntl");
    if (nested->outer >= 0 &&
        (dup2(nested->outer, LAUNCHER_PROGRAM) < 0 || dup2(nested->inner, LAUNCHER_OWNERS) < 0))
        return err_sys(err, "dup");
    if (syscall(SYS_close_range, LAUNCHER_FDS, ~0U, 0) < 0)
        return err_sys(err, "close_range");
    return bwrap_exec(&root, plan, &fds, err);
}

static int bwrap_make(const struct making *m, struct err *err)
{
    static struct netns_listeners l;
    const struct plan *plan = m->plan;
    struct nested_namespaces nested = {-1, -1};
    struct idmap map;
    struct buf notes;
    buf_init(&notes, LAUNCHER_NOTES_MAX - 1);
    if (launcher_lay_out(m, &map, &l, &notes, err) < 0)
        return -1;
    if (plan->sandbox_spec.limits.nested && nested_make(plan, &nested, err) < 0)
        return -1;
    if (launcher_agree(plan, &l, &notes, err) < 0)
        return -1;
    return become_bwrap(plan, map.uid, &nested, err);
}

static int check(const struct plan *plan, struct err *err)
{
    (void)plan;
    return bwrap_check(err);
}

const struct backend backend_bwrap = {
    .name = "bwrap",
    .check = check,
    .make = bwrap_make,
    .remedy = bwrap_remedy,
    .start_wait_ms = 500,
};
