/* Mounts by descriptor, never by a path that somebody could exchange meanwhile (Linux 5.12).
 *
 * A tree is a detached mount (open_tree, fsmount): it has no place yet, takes its restrictions
 * first and is then attached onto a directory or file that was itself opened without following
 * links. All functions want CAP_SYS_ADMIN over the mount namespace. */
#ifndef DURWARD_MOUNTS_H
#define DURWARD_MOUNTS_H

#include "err.h"

/* A mount namespace of our own that no longer tells the host about mounts. */
int mounts_private(struct err *err);

/* Open an absolute canonical path with no symbolic link in it: an O_PATH descriptor, or -1. */
int mounts_open(const char *path, struct err *err);
/* A detached copy of what fd names, with everything mounted below it, without set-uid programs and
 * devices, and if asked read-only throughout. A descriptor that works as O_PATH, or -1. */
int mounts_clone(int fd, bool readonly, struct err *err);
/* The same as mounts_clone for a mount namespace that is yet to be entered, with owners as the user
 * namespace owners maps them (idmap_mounts): what is owned there by its root is by our own uid.
 * partly: what is mounted below keeps its owners. -1 where the file system cannot do that. Wants
 * CAP_SYS_ADMIN of the host. */
int mounts_clone_as(int fd, bool readonly, int owners, bool *partly, struct err *err);
/* A fresh detached tmpfs. mode: "0755"; size and inodes as tmpfs takes them ("8m", "1000"), NULL
 * for the default: half of the memory. */
int mounts_tmpfs(const char *mode, const char *size, const char *inodes, struct err *err);
/* A fresh detached instance of devpts, with so many terminals at most. */
int mounts_devpts(unsigned most, struct err *err);
/* A fresh detached overlay: lower directories, the upmost first, and a writable one above them with
 * its work directory, all of them in attached mounts. In a user namespace: Linux 5.11. Without any
 * syncs (`volatile`): its end would wait for all that the host has to write, and a sandbox's fsync
 * cost everybody. Another one above the same layer wants work/incompat/volatile removed. */
int mounts_overlay(const int *lower, unsigned n, int upper, int work, struct err *err);
/* Put a detached tree onto at (both stay the caller's to close). */
int mounts_attach(int tree, int at, struct err *err);
/* Make the one mount at fd read-only; those below keep what they have. */
int mounts_freeze(int fd, struct err *err);
/* Walk path from root, without following links and without leaving it, making what is missing (a
 * directory, or with dir false an empty file as last component); an O_PATH descriptor. */
int mounts_place(int root, const char *path, bool dir, struct err *err);
/* Attach a readonly clone of what `from` names at that path, which is made as mounts_place does. 0,
 * or -1 with err. */
int mounts_show(int root, const char *path, int from, bool dir, struct err *err);

#endif
