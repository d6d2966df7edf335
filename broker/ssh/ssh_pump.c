/* Runs libssh's polling when the event loop says that there is something to do. */
#include "ssh_pump.h"

#include <event2/event.h>
#include <stdlib.h>

const char ssh_pump_kex[] =
    "curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,ecdh-sha2-nistp384,"
    "ecdh-sha2-nistp521,diffie-hellman-group16-sha512,diffie-hellman-group18-sha512";
const char ssh_pump_ciphers[] = "chacha20-poly1305@openssh.com,aes256-gcm@openssh.com,"
                                "aes128-gcm@openssh.com,aes256-ctr,aes192-ctr,aes128-ctr";
const char ssh_pump_macs[] = "hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com,"
                             "hmac-sha2-256,hmac-sha2-512";

struct ssh_pump {
    ssh_session session;
    ssh_event polls;
    struct event *rd, *wr, *soon, *timer;
    struct ssh_counter_struct socket, packets; /* libssh's count of what it read, */
    uint64_t seen;                             /* as it was when somebody looked */
    void (*turn)(void *arg, bool late);
    void *arg;
};

static void on_io(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct ssh_pump *p = arg;
    p->turn(p->arg, false);
}

static void on_late(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct ssh_pump *p = arg;
    p->turn(p->arg, true);
}

struct ssh_pump *ssh_pump_new(struct event_base *base, ssh_session session, int fd,
                              void (*turn)(void *arg, bool late), void *arg)
{
    struct ssh_pump *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->session = session;
    p->turn = turn;
    p->arg = arg;
    p->polls = ssh_event_new();
    p->rd = event_new(base, fd, EV_READ | EV_PERSIST, on_io, p);
    p->wr = event_new(base, fd, EV_WRITE, on_io, p);
    p->soon = event_new(base, -1, 0, on_io, p);
    p->timer = event_new(base, -1, 0, on_late, p);
    ssh_set_counters(session, &p->socket, &p->packets);
    if (p->polls && p->rd && p->wr && p->soon && p->timer &&
        ssh_event_add_session(p->polls, session) == SSH_OK && event_add(p->rd, NULL) == 0)
        return p;
    ssh_pump_free(p);
    return NULL;
}

bool ssh_pump_full(const struct ssh_pump *p)
{
    return (ssh_get_poll_flags(p->session) & SSH_WRITE_PENDING) != 0;
}

/* What libssh read is with it, and the descriptor says no more of it: so somebody looks again. It
 * reads in any of its calls, when it writes to a channel or reads another, too. */
int ssh_pump_run(struct ssh_pump *p)
{
    if (ssh_event_dopoll(p->polls, 0) == SSH_ERROR ||
        (ssh_get_status(p->session) & (SSH_CLOSED | SSH_CLOSED_ERROR)))
        return -1;
    if (ssh_pump_full(p))
        event_add(p->wr, NULL);
    if (p->socket.in_bytes != p->seen)
        ssh_pump_soon(p);
    p->seen = p->socket.in_bytes;
    return 0;
}

void ssh_pump_soon(struct ssh_pump *p)
{
    event_active(p->soon, EV_TIMEOUT, 0);
}

void ssh_pump_deadline(struct ssh_pump *p, unsigned seconds)
{
    const struct timeval tv = {(time_t)seconds, 0};
    if (seconds)
        event_add(p->timer, &tv);
    else
        event_del(p->timer);
}

void ssh_pump_free(struct ssh_pump *p)
{
    if (p == NULL)
        return;
    struct event *all[] = {p->rd, p->wr, p->soon, p->timer};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (all[i])
            event_free(all[i]);
    if (p->polls) {
        ssh_set_counters(p->session, NULL, NULL);
        ssh_event_remove_session(p->polls, p->session);
        ssh_event_free(p->polls);
    }
    free(p);
}
