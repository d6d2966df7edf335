/* Finds the program in PATH, follows its links to its package (a node_modules, a Python
 * environment, or the file alone) and to the interpreter of its first line, and binds these. */
#include "run_program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { INTERPRETERS_MAX = 4, LINKS_MAX = 8, LINE = 512 };

static bool within(const char *inner, const char *outer)
{
    size_t n = strlen(outer);
    return strncmp(inner, outer, n) == 0 && (inner[n] == 0 || inner[n] == '/');
}

/* Seen as it is: the system's, or bound already. */
static bool is_seen(const struct run_request *r, const char *path)
{
    static const char *const system[] = {"/usr", "/bin", "/sbin", "/lib", "/lib64"};
    for (size_t i = 0; i < ARRAY_LEN(system); i++)
        if (within(path, system[i]) && r->image[0] == 0)
            return true;
    for (size_t i = 0; i < r->n_binds; i++)
        if (within(path, r->binds[i].target))
            return true;
    return false;
}

static int bind_at(struct run_request *r, const char *path, struct err *err)
{
    char real[PATH_MAX];
    if (is_seen(r, path))
        return 0;
    if (realpath(path, real) == NULL)
        return err_sys(err, "%s", path);
    return run_request_bind(r, real, path, false) < 0 ? err_set(err, ERR_LIMIT, "too many binds")
                                                      : 0;
}

/* In a directory that a sandbox can write: a link or a first line there is the sandbox's word, and
 * must not decide what else of the host is bound. */
static bool is_writable(const struct run_request *r, const char *path)
{
    char folder[PATH_MAX], real[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash == NULL || slash == folder)
        return false;
    *slash = 0;
    if (realpath(folder, real) == NULL)
        return true;
    for (size_t i = 0; i < r->n_binds; i++)
        if (r->binds[i].writable && within(real, r->binds[i].source))
            return true;
    return false;
}

static bool can_run(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* NAME in $PATH, where the sandbox cannot write, or (writable) where it can. */
static int find(const struct run_request *r, const char *name, bool writable, char to[PATH_MAX])
{
    const char *path = getenv("PATH");
    char copy[8192], *rest = copy, *dir;
    if (strchr(name, '/'))
        return snprintf(to, PATH_MAX, "%s", name) < PATH_MAX && can_run(to) &&
                       is_writable(r, to) == writable
                   ? 0
                   : -1;
    if (snprintf(copy, sizeof copy, "%s", path ? path : "") >= (int)sizeof copy)
        return -1;
    while ((dir = strsep(&rest, ":")) != NULL)
        if (dir[0] == '/' && snprintf(to, PATH_MAX, "%s/%s", dir, name) < PATH_MAX && can_run(to) &&
            is_writable(r, to) == writable)
            return 0;
    return -1;
}

/* Cuts the path behind the first "/NAME/", or leaves it; was it there? */
static bool cut_behind(char *path, const char *name)
{
    char *at = strstr(path, name);
    if (at == NULL)
        return false;
    at[strlen(name) - 1] = 0;
    return true;
}

/* The Python environment that DIR/bin/X belongs to. */
static bool environment_of(char *path)
{
    char marker[PATH_MAX + 16];
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(path, '/');
        if (slash == NULL || slash == path)
            return false;
        *slash = 0;
    }
    snprintf(marker, sizeof marker, "%s/pyvenv.cfg", path);
    return access(marker, F_OK) == 0;
}

/* The package that a file belongs to, or the file alone. */
static int bind_package(struct run_request *r, const char *path, struct err *err)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    if (cut_behind(folder, "/node_modules/"))
        return bind_at(r, folder, err);
    snprintf(folder, sizeof folder, "%s", path);
    return bind_at(r, environment_of(folder) ? folder : path, err);
}

/* The folder of its own in whose bin an interpreter lies, and whose library it comes with. A user's
 * home, ~/.local and /opt are no such folders. */
static bool is_own_folder(const char *path, char folder[PATH_MAX])
{
    char lib[PATH_MAX + 8];
    const char *home = getenv("HOME");
    size_t n = home ? strlen(home) : 0;
    snprintf(folder, PATH_MAX, "%s", path);
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(folder, '/');
        if (slash == NULL || slash == folder || (up == 1 && strcmp(slash, "/bin") != 0))
            return false;
        *slash = 0;
    }
    if (strrchr(folder, '/') == folder || strstr(folder, "/../") ||
        (home && (within(home, folder) ||
                  (strncmp(folder, home, n) == 0 && strcmp(folder + n, "/.local") == 0))))
        return false;
    snprintf(lib, sizeof lib, "%s/lib", folder);
    return access(lib, F_OK) == 0;
}

/* What the link at `path` says, from where it lies. False: it is none, or does not fit. */
static bool next_link(const char *path, char to[PATH_MAX])
{
    char word[PATH_MAX];
    const char *slash = strrchr(path, '/');
    ssize_t n = readlink(path, word, sizeof word - 1);
    if (n <= 0 || slash == NULL)
        return false;
    word[n] = 0;
    int len = word[0] == '/' ? snprintf(to, PATH_MAX, "%s", word)
                             : snprintf(to, PATH_MAX, "%.*s/%s", (int)(slash - path), path, word);
    return len > 0 && len < PATH_MAX;
}

/* The interpreter with its folder, at each name by which links lead to it: an environment's python
 * is a link to that of an installation, whose folder may be a link to the one of its newest
 * version. */
static int bind_interpreter(struct run_request *r, const char *path, struct err *err)
{
    char at[PATH_MAX], next[PATH_MAX], folder[PATH_MAX], real[PATH_MAX];
    if (realpath(path, real) == NULL)
        return err_sys(err, "%s", path);
    snprintf(at, sizeof at, "%s", path);
    for (int i = 0; i < LINKS_MAX && !is_writable(r, at) && next_link(at, next); i++) {
        if (is_own_folder(next, folder) && bind_at(r, folder, err) < 0)
            return -1;
        memcpy(at, next, sizeof at);
    }
    return bind_at(r, is_own_folder(real, folder) ? folder : real, err);
}

/* Of "#!/usr/bin/env -S node --x" and of "#!/venv/bin/python": which program. "" where there is
 * none. */
static void interpreter_of(const struct run_request *r, const char *path, char to[PATH_MAX])
{
    char line[LINE + 1] = "", *word, *rest;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, line, LINE);
    if (fd >= 0)
        close(fd);
    to[0] = 0;
    if (n < 3 || strncmp(line, "#!", 2) != 0)
        return;
    line[strcspn(line, "\n")] = 0;
    rest = line + 2;
    while ((word = strsep(&rest, " \t\r")) != NULL) {
        if (word[0] == 0 || word[0] == '-' || strchr(word, '='))
            continue;
        const char *base = strrchr(word, '/');
        if (base && strcmp(base, "/env") == 0)
            continue;
        if (find(r, word, false, to) < 0)
            to[0] = 0;
        return;
    }
}

int run_program_bind(const char *name, struct run_request *r, char to[PATH_MAX], struct err *err)
{
    char path[PATH_MAX], real[PATH_MAX];
    if (find(r, name, false, path) < 0) {
        if (find(r, name, true, to) == 0)
            return 0; /* it is there already, with what the sandbox has put beside it */
        return err_set(err, ERR_UNREADY,
                       "%s is not in PATH: install it on this host, or name an image that has it "
                       "(--image), or another program: durward run --profile NAME -- CMD",
                       name);
    }
    if (realpath(path, real) == NULL)
        return err_sys(err, "%s", path);
    snprintf(to, PATH_MAX, "%s", is_seen(r, path) ? name : real);
    if (bind_package(r, real, err) < 0)
        return -1;
    for (int i = 0; i < INTERPRETERS_MAX; i++) {
        if (is_writable(r, real))
            break;
        interpreter_of(r, real, path);
        if (path[0] == 0)
            break;
        if (realpath(path, real) == NULL)
            return err_sys(err, "%s", path);
        if (bind_package(r, path, err) < 0 || bind_interpreter(r, path, err) < 0)
            return -1;
    }
    return 0;
}
