/* A bound directory as a sandbox sees it: a FUSE file system in the sandbox's own user namespace,
 * served by a process with the sandbox's uid and without any capability, which judges a file by its
 * name and its content whenever it is opened or read, however it came there.
 *
 * A file that is judged a credential's (mask.h) is shown empty and cannot be written, renamed,
 * linked or removed; a directory of such is shown empty. What the sandbox itself wrote to a file
 * with such a name it may read: its bytes are kept beside the file (view_own.h) and reads are
 * answered from there, so that nothing the host writes to that file ever passes.
 *
 * What is judged is the name that the opened file itself has at that time (/proc/self/fd), not the
 * one it was asked by; the content of a file that may be a key is looked at in each read. */
#ifndef DURWARD_VIEW_H
#define DURWARD_VIEW_H

#include "err.h"
#include "idmap.h"
#include "volume.h"

#include <stdbool.h>

/* /dev/fuse of the mount namespace, in the user namespace that is to mount it; -1 with why not. */
int view_device(struct err *err);
/* A detached mount of the view (mounts_attach); from here on the device serves it. */
int view_mount(int device, bool readonly, struct err *err);
/* Starts the process that serves it, which ends with the mount or with its parent. tree: what is
 * shown, a directory; source: its host path, for recognition. Both descriptors stay the
 * caller's. Returns when it serves. */
int view_serve(int device, int tree, const char *source, struct err *err);
/* The same of a volume: nothing is judged, and what it holds stays below its bound (view_bound.c).
 * become: who the process is to be; NULL: it is that already. show: whose the files look. */
struct view_owner {
    const struct idmap *become;
    uid_t uid;
    gid_t gid;
};
int view_serve_volume(int device, const struct volume *v, const struct view_owner *owner,
                      const char *name, struct err *err);

#endif
