/* A connection of the sandbox's: the handshake, a login that asks for nothing, channels. What else
 * SSH can ask for is refused here, and recorded. */
#include "ssh_front.h"

#include "proc.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void connection_free(struct ssh_connection *c)
{
    struct ssh_channel_of *h;
    while ((h = TAILQ_FIRST(&c->channels)) != NULL)
        ssh_channel_drop(h);
    ssh_pump_free(c->pump);
    if (c->session) {
        ssh_disconnect(c->session);
        ssh_free(c->session);
    }
    LIST_REMOVE(c, link);
    c->of->n_connections--;
    free(c);
}

/* ---- the login: whose connection it is was known before; the user is who to be over there ---- */

static int log_in(struct ssh_connection *c, const char *user)
{
    struct slice s = slice_str(user);
    if (!ssh_user_ok(s)) {
        ssh_refuse_other(c, "ssh_user", "a user name that no server has");
        return SSH_AUTH_DENIED;
    }
    memcpy(c->user, s.p, s.n);
    c->user[s.n] = 0;
    return SSH_AUTH_SUCCESS;
}

/* A client of libssh2 is told what else there is: libgit2, which asks so only for that list, gives
 * up where it is let in without. */
static int on_none(ssh_session session, const char *user, void *arg)
{
    const char *client = ssh_get_clientbanner(session);
    if (client && strncmp(client, "SSH-2.0-libssh2", 15) == 0)
        return SSH_AUTH_DENIED;
    return log_in(arg, user);
}

/* What it is, a placeholder or anything else, is worth nothing here. */
static int on_password(ssh_session session UNUSED, const char *user, const char *password UNUSED,
                       void *arg)
{
    return log_in(arg, user);
}

/* So is a key: a client that has one of its own asks with that alone, and may never ask for
 * nothing. At first it only asks whether that would do. */
static int on_key(ssh_session session UNUSED, const char *user, ssh_key key UNUSED, char state,
                  void *arg)
{
    if (state == SSH_PUBLICKEY_STATE_VALID)
        return log_in(arg, user);
    return state == SSH_PUBLICKEY_STATE_NONE ? SSH_AUTH_SUCCESS : SSH_AUTH_DENIED;
}

static ssh_channel on_open(ssh_session session UNUSED, void *arg)
{
    struct ssh_connection *c = arg;
    return c->n_channels < SSH_CHANNELS_MAX ? ssh_channel_new_of(c) : NULL;
}

/* ---- what is refused: 1 lets libssh say so ---- */

static const char *name_of(ssh_message m)
{
    int type = ssh_message_type(m), sub = ssh_message_subtype(m);
    if (type == SSH_REQUEST_GLOBAL)
        return "forwarding of a port back";
    if (type == SSH_REQUEST_CHANNEL_OPEN)
        return sub == SSH_CHANNEL_SESSION ? NULL : "a channel of another kind";
    return type == SSH_REQUEST_CHANNEL && sub == SSH_CHANNEL_REQUEST_X11 ? "forwarding of X11"
                                                                         : NULL;
}

static int on_message(ssh_session session UNUSED, ssh_message m, void *arg)
{
    if (ssh_message_type(m) == SSH_REQUEST_CHANNEL_OPEN &&
        ssh_message_subtype(m) == SSH_CHANNEL_DIRECT_TCPIP)
        return ssh_forward_open(arg, m) < 0;
    const char *what = name_of(m);
    if (what)
        ssh_refuse_other(arg, "ssh_forwarding", what);
    return 1;
}

static void on_global(ssh_session session UNUSED, ssh_message m, void *arg)
{
    if (ssh_message_subtype(m) != SSH_GLOBAL_REQUEST_KEEPALIVE) /* any answer will do */
        ssh_refuse_other(arg, "ssh_forwarding", "forwarding of a port back");
    ssh_message_reply_default(m);
}

/* ---- turns ---- */

/* "SSH-2.0-NAME", if it has come: RFC 4253 4.2 wants the name of its software, as OpenSSH does. */
static bool is_named(ssh_session session)
{
    const char *said = ssh_get_clientbanner(session),
               *at = said && strlen(said) > 4 ? strchr(said + 4, '-') : NULL;
    return said == NULL || (at && at[1] > ' ');
}

static int exchange(struct ssh_connection *c)
{
    int r = ssh_handle_key_exchange(c->session);
    if ((r != SSH_OK && r != SSH_AGAIN) || !is_named(c->session))
        return -1;
    c->exchanged = r == SSH_OK;
    return 0;
}

static void on_turn(void *arg, bool late)
{
    struct ssh_connection *c = arg;
    struct ssh_channel_of *h, *next;
    const struct limits *l = &c->of->front->limits;
    int r = late ? -1 : ssh_pump_run(c->pump);
    if (r == 0 && !c->exchanged)
        r = exchange(c);
    if (r == 0 && c->why[0]) { /* before a channel ends for that */
        (void)ssh_send_debug(c->session, c->why, 1);
        c->why[0] = 0;
    }
    for (h = TAILQ_FIRST(&c->channels); h; h = next) {
        next = TAILQ_NEXT(h, link);
        if (r == 0)
            ssh_channel_turn(h);
        if (h->state == CHANNEL_CLOSED)
            ssh_channel_drop(h);
    }
    if (r == 0)
        r = ssh_pump_run(c->pump); /* what was just written */
    if (r < 0) {
        connection_free(c);
        return;
    }
    if (c->user[0])
        ssh_pump_deadline(c->pump, c->n_channels ? l->tunnel_seconds : l->idle_seconds);
}

static int set_up(struct ssh_connection *c, int fd)
{
    struct front *f = c->of->front;
    c->session = ssh_new();
    if (c->session == NULL || ssh_bind_accept_fd(c->of->bind, c->session, fd) != SSH_OK)
        return -1;
    ssh_set_blocking(c->session, 0);
    c->server =
        (struct ssh_server_callbacks_struct){.userdata = c,
                                             .auth_none_function = on_none,
                                             .auth_password_function = on_password,
                                             .auth_pubkey_function = on_key,
                                             .channel_open_request_session_function = on_open};
    c->common = (struct ssh_callbacks_struct){.userdata = c, .global_request_function = on_global};
    ssh_callbacks_init(&c->server);
    ssh_callbacks_init(&c->common);
    ssh_set_auth_methods(c->session, SSH_AUTH_METHOD_NONE | SSH_AUTH_METHOD_PASSWORD |
                                         SSH_AUTH_METHOD_PUBLICKEY);
    ssh_set_message_callback(c->session, on_message, c);
    if (ssh_set_server_callbacks(c->session, &c->server) != SSH_OK ||
        ssh_set_callbacks(c->session, &c->common) != SSH_OK || exchange(c) < 0)
        return -1;
    c->pump = ssh_pump_new(f->base, c->session, fd, on_turn, c);
    if (c->pump == NULL)
        return -1;
    ssh_pump_deadline(c->pump, f->limits.head_seconds);
    ssh_pump_soon(c->pump);
    return 0;
}

void ssh_connection_new(struct ssh_front *of, const struct authority *at, int fd)
{
    struct ssh_connection *c =
        of->n_connections < SSH_CONNECTIONS_MAX ? calloc(1, sizeof *c) : NULL;
    if (c == NULL) {
        close(fd);
        return;
    }
    c->of = of;
    c->at = *at;
    TAILQ_INIT(&c->channels);
    LIST_INSERT_HEAD(&of->connections, c, link);
    of->n_connections++;
    if (set_up(c, fd) < 0) {
        proc_log("a connection could not be begun: %s",
                 c->session ? ssh_get_error(c->session) : "out of memory");
        connection_free(c);
    }
}
