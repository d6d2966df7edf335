/* What the backends share whose root we lay out ourselves: namespaces, listeners, the root, and
 * what the launcher and the builder say to one another about them. */
#define _GNU_SOURCE 1
#include "launcher_internal.h"

#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "nested.h"
#include "rlimits.h"

/* The caller himself, in a namespace that maps nobody else. */
static int enter_as_caller(const struct making *m, struct rootfs_dirs *dirs, struct err *err)
{
    const struct plan *plan = m->plan;
    if (geteuid() == 0 &&
        (setgroups(0, NULL) < 0 || setresgid(plan->gid, plan->gid, plan->gid) < 0 ||
         setresuid(plan->uid, plan->uid, plan->uid) < 0))
        return err_sys(err, "cannot become uid %u", (unsigned)plan->uid);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(err, "no_new_privs");
    if (netns_enter(plan->uid, plan->gid, err) < 0)
        return -1;
    rlimits_shared();
    return rootfs_open(&m->parts, plan, NULL, dirs, err);
}

/* As another than the builder's user, or with files of our own: what is ours is opened by that
 * user, in the namespace, before we become who the command is. */
static int enter_by_map(const struct making *m, const struct idmap *map, struct rootfs_dirs *dirs,
                        struct err *err)
{
    bool foreign = geteuid() == 0 && m->plan->uid == 0 && map->uid != 0;
    if (geteuid() == 0 && setgroups(0, NULL) < 0)
        return err_sys(err, "setgroups");
    if (foreign)
        rootfs_show(&m->parts, m->plan, dirs);
    if (idmap_enter(map, CLONE_NEWNET | CLONE_NEWNS, err) < 0)
        return -1;
    rlimits_shared();
    if (m->plan->sandbox_spec.limits.nested && nested_bound(err) < 0)
        return -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(err, "no_new_privs");
    return rootfs_open(&m->parts, m->plan, map, dirs, err) < 0 ? -1 : idmap_become(map, err);
}

/* A bind is the host's: its owners, and set-ID bits that would count there. */
static int may_nest(const struct plan *plan, struct idmap *map, struct err *err)
{
    if (plan->nbinds > 0)
        return err_set(err, ERR_UNREADY,
                       "nested: true: nothing is bound into such a sandbox; with durward run say "
                       "--no-bind, and copy files in by durward sandbox cp or git");
    return idmap_nest(map, err);
}

/* Who the command is, in namespaces of the sandbox's own. */
static int enter(const struct making *m, struct idmap *map, struct rootfs_dirs *dirs,
                 struct err *err)
{
    const struct plan *plan = m->plan;
    if (geteuid() != 0 && (plan->uid != geteuid() || plan->gid != getegid()))
        return err_set(err, ERR_DENIED, "a sandbox of uid %u cannot be made by uid %u",
                       (unsigned)plan->uid, (unsigned)geteuid());
    plan_idmap(plan, map);
    if (plan->sandbox_spec.limits.nested && may_nest(plan, map, err) < 0)
        return -1;
    rootfs_init(dirs);
    bool layers = plan->sandbox_spec.image[0] || plan->sandbox_spec.root == SANDBOX_SPEC_KEPT ||
                  plan->sandbox_spec.n_volumes > 0;
    if ((layers || map->uid != plan->uid ? enter_by_map(m, map, dirs, err)
                                         : enter_as_caller(m, dirs, err)) < 0)
        return -1;
    /* after the change of credentials, which would have taken it back */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != m->builder)
        return err_set(err, ERR_UNREADY, "the builder is gone");
    return 0;
}

int launcher_lay_out(const struct making *m, struct idmap *map, struct netns_listeners *l,
                     struct buf *notes, struct err *err)
{
    const struct plan *plan = m->plan;
    struct rootfs_parts parts = m->parts;
    struct rootfs_dirs dirs;
    if (enter(m, map, &dirs, err) < 0 || netns_listen(l, plan->ports, plan->nports, err) < 0 ||
        launcher_offer(plan, l, err) < 0 || launcher_note_network(l, notes, err) < 0)
        return -1;
    if (rlimits_note(plan, map->uid == 0, notes) < 0)
        return err_set(err, ERR_INTERNAL, "out of memory");
    if (launcher_await_root(&parts.root, err) < 0 ||
        rootfs_build(&parts, plan, &dirs, notes, err) < 0)
        return -1;
    rootfs_close(&dirs);
    return 0;
}

int launcher_agree(const struct plan *plan, struct netns_listeners *l, struct buf *notes,
                   struct err *err)
{
    static char text[LAUNCHER_NOTES_MAX];
    memcpy(text, buf_len(notes) ? (const char *)buf_data(notes) : "", buf_len(notes));
    buf_free(notes);
    if (launcher_built(plan, true, text, err) < 0 || launcher_await_consent(err) < 0)
        return -1;
    netns_close(l);
    return 0;
}
