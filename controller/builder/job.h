/* One sandbox on its way through the builder: being made, running, being taken down. */
#ifndef DURWARD_JOB_H
#define DURWARD_JOB_H

#include "ipc.h"
#include "launcher.h"

struct event_base;
struct job;

/* What a job wants of the builder. The strings are the job's. ended is the last call; the job is
 * freed after it. */
struct job_ops {
    /* The listeners of the sandbox in a message for the parent; the callee sends it. */
    void (*listeners)(void *arg, struct job *j, struct msg *m);
    /* Once: it runs (fd is durward-init's socket, the callee's from here on) or it does not (-1).
     */
    void (*built)(void *arg, struct job *j, bool ok, const char *text, int fd);
    /* Perhaps, before ended: every process inside is gone. Who made it, and its mounts, may not be.
     */
    void (*left)(void *arg, struct job *j);
    /* Every process of it is gone. */
    void (*ended)(void *arg, struct job *j);
};

struct job *job_start(struct event_base *base, const struct rootfs_parts *parts,
                      const struct filter_program *filter, struct plan *plan,
                      const struct job_ops *ops, void *arg, struct err *err);
const char *job_sandbox(const struct job *j);
/* What the signer says of its CA (W_ROOT). */
void job_root(struct job *j, struct slice root);
/* The parent's answer about the listeners. */
void job_consent(struct job *j, bool ok, const char *text);
/* Stop every process of it, or let them go on. -1: this host has no freezer for us. */
int job_freeze(struct job *j, bool frozen, struct err *err);
/* Kill it; ended follows. */
void job_end(struct job *j);
/* Look whether its process is gone (after SIGCHLD); may call ended. */
void job_reap(struct job *j);
/* Kill and forget without waiting, when the builder itself ends. */
void job_abandon(struct job *j);

#endif
