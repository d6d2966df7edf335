/* The states of an upload: taking a piece, waiting for its signature, sending it. The downstream is
 * told that there is room only outside its own calls. */
#include "aws_upload.h"

#include "body_buffer.h"
#include "secret_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum upload_state { U_TAKING = 0, U_SIGNING, U_SENDING, U_OVER, U_FAILED };

struct aws_upload {
    struct aws_upload_owner owner;
    struct secret_client *secrets;
    char *secret, *sandbox, *key_id, *payer;
    struct aws_scope scope; /* of the piece at hand; its `previous` is the last signature */
    struct upstream origin;
    struct aws_chunks chunks;
    struct aws_piece piece;
    enum upload_state state;
    struct buf in;  /* from the piece at hand on */
    size_t to_send; /* U_SENDING: of the piece */
    size_t need;    /* U_TAKING: bytes before the piece can be whole */
    bool ended;     /* no more comes */
    bool inside;    /* a call of the downstream's: it is not told that there is room */
    struct sign_wait *wait;
    struct quota *total; /* of the process, and our part of it */
    struct quota_part held;
};

/* `in` holds less. */
static void account(struct aws_upload *u)
{
    quota_give(&u->held, u->held.n - buf_len(&u->in));
}

static void fail(struct aws_upload *u, unsigned status, const char *code)
{
    if (u->state == U_FAILED)
        return;
    u->state = U_FAILED;
    u->owner.failed(u->owner.self, status, code);
}

/* ---- signing ---- */

static void go_on(struct aws_upload *u);

static void on_signed(void *arg, struct slice signature, const struct err *err UNUSED)
{
    struct aws_upload *u = arg;
    u->wait = NULL;
    if (signature.n != AWS_HEX) {
        fail(u, 503, "secret_unavailable");
        return;
    }
    memcpy(u->scope.previous, signature.p, AWS_HEX);
    memcpy(buf_data(&u->in) + u->piece.hole, signature.p, AWS_HEX);
    u->to_send = u->piece.n;
    u->state = U_SENDING;
    go_on(u);
}

static void sign(struct aws_upload *u)
{
    u->state = U_SIGNING;
    u->scope.text = u->piece.text;
    memcpy(u->scope.hash, u->piece.hash, sizeof u->scope.hash);
    struct sign_wait *w = secret_client_sign(u->secrets, u->payer, u->secret, u->sandbox, u->key_id,
                                             &u->scope, on_signed, u);
    if (w)
        u->wait = w;
}

/* ---- taking and sending ---- */

/* True: something changed. */
static bool take(struct aws_upload *u)
{
    int r = aws_chunks_next(&u->chunks, buf_slice(&u->in), &u->piece);
    u->need = u->piece.n;
    if (r < 0 || (r == 0 && u->ended))
        fail(u, 403, "signature_streaming");
    else if (r > 0)
        sign(u);
    return r > 0;
}

static bool send_piece(struct aws_upload *u)
{
    struct slice held = buf_slice(&u->in);
    size_t n = stream_send(&u->origin, (struct slice){held.p, u->to_send});
    buf_drain(&u->in, n);
    u->to_send -= n;
    account(u);
    if (u->to_send > 0)
        return false;
    u->state = aws_chunks_over(&u->chunks) ? U_OVER : U_TAKING;
    u->need = 0;
    return true;
}

static void end(struct aws_upload *u)
{
    if (buf_len(&u->in) > 0)
        fail(u, 403, "signature_streaming"); /* something behind the last chunk */
    else if (u->ended)
        u->origin.ops->end(u->origin.self);
}

static size_t room_of(const struct aws_upload *u)
{
    size_t most = u->need + AWS_UPLOAD_AHEAD, have = buf_len(&u->in);
    if (u->ended || u->state == U_FAILED)
        return 0;
    if (u->state == U_OVER)
        return 1; /* a byte too many is seen */
    return most > have ? most - have : 0;
}

static void go_on(struct aws_upload *u)
{
    bool more = true;
    while (more) {
        more = false;
        if (u->state == U_TAKING)
            more = take(u) && u->state == U_SENDING; /* else its answer goes on */
        else if (u->state == U_SENDING)
            more = send_piece(u);
    }
    if (u->state == U_OVER)
        end(u);
    else if (!u->inside && room_of(u) > 0)
        u->owner.wanted(u->owner.self);
}

/* ---- as an upstream ---- */

static void upstream_data(void *self, const void *p, size_t n)
{
    struct aws_upload *u = self;
    if (u->state == U_FAILED)
        return;
    enum quota_end end = quota_take(u->total, &u->held, slice_str(u->payer), n);
    if (end != QUOTA_TAKEN || buf_append(&u->in, p, n) < 0) {
        fail(u, 503, end == QUOTA_SHARE ? "share_used" : "overload");
        return;
    }
    u->inside = true;
    if (u->state == U_OVER || (u->state == U_TAKING && buf_len(&u->in) >= u->need))
        go_on(u);
    u->inside = false;
}

static void upstream_end(void *self)
{
    struct aws_upload *u = self;
    u->ended = true;
    u->inside = true;
    if (u->state != U_SIGNING)
        go_on(u);
    u->inside = false;
}

static size_t upstream_room(void *self)
{
    return room_of(self);
}

static void upstream_resume(void *self)
{
    struct aws_upload *u = self;
    u->origin.ops->resume(u->origin.self);
}

static void upstream_cancel(void *self, const char *code)
{
    struct aws_upload *u = self;
    u->state = U_FAILED;
    secret_client_sign_cancel(u->wait);
    u->wait = NULL;
    u->origin.ops->cancel(u->origin.self, code);
}

static const struct upstream_ops upstream_ops = {
    .data = upstream_data,
    .end = upstream_end,
    .room = upstream_room,
    .resume = upstream_resume,
    .cancel = upstream_cancel,
};

struct upstream aws_upload_upstream(struct aws_upload *u, struct upstream origin)
{
    u->origin = origin;
    return (struct upstream){&upstream_ops, u};
}

void aws_upload_pump(struct aws_upload *u)
{
    if (u->state == U_SENDING)
        go_on(u);
}

struct aws_upload *aws_upload_new(struct aws_upload_owner owner, struct secret_client *secrets,
                                  const char *secret, const char *sandbox, const char *key_id,
                                  const struct aws_scope *seed, const char *signature,
                                  uint64_t decoded, const char *names, struct quota *total,
                                  const char *payer)
{
    struct aws_upload *u = calloc(1, sizeof *u);
    if (u == NULL)
        return NULL;
    u->owner = owner;
    u->secrets = secrets;
    u->total = total;
    u->scope = *seed;
    snprintf(u->scope.previous, sizeof u->scope.previous, "%s", signature);
    u->secret = strdup(secret);
    u->sandbox = strdup(sandbox);
    u->key_id = strdup(key_id);
    u->payer = strdup(payer);
    buf_init_wiped(&u->in, AWS_CHUNK_MAX + 2 * AWS_UPLOAD_AHEAD);
    if (u->secret == NULL || u->sandbox == NULL || u->key_id == NULL || u->payer == NULL ||
        aws_chunks_init(&u->chunks, decoded, names) < 0) {
        aws_upload_free(u);
        return NULL;
    }
    return u;
}

void aws_upload_free(struct aws_upload *u)
{
    if (u == NULL)
        return;
    secret_client_sign_cancel(u->wait);
    free(u->secret);
    free(u->sandbox);
    free(u->key_id);
    free(u->payer);
    buf_free(&u->in);
    quota_leave(&u->held);
    free(u);
}
