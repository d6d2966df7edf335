/* What a container is given of the host: copies that `durward run` made below the state directory,
 * and nothing else, whatever the plan says. */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "docker.h"
#include "tree.h"

enum { DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

/* NAME/N: the directory of a run and the number of one of its copies. */
static bool is_copy(const char *below)
{
    size_t name = strspn(below, "abcdefghijklmnopqrstuvwxyz0123456789-");
    const char *number = below + name + 1;
    size_t n = below[name] == '/' ? strspn(number, "0123456789") : 0;
    return name > 0 && n > 0 && number[n] == '\0';
}

/* The engine walks the path again, by itself: all of it but the copy lies where we alone write. */
static int open_copy(const char *copies, const char *below)
{
    char name[NAME_MAX + 1];
    struct err err = {0};
    int root = open(copies, DIR_FLAGS);
    int above = root < 0 ? -1 : tree_parent(root, below, false, name, &err);
    int fd = above < 0 ? -1 : openat(above, name, DIR_FLAGS);
    if (above >= 0)
        close(above);
    if (root >= 0)
        close(root);
    return fd;
}

static int check_target(const char *target, struct err *err)
{
    return plan_path_within(target, "/etc")
               ? err_set(err, ERR_DENIED, "nothing can be put to %s inside a container", target)
               : rootfs_check_target(target, err);
}

static int check_one(const char *copies, const struct plan_bind *b, uid_t *owner, struct err *err)
{
    struct stat st;
    size_t n = strlen(copies);
    bool ours =
        strncmp(b->source, copies, n) == 0 && b->source[n] == '/' && is_copy(b->source + n + 1);
    int fd = ours ? open_copy(copies, b->source + n + 1) : -1;
    int bad = fd < 0 || fstat(fd, &st) < 0;
    if (fd >= 0)
        close(fd);
    if (bad)
        return err_set(err, ERR_DENIED,
                       "the docker backend binds nothing of the host: add --no-bind, or copy "
                       "files with durward sandbox cp");
    *owner = st.st_uid;
    return check_target(b->target, err);
}

/* Who of the host the container's user is, by the lines of his user namespace. */
static int outside_of(pid_t pid, uid_t uid, uid_t *ret)
{
    char path[64];
    unsigned inside, outside, count;
    snprintf(path, sizeof path, "/proc/%d/uid_map", (int)pid);
    FILE *f = fopen(path, "re");
    int r = -1;
    while (f && r < 0 && fscanf(f, "%u %u %u", &inside, &outside, &count) == 3)
        if (uid >= inside && uid - inside < count) {
            *ret = outside + (uid - inside);
            r = 0;
        }
    if (f)
        fclose(f);
    return r;
}

int docker_copies_check(const struct making *m, struct docker_copies *ret, struct err *err)
{
    char copies[PATH_MAX];
    if (snprintf(copies, sizeof copies, "%s/copies", m->parts.state_dir) >= (int)sizeof copies)
        return err_set(err, ERR_LIMIT, "the state directory has too long a path");
    for (unsigned i = 0; i < m->plan->nbinds; i++)
        if (check_one(copies, &m->plan->binds[i], &ret->owner, err) < 0)
            return -1;
    return 0;
}

int docker_copies_owner(const struct plan *plan, const struct docker_copies *c, pid_t pid,
                        struct err *err)
{
    uid_t outside;
    if (plan->nbinds == 0)
        return 0;
    if (outside_of(pid, plan->uid, &outside) == 0 && outside == c->owner)
        return 0;
    return err_set(err, ERR_DENIED,
                   "the engine has users of its own for its containers (userns-remap), and a copy "
                   "of the directory would not be theirs to write: add --no-bind");
}
