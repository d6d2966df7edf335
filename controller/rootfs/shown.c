/* Lists them, by name or by how the name begins where that carries a version. What a package keeps
 * there, so that an administrator may change it, is what its program starts with: modules to load,
 * paths, formats. Without it PHP has no extensions, GHC no library, and LibreOffice does not start.
 */
#define _GNU_SOURCE 1
#include "shown.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mounts.h"

/* A name that ends with "*" is the beginning of several. None of what is for mail, databases, the
 * network or version control is here: credentials belong into that. */
static const char *const in_etc[] = {
    "alternatives",
    "ld.so.conf.d",
    "terminfo",
    "python3",
    "python3.*",
    "perl",
    "fonts",
    "vim",
    "crypto-policies",
    "java",
    "java-*",
    "maven",
    "bash_completion.d",
    "php",
    "R",
    "mono",
    "emacs",
    "lynx",
    "libreoffice",
    "texmf",
    "ImageMagick-*",
    "ghostscript",
    "groff",
    "dictionaries-common",
    "dpkg",
};
static const char *const in_var_lib[] = {"ghc", "texmf", "aspell", "ghostscript", "libreoffice"};

static const struct {
    const char *in;
    const char *const *names;
    size_t n;
} shown[] = {{"/etc", in_etc, ARRAY_LEN(in_etc)}, {"/var/lib", in_var_lib, ARRAY_LEN(in_var_lib)}};

static bool is_shown(size_t i, const char *name)
{
    for (size_t k = 0; k < shown[i].n; k++) {
        const char *known = shown[i].names[k];
        size_t n = strlen(known);
        if (known[n - 1] == '*' ? strncmp(name, known, n - 1) == 0 : strcmp(name, known) == 0)
            return true;
    }
    return false;
}

/* A link or a file of that name is none of them. */
static int show(int root, int host, const char *in, const char *name, struct err *err)
{
    char path[PATH_MAX];
    struct stat st;
    int from = openat(host, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0)
        return 0;
    if (fstat(from, &st) < 0 || !S_ISDIR(st.st_mode)) {
        close(from);
        return 0;
    }
    snprintf(path, sizeof path, "%s/%s", in, name);
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

static int show_all(int root, size_t i, struct err *err)
{
    int fd = open(shown[i].in, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL) {
        if (fd >= 0)
            close(fd);
        return err_sys(err, "%s", shown[i].in);
    }
    int r = 0;
    for (struct dirent *e; r == 0 && (e = readdir(d)) != NULL;)
        if (is_shown(i, e->d_name))
            r = show(root, dirfd(d), shown[i].in, e->d_name, err);
    closedir(d);
    return r;
}

int shown_attach(int root, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(shown); i++)
        if (show_all(root, i, err) < 0)
            return -1;
    return 0;
}
