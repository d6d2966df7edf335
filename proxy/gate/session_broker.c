/* A connection to a host and port of a broker's rule: it is handed to that broker's front as it is,
 * before a byte of it is read. */
#include "session_internal.h"

#include "broker.h"
#include "gate_names.h"
#include "ipc.h"
#include "policy.h"
#include "synthetic.h"
#include "wire.h"

#include <string.h>

/* Where it was going, by name or address. 0, or -1: no rule can be about it. */
static int destination_of(const struct session *s, struct authority *a)
{
    const struct sockaddr *sa = (const struct sockaddr *)&s->destination;
    memset(a, 0, sizeof *a);
    if (authority_from_sockaddr(a, SCHEME_SSH, sa) < 0)
        return -1;
    if (!synthetic_contains(sa))
        return 0;
    const char *host = gate_names_host(s->gate->names, sa);
    return host ? authority_host(a, slice_str(host)) : -1;
}

static void hand_over(struct session *s, size_t i)
{
    struct ipc *front = s->gate->fronts[i].ipc;
    struct msg m;
    if (front == NULL) {
        session_note_denied(s, "broker_gone", NULL);
        session_close(s, "its broker is being started");
        return;
    }
    msg_init(&m, W_BROKER_ACCEPT);
    msg_put_str(&m, s->outer.host);
    msg_put_u32(&m, s->outer.port);
    msg_put_fd_dup(&m, io_fd(s->io));
    if (ipc_send(front, &m) < 0)
        session_note_denied(s, "broker_gone", NULL);
    io_close(s->io); /* without a shutdown: the connection lives on over there */
    s->io = NULL;
    session_close(s, "handed to its broker");
}

bool session_try_broker(struct session *s)
{
    const struct broker *b;
    struct authority a;
    const struct policy *policy = s->who.route ? s->who.route->policy : NULL;
    if (s->gate->mode != GATE_LOCAL || policy == NULL)
        return false;
    for (size_t i = 0; (b = broker_at(i)) != NULL; i++) {
        if (!policy_speaks(policy, b->scheme) || destination_of(s, &a) < 0)
            continue;
        a.scheme = b->scheme;
        if (policy_host(policy, &a) == 0)
            continue;
        s->outer = a;
        hand_over(s, i);
        return true;
    }
    return false;
}
