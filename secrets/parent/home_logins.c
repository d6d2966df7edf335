/* Keeps what was captured for the home of a run: read when its sandbox is known, written whenever
 * the vault says so. */
#include "home_logins.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture.h"
#include "private_file.h"
#include "secret_list.h"
#include "wire.h"

_Static_assert((int)HOME_LOGINS_MAX == (int)CAPTURED_KEPT_MAX, "what is written is read");

struct home_logins {
    int dir, lock;                /* the next run has the home when we have written, not before */
    char sandbox[65], policy[65]; /* "": not known yet */
};

struct home_logins *home_logins_new(int dir, int lock)
{
    struct home_logins *h = dir < 0 || lock < 0 ? NULL : calloc(1, sizeof *h);
    if (h) {
        h->dir = dir;
        h->lock = lock;
        return h;
    }
    if (dir >= 0)
        close(dir);
    if (lock >= 0)
        close(lock);
    return NULL;
}

void home_logins_free(struct home_logins *h)
{
    if (h == NULL)
        return;
    close(h->dir);
    close(h->lock);
    free(h);
}

bool home_logins_first(struct home_logins *h, const char *sandbox, const char *policy)
{
    if (h == NULL || h->sandbox[0])
        return false;
    snprintf(h->sandbox, sizeof h->sandbox, "%s", sandbox);
    snprintf(h->policy, sizeof h->policy, "%s", policy);
    return true;
}

static int open_dir(const struct home_logins *h)
{
    if (mkdirat(h->dir, "logins", 0700) == 0)
        (void)fsync(h->dir);
    return openat(h->dir, "logins", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

void home_logins_tell(const struct home_logins *h, struct ipc *vault)
{
    static char text[CAPTURED_KEPT_MAX + 1]; /* wiped after each use */
    struct msg m;
    if (h == NULL || h->sandbox[0] == '\0' || !file_name_ok(h->policy))
        return;
    int dir = openat(h->dir, "logins", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    size_t n = dir < 0 ? 0 : private_file_read(dir, h->policy, text, sizeof text);
    msg_init(&m, W_HOME); /* its body is wiped when sent */
    msg_put_str(&m, h->sandbox);
    msg_put_str(&m, h->policy);
    msg_put_bytes(&m, text, n);
    explicit_bzero(text, sizeof text);
    if (dir >= 0)
        close(dir);
    ipc_send(vault, &m);
}

static bool write_them(const struct home_logins *h, struct slice kept)
{
    int dir = file_name_ok(h->policy) ? open_dir(h) : -1;
    bool ok = dir >= 0 && private_file_write(dir, h->policy, kept);
    if (dir >= 0)
        close(dir);
    return ok;
}

int home_logins_message(const struct home_logins *h, struct ipc *vault, struct msg *m,
                        struct msg *told)
{
    uint32_t req, n;
    char name[SECRET_NAME_MAX + 1];
    struct slice kept;
    struct msg reply;
    told->type = 0;
    if (h == NULL || h->sandbox[0] == '\0' || msg_get_u32(m, &req) < 0 || msg_get_u32(m, &n) < 0 ||
        n == 0 || n > CAPTURED_FIELDS_MAX)
        return -1;
    msg_init(told, W_LOGIN_CAPTURED);
    msg_put_str(told, h->sandbox);
    msg_put_u32(told, n);
    int bad = 0;
    for (uint32_t i = 0; i < n && !bad; i++) {
        bad = msg_get_str(m, name, sizeof name);
        msg_put_str(told, bad ? "" : name);
    }
    bad = bad || msg_get_slice(m, CAPTURED_KEPT_MAX, &kept) < 0 || msg_end(m) < 0;
    bool ok = !bad && write_them(h, kept);
    if (!ok) {
        msg_done(told);
        told->type = 0;
    }
    if (bad)
        return -1;
    msg_init(&reply, W_HOME_KEPT);
    msg_put_u32(&reply, req);
    msg_put_u8(&reply, ok);
    ipc_send(vault, &reply);
    return 0;
}
