/* Says to runsc what runs, in which root, with which mounts: by the OCI runtime specification. */
#define _GNU_SOURCE 1
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "gvisor.h"
#include "ipc.h"
#include "rootfs.h"

enum { FILES = 65536, CORE = 1 }; /* core: as the filter keeps it elsewhere */

static json_t *words_of(const struct plan *plan)
{
    char files[32];
    json_t *words = json_pack("[ss]", ROOTFS_INIT, COMMAND_RELAYED);
    if (plan->sandbox_spec.root != SANDBOX_SPEC_READ_ONLY)
        json_array_append_new(words, json_string("layered"));
    if (plan->signs)
        json_array_append_new(words, json_string(COMMAND_AGENT));
    if (plan->sandbox_spec.limits.files) {
        snprintf(files, sizeof files, COMMAND_FILES "%u",
                 (unsigned)plan->sandbox_spec.limits.files);
        json_array_append_new(words, json_string(files));
    }
    return words;
}

static json_t *limit(const char *name, uint64_t value)
{
    return json_pack("{sssIsI}", "type", name, "hard", (json_int_t)value, "soft",
                     (json_int_t)value);
}

/* What control groups do not hold is held inside: by gVisor's kernel. */
static json_t *limits_of(const struct plan *plan)
{
    const struct config_sandbox *l = &plan->sandbox_spec.limits;
    json_t *limits = json_pack("[oo]", limit("RLIMIT_NOFILE", FILES), limit("RLIMIT_CORE", CORE));
    if (l->disk && plan->sandbox_spec.root == SANDBOX_SPEC_KEPT)
        json_array_append_new(limits, limit("RLIMIT_FSIZE", l->disk));
    return limits;
}

static void add_mount(json_t *to, const char *at, const char *type, const char *source,
                      json_t *options)
{
    json_array_append_new(to, json_pack("{ssssssso}", "destination", at, "type", type, "source",
                                        source, "options", options));
}

/* /tmp is named as it is, or runsc would put one of its own memory over it. There is no /sys. */
static json_t *mounts_of(void)
{
    json_t *m = json_array();
    add_mount(m, "/proc", "proc", "proc", json_array());
    add_mount(m, "/dev", "tmpfs", "tmpfs", json_pack("[ss]", "nosuid", "mode=755"));
    add_mount(m, "/dev/shm", "tmpfs", "tmpfs", json_pack("[sss]", "nosuid", "nodev", "mode=1777"));
    add_mount(m, "/sys", "tmpfs", "tmpfs", json_pack("[sss]", "ro", "nosuid", "nodev"));
    add_mount(m, "/tmp", "bind", GVISOR_ROOT "/tmp", json_pack("[ss]", "rbind", "rw"));
    return m;
}

/* Neither a network nor a user namespace is named: it has those that it is started in. */
static json_t *namespaces(void)
{
    return json_pack("[{ss}{ss}{ss}{ss}]", "type", "pid", "type", "mount", "type", "ipc", "type",
                     "uts");
}

static json_t *process_of(const struct plan *plan)
{
    return json_pack("{s{sisi}sos[]sss{}sbso}", "user", "uid", 0, "gid", 0, "args", words_of(plan),
                     "env", "cwd", "/", "capabilities", "noNewPrivileges", 1, "rlimits",
                     limits_of(plan));
}

static json_t *spec_of(const struct plan *plan)
{
    return json_pack("{sssos{sssb}sssos{so}}", "ociVersion", "1.0.0", "process", process_of(plan),
                     "root", "path", GVISOR_ROOT, "readonly", 0, "hostname", plan->hostname,
                     "mounts", mounts_of(), "linux", "namespaces", namespaces());
}

int gvisor_spec(const struct plan *plan, struct err *err)
{
    json_t *spec = spec_of(plan);
    char *text = spec ? json_dumps(spec, JSON_COMPACT) : NULL;
    int fd = text ? ipc_memfd("config.json", text, strlen(text), err)
                  : err_set(err, ERR_INTERNAL, "out of memory");
    if (fd >= 0 && lseek(fd, 0, SEEK_SET) < 0) {
        close(fd);
        fd = err_sys(err, "lseek");
    }
    json_decref(spec);
    free(text);
    return fd;
}
