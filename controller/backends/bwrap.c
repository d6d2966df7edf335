/* Writes bubblewrap's command line and executes it, finds the child's pid in what bubblewrap says
 * about itself, and knows a remedy for some of its errors. */
#define _GNU_SOURCE 1
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "bwrap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "hide.h"
#include "nested.h"
#include "rlimits.h"
#include "slice.h"
#include "words.h"

enum {
    NUMBER = 16,
    NAME_SIZE = 64,
    COVERS_MAX = 64,
};
_Static_assert(112 + 3 * COVERS_MAX + 3 * DEVICE_PARTS_MAX < WORDS_MAX, "there is room");

/* Where a /proc with nothing covered lies, hidden below what is mounted on its directory. */
#define WHOLE_PROC "/dev/shm/proc"

int bwrap_check(struct err *err)
{
    if (access(BWRAP_PATH, X_OK) < 0)
        return err_set(err, ERR_UNREADY,
                       "%s cannot be run (%s): install bubblewrap 0.8 or newer, for instance with "
                       "apt install bubblewrap",
                       BWRAP_PATH, strerror(errno));
    return 0;
}

/* ---- its command line ---- */

struct line {
    struct words words;
    char names[COVERS_MAX][NAME_SIZE]; /* of what is covered in /proc */
    char numbers[4][NUMBER];
    unsigned n_numbers;
    unsigned covers;
};

/* Mount over /proc/NAME: itself read-only, or with a source, that. */
static int cover(struct line *w, const char *name, const char *source, struct err *err)
{
    if (w->covers == COVERS_MAX || strlen(name) + sizeof "/proc/" > NAME_SIZE)
        return err_set(err, ERR_LIMIT, "/proc holds more than was thought of");
    char *path = w->names[w->covers++];
    snprintf(path, NAME_SIZE, "/proc/%s", name);
    words_add(&w->words, "--ro-bind");
    words_add(&w->words, source ? source : path);
    words_add(&w->words, path);
    return 0;
}

struct covering {
    struct line *line;
    const char *empty;
    struct err *err;
};

static int cover_one(void *arg, const char *name, enum hide_how how)
{
    struct covering *c = arg;
    return cover(c->line, name, how == HIDE_EMPTY ? c->empty : NULL, c->err);
}

static int cover_proc(struct line *w, const struct bwrap_root *root, struct err *err)
{
    struct covering c = {w, root->empty_file, err};
    return hide_proc(root->outside == 0, cover_one, &c, err);
}

/* What it is now decides, not what it was when the configuration was read. */
static int device_is(const struct sandbox_spec_device *d, struct err *err)
{
    char real[PATH_MAX];
    struct stat st;
    if (realpath(d->host, real) == NULL || stat(real, &st) < 0)
        return err_sys(err, "the device's %s", d->host);
    if (!S_ISCHR(st.st_mode) || !device_number_ok(st.st_rdev) || !device_host_ok(real))
        return err_set(err, ERR_DENIED, "%s (%.200s) is not what a sandbox may have", d->host,
                       real);
    return 0;
}

/* Nodes of the host, beside a sandbox's own. Bubblewrap follows links at their places too: it has
 * just made that /dev. Their files it gets laid out, see rootfs_devices.c. */
static int add_host_devices(struct words *w, const struct plan *plan, struct err *err)
{
    const struct sandbox_spec *s = &plan->sandbox_spec;
    for (unsigned i = 0; i < s->n_devices; i++) {
        const struct sandbox_spec_device *d = &s->devices[i];
        if (!d->node)
            continue;
        if (device_is(d, err) < 0)
            return -1;
        words_add(w, "--dev-bind");
        words_add(w, d->host);
        words_add(w, d->path);
    }
    return 0;
}

static int add_devices(struct words *w, const struct bwrap_root *root, const struct plan *plan,
                       const char *size, struct err *err)
{
    /* bubblewrap's own devpts has no bound; it stays below, where nobody comes */
    const char *const devices[] = {"--dev", "/dev", "--dev-bind", root->terminals, "/dev/pts"};
    /* The kernel lets nobody mount a /proc inside but where one is seen whole: not how it is found,
     * nor by whom. */
    const char *const whole[] = {"--dir", WHOLE_PROC, "--proc", WHOLE_PROC};
    const char *const memory[] = {"--perms", "1777"};
    const char *const limit[] = {"--size", size};
    const char *const after[] = {
        "--tmpfs", "/dev/shm", "--remount-ro", "/dev", "--chdir", "/", "--", root->init,
    };
    words_add_all(w, devices, ARRAY_LEN(devices));
    if (add_host_devices(w, plan, err) < 0)
        return -1;
    if (plan->sandbox_spec.limits.nested)
        words_add_all(w, whole, ARRAY_LEN(whole));
    words_add_all(w, memory, ARRAY_LEN(memory));
    if (plan->sandbox_spec.limits.disk)
        words_add_all(w, limit, ARRAY_LEN(limit));
    words_add_all(w, after, ARRAY_LEN(after));
    if (plan->sandbox_spec.root != SANDBOX_SPEC_READ_ONLY)
        words_add(w, "layered"); /* for the self-test */
    if (plan->sandbox_spec.limits.nested)
        words_add(w, COMMAND_NESTED);
    if (plan->signs)
        words_add(w, COMMAND_AGENT);
    return 0;
}

static void add_number(struct line *w, const char *option, unsigned value)
{
    char *to = w->numbers[w->n_numbers++ % ARRAY_LEN(w->numbers)];
    snprintf(to, NUMBER, "%u", value);
    words_add(&w->words, option);
    words_add(&w->words, to);
}

/* Its user namespace: made for it, with nobody else in there and none below; or ours. */
static void add_who(struct line *w, const struct plan *plan, const struct bwrap_fds *fds)
{
    if (plan->sandbox_spec.limits.nested) {
        add_number(w, "--userns", (unsigned)fds->outer);
        add_number(w, "--userns2", (unsigned)fds->inner);
        return;
    }
    words_add(&w->words, "--unshare-user");
    words_add(&w->words, "--disable-userns");
    add_number(w, "--uid", plan_root_inside(plan) ? 0 : (unsigned)plan->uid);
    add_number(w, "--gid", plan_root_inside(plan) ? 0 : (unsigned)plan->gid);
}

static void add_capabilities(struct words *w)
{
    for (size_t i = 0; nested_capability(i); i++) {
        words_add(w, "--cap-add");
        words_add(w, nested_capability(i));
    }
}

int bwrap_exec(const struct bwrap_root *root, const struct plan *plan, const struct bwrap_fds *fds,
               struct err *err)
{
    static struct line w;
    char size[32], files[32];
    char *const none[] = {NULL};
    snprintf(size, sizeof size, "%llu", (unsigned long long)plan->sandbox_spec.limits.disk);
    const char *const before[] = {
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
        /* the sandbox dies with bubblewrap and bubblewrap with the builder */
        "--die-with-parent",
        "--new-session",
        "--as-pid-1",
        "--cap-drop",
        "ALL",
        "--clearenv",
        "--hostname",
        plan->hostname,
    };
    /* everything but /proc and /dev lies ready, with the restrictions it is to have */
    const char *const root_words[] = {"--bind", root->directory, "/", "--proc", "/proc"};
    w.words.n = w.covers = w.n_numbers = 0;
    words_add(&w.words, "bwrap");
    add_who(&w, plan, fds);
    words_add_all(&w.words, before, ARRAY_LEN(before));
    if (plan->sandbox_spec.limits.nested)
        add_capabilities(&w.words);
    add_number(&w, "--seccomp", (unsigned)fds->filter);
    add_number(&w, "--info-fd", (unsigned)fds->info);
    words_add_all(&w.words, root_words, ARRAY_LEN(root_words));
    if (cover_proc(&w, root, err) < 0)
        return -1;
    if (add_devices(&w.words, root, plan, size, err) < 0)
        return -1;
    if (plan->sandbox_spec.limits.files) {
        snprintf(files, sizeof files, COMMAND_FILES "%u",
                 (unsigned)plan->sandbox_spec.limits.files);
        words_add(&w.words, files);
    }
    if (w.words.full)
        return err_set(err, ERR_INTERNAL, "bubblewrap's command line is too long");
    if (rlimits_set(plan, err) < 0) /* last: whatever we still do, it would bound */
        return -1;
    execve(BWRAP_PATH, (char *const *)w.words.v, none);
    return err_sys(err, "cannot start %s", BWRAP_PATH);
}

pid_t bwrap_child(const char *text, size_t n)
{
    struct slice s = {text, n}, key = SLICE("\"child-pid\"");
    ssize_t at = slice_find_slice(s, key);
    uint64_t pid = 0;
    if (at < 0)
        return 0;
    size_t i = (size_t)at + key.n;
    while (i < n && (text[i] == ':' || text[i] == ' '))
        i++;
    size_t end = i;
    while (end < n && text[end] >= '0' && text[end] <= '9')
        end++;
    if (end == i || slice_u64((struct slice){text + i, end - i}, INT32_MAX, &pid) < 0)
        return 0;
    return (pid_t)pid;
}

const char *bwrap_remedy(const char *message)
{
    if (strstr(message, "nknown option"))
        return "bubblewrap 0.8 or newer is needed";
    if (strstr(message, "mount proc"))
        return "in a container, /proc must not be masked there (docker: --security-opt "
               "systempaths=unconfined)";
    if (strstr(message, "max_user_namespaces") || strstr(message, "ENOSPC"))
        return "as root: sysctl -w user.max_user_namespaces=15000";
    if (strstr(message, "uid map") || strstr(message, "new namespace"))
        return "user namespaces are restricted on this host (AppArmor: as root, sysctl -w "
               "kernel.apparmor_restrict_unprivileged_userns=0)";
    return "";
}
