/* Writes such a line, and reads it as follows: each field by itself, then the whole is written anew
 * and must be the same, so that there is nothing that two readers read in two ways. */
#include "fleet_head.h"

#include "checkpoint.h"
#include "merkle.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FIELDS = 12, TIME_LEN = 30 };

static const char mark[] = "durward-fleet-head/1";
static const char *const words[DOUBT_KINDS] = {"", "missing", "changed", "unsigned", "forked"};

const char *fleet_doubt_word(enum fleet_doubt_kind k)
{
    return words[k];
}

bool fleet_host_ok(struct slice name)
{
    for (size_t i = 0; i < name.n; i++)
        if (!ascii_is_alnum(name.p[i]) && name.p[i] != '_' &&
            (i == 0 || (name.p[i] != '.' && name.p[i] != '-')))
            return false;
    return name.n > 0 && name.n <= FLEET_LINE_NAME;
}

void fleet_key_id(const struct signing_key *key, char id[FLEET_KEY_ID + 1])
{
    unsigned char raw[CHAIN_HASH];
    char hex[CHAIN_HEX] = "";
    if (signing_key_raw(key, raw) == 0)
        chain_hex(raw, hex);
    memcpy(id, hex, FLEET_KEY_ID);
    id[FLEET_KEY_ID] = 0;
}

int fleet_head_root(const struct fleet_head *h, unsigned char root[CHAIN_HASH])
{
    struct merkle m;
    memset(root, 0, CHAIN_HASH);
    merkle_clear(&m);
    for (size_t i = 0; i < h->n_seen; i++)
        if (merkle_add(&m, h->seen[i].hash) < 0)
            return -1;
    return h->n_seen ? merkle_root(&m, root) : 0;
}

const struct fleet_seen *fleet_head_saw(const struct fleet_head *h, const char *host)
{
    for (size_t i = 0; i < h->n_seen; i++)
        if (strcmp(h->seen[i].host, host) == 0)
            return &h->seen[i];
    return NULL;
}

/* ---- writing ---- */

static int put_signed(const struct fleet_head *h, struct buf *out)
{
    unsigned char root[CHAIN_HASH];
    char hash[CHAIN_HEX], hex[CHAIN_HEX];
    if (fleet_head_root(h, root) < 0)
        return -1;
    int r = buf_printf(out, "%s %s %s %" PRIu64 " %d %" PRIu64 " %s %s %s ", mark, h->host, h->key,
                       h->number, h->anew, h->log.seq, chain_hex(h->log.hash, hash), h->time,
                       chain_hex(root, hex));
    for (size_t i = 0; r == 0 && i < h->n_seen; i++)
        r = buf_printf(out, "%s%s:%" PRIu64 ":%s", i ? "," : "", h->seen[i].host, h->seen[i].number,
                       chain_hex(h->seen[i].hash, hex));
    if (r == 0)
        r = buf_append_str(out, h->n_seen ? " " : "- ");
    for (size_t i = 0; r == 0 && i < h->n_doubts; i++)
        r = buf_printf(out, "%s%s:%" PRIu64 ":%s", i ? "," : "", h->doubt[i].host,
                       h->doubt[i].number, words[h->doubt[i].kind]);
    return r == 0 && h->n_doubts == 0 ? buf_append_str(out, "-") : r;
}

int fleet_head_make(struct fleet_head *h, const struct signing_key *key, struct buf *out)
{
    unsigned char sig[SIGNATURE_SIZE];
    char hex[CHECKPOINT_SIGNATURE_HEX];
    fleet_key_id(key, h->key);
    if (put_signed(h, out) < 0 || signing_key_sign(key, buf_slice(out), sig) < 0)
        return -1;
    checkpoint_signature_hex(sig, hex);
    return buf_printf(out, " %s", hex) < 0 || buf_len(out) > FLEET_LINE_MAX
               ? -1
               : chain_hash(buf_slice(out), h->hash);
}

/* ---- reading ---- */

/* Up to the next such sign, or all that is left. */
static struct slice cut(struct slice *s, char at)
{
    ssize_t end = slice_find(*s, at);
    struct slice part = {s->p, end < 0 ? s->n : (size_t)end};
    size_t used = end < 0 ? s->n : part.n + 1;
    *s = (struct slice){s->p + used, s->n - used};
    return part;
}

static int get_host(struct slice s, char host[FLEET_LINE_NAME + 1])
{
    if (!fleet_host_ok(s))
        return -1;
    memcpy(host, s.p, s.n);
    host[s.n] = 0;
    return 0;
}

static int get_number(struct slice s, uint64_t *number)
{
    return slice_u64(s, INT64_MAX, number) < 0 || *number == 0 ? -1 : 0;
}

static int get_seen(struct slice s, struct fleet_head *h)
{
    if (slice_eq_str(s, "-"))
        return 0;
    do {
        struct slice one = cut(&s, ',');
        struct fleet_seen *to = &h->seen[h->n_seen];
        if (h->n_seen == FLEET_LINE_HOSTS || get_host(cut(&one, ':'), to->host) < 0 ||
            get_number(cut(&one, ':'), &to->number) < 0 || chain_unhex(one, to->hash) < 0 ||
            (h->n_seen && strcmp(to[-1].host, to->host) >= 0))
            return -1;
        h->n_seen++;
    } while (s.n);
    return 0;
}

static int get_doubts(struct slice s, struct fleet_head *h)
{
    if (slice_eq_str(s, "-"))
        return 0;
    do {
        struct slice one = cut(&s, ',');
        struct fleet_doubt *to = &h->doubt[h->n_doubts];
        if (h->n_doubts == FLEET_DOUBTS_MAX || get_host(cut(&one, ':'), to->host) < 0 ||
            get_number(cut(&one, ':'), &to->number) < 0)
            return -1;
        for (unsigned k = DOUBT_MISSING; k < DOUBT_KINDS; k++)
            if (slice_eq_str(one, words[k]))
                to->kind = (enum fleet_doubt_kind)k;
        if (to->kind == 0)
            return -1;
        h->n_doubts++;
    } while (s.n);
    return 0;
}

static int get_text(struct slice s, size_t n, char *to)
{
    if (s.n != n)
        return -1;
    memcpy(to, s.p, n);
    to[n] = 0;
    return 0;
}

static int get_fields(struct slice line, struct fleet_head *h)
{
    struct slice f[FIELDS], rest = line;
    uint64_t anew = 0, when;
    for (size_t i = 0; i < FIELDS; i++)
        if ((f[i] = i + 1 < FIELDS ? cut(&rest, ' ') : rest).n == 0)
            return -1;
    if (!slice_eq_str(f[0], mark) || get_host(f[1], h->host) < 0 ||
        get_text(f[2], FLEET_KEY_ID, h->key) < 0 || get_number(f[3], &h->number) < 0 ||
        slice_u64(f[4], 1, &anew) < 0 || get_number(f[5], &h->log.seq) < 0 ||
        chain_unhex(f[6], h->log.hash) < 0 || get_text(f[7], TIME_LEN, h->time) < 0 ||
        timestamp_parse(h->time, 0, &when, NULL) < 0 || get_seen(f[9], h) < 0 ||
        get_doubts(f[10], h) < 0)
        return -1;
    h->anew = anew;
    /* its own line before is among what it has seen, but for the first one */
    const struct fleet_seen *own = fleet_head_saw(h, h->host);
    return own ? (own->number == h->number - 1 ? 0 : -1) : h->number == 1 ? 0 : -1;
}

int fleet_head_peek(struct slice line, char host[FLEET_LINE_NAME + 1], uint64_t *number)
{
    (void)cut(&line, ' ');
    if (get_host(cut(&line, ' '), host) < 0)
        return -1;
    (void)cut(&line, ' ');
    return get_number(cut(&line, ' '), number);
}

/* What is signed, and by which signature; -1: there is none as it has to be written. */
static int take_apart(struct slice line, struct slice *text, unsigned char sig[SIGNATURE_SIZE])
{
    char hex[CHECKPOINT_SIGNATURE_HEX];
    size_t n = sizeof hex - 1;
    if (line.n <= n + 1 || line.p[line.n - n - 1] != ' ')
        return -1;
    *text = (struct slice){line.p, line.n - n - 1};
    memcpy(hex, line.p + line.n - n, n);
    hex[n] = 0;
    return checkpoint_signature_unhex(hex, sig);
}

int fleet_head_parse(struct slice line, struct fleet_head *ret)
{
    struct buf again;
    struct slice text;
    unsigned char sig[SIGNATURE_SIZE];
    memset(ret, 0, sizeof *ret);
    if (line.n > FLEET_LINE_MAX || get_fields(line, ret) < 0 || take_apart(line, &text, sig) < 0)
        return -1;
    buf_init(&again, FLEET_LINE_MAX);
    bool same = put_signed(ret, &again) == 0 && slice_eq(buf_slice(&again), text);
    buf_free(&again);
    return same ? chain_hash(line, ret->hash) : -1;
}

bool fleet_head_signed_by(struct slice line, const struct signing_key *key)
{
    unsigned char sig[SIGNATURE_SIZE];
    struct slice text;
    return take_apart(line, &text, sig) == 0 && signing_key_verify(key, text, sig);
}
