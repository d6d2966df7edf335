/* The volumes of a sandbox: opened by the builder's own user, who alone may, then served by a
 * process that is their files' owner, and mounted where the plan says. */
#define _GNU_SOURCE 1
#include "rootfs_internal.h"

#include <unistd.h>

#include "view.h"
#include "volume.h"

/* Whoever enters with a map is its `inside_uid` in there, and before that the builder's own. */
static int serve(int device, const struct volume *v, const struct idmap *map, const char *name,
                 struct err *err)
{
    struct view_owner owner = {.uid = map->inside_uid, .gid = map->inside_gid};
    if (v->uid == map->inside_uid && v->uid != geteuid())
        owner.become = map;
    else if (v->uid != geteuid())
        return err_set(err, ERR_DENIED,
                       "the files of the volume %s are somebody's who is nobody in this sandbox",
                       name);
    return view_serve_volume(device, v, &owner, name, err);
}

static int open_one(const struct rootfs_parts *parts, const struct plan *plan, unsigned i,
                    const struct idmap *map, int *ret, struct err *err)
{
    const struct sandbox_spec_volume *w = &plan->sandbox_spec.volumes[i];
    struct volume v;
    if (rootfs_check_target(w->target, err) < 0)
        return -1;
    int device = view_device(err);
    if (device < 0)
        return err_wrap(err, "a volume needs FUSE");
    int r = volume_open(parts->state_dir, w, plan->policy, &v, err);
    if (r == 0) {
        *ret = view_mount(device, !w->writable, err);
        r = *ret < 0 ? -1 : serve(device, &v, map, w->name, err);
        volume_close(&v);
    }
    close(device);
    return r;
}

int rootfs_open_volumes(const struct rootfs_parts *parts, const struct plan *plan,
                        const struct idmap *map, struct rootfs_dirs *ret, struct err *err)
{
    for (unsigned i = 0; i < plan->sandbox_spec.n_volumes; i++)
        if (open_one(parts, plan, i, map, &ret->volumes[i], err) < 0)
            return -1;
    return 0;
}

/* A bind inside a volume would be made in its files. */
static int check_binds(const struct rootfs *s, const char *target, struct err *err)
{
    for (unsigned i = 0; i < s->plan->nbinds; i++)
        if (plan_path_within(s->plan->binds[i].target, target))
            return err_set(err, ERR_DENIED, "%s is bound inside the volume at %s",
                           s->plan->binds[i].target, target);
    return 0;
}

int rootfs_add_volumes(struct rootfs *s, struct err *err)
{
    for (unsigned i = 0; i < s->plan->sandbox_spec.n_volumes; i++) {
        const struct sandbox_spec_volume *w = &s->plan->sandbox_spec.volumes[i];
        struct stat st;
        if (check_binds(s, w->target, err) < 0)
            return -1;
        if (fstat(s->dirs.volumes[i], &st) < 0) /* so that the kernel knows its owner: see a view */
            return err_sys(err, "the volume %s", w->name);
        if (rootfs_attach_at(s, s->dirs.volumes[i], w->target, true, err) < 0)
            return err_wrap(err, "cannot mount the volume %s", w->name);
    }
    return 0;
}
