/* Takes directories from the environment, or fixed ones for root, and makes and checks those that
 * must be private. */
#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *paths_join(const char *a, const char *b)
{
    size_t n = strlen(a) + strlen(b) + 2;
    char *r = malloc(n);
    if (r == NULL)
        abort();
    snprintf(r, n, "%s/%s", a, b);
    return r;
}

static char *copy(const char *s)
{
    char *r = strdup(s);
    if (r == NULL)
        abort();
    return r;
}

/* $VAR/durward when VAR is an absolute path, else $HOME/fallback/durward. */
static char *user_dir(const char *var, const char *fallback, struct err *err)
{
    const char *v = getenv(var);
    if (v && v[0] == '/')
        return paths_join(v, "durward");
    const char *home = getenv("HOME");
    if (home == NULL || home[0] != '/') {
        err_set(err, ERR_UNREADY, "neither %s nor HOME is set to an absolute path; set one", var);
        return NULL;
    }
    char *base = paths_join(home, fallback), *r = paths_join(base, "durward");
    free(base);
    return r;
}

char *paths_runtime_dir(struct err *err UNUSED)
{
    if (geteuid() == 0)
        return copy("/run/durward");
    const char *v = getenv("XDG_RUNTIME_DIR");
    if (v && v[0] == '/')
        return paths_join(v, "durward");
    char buf[64];
    snprintf(buf, sizeof buf, "/tmp/durward-%u", (unsigned)geteuid());
    return copy(buf);
}

char *paths_user_state_dir(struct err *err)
{
    return user_dir("XDG_STATE_HOME", ".local/state", err);
}

char *paths_state_dir(struct err *err)
{
    return geteuid() == 0 ? copy("/var/lib/durward")
                          : user_dir("XDG_STATE_HOME", ".local/state", err);
}

char *paths_cache_dir(struct err *err)
{
    return geteuid() == 0 ? copy("/var/cache/durward") : user_dir("XDG_CACHE_HOME", ".cache", err);
}

static char *below(char *dir, const char *name)
{
    if (dir == NULL)
        return NULL;
    char *r = paths_join(dir, name);
    free(dir);
    return r;
}

char *paths_ca_dir(struct err *err)
{
    if (geteuid() == 0)
        return copy("/var/lib/durward/ca");
    return below(user_dir("XDG_DATA_HOME", ".local/share", err), "ca");
}

char *paths_profiles_dir(struct err *err)
{
    return below(user_dir("XDG_CONFIG_HOME", ".config", err), "profiles");
}

char *paths_audit_dir(struct err *err)
{
    if (geteuid() == 0)
        return copy("/var/log/durward");
    return below(paths_state_dir(err), "audit");
}

char *paths_api_socket(struct err *err)
{
    return below(paths_runtime_dir(err), "api.sock");
}

static int make_parents(char *path, struct err *err)
{
    for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = 0;
        int r = mkdir(path, 0700);
        if (r < 0 && errno != EEXIST) {
            err_sys(err, "cannot make the directory %s", path);
            *p = '/';
            return -1;
        }
        *p = '/';
    }
    return 0;
}

int paths_make_private(const char *dir, struct err *err)
{
    char *path = copy(dir);
    int r = make_parents(path, err);
    free(path);
    if (r < 0)
        return -1;
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return err_sys(err, "cannot make the directory %s", dir);
    struct stat st;
    if (lstat(dir, &st) < 0)
        return err_sys(err, "%s", dir);
    if (!S_ISDIR(st.st_mode))
        return err_set(err, ERR_DENIED, "%s is not a directory", dir);
    bool ours = st.st_uid == geteuid() || geteuid() == 0;
    if (!ours)
        return err_set(err, ERR_DENIED, "%s belongs to uid %u, not to you", dir,
                       (unsigned)st.st_uid);
    if (st.st_mode & 022)
        return err_set(err, ERR_DENIED, "%s can be written by others; chmod go-w %s", dir, dir);
    return 0;
}

int paths_check_private_fd(int fd, const char *what, struct err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(err, "%s", what);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_DENIED, "%s is not a regular file", what);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return err_set(err, ERR_DENIED, "%s belongs to uid %u; it must be yours or root's", what,
                       (unsigned)st.st_uid);
    if (st.st_mode & 077)
        return err_set(err, ERR_DENIED, "%s can be read by others (mode %03o); chmod 600 %s", what,
                       st.st_mode & 0777, what);
    return 0;
}
