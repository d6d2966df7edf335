/* A W_BUILD message, read and checked: what one local sandbox is made of (fields: build.h).
 *
 * Every string is checked for what it will be used for: identifiers, host names, a login name, and
 * paths that are absolute, canonical and free of control characters. */
#ifndef DURWARD_PLAN_H
#define DURWARD_PLAN_H

#include "err.h"
#include "host_key.h"
#include "idmap.h"
#include "ipc_msg.h"
#include "sandbox_spec.h"

enum {
    PLAN_ID_MAX = 64,
    PLAN_PATH_MAX = 4095,
    PLAN_PORTS_MAX = 24,
    PLAN_BINDS_MAX = 64,
    PLAN_GITHOSTS_MAX = 256,
    PLAN_SSHHOSTS_MAX = 256,
    PLAN_SERVER_THREADS = 4, /* of each process that serves a view or a volume */
    PLAN_WALL_TASKS = 256, /* of gVisor's kernel or a virtual machine, and what serves its files */
    PLAN_MIB = 1024 * 1024,
    PLAN_MACHINE_BESIDE = 320 * PLAN_MIB, /* bytes of a virtual machine, beside the guest's */
};

struct plan_bind {
    char *source; /* on the host */
    char *target; /* inside */
    bool writable;
    bool view; /* its files are judged whenever they are opened */
    bool home; /* one that Durward keeps: nothing in it is hidden */
};

struct plan {
    char sandbox[PLAN_ID_MAX + 1];
    char policy[256];
    char hostname[64];
    uid_t uid;
    gid_t gid;
    uint16_t ports[PLAN_PORTS_MAX]; /* never 0, 53, 80 or 443 */
    unsigned nports;
    struct plan_bind binds[PLAN_BINDS_MAX]; /* outer targets before those inside them */
    unsigned nbinds;
    char *home;
    char user[33];
    char *githosts[PLAN_GITHOSTS_MAX];
    unsigned ngithosts;
    char *sshhosts[PLAN_SSHHOSTS_MAX]; /* "HOST" or "[HOST]:PORT" */
    unsigned nsshhosts;
    char host_keys[HOST_KEY_KINDS][192]; /* of its brokers, as known_hosts has them; "": none */
    bool signs;                          /* it has an SSH agent */
    struct sandbox_spec sandbox_spec;
    unsigned held; /* not of the message: limits that a control group holds (cgroup.h) */
};

/* Reads m to its end. NULL with err when it is malformed; then plan->sandbox was perhaps valid: it
 * is copied to id (PLAN_ID_MAX + 1 bytes; "" when it was not), so that the requester can be
 * answered. plan_free the result. */
struct plan *plan_read(struct msg *m, char *id, struct err *err);
void plan_free(struct plan *p); /* NULL is fine */

/* An image without binds has root inside, who is nobody outside; with binds everybody is himself.
 */
bool plan_root_inside(const struct plan *p);
/* Is the command root inside? Under gVisor and in a microVM always, whoever that is outside. */
bool plan_is_root(const struct plan *p);
/* Who the command is inside and outside, where the launcher makes its user namespace. */
void plan_idmap(const struct plan *p, struct idmap *ret);
/* Tasks of ours that serve its views and volumes, and of gVisor or a virtual machine: they do not
 * count for it. */
unsigned plan_server_tasks(const struct plan *p);
/* Bytes that do not count for it either. */
uint64_t plan_server_memory(const struct plan *p);
/* What a virtual machine has of `memory`, within bounds, in MiB. */
uint64_t plan_machine_mib(const struct plan *p);
/* Its files in the host's memory (/tmp and the like), in bytes: `disk`. Without that a virtual
 * machine has half of its memory; 0: what the kernel allows. */
uint64_t plan_scratch(const struct plan *p);
/* Is inner the same path as outer or below it? Both canonical. */
bool plan_path_within(const char *inner, const char *outer);

#endif
