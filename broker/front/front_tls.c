/* A certificate is asked of the signer, and then the handshake goes on. */
#include "front_tls.h"

#include "meter.h"
#include "mint_client.h"

#include <stdio.h>

static void note(const struct front_tls *t, const char *code, const char *why)
{
    struct record r;
    char target[HOST_TEXT_MAX + 16];
    record_init(&r, RECORD_TLS_REFUSED, 0);
    meter_add(METER_HANDSHAKES_REFUSED, 1);
    record_put_str(&r, RF_CODE, code);
    record_put_str(&r, RF_TARGET, authority_text(&t->at, target, sizeof target));
    record_put_str(&r, RF_DETAIL, why);
    (void)journal_note(t->front->journal, &r);
}

static void fail(struct front_tls *t, const char *why)
{
    note(t, "mint", why);
    t->failed(t->arg);
}

static void on_minted(void *arg, const struct leaf *leaf, const struct err *err)
{
    struct front_tls *t = arg;
    SSL *ssl = leaf ? SSL_new(t->front->tls) : NULL;
    t->wait = NULL;
    if (ssl && leaf_use(leaf, ssl) == 0) {
        io_tls_accept(t->io, ssl);
        return;
    }
    SSL_free(ssl);
    fail(t, leaf ? "out of memory" : err->text);
}

void front_tls_begin(struct front_tls *t, struct front *f, struct io *io,
                     const struct authority *at, void (*failed)(void *arg), void *arg)
{
    t->front = f;
    t->io = io;
    t->at = *at;
    t->failed = failed;
    t->arg = arg;
    t->begun = true;
    struct mint_wait *w = mint_client_get(f->mint, at->host, on_minted, t);
    if (w)
        t->wait = w; /* else on_minted ran, and the owner may be gone */
}

bool front_tls_pending(const struct front_tls *t)
{
    const SSL *ssl = t->begun ? io_ssl(t->io) : NULL;
    return t->begun && (ssl == NULL || !SSL_is_init_finished(ssl));
}

void front_tls_refused(const struct front_tls *t, const char *why)
{
    note(t, "client_tls_refused", why);
}

void front_tls_end(struct front_tls *t)
{
    mint_client_cancel(t->wait);
    t->wait = NULL;
}
