/* Says what a root holds, and in which order it is laid out and mounted. The file systems that it
 * is made of are in rootfs_layers.c, binds also in rootfs_binds.c. */
#define _GNU_SOURCE 1
#include "rootfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "etcfiles.h"
#include "mounts.h"
#include "network_program.h"
#include "oci_program.h"
#include "rootfs_internal.h"
#include "shown.h"
#include "shown_login.h"
#include "stdio_program.h"
#include "trust_sandbox.h"
#include "view.h"

/* ---- pieces ---- */

/* The host's directory or file at an absolute path, read-only, in the same place. */
static int add_host(struct rootfs *s, const char *path, struct err *err)
{
    int fd = mounts_open(path, err);
    int tree = fd < 0 ? -1 : mounts_clone(fd, true, err);
    int r = tree < 0 ? -1 : rootfs_attach_at(s, tree, path, true, err);
    if (fd >= 0)
        close(fd);
    if (tree >= 0)
        close(tree);
    return r;
}

/* /bin, /sbin, /lib, /lib64, ...: a link where the host has a link, else the host's directory.
 * Links are part of the base, directories mounts on the root. */
static int add_system_entry(struct rootfs *s, int host, const char *name, bool links,
                            struct err *err)
{
    struct stat st;
    char path[NAME_MAX + 2], to[PATH_MAX];
    if (fstatat(host, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    snprintf(path, sizeof path, "/%s", name);
    if (S_ISDIR(st.st_mode) && !links)
        return add_host(s, path, err);
    if (!S_ISLNK(st.st_mode) || !links)
        return 0;
    ssize_t n = readlinkat(host, name, to, sizeof to - 1);
    if (n < 0)
        return err_sys(err, "%s", path);
    to[n] = '\0';
    return symlinkat(to, s->base, name) < 0 ? err_sys(err, "%s", path) : 0;
}

static int add_system(struct rootfs *s, bool links, struct err *err)
{
    int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL) {
        if (fd >= 0)
            close(fd);
        return err_sys(err, "/");
    }
    int r = links ? 0 : rootfs_add_usr(s, err);
    for (struct dirent *e; r == 0 && (e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, "bin") == 0 || strcmp(e->d_name, "sbin") == 0 ||
            strncmp(e->d_name, "lib", 3) == 0)
            r = add_system_entry(s, dirfd(d), e->d_name, links, err);
    closedir(d);
    return r;
}

/* The bundles, in a mount of their own that nobody can write to. */
static int make_trust(struct rootfs *s, struct err *err)
{
    s->trust = mounts_tmpfs("0755", "16m", NULL, err);
    return s->trust < 0 || trust_lay(s->dirs.roots, s->trust, s->parts->root, err) < 0
               ? -1
               : mounts_freeze(s->trust, err);
}

/* Files of our own: in the base, above an image's. */
static int lay_etc(struct rootfs *s, struct err *err)
{
    int host = open("/etc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int etc = host < 0 ? err_sys(err, "/etc") : mounts_place(s->base, "/etc", true, err);
    int r = etc < 0
                ? -1
                : etcfiles_write(etc, host, s->dirs.image, s->trust, s->plan, s->mask.notes, err);
    if (host >= 0)
        close(host);
    if (etc >= 0)
        close(etc);
    return r;
}

/* Directories of the host's /etc and /var, which an image has by itself, and the bundles. */
static int add_shown(struct rootfs *s, struct err *err)
{
    if (s->dirs.image < 0 &&
        (shown_attach(s->root, s->mask.notes, err) < 0 ||
         shown_cover_logins(s->root, s->mask.empty_file, s->mask.notes, err) < 0))
        return -1;
    return rootfs_attach_at(s, s->trust, "/etc/durward", true, err);
}

/* Every JDK brings a trust store of its own; ours, if there is one, covers those that are files. */
static int cover_java(struct rootfs *s, struct err *err)
{
    int ours = openat(s->trust, "cacerts.p12", O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int jvm = openat(s->root, "usr/lib/jvm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = ours < 0 || jvm < 0 ? NULL : fdopendir(jvm);
    int r = 0;
    for (struct dirent *e; d && r == 0 && (e = readdir(d)) != NULL;) {
        char path[NAME_MAX + 40];
        struct stat st;
        if (e->d_type == DT_LNK || e->d_name[0] == '.')
            continue; /* another name of one that comes too */
        snprintf(path, sizeof path, "usr/lib/jvm/%s/lib/security/cacerts", e->d_name);
        if (fstatat(s->root, path, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
            continue;
        int tree = mounts_clone(ours, true, err);
        r = tree < 0 ? -1 : rootfs_attach_at(s, tree, path, false, err);
        if (tree >= 0)
            close(tree);
    }
    if (d)
        closedir(d);
    else if (jvm >= 0)
        close(jvm);
    if (ours >= 0)
        close(ours);
    return r;
}

/* The file that was read, by its mount: all sandboxes share its memory. -1: it cannot be had. */
static int show_init(const struct rootfs *s, int dir)
{
    int tree = s->dirs.init < 0 ? -1 : mounts_clone(s->dirs.init, true, NULL);
    int at = tree < 0 ? -1 : mounts_place(dir, "/init", false, NULL);
    int r = at < 0 ? -1 : mounts_attach(tree, at, NULL);
    if (tree >= 0)
        close(tree);
    if (at >= 0)
        close(at);
    if (r < 0)
        (void)unlinkat(dir, "init", 0);
    return r;
}

static int copy_init(const struct rootfs *s, int dir, struct err *err)
{
    struct stat st;
    int fd = openat(dir, "init", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    int r = fd < 0 || fstat(s->parts->init, &st) < 0 ? err_sys(err, "init") : 0;
    for (off_t at = 0; r == 0 && at < st.st_size;)
        if (sendfile(fd, s->parts->init, &at, (size_t)(st.st_size - at)) <= 0)
            r = err_sys(err, "cannot copy durward-init");
    if (fd >= 0)
        close(fd);
    return r;
}

/* By other names it is what runs containers inside, with the variables that lead to the bundles,
 * and what gives them networks, with the ports that lead out. */
static int add_runtime(const struct rootfs *s, int dir, struct err *err)
{
    static const char *const names[] = {OCI_PROGRAM, NETWORK_PROGRAM, NETWORK_NAMES};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (symlinkat("init", dir, names[i]) < 0)
            return err_sys(err, "%s", names[i]);
    return etcfiles_write_variables(dir, err) < 0
               ? -1
               : etcfiles_write_ports(dir, s->plan->ports, s->plan->nports, err);
}

/* Our process 1, in a mount of its own that nobody can write to or rename. */
static int add_init(struct rootfs *s, struct err *err)
{
    int dir = mounts_tmpfs("0755", "16m", NULL, err);
    if (dir < 0)
        return -1;
    int r = rootfs_attach_at(s, dir, "/run/durward", true, err);
    /* Who sees the host's /usr shares files with others anyway. An image is its sandbox's alone,
     * and two could tell one another something by locks on a file of both. */
    if (r == 0 && (s->dirs.image >= 0 || show_init(s, dir) < 0))
        r = copy_init(s, dir, err);
    if (r == 0 && symlinkat("init", dir, STDIO_PROGRAM) < 0) /* its other name */
        r = err_sys(err, STDIO_PROGRAM);
    if (r == 0 && s->plan->sandbox_spec.limits.nested)
        r = add_runtime(s, dir, err);
    if (r == 0)
        r = mounts_freeze(dir, err);
    close(dir);
    return r;
}

static int lay_dir(struct rootfs *s, const char *path, mode_t mode, struct err *err)
{
    int fd = mounts_place(s->base, path, true, err);
    if (fd < 0)
        return -1;
    close(fd);
    return fchmodat(s->base, path + 1, mode, 0) < 0 ? err_sys(err, "%s", path) : 0;
}

/* Does $HOME lie in the root's own layer? Where that can be written, and nothing is mounted over
 * it. */
static bool home_in_root(const struct plan *p)
{
    static const char *const covered[] = {"/tmp", "/var/tmp", "/run"};
    bool in = p->sandbox_spec.root != SANDBOX_SPEC_READ_ONLY;
    for (size_t i = 0; i < ARRAY_LEN(covered); i++)
        in = in && !plan_path_within(p->home, covered[i]);
    return in;
}

/* Below an image only what is mounted on: in the upmost layer, so that a link of the image's in its
 * place does not count. */
static int lay_base(struct rootfs *s, struct err *err)
{
    static const char *const always[] = {"/proc", "/dev", "/tmp", "/var/tmp", "/run"};
    static const char *const bare[] = {"/var/lib", "/var/cache", "/var/log",
                                       "/mnt",     "/srv",       "/opt"};
    bool image = s->dirs.image >= 0;
    for (size_t i = 0; i < ARRAY_LEN(always); i++)
        if (lay_dir(s, always[i], 0755, err) < 0)
            return -1;
    for (size_t i = 0; !image && i < ARRAY_LEN(bare); i++)
        if (lay_dir(s, bare[i], 0755, err) < 0)
            return -1;
    if (!image && (symlinkat("/run", s->base, "var/run") < 0 ||
                   symlinkat("/run/lock", s->base, "var/lock") < 0))
        return err_sys(err, "/var");
    if (!image && add_system(s, true, err) < 0)
        return -1;
    if (s->plan->sandbox_spec.root == SANDBOX_SPEC_READ_ONLY)
        return 0;
    if (lay_dir(s, "/workspace", 0755, err) < 0)
        return -1;
    return s->plan->home[1] && home_in_root(s->plan) ? lay_dir(s, s->plan->home, 0700, err) : 0;
}

/* An overlay cannot be written to a layer that is itself an overlay's; and what runs containers
 * looks for control groups, of which it finds none. */
static int add_for_containers(struct rootfs *s, struct err *err)
{
    return rootfs_add_scratch(s, "containers", "/var/lib/containers", 0755, err) < 0 ||
                   rootfs_add_scratch(s, "names", "/var/cache/containers", 0755, err) < 0 ||
                   rootfs_add_scratch(s, "cgroup", "/sys/fs/cgroup", 0555, err) < 0
               ? -1
               : 0;
}

static int add_temporary(struct rootfs *s, struct err *err)
{
    if (rootfs_add_scratch(s, "tmp", "/tmp", 01777, err) < 0 ||
        rootfs_add_scratch(s, "var-tmp", "/var/tmp", 01777, err) < 0 ||
        rootfs_add_scratch(s, "run", "/run", 0755, err) < 0)
        return -1;
    if (s->plan->sandbox_spec.limits.nested && add_for_containers(s, err) < 0)
        return -1;
    return add_init(s, err);
}

/* Where the root cannot be written, or is not seen, home is a directory of scratch. */
static int add_home(struct rootfs *s, struct err *err)
{
    for (unsigned i = 0; i < s->plan->nbinds; i++)
        if (plan_path_within(s->plan->home, s->plan->binds[i].target))
            return 0;
    for (unsigned i = 0; i < s->plan->sandbox_spec.n_volumes; i++)
        if (plan_path_within(s->plan->home, s->plan->sandbox_spec.volumes[i].target))
            return 0;
    if (s->plan->home[1] == '\0' || home_in_root(s->plan))
        return 0;
    return rootfs_add_scratch(s, "home", s->plan->home, 0700, err);
}

/* Without a view: what is there now is covered. */
static int add_masked(struct rootfs *s, unsigned i, struct err *err)
{
    const struct plan_bind *b = &s->plan->binds[i];
    if (rootfs_attach_at(s, s->trees[i], b->target, true, err) < 0)
        return err_wrap(err, "cannot bind %s", b->source);
    unsigned before = s->mask.covered;
    if (mask_tree(&s->mask, s->trees[i], b->source, err) < 0)
        return -1;
    if (s->mask.covered > before && !s->mask.unnamed &&
        buf_printf(s->mask.notes,
                   "note: such files that the host saves in %.1000s while the sandbox runs are "
                   "not hidden; with --view they are\n",
                   b->source) < 0)
        return err_set(err, ERR_LIMIT, "too many notes");
    return 0;
}

/* A single file that somebody binds is meant; what lies in a directory may not be known. */
static int add_bind(struct rootfs *s, unsigned i, struct err *err)
{
    const struct plan_bind *b = &s->plan->binds[i];
    int device = s->dirs.views[i];
    if (!s->is_dir[i] || b->home)
        return rootfs_attach_at(s, s->trees[i], b->target, s->is_dir[i], err) < 0
                   ? err_wrap(err, "cannot bind %s", b->source)
                   : 0;
    if (!b->view)
        return add_masked(s, i, err);
    int view = view_mount(device, !b->writable, err);
    if (view < 0)
        return err_wrap(err, "--view of %s", b->source);
    int r = rootfs_add_view(s, i, view, err);
    close(view);
    return r < 0 ? err_wrap(err, "cannot bind %s", b->source) : 0;
}

static int add_binds(struct rootfs *s, struct err *err)
{
    for (unsigned i = 0; i < s->plan->nbinds; i++)
        if (add_bind(s, i, err) < 0)
            return -1;
    return 0;
}

/* ---- the whole ---- */

void rootfs_init(struct rootfs_dirs *d)
{
    *d = (struct rootfs_dirs){
        .roots = -1, .init = -1, .image = -1, .usr = -1, .layer = {{-1, -1}, {-1, -1}}};
    for (unsigned i = 0; i < PLAN_BINDS_MAX; i++)
        d->binds[i] = d->views[i] = -1;
    for (unsigned i = 0; i < SANDBOX_SPEC_VOLUMES_MAX; i++)
        d->volumes[i] = -1;
}

/* Still the file that was read, and one that anybody may execute? */
static bool is_init(int fd, const struct stat *was)
{
    enum { ANYBODY = S_IROTH | S_IXOTH };
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_dev == was->st_dev && st.st_ino == was->st_ino &&
           st.st_size == was->st_size && st.st_mtim.tv_sec == was->st_mtim.tv_sec &&
           st.st_mtim.tv_nsec == was->st_mtim.tv_nsec && st.st_ctim.tv_sec == was->st_ctim.tv_sec &&
           st.st_ctim.tv_nsec == was->st_ctim.tv_nsec && (st.st_mode & ANYBODY) == ANYBODY;
}

static int open_init(const struct rootfs_parts *parts)
{
    int fd = open(parts->init_path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && is_init(fd, &parts->init_file))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

int rootfs_open(const struct rootfs_parts *parts, const struct plan *plan, const struct idmap *map,
                struct rootfs_dirs *ret, struct err *err)
{
    ret->roots = open(parts->roots_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (ret->roots < 0)
        return err_sys(err, "the system's roots in %s", parts->roots_dir);
    ret->init = open_init(parts);
    if (plan->sandbox_spec.image[0] &&
        (ret->image = layer_image(parts->state_dir, plan->sandbox_spec.image, err)) < 0)
        return -1;
    if (plan->sandbox_spec.root == SANDBOX_SPEC_KEPT &&
        layer_open(parts->state_dir, plan->sandbox, plan->sandbox_spec.image, map, &ret->layer,
                   err) < 0)
        return err_wrap(err, "the sandbox's files");
    for (unsigned i = 0; i < plan->nbinds; i++)
        if (plan->binds[i].view && (ret->views[i] = view_device(err)) < 0)
            return err_wrap(err, "--view");
    return rootfs_open_volumes(parts, plan, map, ret, err);
}

void rootfs_close(struct rootfs_dirs *d)
{
    if (d->roots >= 0)
        close(d->roots);
    if (d->image >= 0)
        close(d->image);
    if (d->init >= 0)
        close(d->init);
    if (d->usr >= 0)
        close(d->usr);
    for (unsigned i = 0; i < PLAN_BINDS_MAX; i++) {
        if (d->binds[i] >= 0)
            close(d->binds[i]);
        if (d->views[i] >= 0)
            close(d->views[i]);
    }
    for (unsigned i = 0; i < SANDBOX_SPEC_VOLUMES_MAX; i++)
        if (d->volumes[i] >= 0)
            close(d->volumes[i]);
    layer_close(&d->layer);
    rootfs_init(d);
}

static void release(struct rootfs *s)
{
    int own[] = {s->trust,           s->root,          s->base, s->scratch, s->outer,
                 s->mask.empty_file, s->mask.empty_dir};
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (own[i] >= 0)
            close(own[i]);
    for (unsigned i = 0; i < s->plan->nbinds; i++)
        if (s->trees[i] >= 0)
            close(s->trees[i]);
}

/* Of all that is mounted where an image may have nothing. */
static int lay_places(struct rootfs *s, struct err *err)
{
    const struct plan *p = s->plan;
    if (s->dirs.image < 0)
        return 0;
    if (p->home[1] && rootfs_lay_place(s, p->home, true, err) < 0)
        return -1;
    for (unsigned i = 0; i < p->nbinds; i++)
        if (rootfs_lay_place(s, p->binds[i].target, s->is_dir[i], err) < 0)
            return -1;
    for (unsigned i = 0; i < p->sandbox_spec.n_volumes; i++)
        if (rootfs_lay_place(s, p->sandbox_spec.volumes[i].target, true, err) < 0)
            return -1;
    return rootfs_lay_device_places(s, err);
}

/* What lies in the base before the root is seen, and what is mounted on the root after that. */
static int lay_out(struct rootfs *s, struct err *err)
{
    if (rootfs_make(s, err) < 0 || make_trust(s, err) < 0 || lay_base(s, err) < 0 ||
        lay_etc(s, err) < 0 || lay_places(s, err) < 0 || rootfs_make_root(s, err) < 0)
        return -1;
    if (s->dirs.image < 0 && add_system(s, false, err) < 0)
        return -1;
    if (add_temporary(s, err) < 0 || add_shown(s, err) < 0 || cover_java(s, err) < 0 ||
        add_home(s, err) < 0 || add_binds(s, err) < 0 || rootfs_add_volumes(s, err) < 0 ||
        rootfs_add_devices(s, err) < 0)
        return -1;
    return s->plan->sandbox_spec.root == SANDBOX_SPEC_READ_ONLY ? mounts_freeze(s->root, err) : 0;
}

int rootfs_build(const struct rootfs_parts *parts, const struct plan *plan,
                 const struct rootfs_dirs *dirs, struct buf *notes, struct err *err)
{
    struct rootfs s = {.parts = parts, .plan = plan, .dirs = *dirs};
    s.outer = s.scratch = s.base = s.root = s.trust = -1;
    s.mask = (struct mask){.empty_file = -1, .empty_dir = -1, .notes = notes};
    for (unsigned i = 0; i < PLAN_BINDS_MAX; i++)
        s.trees[i] = -1;
    int r = mounts_private(err);
    if (r == 0)
        r = rootfs_open_sources(&s, err);
    if (r == 0)
        r = lay_out(&s, err);
    release(&s);
    return r;
}
