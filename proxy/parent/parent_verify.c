/* W_VERIFY: the whole audit log, checked by a process of its own (log_command.h). One at a time:
 * who asks meanwhile is told the same. */
#include "parent.h"

#include "log_command.h"
#include "wire.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    VERIFY_SECONDS = 120, /* for all tries */
    VERIFY_TRIES = 2,     /* a file may be compressed or removed by retention under its eyes */
};

struct verifying {
    struct parent *parent;
    bool runs;
    unsigned tries;
    time_t begun;
};

static void answer(struct parent *p, const struct buf *said, const char *failed)
{
    struct child *c = p->controller;
    struct err err = {0};
    struct msg m;
    int fd = -1;
    if (c == NULL || c->ch == NULL)
        return; /* whoever asked is gone with it */
    if (failed == NULL) {
        struct slice s = buf_slice(said);
        fd = ipc_memfd("verified", s.p, s.n, &err);
        if (fd < 0)
            failed = err.text;
    }
    msg_init(&m, W_VERIFIED);
    msg_put_u8(&m, failed == NULL);
    msg_put_str(&m, failed ? failed : "");
    if (failed == NULL)
        msg_put_fd(&m, fd);
    ipc_send(c->ch, &m);
}

static time_t monotonic(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

static int begin(struct verifying *v, struct err *err);

static void on_ended(void *arg, int code, const char *failed, const struct buf *said)
{
    struct verifying *v = arg;
    struct err err = {0};
    v->runs = false;
    if (failed == NULL && code == 1 && v->tries < VERIFY_TRIES && !v->parent->stopping &&
        monotonic() < v->begun + VERIFY_SECONDS) {
        if (begin(v, &err) == 0)
            return;
        failed = "it cannot be started";
    }
    if (failed == NULL && (code < 0 || code > 1 || buf_len(said) == 0))
        failed = "it ended without a result (is key.pub there?): see the daemon's diagnostics";
    answer(v->parent, said, failed);
}

static int begin(struct verifying *v, struct err *err)
{
    static const char *const argv[] = {"durward", "audit",         "verify",
                                       "--json",  LOG_COMMAND_DIR, NULL};
    time_t used = monotonic() - v->begun;
    struct log_command_order o = {.argv = argv,
                                  .most = WIRE_VERIFIED_MAX,
                                  .seconds =
                                      used < VERIFY_SECONDS ? (unsigned)(VERIFY_SECONDS - used) : 1,
                                  .ended = on_ended,
                                  .arg = v};
    if (log_command_start(v->parent, &o, err) == NULL)
        return -1;
    v->runs = true;
    v->tries++;
    return 0;
}

/* NULL: out of memory. */
static struct verifying *verifying(struct parent *p)
{
    if (p->verifying == NULL && (p->verifying = calloc(1, sizeof *p->verifying)) != NULL)
        p->verifying->parent = p;
    return p->verifying;
}

int parent_verify(struct child *controller, struct msg *m)
{
    struct parent *p = controller->parent;
    struct err err = {0};
    if (msg_end(m) < 0)
        return -1;
    struct verifying *v = verifying(p);
    if (v == NULL) {
        answer(p, NULL, "out of memory");
        return 0;
    }
    if (v->runs)
        return 0; /* its answer is this one's too */
    v->tries = 0;
    v->begun = monotonic();
    if (begin(v, &err) < 0)
        answer(p, NULL, err.text);
    return 0;
}
