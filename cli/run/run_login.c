/* Reads what --login names, finds the files, and has their stand-ins written into the home. */
#define _GNU_SOURCE 1
#include "run_login.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "login_file.h"
#include "paths.h"
#include "run_files.h"

static const char *own_home(void)
{
    const char *home = getenv("HOME");
    const struct passwd *pw = home && home[0] == '/' ? NULL : getpwuid(getuid());
    return pw ? pw->pw_dir : home && home[0] == '/' ? home : "/";
}

/* A format with a file for each: its folder, with a slash. */
static void folder_of(const struct login_format *f, char *to)
{
    static const char usual[] = ".local/state/durward/";
    struct err err = {0};
    const char *path = login_path(f);
    char *state = paths_user_state_dir(&err);
    size_t skip = state && strncmp(path, usual, sizeof usual - 1) == 0 ? sizeof usual - 1 : 0;
    snprintf(to, PATH_MAX, "%s/%.*s", skip ? state : own_home(), (int)(strcspn(path, "*") - skip),
             path + skip);
    free(state);
}

void run_login_path(const struct login_format *f, const char *of, char *to)
{
    char folder[PATH_MAX];
    const char *star = strchr(login_path(f), '*');
    if (star == NULL) {
        snprintf(to, PATH_MAX, "%s/%s", own_home(), login_path(f));
        return;
    }
    folder_of(f, folder);
    if (snprintf(to, PATH_MAX, "%s%s%s", folder, of, star + 1) >= PATH_MAX)
        to[0] = 0;
}

void run_login_each(const struct login_format *f, void (*fn)(void *arg, const char *of), void *arg)
{
    char folder[PATH_MAX];
    struct dirent **list;
    const char *end = strchr(login_path(f), '*') + 1;
    folder_of(f, folder);
    int n = scandir(folder, &list, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        struct slice name = slice_str(list[i]->d_name);
        if (slice_ends(name, slice_str(end)) && name.p[0] != '.') {
            list[i]->d_name[name.n - strlen(end)] = 0;
            fn(arg, list[i]->d_name);
        }
        free(list[i]);
    }
    if (n >= 0)
        free(list);
}

/* Its program's own file; *own: it is that, and not one that was named. */
static int find_file(const struct login_format *f, const char *of, const char *named,
                     char to[PATH_MAX], bool *own, struct err *err)
{
    char usual[PATH_MAX], real[PATH_MAX];
    run_login_path(f, of, usual);
    if (of && named == NULL && access(usual, F_OK) < 0 && errno == ENOENT)
        return err_set(err, ERR_UNREADY,
                       "--login %s@%s: there is no such login; 'durward login %s %s URL' makes it",
                       login_name(f), of, login_name(f), of);
    if (realpath(named ? named : usual, to) == NULL)
        return errno == ENOENT && named == NULL
                   ? err_set(err, ERR_UNREADY,
                             "--login %s: there is no %s; log in with the program on this host "
                             "first, or name the file: --login %s=FILE",
                             login_name(f), usual, login_name(f))
                   : err_sys(err, "--login %s: %s", login_name(f), named ? named : usual);
    *own = realpath(usual, real) && strcmp(real, to) == 0;
    return 0;
}

static bool is_plain_name(const char *s)
{
    return *s && strlen(s) <= 32 &&
           strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") == strlen(s);
}

static int read_one(char *word, struct login_use *u, struct err *err)
{
    char path[PATH_MAX];
    char *file = strchr(word, '='), *only;
    bool own = false;
    if (file)
        *file++ = 0;
    if ((only = strchr(word, '@')) != NULL)
        *only++ = 0;
    struct login_format *f = login_format_new(word, err);
    if (f == NULL)
        return -1;
    u->format = f;
    if (login_is_many(f)) {
        if (only == NULL || !is_plain_name(only))
            return err_set(err, ERR_PARSE,
                           "--login %s@NAME: which one? 'durward login ls' lists them", word);
        u->of = strdup(only);
        only = NULL;
    }
    if (find_file(f, u->of, file, path, &own, err) < 0)
        return -1;
    u->file = strdup(path);
    u->refresh = login_is_session(f) && (login_own(f) == NULL || !own);
    if (u->file == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    return login_file_look(u, only, err);
}

/* "@OF", with or without "=FILE" behind it. */
static bool is_of(const char *rest, const char *of)
{
    size_t n = strlen(of);
    return *rest == '@' && strncmp(rest + 1, of, n) == 0 &&
           (rest[n + 1] == 0 || rest[n + 1] == '=');
}

static bool is_there(const struct run_login *l, const char *word)
{
    size_t n = strcspn(word, "@=");
    for (size_t i = 0; i < l->n; i++)
        if (strlen(login_name(l->use[i].format)) == n &&
            (l->use[i].of == NULL || is_of(word + n, l->use[i].of)) &&
            strncmp(login_name(l->use[i].format), word, n) == 0)
            return true;
    return false;
}

int run_login_read(const struct run_options *o, struct run_login *ret, struct err *err)
{
    for (size_t i = 0; i < o->login.n; i++) {
        if (is_there(ret, o->login.v[i]))
            return err_set(err, ERR_PARSE, "--login %s: one file of a kind", o->login.v[i]);
        if (ret->n == RUN_LOGINS_MAX)
            return err_set(err, ERR_LIMIT, "more than %d --login", RUN_LOGINS_MAX);
        char *word = strdup(o->login.v[i]);
        int r = word ? read_one(word, &ret->use[ret->n++], err) : -1;
        free(word);
        if (r < 0)
            return -1;
    }
    return 0;
}

int run_login_files(const struct run_login *l, struct run_request *r, struct err *err)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct login_use *u = &l->use[i];
        int more = 1;
        for (size_t k = 0; more == 1; k++) {
            const char *path = "";
            struct buf text;
            buf_init(&text, LOGIN_TEXT_MAX);
            more = login_file_inside(u, k, &path, &text, err);
            if (more == 1 && buf_append(&text, "", 1) < 0)
                more = err_set(err, ERR_LIMIT, "%s: too long", path);
            bool main = strcmp(path, login_path(u->format)) == 0;
            if (more == 1 && run_files_add(r, main ? INSIDE_WRITE : INSIDE_WRITE_NEW, path,
                                           (const char *)buf_data(&text), err) < 0)
                more = -1;
            buf_free(&text);
        }
        if (more < 0)
            return -1;
    }
    return 0;
}

void run_login_done(struct run_login *l)
{
    for (size_t i = 0; i < l->n; i++)
        login_use_done(&l->use[i]);
    l->n = 0;
}
