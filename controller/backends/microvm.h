/* microvm: a sandbox that is a virtual machine of its own, with a kernel of its own. Its root,
 * network and limits are made as bubblewrap's are. Then three processes run beside the launcher:
 *
 *   QEMU, in a place with nothing of the host's but programs and the guest's kernel, and without a
 *   network; the guest has no network card, and two devices: files and the trunk
 *   virtiofsd, which opens files for it, in a place with the sandbox's root as the launcher laid it
 *   the far end of the trunk (trunk.h), in the sandbox's network namespace, where the listeners are
 *
 * The launcher stays as the keeper, as under gVisor. In the guest durward-guest is the first
 * process; it starts durward-init (controller/guest). */
#ifndef DURWARD_MICROVM_H
#define DURWARD_MICROVM_H

#include "err.h"
#include "plan.h"

enum { MICROVM_PATH = 512 };

/* What this host has. */
struct microvm_program {
    const char *qemu, *files;                         /* of QEMU and of virtiofsd */
    const char *cache;                                /* virtiofsd's word for what is kept inside */
    char kernel[MICROVM_PATH], modules[MICROVM_PATH]; /* a file; a directory with modules.dep */
    bool kvm;                                         /* the processor is shared with the guest */
};

/* -1 with the remedy. */
int microvm_find(struct microvm_program *ret, struct err *err);

/* Where things lie for QEMU and virtiofsd. */
#define MICROVM_KERNEL "/kernel"
#define MICROVM_INITRD "/initrd"
#define MICROVM_ROOT   "/sandbox"
enum { MICROVM_TRUNK = 3, MICROVM_FILES = 4 }; /* QEMU's; virtiofsd listens on the first number */

/* durward-guest: opened before the root is laid out, which hides the host's /tmp. */
int microvm_guest(struct err *err);
/* The guest's first files, in a memfd, rewound: durward-guest (whose it stays), modules, what it is
 * to start. */
int microvm_initrd(const struct plan *plan, const struct microvm_program *p, int guest,
                   struct err *err);

/* The far end of the trunk, until it ends: in a process of its own. */
NORETURN void microvm_carry(int line, int control);

#endif
