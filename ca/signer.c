#include "signer.h"

#include "ca_key.h"
#include "ipc.h"
#include "meter.h"
#include "mint.h"
#include "mint_policy.h"
#include "peer.h"
#include "proc.h"
#include "wire.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

enum {
    CHANNELS_MAX = 4096,
    /* A gate caps itself at limits.mints; this holds one that does not (E9). */
    MINTS_PER_SECOND = 1000,
    ANSWERS_MAX = 1 << 20, /* bytes a gate may leave unread before it is cut off */
};

enum signer_state { SIGNER_EMPTY, SIGNER_READY, SIGNER_ENDED };

struct channel {
    struct signer *signer;
    struct ipc *ipc;
    uint32_t number;
    time_t second; /* the second that `minted` counts in */
    unsigned minted;
    /* a gate has one key for all its leaves: it is checked and written once */
    unsigned char spki[MINT_SPKI_LEN];
    X509 *form;
    LIST_ENTRY(channel) link;
};

struct signer {
    struct event_base *base;
    struct ipc *control;
    enum signer_state state;
    bool confine;
    struct mint_issuer issuer;
    unsigned char *issuer_der;
    size_t issuer_len;
    unsigned days;
    unsigned channels;
    uint64_t minted;
    LIST_HEAD(, channel) list;
};

static void set_state(struct signer *s, enum signer_state to)
{
    s->state = to;
    if (to == SIGNER_ENDED)
        event_base_loopbreak(s->base);
}

static void channel_free(struct channel *c)
{
    LIST_REMOVE(c, link);
    c->signer->channels--;
    ipc_free(c->ipc);
    X509_free(c->form);
    free(c);
}

static time_t monotonic_seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec;
}

static bool over_rate(struct channel *c)
{
    time_t now = monotonic_seconds();
    if (now != c->second) {
        c->second = now;
        c->minted = 0;
    }
    return ++c->minted > MINTS_PER_SECOND;
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
static X509 *mint(struct signer *s, struct channel *c, struct slice host, struct slice spki,
                  struct err *err)
{
    struct authority a;
    if (over_rate(c)) {
        err_set(err, ERR_LIMIT, "more than %d leaves a second were asked for", MINTS_PER_SECOND);
        return NULL;
    }
    X509 *leaf = mint_policy_host(host, &a, err) < 0 ? NULL : form(c, spki, err);
    return leaf && mint_into(leaf, &s->issuer, &a, s->days, time(NULL), err) == 0 ? leaf : NULL;
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
        msg_put_bytes(&m, s->issuer_der, s->issuer_len);
        s->minted++;
    } else {
        msg_put_str(&m, leaf ? "the leaf cannot be encoded" : err->text);
    }
    OPENSSL_free(der);
    ipc_send(c->ipc, &m);
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
    X509 *leaf = mint(c->signer, c, host, spki, &err);
    answer(c, req, leaf, &err);
    return 0;
}

static void on_channel_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    channel_free(arg);
}

static int on_peer(struct signer *s, struct msg *m)
{
    struct peer far;
    if (peer_get(m, &far) < 0)
        return -1;
    if (far.kind != ROLE_GATE && far.kind != ROLE_CONTROLLER) {
        close(far.fd);
        return -1;
    }
    struct channel *c = s->channels < CHANNELS_MAX ? calloc(1, sizeof *c) : NULL;
    if (c == NULL) { /* no room: that gate sees its channel end and mints nothing */
        close(far.fd);
        return 0;
    }
    c->signer = s;
    c->number = far.channel;
    c->ipc = ipc_new(s->base, far.fd, on_mint, on_channel_closed, c);
    if (c->ipc == NULL) {
        free(c);
        return 0;
    }
    LIST_INSERT_HEAD(&s->list, c, link);
    s->channels++;
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
    X509 *leaf = mint_leaf(&s->issuer, &a, key, s->days, time(NULL), err);
    EVP_PKEY *issuer = leaf ? X509_get0_pubkey(s->issuer.cert) : NULL;
    int ok = issuer && X509_verify(leaf, issuer) == 1;
    X509_free(leaf);
    EVP_PKEY_free(key);
    return ok ? 0 : err_wrap(err, "the CA cannot sign");
}

static int start(struct signer *s, bool create, int key_fd, int cert_fd, struct err *err)
{
    time_t now = time(NULL);
    if (create) {
        if (mint_issuer_make(&s->issuer, now, err) < 0 ||
            ca_key_store(&s->issuer, key_fd, cert_fd, err) < 0)
            return -1;
    } else if (ca_key_load(key_fd, cert_fd, now, &s->issuer, err) < 0) {
        return -1;
    }
    int n = i2d_X509(s->issuer.cert, &s->issuer_der);
    if (n <= 0)
        return err_set(err, ERR_INTERNAL, "the CA certificate cannot be encoded");
    s->issuer_len = (size_t)n;
    return rehearse(s, err);
}

static void fail(struct signer *s, const struct err *err)
{
    struct msg m;
    msg_init(&m, W_FAILED);
    msg_put_str(&m, err->text);
    ipc_send(s->control, &m);
    ipc_flush(s->control, 1000);
    set_state(s, SIGNER_ENDED);
}

static int ready(struct signer *s, struct err *err)
{
    struct buf pem;
    buf_init(&pem, CA_FILE_MAX);
    int r = ca_key_cert_pem(s->issuer.cert, &pem, err);
    if (r == 0 && s->confine)
        r = proc_confine(ROLE_SIGNER, err);
    if (r == 0) {
        struct msg m;
        msg_init(&m, W_READY);
        msg_put_slice(&m, buf_slice(&pem));
        ipc_send(s->control, &m);
        set_state(s, SIGNER_READY);
    }
    buf_free(&pem);
    return r;
}

static int on_init(struct signer *s, struct msg *m)
{
    uint8_t create;
    uint32_t days;
    int key_fd = -1, cert_fd = -1;
    struct err err = {0};
    bool good = msg_get_u8(m, &create) == 0 && msg_get_u32(m, &days) == 0 &&
                msg_get_fd(m, &key_fd) == 0 && msg_get_fd(m, &cert_fd) == 0 && msg_end(m) == 0 &&
                create <= 1 && days >= 1 && days <= MINT_DAYS_MAX;
    if (good) {
        s->days = days;
        if (start(s, create, key_fd, cert_fd, &err) < 0 || ready(s, &err) < 0)
            fail(s, &err);
    }
    if (key_fd >= 0)
        close(key_fd);
    if (cert_fd >= 0)
        close(cert_fd);
    return good ? 0 : -1;
}

static int on_control(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct signer *s = arg;
    if (s->state == SIGNER_EMPTY)
        return m->type == W_INIT ? on_init(s, m) : -1;
    if (s->state != SIGNER_READY)
        return -1;
    switch (m->type) {
    case W_PEER:
        return on_peer(s, m);
    case W_PEER_GONE:
        return on_peer_gone(s, m);
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
    s->base = base;
    s->confine = confine;
    s->control = ipc_new(base, control_fd, on_control, on_control_closed, s);
    if (s->control == NULL) {
        free(s);
        return NULL;
    }
    return s;
}

void signer_free(struct signer *s)
{
    if (s == NULL)
        return;
    struct channel *c;
    while ((c = LIST_FIRST(&s->list)) != NULL)
        channel_free(c);
    ipc_free(s->control);
    mint_issuer_clear(&s->issuer);
    OPENSSL_free(s->issuer_der);
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

int signer_main(void)
{
    struct err err = {0};
    if (proc_enter(ROLE_SIGNER, &err) < 0) {
        proc_log("%s", err.text);
        return 1;
    }
    struct event_base *base = event_base_new();
    struct signer *s = base ? signer_new(base, PROC_CONTROL_FD, true) : NULL;
    if (s && meter_report(base, s->control) == 0)
        event_base_dispatch(base);
    meter_report_end();
    signer_free(s);
    if (base)
        event_base_free(base);
    return s ? 0 : 1;
}
