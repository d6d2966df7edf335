/* Opens file stores after checking owner and mode, and collects the secrets of the environment into
 * a block. store_command.c starts commands; store_read.c reads for the command line. */
#include "store.h"

#include "env_block.h"
#include "login_file.h"
#include "store_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

int store_check_file(int fd, const char *path, struct err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(err, "%s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_DENIED, "%s is not a regular file", path);
    uid_t me = geteuid();
    if (st.st_uid != me && st.st_uid != 0)
        return err_set(err, ERR_DENIED, "%s belongs to uid %u; it must be yours or root's", path,
                       (unsigned)st.st_uid);
    /* root's file, readable by a group: we could not read it otherwise, nor change its mode */
    mode_t allowed = st.st_uid == 0 && me != 0 ? 0740 : 0700;
    if (st.st_mode & 0777 & ~allowed)
        return err_set(err, ERR_DENIED, "%s is open to others (mode %04o); chmod 600 %s", path,
                       (unsigned)(st.st_mode & 07777), path);
    return 0;
}

static int open_file(const char *path, struct store_result *ret, struct err *err)
{
    /* O_NONBLOCK: a FIFO must not hold the parent up; it is refused right after */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return err_sys(err, "cannot open %s", path);
    if (store_check_file(fd, path, err) < 0) {
        close(fd);
        return -1;
    }
    *ret = (struct store_result){.fd = fd};
    return 0;
}

int store_path(const struct config_secret *s, char *to, size_t size, struct err *err)
{
    const char *folder = s->folder ? getenv(s->folder) : "";
    if (folder == NULL || (s->folder && folder[0] != '/'))
        return err_set(err, ERR_UNREADY,
                       "$%s is not set: systemd sets it for a unit with LoadCredential=%s:...",
                       s->folder, s->source);
    int n = snprintf(to, size, "%s%s%s", folder, s->folder ? "/" : "", s->source);
    return n > 0 && (size_t)n < size ? 0 : err_set(err, ERR_LIMIT, "its path is too long");
}

/* ---- an SSH agent ---- */

/* Ours or root's, unless we are root: another's would learn who logs in where. */
static int check_agent(int fd, const char *path, struct err *err)
{
    struct ucred peer;
    socklen_t n = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
        return err_sys(err, "%s", path);
    if (geteuid() != 0 && peer.uid != geteuid() && peer.uid != 0)
        return err_set(err, ERR_DENIED, "the agent at %s is uid %u's; it must be yours or root's",
                       path, (unsigned)peer.uid);
    return 0;
}

/* Asked for its list already: the vault reads that first. */
static int open_agent(const struct config_secret *s, struct store_result *ret, struct err *err)
{
    static const unsigned char list[] = {0, 0, 0, 1, 11};
    const char *path = s->socket ? s->socket : getenv("SSH_AUTH_SOCK");
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (path == NULL || path[0] != '/')
        return err_set(err, ERR_UNREADY,
                       "$SSH_AUTH_SOCK is not set where Durward was started; start an agent, or "
                       "write 'socket'");
    if (strlen(path) >= sizeof at.sun_path)
        return err_set(err, ERR_LIMIT, "the path of its agent's socket is too long");
    memcpy(at.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(err, "socket");
    int r = connect(fd, (const struct sockaddr *)&at, sizeof at) < 0
                ? err_sys(err, "no agent answers at %s", path)
                : check_agent(fd, path, err);
    if (r == 0 && send(fd, list, sizeof list, MSG_NOSIGNAL) != sizeof list)
        r = err_sys(err, "the agent at %s", path);
    if (r < 0)
        close(fd);
    else
        *ret = (struct store_result){.fd = fd};
    return r;
}

int store_open(const struct config_secret *s, struct store_result *ret, struct err *err)
{
    char path[STORE_PATH_MAX];
    switch (s->store) {
    case STORE_FILE:
        return store_path(s, path, sizeof path, err) < 0 ? -1 : open_file(path, ret, err);
    case STORE_COMMAND:
        return store_command_start(s->command, -1, ret, err);
    case STORE_LOGIN:
        return login_file_open(s, ret, err);
    case STORE_AGENT:
        return open_agent(s, ret, err);
    case STORE_MINT:
    case STORE_ENV:
        break;
    }
    return err_set(err, ERR_INTERNAL, "this store cannot be opened");
}

void store_kill(const struct store_result *r)
{
    if (r->pid > 0)
        kill(-r->pid, SIGKILL);
}

/* Wipe every setting of a variable in place: what the kernel shows as /proc/PID/environ is this
 * memory, and unsetenv only forgets the pointer. */
static void wipe_variable(const char *name)
{
    size_t n = strlen(name);
    for (char **e = environ; e && *e; e++)
        if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
            explicit_bzero(*e + n + 1, strlen(*e + n + 1));
    unsetenv(name);
}

int store_env_memfd(const struct config_secret *list, size_t n, size_t *missing, struct err *err)
{
    struct buf b;
    size_t first = n;
    int r = 0;
    env_block_begin(&b);
    for (size_t i = 0; i < n && r == 0; i++) {
        const char *value = list[i].store == STORE_ENV ? getenv(list[i].source) : NULL;
        if (value)
            r = env_block_add(&b, list[i].name, slice_str(value), err);
        else if (list[i].store == STORE_ENV && first == n)
            first = i;
    }
    int fd = r == 0 ? env_block_end(&b, err) : -1;
    buf_free(&b);
    if (fd < 0)
        return -1;
    for (size_t i = 0; i < n; i++) /* after all were read: two secrets may share a variable */
        if (list[i].store == STORE_ENV)
            wipe_variable(list[i].source);
    if (missing)
        *missing = first;
    return fd;
}
