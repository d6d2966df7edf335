/* Reads the text of a SCRAM exchange, strictly: what RFC 5802 7 lets a server say and a client of
 * PostgreSQL answer, in that order, and nothing else. */
#include "scram_text.h"

#include "base64.h"

int scram_take(struct slice *in, char name, struct slice *ret)
{
    if (in->n < 2 || in->p[0] != name || in->p[1] != '=')
        return -1;
    ssize_t comma = slice_find(*in, ',');
    size_t n = comma < 0 ? in->n : (size_t)comma;
    *ret = (struct slice){in->p + 2, n - 2};
    in->p += n;
    in->n -= n;
    if (in->n > 0) {
        in->p++;
        in->n--;
        if (in->n == 0)
            return -1; /* a comma at the end */
    }
    return 0;
}

static bool nonce_ok(struct slice nonce)
{
    for (size_t i = 0; i < nonce.n; i++)
        if (nonce.p[i] < 0x21 || nonce.p[i] > 0x7e || nonce.p[i] == ',')
            return false;
    return nonce.n > SCRAM_NONCE && nonce.n <= SCRAM_NONCE_MAX;
}

static bool salt_ok(struct slice salt)
{
    struct buf raw;
    buf_init(&raw, SCRAM_SALT_MAX);
    bool ok = salt.n <= SCRAM_SALT_MAX && base64_decode(&raw, salt) == 0 && buf_len(&raw) > 0;
    buf_free(&raw);
    return ok;
}

int scram_server_parts(struct slice *in, struct scram_parts *ret, struct err *err)
{
    struct slice count;
    uint64_t i;
    if (scram_take(in, 'r', &ret->nonce) < 0 || scram_take(in, 's', &ret->salt) < 0 ||
        scram_take(in, 'i', &count) < 0 || !nonce_ok(ret->nonce) || !salt_ok(ret->salt) ||
        slice_u64(count, UINT32_MAX, &i) < 0 || count.p[0] == '0')
        return err_set(err, ERR_UPSTREAM, "the server's first message of SCRAM is malformed");
    if (i < SCRAM_ITERATIONS_LEAST)
        return err_set(err, ERR_UPSTREAM,
                       "the server stores the password with %u iterations; %d is the least "
                       "(RFC 7677 4)",
                       (unsigned)i, SCRAM_ITERATIONS_LEAST);
    if (i > SCRAM_ITERATIONS_MOST)
        return err_set(err, ERR_LIMIT, "the server asks for %u iterations; %d is the most",
                       (unsigned)i, SCRAM_ITERATIONS_MOST);
    ret->iterations = (uint32_t)i;
    return 0;
}

int scram_text_read(struct slice text, struct scram_parts *ret, struct err *err)
{
    struct slice user, ours, bound, again, in = text;
    if (text.n > SCRAM_TEXT_MAX || scram_take(&in, 'n', &user) < 0 || user.n > 0 ||
        scram_take(&in, 'r', &ours) < 0 || ours.n != SCRAM_NONCE)
        return err_set(err, ERR_DENIED, "that is not the text of a SCRAM exchange");
    if (scram_server_parts(&in, ret, err) < 0)
        return -1;
    if (!slice_starts(ret->nonce, ours) || scram_take(&in, 'c', &bound) < 0 ||
        scram_take(&in, 'r', &again) < 0 || in.n > 0 || !slice_eq(again, ret->nonce))
        return err_set(err, ERR_DENIED, "that is not the text of a SCRAM exchange");
    return 0;
}
