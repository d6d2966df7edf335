/* A volume on disk: files that outlive the sandboxes which mount them, with a bound on their size.
 *
 *   volumes/NAME/root/    its files, which belong to whoever sandboxes are outside
 *   volumes/NAME/about    "POLICY SIZE one|many|snapshot": whose it is, its bound in bytes, who may
 *                         write; a snapshot of one is never mounted
 *   volumes/NAME/usage    what is used up, and which of its files are open, as all processes keep
 *                         it which serve it (rootfs/view_bound.h), and their locks
 *   volumes/NAME/...      what every layer has (layer.h)
 *
 * Every mount holds a lock on `usage` (of its open file, so that it goes with the process); whoever
 * removes or replaces a volume takes all of them, or does not do it. */
#ifndef DURWARD_VOLUME_H
#define DURWARD_VOLUME_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "err.h"
#include "sandbox_spec.h"

enum {
    VOLUME_MOUNTS_MAX = 32, /* at once, of one volume */
    VOLUME_OPEN_MAX = 4096, /* files of it that one of them has open */
    VOLUME_BLOCK = 4096,    /* what a file's length is rounded up to, and what a name costs */
    VOLUME_ABOUT_MAX = 384,
    VOLUME_LEAVE_MS = 3000, /* for the process of a sandbox that has just ended */
    VOLUME_COUNT_MS = 4000, /* of what it holds, where there is an older count */
    VOLUME_WAIT_MS = 5000   /* for somebody who mounts, removes or counts it just then */
};

enum volume_access { VOLUME_ONE, VOLUME_MANY, VOLUME_SNAPSHOT };

struct volume_about {
    char policy[256];
    uint64_t size; /* bytes */
    enum volume_access access;
};

/* to: VOLUME_ABOUT_MAX bytes. */
void volume_about_print(const struct volume_about *a, char *to);
int volume_about_read(const char *text, struct volume_about *ret); /* -1: malformed */
/* Of the volume in this directory: -1 too when there is none. */
int volume_about_of(int dir, struct volume_about *ret);

/* How `usage` begins. All who serve a volume read and write it, and none of them maps it: what one
 * that was taken over does to it costs the others an EIO, never more. Whatever of it is wrong is so
 * in favour of the bound: what a process had under way when it was killed stays counted until
 * somebody counts anew, which the first does who mounts it while nobody else does. One that has so
 * many files that this takes longer than VOLUME_COUNT_MS keeps the count that it had. */
struct volume_usage {
    uint64_t magic;
    int64_t used; /* bytes, as volume_length and names count */
    uint32_t n_open[VOLUME_MOUNTS_MAX];
};

struct volume { /* mounted once */
    int root;   /* its files, O_PATH */
    int lock;   /* `usage`, with the locks */
    unsigned slot;
    uint64_t size;
    uid_t uid; /* whose its files are, in this user namespace */
    gid_t gid;
};

/* What a file of this length counts. */
static inline int64_t volume_length(int64_t bytes)
{
    return (bytes + VOLUME_BLOCK - 1) / VOLUME_BLOCK * VOLUME_BLOCK;
}

/* For a sandbox of this policy. ERR_UNREADY: there is none for it, it is being replaced, or another
 * one writes to it. */
int volume_open(const char *state_dir, const struct sandbox_spec_volume *v, const char *policy,
                struct volume *ret, struct err *err);
void volume_close(struct volume *v);

/* all: the directory of volumes. Nobody mounts the one of this name until the descriptor is closed;
 * -1 when somebody does now, or with errno ENOENT. */
int volume_claim(int all, const char *name, unsigned ms, struct err *err);
/* What was used when it was counted last. */
int volume_used(int all, const char *name, int64_t *ret, struct err *err);
/* What a volume of `size` in this directory holds. Where that is not known at `until`
 * (CLOCK_MONOTONIC), what it held at the `old` count (-1: none), or what was seen if that is more;
 * else, and where it cannot be counted, all of its size: what is there can be read and removed. */
int64_t volume_count(int dir, int64_t size, int64_t old, const struct timespec *until);
/* Another mount than `slot` that lives. */
bool volume_slot_lives(int lock, unsigned slot);

/* ---- for who serves it; usage: the open file ---- */

/* For whoever only takes the lock: the `usage` of a volume that is mounted now. -1: it cannot be
 * had. */
int volume_usage_open(const char *state_dir, const char *name);
/* The lock of all that `usage` holds, which goes with its holder. until: CLOCK_MONOTONIC. */
int volume_usage_lock(int usage, const struct timespec *until);
void volume_usage_unlock(int usage);
/* -1: it is not what it should be. What cannot be true counts as full. */
int volume_usage_read(int usage, uint64_t size, struct volume_usage *ret);
int volume_usage_write(int usage, const struct volume_usage *u);
/* A slot's place: the inode of a file that is open, or 0. */
int volume_usage_place(int usage, unsigned slot, unsigned at, uint64_t inode);
/* Does this slot name the inode? So it does when it cannot be read. */
bool volume_usage_names(int usage, unsigned slot, uint64_t inode);

#endif
