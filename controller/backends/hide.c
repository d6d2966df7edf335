/* Walks /proc and names what each backend has to cover: for everybody `sys` and the lists of keys,
 * for root also what others may not read and what can be written. */
#define _GNU_SOURCE 1
#include "hide.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slice.h"

typedef int (*hide_fn)(void *arg, const char *name, enum hide_how how);

static bool is_kernel_directory(const char *name)
{
    static const char *const directories[] = {"irq",  "bus",    "fs",     "scsi",
                                              "acpi", "asound", "driver", "dynamic_debug"};
    for (size_t i = 0; i < ARRAY_LEN(directories); i++)
        if (strcmp(directories[i], name) == 0)
            return true;
    return false;
}

static int hide_from_root(const char *name, const struct stat *st, hide_fn fn, void *arg)
{
    if (S_ISDIR(st->st_mode))
        return is_kernel_directory(name) ? fn(arg, name, HIDE_READ_ONLY) : 0;
    if (strncmp(name, "key", 3) == 0 || !S_ISREG(st->st_mode))
        return 0; /* done for everybody */
    if ((st->st_mode & S_IROTH) == 0)
        return fn(arg, name, HIDE_EMPTY);
    return st->st_mode & (S_IWUSR | S_IWGRP | S_IWOTH) ? fn(arg, name, HIDE_READ_ONLY) : 0;
}

int hide_proc(bool root, hide_fn fn, void *arg, struct err *err)
{
    /* the names of the caller's keys, of other sessions too */
    static const char *const keys[] = {"keys", "key-users"};
    DIR *d = opendir("/proc");
    if (d == NULL)
        return err_sys(err, "/proc");
    int r = fn(arg, "sys", HIDE_READ_ONLY);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(keys); i++)
        if (faccessat(dirfd(d), keys[i], F_OK, 0) == 0)
            r = fn(arg, keys[i], HIDE_EMPTY);
    for (struct dirent *e; root && r == 0 && (e = readdir(d)) != NULL;) {
        struct stat st;
        if (ascii_is_alnum(e->d_name[0]) && e->d_name[0] <= '9')
            continue; /* a process */
        if (e->d_type != DT_LNK && fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            r = hide_from_root(e->d_name, &st, fn, arg);
    }
    closedir(d);
    return r;
}
