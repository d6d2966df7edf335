/* Reads what an SSH agent says, and writes what it is asked. */
#include "host_agent.h"

#include "base64.h"
#include "ssh_wire.h"

#include <openssl/sha.h>
#include <string.h>

enum { IDENTITIES = 12, SIGN = 13, SIGNED = 14, KEYS_MAX = 1000, SIGNATURE_MAX = 1200 };

static const struct slice mark = SLICE_INIT("ssh-agent ");

int host_agent_next(struct slice came, struct slice *ret, size_t *n)
{
    uint32_t len;
    if (came.n < 4)
        return 0;
    if (ssh_wire_u32(&came, &len) < 0 || len == 0 || len > HOST_AGENT_MESSAGE_MAX)
        return -1;
    if (came.n < len)
        return 0;
    *ret = (struct slice){came.p, len};
    *n = 4 + (size_t)len;
    return 1;
}

static int put_fingerprint(struct slice key, struct buf *to)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *)key.p, key.n, hash);
    if (buf_append_str(to, "SHA256:") < 0 ||
        base64_append(to, (struct slice){(const char *)hash, sizeof hash}) < 0)
        return -1;
    buf_cut(to, 1); /* 32 bytes end with one "=", which nobody writes */
    return 0;
}

static int put_line(struct slice key, struct buf *to)
{
    struct slice rest = key, type;
    return ssh_wire_string(&rest, &type) < 0 || buf_append_slice(to, type) < 0 ||
                   buf_append_str(to, " ") < 0
               ? -1
               : base64_append(to, key);
}

static bool is_wanted(struct slice key, struct slice wanted)
{
    struct buf said;
    buf_init(&said, 2 * HOST_AGENT_KEY_MAX);
    int r =
        slice_starts(wanted, SLICE("SHA256:")) ? put_fingerprint(key, &said) : put_line(key, &said);
    bool same = r == 0 && slice_eq(buf_slice(&said), wanted);
    buf_free(&said);
    return same;
}

static struct secret *value_of(struct slice key)
{
    struct buf b;
    struct secret *ret = NULL;
    buf_init(&b, 2 * HOST_AGENT_KEY_MAX);
    if (buf_append_slice(&b, mark) == 0 && put_line(key, &b) == 0)
        ret = secret_new(buf_data(&b), buf_len(&b));
    buf_free(&b);
    return ret;
}

struct secret *host_agent_find(struct slice message, struct slice wanted, struct err *err)
{
    uint8_t type;
    uint32_t n = 0;
    struct slice key, comment;
    if (ssh_wire_u8(&message, &type) < 0 || type != IDENTITIES || ssh_wire_u32(&message, &n) < 0 ||
        n > KEYS_MAX) {
        err_set(err, ERR_PARSE, "its agent gives no list of keys");
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (ssh_wire_string(&message, &key) < 0 || ssh_wire_string(&message, &comment) < 0) {
            err_set(err, ERR_PARSE, "its agent's list of keys cannot be read");
            return NULL;
        }
        if (key.n <= HOST_AGENT_KEY_MAX && is_wanted(key, wanted)) {
            struct secret *value = value_of(key);
            if (value == NULL)
                err_set(err, ERR_INTERNAL, "out of memory");
            return value;
        }
    }
    err_set(err, ERR_UNREADY, "its agent has %u keys, and not this one; add it there (ssh-add)", n);
    return NULL;
}

bool host_agent_is(struct slice value)
{
    return slice_starts(value, mark);
}

int host_agent_public(struct slice value, struct buf *out)
{
    value = (struct slice){value.p + mark.n, value.n - mark.n};
    ssize_t blank = slice_find(value, ' ');
    size_t type_n = blank < 0 ? value.n : (size_t)blank;
    if (blank < 0 ||
        base64_decode(out, (struct slice){value.p + type_n + 1, value.n - type_n - 1}) < 0)
        return -1;
    struct slice rest = buf_slice(out), type;
    bool named = ssh_wire_string(&rest, &type) == 0 && type.n > 0 && rest.n > 0 &&
                 slice_eq(type, (struct slice){value.p, type_n});
    if (!named)
        buf_clear(out);
    return named ? 0 : -1;
}

int host_agent_ask(struct slice key, struct slice text, uint32_t flags, struct buf *to)
{
    return ssh_wire_put_u32(to, (uint32_t)(1 + 4 + key.n + 4 + text.n + 4)) < 0 ||
                   ssh_wire_put_u8(to, SIGN) < 0 || ssh_wire_put_string(to, key) < 0 ||
                   ssh_wire_put_string(to, text) < 0
               ? -1
               : ssh_wire_put_u32(to, flags);
}

int host_agent_signature(struct slice message, struct slice algorithm, struct buf *to,
                         struct err *err)
{
    uint8_t type;
    struct slice signature, rest, by, bytes;
    if (ssh_wire_u8(&message, &type) < 0 || type != SIGNED)
        return err_set(err, ERR_DENIED, "its agent does not sign this");
    if (ssh_wire_string(&message, &signature) < 0 || message.n > 0 || signature.n > SIGNATURE_MAX)
        return err_set(err, ERR_PARSE, "its agent's signature cannot be read");
    rest = signature;
    if (ssh_wire_string(&rest, &by) < 0 || ssh_wire_string(&rest, &bytes) < 0 || bytes.n == 0 ||
        !slice_eq(by, algorithm))
        return err_set(err, ERR_PARSE, "its agent signed by another algorithm than was asked for");
    return buf_append_slice(to, signature) < 0
               ? err_set(err, ERR_LIMIT, "its signature is too long")
               : 0;
}
