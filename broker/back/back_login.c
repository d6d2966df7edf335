/* What a login says, from its password. */
#include "back_login.h"

#include "base64.h"
#include "buf.h"

#include <string.h>

enum { SAID_MAX = BACK_LOGIN_PASSWORD_MAX + BACK_LOGIN_USER_MAX + 64 };

int back_login_read(struct back_login *l, const char *scheme, struct slice told)
{
    static const char *const auths[BACK_LOGIN_AUTHS] = {"plain", "login", "xoauth2"};
    const struct slice parts[] = {slice_str(scheme), SLICE(" ")};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (!slice_starts(told, parts[i]))
            return -1;
        told = (struct slice){told.p + parts[i].n, told.n - parts[i].n};
    }
    ssize_t blank = slice_find(told, ' ');
    struct slice how = {told.p, blank < 0 ? 0 : (size_t)blank};
    struct slice user = {told.p + how.n + 1, told.n - how.n - 1};
    if (blank < 0 || user.n == 0 || user.n > BACK_LOGIN_USER_MAX)
        return -1;
    for (unsigned i = 0; i < BACK_LOGIN_AUTHS; i++) {
        if (!slice_eq_str(how, auths[i]))
            continue;
        l->auth = (enum back_login_auth)i;
        memcpy(l->user, user.p, user.n);
        l->user[user.n] = 0;
        return 0;
    }
    return -1;
}

bool back_login_password_ok(struct slice password)
{
    return password.n > 0 && password.n <= BACK_LOGIN_PASSWORD_MAX && slice_find(password, 0) < 0;
}

void back_login_forget(struct back_login *l)
{
    secret_unref(l->said);
    l->said = NULL;
}

static int say(const struct back_login *l, struct slice password, struct buf *said)
{
    if (l->auth == BACK_LOGIN_XOAUTH2)
        return buf_printf(said, "user=%s\001auth=Bearer ", l->user) < 0 ||
                       buf_append_slice(said, password) < 0
                   ? -1
                   : buf_append(said, "\001\001", 2);
    if (l->auth == BACK_LOGIN_PLAIN &&
        (buf_append(said, "", 1) < 0 || buf_append(said, l->user, strlen(l->user) + 1) < 0))
        return -1;
    return buf_append_slice(said, password);
}

int back_login_keep(struct back_login *l, struct slice password)
{
    struct buf said, coded;
    buf_init_wiped(&said, SAID_MAX);
    buf_init_wiped(&coded, 2 * SAID_MAX);
    if (say(l, password, &said) == 0 && base64_append(&coded, buf_slice(&said)) == 0)
        l->said = secret_new(buf_data(&coded), buf_len(&coded));
    buf_free(&said);
    buf_free(&coded);
    return l->said ? 0 : -1;
}
