/* Which files each package manager has, which of them may be read, and the hosts that they name. */
#include "registries.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "registry_read.h"

/* "~/": below the home; "@/": below the user's folder of configurations; ending in "/" and an
 * ending: each file of that folder. The system's come first: what is read later counts. */
struct source {
    const char *path, *end;
    registry_reader read;
};

static const struct client {
    const char *name;
    struct source sources[10];
} clients[] = {
    {"apt",
     {{"/etc/apt/sources.list", NULL, registry_read_apt_list},
      {"/etc/apt/sources.list.d", ".list", registry_read_apt_list},
      {"/etc/apt/sources.list.d", ".sources", registry_read_apt_sources}}},
    {"cargo",
     {{"~/.cargo/config", NULL, registry_read_cargo},
      {"~/.cargo/config.toml", NULL, registry_read_cargo}}},
    {"go",
     {{"/usr/lib/go/go.env", NULL, registry_read_go},
      {"/usr/local/go/go.env", NULL, registry_read_go},
      {"@/go/env", NULL, registry_read_go}}},
    {"maven",
     {{"/etc/maven/settings.xml", NULL, registry_read_maven},
      {"~/.m2/settings.xml", NULL, registry_read_maven}}},
    {"npm",
     {{"/etc/npmrc", NULL, registry_read_npm},
      {"/usr/etc/npmrc", NULL, registry_read_npm},
      {"/usr/local/etc/npmrc", NULL, registry_read_npm},
      {"~/.npmrc", NULL, registry_read_npm}}},
    {"nuget",
     {{"/etc/opt/NuGet/Config", ".config", registry_read_nuget},
      {"~/.config/NuGet/NuGet.Config", NULL, registry_read_nuget},
      {"~/.nuget/NuGet/NuGet.Config", NULL, registry_read_nuget}}},
    {"oci",
     {{"/etc/containers/registries.conf", NULL, registry_read_containers},
      {"/etc/containers/registries.conf.d", ".conf", registry_read_containers},
      {"@/containers/registries.conf", NULL, registry_read_containers},
      {"@/containers/registries.conf.d", ".conf", registry_read_containers},
      {"/etc/docker/daemon.json", NULL, registry_read_docker_daemon},
      {"@/docker/daemon.json", NULL, registry_read_docker_daemon},
      {"@/containers/auth.json", NULL, registry_read_docker},
      {"~/.docker/config.json", NULL, registry_read_docker}}},
    {"pip",
     {{"/etc/xdg/pip/pip.conf", NULL, registry_read_pip},
      {"/etc/pip.conf", NULL, registry_read_pip},
      {"~/.pip/pip.conf", NULL, registry_read_pip},
      {"@/pip/pip.conf", NULL, registry_read_pip}}},
    {"rubygems",
     {{"/etc/gemrc", NULL, registry_read_gem},
      {"@/gem/gemrc", NULL, registry_read_gem},
      {"~/.gemrc", NULL, registry_read_gem},
      {"~/.bundle/config", NULL, registry_read_bundle}}},
};

static const struct client *client_named(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(clients); i++)
        if (strcmp(clients[i].name, name) == 0)
            return &clients[i];
    return NULL;
}

bool registries_known(const char *client)
{
    return client_named(client) != NULL;
}

/* ---- paths ---- */

static const char *home(void)
{
    const char *dir = getenv("HOME");
    const struct passwd *pw = dir && dir[0] == '/' ? NULL : getpwuid(getuid());
    return pw ? pw->pw_dir : dir && dir[0] == '/' ? dir : "/";
}

static bool whole_path(const char *path, char to[PATH_MAX])
{
    const char *xdg = getenv("XDG_CONFIG_HOME");
    int n;
    if (path[0] == '~')
        n = snprintf(to, PATH_MAX, "%s%s", home(), path + 1);
    else if (path[0] == '@' && xdg && xdg[0] == '/')
        n = snprintf(to, PATH_MAX, "%s%s", xdg, path + 1);
    else if (path[0] == '@')
        n = snprintf(to, PATH_MAX, "%s/.config%s", home(), path + 1);
    else
        n = snprintf(to, PATH_MAX, "%s", path);
    return n < PATH_MAX;
}

/* ---- one file ---- */

static void append(json_t *list, size_t max, const char *text)
{
    json_t *v = json_array_size(list) < max ? json_string(text) : NULL;
    if (v)
        json_array_append_new(list, v);
}

static void append_once(json_t *list, size_t max, const char *text)
{
    json_t *v;
    size_t i;
    json_array_foreach(list, i, v) if (strcmp(json_string_value(v), text) == 0) return;
    append(list, max, text);
}

void registry_note(struct registry_reading *r, const char *key, const char *what)
{
    char text[PATH_MAX + 300];
    snprintf(text, sizeof text, "%s: %.100s%s%.150s", r->file, key, *key ? ": " : "", what);
    append(r->into->notes, REGISTRY_NOTES_MAX, text);
}

/* Whoever works in the current directory could have written what lies there. The root is nobody's
 * working directory: a daemon starts there. */
static bool is_here(int fd)
{
    char name[64], file[PATH_MAX], here[PATH_MAX];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(name, file, sizeof file - 1);
    if (n <= 0 || getcwd(here, sizeof here) == NULL)
        return true; /* nobody can say */
    file[n] = 0;
    size_t len = strlen(here);
    return len > 1 && strncmp(file, here, len) == 0 && file[len] == '/';
}

/* Why it is not read; NULL: it is. */
static const char *refused(int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return "not used: it is not a regular file";
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return "not used: it is neither yours nor root's";
    if (st.st_mode & 022)
        return "not used: others can write it";
    if (st.st_size > REGISTRY_FILE_MAX)
        return "not used: it is too long";
    if (is_here(fd))
        return "not used: it lies in the current directory";
    return NULL;
}

static char *read_text(int fd, size_t *n)
{
    char *text = calloc(1, REGISTRY_FILE_MAX + 2);
    ssize_t got = text ? 1 : 0;
    for (*n = 0; got > 0 && *n <= REGISTRY_FILE_MAX; *n += (size_t)(got > 0 ? got : 0))
        got = read(fd, text + *n, REGISTRY_FILE_MAX + 1 - *n);
    if (text && (got < 0 || *n > REGISTRY_FILE_MAX || memchr(text, 0, *n))) {
        explicit_bzero(text, REGISTRY_FILE_MAX + 2);
        free(text);
        return NULL;
    }
    return text;
}

static void read_file(struct registries *to, const char *path, registry_reader read)
{
    struct registry_reading r = {.into = to, .file = path};
    size_t n;
    if (json_array_size(to->looked) >= REGISTRY_FILES_MAX)
        return;
    append(to->looked, REGISTRY_FILES_MAX, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            registry_note(&r, "", "not used: it cannot be opened");
        return;
    }
    const char *why = refused(fd);
    char *text = why ? NULL : read_text(fd, &n);
    close(fd);
    if (text == NULL) {
        registry_note(&r, "", why ? why : "not used: it is not text");
        return;
    }
    append(to->files, REGISTRY_FILES_MAX, path);
    read(&r, text, n);
    explicit_bzero(text, REGISTRY_FILE_MAX + 2); /* credentials may stand beside */
    free(text);
}

static int by_ending(const struct dirent *e, const char *end)
{
    size_t n = strlen(e->d_name), m = strlen(end);
    return e->d_name[0] != '.' && n > m && strcmp(e->d_name + n - m, end) == 0;
}

static void read_folder(struct registries *to, const char *dir, const struct source *s)
{
    struct dirent **names = NULL;
    char path[PATH_MAX];
    append_once(to->looked, REGISTRY_FILES_MAX, dir); /* whoever writes there adds a file */
    int n = scandir(dir, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (by_ending(names[i], s->end) &&
            snprintf(path, sizeof path, "%s/%s", dir, names[i]->d_name) < PATH_MAX)
            read_file(to, path, s->read);
        free(names[i]);
    }
    free(names);
}

/* ---- all ---- */

static void add_place(json_t *places, const char *url)
{
    char place[REGISTRY_URL_MAX];
    registry_place(url, place);
    append_once(places, REGISTRY_SETTINGS_MAX, place);
}

static void add_places(struct registries *r)
{
    const char *section, *key;
    json_t *keys, *setting, *url;
    size_t i;
    json_object_foreach(r->settings, section, keys) json_object_foreach(keys, key, setting)
        json_array_foreach(json_object_get(setting, "urls"), i, url)
            add_place(r->places, json_string_value(url));
}

int registries_find(const char *client, struct registries *ret, struct err *err)
{
    const struct client *c = client_named(client);
    char path[PATH_MAX];
    *ret =
        (struct registries){json_array(), json_array(), json_array(), json_array(), json_object()};
    if (c == NULL)
        return err_set(err, ERR_PARSE, "there is no client '%.40s'", client);
    for (const struct source *s = c->sources; s->path; s++)
        if (whole_path(s->path, path)) {
            if (s->end)
                read_folder(ret, path, s);
            else
                read_file(ret, path, s->read);
        }
    add_places(ret);
    return 0;
}

void registries_done(struct registries *r)
{
    json_decref(r->places);
    json_decref(r->files);
    json_decref(r->looked);
    json_decref(r->notes);
    json_decref(r->settings);
    *r = (struct registries){0};
}
