/* Answers the vault's two messages for tokens that are kept. */
#include "refresh_tokens.h"

#include "private_file.h"
#include "secret.h"
#include "secret_list.h"
#include "wire.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

int refresh_tokens_message(const char *state_dir, struct ipc *vault, struct msg *m)
{
    static char text[SECRET_MAX + 1]; /* wiped after each use */
    uint32_t req;
    char name[SECRET_NAME_MAX + 1];
    struct slice value = {"", 0};
    bool keep = m->type == W_TOKEN_SAVE;
    struct msg reply;
    if (msg_get_u32(m, &req) < 0 || msg_get_str(m, name, sizeof name) < 0 ||
        (keep && msg_get_slice(m, SECRET_MAX, &value) < 0) || msg_end(m) < 0 || !file_name_ok(name))
        return -1;
    int dir = open_dir(state_dir);
    if (keep) {
        msg_init(&reply, W_TOKEN_SAVED);
        msg_put_u32(&reply, req);
        msg_put_u8(&reply, dir >= 0 && private_file_write(dir, name, value));
    } else {
        msg_init(&reply, W_TOKEN_FOUND);
        msg_put_u32(&reply, req);
        msg_put_bytes(&reply, text, dir >= 0 ? private_file_read(dir, name, text, sizeof text) : 0);
        explicit_bzero(text, sizeof text);
    }
    if (dir >= 0)
        close(dir);
    ipc_send(vault, &reply);
    return 0;
}
