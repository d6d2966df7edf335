/* The exporter: carries what Durward itself has to say to the places of the configuration (a
 * webhook, an anchor), and what the log says to an OTLP receiver: over descriptors of the dialer's,
 * whose policy for it is those places alone. It holds no secret and sees no sandbox's bytes, but
 * what records quote of them. */
#include "subscribers.h"
#include "config.h"
#include "crypto_text.h"
#include "fetch.h"
#include "otlp.h"
#include "peer.h"
#include "proc.h"
#include "role_run.h"
#include "wire.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BODY_MAX = 8192, UNDER_WAY_MAX = 512, REPLY_SECONDS = 20 };

struct exporter {
    struct event_base *base;
    struct ipc *control;
    struct fetch_means means;
    char *url[EXPORTER_PLACES]; /* NULL: none */
    struct otlp *otlp;          /* NULL: nothing is exported */
    struct ipc *logger;
    bool again; /* another exporter was here before: what the logger still has, it has told */
    size_t under_way;
    bool ready;
};

struct worker {
    struct exporter *exporter;
    uint32_t number;
};

static void answer(struct exporter *k, uint32_t number, bool ok, const char *text)
{
    struct msg m;
    msg_init(&m, W_CARRIED);
    msg_put_u32(&m, number);
    msg_put_u8(&m, ok);
    msg_put_str(&m, text);
    ipc_send(k->control, &m);
}

static void on_answer(void *arg, unsigned status, struct slice body UNUSED, const char *why)
{
    struct worker *e = arg;
    char text[96];
    snprintf(text, sizeof text, "%u", status);
    bool ok = status >= 200 && status < 300;
    answer(e->exporter, e->number, ok, status ? text : why);
    e->exporter->under_way--;
    free(e);
}

static int begin(struct exporter *k, uint32_t number, const char *url, const char *type,
                 struct slice body)
{
    struct token_request r;
    struct worker *e = k->under_way < UNDER_WAY_MAX ? calloc(1, sizeof *e) : NULL;
    if (e == NULL)
        return -1;
    *e = (struct worker){k, number};
    token_request_init(&r, url);
    struct buf *field = token_request_field(&r, "content-type"),
               *agent = token_request_field(&r, "user-agent");
    bool ok = field && agent && buf_append_str(field, type) == 0 &&
              buf_append_str(agent, "durward") == 0 && buf_append_slice(&r.body, body) == 0;
    ok = ok && fetch_start(&k->means, &r, on_answer, e) != NULL;
    token_request_free(&r);
    if (!ok) {
        free(e);
        return -1;
    }
    k->under_way++;
    return 0;
}

static int on_carry(struct exporter *k, struct msg *m)
{
    uint32_t number;
    uint8_t place;
    struct slice body;
    if (msg_get_u32(m, &number) < 0 || msg_get_u8(m, &place) < 0 || place > EXPORTER_ANCHOR ||
        msg_get_slice(m, BODY_MAX, &body) < 0 || msg_end(m) < 0 || k->url[place] == NULL)
        return -1;
    if (begin(k, number, k->url[place], "application/json", body) < 0)
        answer(k, number, false, "it could not be begun");
    return 0;
}

/* ---- the log, for OTLP ---- */

static int on_logger(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct exporter *k = arg;
    struct watched w;
    struct slice key;
    if (m->type == W_WATCHED) {
        if (subscribers_get(m, &w, &key) < 0)
            return -1;
        otlp_watched(k->otlp, &w, key);
        return 0;
    }
    uint32_t channel;
    uint64_t credit, next;
    int fd;
    if (m->type != W_JOURNAL || msg_get_u32(m, &channel) < 0 || msg_get_u64(m, &credit) < 0 ||
        msg_get_u64(m, &next) < 0 || msg_get_fd(m, &fd) < 0)
        return -1;
    close(fd); /* it has nothing to record */
    return msg_end(m);
}

static void on_logger_closed(struct ipc *ch, const char *why UNUSED, void *arg)
{
    struct exporter *k = arg;
    k->logger = NULL; /* the next one is told of by the parent */
    ipc_free(ch);
}

static int watch(struct exporter *k, int fd)
{
    struct msg m;
    ipc_free(k->logger);
    k->logger = ipc_new(k->base, fd, on_logger, on_logger_closed, k);
    if (k->logger == NULL)
        return -1;
    msg_init(&m, W_WATCH);
    msg_put_u8(&m, k->again ? 2 : 1);
    k->again = false; /* another logger has only what it wrote itself */
    ipc_send(k->logger, &m);
    return 0;
}

static int on_peer(struct exporter *k, struct msg *m)
{
    struct peer far;
    if (peer_get(m, &far) < 0)
        return -1;
    if (far.kind == ROLE_DIALER) {
        dial_client_attach(k->means.dial, far.fd, far.channel);
        return 0;
    }
    if (far.kind == ROLE_LOGGER && k->otlp)
        return watch(k, far.fd);
    close(far.fd);
    return -1;
}

static int exporter_load(void *self, struct msg *m, struct msg *ready UNUSED, struct err *err)
{
    struct exporter *k = self;
    struct slice limits, url;
    uint8_t again;
    int fd;
    if (msg_get_slice(m, sizeof(struct limits), &limits) < 0)
        return err_set(err, ERR_PARSE, "malformed W_INIT");
    for (size_t i = 0; i < EXPORTER_PLACES; i++) {
        if (msg_get_slice(m, 1024, &url) < 0)
            return err_set(err, ERR_PARSE, "malformed W_INIT");
        if (url.n && (k->url[i] = slice_dup(url)) == NULL)
            return err_set(err, ERR_INTERNAL, "out of memory");
    }
    if (msg_get_u8(m, &again) < 0 || msg_get_fd(m, &fd) < 0)
        return err_set(err, ERR_PARSE, "malformed W_INIT");
    k->again = again != 0;
    if (fetch_means_roots(&k->means, fd, limits, err) < 0)
        return -1;
    if (k->means.limits.reply_seconds > REPLY_SECONDS)
        k->means.limits.reply_seconds = REPLY_SECONDS; /* it is tried again */
    const char *logs = k->url[EXPORTER_LOGS], *spans = k->url[EXPORTER_TRACES];
    if ((logs || spans) && (k->otlp = otlp_new(k->base, &k->means, logs, spans)) == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    return msg_end(m) < 0 ? err_set(err, ERR_PARSE, "malformed W_INIT") : 0;
}

static int exporter_confine(void *self UNUSED, struct err *err)
{
    return proc_confine(ROLE_EXPORTER, err);
}

static void exporter_begun(void *self)
{
    ((struct exporter *)self)->ready = true;
}

static const struct role_start role_steps = {
    .load = exporter_load, .confine = exporter_confine, .begun = exporter_begun};

static int on_control(struct ipc *ipc UNUSED, struct msg *m, void *arg)
{
    struct exporter *k = arg;
    if (m->type == W_INIT)
        return k->ready ? -1 : role_start(&role_steps, k, k->control, m);
    if (!k->ready)
        return -1;
    switch (m->type) {
    case W_PEER:
        return on_peer(k, m);
    case W_PEER_GONE:
        return 0; /* each channel's own end says the same */
    case W_CARRY:
        return on_carry(k, m);
    default:
        return -1;
    }
}

static void on_control_closed(struct ipc *ipc UNUSED, const char *why UNUSED, void *arg)
{
    event_base_loopbreak(((struct exporter *)arg)->base);
}

static struct ipc *exporter_open(void *self, struct event_base *base, int control_fd,
                                 struct err *err UNUSED)
{
    struct exporter *k = self;
    k->base = base;
    if (fetch_means_init(&k->means, base, "exporter", false) == 0)
        k->control = ipc_new(base, control_fd, on_control, on_control_closed, k);
    return k->control;
}

static int exporter_leave(void *self, struct event_base *base)
{
    struct exporter *k = self;
    ipc_free(k->control);
    ipc_free(k->logger);
    otlp_free(k->otlp);
    fetch_means_done(&k->means);
    for (size_t i = 0; i < EXPORTER_PLACES; i++)
        free(k->url[i]);
    event_base_free(base);
    return 0;
}

int exporter_main(void);

int exporter_main(void)
{
    static const struct role_life life = {.role = ROLE_EXPORTER,
                                          .first = crypto_text_later,
                                          .counts = true,
                                          .open = exporter_open,
                                          .leave = exporter_leave};
    static struct exporter exporter;
    return role_run(&life, &exporter);
}
