/* Opens an image's root, and a sandbox's layer, which is made when it is missing, given to its
 * owner, and refused above another image than its own. */
#define _GNU_SOURCE 1
#include "layer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tree.h"

#define DIRECTORY (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

int layer_image(const char *state_dir, const char *name, struct err *err)
{
    char path[128];
    int state = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (state < 0)
        return err_sys(err, "%s", state_dir);
    snprintf(path, sizeof path, "images/%s/root", name);
    int fd = openat(state, path, DIRECTORY);
    int saved = errno;
    close(state);
    if (fd < 0 && saved == ENOENT)
        return err_set(err, ERR_UNREADY,
                       "there is no image '%s'; 'durward image ls' lists them, 'durward image "
                       "import' makes one",
                       name);
    errno = saved;
    return fd < 0 ? err_sys(err, "image '%s'", name) : fd;
}

/* What was written for the daemon's own user, by a version in which a sandbox of root's was root
 * outside, becomes the sandbox's. The directory itself comes last, so that one that was interrupted
 * is done again. */
static int take_over(int fd, const struct idmap *owner, struct err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(err, "fstat");
    if (st.st_uid == owner->inside_uid || st.st_uid != geteuid())
        return 0;
    return tree_give(fd, owner->inside_uid, owner->inside_gid, err) < 0
               ? err_wrap(err, "an earlier version's files")
               : 0;
}

/* One directory below at, made with this mode when it is missing. */
static int step(int at, const char *name, mode_t mode, const struct idmap *owner, struct err *err)
{
    if (mkdirat(at, name, mode) == 0) {
        if (owner &&
            fchownat(at, name, owner->inside_uid, owner->inside_gid, AT_SYMLINK_NOFOLLOW) < 0)
            return err_sys(err, "cannot give %s to the sandbox", name);
    } else if (errno != EEXIST) {
        return err_sys(err, "cannot make %s", name);
    }
    int fd = openat(at, name, DIRECTORY);
    if (fd < 0)
        return err_sys(err, "%s", name);
    if (owner == NULL || take_over(fd, owner, err) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Where overlayfs notes that it was mounted without syncs (mounts.h), and would not be again. */
static int forget_volatile(int work, struct err *err)
{
    static const char dir[] = "work/incompat/volatile", file[] = "work/incompat/volatile/dirty";
    if ((unlinkat(work, file, 0) < 0 && errno != ENOENT) ||
        (unlinkat(work, dir, AT_REMOVEDIR) < 0 && errno != ENOENT))
        return err_sys(err, "%s", dir);
    return 0;
}

static int open_parts(int at, const struct idmap *m, struct layer *ret, struct err *err)
{
    static const char *const names[LAYER_PARTS][2] = {{"root", "root.work"}, {"usr", "usr.work"}};
    for (int i = 0; i < LAYER_PARTS; i++)
        if ((ret->upper[i] = step(at, names[i][0], 0755, m, err)) < 0 ||
            (ret->work[i] = step(at, names[i][1], 0700, m, err)) < 0 ||
            forget_volatile(ret->work[i], err) < 0)
            return -1;
    return 0;
}

/* A layer means nothing above another image than the one it was written above. */
static int note_image(int at, const char *image, struct err *err)
{
    char was[128];
    const char *name = image[0] ? image : "host";
    size_t n = strlen(name);
    int fd = openat(at, "image", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
        bool ok = write(fd, name, n) == (ssize_t)n;
        close(fd);
        return ok ? 0 : err_sys(err, "cannot note the image");
    }
    fd = openat(at, "image", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, was, sizeof was - 1);
    if (fd >= 0)
        close(fd);
    if (got < 0)
        return err_sys(err, "the image's name");
    was[got] = '\0';
    return strcmp(was, name) == 0
               ? 0
               : err_set(err, ERR_DENIED, "it was made with the image '%s', not '%s'", was, name);
}

int layer_open(const char *state_dir, const char *id, const char *image, const struct idmap *m,
               struct layer *ret, struct err *err)
{
    *ret = (struct layer){{-1, -1}, {-1, -1}};
    int state = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int all = state < 0 ? err_sys(err, "%s", state_dir) : step(state, "sandboxes", 0700, NULL, err);
    int own = all < 0 ? -1 : step(all, id, 0700, NULL, err);
    int r = own < 0 ? -1 : note_image(own, image, err);
    if (r == 0)
        r = open_parts(own, m, ret, err);
    int used[] = {state, all, own};
    for (size_t i = 0; i < ARRAY_LEN(used); i++)
        if (used[i] >= 0)
            close(used[i]);
    if (r < 0)
        layer_close(ret);
    return r;
}

void layer_close(struct layer *l)
{
    for (int i = 0; i < LAYER_PARTS; i++) {
        if (l->upper[i] >= 0)
            close(l->upper[i]);
        if (l->work[i] >= 0)
            close(l->work[i]);
        l->upper[i] = l->work[i] = -1;
    }
}
