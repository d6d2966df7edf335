/* Makes, locks, lists and removes kept homes. What lies in one came from a sandbox: it is removed
 * from descriptor to descriptor and otherwise never looked into. */
#define _GNU_SOURCE 1
#include "home.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "home_logins.h"
#include "private_file.h"
#include "paths.h"
#include "sandbox_spec.h"
#include "tree.h"

enum { DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

bool home_name_ok(const char *name)
{
    return sandbox_spec_name_ok(name);
}

void home_name_for(const char *profile, const char *project, char *to, size_t n)
{
    unsigned char sum[EVP_MAX_MD_SIZE] = {0};
    const char *base = strrchr(project, '/');
    char word[24];
    snprintf(word, sizeof word, "%s", base ? base + 1 : project);
    for (char *c = word; *c; c++)
        if (!ascii_is_alnum(*c) && *c != '-' && *c != '_' && *c != '.')
            *c = '_';
    if (EVP_Digest(project, strlen(project), sum, NULL, EVP_sha256(), NULL) != 1)
        abort(); /* nothing else than memory can be missing */
    snprintf(to, n, "%.24s-%s-%02x%02x%02x%02x", profile, word[0] ? word : "root", sum[0], sum[1],
             sum[2], sum[3]);
}

char *home_folder(const struct config *config, struct err *err)
{
    const char *set = config ? config_controller_state(config) : NULL;
    char *state = set ? strdup(set) : paths_state_dir(err), *folder;
    if (state == NULL)
        return NULL;
    if (asprintf(&folder, "%s-homes", state) < 0)
        abort(); /* memory is out */
    free(state);
    return folder;
}

static int check_name(const char *name, struct err *err)
{
    return home_name_ok(name)
               ? 0
               : err_set(err, ERR_PARSE, "'%.60s' is not a home's name (letters, digits, _ . -)",
                         name);
}

/* HOMES/NAME; make: it need not be there. */
static int open_dir(const struct config *config, const char *name, bool make, char **ret,
                    struct err *err)
{
    char *homes = check_name(name, err) < 0 ? NULL : home_folder(config, err);
    if (homes == NULL)
        return -1;
    char *dir = paths_join(homes, name);
    free(homes);
    int fd = -1;
    if (!make || paths_make_private(dir, err) == 0)
        fd = open(dir, DIR_FLAGS);
    if (fd < 0 && err->code == ERR_NONE) {
        if (errno == ENOENT)
            err_set(err, ERR_UNREADY, "there is no home '%s'; 'durward home ls' lists them", name);
        else
            err_sys(err, "%s", dir);
    }
    *ret = dir;
    return fd;
}

static int take_lock(int dir, const char *name, struct err *err)
{
    int fd = openat(dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_sys(err, "the lock of the home '%s'", name);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    close(fd);
    return errno == EWOULDBLOCK
               ? err_set(
                     err, ERR_DENIED,
                     "the home '%s' is in use by a sandbox that runs; wait until that has ended, "
                     "or take another one with --home NAME",
                     name)
               : err_sys(err, "the lock of the home '%s'", name);
}

/* Under another name first, so that half a seed is never read. */
static int write_seed(int dir, struct err *err)
{
    unsigned char seed[RUN_SEED];
    if (getrandom(seed, sizeof seed, 0) != sizeof seed)
        return err_sys(err, "getrandom");
    int fd = openat(dir, "seed.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r = fd < 0 || write(fd, seed, sizeof seed) != sizeof seed || fsync(fd) < 0 ||
                    renameat(dir, "seed.new", dir, "seed") < 0
                ? err_sys(err, "cannot write the home's seed")
                : 0;
    explicit_bzero(seed, sizeof seed);
    if (fd >= 0)
        close(fd);
    return r;
}

static int read_seed(int dir, unsigned char *seed, struct err *err)
{
    int fd = openat(dir, "seed", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT) {
        if (write_seed(dir, err) < 0)
            return -1;
        fd = openat(dir, "seed", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    }
    if (fd < 0)
        return err_sys(err, "the home's seed");
    int r = paths_check_private_fd(fd, "the home's seed", err);
    if (r == 0 && read(fd, seed, RUN_SEED) != RUN_SEED)
        r = err_set(err, ERR_PARSE,
                    "the home's seed is damaged; 'durward home renew' makes another");
    close(fd);
    return r;
}

int home_open(const struct config *config, const char *name, struct home *ret, struct err *err)
{
    char *dir = NULL;
    *ret = (struct home){.dir = open_dir(config, name, true, &dir, err), .lock = -1};
    int r = ret->dir < 0 ? -1 : 0;
    if (r == 0)
        r = (ret->lock = take_lock(ret->dir, name, err)) < 0 ? -1 : 0;
    if (r == 0)
        r = read_seed(ret->dir, ret->seed, err);
    if (r == 0 && mkdirat(ret->dir, "home", 0700) < 0 && errno != EEXIST)
        r = err_sys(err, "%s/home", dir);
    if (r == 0) {
        ret->name = strdup(name);
        ret->files = paths_join(dir, "home");
        ret->renewed = faccessat(ret->dir, "renewed", F_OK, 0) == 0;
    }
    free(dir);
    if (r < 0)
        home_close(ret);
    return r;
}

/* What cannot be read counts as used. */
bool home_used(const struct home *h)
{
    int fd = openat(h->dir, "home", DIR_FLAGS);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    bool used = d == NULL;
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        used = used || (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0);
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
    return used || faccessat(h->dir, "logins", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void home_laid(struct home *h)
{
    if (h->renewed && unlinkat(h->dir, "renewed", 0) == 0)
        h->renewed = false;
}

void home_close(struct home *h)
{
    if (h->lock > 0)
        close(h->lock);
    if (h->dir > 0)
        close(h->dir);
    free(h->name);
    free(h->files);
    explicit_bzero(h->seed, sizeof h->seed);
    *h = (struct home){0};
}

static int open_locked(const struct config *config, const char *name, int *lock, struct err *err)
{
    char *dir = NULL;
    int fd = open_dir(config, name, false, &dir, err);
    *lock = fd < 0 ? -1 : take_lock(fd, name, err);
    free(dir);
    if (*lock >= 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static int forget_logins(int fd, struct err *err)
{
    return faccessat(fd, "logins", F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT
               ? 0
               : tree_remove(fd, "logins", err);
}

int home_logout(const struct config *config, const char *name, struct err *err)
{
    int lock, fd = open_locked(config, name, &lock, err);
    if (fd < 0)
        return -1;
    int r = forget_logins(fd, err);
    close(lock);
    close(fd);
    return r;
}

int home_renew(const struct config *config, const char *name, struct err *err)
{
    int lock, fd = open_locked(config, name, &lock, err);
    if (fd < 0)
        return -1;
    int mark = openat(fd, "renewed", O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r = mark < 0 ? err_sys(err, "the home's mark") : forget_logins(fd, err);
    if (r == 0)
        r = write_seed(fd, err);
    if (mark >= 0)
        close(mark);
    close(lock);
    close(fd);
    return r;
}

int home_remove(const struct config *config, const char *name, struct err *err)
{
    char *dir = NULL, *homes = NULL;
    int fd = open_dir(config, name, false, &dir, err);
    int lock = fd < 0 ? -1 : take_lock(fd, name, err);
    int r = lock < 0 ? -1 : 0, at = -1;
    if (r == 0 && (homes = home_folder(config, err)) != NULL)
        at = open(homes, DIR_FLAGS);
    if (r == 0)
        r = at < 0 ? err_sys(err, "the directory of homes") : tree_remove(at, name, err);
    int own[] = {at, lock, fd};
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (own[i] >= 0)
            close(own[i]);
    free(homes);
    free(dir);
    return r;
}

static bool is_used(int homes, const char *name)
{
    char path[NAME_MAX + 8];
    snprintf(path, sizeof path, "%s/lock", name);
    int fd = openat(homes, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    bool used = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return used;
}

/* Names alone of "NAME BASE64": what else is in the file is wiped. */
static void names_of(char *text, size_t n, char *to, size_t size)
{
    size_t at = 0;
    to[0] = 0;
    for (char *line = text; line < text + n;) {
        char *end = memchr(line, '\n', (size_t)(text + n - line));
        size_t len = strcspn(line, " \n");
        if (at + len + 3 < size)
            at += (size_t)snprintf(to + at, size - at, "%s%.*s", at ? ", " : "", (int)len, line);
        line = end ? end + 1 : text + n;
    }
    explicit_bzero(text, n);
}

void home_each_login(int dir,
                     void (*fn)(void *arg, const char *policy, const char *secrets, time_t when),
                     void *arg)
{
    static char text[HOME_LOGINS_MAX + 1];
    char names[1024];
    struct stat st;
    int at = openat(dir, "logins", DIR_FLAGS);
    DIR *d = at < 0 ? NULL : fdopendir(dup(at));
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        size_t n =
            file_name_ok(e->d_name) ? private_file_read(at, e->d_name, text, sizeof text - 1) : 0;
        if (n == 0 || fstatat(at, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        text[n] = 0;
        names_of(text, n, names, sizeof names);
        fn(arg, e->d_name, names, st.st_mtime);
    }
    if (d)
        closedir(d);
    if (at >= 0)
        close(at);
}

int home_each(const struct config *config,
              void (*fn)(void *arg, const char *name, bool used, int dir), void *arg,
              struct err *err)
{
    struct dirent **list;
    char *homes = home_folder(config, err);
    int n = homes ? scandir(homes, &list, NULL, alphasort) : -1;
    int fd = n < 0 ? -1 : open(homes, DIR_FLAGS), r = 0;
    if (homes && n < 0 && errno != ENOENT)
        r = err_sys(err, "%s", homes);
    for (int i = 0; i < n; i++) {
        int dir = home_name_ok(list[i]->d_name) ? openat(fd, list[i]->d_name, DIR_FLAGS) : -1;
        if (dir >= 0) {
            fn(arg, list[i]->d_name, is_used(fd, list[i]->d_name), dir);
            close(dir);
        }
        free(list[i]);
    }
    if (n >= 0)
        free(list);
    if (fd >= 0)
        close(fd);
    free(homes);
    return r;
}
