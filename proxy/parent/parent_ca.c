/* The CA while we run: `durward ca rotate` puts a new one beside it, and when the overlap is over
 * that one signs (ca/rotation.h). The directory is looked at once a minute, at every reload and at
 * the end of the overlap. */
#include "parent.h"

#include "wire.h"

#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_SECONDS = 60 };

static void on_look(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    parent_ca_look(arg);
}

/* A CA of the operator's own files is theirs to change. */
static void plan_look(struct parent *p)
{
    int64_t left = p->ca.until - time(NULL) + 1;
    struct timeval tv = {LOOK_SECONDS, 0};
    if (config_ca_cert(p->config))
        return;
    if (p->ca.next_fd >= 0 && left < LOOK_SECONDS)
        tv.tv_sec = left < 1 ? 1 : (time_t)left;
    if (p->ca_timer == NULL)
        p->ca_timer = evtimer_new(p->base, on_look, p);
    if (p->ca_timer)
        evtimer_add(p->ca_timer, &tv);
}

int parent_ca_ready(struct parent *p, struct err *err)
{
    p->ca_pem = ca_files_trusted(&p->ca, err);
    if (p->ca_pem == NULL ||
        trust_prepare(p->cache_dir, p->ca_pem, strlen(p->ca_pem), &p->trust, err) < 0 ||
        trust_roots(p->cache_dir, &p->roots, err) < 0)
        return -1;
    plan_look(p);
    return 0;
}

/* Where there is a CA, nobody has to wait for the signer to read it too; what is wrong with it the
 * signer says. */
void parent_ca_known(struct parent *p)
{
    struct err err = {0};
    if (!p->ca.create && !p->stopping && parent_ca_ready(p, &err) < 0) {
        free(p->ca_pem);
        p->ca_pem = NULL;
    }
    parent_init_waiting(p);
}

/* What clients elsewhere are told from now on. Local sandboxes have CAs of their own, which a
 * change of this one does not touch. */
static void tell(struct parent *p, const char *event, const char *detail)
{
    struct msg m;
    struct child *to = p->controller;
    if (to == NULL || to->ch == NULL || to->state < CHILD_INITED || to->state > CHILD_READY)
        return; /* its W_INIT will say it */
    msg_init(&m, W_TRUST);
    msg_put_str(&m, p->ca_pem);
    msg_put_str(&m, p->trust.dir);
    msg_put_str(&m, event);
    msg_put_str(&m, detail);
    ipc_send(to->ch, &m);
}

static void tell_all(struct parent *p, bool other_signs)
{
    char detail[128] = "";
    const char *event = other_signs ? "ca_replaced" : "ca_rotating";
    if (p->ca.next_fd >= 0)
        snprintf(detail, sizeof detail, "the old one signs until %" PRId64, p->ca.until);
    proc_log("%s%s%s",
             other_signs ? "a new certificate authority signs from now on"
                         : "a new certificate authority is trusted beside the old one",
             detail[0] ? "; " : "", detail);
    tell(p, event, detail);
}

/* The one that signs; the next one, if any, comes after it. */
static struct slice first_cert(struct slice pem)
{
    struct slice end = SLICE("-----END CERTIFICATE-----");
    ssize_t at = slice_find_slice(pem, end);
    return at < 0 ? pem : (struct slice){pem.p, (size_t)at + end.n};
}

/* What is in the files now, if it differs. 1: another CA signs; 0; -1: all is as it was. */
static int take(struct parent *p, struct ca_files *f, struct err *err)
{
    struct trust trust;
    char *pem = ca_files_trusted(f, err);
    if (pem == NULL)
        return -1;
    if (strcmp(pem, p->ca_pem) == 0) {
        p->ca.until = f->until;
        free(pem);
        return 0;
    }
    char *now = slice_dup(first_cert(slice_str(pem)));
    struct slice was = first_cert(slice_str(p->ca_pem));
    bool other = now == NULL || !slice_eq_str(was, now);
    int r = now ? trust_prepare(p->cache_dir, pem, strlen(pem), &trust, err) : -1;
    if (r == 0 && !other)
        r = trust_extend(p->cache_dir, now, pem, strlen(pem), err);
    free(now);
    if (r < 0) {
        free(pem);
        return -1;
    }
    free(p->ca_pem);
    p->ca_pem = pem;
    trust_clear(&p->trust);
    p->trust = trust;
    struct ca_files old = p->ca;
    p->ca = *f;
    *f = old; /* the caller closes it */
    tell_all(p, other);
    return other;
}

int parent_ca_again(struct parent *p)
{
    struct ca_files f;
    struct err err = {0};
    if (config_ca_cert(p->config) || p->ca_pem == NULL)
        return 0;
    if (ca_files_open(config_ca_dir(p->config), NULL, NULL, &f, &err) < 0) {
        proc_log("%s", err.text);
        return -1;
    }
    int r = f.create ? err_set(&err, ERR_DENIED, "the CA's files are gone") : take(p, &f, &err);
    if (r < 0)
        proc_log("the CA: %s; the one in use stays", err.text);
    ca_files_close(&f);
    return r;
}

/* The signer can open no file, so another one takes its place; gates wait for it. */
void parent_ca_look(struct parent *p)
{
    struct child *s = p->signer;
    if (parent_ca_again(p) == 1 && s && s->pid > 0 && s->state >= CHILD_INITED)
        s->replaced = kill(s->pid, SIGTERM) == 0;
    if (!p->stopping)
        plan_look(p);
}
