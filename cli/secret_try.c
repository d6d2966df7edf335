/* Starts a private parent with the configuration, has it try the secrets, 64 at a time, and
 * collects its answers. */
#include "secret_try.h"

#include "ipc.h"
#include "launch.h"
#include "peer.h"
#include "store.h"
#include "wire.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TRY_SECONDS = 45, ASKED_AT_ONCE = 64 };

struct trials {
    int channel;
    struct secret_trial *list;
    size_t n, asked, answered;
    bool ready;
};

static int64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* A few at a time: nobody's queue is to overflow. */
static int ask_more(struct trials *t)
{
    while (t->ready && t->asked < t->n && t->asked - t->answered < ASKED_AT_ONCE) {
        struct msg m;
        msg_init(&m, W_SECRET_TRY);
        msg_put_u32(&m, (uint32_t)t->asked);
        msg_put_str(&m, t->list[t->asked].name);
        int r = msg_send(t->channel, &m);
        msg_done(&m);
        if (r != 0)
            return -1;
        t->asked++;
    }
    return 0;
}

static int on_tried(struct trials *t, struct msg *m)
{
    uint32_t req, bytes;
    uint8_t ok;
    char why[sizeof t->list->why];
    if (msg_get_u32(m, &req) < 0 || msg_get_u8(m, &ok) < 0 || msg_get_u32(m, &bytes) < 0 ||
        msg_get_str(m, why, sizeof why) < 0 || msg_end(m) < 0 || req >= t->asked)
        return -1;
    struct secret_trial *one = &t->list[req];
    one->ok = ok != 0;
    one->bytes = bytes;
    snprintf(one->why, sizeof one->why, "%s", why);
    t->answered++;
    return 0;
}

static int take(struct trials *t, struct msg *m, struct err *err)
{
    char text[sizeof err->text];
    struct peer far;
    switch (m->type) {
    case W_READY:
        t->ready = true;
        return 0;
    case W_PEER: /* of the controller, for `run` */
        if (peer_get(m, &far) < 0)
            return -1;
        close(far.fd);
        return 0;
    case W_FAILED:
        if (msg_get_str(m, text, sizeof text) == 0)
            err_set(err, ERR_UNREADY, "%s", text);
        return -1;
    case W_LOG:
        return 0;
    case W_SECRET_TRIED:
        return on_tried(t, m);
    default:
        return -1;
    }
}

static void converse(struct trials *t, struct err *err)
{
    int64_t end = now_ms() + TRY_SECONDS * 1000;
    while (t->answered < t->n && ask_more(t) == 0) {
        struct pollfd p = {.fd = t->channel, .events = POLLIN};
        struct msg m;
        int64_t left = end - now_ms();
        int r = left > 0 ? poll(&p, 1, (int)left) : 0;
        if (r < 0 && errno == EINTR)
            continue;
        if (r == 0)
            err_set(err, ERR_UNREADY, "there was no answer within %d s", TRY_SECONDS);
        if (r <= 0 || msg_recv(t->channel, &m) != 1)
            return;
        r = take(t, &m, err);
        msg_done(&m);
        if (r < 0)
            return;
    }
}

/* As execvp looks for it. */
static bool program_there(const char *name)
{
    const char *path = getenv("PATH");
    char whole[PATH_MAX];
    if (strchr(name, '/'))
        return access(name, X_OK) == 0;
    for (const char *p = path ? path : "/usr/bin:/bin"; *p;) {
        size_t n = strcspn(p, ":");
        if (snprintf(whole, sizeof whole, "%.*s/%s", (int)n, p, name) < (int)sizeof whole &&
            access(whole, X_OK) == 0)
            return true;
        p += n + (p[n] == ':');
    }
    return false;
}

int secret_at_hand(const struct config_secret *s, struct err *err)
{
    struct store_result r;
    const char *v;
    switch (s->store) {
    case STORE_ENV:
        v = getenv(s->source);
        return v && *v ? 0 : err_set(err, ERR_UNREADY, "%s is not set", s->source);
    case STORE_FILE:
    case STORE_LOGIN:
    case STORE_AGENT:
        if (store_open(s, &r, err) < 0)
            return -1;
        close(r.fd);
        return 0;
    case STORE_COMMAND:
        return program_there(s->command[0])
                   ? 0
                   : err_set(err, ERR_UNREADY, "there is no program '%s'", s->command[0]);
    case STORE_MINT:
        return 0;
    }
    return 0;
}

void secret_try(const struct config *c, struct secret_trial *list, size_t n)
{
    struct trials t = {.list = list, .n = n};
    struct err err = {0};
    pid_t pid;
    for (size_t i = 0; i < n; i++)
        list[i].why[0] = 0;
    if (launch_parent(NULL, c, NULL, &pid, &t.channel, &err) == 0) {
        converse(&t, &err);
        close(t.channel);
        launch_ended(pid);
    }
    for (size_t i = 0; i < n; i++)
        if (!list[i].ok && list[i].why[0] == 0)
            snprintf(list[i].why, sizeof list[i].why, "it could not be asked for: %s",
                     err.text[0] ? err.text : "Durward's own processes ended");
}
