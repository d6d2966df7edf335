/* What durward-init and gates may say. Both are reached by the sandbox's own bytes: whatever they
 * send is taken for an adversary's, checked field by field and against the state. */
#include "sandbox_internal.h"
#include "sandbox_steps.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "authority.h"
#include "wire.h"

enum { PROBES_MAX = 128, PROBE_MAX = 64, DETAIL_MAX = 512 };

/* The master side of a Unix98 pty and nothing else: /dev/pts/ptmx is 5:2 wherever it is mounted,
 * and only a master has a number to tell. */
static bool is_pty_master(int fd)
{
    struct stat st;
    unsigned number;
    return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(5, 2) &&
           ioctl(fd, TIOCGPTN, &number) == 0;
}

static void append(char *to, size_t size, const char *probe, const char *detail)
{
    size_t at = strlen(to);
    snprintf(to + at, size - at, "%s%s%s%s", at ? "; " : "", probe, *detail ? ": " : "", detail);
    for (char *p = to + at; *p; p++)
        if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
            *p = '?';
}

static int on_self_test(struct sandbox *s, struct msg *m)
{
    uint8_t all_ok, ok;
    uint32_t n;
    char failed[1024] = "";
    if (s->state != SANDBOX_READY || s->tested || msg_get_u8(m, &all_ok) < 0 ||
        msg_get_u32(m, &n) < 0 || n == 0 || n > PROBES_MAX)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        char probe[PROBE_MAX], detail[DETAIL_MAX];
        if (msg_get_str(m, probe, sizeof probe) < 0 || msg_get_u8(m, &ok) < 0 ||
            msg_get_str(m, detail, sizeof detail) < 0)
            return -1;
        if (!ok)
            append(failed, sizeof failed, probe, detail);
    }
    if (msg_end(m) < 0)
        return -1;
    if (!all_ok || failed[0]) {
        char text[1200];
        snprintf(text, sizeof text, "the sandbox failed its self-test and was not used: %s",
                 failed[0] ? failed : "no probe is named");
        sandbox_end(s, EXIT_DURWARD_FAILED, text);
        return 0;
    }
    s->tested = true;
    if (s->plan.kept)
        sandbox_running(s);
    else
        sandbox_steps_begin(s);
    return 0;
}

/* Of a step's pipe, or of a connection (W_INIT_CONNECT): a socket, whatever it leads to. */
static int on_descriptor(struct sandbox *s, uint32_t number, struct msg *m)
{
    int fd = -1;
    uint32_t n;
    if ((s->state != SANDBOX_RUNNING && s->state != SANDBOX_READY) || msg_get_u32(m, &n) < 0 ||
        n != 1 || msg_get_fd(m, &fd) < 0)
        return -1;
    if (msg_end(m) < 0) {
        close(fd);
        return -1;
    }
    if (s->state == SANDBOX_READY)
        return sandbox_step_started(s, number, fd);
    sandbox_connected(s, number, fd);
    return 0;
}

static int on_started(struct sandbox *s, struct msg *m)
{
    int fd = -1;
    uint32_t number, n;
    if (!s->tested || msg_get_u32(m, &number) < 0)
        return -1;
    if (number)
        return on_descriptor(s, number, m);
    if (s->state != SANDBOX_READY || s->step < s->plan.request.n_steps || msg_get_u32(m, &n) < 0 ||
        n != (s->plan.request.tty ? 1 : 0) || (n && msg_get_fd(m, &fd) < 0))
        return -1;
    if (msg_end(m) < 0 || (fd >= 0 && !is_pty_master(fd))) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    sandbox_started(s, fd);
    return 0;
}

static int on_exit_message(struct sandbox *s, struct msg *m)
{
    uint32_t number, status;
    char text[DETAIL_MAX];
    if (!s->tested || msg_get_u32(m, &number) < 0 || msg_get_u32(m, &status) < 0 ||
        msg_get_str(m, text, sizeof text) < 0 || msg_end(m) < 0 || status > 255)
        return -1;
    if (number && s->state == SANDBOX_READY)
        return sandbox_step_ended(s, number, status);
    if (number == 0)
        sandbox_end(s, status, text);
    else if (s->state == SANDBOX_RUNNING)
        sandbox_connected(s, number, -1);
    return 0;
}

static int on_reset(struct sandbox *s, struct msg *m)
{
    if (msg_end(m) < 0)
        return -1;
    s->tested = true; /* the builder gives only tested ones to be adopted */
    sandbox_running(s);
    return 0;
}

static int on_kept(struct sandbox *s, struct msg *m)
{
    if (s->tested)
        return s->owner->said ? s->owner->said(s->owner->arg, s, m) : -1;
    if (s->plan.adopt) /* until it answers, all it says is for a controller that died */
        return m->type == W_INIT_RESET ? on_reset(s, m) : 0;
    return m->type == W_INIT_READY ? on_self_test(s, m) : -1;
}

int sandbox_on_init(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct sandbox *s = arg;
    if (s->plan.kept)
        return on_kept(s, m);
    switch (m->type) {
    case W_INIT_READY:
        return on_self_test(s, m);
    case W_INIT_STARTED:
        return on_started(s, m);
    case W_INIT_EXIT:
        return on_exit_message(s, m);
    default:
        return -1;
    }
}

void sandbox_on_init_closed(struct ipc *ch UNUSED, const char *why, void *arg)
{
    char text[128];
    snprintf(text, sizeof text, "the sandbox ended by itself (%s)", why);
    sandbox_end(arg, EXIT_DURWARD_FAILED, text); /* frees the channel */
}

static void send_name(struct ipc *to, uint32_t req, const char *host, uint32_t index)
{
    struct msg m;
    msg_init(&m, W_NAME);
    msg_put_u32(&m, req);
    msg_put_str(&m, host);
    msg_put_u32(&m, index);
    ipc_send(to, &m); /* a gate that is gone needs no answer */
}

static void tell_name(void *arg, const char *host, uint32_t index)
{
    send_name(arg, 0, host, index);
}

/* A gate that replaces another one hears of all names the first time it asks for one (an empty
 * host asks for nothing else): addresses that the sandbox remembers go on to mean what they did. */
static int on_name(struct sandbox *s, struct ipc *ch, struct msg *m)
{
    uint32_t req;
    char host[HOST_TEXT_MAX];
    struct authority a;
    if (msg_get_u32(m, &req) < 0 || msg_get_str(m, host, sizeof host) < 0 || msg_end(m) < 0)
        return -1;
    if (host[0] && (authority_host(&a, slice_str(host)) < 0 || a.kind != HOST_NAME ||
                    strcmp(a.host, host) != 0))
        return -1;
    if (!s->told)
        name_table_each(s->names, tell_name, ch);
    s->told = true;
    if (host[0] == 0)
        return 0;
    size_t known = name_table_count(s->names);
    uint32_t index = name_table_index(s->names, host);
    if (s->plan.kept && name_table_count(s->names) != known && s->owner->named)
        s->owner->named(s->owner->arg, s, host, index);
    send_name(ch, req, host, index);
    return 0;
}

static int on_denied(struct sandbox *s, struct msg *m)
{
    char code[DENIAL_CODE_MAX + 1], target[512];
    uint32_t count;
    uint8_t failed;
    if (msg_get_str(m, code, sizeof code) < 0 || msg_get_str(m, target, sizeof target) < 0 ||
        msg_get_u32(m, &count) < 0 || msg_get_u8(m, &failed) < 0 || failed > 1 || msg_end(m) < 0 ||
        !denials_valid(code, count))
        return -1;
    if (s->state < SANDBOX_RUNNING)
        return 0; /* the self-test's own probes */
    return failed ? denials_fail(&s->denials, code, target, count)
                  : denials_add(&s->denials, code, target, count);
}

int sandbox_on_gate(struct ipc *ch, struct msg *m, void *arg)
{
    struct sandbox *s = arg;
    switch (m->type) {
    case W_NAME:
        return on_name(arg, ch, m);
    case W_DENIED:
        return on_denied(arg, m);
    case W_PREVIEW:
    case W_PREVIEW_USED:
        return s->owner->preview ? s->owner->preview(s->owner->arg, s, ch, m) : -1;
    case W_PROPOSE:
        return s->owner->proposed ? s->owner->proposed(s->owner->arg, s, ch, m) : -1;
    default:
        return -1;
    }
}

void sandbox_on_gate_closed(struct ipc *ch, const char *why UNUSED, void *arg)
{
    struct sandbox *s = arg;
    ipc_free(ch);
    s->gate = NULL;
    sandbox_last_words(s);
}
