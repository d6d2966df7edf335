/* Writes and reads the four messages, and the text that both ends sign. */
#include "scram.h"

#include "assertion.h"
#include "base64.h"

#include <openssl/crypto.h>
#include <string.h>

void scram_init(struct scram *s, const char *nonce, enum scram_channel channel,
                struct slice binding)
{
    memset(s, 0, sizeof *s);
    ASSERT(strlen(nonce) == SCRAM_NONCE && strchr(nonce, ',') == NULL);
    ASSERT(binding.n <= SCRAM_BINDING_MAX && (channel == SCRAM_BOUND) == (binding.n > 0));
    memcpy(s->nonce, nonce, sizeof s->nonce);
    s->channel = channel;
    if (binding.n)
        memcpy(s->binding, binding.p, binding.n);
    s->n_binding = binding.n;
    buf_init(&s->text, SCRAM_TEXT_MAX);
}

void scram_free(struct scram *s)
{
    buf_free(&s->text);
}

/* gs2-header (RFC 5802 7). */
static struct slice gs2(const struct scram *s)
{
    return s->channel == SCRAM_BOUND       ? SLICE("p=tls-server-end-point,,")
           : s->channel == SCRAM_UNOFFERED ? SLICE("y,,")
                                           : SLICE("n,,");
}

int scram_first(const struct scram *s, struct buf *out)
{
    return buf_append_slice(out, gs2(s)) < 0 ? -1 : buf_printf(out, "n=,r=%s", s->nonce);
}

/* ---- reading ---- */

static int put_final(struct scram *s, struct slice nonce)
{
    struct buf bound;
    buf_init(&bound, SCRAM_BINDING_MAX + 64);
    int r = buf_append_slice(&bound, gs2(s)) < 0 ||
                    buf_append(&bound, s->binding, s->n_binding) < 0 ||
                    buf_append_str(&s->text, "c=") < 0 ||
                    base64_append(&s->text, buf_slice(&bound)) < 0 ||
                    buf_printf(&s->text, ",r=%.*s", SL(nonce)) < 0
                ? -1
                : 0;
    buf_free(&bound);
    return r;
}

int scram_server_first(struct scram *s, struct slice message, struct err *err)
{
    struct slice in = message;
    struct scram_parts parts;
    ASSERT(buf_len(&s->text) == 0);
    if (message.n > SCRAM_TEXT_MAX / 2)
        return err_set(err, ERR_UPSTREAM, "the server's first message of SCRAM is too long");
    if (scram_server_parts(&in, &parts, err) < 0)
        return -1;
    if (in.n > 0)
        return err_set(err, ERR_UPSTREAM, "the server asks for an extension of SCRAM");
    if (!slice_starts(parts.nonce, slice_str(s->nonce)))
        return err_set(err, ERR_UPSTREAM, "the server answers another nonce than ours");
    if (buf_printf(&s->text, "n=,r=%s,%.*s,", s->nonce, SL(message)) < 0)
        return err_set(err, ERR_LIMIT, "the texts of SCRAM are too long");
    s->final = buf_len(&s->text);
    return put_final(s, parts.nonce) < 0
               ? err_set(err, ERR_LIMIT, "the texts of SCRAM are too long")
               : 0;
}

struct slice scram_text(const struct scram *s)
{
    return buf_slice(&s->text);
}

int scram_final(const struct scram *s, const unsigned char *proof, struct buf *out)
{
    struct slice text = scram_text(s);
    ASSERT(text.n > s->final);
    return buf_append(out, text.p + s->final, text.n - s->final) < 0 ||
                   buf_append_str(out, ",p=") < 0
               ? -1
               : base64_append(out, (struct slice){(const char *)proof, SCRAM_HASH});
}

int scram_server_final(struct slice message, const unsigned char *signature, struct err *err)
{
    unsigned char said[SCRAM_HASH + 3];
    struct slice value;
    if (scram_take(&message, 'v', &value) < 0 || message.n > 0 ||
        base64_read(value, said, sizeof said) != SCRAM_HASH ||
        CRYPTO_memcmp(said, signature, SCRAM_HASH) != 0)
        return err_set(err, ERR_UPSTREAM, "the server does not know the password itself");
    return 0;
}
