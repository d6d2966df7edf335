/* Reads what a client asks of its agent, and the facts that front and back say of it. */
#include "ssh_agent.h"

#include "base64.h"
#include "ssh_wire.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

int ssh_agent_read(struct slice body, struct ssh_agent_asked *ret)
{
    memset(ret, 0, sizeof *ret);
    if (ssh_wire_u8(&body, &ret->type) < 0)
        return -1;
    if (ret->type == SSH_AGENT_LIST)
        return body.n == 0 ? 0 : -1;
    if (ret->type != SSH_AGENT_SIGN)
        return 0;
    return ssh_wire_string(&body, &ret->key) < 0 || ret->key.n == 0 ||
                   ret->key.n > SSH_AGENT_PUBLIC_MAX || ssh_wire_string(&body, &ret->text) < 0 ||
                   ssh_wire_u32(&body, &ret->flags) < 0 || body.n != 0
               ? -1
               : 0;
}

/* ---- facts ---- */

int ssh_agent_facts_put(const struct ssh_agent_facts *f, struct buf *to)
{
    if (ssh_wire_put_string(to, f->key) < 0)
        return -1;
    return f->key.n == 0 ? 0
           : ssh_wire_put_u32(to, f->flags) < 0 || ssh_wire_put_string(to, f->what.space) < 0 ||
                   ssh_wire_put_string(to, f->what.algorithm) < 0
               ? -1
               : ssh_wire_put_string(to, f->what.hash);
}

/* What it makes is held against the one form of such a text by who signs; here its parts are. */
int ssh_agent_facts_get(struct slice s, struct ssh_agent_facts *ret)
{
    struct buf text;
    memset(ret, 0, sizeof *ret);
    if (ssh_wire_string(&s, &ret->key) < 0 || ret->key.n > SSH_AGENT_PUBLIC_MAX)
        return -1;
    if (ret->key.n == 0)
        return s.n == 0 ? 0 : -1;
    if (ssh_wire_u32(&s, &ret->flags) < 0 || ssh_wire_string(&s, &ret->what.space) < 0 ||
        ssh_wire_string(&s, &ret->what.algorithm) < 0 || ssh_wire_string(&s, &ret->what.hash) < 0 ||
        s.n != 0)
        return -1;
    buf_init(&text, SSHSIG_MAX);
    int r = sshsig_put(&ret->what, &text);
    buf_free(&text);
    return r;
}

/* ---- where, and words ---- */

bool ssh_agent_is(const struct authority *a)
{
    return a->scheme == SCHEME_SSH && a->kind == HOST_NAME && a->port == 22 &&
           strcmp(a->host, SSH_AGENT_HOST) == 0;
}

void ssh_agent_print(struct slice key, char to[SSH_AGENT_PRINT])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    struct buf b;
    to[0] = 0;
    buf_init(&b, SSH_AGENT_PRINT);
    if (EVP_Digest(key.p, key.n, digest, &n, EVP_sha256(), NULL) == 1 &&
        base64_append(&b, (struct slice){(char *)digest, n}) == 0) {
        struct slice text = buf_slice(&b);
        while (text.n > 0 && text.p[text.n - 1] == '=')
            text.n--;
        snprintf(to, SSH_AGENT_PRINT, "SHA256:%.*s", SL(text));
    }
    buf_free(&b);
}

void ssh_agent_hash(const struct sshsig *what, char *to, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = (size_t)snprintf(to, size, "%.*s:", SL(what->algorithm));
    for (size_t i = 0; i < what->hash.n && n + 2 < size; i++) {
        unsigned char c = (unsigned char)what->hash.p[i];
        to[n++] = digits[c >> 4];
        to[n++] = digits[c & 15];
        to[n] = 0;
    }
}

void ssh_agent_record(const struct ssh_agent_facts *f, struct record *r)
{
    char print[SSH_AGENT_PRINT], hash[2 * SSHSIG_HASH_MAX + 16], path[SSHSIG_NAMESPACE_MAX + 2];
    ssh_agent_print(f->key, print);
    ssh_agent_hash(&f->what, hash, sizeof hash);
    snprintf(path, sizeof path, "/%.*s", SL(f->what.space));
    record_put_str(r, RF_METHOD, SSH_AGENT_VERB);
    record_put_str(r, RF_PATH, path);
    record_put_str(r, RF_KEY, print);
    record_put_str(r, RF_HASH, hash);
}
