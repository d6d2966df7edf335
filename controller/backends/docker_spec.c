/* Writes the JSON that an engine makes the container from: mounts, what of /proc and /sys is
 * hidden, limits; with what Podman has to be told in another way. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "command.h"
#include "docker.h"
#include "etcfiles.h"
#include "handover.h"
#include "hide.h"

#define TRUST_INSIDE "/etc/durward"

enum {
    BYTES_A_FILE = 8192,
    INODES_MIN = 4096,
    INODES_MAX = 1000000,
    NANO_PERCENT = 10000000,
    PODMAN_NPROC = 32768
};

/* ---- files ---- */

static int add_mount(json_t *mounts, const char *from, const char *name, const char *to)
{
    char source[PATH_MAX];
    if (snprintf(source, sizeof source, "%s%s%s", from, *name ? "/" : "", name) >=
        (int)sizeof source)
        return -1;
    return json_array_append_new(mounts, json_pack("{s:s, s:s, s:s, s:b}", "Type", "bind", "Source",
                                                   source, "Target", to, "ReadOnly", 1));
}

/* The copies of what was bound (docker_copies_check). */
static int add_copies(json_t *mounts, const struct plan *plan)
{
    int bad = 0;
    for (unsigned i = 0; i < plan->nbinds; i++) {
        const struct plan_bind *b = &plan->binds[i];
        bad |= json_array_append_new(mounts, json_pack("{s:s, s:s, s:s, s:b}", "Type", "bind",
                                                       "Source", b->source, "Target", b->target,
                                                       "ReadOnly", !b->writable));
    }
    return bad;
}

/* Ours, read-only: our program, the trust bundles, also where programs look for them. */
static json_t *make_mounts(const struct plan *plan, const struct docker_parts *p)
{
    json_t *mounts = json_array();
    const char *path, *name;
    int bad = add_mount(mounts, p->path, "run", HANDOVER_DIR) |
              add_mount(mounts, p->path, "resolv.conf", "/etc/resolv.conf") |
              add_mount(mounts, p->path, "gitconfig", "/etc/gitconfig") |
              add_mount(mounts, p->path, "ssh_known_hosts", "/etc/ssh/ssh_known_hosts") |
              add_mount(mounts, p->path, DOCKER_TRUST, TRUST_INSIDE);
    for (size_t i = 0; (path = etcfiles_bundle(i, &name)) != NULL; i++) {
        char bundle[64];
        snprintf(bundle, sizeof bundle, DOCKER_TRUST "/%s", name);
        bad |= add_mount(mounts, p->path, bundle, path);
    }
    if (bad == 0 && add_copies(mounts, plan) == 0)
        return mounts;
    json_decref(mounts);
    return NULL;
}

/* Podman takes neither owner nor inodes of a tmpfs: there everybody may write, who is one user. */
static int add_tmpfs(json_t *at, const struct making *m, const struct engine *e, const char *path,
                     const char *mode, bool own)
{
    char options[256];
    uint64_t disk = m->plan->sandbox_spec.limits.disk;
    for (unsigned i = 0; i < m->plan->nbinds; i++)
        if (strcmp(m->plan->binds[i].target, path) == 0)
            return 0; /* a copy is there */
    uint64_t files = disk == 0 ? INODES_MAX : disk / BYTES_A_FILE;
    int n = snprintf(options, sizeof options, "rw,nosuid,nodev,exec,mode=%s",
                     own && e->podman ? "1777" : mode);
    if (!e->podman)
        n += snprintf(options + n, sizeof options - (size_t)n, ",nr_inodes=%llu",
                      (unsigned long long)(files < INODES_MIN ? INODES_MIN : files));
    if (disk)
        n += snprintf(options + n, sizeof options - (size_t)n, ",size=%llu",
                      (unsigned long long)disk);
    if (own && !e->podman)
        snprintf(options + n, sizeof options - (size_t)n, ",uid=%u,gid=%u", (unsigned)m->plan->uid,
                 (unsigned)m->plan->gid);
    return json_object_set_new(at, path, json_string(options));
}

static json_t *make_tmpfs(const struct making *m, const struct engine *e)
{
    static const char *const places[] = {"/tmp", "/var/tmp", "/run", "/workspace"};
    const char *home = m->plan->home;
    json_t *v = json_object();
    bool covered = home[1] == '\0';
    int bad =
        add_tmpfs(v, m, e, "/tmp", "1777", false) | add_tmpfs(v, m, e, "/var/tmp", "1777", false) |
        add_tmpfs(v, m, e, "/run", "0755", false) | add_tmpfs(v, m, e, "/workspace", "0755", true);
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        covered = covered || strcmp(home, places[i]) == 0;
    if (!covered)
        bad |= add_tmpfs(v, m, e, home, "0700", true);
    if (bad == 0)
        return v;
    json_decref(v);
    return NULL;
}

struct hidden {
    json_t *empty, *read_only;
};

static int hide_one(void *arg, const char *name, enum hide_how how)
{
    struct hidden *h = arg;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%s", name);
    return json_array_append_new(how == HIDE_EMPTY ? h->empty : h->read_only, json_string(path));
}

/* Podman has its own way to be told, and none to be told of what is to be read-only: that is
 * hidden, but for what it has read-only by itself. */
static int mask_for_podman(json_t *host, const struct hidden *h, struct err *err)
{
    static const char *const by_itself[] = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
                                            "/proc/sysrq-trigger"};
    struct buf text;
    json_t *path;
    size_t i;
    buf_init(&text, 8192);
    int bad = buf_append_str(&text, "mask=/sys");
    json_array_foreach(h->empty, i, path)
    {
        bad |= buf_printf(&text, ":%s", json_string_value(path));
    }
    json_array_foreach(h->read_only, i, path)
    {
        bool has = false;
        for (size_t k = 0; k < ARRAY_LEN(by_itself); k++)
            has = has || strcmp(by_itself[k], json_string_value(path)) == 0;
        bad |= has ? 0 : buf_printf(&text, ":%s", json_string_value(path));
    }
    bad = bad || json_array_append_new(json_object_get(host, "SecurityOpt"),
                                       json_stringn((const char *)buf_data(&text), buf_len(&text)));
    buf_free(&text);
    return bad ? err_set(err, ERR_INTERNAL, "out of memory") : 0;
}

/* What engines hide by themselves goes on being hidden; of /sys nothing is seen. */
static int add_hidden(json_t *host, const struct plan *plan, const struct engine *e,
                      struct err *err)
{
    static const char *const empty[] = {"/sys",
                                        "/proc/asound",
                                        "/proc/acpi",
                                        "/proc/scsi",
                                        "/proc/kcore",
                                        "/proc/latency_stats",
                                        "/proc/timer_list",
                                        "/proc/timer_stats",
                                        "/proc/sched_debug"};
    static const char *const read_only[] = {"bus", "fs", "irq", "sysrq-trigger"};
    struct hidden h = {json_array(), json_array()};
    int bad = json_object_set_new(host, "MaskedPaths", h.empty) |
              json_object_set_new(host, "ReadonlyPaths", h.read_only);
    for (size_t i = 0; i < ARRAY_LEN(empty); i++)
        bad |= json_array_append_new(h.empty, json_string(empty[i]));
    for (size_t i = 0; i < ARRAY_LEN(read_only); i++)
        bad |= hide_one(&h, read_only[i], HIDE_READ_ONLY);
    if (bad)
        return err_set(err, ERR_INTERNAL, "out of memory");
    if (hide_proc(plan->uid == 0, hide_one, &h, err) < 0)
        return -1;
    return e->podman ? mask_for_podman(host, &h, err) : 0;
}

/* ---- limits ---- */

static json_t *ulimit(const char *name, json_int_t value)
{
    return json_pack("{s:s, s:I, s:I}", "Name", name, "Soft", value, "Hard", value);
}

/* As much as we may have ourselves. */
static json_int_t own_limit(int what)
{
    struct rlimit own = {INT32_MAX, INT32_MAX};
    return getrlimit(what, &own) < 0 || own.rlim_max > INT32_MAX ? INT32_MAX
                                                                 : (json_int_t)own.rlim_max;
}

/* Engines have defaults that not every host can give, so they are said; processes are counted by
 * PidsLimit. A core limit of 1 keeps the host's dump program out (core(5)). */
static json_t *make_ulimits(const struct engine *e)
{
    json_int_t files = own_limit(RLIMIT_NOFILE); /* durward-init sets that of its commands */
    json_int_t processes = own_limit(RLIMIT_NPROC);
    json_t *v = json_pack("[o, o]", ulimit("nofile", files), ulimit("core", 1));
    /* Podman's service has bounded its own, and gives its containers more by default */
    if (e->podman)
        json_array_append_new(v,
                              ulimit("nproc", processes < PODMAN_NPROC ? processes : PODMAN_NPROC));
    return v;
}

static int add_limits(json_t *host, const struct config_sandbox *l, const struct engine *e)
{
    int bad = json_object_set_new(host, "Ulimits", make_ulimits(e));
    if (l->memory) /* and no swap beside it */
        bad |= json_object_set_new(host, "Memory", json_integer((json_int_t)l->memory)) |
               json_object_set_new(host, "MemorySwap", json_integer((json_int_t)l->memory));
    if (l->pids)
        bad |= json_object_set_new(host, "PidsLimit", json_integer(l->pids));
    if (l->cpu)
        bad |=
            json_object_set_new(host, "NanoCpus", json_integer((json_int_t)l->cpu * NANO_PERCENT));
    if (l->disk)
        bad |= json_object_set_new(host, "ShmSize", json_integer((json_int_t)l->disk));
    return bad;
}

int docker_note_limits(const struct plan *plan, struct buf *notes, struct err *err)
{
    const struct config_sandbox *l = &plan->sandbox_spec.limits;
    int bad = 0;
    if (l->disk)
        bad |= buf_append_str(notes, "note: limit disk: held for each of /tmp, /var/tmp, /run, "
                                     "/workspace and $HOME by itself\n");
    if (l->disk && plan->nbinds)
        bad |= buf_append_str(notes, "note: limit disk: not held for the copy of a directory, "
                                     "which lies on this host\n");
    if (l->disk && l->writable)
        bad |= buf_append_str(notes, "note: limit disk: not held for the root, which the engine "
                                     "keeps\n");
    return bad ? err_set(err, ERR_INTERNAL, "out of memory") : 0;
}

/* ---- the whole ---- */

/* Nothing of the engine's network; no capability; nothing that it keeps afterwards. */
static json_t *make_host(const struct making *m, const struct engine *e,
                         const struct docker_parts *p, struct err *err)
{
    const struct plan *plan = m->plan;
    json_t *sysctls = json_pack("{s:s, s:s}", "net.ipv4.ip_unprivileged_port_start", "1024",
                                "net.ipv4.ping_group_range", "1 0");
    json_t *host =
        json_pack("{s:s, s:b, s:b, s:b, s:[s], s:[s], s:s, s:s, s:{s:s}, s:{s:s}, s:o, s:o*, s:o*}",
                  "NetworkMode", "none", "AutoRemove", 1, "Privileged", 0, "ReadonlyRootfs",
                  !plan->sandbox_spec.limits.writable, "CapDrop", "ALL", "SecurityOpt",
                  "no-new-privileges", "IpcMode", "private", "CgroupnsMode", "private", "LogConfig",
                  "Type", "none", "RestartPolicy", "Name", "no", "Sysctls", sysctls, "Mounts",
                  make_mounts(plan, p), "Tmpfs", make_tmpfs(m, e));
    if (host == NULL || json_object_get(host, "Mounts") == NULL ||
        json_object_get(host, "Tmpfs") == NULL || add_limits(host, &plan->sandbox_spec.limits, e)) {
        err_set(err, ERR_INTERNAL, "out of memory");
        json_decref(host);
        return NULL;
    }
    if (add_hidden(host, plan, e, err) == 0)
        return host;
    json_decref(host);
    return NULL;
}

/* What durward-init is told. */
static json_t *init_words(const struct plan *plan)
{
    char files[32];
    const struct config_sandbox *l = &plan->sandbox_spec.limits;
    snprintf(files, sizeof files, COMMAND_FILES "%u", (unsigned)l->files);
    const char *word = l->writable ? "engine-writable" : "engine";
    json_t *words = l->files ? json_pack("[s, s]", word, files) : json_pack("[s]", word);
    if (plan->signs && json_array_append_new(words, json_string(COMMAND_AGENT)) < 0) {
        json_decref(words);
        return NULL;
    }
    return words;
}

json_t *docker_spec(const struct making *m, const struct engine *e, const struct docker_parts *p,
                    struct err *err)
{
    const struct plan *plan = m->plan;
    char user[32];
    json_t *host = make_host(m, e, p, err);
    if (host == NULL)
        return NULL;
    snprintf(user, sizeof user, "%u:%u", (unsigned)plan->uid, (unsigned)plan->gid);
    /* by the image: neither entry point nor health check, which the engine would run by itself */
    json_t *spec = json_pack(
        "{s:s, s:s, s:s, s:s, s:[s], s:o, s:{s:[s]}, s:{s:s, s:s}, s:b, s:o}", "Image",
        plan->sandbox_spec.limits.docker.image, "Hostname", plan->hostname, "User", user,
        "WorkingDir", "/", "Entrypoint", HANDOVER_DIR "/" HANDOVER_INIT, "Cmd", init_words(plan),
        "Healthcheck", "Test", "NONE", "Labels", DOCKER_LABEL_STATE, m->parts.state_dir,
        DOCKER_LABEL_SANDBOX, plan->sandbox, "NetworkDisabled", 1, "HostConfig", host);
    if (spec == NULL)
        err_set(err, ERR_INTERNAL, "out of memory");
    return spec;
}
