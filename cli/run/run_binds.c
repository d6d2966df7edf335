/* Resolves the binds to canonical paths and checks each against the directories and files that a
 * sandbox must not see or write. */
#include "run_binds.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "home.h"
#include "paths.h"
#include "profile.h"
#include "registries.h"
#include "sandbox_spec.h"
#include "store.h"

enum { LINKS_MAX = 40 /* on the way to one file, as the kernel's */ };

/* Both canonical; is inner outer itself or below it? */
static bool within(const char *inner, const char *outer)
{
    size_t n = strlen(outer);
    if (strcmp(outer, "/") == 0)
        return true;
    return strncmp(inner, outer, n) == 0 && (inner[n] == 0 || inner[n] == '/');
}

/* Canonical form of a path that may not exist yet: its deepest existing ancestor resolved. */
static void canonical(const char *path, char out[PATH_MAX])
{
    char copy[PATH_MAX], tail[PATH_MAX] = "", next[PATH_MAX];
    snprintf(copy, sizeof copy, "%s", path);
    while (realpath(copy, out) == NULL) {
        char *slash = strrchr(copy, '/');
        if (slash == NULL || slash == copy) {
            snprintf(out, PATH_MAX, "%s", path);
            return;
        }
        if (snprintf(next, sizeof next, "%s%s", slash, tail) >= (int)sizeof next)
            return;
        memcpy(tail, next, sizeof tail);
        *slash = 0;
    }
    size_t n = strlen(out);
    snprintf(out + n, PATH_MAX - n, "%s", tail);
}

struct guarded {
    const char *path, *what;
    bool writable_only; /* may be seen, must not be changed */
};

static int check_place(const struct run_request *r, const struct guarded *g, const char *path,
                       struct err *err)
{
    for (size_t i = 0; i < r->n_binds; i++) {
        const struct run_bind *b = &r->binds[i];
        bool inside = within(path, b->source) || (!g->writable_only && within(b->source, path));
        if (inside && (b->writable || !g->writable_only))
            return err_set(err, ERR_DENIED,
                           "%s, %s, would be %s inside the sandbox through the bind of %s; move "
                           "it, or bind another directory (--workdir, --bind, --no-bind)",
                           path, g->what, g->writable_only ? "writable" : "visible", b->source);
    }
    return 0;
}

/* One component more of a path that has no link in it: whether that is a link, and then `rest` is
 * what remains to be walked, from its text on. -1: too long. */
static int step(char done[PATH_MAX], const char *name, size_t n, char rest[PATH_MAX])
{
    char next[PATH_MAX], to[PATH_MAX], whole[PATH_MAX];
    if (snprintf(next, sizeof next, "%s/%.*s", done, (int)n, name) >= (int)sizeof next)
        return -1;
    ssize_t len = readlink(next, to, sizeof to - 1);
    if (len > 0 &&
        snprintf(whole, sizeof whole, "%.*s%s", (int)len, to, name + n) >= (int)sizeof whole)
        return -1;
    if (len > 0)
        memcpy(rest, whole, sizeof whole);
    memcpy(done, next, sizeof next);
    return len > 0;
}

static void up(char path[PATH_MAX])
{
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = 0;
}

/* Walks to where a path leads, and tells of each link on the way to it. -1: it cannot be followed,
 * if err says nothing. */
static int follow(const char *path, int (*tell)(void *arg, const char *link, struct err *err),
                  void *arg, char done[PATH_MAX], struct err *err)
{
    char rest[PATH_MAX];
    const char *s = rest;
    unsigned links = 0;
    done[0] = 0;
    if ((path[0] != '/' && getcwd(done, PATH_MAX) == NULL) ||
        snprintf(rest, sizeof rest, "%s", path) >= (int)sizeof rest)
        return -1;
    for (size_t n; *(s += strspn(s, "/")); s += n) {
        n = strcspn(s, "/");
        if (n == 1 && s[0] == '.')
            continue;
        if (n == 2 && s[0] == '.' && s[1] == '.') {
            up(done);
            continue;
        }
        int is = step(done, s, n, rest);
        if (is == 0)
            continue;
        if (is < 0 || ++links > LINKS_MAX || tell(arg, done, err) < 0)
            return -1;
        s = rest;
        n = 0;
        if (rest[0] == '/')
            done[0] = 0;
        else
            up(done);
    }
    return 0;
}

struct link_check {
    const struct run_request *request;
    const struct guarded *guarded;
};

static int check_link(void *arg, const char *link, struct err *err)
{
    const struct link_check *c = arg;
    return check_place(c->request, c->guarded, link, err);
}

/* Each link on the way must not be writable either, for another could take its place, nor what one
 * leads to that is not there yet. */
static int check_links(const struct run_request *r, const struct guarded *g, struct err *err)
{
    char done[PATH_MAX];
    struct link_check c = {r, g};
    if (follow(g->path, check_link, &c, done, err) == 0)
        return check_place(r, g, done, err);
    return err->text[0]
               ? -1
               : err_set(err, ERR_DENIED, "%.200s, %s, cannot be followed", g->path, g->what);
}

static int check_guarded(const struct run_request *r, const struct guarded *g, struct err *err)
{
    char path[PATH_MAX];
    if (g->path == NULL || g->path[0] == 0 || strcmp(g->path, "-") == 0)
        return 0;
    canonical(g->path, path);
    if (check_place(r, g, path, err) < 0)
        return -1;
    return g->writable_only ? check_links(r, g, err) : 0;
}

/* Where a configuration would be looked for, whether or not there is one yet. */
static char *config_folder(void)
{
    char *folder = paths_profiles_dir(NULL), *slash = folder ? strrchr(folder, '/') : NULL;
    if (slash)
        *slash = 0;
    return folder;
}

/* Durward's own directories, by default or as configured. What cannot be named here (no HOME) does
 * not exist either. */
static int check_own(const struct run_request *r, const struct config *c, struct err *err)
{
    char *dirs[] = {paths_ca_dir(NULL),       paths_state_dir(NULL), paths_runtime_dir(NULL),
                    paths_audit_dir(NULL),    home_folder(c, NULL),  home_folder(NULL, NULL),
                    paths_profiles_dir(NULL), config_folder()};
    const struct guarded list[] = {
        {dirs[0], "the directory of the CA's key", false},
        {config_ca_dir(c), "the directory of the CA's key", false},
        {config_ca_key(c), "the CA's key", false},
        {dirs[1], "Durward's state directory", false},
        {config_controller_state(c), "Durward's state directory", false},
        {dirs[2], "the directory of the API's socket", false},
        {config_controller_socket(c), "the API's socket", false},
        {dirs[3], "the audit directory", false},
        {config_audit_dir(c), "the audit directory", false},
        {dirs[4], "where Durward keeps the homes of sandboxes", false},
        {dirs[5], "where Durward keeps the homes of sandboxes", false},
        {dirs[6], "the folder of the profiles", true},
        {dirs[7], "the folder of the configuration", true},
        {"/etc/durward", "the folder of the configuration", true},
    };
    int bad = 0;
    for (size_t i = 0; i < ARRAY_LEN(list) && !bad; i++)
        bad = check_guarded(r, &list[i], err);
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        free(dirs[i]);
    return bad;
}

/* Each path where a client's configuration may lie, whether or not it is there: a sandbox that
 * could write it would have its way in the next run. */
static int check_all(const struct run_request *r, const json_t *paths, const char *what,
                     struct err *err)
{
    json_t *path;
    size_t i;
    json_array_foreach(paths, i, path)
    {
        const struct guarded g = {json_string_value(path), what, true};
        if (check_guarded(r, &g, err) < 0)
            return -1;
    }
    return 0;
}

/* Of the login files only cargo's leaves it to another where its tokens go. */
static int check_login_hosts(const struct run_request *r, const struct config_secret *s,
                             struct err *err)
{
    struct registries found;
    if (s->store != STORE_LOGIN || strcmp(s->login->format, "cargo") != 0)
        return 0;
    int bad = registries_find("cargo", &found, err);
    if (bad == 0)
        bad = check_all(r, found.looked, "which says where cargo's tokens go", err);
    registries_done(&found);
    return bad;
}

static int check_secret_files(const struct run_request *r, const struct config *c, struct err *err)
{
    size_t n;
    char what[300];
    const struct config_secret *s = config_secrets(c, &n);
    for (size_t i = 0; i < n; i++) {
        char path[STORE_PATH_MAX];
        struct err unset = {0};
        if (check_login_hosts(r, &s[i], err) < 0)
            return -1;
        if ((s[i].store != STORE_FILE && s[i].store != STORE_LOGIN) ||
            store_path(&s[i], path, sizeof path, &unset) < 0)
            continue;
        snprintf(what, sizeof what, "from which the secret '%.200s' is read", s[i].name);
        struct guarded g = {path, what, false};
        if (check_guarded(r, &g, err) < 0)
            return -1;
    }
    return 0;
}

/* What package managers say of registries decides where sandboxes may go, this one or the next, by
 * whichever policy. */
static int check_found(const struct run_request *r, const struct config *c, struct err *err)
{
    const char *preset;
    json_t *one;
    char what[300];
    json_object_foreach((json_t *)(uintptr_t)config_found(c), preset, one)
    {
        snprintf(what, sizeof what, "from which the preset '%.100s' has its hosts", preset);
        if (check_all(r, json_object_get(one, "looked"), what, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- links that a sandbox left where it could write must not decide what the next one gets ----
 */

static int refuse_link(const char *path, const char *flag, struct err *err)
{
    char copy[PATH_MAX], real[PATH_MAX];
    struct stat st;
    size_t n = strlen(path);
    while (n > 1 && (path[n - 1] == '/' || (path[n - 1] == '.' && path[n - 2] == '/')))
        n--;
    snprintf(copy, sizeof copy, "%.*s", (int)n, path);
    if (lstat(copy, &st) < 0 || !S_ISLNK(st.st_mode) || realpath(copy, real) == NULL)
        return 0;
    return err_set(err, ERR_DENIED, "%s%s is a symbolic link; name what it leads to: %s", flag,
                   copy, real);
}

struct source {
    const char *path, *flag, *home;
};

/* One on the way is the host's own where nobody hands its folder to a sandbox, or only root can
 * have made it. */
static int refuse_on_the_way(void *arg, const char *link, struct err *err)
{
    const struct source *s = arg;
    char folder[PATH_MAX], real[PATH_MAX];
    struct stat st;
    snprintf(folder, sizeof folder, "%s", link);
    up(folder);
    if (run_binds_refused(folder[0] ? folder : "/", s->home) || realpath(s->path, real) == NULL ||
        (geteuid() != 0 && lstat(link, &st) == 0 && st.st_uid == 0))
        return 0;
    return err_set(err, ERR_DENIED,
                   "%s%s: %s, on the way there, is a symbolic link, which a sandbox may have left "
                   "there; name what the path leads to: %s",
                   s->flag, s->path, link, real);
}

/* The current directory is where it is, and the shell's name for it says by what links that was
 * entered. */
static const char *as_entered(const char *path)
{
    struct stat here, named;
    const char *pwd = getenv("PWD");
    bool same = strcmp(path, ".") == 0 && pwd && pwd[0] == '/' && stat(".", &here) == 0 &&
                stat(pwd, &named) == 0 && here.st_dev == named.st_dev &&
                here.st_ino == named.st_ino;
    return same ? pwd : path;
}

int run_binds_source(const char *path, const char *flag, const char *home, char out[PATH_MAX],
                     struct err *err)
{
    char done[PATH_MAX];
    const char *entered = as_entered(path);
    struct source s = {entered, flag, home};
    if (refuse_link(path, flag, err) < 0)
        return -1;
    bool followed = follow(entered, refuse_on_the_way, &s, done, err) == 0;
    if (!followed && err->text[0])
        return -1;
    if (realpath(path, out) != NULL)
        return followed && strcmp(done, out) == 0
                   ? 0
                   : err_set(err, ERR_DENIED, "%s%s cannot be followed; name what it leads to: %s",
                             flag, path, out);
    return strcmp(path, ".") == 0 && *flag == '\0'
               ? err_sys(err, "the current directory cannot be bound")
               : err_sys(err, "%s%s", flag, path);
}

/* HOST[:IN][:ro] */
static int parse_bind(const char *text, const char *home, char source[PATH_MAX],
                      char target[PATH_MAX], bool *writable, struct err *err)
{
    char copy[2 * PATH_MAX];
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return err_set(err, ERR_LIMIT, "--bind: the path is too long");
    char *in = strchr(copy, ':'), *mode = NULL;
    *writable = true;
    if (in) {
        *in++ = 0;
        mode = strchr(in, ':');
        if (mode)
            *mode++ = 0;
        else if (strcmp(in, "ro") == 0 || strcmp(in, "rw") == 0) {
            mode = in;
            in = NULL;
        }
    }
    if (mode && strcmp(mode, "ro") != 0 && strcmp(mode, "rw") != 0)
        return err_set(err, ERR_PARSE, "--bind %s: after the paths only 'ro' may stand", text);
    *writable = mode == NULL || strcmp(mode, "ro") != 0;
    if (run_binds_source(copy, "--bind ", home, source, err) < 0)
        return -1;
    if (in && in[0] != '/')
        return err_set(err, ERR_PARSE, "--bind %s: the path inside must be absolute", text);
    snprintf(target, PATH_MAX, "%s", in ? in : source);
    return 0;
}

static int add_explicit(const struct run_options *o, struct run_request *r, struct err *err)
{
    char source[PATH_MAX], target[PATH_MAX];
    bool writable = false;
    r->view = o->view;
    for (size_t i = 0; i < o->binds.n; i++) {
        if (parse_bind(o->binds.v[i], r->home, source, target, &writable, err) < 0)
            return -1;
        if (run_request_bind(r, source, target, writable) < 0)
            return err_set(err, ERR_LIMIT, "too many --bind");
    }
    return 0;
}

static bool covered(const struct run_request *r, const char *dir)
{
    for (size_t i = 0; i < r->n_binds; i++)
        if (within(dir, r->binds[i].target))
            return true;
    return false;
}

const char *run_binds_refused(const char *dir, const char *home)
{
    static const char *const system[] = {"/etc", "/usr",   "/bin", "/sbin",
                                         "/lib", "/lib64", "/boot"};
    static const char *const below[] = {"/dev", "/proc", "/sys", "/run"};
    char h[PATH_MAX];
    canonical(home, h);
    if (within(h, dir))
        return strcmp(h, dir) == 0 ? "your home directory ($HOME)"
                                   : "a parent of your home directory ($HOME)";
    if (strcmp(dir, "/var") == 0)
        return "a system directory";
    for (size_t i = 0; i < ARRAY_LEN(system); i++)
        if (within(dir, system[i]))
            return "a system directory";
    for (size_t i = 0; i < ARRAY_LEN(below); i++)
        if (within(dir, below[i]))
            return "a system directory";
    return NULL;
}

/* The directory to start in, and unless it is bound already or --no-bind says so, its bind. */
static int add_default(const struct run_options *o, struct run_request *r, struct err *err)
{
    char dir[PATH_MAX];
    struct stat st;
    if (o->workdir && (covered(r, o->workdir) || o->no_bind)) { /* a path inside */
        if (o->workdir[0] != '/')
            return err_set(err, ERR_PARSE, "--workdir %s: with --no-bind it must be absolute",
                           o->workdir);
        snprintf(r->cwd, sizeof r->cwd, "%s", o->workdir);
        return 0;
    }
    if (o->no_bind) {
        memcpy(r->cwd, r->home, sizeof r->cwd);
        return 0;
    }
    if (run_binds_source(o->workdir ? o->workdir : ".", o->workdir ? "--workdir " : "", r->home,
                         dir, err) < 0)
        return -1;
    if (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode))
        return err_set(err, ERR_PARSE, "%s is not a directory", dir);
    snprintf(r->cwd, sizeof r->cwd, "%s", dir);
    if (covered(r, dir) || o->inside == PROFILE_LOGIN) /* then it only says which home */
        return 0;
    const char *why = run_binds_refused(dir, r->home);
    if (why)
        return err_set(err, ERR_DENIED,
                       "%s is %s and is not handed to a sandbox by default; go to the project's "
                       "directory, or use --workdir DIR or --no-bind",
                       dir, why);
    return run_request_bind(r, dir, dir, true) < 0 ? err_set(err, ERR_LIMIT, "too many binds") : 0;
}

static void set_person(struct run_request *r)
{
    const struct passwd *pw = getpwuid(getuid());
    const char *home = getenv("HOME");
    if (home == NULL || home[0] != '/' || strcmp(home, "/") == 0)
        home = pw && pw->pw_dir[0] == '/' && pw->pw_dir[1] ? pw->pw_dir : "/home/user";
    snprintf(r->home, sizeof r->home, "%s", home);
    snprintf(r->user, sizeof r->user, "%.32s", pw && pw->pw_name[0] ? pw->pw_name : "user");
    r->uid = getuid();
    r->gid = getgid();
}

/* In an image everybody is root, unless something of the caller's is bound and he has to be
 * himself. */
static int set_image(const struct run_options *o, struct run_request *r, struct err *err)
{
    if (o->backend && (config_backend_named(o->backend) == BACKEND_KUBERNETES ||
                       config_backend_named(o->backend) == BACKENDS))
        return err_set(err, ERR_PARSE,
                       "--backend %s: durward run has bwrap, docker, gvisor and microvm",
                       o->backend);
    snprintf(r->backend, sizeof r->backend, "%s", o->backend ? o->backend : "");
    if (o->image == NULL || strcmp(o->image, "host") == 0)
        return 0;
    if (!sandbox_spec_name_ok(o->image) && !config_engine_image_ok(o->image))
        return err_set(err, ERR_PARSE, "--image %s: not the name of an image", o->image);
    snprintf(r->image, sizeof r->image, "%s", o->image);
    if (o->no_bind && o->binds.n == 0 && o->home == NULL && o->profile == NULL) {
        snprintf(r->home, sizeof r->home, "/root");
        snprintf(r->user, sizeof r->user, "root");
    }
    return 0;
}

static int add_volumes(const struct run_options *o, struct run_request *r, struct err *err)
{
    struct sandbox_spec_volume v;
    for (size_t i = 0; i < o->volumes.n; i++)
        if (sandbox_spec_volume_read(o->volumes.v[i], &v, err) < 0)
            return err_wrap(err, "--volume");
        else if (strlist_add(&r->volumes, o->volumes.v[i]) < 0)
            return err_set(err, ERR_LIMIT, "too many --volume");
    return 0;
}

/* What lies in a project, or in another place that earlier runs could write, may be instructions
 * for the program: where a login is made none of it is there. */
static int check_login(const struct run_options *o, struct err *err)
{
    return o->inside == PROFILE_LOGIN && (o->binds.n || o->volumes.n)
               ? err_set(err, ERR_DENIED,
                         "--login-inside shows the program nothing of yours: leave out --bind and "
                         "--volume, and work with --login-kept")
               : 0;
}

int run_binds(const struct run_options *o, struct run_request *r, struct err *err)
{
    if (check_login(o, err) < 0)
        return -1;
    set_person(r);
    return set_image(o, r, err) < 0 || add_volumes(o, r, err) < 0 || add_explicit(o, r, err) < 0
               ? -1
               : add_default(o, r, err);
}

int run_binds_check(const struct run_request *r, const struct config *c, const char *config_file,
                    const char *profile_file, struct err *err)
{
    const struct guarded files[] = {{config_file, "the configuration", true},
                                    {profile_file, "the profile", true}};
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (check_guarded(r, &files[i], err) < 0)
            return -1;
    return check_own(r, c, err) < 0 || check_found(r, c, err) < 0 ? -1
                                                                  : check_secret_files(r, c, err);
}
