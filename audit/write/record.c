/* Collects the fields of a record and encodes it in the journal's form; the tables of names stand
 * here. record_read.c decodes it. */
#include "record.h"

#include <string.h>

enum {
    HEAD_SIZE = 21,       /* length, kind, wall clock, counter */
    NUMBERS_RESERVE = 340 /* room that text fields leave, so that status and counts always fit */
};

static const char *const kinds[RECORD_KINDS] = {
    [RECORD_ADMITTED] = "admitted",
    [RECORD_DENIED] = "denied",
    [RECORD_COMPLETED] = "completed",
    [RECORD_ABORTED] = "aborted",
    [RECORD_CONNECTION] = "connection",
    [RECORD_DNS] = "dns",
    [RECORD_PACKET] = "packet",
    [RECORD_TLS_REFUSED] = "tls_refused",
    [RECORD_LIFECYCLE] = "lifecycle",
    [RECORD_CHECKPOINT] = "checkpoint",
    [RECORD_OPENED] = "opened",
    [RECORD_PROGRESS] = "progress",
    [RECORD_BODY] = "body",
    [RECORD_GAP] = "gap",
};

static const char *const fields[RF_FIELDS] = {
    [RF_CODE] = "code",
    [RF_SCHEME] = "scheme",
    [RF_AUTHORITY] = "authority",
    [RF_METHOD] = "method",
    [RF_PATH] = "path",
    [RF_QUERY] = "query",
    [RF_RULE] = "rule",
    [RF_CREDENTIAL] = "credential",
    [RF_STATUS] = "status",
    [RF_UP] = "bytes_up",
    [RF_DOWN] = "bytes_down",
    [RF_ADDRESS] = "address",
    [RF_MS] = "ms",
    [RF_COUNT] = "count",
    [RF_TARGET] = "target",
    [RF_DETAIL] = "detail",
    [RF_ENTRY] = "entry",
    [RF_EVENT] = "event",
    [RF_SANDBOX] = "sandbox",
    [RF_POLICY] = "policy",
    [RF_REQUEST] = "request",
    [RF_FIRST] = "first",
    [RF_ROOT] = "root",
    [RF_SIGNATURE] = "signature",
    [RF_VIA] = "via",
    [RF_MESSAGES_UP] = "messages_up",
    [RF_MESSAGES_DOWN] = "messages_down",
    [RF_CLOSE] = "close",
    [RF_QUEUE_MS] = "queue_ms",
    [RF_DIAL_MS] = "dial_ms",
    [RF_TLS_MS] = "tls_ms",
    [RF_FIRST_MS] = "first_ms",
    [RF_TLS] = "tls",
    [RF_PROTOCOL] = "protocol",
    [RF_OFFSET] = "offset",
    [RF_BODY] = "body",
    [RF_LAST] = "last",
    [RF_NODES] = "nodes",
    [RF_BYTES] = "bytes",
    [RF_REPAIRED] = "repaired",
    [RF_MODEL] = "model",
    [RF_TOKENS_IN] = "tokens_in",
    [RF_TOKENS_CACHED] = "tokens_cached",
    [RF_TOKENS_WRITTEN] = "tokens_cache_write",
    [RF_TOKENS_OUT] = "tokens_out",
    [RF_COST] = "cost_millionths",
    [RF_USAGE] = "usage",
    [RF_USER] = "user",
    [RF_COMMAND] = "command",
    [RF_EXIT] = "exit_status",
    [RF_STATEMENTS] = "statements",
    [RF_PATTERNS] = "patterns",
    [RF_KEY] = "key_fingerprint",
    [RF_HASH] = "signed_hash",
    [RF_KUBERNETES] = "kubernetes",
};

const char *record_kind_name(enum record_kind k)
{
    return k > 0 && k < RECORD_KINDS ? kinds[k] : "unknown";
}

const char *record_field_name(enum record_field f)
{
    return f > 0 && f < RF_FIELDS ? fields[f] : "unknown";
}

bool record_field_is_number(enum record_field f)
{
    return f == RF_STATUS || f == RF_UP || f == RF_DOWN || f == RF_MS || f == RF_COUNT ||
           f == RF_FIRST || f == RF_MESSAGES_UP || f == RF_MESSAGES_DOWN || f == RF_CLOSE ||
           (f >= RF_QUEUE_MS && f <= RF_FIRST_MS) || f == RF_OFFSET ||
           (f >= RF_TOKENS_IN && f <= RF_COST) || f == RF_EXIT;
}

void record_init(struct record *r, enum record_kind kind, uint64_t counter)
{
    r->kind = kind;
    r->counter = counter;
    r->n = 0;
    r->has = 0;
    r->cut = false;
}

_Static_assert(RF_FIELDS <= 64, "a bit each");

void record_put(struct record *r, enum record_field f, struct slice v)
{
    uint64_t number;
    bool is_number = record_field_is_number(f);
    if (v.n == 0 || f <= 0 || f >= RF_FIELDS || (r->has >> f & 1))
        return;
    if (is_number && (slice_u64(v, INT64_MAX, &number) < 0 || (v.p[0] == '0' && v.n > 1)))
        return;
    size_t room = RECORD_MAX - HEAD_SIZE - (is_number ? 0 : NUMBERS_RESERVE);
    if (r->n + 3 >= room) {
        r->cut = true;
        return;
    }
    size_t max = room - r->n - 3, n = v.n;
    if (max > RECORD_FIELD_MAX)
        max = RECORD_FIELD_MAX;
    if (n > max) {
        r->cut = true;
        n = max;
    }
    r->has |= UINT64_C(1) << f;
    r->body[r->n] = (unsigned char)f;
    r->body[r->n + 1] = (unsigned char)(n >> 8);
    r->body[r->n + 2] = (unsigned char)n;
    memcpy(r->body + r->n + 3, v.p, n);
    r->n += 3 + n;
}

void record_put_str(struct record *r, enum record_field f, const char *v)
{
    record_put(r, f, slice_str(v));
}

void record_put_u64(struct record *r, enum record_field f, uint64_t v)
{
    char text[SLICE_U64_TEXT];
    record_put(r, f, slice_of_u64(v > INT64_MAX ? INT64_MAX : v, text));
}

static unsigned char *put_u64(unsigned char *to, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        *to++ = (unsigned char)(v >> (56 - 8 * i));
    return to;
}

size_t record_encode(const struct record *r, uint64_t wall_ns, unsigned char *out, size_t size)
{
    size_t total = HEAD_SIZE + r->n, rest = total - 4;
    if (total > size)
        return 0;
    for (int i = 0; i < 4; i++)
        out[i] = (unsigned char)(rest >> (24 - 8 * i));
    out[4] = (unsigned char)((unsigned)r->kind | (r->cut ? 0x80U : 0));
    unsigned char *at = put_u64(out + 5, wall_ns);
    at = put_u64(at, r->counter);
    if (r->n)
        memcpy(at, r->body, r->n);
    return total;
}
