/* Lists them as patterns, as some names carry a version. What a package keeps there, so that an
 * administrator may change it, is what its program starts with: modules to load, paths, formats.
 * Without it PHP has no extensions, GHC no library, and LibreOffice does not start. */
#define _GNU_SOURCE 1
#include "shown.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mounts.h"
#include "shown_login.h"

/* Patterns of glob(7). None of what is for mail, databases, the network or version control is here,
 * nor a server's part of something: credentials belong into those. What else has a place for one is
 * looked into (shown_login.c). */
static const char *const shown[] = {
    "/etc/alternatives",
    "/etc/ld.so.conf.d",
    "/etc/terminfo",
    "/etc/python3",
    "/etc/python3.*",
    "/etc/perl",
    "/etc/fonts",
    "/etc/vim",
    "/etc/crypto-policies",
    "/etc/java",
    "/etc/java-[0-9]*",
    "/etc/maven",
    "/etc/bash_completion.d",
    "/etc/php/*/cli",
    "/etc/php/*/mods-available",
    "/etc/R",
    "/etc/mono",
    "/etc/emacs",
    "/etc/lynx",
    "/etc/libreoffice",
    "/etc/texmf",
    "/etc/ImageMagick-*",
    "/etc/ghostscript",
    "/etc/groff",
    "/etc/dictionaries-common",
    "/etc/dpkg",
    "/var/lib/ghc",
    "/var/lib/texmf",
    "/var/lib/aspell",
    "/var/lib/ghostscript",
    "/var/lib/libreoffice",
};

/* An entry of a directory that is shown by its entries: a link stays one. */
static int show_entry(int root, const char *dir, int from, const char *name, struct err *err)
{
    struct stat st;
    char path[PATH_MAX], to[PATH_MAX];
    ssize_t n = readlinkat(from, name, to, sizeof to - 1);
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
        return err_set(err, ERR_LIMIT, "a path is too long");
    if (n >= 0) {
        to[n] = '\0';
        int at = mounts_place(root, dir, true, err);
        int r = at < 0 ? -1 : symlinkat(to, at, name) < 0 ? err_sys(err, "%s", path) : 0;
        if (at >= 0)
            close(at);
        return r;
    }
    int fd = openat(from, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    bool is_dir = fd >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
    int r =
        is_dir || (fd >= 0 && S_ISREG(st.st_mode)) ? mounts_show(root, path, fd, is_dir, err) : 0;
    if (fd >= 0)
        close(fd);
    return r;
}

/* Without those of its files that hold a login. */
static int show_rest(int root, const char *pattern, const char *path, int from, struct err *err)
{
    int fd = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    int r = 0;
    if (d == NULL) {
        if (fd >= 0)
            close(fd);
        return 0; /* not for us to read */
    }
    for (struct dirent *e; r == 0 && (e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            !shown_login(pattern, from, e->d_name))
            r = show_entry(root, path, from, e->d_name, err);
    closedir(d);
    return r;
}

/* A link or a file of that name is none of them. */
static int show(int root, const char *pattern, const char *path, struct buf *notes, struct err *err)
{
    struct stat st;
    int from = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), r = 0;
    if (from < 0)
        return 0;
    if (fstat(from, &st) == 0 && S_ISDIR(st.st_mode))
        r = shown_note_logins(pattern, path, from, notes)
                ? show_rest(root, pattern, path, from, err)
                : mounts_show(root, path, from, true, err);
    close(from);
    return r < 0 ? err_wrap(err, "%s", path) : 0;
}

int shown_attach(int root, struct buf *notes, struct err *err)
{
    int r = 0;
    for (size_t i = 0; i < ARRAY_LEN(shown) && r == 0; i++) {
        glob_t found;
        int g = glob(shown[i], GLOB_NOSORT, NULL, &found);
        if (g == GLOB_NOMATCH)
            continue;
        if (g != 0)
            r = err_sys(err, "%s", shown[i]);
        for (size_t k = 0; g == 0 && r == 0 && k < found.gl_pathc; k++)
            r = show(root, shown[i], found.gl_pathv[k], notes, err);
        globfree(&found);
    }
    return r;
}
