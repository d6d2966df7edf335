/* Reads what --login names, finds the files, and has their stand-ins written into the home. */
#include "run_login.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "login_file.h"
#include "run_files.h"

static const char *own_home(void)
{
    const char *home = getenv("HOME");
    const struct passwd *pw = home && home[0] == '/' ? NULL : getpwuid(getuid());
    return pw ? pw->pw_dir : home && home[0] == '/' ? home : "/";
}

void run_login_path(const struct login_format *f, char *to)
{
    snprintf(to, PATH_MAX, "%s/%s", own_home(), login_path(f));
}

/* Its program's own file; *own: it is that, and not one that was named. */
static int find_file(const struct login_format *f, const char *named, char to[PATH_MAX], bool *own,
                     struct err *err)
{
    char usual[PATH_MAX], real[PATH_MAX];
    run_login_path(f, usual);
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
    if (find_file(f, file, path, &own, err) < 0)
        return -1;
    u->file = strdup(path);
    u->refresh = login_is_session(f) && (login_own(f) == NULL || !own);
    if (u->file == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    return login_file_look(u, only, err);
}

static bool is_there(const struct run_login *l, const char *word)
{
    size_t n = strcspn(word, "@=");
    for (size_t i = 0; i < l->n; i++)
        if (strlen(login_name(l->use[i].format)) == n &&
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
