/* Answers the vault's two messages for tokens that are kept. A token is written to a new file,
 * which is on disk before it takes the name. */
#include "refresh_tokens.h"

#include "secret.h"
#include "secret_list.h"
#include "wire.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A name as the configuration allows it: no slash, no leading dot. */
static bool name_ok(const char *s)
{
    if (*s == 0 || *s == '.' || *s == '-')
        return false;
    for (; *s; s++)
        if (!ascii_is_alnum(*s) && *s != '_' && *s != '.' && *s != '-')
            return false;
    return true;
}

static int open_dir(const char *state_dir)
{
    int state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (state < 0)
        return -1;
    (void)mkdirat(state, "tokens", 0700);
    int dir = openat(state, "tokens", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    close(state);
    return dir;
}

/* Whole or not at all: a new file, on disk before it takes the name. */
static bool write_file(int dir, const char *name, struct slice value)
{
    char fresh[SECRET_NAME_MAX + 8];
    snprintf(fresh, sizeof fresh, ".%s.new", name);
    unlinkat(dir, fresh, 0);
    int fd = openat(dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool ok = write(fd, value.p, value.n) == (ssize_t)value.n && fsync(fd) == 0;
    ok = close(fd) == 0 && ok && renameat(dir, fresh, dir, name) == 0 && fsync(dir) == 0;
    if (!ok)
        unlinkat(dir, fresh, 0);
    return ok;
}

static size_t read_file(int dir, const char *name, char *to, size_t size)
{
    struct stat st;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return 0;
    ssize_t n = -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        (st.st_mode & 077) == 0)
        n = read(fd, to, size);
    close(fd);
    return n > 0 && (size_t)n < size ? (size_t)n : 0;
}

int refresh_tokens_message(const char *state_dir, struct ipc *vault, struct msg *m)
{
    static char text[SECRET_MAX + 1]; /* wiped after each use */
    uint32_t req;
    char name[SECRET_NAME_MAX + 1];
    struct slice value = {"", 0};
    bool keep = m->type == W_TOKEN_SAVE;
    struct msg reply;
    if (msg_get_u32(m, &req) < 0 || msg_get_str(m, name, sizeof name) < 0 ||
        (keep && msg_get_slice(m, SECRET_MAX, &value) < 0) || msg_end(m) < 0 || !name_ok(name))
        return -1;
    int dir = open_dir(state_dir);
    if (keep) {
        msg_init(&reply, W_TOKEN_SAVED);
        msg_put_u32(&reply, req);
        msg_put_u8(&reply, dir >= 0 && write_file(dir, name, value));
    } else {
        msg_init(&reply, W_TOKEN_FOUND);
        msg_put_u32(&reply, req);
        msg_put_bytes(&reply, text, dir >= 0 ? read_file(dir, name, text, sizeof text) : 0);
        explicit_bzero(text, sizeof text);
    }
    if (dir >= 0)
        close(dir);
    ipc_send(vault, &reply);
    return 0;
}
