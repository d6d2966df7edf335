/* Builds the parent's first message and starts the parent: as a child for `run`, by exec in place
 * of this process for `serve`. */
#include "launch.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc.h"
#include "proc.h"
#include "program.h"
#include "store.h"
#include "strlist.h"
#include "wire.h"

enum { PARENT_END_MS = 10000 };

/* What the parent needs of our environment: where this user's directories are, and what the
 * commands of `command:` secrets may have (secrets/parent/store.h). Its own environment is empty.
 */
static int put_environment(struct msg *m, struct err *err)
{
    static const char *const names[] = {"PATH",
                                        "HOME",
                                        "USER",
                                        "LOGNAME",
                                        "LANG",
                                        "GNUPGHOME",
                                        "GPG_TTY",
                                        "XDG_CONFIG_HOME",
                                        "XDG_STATE_HOME",
                                        "XDG_CACHE_HOME",
                                        "XDG_DATA_HOME",
                                        "XDG_RUNTIME_DIR",
                                        "DBUS_SESSION_BUS_ADDRESS",
                                        "CREDENTIALS_DIRECTORY",
                                        "SSH_AUTH_SOCK",
                                        "NOTIFY_SOCKET"};
    struct strlist env = {0};
    int bad = 0;
    for (size_t i = 0; i < ARRAY_LEN(names) && !bad; i++) {
        const char *v = getenv(names[i]);
        if (v)
            bad = strlist_set_env(&env, names[i], v);
    }
    for (char **e = environ; *e && !bad; e++)
        if (strncmp(*e, "LC_", 3) == 0 && strchr(*e, '='))
            bad = strlist_put_env(&env, *e);
    strlist_put(&env, m);
    strlist_done(&env);
    return bad ? err_set(err, ERR_LIMIT, "the environment is too long") : 0;
}

int launch_message(enum launch_mode mode, const char *path, const struct config *c,
                   const struct launch_home *home, struct msg *ret, struct err *err)
{
    char full[PATH_MAX] = "";
    if (path && strcmp(path, "-") != 0 && realpath(path, full) == NULL)
        return err_sys(err, "%s", path);
    size_t n;
    const struct config_secret *secrets = config_secrets(c, &n);
    int env = store_env_memfd(secrets, n, NULL, err);
    if (env < 0)
        return -1;
    char *json = config_json(c);
    int config = json ? ipc_memfd("configuration", json, strlen(json), err)
                      : err_set(err, ERR_INTERNAL, "out of memory");
    free(json);
    int command = config < 0 ? -1 : open("/proc/self/exe", O_PATH | O_CLOEXEC);
    if (command < 0) {
        if (config >= 0) {
            err_sys(err, "/proc/self/exe");
            close(config);
        }
        close(env);
        return -1;
    }
    msg_init(ret, W_INIT);
    msg_put_u8(ret, mode);
    msg_put_str(ret, full);
    int bad = put_environment(ret, err);
    msg_put_fd(ret, config);
    msg_put_fd(ret, env);
    msg_put_fd(ret, command);
    msg_put_u8(ret, home != NULL);
    if (home) {
        msg_put_fd_dup(ret, home->dir);
        msg_put_fd_dup(ret, home->lock);
    }
    if (bad)
        msg_done(ret);
    return bad;
}

static int send_once(int sock, struct msg *m, struct err *err)
{
    int r = msg_send(sock, m);
    if (r != 0)
        err_sys(err, "cannot tell the parent its configuration");
    msg_done(m);
    return r ? -1 : 0;
}

int launch_parent(const char *path, const struct config *c, const struct launch_home *home,
                  pid_t *pid, int *channel, struct err *err)
{
    int pair[2];
    struct msg m;
    if (launch_message(LAUNCH_RUN, path, c, home, &m, err) < 0)
        return -1;
    if (ipc_pair(pair, err) < 0) {
        msg_done(&m);
        return -1;
    }
    if (proc_spawn_one(ROLE_PARENT, pair[1], pid, err) < 0) {
        msg_done(&m);
        close(pair[0]);
        close(pair[1]);
        return -1;
    }
    close(pair[1]);
    *channel = pair[0];
    if (send_once(pair[0], &m, err) < 0) {
        close(pair[0]);
        return -1;
    }
    return 0;
}

void launch_ended(pid_t pid)
{
    struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    if (p.fd < 0 || poll(&p, 1, PARENT_END_MS) != 1)
        kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    if (p.fd >= 0)
        close(p.fd);
}

enum { PROGRAM_FD = LAUNCH_SPARE_FD + 1 };

int launch_become_parent(const char *path, const struct config *c, struct err *err)
{
    static char name[] = "durward: parent";
    char *argv[PROC_ARGV], *env[] = {NULL};
    int pair[2], program = program_open(role_name(ROLE_PARENT), err);
    struct msg m;
    if (program < 0)
        return -1;
    if (launch_message(LAUNCH_SERVE, path, c, NULL, &m, err) < 0)
        return -1;
    if (ipc_pair(pair, err) < 0) {
        msg_done(&m);
        return -1;
    }
    if (send_once(pair[0], &m, err) < 0)
        return -1;
    /* out of the way first: either may be 3 or 4 already */
    int ours = fcntl(pair[0], F_DUPFD_CLOEXEC, 16), theirs = fcntl(pair[1], F_DUPFD_CLOEXEC, 16);
    program = fcntl(program, F_DUPFD_CLOEXEC, 16);
    if (ours < 0 || theirs < 0 || program < 0 || dup2(theirs, PROC_CONTROL_FD) < 0 ||
        dup2(ours, LAUNCH_SPARE_FD) < 0 || dup3(program, PROGRAM_FD, O_CLOEXEC) < 0 ||
        syscall(SYS_close_range, PROGRAM_FD + 1, ~0U, 0) < 0)
        return err_sys(err, "cannot hand descriptors over");
    proc_role_argv(name, false, argv);
    program_exec(PROGRAM_FD, argv, env);
    return err_sys(err, "cannot become the daemon");
}
