/* The list of names that credentials have, which views ask too (view_judge.c), and the search that
 * covers such files, in rounds until a round finds nothing changed. */
#define _GNU_SOURCE 1
#include "mask.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "mask_seen.h"
#include "mounts.h"
#include "sample_keys.h"

enum { HEAD = 16 * 1024, NOTES_SPARE = 1024, CLOCK_EVERY = 256 };

/* parent NULL: wherever it lies. name ending in '/': the directory itself. */
static const struct known {
    const char *parent, *name;
} known[] = {
    {NULL, ".env"},
    {NULL, ".netrc"},
    {NULL, "_netrc"},
    {NULL, ".git-credentials"},
    {NULL, ".npmrc"},
    {NULL, ".pypirc"},
    {NULL, ".pgpass"},
    {NULL, ".my.cnf"},
    {NULL, ".dockercfg"},
    {NULL, ".s3cfg"},
    {NULL, ".boto"},
    {NULL, ".vault-token"},
    {NULL, ".terraformrc"},
    {NULL, ".databrickscfg"},
    {NULL, ".envrc"},
    {NULL, "credentials.tfrc.json"},
    {NULL, "application_default_credentials.json"},
    {NULL, ".gnupg/"},
    {NULL, ".password-store/"},
    {NULL, ".azure/"},
    {"share", "durward/"}, /* our own CA and state */
    {"state", "durward/"},
    {"git", "credentials"},
    {".aws", "credentials"},
    {".docker", "config.json"},
    {".kube", "config"},
    {".config", "gcloud/"},
    {"gcloud", "credentials.db"},
    {"gcloud", "access_tokens.db"},
    {"gcloud", "legacy_credentials/"},
    {".cargo", "credentials"},
    {".cargo", "credentials.toml"},
    {".gem", "credentials"},
    {".composer", "auth.json"},
    {".m2", "settings.xml"},
    {".m2", "settings-security.xml"},
    {"gh", "hosts.yml"},
    {"rclone", "rclone.conf"},
    {".codex", "auth.json"},
    {".claude", ".credentials.json"},
};

static bool ends(const char *s, const char *tail)
{
    size_t n = strlen(s), t = strlen(tail);
    return n > t && strcasecmp(s + n - t, tail) == 0;
}

/* .env.local and the like, but not the examples that projects publish. */
static bool is_env_variant(const char *name)
{
    static const char *const published[] = {".example", ".sample", ".template", ".dist"};
    if (strncmp(name, ".env.", 5) != 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(published); i++)
        if (ends(name, published[i]))
            return false;
    return true;
}

static bool is_known(const struct known *k, const char *path, const char *name, bool directory)
{
    size_t n = strlen(k->name);
    bool wants_directory = k->name[n - 1] == '/';
    n -= wants_directory;
    if (wants_directory != directory || strncmp(k->name, name, n) != 0 || name[n] != '\0')
        return false;
    if (k->parent == NULL)
        return true;
    size_t p = strlen(k->parent);
    size_t above = (size_t)(name - path); /* with its slash */
    return above > p && strncmp(name - 1 - p, k->parent, p) == 0 &&
           (above == p + 1 || name[-2 - (ssize_t)p] == '/');
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const struct known *find_known(const char *path, bool directory)
{
    const char *name = name_of(path);
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (known[i].name[0] == name[0] && is_known(&known[i], path, name, directory))
            return &known[i];
    return NULL;
}

static bool in_ssh(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash - path >= 4 && strncmp(slash - 4, ".ssh", 4) == 0;
}

/* Would it not be recognised if the directory that it lies in had another name? */
static bool named_by_parent(const char *path, bool directory)
{
    const struct known *k = find_known(path, directory);
    return k ? k->parent != NULL : in_ssh(path);
}

enum mask_verdict mask_match(const char *path, bool directory)
{
    const char *name = name_of(path);
    if (find_known(path, directory))
        return MASK_YES;
    if (directory)
        return MASK_NO;
    if (is_env_variant(name) || ends(name, ".p12") || ends(name, ".pfx"))
        return MASK_YES;
    if (ends(name, ".pem") || ends(name, ".key") || ends(name, ".ppk"))
        return MASK_IF_KEY;
    if (strncmp(name, "id_", 3) == 0 && !ends(name, ".pub"))
        return MASK_IF_KEY;
    if (in_ssh(path))
        return MASK_IF_KEY;
    return MASK_NO;
}

bool mask_is_key(const char *head, size_t n)
{
    struct slice s = {head, n};
    bool key = slice_find_slice(s, SLICE("PRIVATE KEY-----")) >= 0 ||
               slice_starts(s, SLICE("PuTTY-User-Key-File-"));
    return key && !sample_key(s);
}

const char *mask_link_name(size_t i, const char *parent, size_t nparent)
{
    for (size_t k = 0; k < ARRAY_LEN(known); k++) {
        const char *p = known[k].parent;
        bool here = p == NULL || (strlen(p) == nparent && memcmp(p, parent, nparent) == 0);
        if (here && !ends(known[k].name, "/") && i-- == 0)
            return known[k].name;
    }
    return NULL;
}

bool mask_names_children(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (known[i].parent && strcmp(known[i].parent, name) == 0)
            return true;
    return ends(name, "ssh") && strcmp(name + strlen(name) - 4, ".ssh") == 0;
}

bool mask_holds_key(int fd)
{
    char head[HEAD];
    ssize_t n = pread(fd, head, sizeof head, 0);
    return n < 0 || mask_is_key(head, (size_t)n);
}

/* One search. path always names the directory being read, without a slash at its end. */
struct search {
    struct mask *m;
    struct timespec end;
    bool list, given_up, pin; /* pin: of the directory being read */
    bool dirty, judge;        /* a directory was new or has changed; the one being read is */
    unsigned most;
    struct seen seen;
    size_t n;
    char path[PATH_MAX + (MASK_DEPTH_MAX + 2) * (NAME_MAX + 1)];
};

static bool holds_key(int dir, const char *name)
{
    char head[HEAD];
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false; /* what we may not read the sandbox may not either */
    struct stat st;
    ssize_t n = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? read(fd, head, sizeof head) : -1;
    close(fd);
    return n > 0 && mask_is_key(head, (size_t)n);
}

/* Names the file while there is room; at the end of it says that there is more. */
static void note(struct mask *m, const char *path)
{
    bool room = buf_room(m->notes) > strlen(path) + NOTES_SPARE;
    if (m->unnamed)
        return;
    m->unnamed = !room;
    if ((room ? buf_printf(m->notes, "masked: %s\n", path)
              : buf_append_str(m->notes, "masked: and others\n")) < 0)
        m->unnamed = true; /* it is masked all the same */
}

static bool is_covered(const struct mask *m, int dir, const char *name)
{
    struct stat there, file, empty;
    if (fstatat(dir, name, &there, AT_SYMLINK_NOFOLLOW) < 0 || fstat(m->empty_file, &file) < 0 ||
        fstat(m->empty_dir, &empty) < 0)
        return false;
    return there.st_dev == file.st_dev &&
           (there.st_ino == file.st_ino || there.st_ino == empty.st_ino);
}

static int cover(struct search *s, int dir, const char *name, bool directory, struct err *err)
{
    struct mask *m = s->m;
    if (s->list) {
        note(m, s->path);
        return 0;
    }
    if (is_covered(m, dir, name))
        return 0; /* in an earlier round */
    if (m->covered++ >= MASK_COVERED_MAX)
        return err_set(err, ERR_LIMIT, "more than %d credential files: bind a narrower directory",
                       MASK_COVERED_MAX);
    int at = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (at < 0)
        return errno == ENOENT ? 0 : err_sys(err, "%s", s->path);
    int tree = mounts_clone(directory ? m->empty_dir : m->empty_file, true, err);
    int r = tree < 0 ? -1 : mounts_attach(tree, at, err);
    close(at);
    if (tree >= 0)
        close(tree);
    if (r < 0)
        return err_wrap(err, "cannot mask %s", s->path);
    s->pin |= named_by_parent(s->path, directory);
    note(m, s->path);
    return 0;
}

/* A mount of a directory on itself: nobody inside can rename it, and so take from what lies in it
 * the name by which the next search would know it. */
static int pin_directory(int fd, struct err *err)
{
    int tree = mounts_clone(fd, false, err);
    int r = tree < 0 ? -1 : mounts_attach(tree, fd, err);
    if (tree >= 0)
        close(tree);
    return r;
}

/* Time and entries are bounded. */
static bool spent(struct search *s)
{
    struct timespec now;
    if (s->given_up || ++s->m->entries > s->most)
        return s->given_up = true;
    if (s->m->entries % CLOCK_EVERY == 0) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        s->given_up = now.tv_sec > s->end.tv_sec ||
                      (now.tv_sec == s->end.tv_sec && now.tv_nsec >= s->end.tv_nsec);
    }
    return s->given_up;
}

static int search_directory(struct search *s, int at, const char *name, int depth, struct err *err);

static unsigned char type_of(int dir, const struct dirent *e)
{
    struct stat st;
    if (e->d_type != DT_UNKNOWN)
        return e->d_type;
    return fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? DT_UNKNOWN : IFTODT(st.st_mode);
}

/* A link that bears a credential's name gives away what it points to: that is what we cover, where
 * it lies in the same directory tree. The link itself cannot carry a mount. */
static int search_link(struct search *s, int dir, const char *name, struct err *err)
{
    char to[NAME_MAX + 1];
    if (mask_match(s->path, false) != MASK_YES)
        return 0;
    ssize_t n = readlinkat(dir, name, to, sizeof to);
    if (n <= 0 || n == sizeof to || memchr(to, '/', (size_t)n))
        return 0; /* elsewhere */
    to[n] = '\0';
    struct stat st;
    if (fstatat(dir, to, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        return 0;
    return cover(s, dir, to, false, err);
}

static int search_entry(struct search *s, int dir, const char *name, unsigned char type, int depth,
                        struct err *err)
{
    enum mask_verdict v;
    switch (s->judge || type == DT_DIR ? type : DT_UNKNOWN) {
    case DT_DIR:
        if (mask_match(s->path, true) == MASK_YES)
            return cover(s, dir, name, true, err);
        /* object names are hashes; there may be very many and none is a credential's */
        if (strcmp(name, "objects") == 0 && ends(s->path, "/.git/objects"))
            return 0;
        /* Nobody builds so deep but to end the search here: what was not searched is not shown. */
        if (depth == MASK_DEPTH_MAX) {
            s->given_up |= s->list;
            return s->list ? 0 : cover(s, dir, name, true, err);
        }
        return search_directory(s, dir, name, depth + 1, err);
    case DT_REG:
        v = mask_match(s->path, false);
        if (v == MASK_YES || (v == MASK_IF_KEY && holds_key(dir, name)))
            return cover(s, dir, name, false, err);
        return 0;
    case DT_SOCK: /* in a view nobody listens at one of the host's */
        return cover(s, dir, name, false, err);
    case DT_LNK:
        return search_link(s, dir, name, err);
    default:
        return 0;
    }
}

static int search_entries(struct search *s, DIR *d, int depth, struct err *err)
{
    size_t n = s->n;
    int r = 0;
    for (struct dirent *e; r == 0 && (e = readdir(d)) != NULL;) {
        const char *name = e->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        size_t len = strlen(name);
        if (spent(s) || n + 1 + len >= sizeof s->path) {
            s->given_up = true;
            break;
        }
        s->path[n] = '/';
        memcpy(s->path + n + 1, name, len + 1);
        s->n = n + 1 + len;
        r = search_entry(s, dirfd(d), name, type_of(dirfd(d), e), depth, err);
        s->n = n;
        s->path[n] = '\0';
    }
    return r;
}

/* Before it is read: what changes in it from here on is seen in the next round. */
static int look_whether_changed(struct search *s, int fd, struct err *err)
{
    struct stat st;
    struct timespec now;
    s->judge = true;
    if (s->list)
        return 0;
    clock_gettime(CLOCK_REALTIME, &now);
    int r = fstat(fd, &st) < 0 ? -1 : seen_note(&s->seen, &st, &now);
    if (r < 0)
        return err_set(err, ERR_INTERNAL, "%s: out of memory", s->path);
    s->judge = r == 0;
    s->dirty |= s->judge;
    return 0;
}

static int search_directory(struct search *s, int at, const char *name, int depth, struct err *err)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == EMFILE || errno == ENFILE ? err_sys(err, "%s", s->path) : 0;
    DIR *d = fdopendir(fd);
    if (d == NULL) {
        close(fd);
        return err_sys(err, "%s", s->path);
    }
    bool above = s->pin, judge = s->judge;
    s->pin = false;
    int r = look_whether_changed(s, fd, err);
    if (r == 0)
        r = search_entries(s, d, depth, err);
    if (r == 0 && s->pin && depth > 0 && !s->list)
        r = pin_directory(dirfd(d), err);
    s->pin = above;
    s->judge = judge;
    closedir(d);
    return r;
}

static int search(struct search *s, int tree, const char *source, struct err *err)
{
    s->n = strlen(source);
    if (s->n >= sizeof s->path)
        return err_set(err, ERR_LIMIT, "path too long");
    memcpy(s->path, source, s->n + 1);
    s->m->entries = 0;
    return search_directory(s, tree, ".", 0, err);
}

static void set_end(struct search *s, int ms)
{
    clock_gettime(CLOCK_MONOTONIC, &s->end);
    s->end.tv_sec += ms / 1000;
    s->end.tv_nsec += ms % 1000 * 1000000L;
    if (s->end.tv_nsec >= 1000000000L) {
        s->end.tv_nsec -= 1000000000L;
        s->end.tv_sec++;
    }
}

/* Rounds, until one finds every directory as an earlier one has read it. What was moved from where
 * we had not been to where we had, changed both: whichever of them a round comes to after the move
 * makes it another's turn. */
static int search_until_still(struct search *s, int tree, const char *source, struct err *err)
{
    static const struct timespec a_tick = {0, 25000000};
    for (int i = 0; i < MASK_ROUNDS_MAX; i++) {
        s->dirty = false;
        if (search(s, tree, source, err) < 0)
            return -1;
        if (s->given_up)
            return err_set(err, ERR_LIMIT,
                           "%s is too large to be searched whole for credential files: bind a "
                           "narrower directory, or let this user open /dev/fuse, which makes it "
                           "needless",
                           source);
        if (!s->dirty)
            return 0;
        nanosleep(&a_tick, NULL);
    }
    return err_set(
        err, ERR_LIMIT,
        "%s changed all the time while it was searched for credential files: try again, "
        "bind another directory, or let this user open /dev/fuse, which makes it needless",
        source);
}

int mask_tree(struct mask *m, int tree, const char *source, struct err *err)
{
    struct search s = {.m = m, .most = m->entries_max ? m->entries_max : MASK_ENTRIES_MAX};
    set_end(&s, MASK_MS_MAX);
    int r = search_until_still(&s, tree, source, err);
    seen_free(&s.seen);
    return r;
}

int mask_list(struct mask *m, int tree, const char *source, struct err *err)
{
    struct search s = {.m = m, .most = MASK_LIST_ENTRIES_MAX, .list = true};
    set_end(&s, MASK_LIST_MS_MAX);
    if (search(&s, tree, source, err) < 0)
        return -1;
    if (s.given_up && !m->unnamed &&
        buf_printf(m->notes,
                   "note: %.1000s is large: there may be more credential files in it, which are "
                   "masked as well\n",
                   source) < 0)
        return err_set(err, ERR_LIMIT, "too many notes");
    return 0;
}
