/* Writes the block as JSON and finds one name in it again without a parser: it reads only what it
 * wrote itself, and decodes the value straight into secret memory. */
#include "env_block.h"

#include <openssl/evp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base64.h"
#include "ipc.h"

void env_block_begin(struct buf *b)
{
    buf_init_wiped(b, ENV_BLOCK_MAX);
}

static bool name_ok(const char *name)
{
    if (*name == 0)
        return false;
    for (; *name; name++)
        if (*name < 0x20 || *name > 0x7e || *name == '"' || *name == '\\')
            return false;
    return true;
}

int env_block_add(struct buf *b, const char *name, struct slice value, struct err *err)
{
    if (!name_ok(name))
        return err_set(err, ERR_PARSE, "a secret's name has a byte that it may not have");
    if (value.n > SECRET_MAX - 3)
        return err_set(err, ERR_LIMIT, "secret %s is longer than %d bytes", name, SECRET_MAX - 3);
    size_t text = (value.n + 2) / 3 * 4;
    unsigned char *to = NULL;
    if (buf_printf(b, "%s\"%s\":\"", buf_len(b) ? "," : "{", name) == 0 &&
        (to = buf_reserve(b, text + 1)) != NULL) {
        EVP_EncodeBlock(to, (const unsigned char *)value.p, (int)value.n);
        buf_commit(b, text);
    }
    if (to == NULL || buf_append_str(b, "\"") < 0)
        return err_set(err, ERR_LIMIT, "the secrets of the environment are over %d bytes",
                       ENV_BLOCK_MAX);
    return 0;
}

int env_block_end(struct buf *b, struct err *err)
{
    int fd = -1;
    if (buf_append_str(b, buf_len(b) ? "}" : "{}") < 0)
        err_set(err, ERR_LIMIT, "the secrets of the environment are over %d bytes", ENV_BLOCK_MAX);
    else
        fd = ipc_memfd("durward-env", buf_data(b), buf_len(b), err);
    buf_free(b);
    return fd;
}

/* One string of the block at *at: its content; moves behind the closing quote. */
static int string(struct slice *at, struct slice *ret)
{
    if (at->n == 0 || at->p[0] != '"')
        return -1;
    struct slice rest = {at->p + 1, at->n - 1};
    ssize_t end = slice_find(rest, '"');
    if (end < 0)
        return -1;
    *ret = (struct slice){rest.p, (size_t)end};
    *at = (struct slice){rest.p + end + 1, rest.n - (size_t)end - 1};
    return 0;
}

static bool skip(struct slice *at, char c)
{
    if (at->n == 0 || at->p[0] != c)
        return false;
    at->p++;
    at->n--;
    return true;
}

/* The base64 text of a name. 1 found, 0 not there, -1 damaged. Only what env_block_end wrote is
 * read: no white space, no escapes. */
static int find(struct slice at, const char *name, struct slice *ret)
{
    if (!skip(&at, '{'))
        return -1;
    if (skip(&at, '}'))
        return at.n == 0 ? 0 : -1;
    do {
        struct slice key, value;
        if (string(&at, &key) < 0 || !skip(&at, ':') || string(&at, &value) < 0)
            return -1;
        if (slice_eq_str(key, name)) {
            *ret = value;
            return 1;
        }
    } while (skip(&at, ','));
    return skip(&at, '}') && at.n == 0 ? 0 : -1;
}

static struct secret *decode(struct slice text, struct err *err)
{
    if (text.n == 0) {
        err_set(err, ERR_DENIED, "its value is empty");
        return NULL;
    }
    struct secret *s = secret_alloc(text.n / 4 * 3 + 1);
    ssize_t n = s ? base64_read(text, secret_bytes(s), text.n / 4 * 3 + 1) : -1;
    if (n >= 0) {
        secret_shorten(s, (size_t)n);
        return s;
    }
    secret_unref(s);
    err_set(err, ERR_PARSE, "the block of environment secrets is damaged");
    return NULL;
}

struct secret *env_block_get(int memfd, const char *name, struct err *err)
{
    struct stat st;
    if (fstat(memfd, &st) < 0 || st.st_size <= 0 || st.st_size > ENV_BLOCK_MAX) {
        err_set(err, ERR_PARSE, "there is no block of environment secrets");
        return NULL;
    }
    size_t n = (size_t)st.st_size;
    void *map = mmap(NULL, n, PROT_READ, MAP_PRIVATE, memfd, 0);
    if (map == MAP_FAILED) {
        err_sys(err, "mapping the environment secrets");
        return NULL;
    }
    struct slice text;
    struct secret *s = NULL;
    switch (find((struct slice){map, n}, name, &text)) {
    case 1:
        s = decode(text, err);
        break;
    case 0:
        err_set(err, ERR_UNREADY, "its environment variable was not set when Durward started");
        break;
    default:
        err_set(err, ERR_PARSE, "the block of environment secrets is damaged");
    }
    munmap(map, n);
    return s;
}
