/* The user namespace of a sandbox whose files are not the builder's own: whoever the command is
 * inside, another uid outside.
 *
 * Who root of an image is outside is nobody that the host knows. As root it is a uid of our own
 * beside those of the roles; an ordinary user has it from /etc/subuid by newuidmap(1); where there
 * is none it is that user. Files of images and of the layers above them belong to it. Inside a
 * sandbox nobody has CAP_CHOWN or CAP_SETUID, so one uid serves where others map 65536.
 *
 * Who the host's root is in his own sandboxes is that uid of ours too. What he binds is shown to
 * it as its own (mounts_clone_as), so that root inside is still its owner. */
#ifndef DURWARD_IDMAP_H
#define DURWARD_IDMAP_H

#include <sys/types.h>

#include "err.h"

struct idmap {
    uid_t inside_uid, uid; /* the same person, inside and outside */
    gid_t inside_gid, gid;
    bool own;    /* outside it is the caller */
    bool helper; /* newuidmap and newgidmap are needed */
    /* Of a sandbox with containers inside: others, who are IDMAP_OTHERS and the next ones in there.
     * 0: none. */
    uid_t first_uid;
    gid_t first_gid;
};

enum { IDMAP_OTHERS = 65536, IDMAP_OTHERS_N = 65535 };

/* Root inside. own: no other uid could be had. */
void idmap_root(struct idmap *m);
/* Who asks for a sandbox, whom it sees as himself. The host's root is ours outside; the root of a
 * container's user namespace, who is nobody's root there, is himself if something is bound, as no
 * mount can be shown to another there. */
void idmap_caller(struct idmap *m, uid_t uid, gid_t gid, bool binds);
/* A user namespace for mounts_clone_as: root's files are ours, everybody else's their own. For
 * root; the descriptor is the caller's. */
int idmap_mounts(struct err *err);
/* The same who is root inside, and 65535 others, for a user namespace above the sandbox's own: in
 * this one nobody is uid 0, which owns the settings of its network (/proc/sys/net), and root inside
 * is 1. -1 with err: he is the host's root, or /etc/subuid gives us nobody else. */
int idmap_nest(struct idmap *m, struct err *err);
/* A map of another process's user namespace; file: uid_map, gid_map or setgroups. 0, or -1 with
 * errno. */
int idmap_put(pid_t pid, const char *file, const char *text);
/* Somebody who is himself. Where the caller is not root, it can only be the caller. */
void idmap_same(struct idmap *m, uid_t uid, gid_t gid);
/* Enter a user namespace (and the others that flags name) with this map. Until idmap_become the
 * caller keeps its own uid, by which it opens what only that may open. Wants
 * a single thread and no no_new_privs. */
int idmap_enter(const struct idmap *m, int flags, struct err *err);
int idmap_become(const struct idmap *m, struct err *err);

#endif
