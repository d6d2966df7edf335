/* Host-side stores, opened by the parent (or by `durward secret test`): files with their checks,
 * commands without a shell, environment variables. The vault itself can open and run nothing. */
#ifndef DURWARD_STORE_H
#define DURWARD_STORE_H

#include "config.h"
#include "err.h"
#include "secret.h"

enum {
    STORE_SECONDS = 30, /* for a command, from start to exit */
    STORE_PATH_MAX = 4300,
};

struct store_result {
    int fd;    /* the file, or the read end of the command's stdout; non-blocking, close-on-exec */
    pid_t pid; /* the command and the id of its process group; 0 for a file. The caller reaps. */
};

/* Open a `file` store or start a `command` store. A file must be regular, ours or root's, and no
 * one else's to read or write; root's may also be readable by its group when we are not root
 * (that is how systemd and Kubernetes hand a file to a service). A command gets /dev/null as stdin,
 * our stderr, a process group of its own, and an environment of PATH, HOME, USER, LANG, LC_*,
 * GNUPGHOME, GPG_TTY, DBUS_SESSION_BUS_ADDRESS and XDG_RUNTIME_DIR only; it dies with us. -1 with
 * an error that says what to do. An `env` store cannot be opened (ERR_INTERNAL). */
int store_open(const struct config_secret *s, struct store_result *ret, struct err *err);
/* The checks of a `file` store, of a descriptor that is open. */
int store_check_file(int fd, const char *path, struct err *err);
/* The path of a `file` store; of a `systemd` one under $CREDENTIALS_DIRECTORY, -1 when that is not
 * set. */
int store_path(const struct config_secret *s, char *to, size_t size, struct err *err);
/* Kill a command's whole group. The caller still reaps pid and closes fd. */
void store_kill(const struct store_result *r);

/* Collect the `env` secrets of the list into a block (env_block.h): returns its memfd. Each
 * variable is then wiped from this process's memory, /proc/PID/environ included, and removed.
 * Variables that are not set are left out; *missing (may be NULL) is the first such secret's index,
 * or n. */
int store_env_memfd(const struct config_secret *list, size_t n, size_t *missing, struct err *err);

/* Read one secret to the end, blocking, with all checks of a value; `env` from this process's
 * environment. For the command line. The caller unrefs. */
struct secret *store_read(const struct config_secret *s, struct err *err);

#endif
