/* gvisor: a sandbox whose system calls gVisor's kernel answers (runsc), a program of the sandbox's
 * user. Its root, network and limits are made as bubblewrap's are; then bubblewrap makes what runsc
 * itself runs in: a user namespace whose root is that user, a pid namespace, and a root with
 * nothing in it but runsc, the sandbox's own root and /proc. runsc starts two processes there: the
 * kernel ("sentry"), and who opens files for it ("gofer").
 *
 * Its sockets are sockets of the sandbox's network namespace (--network=host), over which neither
 * the programs inside nor runsc have a capability, as it belongs to the namespace above.
 *
 * That kernel takes descriptors in and gives none out. So the launcher stays as the keeper: it
 * makes pipes and terminals that durward-init would have made (COMMAND_RELAYED), sends their inner
 * ends in and gives the outer ones to the controller. */
#ifndef DURWARD_GVISOR_H
#define DURWARD_GVISOR_H

#include "err.h"
#include "filter.h"
#include "plan.h"

enum { GVISOR_TEXT = 128 };

/* What this host has. */
struct gvisor_program {
    const char *path;
    char version[GVISOR_TEXT];
    const char *platform; /* how it catches system calls */
    bool newer;           /* than what has the options of 2022 alone */
};

/* Where it is; NULL with the remedy. */
const char *gvisor_path(struct err *err);
/* -1 with the remedy. Starts it once, and waits for at most 10 s. */
int gvisor_find(struct gvisor_program *ret, struct err *err);

/* Tasks of runsc's own, which do not count for a sandbox. */
enum { GVISOR_TASKS = PLAN_WALL_TASKS };

/* Where things lie in what runsc runs in. */
#define GVISOR_BUNDLE "/bundle"
#define GVISOR_ROOT   "/sandbox"

/* runsc's config.json, in a memfd, rewound. */
int gvisor_spec(const struct plan *plan, struct err *err);

/* Of the keeper; with any of them all ends. */
struct keeper_children {
    pid_t sandbox;
    pid_t others[2];      /* 0: none */
    bool connects_inside; /* its network is not this namespace's: durward-init connects to ports */
};

/* The launcher's last work: until the sandbox ends. inner: its durward-init, a SOCK_SEQPACKET. The
 * sandbox's exit status. */
int gvisor_keep(const struct keeper_children *children, int inner);

#endif
