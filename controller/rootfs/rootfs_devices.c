/* The files that devices bring along, mounted by descriptor as binds are. Their nodes are left to
 * bubblewrap, whose /dev nobody has written to yet. */
#define _GNU_SOURCE 1
#include "rootfs_internal.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mounts.h"

/* What it is now decides, not what it was when the configuration was read: what is opened here is
 * judged, and nothing else is mounted. */
static int open_file(const struct sandbox_spec_device *d, bool *is_dir, struct err *err)
{
    char real[PATH_MAX];
    if (realpath(d->host, real) == NULL)
        return err_sys(err, "the device's %s", d->host);
    if (!device_mount_host_ok(real))
        return err_set(err, ERR_DENIED, "%s (%.200s) is not what a sandbox may have", d->host,
                       real);
    int fd = mounts_open(real, err);
    if (fd >= 0 && rootfs_check_opened(fd, d->host, is_dir, err) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* /lib and /lib64 lead into /usr on most systems. No other link inside is followed: whoever wrote
 * the image, or runs in the sandbox, made it. */
static int place_of(int root, const char *path, char ret[PATH_MAX], struct err *err)
{
    static const char *const merged[] = {"/usr/lib", "/usr/lib64"};
    char first[NAME_MAX + 1], to[NAME_MAX + 1] = "/";
    size_t n = strcspn(path + 1, "/");
    snprintf(ret, PATH_MAX, "%s", path);
    if (n > NAME_MAX)
        return err_set(err, ERR_LIMIT, "a path component is too long");
    memcpy(first, path + 1, n);
    first[n] = '\0';
    ssize_t len = readlinkat(root, first, to + 1, sizeof to - 2);
    if (len <= 0 || strncmp(path, "/lib", 4) != 0)
        return 0;
    to[len + 1] = '\0';
    const char *whole = to[1] == '/' ? to + 1 : to;
    for (size_t i = 0; i < ARRAY_LEN(merged); i++)
        if (strcmp(whole, merged[i]) == 0)
            snprintf(ret, PATH_MAX, "%s%s", whole, path + 1 + n);
    return 0;
}

/* In what is bound or in a volume its place would be made in their files. */
static int check_place(const struct rootfs *s, const char *path, struct err *err)
{
    const struct sandbox_spec *p = &s->plan->sandbox_spec;
    for (unsigned i = 0; i < s->plan->nbinds + p->n_volumes; i++) {
        const char *other =
            i < s->plan->nbinds ? s->plan->binds[i].target : p->volumes[i - s->plan->nbinds].target;
        if (plan_path_within(path, other) || plan_path_within(other, path))
            return err_set(err, ERR_DENIED, "a device brings %s, and something is bound at %s",
                           path, other);
    }
    return 0;
}

static int add_one(struct rootfs *s, const struct sandbox_spec_device *d, struct err *err)
{
    char path[PATH_MAX];
    bool is_dir = false;
    if (place_of(s->root, d->path, path, err) < 0 || check_place(s, path, err) < 0)
        return -1;
    int fd = open_file(d, &is_dir, err);
    int tree = fd < 0 ? -1 : mounts_clone(fd, true, err);
    int r = tree < 0 ? -1 : rootfs_attach_at(s, tree, path, is_dir, err);
    if (fd >= 0)
        close(fd);
    if (tree >= 0)
        close(tree);
    return r < 0 ? err_wrap(err, "cannot mount a device's file") : 0;
}

/* What the host's /usr has in its place is there. */
static bool is_there(const struct rootfs *s, const struct sandbox_spec_device *d)
{
    return s->plan->sandbox_spec.image[0] == '\0' && strcmp(d->host, d->path) == 0 &&
           strncmp(d->host, "/usr/", 5) == 0;
}

int rootfs_lay_device_places(struct rootfs *s, struct err *err)
{
    const struct sandbox_spec *p = &s->plan->sandbox_spec;
    for (unsigned i = 0; i < p->n_devices; i++) {
        const struct sandbox_spec_device *d = &p->devices[i];
        char path[PATH_MAX];
        bool is_dir = false;
        if (d->node)
            continue;
        int fd = open_file(d, &is_dir, err);
        if (fd < 0)
            return -1;
        close(fd);
        if (place_of(s->dirs.image, d->path, path, err) < 0 ||
            rootfs_lay_place(s, path, is_dir, err) < 0)
            return -1;
    }
    return 0;
}

int rootfs_add_devices(struct rootfs *s, struct err *err)
{
    const struct sandbox_spec *p = &s->plan->sandbox_spec;
    for (unsigned i = 0; i < p->n_devices; i++)
        if (!p->devices[i].node && !is_there(s, &p->devices[i]) &&
            add_one(s, &p->devices[i], err) < 0)
            return -1;
    return 0;
}
