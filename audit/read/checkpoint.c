/* Signs the Merkle root over the lines since the last checkpoint, puts it into the log as a line,
 * and parses and verifies such a line again. */
#include "checkpoint.h"

#include "proc.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 512 };

static int signed_text(const struct checkpoint *c, char text[TEXT_MAX], struct slice *ret)
{
    char root[CHAIN_HEX], prev[CHAIN_HEX];
    int n = snprintf(text, TEXT_MAX,
                     "durward audit checkpoint 1\n%" PRIu64 "\n%" PRIu64 "\n%s\n%s\n%s\n", c->first,
                     c->last, chain_hex(c->root, root), chain_hex(c->prev, prev), c->time);
    *ret = (struct slice){text, (size_t)n};
    return n > 0 && n < TEXT_MAX ? 0 : -1;
}

void checkpoint_signature_hex(const unsigned char sig[SIGNATURE_SIZE],
                              char out[CHECKPOINT_SIGNATURE_HEX])
{
    chain_hex(sig, out); /* two halves of a hash's size each */
    chain_hex(sig + CHAIN_HASH, out + 2 * CHAIN_HASH);
}

int checkpoint_signature_unhex(const char *hex, unsigned char sig[SIGNATURE_SIZE])
{
    size_t half = CHAIN_HEX - 1;
    if (strlen(hex) != 2 * half)
        return -1;
    return chain_unhex((struct slice){hex, half}, sig) |
           chain_unhex((struct slice){hex + half, half}, sig + CHAIN_HASH);
}

int checkpoint_put(struct log_file *log, const struct signing_key *key, uint64_t now_ns)
{
    struct checkpoint c;
    char text[TEXT_MAX], root[CHAIN_HEX], first[24], sig[CHECKPOINT_SIGNATURE_HEX];
    struct slice s;
    struct chain tip;
    if (!log_file_since(log, &c.first, c.root, &tip))
        return 0;
    c.last = tip.seq;
    memcpy(c.prev, tip.hash, CHAIN_HASH);
    timestamp_text(now_ns, c.time, sizeof c.time);
    if (signed_text(&c, text, &s) < 0 || signing_key_sign(key, s, c.signature) < 0)
        return -1;
    checkpoint_signature_hex(c.signature, sig);
    int n = snprintf(first, sizeof first, "%" PRIu64, c.first);
    struct render_source from = {.role = role_name(ROLE_LOGGER), .sandbox = "", .policy = ""};
    struct record_view v = {
        .kind = RECORD_CHECKPOINT, .wall_ns = now_ns, .counter = log_file_seq(log) + 1};
    v.field[RF_FIRST] = (struct slice){first, (size_t)n};
    v.field[RF_ROOT] = slice_str(chain_hex(c.root, root));
    v.field[RF_SIGNATURE] = slice_str(sig);
    return log_file_put(log, &v, &from, 0, now_ns) < 0 ? -1 : 1;
}

int checkpoint_parse(struct slice line, struct checkpoint *ret)
{
    const char *kind, *time, *root, *signature;
    json_int_t first;
    struct slice rest;
    uint64_t seq;
    if (chain_parse(line, &seq, ret->prev, &rest) < 0)
        return -1;
    json_t *j = json_loadb(line.p, line.n, JSON_REJECT_DUPLICATES, NULL);
    int r = json_unpack(j, "{s:s,s:s,s:I,s:s,s:s}", "kind", &kind, "time", &time, "first", &first,
                        "root", &root, "signature", &signature);
    if (r == 0 &&
        (strcmp(kind, "checkpoint") != 0 || first < 1 || seq < 2 ||
         strlen(time) >= sizeof ret->time || chain_unhex(slice_str(root), ret->root) < 0 ||
         checkpoint_signature_unhex(signature, ret->signature) < 0))
        r = -1;
    if (r == 0) {
        ret->first = (uint64_t)first;
        ret->last = seq - 1;
        snprintf(ret->time, sizeof ret->time, "%s", time);
    }
    json_decref(j);
    return r;
}

bool checkpoint_signed_by(const struct checkpoint *c, const struct signing_key *key)
{
    char text[TEXT_MAX];
    struct slice s;
    return signed_text(c, text, &s) == 0 && signing_key_verify(key, s, c->signature);
}
