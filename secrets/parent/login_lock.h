/* The locks of login files, taken for the vault while it refreshes one: those of the file's program
 * where it has any, else one of ours. Each is a directory, as programs in Node make them, touched
 * while it is held; one that nobody touched for LOGIN_LOCK_SECONDS is taken away. */
#ifndef DURWARD_LOGIN_LOCK_H
#define DURWARD_LOGIN_LOCK_H

#include "config.h"
#include "ipc.h"

struct event_base;
struct login_locks;

enum { LOGIN_LOCKS_MAX = 32 /* held at once */ };

/* A directory that is a lock: 1: it is ours; 0: it is another's; -1: it cannot be made. */
int login_lock_take(const char *path, struct err *err) WUNUSED;

struct login_locks *login_locks_new(struct event_base *base);
void login_locks_free(struct login_locks *l);    /* lets go of all; NULL is fine */
void login_locks_release(struct login_locks *l); /* the vault that asked is gone */
/* W_LOGIN_LOCK, W_LOGIN_SAVE or W_LOGIN_UNLOCK of the vault, answered on its channel. 0, or -1 when
 * the message is bad. */
int login_locks_message(struct login_locks *l, struct ipc *vault, struct msg *m,
                        const struct config_secret *list, size_t n);

#endif
