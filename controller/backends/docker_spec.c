#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "docker.h"
#include "etcfiles.h"
#include "handover.h"
#include "hide.h"

#define TRUST_INSIDE "/etc/durward"

enum { BYTES_A_FILE = 8192, INODES_MIN = 4096, INODES_MAX = 1000000, NANO_PERCENT = 10000000 };

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

/* Ours, read-only: our program, the trust bundles, also where programs look for them. */
static json_t *make_mounts(const struct making *m, const struct docker_parts *p)
{
    json_t *mounts = json_array();
    const char *path, *bundle;
    int bad = add_mount(mounts, p->path, "run", HANDOVER_DIR) |
              add_mount(mounts, p->path, "resolv.conf", "/etc/resolv.conf") |
              add_mount(mounts, p->path, "gitconfig", "/etc/gitconfig") |
              add_mount(mounts, m->parts.trust_dir, "", TRUST_INSIDE);
    for (size_t i = 0; (path = etcfiles_bundle(i, &bundle)) != NULL; i++) {
        char here[PATH_MAX];
        if (snprintf(here, sizeof here, "%s/%s", m->parts.trust_dir, bundle) < (int)sizeof here &&
            access(here, F_OK) == 0)
            bad |= add_mount(mounts, m->parts.trust_dir, bundle, path);
    }
    if (bad == 0)
        return mounts;
    json_decref(mounts);
    return NULL;
}

static int add_tmpfs(json_t *at, const struct plan *plan, const char *path, const char *mode,
                     bool own)
{
    char options[256];
    uint64_t disk = plan->shape.limits.disk;
    uint64_t files = disk == 0 ? INODES_MAX : disk / BYTES_A_FILE;
    int n = snprintf(options, sizeof options, "rw,nosuid,nodev,exec,mode=%s,nr_inodes=%llu", mode,
                     (unsigned long long)(files < INODES_MIN ? INODES_MIN : files));
    if (disk)
        n += snprintf(options + n, sizeof options - (size_t)n, ",size=%llu",
                      (unsigned long long)disk);
    if (own)
        snprintf(options + n, sizeof options - (size_t)n, ",uid=%u,gid=%u", (unsigned)plan->uid,
                 (unsigned)plan->gid);
    return json_object_set_new(at, path, json_string(options));
}

static json_t *make_tmpfs(const struct plan *plan)
{
    static const char *const places[] = {"/tmp", "/var/tmp", "/run", "/workspace"};
    json_t *v = json_object();
    bool covered = plan->home[1] == '\0';
    int bad =
        add_tmpfs(v, plan, "/tmp", "1777", false) | add_tmpfs(v, plan, "/var/tmp", "1777", false) |
        add_tmpfs(v, plan, "/run", "0755", false) | add_tmpfs(v, plan, "/workspace", "0755", true);
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        covered = covered || strcmp(plan->home, places[i]) == 0;
    if (!covered)
        bad |= add_tmpfs(v, plan, plan->home, "0700", true);
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

/* What engines hide by themselves goes on being hidden; of /sys nothing is seen. */
static int add_hidden(json_t *host, const struct plan *plan, struct err *err)
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
    return hide_proc(plan->uid == 0, hide_one, &h, err);
}

/* ---- limits ---- */

static json_t *ulimit(const char *name, json_int_t value)
{
    return json_pack("{s:s, s:I, s:I}", "Name", name, "Soft", value, "Hard", value);
}

/* Engines have defaults that not every host can give, so both are said; processes are counted by
 * PidsLimit. A core limit of 1 keeps the host's dump program out (core(5)). */
static json_t *make_ulimits(const struct config_sandbox *l)
{
    struct rlimit own;
    json_int_t files = l->files;
    if (files == 0 && getrlimit(RLIMIT_NOFILE, &own) == 0)
        files = own.rlim_max > INT32_MAX ? INT32_MAX : (json_int_t)own.rlim_max;
    return json_pack("[o, o]", ulimit("nofile", files), ulimit("core", 1));
}

static int add_limits(json_t *host, const struct config_sandbox *l)
{
    int bad = json_object_set_new(host, "Ulimits", make_ulimits(l));
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
    const struct config_sandbox *l = &plan->shape.limits;
    int bad = 0;
    if (l->disk)
        bad |= buf_append_str(notes, "note: limit disk: held for each of /tmp, /var/tmp, /run, "
                                     "/workspace and $HOME by itself\n");
    if (l->disk && l->writable)
        bad |= buf_append_str(notes, "note: limit disk: not held for the root, which the engine "
                                     "keeps\n");
    return bad ? err_set(err, ERR_INTERNAL, "out of memory") : 0;
}

/* ---- the whole ---- */

/* Nothing of the engine's network; no capability; nothing that it keeps afterwards. */
static json_t *make_host(const struct making *m, const struct docker_parts *p, struct err *err)
{
    const struct plan *plan = m->plan;
    json_t *sysctls = json_pack("{s:s, s:s}", "net.ipv4.ip_unprivileged_port_start", "1024",
                                "net.ipv4.ping_group_range", "1 0");
    json_t *host =
        json_pack("{s:s, s:b, s:b, s:b, s:[s], s:[s], s:s, s:s, s:{s:s}, s:{s:s}, s:o, s:o*, s:o*}",
                  "NetworkMode", "none", "AutoRemove", 1, "Privileged", 0, "ReadonlyRootfs",
                  !plan->shape.limits.writable, "CapDrop", "ALL", "SecurityOpt",
                  "no-new-privileges", "IpcMode", "private", "CgroupnsMode", "private", "LogConfig",
                  "Type", "none", "RestartPolicy", "Name", "no", "Sysctls", sysctls, "Mounts",
                  make_mounts(m, p), "Tmpfs", make_tmpfs(plan));
    if (host == NULL || json_object_get(host, "Mounts") == NULL ||
        json_object_get(host, "Tmpfs") == NULL || add_limits(host, &plan->shape.limits)) {
        err_set(err, ERR_INTERNAL, "out of memory");
        json_decref(host);
        return NULL;
    }
    if (add_hidden(host, plan, err) == 0)
        return host;
    json_decref(host);
    return NULL;
}

json_t *docker_spec(const struct making *m, const struct docker_parts *p, struct err *err)
{
    const struct plan *plan = m->plan;
    char user[32];
    json_t *host = make_host(m, p, err);
    if (host == NULL)
        return NULL;
    snprintf(user, sizeof user, "%u:%u", (unsigned)plan->uid, (unsigned)plan->gid);
    /* by the image: neither entry point nor health check, which the engine would run by itself */
    json_t *spec =
        json_pack("{s:s, s:s, s:s, s:s, s:[s], s:[s], s:{s:[s]}, s:{s:s, s:s}, s:b, s:o}", "Image",
                  plan->shape.limits.docker.image, "Hostname", plan->hostname, "User", user,
                  "WorkingDir", "/", "Entrypoint", HANDOVER_DIR "/" HANDOVER_INIT, "Cmd",
                  plan->shape.limits.writable ? "engine-writable" : "engine", "Healthcheck", "Test",
                  "NONE", "Labels", DOCKER_LABEL_STATE, m->parts.state_dir, DOCKER_LABEL_SANDBOX,
                  plan->sandbox, "NetworkDisabled", 1, "HostConfig", host);
    if (spec == NULL)
        err_set(err, ERR_INTERNAL, "out of memory");
    return spec;
}
