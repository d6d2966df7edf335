/* Runs the signer: the control channel, the minting channels, and the turns in which each channel
 * gets one leaf. It mints one leaf on trial before the filter, while OpenSSL may still load what it
 * needs. */
#include "signer.h"

#include "assertion.h"
#include "broker.h"
#include "ca_key.h"
#include "crypto_text.h"
#include "ipc.h"
#include "meter.h"
#include "mint.h"
#include "mint_names.h"
#include "mint_policy.h"
#include "peer.h"
#include "proc.h"
#include "role_run.h"
#include "sandbox_ca.h"
#include "signing.h"
#include "trust_root.h"
#include "trust_sandbox.h"
#include "wire.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

enum {
    CHANNELS_MAX = 4096,
    ASKS_MAX = 1024,       /* of a channel, not answered yet: what an honest gate has at most */
    ANSWERS_MAX = 1 << 20, /* bytes a gate may leave unread before it is cut off */
    RATE_MAX = 10000,      /* rules/compile/limits.c */
    MILLION = 1000000,
    IDLE_SECONDS = 10, /* allowance is not gathered for longer */
};

enum signer_state { SIGNER_EMPTY, SIGNER_READY, SIGNER_ENDED };

struct ask {
    uint32_t req;
    char host[HOST_MAX];
    size_t host_len;
    unsigned char spki[MINT_SPKI_LEN];
    size_t spki_len;
    STAILQ_ENTRY(ask) link;
};

struct channel {
    struct signer *signer;
    struct ipc *ipc;
    uint32_t number;
    struct mint_right *right;
    struct signing *root;
    uint64_t allowance, since; /* millionths of a leaf; microseconds */
    STAILQ_HEAD(, ask) asks;
    unsigned n_asks;
    /* a gate has one key for all its leaves: it is checked and written once */
    unsigned char spki[MINT_SPKI_LEN];
    X509 *form;
    LIST_ENTRY(channel) link;
    TAILQ_ENTRY(channel) turn; /* while it has asks */
};

struct signer {
    struct event_base *base;
    struct ipc *control;
    enum signer_state state;
    bool confine;
    struct signing exported;
    struct signings own; /* of sandboxes */
    struct mint_names *names;
    unsigned hours, rate;
    unsigned channels;
    uint64_t minted;
    struct event *next;
    LIST_HEAD(, channel) list;
    TAILQ_HEAD(turns, channel) turns; /* who is next; one leaf, then the next channel's */
};

static void set_state(struct signer *s, enum signer_state to)
{
    ASSERT(to >= s->state);
    s->state = to;
    if (to == SIGNER_ENDED)
        event_base_loopbreak(s->base);
}

/* ---- channels ---- */

static void channel_free(struct channel *c)
{
    struct signer *s = c->signer;
    struct ask *k;
    if (c->n_asks)
        TAILQ_REMOVE(&s->turns, c, turn);
    while ((k = STAILQ_FIRST(&c->asks)) != NULL) {
        STAILQ_REMOVE_HEAD(&c->asks, link);
        free(k);
    }
    LIST_REMOVE(c, link);
    s->channels--;
    signing_drop(&s->own, c->root);
    mint_right_free(c->right);
    ipc_free(c->ipc);
    X509_free(c->form);
    free(c);
}

/* A gate counts by seconds of its own, of which two may touch: so twice a second's leaves may come
 * at once, and no more than `rate` a second after that (E9). */
static bool over_rate(struct channel *c)
{
    uint64_t now = meter_now(), rate = c->signer->rate, most = 2 * rate * MILLION;
    uint64_t spent = now - c->since;
    if (spent > (uint64_t)IDLE_SECONDS * MILLION)
        spent = (uint64_t)IDLE_SECONDS * MILLION;
    c->since = now;
    c->allowance += spent * rate;
    if (c->allowance > most)
        c->allowance = most;
    if (c->allowance < MILLION)
        return true;
    c->allowance -= MILLION;
    return false;
}

/* The form of the channel for this key. */
static X509 *form(struct channel *c, struct slice spki, struct err *err)
{
    if (c->form && spki.n == sizeof c->spki && memcmp(c->spki, spki.p, spki.n) == 0)
        return c->form;
    X509_free(c->form);
    c->form = NULL;
    EVP_PKEY *key = mint_policy_key(spki, err);
    if (key)
        c->form = mint_form(key, err);
    EVP_PKEY_free(key);
    if (c->form)
        memcpy(c->spki, spki.p, sizeof c->spki);
    return c->form;
}

/* The leaf is the channel's, until the next. */
static X509 *mint(struct signer *s, struct channel *c, const struct ask *k, struct err *err)
{
    struct authority a;
    struct slice host = {k->host, k->host_len}, spki = {(const char *)k->spki, k->spki_len};
    if (mint_policy_host(host, &a, err) < 0)
        return NULL;
    if (c->root == &s->exported && mint_right_check(c->right, s->names, &a, err) < 0)
        return NULL;
    X509 *leaf = form(c, spki, err);
    return leaf && mint_into(leaf, &c->root->issuer, &a, s->hours, time(NULL), err) == 0 ? leaf
                                                                                         : NULL;
}

static void answer(struct channel *c, uint32_t req, X509 *leaf, const struct err *err)
{
    struct signer *s = c->signer;
    unsigned char *der = NULL;
    int n = leaf ? i2d_X509(leaf, &der) : -1;
    struct msg m;
    meter_add(n > 0 ? METER_MINTS : METER_MINTS_REFUSED, 1);
    msg_init(&m, n > 0 ? W_MINTED : W_MINT_FAIL);
    msg_put_u32(&m, req);
    if (n > 0) {
        msg_put_bytes(&m, der, (size_t)n);
        msg_put_bytes(&m, c->root->der, c->root->len);
        s->minted++;
    } else {
        msg_put_str(&m, leaf ? "the leaf cannot be encoded" : err->text);
    }
    OPENSSL_free(der);
    ipc_send(c->ipc, &m);
}

/* ---- turns: one leaf of a channel, then the loop, then one of the next ---- */

static void plan_next(struct signer *s)
{
    static const struct timeval soon = {0, 0};
    if (!TAILQ_EMPTY(&s->turns) && !event_pending(s->next, EV_TIMEOUT, NULL))
        event_add(s->next, &soon);
}

static void on_next(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct signer *s = arg;
    struct channel *c = TAILQ_FIRST(&s->turns);
    struct err err = {0};
    if (c == NULL)
        return;
    struct ask *k = STAILQ_FIRST(&c->asks);
    STAILQ_REMOVE_HEAD(&c->asks, link);
    TAILQ_REMOVE(&s->turns, c, turn);
    if (--c->n_asks)
        TAILQ_INSERT_TAIL(&s->turns, c, turn);
    X509 *leaf = mint(s, c, k, &err);
    answer(c, k->req, leaf, &err);
    free(k);
    plan_next(s);
}

static void enqueue(struct channel *c, struct ask *k)
{
    STAILQ_INSERT_TAIL(&c->asks, k, link);
    if (c->n_asks++ == 0)
        TAILQ_INSERT_TAIL(&c->signer->turns, c, turn);
    plan_next(c->signer);
}

static struct ask *ask_new(uint32_t req, struct slice host, struct slice spki)
{
    struct ask *k = calloc(1, sizeof *k);
    if (k == NULL)
        return NULL;
    k->req = req;
    k->host_len = host.n;
    k->spki_len = spki.n;
    memcpy(k->host, host.p, host.n);
    memcpy(k->spki, spki.p, spki.n);
    return k;
}

static int on_mint(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct channel *c = arg;
    uint32_t req;
    struct slice host, spki;
    struct err err = {0};
    if (m->type != W_MINT || msg_get_u32(m, &req) < 0 || msg_get_slice(m, HOST_MAX, &host) < 0 ||
        msg_get_slice(m, MINT_SPKI_LEN, &spki) < 0 || msg_end(m) < 0)
        return -1;
    if (ipc_queued(c->ipc) > ANSWERS_MAX)
        return -1;
    bool over = over_rate(c) || c->n_asks >= ASKS_MAX;
    struct ask *k = over ? NULL : ask_new(req, host, spki);
    if (k) {
        enqueue(c, k);
        return 0;
    }
    err_set(&err, ERR_LIMIT, over ? "more than %u leaves a second were asked for" : "out of memory",
            c->signer->rate);
    answer(c, req, NULL, &err);
    return 0;
}

static void on_channel_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    channel_free(arg);
}

/* Which CA and which names follow from what the parent says of the channel; NULL: it makes no
 * sense, or there is no room. */
static struct channel *channel_new(struct signer *s, const struct peer *far, struct err *err)
{
    struct mint_right *right = mint_right_new(far->extra, far->policy);
    bool own = right && mint_right_scope(right) == MINT_SANDBOX;
    struct channel *c = right && own == (far->sandbox[0] != 0) ? calloc(1, sizeof *c) : NULL;
    struct signing *r = c == NULL ? NULL
                        : own     ? signing_of(&s->own, far->sandbox, err)
                                  : &s->exported;
    if (r == NULL) {
        mint_right_free(right);
        free(c);
        return NULL;
    }
    signing_hold(&s->own, r);
    c->signer = s;
    c->number = far->channel;
    c->right = right;
    c->root = r;
    c->since = meter_now();
    c->allowance = 2 * (uint64_t)s->rate * MILLION;
    STAILQ_INIT(&c->asks);
    LIST_INSERT_HEAD(&s->list, c, link);
    s->channels++;
    return c;
}

/* Without a channel that gate sees its end of it closed, and mints nothing. */
static int on_peer(struct signer *s, struct msg *m)
{
    struct peer far;
    struct err err = {0};
    if (peer_get(m, &far) < 0)
        return -1;
    if (far.kind != ROLE_GATE && far.kind != ROLE_CONTROLLER && !broker_is_front(far.kind)) {
        close(far.fd);
        return -1;
    }
    struct channel *c = s->channels < CHANNELS_MAX ? channel_new(s, &far, &err) : NULL;
    if (c == NULL) {
        proc_log("a channel of the signer: %s", err.text[0] ? err.text : "not to be opened");
        close(far.fd);
        return 0;
    }
    c->ipc = ipc_new(s->base, far.fd, on_mint, on_channel_closed, c);
    if (c->ipc == NULL)
        channel_free(c);
    return 0;
}

static int on_peer_gone(struct signer *s, struct msg *m)
{
    uint32_t number;
    if (msg_get_u32(m, &number) < 0 || msg_end(m) < 0)
        return -1;
    struct channel *c, *next;
    for (c = LIST_FIRST(&s->list); c; c = next) {
        next = LIST_NEXT(c, link);
        if (c->number == number)
            channel_free(c);
    }
    return 0;
}

/* Mint one leaf and throw it away: proves that this CA can sign, and makes OpenSSL load all that it
 * loads lazily while that is still allowed. */
static int rehearse(struct signer *s, struct err *err)
{
    struct authority a = {.scheme = SCHEME_HTTPS, .kind = HOST_NAME, .host = "durward.invalid"};
    EVP_PKEY *key = EVP_EC_gen("P-256");
    if (key == NULL)
        return err_set(err, ERR_INTERNAL, "no EC key can be made");
    const struct mint_issuer *issuer = &s->exported.issuer;
    X509 *leaf = mint_leaf(issuer, &a, key, s->hours, time(NULL), err);
    EVP_PKEY *by = leaf ? X509_get0_pubkey(issuer->cert) : NULL;
    int ok = by && X509_verify(leaf, by) == 1;
    X509_free(leaf);
    EVP_PKEY_free(key);
    return ok ? 0 : err_wrap(err, "the CA cannot sign");
}

/* The same for the CAs of sandboxes. */
static int rehearse_root(struct signer *s, struct err *err)
{
    struct mint_issuer made;
    struct buf text;
    if (sandbox_ca_make(s->own.secret, "rehearsal", time(NULL), &made, err) < 0)
        return -1;
    buf_init(&text, 2 * TRUST_ROOT_MAX);
    int r = trust_root_put(made.cert, &text, err);
    buf_free(&text);
    mint_issuer_clear(&made);
    return r;
}

/* fds: key, certificate, the secret of the sandboxes' CAs. */
static int start(struct signer *s, bool create, const int fds[3], struct err *err)
{
    time_t now = time(NULL);
    struct mint_issuer *issuer = &s->exported.issuer;
    if (create) {
        if (mint_issuer_make(issuer, now, err) < 0 || ca_key_store(issuer, fds[0], fds[1], err) < 0)
            return -1;
    } else if (ca_key_load(fds[0], fds[1], now, issuer, err) < 0) {
        return -1;
    }
    if (signing_encode(&s->exported, err) < 0 || sandbox_ca_secret(fds[2], s->own.secret, err) < 0)
        return -1;
    return rehearse(s, err) < 0 ? -1 : rehearse_root(s, err);
}

static int put_certificate(const struct signer *s, struct msg *to, struct err *err)
{
    struct buf pem;
    buf_init(&pem, CA_FILE_MAX);
    int r = ca_key_cert_pem(s->exported.issuer.cert, &pem, err);
    msg_put_slice(to, buf_slice(&pem));
    buf_free(&pem);
    return r;
}

static int read_init(struct signer *s, struct msg *m, uint8_t *create, int fds[3], struct err *err)
{
    char reserved[HOST_TEXT_MAX];
    uint32_t hours, rate;
    if (msg_get_u8(m, create) < 0 || msg_get_u32(m, &hours) < 0 || msg_get_u32(m, &rate) < 0 ||
        msg_get_str(m, reserved, sizeof reserved) < 0)
        return -1;
    for (int i = 0; i < 3; i++)
        if (msg_get_fd(m, &fds[i]) < 0)
            return -1;
    if (msg_end(m) < 0 || *create > 1 || hours < 1 || hours > MINT_HOURS_MAX || rate < 1 ||
        rate > RATE_MAX)
        return -1;
    s->hours = hours;
    s->rate = rate;
    return mint_names_reserve(s->names, reserved, err);
}

static int signer_load(void *self, struct msg *m, struct msg *ready, struct err *err)
{
    struct signer *s = self;
    uint8_t create = 0;
    int fds[3] = {-1, -1, -1};
    int r = read_init(s, m, &create, fds, err);
    if (r == 0 && (start(s, create, fds, err) < 0 || put_certificate(s, ready, err) < 0))
        r = -1;
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    return r;
}

static int signer_confine(void *self, struct err *err)
{
    const struct signer *s = self;
    return s->confine ? proc_confine(ROLE_SIGNER, err) : 0;
}

static void signer_begun(void *self)
{
    set_state(self, SIGNER_READY);
}

static const struct role_start role_steps = {
    .load = signer_load, .confine = signer_confine, .begun = signer_begun};

/* The parent asks for a sandbox's root. Without one it gets none, and the sandbox does not start.
 */
static int on_root(struct signer *s, struct msg *m)
{
    char sandbox[PEER_NAME_MAX + 1];
    struct err err = {0};
    struct buf text;
    struct msg out;
    if (msg_get_str(m, sandbox, sizeof sandbox) < 0 || msg_end(m) < 0)
        return -1;
    buf_init(&text, 2 * TRUST_ROOT_MAX);
    struct signing *r = signing_of(&s->own, sandbox, &err);
    if (r == NULL || trust_root_put(r->issuer.cert, &text, &err) < 0) {
        proc_log("%s: %s", sandbox, err.text);
        buf_clear(&text);
    }
    msg_init(&out, W_ROOT);
    msg_put_str(&out, sandbox);
    msg_put_slice(&out, buf_slice(&text));
    buf_free(&text);
    return ipc_send(s->control, &out);
}

static int on_policy(struct signer *s, struct msg *m)
{
    struct err err = {0};
    int r = mint_names_policy(s->names, m, &err);
    if (r > 0)
        proc_log("the signer keeps the policy that it had: %s", err.text);
    return r < 0 ? -1 : 0;
}

static int on_control(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct signer *s = arg;
    if (s->state == SIGNER_EMPTY)
        return m->type == W_INIT ? role_start(&role_steps, s, s->control, m) : -1;
    if (s->state != SIGNER_READY)
        return -1;
    switch (m->type) {
    case W_PEER:
        return on_peer(s, m);
    case W_PEER_GONE:
        return on_peer_gone(s, m);
    case W_POLICY:
        return on_policy(s, m);
    case W_ROOT:
        return on_root(s, m);
    default:
        return -1;
    }
}

static void on_control_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    set_state(arg, SIGNER_ENDED);
}

struct signer *signer_new(struct event_base *base, int control_fd, bool confine)
{
    struct signer *s = calloc(1, sizeof *s);
    if (s == NULL) {
        close(control_fd);
        return NULL;
    }
    LIST_INIT(&s->list);
    signings_init(&s->own);
    TAILQ_INIT(&s->turns);
    s->base = base;
    s->confine = confine;
    s->names = mint_names_new();
    s->next = event_new(base, -1, 0, on_next, s);
    s->control = ipc_new(base, control_fd, on_control, on_control_closed, s);
    if (s->control && s->names && s->next)
        return s;
    signer_free(s);
    return NULL;
}

void signer_free(struct signer *s)
{
    if (s == NULL)
        return;
    struct channel *c;
    while ((c = LIST_FIRST(&s->list)) != NULL)
        channel_free(c);
    ipc_free(s->control);
    signing_clear(&s->exported);
    mint_names_free(s->names);
    if (s->next)
        event_free(s->next);
    signings_clear(&s->own);
    free(s);
}

unsigned signer_channels(const struct signer *s)
{
    return s->channels;
}

uint64_t signer_minted(const struct signer *s)
{
    return s->minted;
}

static struct ipc *signer_open(void *self, struct event_base *base, int control_fd,
                               struct err *err UNUSED)
{
    struct signer *s = *(struct signer **)self = signer_new(base, control_fd, true);
    return s ? s->control : NULL;
}

static int signer_leave(void *self, struct event_base *base)
{
    signer_free(*(struct signer **)self);
    event_base_free(base);
    return 0;
}

int signer_main(void)
{
    static const struct role_life life = {.role = ROLE_SIGNER,
                                          .first = crypto_text_later,
                                          .counts = true,
                                          .open = signer_open,
                                          .leave = signer_leave};
    struct signer *s = NULL;
    return role_run(&life, &s);
}
