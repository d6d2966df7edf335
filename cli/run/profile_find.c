/* Looks for a profile in the user's folder, in /etc/durward/profiles and among those built in. */
#include "profile_find.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nearest.h"
#include "node.h"
#include "paths.h"

#define SYSTEM_PROFILES "/etc/durward/profiles"

enum { FOLDERS = 2, NAMES_MAX = 512 };

/* The i-th folder, malloc'd; NULL: not to be had here. */
static char *folder(size_t i)
{
    return i == 0 ? paths_profiles_dir(NULL) : strdup(SYSTEM_PROFILES);
}

char *profile_find_file(const char *name)
{
    char leaf[80];
    if (!node_name_ok(name))
        return NULL;
    snprintf(leaf, sizeof leaf, "%s.yaml", name);
    for (size_t i = 0; i < FOLDERS; i++) {
        char *dir = folder(i), *file = dir ? paths_join(dir, leaf) : NULL;
        free(dir);
        if (file && access(file, F_OK) == 0)
            return file;
        free(file);
    }
    return NULL;
}

bool profile_is_known(const char *name)
{
    char *file = profile_find_file(name);
    bool known = file || profile_text(name);
    free(file);
    return known;
}

/* ---- all of them ---- */

struct names {
    char list[NAMES_MAX][72];
    size_t n;
};

static void add_name(struct names *all, const char *name)
{
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->list[i], name) == 0)
            return;
    if (all->n < NAMES_MAX)
        snprintf(all->list[all->n++], sizeof all->list[0], "%s", name);
}

static void add_folder(struct names *all, const char *dir)
{
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        char name[72];
        size_t n = strlen(e->d_name);
        if (n <= 5 || n - 5 >= sizeof name || strcmp(e->d_name + n - 5, ".yaml") != 0)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(n - 5), e->d_name);
        if (node_name_ok(name))
            add_name(all, name);
    }
    if (d)
        closedir(d);
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static struct names *collect(void)
{
    struct names *all = calloc(1, sizeof *all);
    if (all == NULL)
        abort(); /* memory is out */
    for (size_t i = 0; profile_builtin(i); i++)
        add_name(all, profile_builtin(i));
    for (size_t i = 0; i < FOLDERS; i++) {
        char *dir = folder(i);
        if (dir)
            add_folder(all, dir);
        free(dir);
    }
    qsort(all->list, all->n, sizeof all->list[0], compare);
    return all;
}

void profile_each(void (*fn)(void *arg, const char *name), void *arg)
{
    struct names *all = collect();
    for (size_t i = 0; i < all->n; i++)
        fn(arg, all->list[i]);
    free(all);
}

/* ---- one of them ---- */

static const char *name_word(size_t i, const void *arg)
{
    const struct names *all = arg;
    return all->list[i];
}

static void unknown(const char *name, struct err *err)
{
    struct names *all = collect();
    ssize_t best = nearest(name, all->n, name_word, all);
    err_set(err, ERR_PARSE, "there is no profile '%.60s'; %s%s%s'durward profile ls' lists them",
            name, best < 0 ? "" : "did you mean '", best < 0 ? "" : all->list[best],
            best < 0 ? "" : "'? ");
    free(all);
}

/* Like a configuration, it says what a sandbox may do: nobody else may have written it. */
static int check(int fd, const char *file, struct err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(err, "%s", file);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_DENIED, "%s is not a regular file", file);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return err_set(err, ERR_DENIED, "%s belongs to uid %u; it must be yours or root's", file,
                       (unsigned)st.st_uid);
    if (st.st_mode & 022)
        return err_set(err, ERR_DENIED, "%s can be written by others; chmod go-w %s", file, file);
    return 0;
}

static char *read_all(const char *file, struct err *err)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        err_sys(err, "%s", file);
        return NULL;
    }
    char *text = calloc(1, PROFILE_MAX + 2);
    size_t n = 0;
    int r = text ? check(fd, file, err) : err_set(err, ERR_INTERNAL, "out of memory");
    for (ssize_t got = 1; r == 0 && got > 0 && n <= PROFILE_MAX; n += (size_t)(got > 0 ? got : 0))
        if ((got = read(fd, text + n, PROFILE_MAX + 1 - n)) < 0)
            r = err_sys(err, "%s", file);
    close(fd);
    if (r == 0 && n > PROFILE_MAX)
        r = err_set(err, ERR_LIMIT, "%s: longer than %d bytes", file, PROFILE_MAX);
    if (r == 0)
        return text;
    free(text);
    return NULL;
}

char *profile_load_text(const char *name, char **file, struct err *err)
{
    const char *own = profile_text(name);
    *file = profile_find_file(name);
    if (*file)
        return read_all(*file, err);
    if (own == NULL) {
        unknown(name, err);
        return NULL;
    }
    return strdup(own);
}

struct profile *profile_load(const char *name, char **file, struct err *err)
{
    char where[100];
    char *text = profile_load_text(name, file, err);
    snprintf(where, sizeof where, "profile %.72s", name);
    struct profile *p =
        text ? profile_read(name, slice_str(text), *file ? *file : where, err) : NULL;
    free(text);
    return p;
}
