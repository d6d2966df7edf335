/* Lists them as patterns, as some names carry a version. What a package keeps there, so that an
 * administrator may change it, is what its program starts with: modules to load, paths, formats.
 * Without it PHP has no extensions, GHC no library, and LibreOffice does not start. */
#define _GNU_SOURCE 1
#include "shown.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mounts.h"

/* Patterns of glob(7). None of what is for mail, databases, the network or version control is here,
 * nor a server's part of something: credentials belong into those. */
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
    "/etc/java-*",
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

/* A link or a file of that name is none of them. */
static int show(int root, const char *path, struct err *err)
{
    struct stat st;
    int from = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0)
        return 0;
    if (fstat(from, &st) < 0 || !S_ISDIR(st.st_mode)) {
        close(from);
        return 0;
    }
    int at = mounts_place(root, path, true, err);
    int tree = at < 0 ? -1 : mounts_clone(from, true, err);
    int r = tree < 0 ? -1 : mounts_attach(tree, at, err);
    close(from);
    if (at >= 0)
        close(at);
    if (tree >= 0)
        close(tree);
    return r < 0 ? err_wrap(err, "%s", path) : 0;
}

int shown_attach(int root, struct err *err)
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
            r = show(root, found.gl_pathv[k], err);
        globfree(&found);
    }
    return r;
}
