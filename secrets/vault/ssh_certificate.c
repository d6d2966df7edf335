/* Writes a certificate field by field and has it signed: nothing of it comes from who asks for it
 * but its name in key_id, so a CA's key signs no bytes of anybody else's. Where the same key logs
 * in as well (ssh_key) neither text is the other: behind its first string a login has the byte 50,
 * a certificate a zero. */
#include "ssh_certificate.h"

#include "ssh_sign.h"
#include "ssh_sign_internal.h"
#include "ssh_wire.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <string.h>

enum { OF_USER = 1, NONCE = 32, SERIAL = 8 };

static int put_u64(struct buf *out, uint64_t v)
{
    return ssh_wire_put_u32(out, (uint32_t)(v >> 32)) < 0 ? -1 : ssh_wire_put_u32(out, (uint32_t)v);
}

/* A string whose bytes are that string. */
static int put_wrapped(struct buf *out, struct slice s)
{
    return ssh_wire_put_u32(out, (uint32_t)s.n + 4) < 0 ? -1 : ssh_wire_put_string(out, s);
}

static bool next_word(const char **list, struct slice *ret)
{
    size_t n = strcspn(*list, " ");
    *ret = (struct slice){*list, n};
    *list += n + ((*list)[n] == ' ');
    return n > 0;
}

static int put_principals(struct buf *out, const char *list)
{
    struct buf b;
    struct slice one;
    int r = *list ? 0 : -1; /* without any a server may let it in as every user */
    buf_init(&b, SSH_CERTIFICATE_MAX);
    while (r == 0 && next_word(&list, &one))
        r = ssh_wire_put_string(&b, one);
    if (r == 0)
        r = ssh_wire_put_string(out, buf_slice(&b));
    buf_free(&b);
    return r;
}

/* In the order of their names, as all options are. */
static int put_critical(struct buf *out, const struct ssh_certificate *c)
{
    struct buf b, ranges;
    struct slice one;
    const char *list = c->source_address;
    int r = 0;
    buf_init(&b, SSH_CERTIFICATE_MAX);
    buf_init(&ranges, SSH_CERTIFICATE_MAX);
    while (r == 0 && next_word(&list, &one))
        r = buf_printf(&ranges, "%s%.*s", buf_len(&ranges) ? "," : "", SL(one));
    if (r == 0 && *c->force_command)
        r = ssh_wire_put_string(&b, SLICE("force-command")) < 0
                ? -1
                : put_wrapped(&b, slice_str(c->force_command));
    if (r == 0 && buf_len(&ranges))
        r = ssh_wire_put_string(&b, SLICE("source-address")) < 0
                ? -1
                : put_wrapped(&b, buf_slice(&ranges));
    if (r == 0)
        r = ssh_wire_put_string(out, buf_slice(&b));
    buf_free(&ranges);
    buf_free(&b);
    return r;
}

static struct slice name_of(struct slice extension)
{
    ssize_t at = slice_find(extension, '=');
    return (struct slice){extension.p, at < 0 ? extension.n : (size_t)at};
}

static bool goes_before(struct slice a, struct slice b)
{
    struct slice x = name_of(a), y = name_of(b);
    int r = memcmp(x.p, y.p, x.n < y.n ? x.n : y.n);
    return r < 0 || (r == 0 && x.n < y.n);
}

static int put_extension(struct buf *out, struct slice e)
{
    struct slice name = name_of(e);
    if (ssh_wire_put_string(out, name) < 0)
        return -1;
    return name.n == e.n ? ssh_wire_put_string(out, SLICE(""))
                         : put_wrapped(out, (struct slice){e.p + name.n + 1, e.n - name.n - 1});
}

static int put_extensions(struct buf *out, const char *list)
{
    struct slice all[SSH_CERTIFICATE_LIST], one;
    size_t n = 0;
    struct buf b;
    int r = 0;
    while (next_word(&list, &one)) {
        size_t i = n;
        if (n == ARRAY_LEN(all))
            return -1;
        for (; i > 0 && goes_before(one, all[i - 1]); i--)
            all[i] = all[i - 1];
        all[i] = one;
        n++;
    }
    buf_init(&b, SSH_CERTIFICATE_MAX);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = put_extension(&b, all[i]);
    if (r == 0)
        r = ssh_wire_put_string(out, buf_slice(&b));
    buf_free(&b);
    return r;
}

static int put_fields(struct buf *out, const struct ssh_certificate *c)
{
    unsigned char nonce[NONCE], serial[SERIAL];
    if (RAND_bytes(nonce, sizeof nonce) != 1 || RAND_bytes(serial, sizeof serial) != 1 ||
        c->public.n != SSH_CERTIFICATE_KEY || c->until <= c->from)
        return -1;
    return ssh_wire_put_string(out, SLICE(SSH_CERTIFICATE_TYPE)) < 0 ||
                   ssh_wire_put_string(out, (struct slice){(char *)nonce, sizeof nonce}) < 0 ||
                   ssh_wire_put_string(out, c->public) < 0 ||
                   buf_append(out, serial, sizeof serial) < 0 ||
                   ssh_wire_put_u32(out, OF_USER) < 0 ||
                   ssh_wire_put_string(out, slice_str(c->key_id)) < 0 ||
                   put_principals(out, c->principals) < 0 || put_u64(out, (uint64_t)c->from) < 0 ||
                   put_u64(out, (uint64_t)c->until) < 0 || put_critical(out, c) < 0 ||
                   put_extensions(out, c->extensions) < 0
               ? -1
               : ssh_wire_put_string(out, SLICE("")); /* reserved */
}

/* The CA's public half, then the signature over all before it. */
static int put_signature(struct buf *out, EVP_PKEY *ca)
{
    struct buf b;
    buf_init(&b, SSH_PUBLIC_MAX);
    int r = ssh_sign_public(&b, ca) < 0 ? -1 : ssh_wire_put_string(out, buf_slice(&b));
    buf_clear(&b);
    if (r == 0)
        r = ssh_sign_as(ca, buf_slice(out), &b) < 0 ? -1 : ssh_wire_put_string(out, buf_slice(&b));
    buf_free(&b);
    return r;
}

int ssh_certificate_make(const struct ssh_certificate *c, struct slice ca, struct buf *out,
                         struct err *err)
{
    EVP_PKEY *key = ssh_sign_key(ca, err);
    struct buf b;
    if (key == NULL)
        return -1;
    buf_init(&b, SSH_CERTIFICATE_MAX);
    int r = put_fields(&b, c) < 0 || put_signature(&b, key) < 0 ||
                    buf_append_slice(out, buf_slice(&b)) < 0
                ? err_set(err, ERR_INTERNAL, "a certificate cannot be made of this")
                : 0;
    buf_free(&b);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return r;
}
