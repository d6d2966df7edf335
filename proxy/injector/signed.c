/* Makes the text of each kind from the request's parts and puts the signature into its fields. For
 * HMAC and RFC 9421 a part that is not there refuses the request. */
#include "signed.h"

#include "base64.h"
#include "guard_internal.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool signed_kind(const struct credential *c)
{
    return c->kind >= CREDENTIAL_HMAC && c->kind < CREDENTIAL_POSTGRES;
}

static bool covers(const struct credential *c, const char *name)
{
    for (size_t i = 0; i < c->n_signs; i++)
        if (strcmp(c->signs[i].name, name) == 0)
            return true;
    return false;
}

size_t signed_body_limit(const struct credential *c)
{
    if (c->kind == CREDENTIAL_SIGNATURE)
        return covers(c, "content-digest") ? SIGNED_BODY_MAX : 0;
    if (c->kind != CREDENTIAL_HMAC)
        return 0;
    if (strstr(c->text, "{body}"))
        return SIGNED_TEXT_MAX;
    bool hash = strstr(c->text, "{body_sha256}") != NULL;
    for (size_t i = 0; i < c->n_signs; i++)
        hash = hash || strstr(c->signs[i].value, "{body_sha256}");
    return hash ? SIGNED_BODY_MAX : 0;
}

void signed_free(struct signed_text *s)
{
    buf_free(&s->text);
}

/* ---- the moment ---- */

static int put_hex(char *to, const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        snprintf(to + 2 * i, 3, "%02x", p[i]);
    return 0;
}

static int begin(struct signed_text *s, struct slice body, int64_t now_ms)
{
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    unsigned char raw[16], md[32];
    time_t t = (time_t)(now_ms / 1000);
    struct tm tm;
    buf_init_wiped(&s->text, SIGNED_TEXT_MAX + 4096);
    if (gmtime_r(&t, &tm) == NULL || RAND_bytes(raw, sizeof raw) != 1 ||
        EVP_Digest(body.p, body.n, md, NULL, EVP_sha256(), NULL) != 1)
        return -1;
    snprintf(s->timestamp, sizeof s->timestamp, "%lld.%03d", (long long)t, (int)(now_ms % 1000));
    snprintf(s->date, sizeof s->date, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[tm.tm_wday],
             tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
    put_hex(s->nonce, raw, sizeof raw);
    return put_hex(s->hash, md, sizeof md);
}

static int put_seconds(const struct signed_text *s, struct buf *out)
{
    return buf_append(out, s->timestamp, strcspn(s->timestamp, "."));
}

static int put_ms(const struct signed_text *s, struct buf *out)
{
    return put_seconds(s, out) < 0 ? -1 : buf_append(out, strchr(s->timestamp, '.') + 1, 3);
}

/* ---- HMAC: templates ---- */

struct source {
    const struct signed_text *s;
    const struct head *head;
    const struct authority *authority;
    struct slice body;
    const char *signature; /* NULL: it is being made */
};

/* All fields of a name, as RFC 9110 5.3 joins them. -1: there is none, or no room. */
static int put_fields(const struct head *h, struct slice name, struct buf *out)
{
    bool any = false;
    for (size_t i = 0; i < h->n; i++) {
        if (!slice_ieq(h->fields[i].name, name))
            continue;
        if ((any && buf_append_str(out, ", ") < 0) ||
            buf_append_slice(out, slice_trim(h->fields[i].value)) < 0)
            return -1;
        any = true;
    }
    return any ? 0 : -1;
}

static int put_target(const struct head *h, struct buf *out)
{
    return buf_append_slice(out, h->path) < 0 ||
                   (h->has_query &&
                    (buf_append_str(out, "?") < 0 || buf_append_slice(out, h->query) < 0))
               ? -1
               : 0;
}

static int put_host(const struct authority *a, struct buf *out)
{
    char host[HOST_TEXT_MAX + 16];
    return buf_append_str(out, authority_text(a, host, sizeof host));
}

static int put_part(const struct source *from, struct slice name, struct buf *out)
{
    const struct head *h = from->head;
    if (slice_starts(name, SLICE("header:")))
        return put_fields(h, (struct slice){name.p + 7, name.n - 7}, out);
    if (slice_eq(name, SLICE("method")))
        return buf_append_slice(out, h->method);
    if (slice_eq(name, SLICE("path")))
        return buf_append_slice(out, h->path);
    if (slice_eq(name, SLICE("query")))
        return buf_append_slice(out, h->query);
    if (slice_eq(name, SLICE("target")))
        return put_target(h, out);
    if (slice_eq(name, SLICE("host")))
        return put_host(from->authority, out);
    if (slice_eq(name, SLICE("body")))
        return buf_append_slice(out, from->body);
    if (slice_eq(name, SLICE("body_sha256")))
        return buf_append_str(out, from->s->hash);
    if (slice_eq(name, SLICE("timestamp")))
        return put_seconds(from->s, out);
    if (slice_eq(name, SLICE("timestamp_ms")))
        return put_ms(from->s, out);
    if (slice_eq(name, SLICE("date")))
        return buf_append_str(out, from->s->date);
    if (slice_eq(name, SLICE("nonce")))
        return buf_append_str(out, from->s->nonce);
    return from->signature ? buf_append_str(out, from->signature) : -1;
}

static int put_template(const struct source *from, const char *p, struct buf *out)
{
    while (*p) {
        size_t n = strcspn(p, "{");
        const char *close = p[n] ? strchr(p + n, '}') : NULL;
        if (buf_append(out, p, n) < 0)
            return -1;
        if (p[n] == 0)
            return 0;
        if (close == NULL || /* rules/policy/rule_sign.c lets none such through */
            put_part(from, (struct slice){p + n + 1, (size_t)(close - p) - n - 1}, out) < 0)
            return -1;
        p = close + 1;
    }
    return 0;
}

/* ---- RFC 9421 ---- */

static int put_component(const struct source *from, const char *name, struct buf *out)
{
    const struct head *h = from->head;
    if (strcmp(name, "@method") == 0)
        return buf_append_slice(out, h->method);
    if (strcmp(name, "@authority") == 0 || strcmp(name, "host") == 0)
        return put_host(from->authority, out);
    if (strcmp(name, "@scheme") == 0)
        return buf_append_str(out, scheme_name(from->authority->scheme));
    if (strcmp(name, "@path") == 0)
        return buf_append_slice(out, h->path);
    if (strcmp(name, "@query") == 0) /* with its "?", also when there is none: 2.2.7 */
        return buf_append_str(out, "?") < 0 ? -1 : buf_append_slice(out, h->query);
    if (strcmp(name, "@request-target") == 0)
        return put_target(h, out);
    if (strcmp(name, "@target-uri") == 0)
        return buf_printf(out, "%s://", scheme_name(from->authority->scheme)) < 0 ||
                       put_host(from->authority, out) < 0
                   ? -1
                   : put_target(h, out);
    return put_fields(h, slice_str(name), out);
}

/* RFC 9530. */
static int set_digest(struct head *h, struct slice body)
{
    unsigned char md[32];
    struct buf v;
    buf_init(&v, 128);
    int r = EVP_Digest(body.p, body.n, md, NULL, EVP_sha256(), NULL) == 1 ? 0 : -1;
    r = r < 0 || buf_append_str(&v, "sha-256=:") < 0 ||
                base64_append(&v, (struct slice){(char *)md, sizeof md}) < 0 ||
                buf_append_str(&v, ":") < 0
            ? -1
            : http_head_set(h, "content-digest", buf_slice(&v));
    buf_free(&v);
    return r;
}

/* told: "ALGORITHM KEYID". */
static int put_params(struct signed_text *s, const struct credential *c, struct slice told)
{
    struct buf p;
    ssize_t blank = slice_find(told, ' ');
    long long created = strtoll(s->timestamp, NULL, 10);
    buf_init(&p, sizeof s->params - 1);
    int r = blank < 0 ? -1 : buf_append_str(&p, "(");
    for (size_t i = 0; r == 0 && i < c->n_signs; i++)
        r = buf_printf(&p, "%s\"%s\"", i ? " " : "", c->signs[i].name);
    if (r == 0)
        r = buf_printf(&p, ");created=%lld;keyid=\"%.*s\";alg=\"%.*s\"", created,
                       (int)(told.n - (size_t)blank - 1), told.p + blank + 1, (int)blank, told.p);
    if (r == 0 && c->count)
        r = buf_printf(&p, ";expires=%lld", created + c->count);
    if (r == 0 && c->nonce)
        r = buf_printf(&p, ";nonce=\"%s\"", s->nonce);
    if (r == 0 && *c->prefix)
        r = buf_printf(&p, ";tag=\"%s\"", c->prefix);
    snprintf(s->params, sizeof s->params, "%.*s", SL(buf_slice(&p)));
    buf_free(&p);
    return r;
}

static const char *prepare_signature(const struct source *from, struct signed_text *s,
                                     const struct credential *c, struct head *h, struct slice told)
{
    http_head_remove(h, "signature-input");
    if (covers(c, "content-digest") && set_digest(h, from->body) < 0)
        return "too_many_headers";
    if (covers(c, "date") && http_head_set(h, "date", slice_str(s->date)) < 0)
        return "too_many_headers";
    for (size_t i = 0; i < c->n_signs; i++)
        if (buf_printf(&s->text, "\"%s\": ", c->signs[i].name) < 0 ||
            put_component(from, c->signs[i].name, &s->text) < 0 ||
            buf_append_str(&s->text, "\n") < 0)
            return "signature_component"; /* a header that is not there */
    return put_params(s, c, told) < 0 ||
                   buf_printf(&s->text, "\"@signature-params\": %s", s->params) < 0
               ? "signature_component"
               : NULL;
}

/* ---- Azure Storage ---- */

static const struct slice empty = {"", 0};

static struct slice value_of(const struct head *h, const char *name)
{
    const struct field *f = http_head_find(h, name);
    return f ? slice_trim(f->value) : empty;
}

static int by_name(const void *a, const void *b)
{
    const struct field *x = a, *y = b;
    size_t n = x->name.n < y->name.n ? x->name.n : y->name.n;
    int r = n ? memcmp(x->name.p, y->name.p, n) : 0;
    if (r == 0)
        r = x->name.n < y->name.n ? -1 : x->name.n > y->name.n;
    if (r)
        return r;
    n = x->value.n < y->value.n ? x->value.n : y->value.n;
    r = n ? memcmp(x->value.p, y->value.p, n) : 0;
    return r ? r : x->value.n < y->value.n ? -1 : x->value.n > y->value.n;
}

static int put_azure_fields(const struct head *h, struct buf *out)
{
    struct field *f = calloc(h->n + 1, sizeof *f);
    size_t n = 0;
    int r = f ? 0 : -1;
    for (size_t i = 0; r == 0 && i < h->n; i++)
        if (slice_starts(h->fields[i].name, SLICE("x-ms-")))
            f[n++] = (struct field){h->fields[i].name, slice_trim(h->fields[i].value)};
    if (r == 0)
        qsort(f, n, sizeof *f, by_name);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = buf_printf(out, "%.*s:%.*s\n", SL(f[i].name), SL(f[i].value));
    free(f);
    return r;
}

static int hex_digit(char c)
{
    c = ascii_lower(c);
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Escapes undone; names in lower case. The text has room: it is no longer than what it came from.
 */
static struct slice plain(struct buf *text, struct slice s, bool lower)
{
    size_t from = buf_len(text);
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '%' && s.n - i > 2 && hex_digit(s.p[i + 1]) >= 0 && hex_digit(s.p[i + 2]) >= 0) {
            c = (char)(hex_digit(s.p[i + 1]) * 16 + hex_digit(s.p[i + 2]));
            i += 2;
        }
        c = lower ? ascii_lower(c) : c;
        if (buf_append(text, &c, 1) < 0)
            break;
    }
    return (struct slice){(char *)buf_data(text) + from, buf_len(text) - from};
}

/* Each name once, its values in order with commas between. */
static int put_azure_query(struct slice q, struct buf *out)
{
    struct guard_part part;
    struct buf text;
    struct field *f = calloc(q.n + 1, sizeof *f);
    size_t n = 0;
    buf_init(&text, q.n + 1);
    int r = f && buf_reserve(&text, q.n + 1) ? 0 : -1; /* it does not move any more */
    while (r == 0 && guard_next_part(&q, false, &part)) {
        f[n].name = plain(&text, part.name, true);
        f[n++].value = plain(&text, part.value, false);
    }
    if (r == 0)
        qsort(f, n, sizeof *f, by_name);
    for (size_t i = 0; r == 0 && i < n; i++)
        if (i > 0 && slice_eq(f[i].name, f[i - 1].name))
            r = buf_printf(out, ",%.*s", SL(f[i].value));
        else
            r = buf_printf(out, "\n%.*s:%.*s", SL(f[i].name), SL(f[i].value));
    free(f);
    buf_free(&text);
    return r;
}

/* told: " ACCOUNT". */
static const char *prepare_azure(const struct source *from, struct signed_text *s, struct head *h,
                                 struct slice told)
{
    static const char *const lines[] = {"content-md5",         "content-type", "",
                                        "if-modified-since",   "if-match",     "if-none-match",
                                        "if-unmodified-since", "range"};
    struct buf *out = &s->text;
    char length[24] = "";
    snprintf(s->params, sizeof s->params, "%.*s", SL(slice_trim(told)));
    if (http_head_set(h, "x-ms-date", slice_str(s->date)) < 0)
        return "too_many_headers";
    if (h->body == BODY_LENGTH)
        snprintf(length, sizeof length, "%llu", (unsigned long long)h->length);
    int r = buf_printf(out, "%.*s\n%.*s\n%.*s\n%s\n", SL(h->method),
                       SL(value_of(h, "content-encoding")), SL(value_of(h, "content-language")),
                       length);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(lines); i++) {
        struct slice v = *lines[i] ? value_of(h, lines[i]) : empty; /* x-ms-date instead of Date */
        r = buf_printf(out, "%.*s\n", SL(v));
    }
    r = r < 0 || put_azure_fields(h, out) < 0 || buf_printf(out, "/%s", s->params) < 0 ||
                buf_append_slice(out, h->path) < 0 || put_azure_query(from->head->query, out) < 0
            ? -1
            : 0;
    return r < 0 ? "signature_component" : NULL;
}

/* ---- both ends ---- */

const char *signed_prepare(struct signed_text *s, const struct credential *c, struct head *h,
                           const struct authority *a, struct slice body, struct slice told,
                           int64_t now_ms)
{
    struct source from = {s, h, a, body, NULL};
    if (begin(s, body, now_ms) < 0)
        return "memory";
    if (c->kind == CREDENTIAL_AZURE)
        return prepare_azure(&from, s, h, told);
    if (c->kind == CREDENTIAL_SIGNATURE)
        return prepare_signature(&from, s, c, h, told);
    for (size_t i = 0; i < c->n_signs; i++)
        http_head_remove(h, c->signs[i].name);
    return put_template(&from, c->text, &s->text) < 0 ? "signature_component" : NULL;
}

static int finish_hmac(const struct signed_text *s, const struct credential *c, struct head *h,
                       struct slice signature)
{
    char hex[2 * EVP_MAX_MD_SIZE + 1];
    struct source from = {.s = s, .head = h, .signature = hex};
    struct buf v;
    int r = signature.n > EVP_MAX_MD_SIZE ? -1 : 0;
    buf_init(&v, sizeof hex - 1);
    if (r == 0 && !c->base64)
        put_hex(hex, (const unsigned char *)signature.p, signature.n);
    else if (r == 0 && (r = base64_append(&v, signature)) == 0)
        snprintf(hex, sizeof hex, "%.*s", SL(buf_slice(&v)));
    buf_free(&v);
    for (size_t i = 0; r == 0 && i < c->n_signs; i++) {
        buf_init(&v, 4096);
        r = put_template(&from, c->signs[i].value, &v) < 0
                ? -1
                : http_head_set(h, c->signs[i].name, buf_slice(&v));
        buf_free(&v);
    }
    return r;
}

int signed_finish(const struct signed_text *s, const struct credential *c, struct head *h,
                  struct slice signature)
{
    struct buf v;
    if (c->kind == CREDENTIAL_HMAC)
        return finish_hmac(s, c, h, signature);
    bool azure = c->kind == CREDENTIAL_AZURE;
    buf_init(&v, sizeof s->params + 2048);
    int r = azure ? buf_printf(&v, "SharedKey %s:", s->params) : buf_printf(&v, "%s=:", c->text);
    r = r < 0 || base64_append(&v, signature) < 0 || (!azure && buf_append_str(&v, ":") < 0)
            ? -1
            : http_head_set(h, azure ? "authorization" : "signature", buf_slice(&v));
    buf_clear(&v);
    if (r == 0 && !azure)
        r = buf_printf(&v, "%s=%s", c->text, s->params) < 0
                ? -1
                : http_head_set(h, "signature-input", buf_slice(&v));
    buf_free(&v);
    return r;
}
