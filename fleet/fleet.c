/* The role that alone speaks to the database by which hosts share budgets: it says to it what this
 * host's dialer holds and wants, and tells the dialer what the database says; and it carries notes
 * of controllers (notes.h). It holds no share
 * itself and decides nothing: whether a lease lasts, the dialer's clock says; how much a host may
 * have, the database does; never more than the limit, the dialer. */
#include "budget.h"
#include "crypto_text.h"
#include "database.h"
#include "dial_client.h"
#include "heads.h"
#include "io.h"
#include "notes.h"
#include "peer.h"
#include "proc.h"
#include "policy_message.h"
#include "request_limits.h"
#include "role_run.h"
#include "roots.h"
#include "secret.h"
#include "secret_client.h"
#include "held_shares.h"
#include "sweep.h"
#include "wire.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    HOLDER = 32,
    NODE_MAX = 64,
    DAY = 86400,
    LEAVE_MS = 1000,
    WANTED_MS = 20,
    RETRY_SECONDS = 1,
};

static const uint64_t most = UINT64_C(1) << 50;

struct fleet {
    struct event_base *base;
    struct ipc *control, *dialer; /* dialer: what it asks of shares; NULL: it is not there */
    struct limits limits;
    struct database_means means;
    struct database_place place;
    struct database *database;
    struct sweep *sweep;
    struct notes *notes;
    char node[NODE_MAX + 1];
    char holder[HOLDER + 1]; /* "": the dialer has not said it */
    bool known, registered;
    uint32_t channel; /* the dialer's */
    uint32_t dialers; /* that were here before: each begins to number what it asks */
    uint32_t hold;
    uint64_t epoch;   /* of this connection: what an older one still says counts no more */
    uint32_t entered; /* how often it was asked to enter: the last answer counts */
    bool entering;    /* and it has not come */
    bool there;       /* the tables are */
    bool retrying;
    bool leaving, ready, wanted;
    struct heads *heads;
    struct held_shares *shares;
};

/* ---- to the dialer ---- */

static void say(struct fleet *f, uint16_t type)
{
    struct msg m;
    if (f->dialer == NULL)
        return;
    msg_init(&m, type);
    (void)ipc_send(f->dialer, &m);
}

static void say_share(struct fleet *f, uint32_t number, uint64_t held)
{
    struct msg m;
    held_shares_answered(f->shares, number, held);
    if (f->dialer == NULL)
        return;
    msg_init(&m, W_FLEET_SHARE);
    msg_put_u32(&m, number);
    msg_put_u64(&m, held);
    (void)ipc_send(f->dialer, &m);
}

static void lost(struct fleet *f)
{
    f->registered = false;
    f->holder[0] = 0; /* the dialer says another one */
    held_shares_clear(f->shares);
    say(f, W_FLEET_LOST);
}

/* ---- holders ---- */

/* Once all that was asked has been said and the dialer is gone, or it takes too long. */
static void maybe_end(struct fleet *f)
{
    if (f->leaving && f->dialer == NULL && (f->database == NULL || database_open(f->database) == 0))
        event_base_loopbreak(f->base);
}

/* The last line of an answer; n 0: there is none. */
static struct slice last_line(struct slice rows)
{
    ssize_t end;
    struct slice line = SLICE("");
    while ((end = slice_find(rows, '\n')) >= 0) {
        line = (struct slice){rows.p, (size_t)end};
        rows = (struct slice){rows.p + end + 1, rows.n - (size_t)end - 1};
    }
    return line;
}

static void retry_soon(struct fleet *f);

static void on_registered(void *arg, const struct database_tag *tag, bool ok, struct slice rows)
{
    struct fleet *f = arg;
    if (tag->number != f->entered)
        return; /* it was asked again since, and has another epoch */
    f->entering = false;
    if (!ok)
        retry_soon(f);
    if (!ok || f->holder[0] == 0)
        return;
    if (slice_u64(last_line(rows), most, &f->epoch) < 0) {
        lost(f);
        return;
    }
    f->registered = f->known = true;
    say(f, W_FLEET_UP);
}

/* A name that the database has had and has no more was given up: nothing is made of it again. */
static void enter(struct fleet *f)
{
    struct database_tag tag = {.number = ++f->entered};
    char text[600];
    f->registered = f->entering = false;
    if (f->holder[0] == 0 || f->dialer == NULL || !database_is_up(f->database))
        return;
    if (f->known)
        snprintf(text, sizeof text,
                 "UPDATE durward_holder SET epoch = epoch + 1, hold = %u WHERE id = '%s' AND NOT "
                 "gone RETURNING epoch::text",
                 f->hold, f->holder);
    else
        snprintf(text, sizeof text,
                 "INSERT INTO durward_holder AS h (id, node, epoch, beat, hold) VALUES ('%s', "
                 "'%s', 1, 0, %u) ON CONFLICT (id) DO UPDATE SET epoch = h.epoch + 1 WHERE NOT "
                 "h.gone RETURNING epoch::text",
                 f->holder, f->node, f->hold);
    f->entering = true;
    database_ask(f->database, text, on_registered, f, &tag);
}

/* ---- what the dialer says ---- */

static int on_holder(struct fleet *f, struct msg *m)
{
    uint8_t known;
    if (msg_get_str(m, f->holder, sizeof f->holder) < 0 || msg_get_u8(m, &known) < 0 ||
        msg_get_u32(m, &f->hold) < 0 || msg_end(m) < 0 || known > 1 || f->hold > DAY ||
        strspn(f->holder, "0123456789abcdef") != HOLDER) {
        f->holder[0] = 0;
        return -1;
    }
    f->known = known;
    enter(f);
    return 0;
}

static void on_beaten(void *arg, const struct database_tag *tag, bool ok, struct slice rows)
{
    struct fleet *f = arg;
    struct msg m;
    if (!ok || !f->registered)
        return;
    if (rows.n == 0) {
        lost(f);
        return;
    }
    if (f->dialer == NULL)
        return;
    msg_init(&m, W_FLEET_BEATEN);
    msg_put_u32(&m, tag->number);
    (void)ipc_send(f->dialer, &m);
}

static int on_beat(struct fleet *f, struct msg *m)
{
    struct database_tag tag = {0};
    char text[300];
    if (msg_get_u32(m, &tag.number) < 0 || msg_end(m) < 0)
        return -1;
    if (!f->registered)
        return 0;
    snprintf(text, sizeof text,
             "UPDATE durward_holder SET beat = beat + 1 WHERE id = '%s' AND epoch = %llu AND NOT "
             "gone RETURNING beat::text",
             f->holder, (unsigned long long)f->epoch);
    database_ask(f->database, text, on_beaten, f, &tag);
    return 0;
}

static void on_asked(void *arg, const struct database_tag *tag, bool ok, struct slice rows)
{
    struct fleet *f = arg;
    uint64_t held = 0;
    struct slice line = last_line(rows);
    /* Where the connection ended, nobody knows what became of it: after W_FLEET_UP the dialer says
     * again what it holds. And another dialer has other numbers. */
    if ((!ok && !database_is_up(f->database)) || tag->of != f->dialers) {
        maybe_end(f);
        return;
    }
    if (!ok || !f->registered) {
        say_share(f, tag->number, tag->held);
        maybe_end(f);
        return;
    }
    if (!slice_starts(rows, SLICE("h\n"))) {
        lost(f);
        return;
    }
    (void)slice_u64(line, most, &held);
    say_share(f, tag->number, held);
    if (held < tag->need)
        database_ask(f->database, "NOTIFY durward_fleet", NULL, NULL, NULL);
    maybe_end(f);
}

/* One after another for each limit: who asks sees what all others hold. What this host says that it
 * holds it keeps, whatever others have. */
static const char ask_text[] =
    "SELECT 'h' FROM durward_holder WHERE id = '%1$s' AND epoch = %2$llu AND NOT gone FOR UPDATE; "
    "SELECT '' FROM pg_advisory_xact_lock(hashtextextended('%3$s', 0)); "
    "INSERT INTO durward_share AS s (name, holder, seconds, share) "
    "SELECT '%3$s', '%1$s', %4$u, greatest(%5$llu::bigint, least(%6$llu::bigint, %7$llu::bigint - "
    "coalesce((SELECT sum(o.share) FROM durward_share o WHERE o.name = '%3$s' AND o.holder <> "
    "'%1$s'), 0)::bigint)) WHERE EXISTS (SELECT 1 FROM durward_holder WHERE id = '%1$s' AND epoch "
    "= %2$llu AND NOT gone) "
    "ON CONFLICT (name, holder) DO UPDATE SET share = EXCLUDED.share RETURNING share::text";
static const char drop_text[] =
    "SELECT 'h' FROM durward_holder WHERE id = '%1$s' AND epoch = %2$llu AND NOT gone FOR UPDATE; "
    "DELETE FROM durward_share WHERE name = '%3$s' AND holder = '%1$s' AND EXISTS (SELECT 1 FROM "
    "durward_holder WHERE id = '%1$s' AND epoch = %2$llu AND NOT gone) RETURNING '0'";

static int on_ask(struct fleet *f, struct msg *m)
{
    struct database_tag tag = {.of = f->dialers};
    struct share_name name;
    char text[2048];
    uint64_t amount, want;
    if (msg_get_u32(m, &tag.number) < 0 || share_name_get(m, &name) < 0 ||
        msg_get_u64(m, &amount) < 0 || msg_get_u64(m, &tag.held) < 0 ||
        msg_get_u64(m, &tag.need) < 0 || msg_get_u64(m, &want) < 0 || msg_end(m) < 0 ||
        amount > most || tag.held > most || want > most)
        return -1;
    held_shares_asked(f->shares, &name, amount, tag.held, tag.number);
    if (!f->registered) {
        say_share(f, tag.number, tag.held);
        return 0;
    }
    if (tag.held == 0 && want == 0)
        snprintf(text, sizeof text, drop_text, f->holder, (unsigned long long)f->epoch, name.text);
    else
        snprintf(text, sizeof text, ask_text, f->holder, (unsigned long long)f->epoch, name.text,
                 name.seconds, (unsigned long long)tag.held, (unsigned long long)want,
                 (unsigned long long)amount);
    database_ask(f->database, text, on_asked, f, &tag);
    return 0;
}

static void on_left(void *arg, const struct database_tag *tag UNUSED, bool ok UNUSED,
                    struct slice rows UNUSED)
{
    maybe_end(arg);
}

static int on_leave(struct fleet *f, struct msg *m)
{
    char text[200];
    if (msg_end(m) < 0)
        return -1;
    if (!f->registered)
        return 0;
    snprintf(text, sizeof text,
             "UPDATE durward_holder SET gone = true WHERE id = '%s' AND epoch = %llu", f->holder,
             (unsigned long long)f->epoch);
    database_ask(f->database, text, on_left, f, NULL);
    f->registered = false;
    f->holder[0] = 0;
    return 0;
}

static int on_dialer(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct fleet *f = arg;
    switch (m->type) {
    case W_FLEET_HOLDER:
        return on_holder(f, m);
    case W_FLEET_BEAT:
        return on_beat(f, m);
    case W_FLEET_ASK:
        return on_ask(f, m);
    case W_FLEET_LEAVE:
        return on_leave(f, m);
    default:
        return -1;
    }
}

static void drop_dialer(struct fleet *f)
{
    ipc_free(f->dialer);
    f->dialer = NULL;
    f->dialers++;
    f->registered = false;
    f->holder[0] = 0;
    held_shares_clear(f->shares);
}

static void on_dialer_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    struct fleet *f = arg;
    drop_dialer(f);
    peer_lost(f->control, f->channel);
    maybe_end(f);
}

/* ---- the database ---- */

static const char tables[] =
    "SELECT '' FROM pg_advisory_xact_lock(1685418354, 2); "
    "CREATE TABLE IF NOT EXISTS durward_holder (id text PRIMARY KEY, node text NOT NULL, epoch "
    "bigint NOT NULL, beat bigint NOT NULL, hold bigint NOT NULL, gone boolean NOT NULL DEFAULT "
    "false); "
    "CREATE TABLE IF NOT EXISTS durward_share (name text NOT NULL, holder text NOT NULL REFERENCES "
    "durward_holder ON DELETE CASCADE, seconds bigint NOT NULL, share bigint NOT NULL, PRIMARY KEY "
    "(name, holder)); "
    "CREATE INDEX IF NOT EXISTS durward_share_holder ON durward_share (holder)";

static void on_begun(void *arg, const struct database_tag *tag UNUSED, bool ok,
                     struct slice rows UNUSED)
{
    struct fleet *f = arg;
    f->there = ok;
    if (ok)
        enter(f);
    else
        retry_soon(f);
}

/* A login that may not create needs tables that are there. */
static void on_looked(void *arg, const struct database_tag *tag, bool ok, struct slice rows)
{
    struct fleet *f = arg;
    if (!ok || slice_eq_str(rows, "2\n"))
        on_begun(f, tag, ok, rows);
    else
        database_ask(f->database, tables, on_begun, f, tag);
}

static void look(struct fleet *f)
{
    f->there = false;
    database_ask(f->database,
                 "LISTEN durward_fleet; SELECT ((to_regclass('durward_holder') IS NOT NULL)::int + "
                 "(to_regclass('durward_share') IS NOT NULL)::int)::text",
                 on_looked, f, NULL);
}

static void on_retry(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct fleet *f = arg;
    f->retrying = false;
    if (f->leaving || !database_is_up(f->database))
        return;
    if (!f->there)
        look(f);
    else if (!f->registered && !f->entering)
        enter(f);
}

/* A server that is not yet the primary, is full or too slow refuses, and keeps the connection. */
static void retry_soon(struct fleet *f)
{
    static const struct timeval soon = {RETRY_SECONDS, 0};
    if (!f->retrying && event_base_once(f->base, -1, EV_TIMEOUT, on_retry, f, &soon) == 0)
        f->retrying = true;
}

static void on_up(void *arg)
{
    struct fleet *f = arg;
    proc_log("the database of the fleet is there");
    sweep_begin(f->sweep);
    notes_begin(f->notes);
    look(f);
    heads_begin(f->heads);
}

static void on_down(void *arg)
{
    struct fleet *f = arg;
    f->registered = false;
    maybe_end(f);
}

static void on_wanted(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct fleet *f = arg;
    f->wanted = false;
    say(f, W_FLEET_WANTED);
}

/* They come in swarms, and whoever may write to the database sends as many as he likes. */
static void on_notified(void *arg, struct slice channel)
{
    static const struct timeval soon = {0, WANTED_MS * 1000};
    struct fleet *f = arg;
    notes_notified(f->notes, channel);
    if (slice_eq_str(channel, "durward_fleet") && !f->wanted &&
        event_base_once(f->base, -1, EV_TIMEOUT, on_wanted, f, &soon) == 0)
        f->wanted = true;
}

/* ---- the role ---- */

static int on_peer(struct fleet *f, struct msg *m)
{
    struct peer far;
    if (peer_get(m, &far) < 0)
        return -1;
    if (far.kind == ROLE_LOGGER) {
        heads_attach(f->heads, far.fd, far.channel);
        return 0;
    }
    if (far.kind == ROLE_VAULT) {
        secret_client_attach(f->means.secrets, far.fd, far.channel);
        return 0;
    }
    if (far.kind == ROLE_CONTROLLER) {
        notes_attach(f->notes, far.fd, far.channel);
        return 0;
    }
    if (far.kind == ROLE_DIALER && strcmp(far.policy, PEER_FLEET) == 0) {
        dial_client_attach(f->means.dial, far.fd, far.channel);
        return 0;
    }
    if (far.kind == ROLE_DIALER) {
        drop_dialer(f);
        f->channel = far.channel;
        f->dialer = ipc_new(f->base, far.fd, on_dialer, on_dialer_closed, f);
        return 0;
    }
    close(far.fd);
    return -1;
}

/* As it stands in a text of SQL. */
static void name_node(struct fleet *f)
{
    if (gethostname(f->node, NODE_MAX) < 0)
        f->node[0] = 0;
    for (char *p = f->node; *p; p++)
        if (!ascii_is_alnum(*p) && *p != '.' && *p != '-')
            *p = '_';
}

static int load_place(struct fleet *f, struct msg *m)
{
    char host[HOST_TEXT_MAX], text[HOST_TEXT_MAX + 2];
    uint32_t port;
    if (msg_get_str(m, host, sizeof host) < 0 || msg_get_u32(m, &port) < 0 || port == 0 ||
        port > 65535 || msg_get_str(m, f->place.name, sizeof f->place.name) < 0 ||
        msg_get_str(m, f->place.login, sizeof f->place.login) < 0)
        return -1;
    snprintf(text, sizeof text, strchr(host, ':') ? "[%s]" : "%s", host);
    f->place.at.scheme = SCHEME_POSTGRES;
    f->place.at.port = (uint16_t)port;
    f->place.dial_seconds = f->limits.dial_seconds;
    return authority_host(&f->place.at, slice_str(text));
}

static int load_roots(struct fleet *f, int fd, struct err *err)
{
    struct roots *roots = roots_load(fd, err);
    close(fd);
    f->means.tls = io_tls_client_ctx();
    bool good = roots && f->means.tls;
    if (good)
        SSL_CTX_set1_cert_store(f->means.tls, roots_store(roots));
    roots_free(roots);
    return good ? 0 : err_wrap(err, "the roots");
}

static int fleet_load(void *self, struct msg *m, struct msg *ready UNUSED, struct err *err)
{
    struct fleet *f = self;
    static const struct database_owner owner_fns = {on_up, on_down, on_notified, NULL};
    struct database_owner owner = owner_fns;
    int fd;
    if (limits_get(m, &f->limits) < 0 || load_place(f, m) < 0 || msg_get_fd(m, &fd) < 0 ||
        load_roots(f, fd, err) < 0)
        return err->text[0] ? -1 : err_set(err, ERR_PARSE, "malformed W_INIT");
    name_node(f);
    owner.arg = f;
    f->means.base = f->base;
    f->means.dial = dial_client_new(f->base, f->limits.dial_seconds);
    f->means.secrets = secret_client_new(f->base);
    secret_unref(secret_alloc(1)); /* what secret memory needs is tried before the filter */
    if (f->means.dial && f->means.secrets)
        f->database = database_new(&f->means, &f->place, &owner);
    if (f->database)
        f->sweep = sweep_new(f->base, f->database);
    f->shares = held_shares_new();
    if (f->sweep && f->shares)
        f->notes = notes_new(f->base, f->database, f->control, f->shares);
    if (f->notes == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    dial_client_lost_to(f->means.dial, f->control);
    secret_client_lost_to(f->means.secrets, f->control);
    f->heads = heads_new(f->base, f->database, f->control);
    if (f->heads == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    return msg_end(m) < 0 ? err_set(err, ERR_PARSE, "malformed W_INIT") : 0;
}

static int fleet_confine(void *self UNUSED, struct err *err)
{
    return proc_confine(ROLE_FLEET, err);
}

static void fleet_begun(void *self)
{
    ((struct fleet *)self)->ready = true;
}

static const struct role_start role_steps = {
    .load = fleet_load, .confine = fleet_confine, .begun = fleet_begun};

static int on_control(struct ipc *ipc UNUSED, struct msg *m, void *arg)
{
    struct fleet *f = arg;
    if (m->type == W_INIT)
        return f->ready ? -1 : role_start(&role_steps, f, f->control, m);
    if (!f->ready)
        return -1;
    return m->type == W_PEER ? on_peer(f, m) : m->type == W_PEER_GONE ? 0 : -1;
}

static void on_late(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    event_base_loopbreak(((struct fleet *)arg)->base);
}

/* The dialer ends too, and gives back what this host does not use: that is said to the end. */
static void on_control_closed(struct ipc *ipc UNUSED, const char *why UNUSED, void *arg)
{
    static const struct timeval late = {LEAVE_MS / 1000, 0};
    struct fleet *f = arg;
    f->leaving = true;
    if (event_base_once(f->base, -1, EV_TIMEOUT, on_late, f, &late) < 0)
        event_base_loopbreak(f->base);
    maybe_end(f);
}

static struct ipc *fleet_open(void *self, struct event_base *base, int control_fd,
                              struct err *err UNUSED)
{
    struct fleet *f = self;
    f->base = base;
    f->control = ipc_new(base, control_fd, on_control, on_control_closed, f);
    return f->control;
}

static int fleet_leave(void *self, struct event_base *base)
{
    struct fleet *f = self;
    ipc_free(f->control);
    ipc_free(f->dialer);
    notes_free(f->notes);
    sweep_free(f->sweep);
    database_free(f->database);
    dial_client_free(f->means.dial);
    secret_client_free(f->means.secrets);
    heads_free(f->heads);
    held_shares_free(f->shares);
    SSL_CTX_free(f->means.tls);
    event_base_free(base);
    return 0;
}

int fleet_main(void);

int fleet_main(void)
{
    static const struct role_life life = {.role = ROLE_FLEET,
                                          .first = crypto_text_later,
                                          .counts = true,
                                          .open = fleet_open,
                                          .leave = fleet_leave};
    static struct fleet fleet;
    return role_run(&life, &fleet);
}
