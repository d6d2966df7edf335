/* Finds the slot of each kind of credential, refuses a request where the gate has not done its
 * part, and writes the value, escaped for the place that it goes to. */
#include "placement.h"

#include "placement_slots.h"
#include "guard_internal.h"
#include "http1_head.h"
#include "media_type.h"
#include "secret.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { SHOWN_MAX = 256 * 1024 };
enum escape { ESC_RAW, ESC_PATH, ESC_QUERY, ESC_JSON };

static int put_escaped(struct buf *out, struct slice v, enum escape e)
{
    static const char unreserved[] = "-._~", also_path[] = "!$&'()*+,;=:@";
    for (size_t i = 0; i < v.n; i++) {
        char c = v.p[i];
        bool plain = ascii_is_alnum(c) || (c && strchr(unreserved, c)) ||
                     (e == ESC_PATH && c && strchr(also_path, c));
        int r;
        if (e == ESC_JSON)
            r = buf_printf(out, "%s%c", c == '"' || c == '\\' ? "\\" : "", c);
        else if (e == ESC_RAW || plain)
            r = buf_append(out, &c, 1);
        else
            r = buf_printf(out, "%%%02X", (unsigned char)c);
        if (r < 0)
            return -1;
    }
    return 0;
}

/* The first of the marks in the text; n 0 when there is none. */
static struct slice find_mark(const struct injector_channel_marks *marks, struct slice text)
{
    struct slice found = {text.p, 0};
    for (unsigned i = 0; i < marks->n; i++) {
        struct slice mark = slice_str(marks->text[i]);
        ssize_t at = slice_find_slice(text, mark);
        if (at >= 0 && (found.n == 0 || text.p + at < found.p))
            found = (struct slice){text.p + at, mark.n};
    }
    return found;
}

static unsigned count_in(const struct placement *f, struct slice text)
{
    struct slice at;
    unsigned n = 0;
    while ((at = find_mark(&f->marks, text)).n > 0 && n <= PLACE_COUNT_MAX) {
        n++;
        text = (struct slice){at.p + at.n, text.n - (size_t)(at.p - text.p) - at.n};
    }
    return n;
}

static int replace_in(const struct placement *f, struct buf *out, struct slice text, enum escape e,
                      struct slice value)
{
    struct slice at;
    while ((at = find_mark(&f->marks, text)).n > 0) {
        size_t before = (size_t)(at.p - text.p);
        if (buf_append(out, text.p, before) < 0 || put_escaped(out, value, e) < 0)
            return -1;
        text = (struct slice){at.p + at.n, text.n - before - at.n};
    }
    return buf_append_slice(out, text);
}

/* ---- before the value is there ---- */

/* One of the rule's fields is a JSON pointer. */
static bool points(const struct credential *c)
{
    return c->slots[0] == '/' || strstr(c->slots, "\n/") != NULL;
}

/* Some clients say no type of what they send, and their servers take it for what they speak:
 * Vault's and OpenBao's, for JSON. It is still read as strictly. */
static enum placement_body body_kind_of(const struct credential *c, const struct head *h)
{
    const struct field *type = http_head_find(h, "content-type");
    if (h->body == BODY_NONE || http_head_count(h, "content-type") > 1 ||
        http_head_find(h, "content-encoding"))
        return PLACEMENT_NO_BODY;
    if (type == NULL)
        return points(c) ? PLACEMENT_JSON : PLACEMENT_NO_BODY;
    switch (media_type_form(type->value)) {
    case MEDIA_TYPE_JSON:
        return PLACEMENT_JSON;
    case MEDIA_TYPE_FORM:
        return PLACEMENT_FORM;
    case MEDIA_TYPE_OTHER:
        break;
    }
    return PLACEMENT_NO_BODY;
}

/* The gate takes the slot out; one that did not is not believed. */
static bool has_part(struct slice all, bool cookie, const char *name)
{
    struct guard_part part;
    while (guard_next_part(&all, cookie, &part))
        if (cookie ? slice_ieq_str(slice_trim(part.name), name)
                   : guard_parameter_is(part.name, name))
            return true;
    return false;
}

static const char *begin_aws(struct placement *f, struct head *h)
{
    const char *bad = aws_claim(h, f->credential, &f->claim);
    if (bad)
        return bad;
    f->claim.key_id = (struct slice){"", 0}; /* it goes now */
    aws_strip(h);
    if (f->claim.payload == AWS_CLAIMED) {
        f->passing = EVP_MD_CTX_new();
        if (f->passing == NULL || EVP_DigestInit_ex(f->passing, EVP_sha256(), NULL) != 1)
            return "memory";
        f->left = h->body == BODY_LENGTH ? h->length : 0;
    }
    return NULL;
}

/* The place that the gate left, or both where the rule has both; what it left there is lost. */
static void begin_fields(struct placement *f, const struct credential *c, struct head *h)
{
    bool any = false;
    f->slot = c;
    for (const struct credential *p = c; p; p = p->other) {
        if (http_head_remove(h, p->header) == 0)
            continue;
        if (any && c->both)
            f->also = p;
        else
            f->slot = p;
        any = true;
    }
}

void placement_init(struct placement *f)
{
    memset(f, 0, offsetof(struct placement, marks));
    buf_init(&f->shown, SHOWN_MAX);
    f->marks.n = 0;
    f->claim.payload = (enum aws_payload)0;
    f->signed_names[0] = f->key_id[0] = f->signature[0] = 0;
    f->text.text = (struct buf){.max = 0};
}

/* Before the secret is in the path, which stands in records and is shown to whoever is asked. */
static void show_path(struct placement *f, const struct head *h)
{
    if (replace_in(f, &f->shown, h->path, ESC_RAW, SLICE("[placeholder]")) < 0)
        buf_clear(&f->shown);
}

const char *placement_begin(struct placement *f, const struct credential *c,
                            const struct injector_channel_marks *marks, struct head *h)
{
    placement_init(f);
    f->credential = c;
    if (placement_signs(f)) {
        memset(&f->claim, 0, sizeof f->claim);
        memset(&f->scope, 0, sizeof f->scope);
        memset(&f->text, 0, sizeof f->text);
    }
    switch (c->kind) {
    case CREDENTIAL_QUERY:
        return has_part(h->query, false, c->name) ? "grant_request" : NULL;
    case CREDENTIAL_COOKIE:
        for (size_t i = 0; i < h->n; i++)
            if (slice_eq_str(h->fields[i].name, "cookie") &&
                has_part(h->fields[i].value, true, c->name))
                return "grant_request";
        return NULL;
    case CREDENTIAL_AWS:
        return begin_aws(f, h);
    case CREDENTIAL_CERTIFICATE: /* of the connection */
        return NULL;
    case CREDENTIAL_PLACEHOLDER:
        f->marks = *marks;
        f->body = c->places & PLACE_BODY ? body_kind_of(c, h) : PLACEMENT_NO_BODY;
        if (placement_hides_path(f))
            show_path(f, h);
        return NULL;
    default:
        begin_fields(f, c, h);
        return NULL;
    }
}

size_t placement_body_limit(const struct placement *f, const struct head *h)
{
    if (h->body == BODY_TUNNEL)
        return 0; /* frames have no end to wait for */
    if (signed_kind(f->credential))
        return h->body != BODY_NONE ? signed_body_limit(f->credential) : 0;
    if (placement_signs(f) && f->claim.payload == AWS_HASHED && h->body != BODY_NONE)
        return AWS_BODY_MAX;
    return f->body != PLACEMENT_NO_BODY && h->body != BODY_NONE ? PLACEMENT_BODY_MAX : 0;
}

static unsigned count_marks(const struct placement *f, const struct head *h,
                            const struct body_buffer *body)
{
    const struct credential *c = f->credential;
    unsigned n = 0;
    struct slice q = h->query;
    struct guard_part part;
    if (c->places & PLACE_PATH)
        n += count_in(f, h->path);
    while (c->places & PLACE_QUERY && guard_next_part(&q, false, &part))
        if (guard_parameter_is(part.name, c->name))
            n += count_in(f, part.value);
    for (size_t i = 0; c->places & PLACE_HEADER && i < h->n; i++)
        if (slice_eq_str(h->fields[i].name, c->header))
            n += count_in(f, h->fields[i].value);
    if (body->state == BODY_BUFFER_WHOLE)
        n += count_in(f, buf_slice(&body->body));
    return n;
}

const char *placement_check(const struct placement *f, const struct head *h,
                            const struct body_buffer *body)
{
    const struct credential *c = f->credential;
    if (c->kind != CREDENTIAL_PLACEHOLDER)
        return NULL;
    if (body->state == BODY_BUFFER_WHOLE &&
        !placement_slots_hold(c, f->body, &f->marks, buf_slice(&body->body)))
        return "secret_blocked";
    enum placement_described described = PLACEMENT_NOT_DESCRIBED;
    if (c->beside[0] && body->state == BODY_BUFFER_WHOLE)
        described = placement_slots_beside(c, f->body, &f->marks, buf_slice(&body->body));
    if (c->beside[0] && described == PLACEMENT_NOT_DESCRIBED)
        return "secret_blocked";
    bool without = c->beside[0] ? described == PLACEMENT_WITHOUT : c->captured;
    unsigned n = count_marks(f, h, body);
    return n == c->count || (n == 0 && without) ? NULL : "placeholder_count";
}

bool placement_wanted(const struct placement *f, const struct head *h,
                      const struct body_buffer *body)
{
    const struct credential *c = f->credential;
    return !c->captured || c->kind != CREDENTIAL_PLACEHOLDER || count_marks(f, h, body) > 0;
}

bool placement_hides_path(const struct placement *f)
{
    return f->credential && f->credential->places & PLACE_PATH;
}

struct slice placement_path(const struct placement *f, const struct head *h)
{
    return placement_hides_path(f) ? buf_slice(&f->shown) : h->path;
}

bool placement_hides_query(const struct placement *f)
{
    const struct credential *c = f->credential;
    return c && (c->kind == CREDENTIAL_QUERY || c->places & PLACE_QUERY);
}

/* ---- signing ---- */

bool placement_signs(const struct placement *f)
{
    return f->credential && (f->credential->kind == CREDENTIAL_AWS || signed_kind(f->credential));
}

static int prepare_aws(struct placement *f, struct head *h, const struct authority *a,
                       struct slice whole, struct slice value)
{
    ssize_t blank = slice_find(value, ' ');
    size_t n = blank < 0 ? value.n : (size_t)blank;
    struct slice token =
        blank < 0 ? (struct slice){"", 0} : (struct slice){value.p + n + 1, value.n - n - 1};
    if (n == 0 || n >= sizeof f->key_id)
        return -1;
    memcpy(f->key_id, value.p, n);
    f->key_id[n] = 0;
    return aws_prepare(h, a, &f->claim, whole, token, time(NULL), &f->scope, f->signed_names);
}

const char *placement_prepare(struct placement *f, struct head *h, const struct authority *a,
                              struct body_buffer *body, struct slice value)
{
    struct slice whole = {"", 0};
    struct timespec now;
    if (body->state == BODY_BUFFER_WHOLE) {
        whole = buf_slice(&body->body);
        h->length = whole.n;
        h->body = whole.n > 0 ? BODY_LENGTH : BODY_NONE;
    }
    if (!signed_kind(f->credential))
        return prepare_aws(f, h, a, whole, value) < 0 ? "too_many_headers" : NULL;
    clock_gettime(CLOCK_REALTIME, &now);
    return signed_prepare(&f->text, f->credential, h, a, whole, value,
                          (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
}

int placement_signed(struct placement *f, struct head *h, struct slice signature)
{
    if (signed_kind(f->credential))
        return signed_finish(&f->text, f->credential, h, signature);
    if (signature.n != AWS_HEX || !http1_is_token(signature))
        return -1;
    snprintf(f->signature, sizeof f->signature, "%.*s", SL(signature));
    return aws_finish(h, &f->scope, f->signed_names, slice_str(f->key_id), signature);
}

bool placement_chunks(const struct placement *f)
{
    return placement_signs(f) && f->claim.payload == AWS_CHUNKS;
}

bool placement_passed(struct placement *f)
{
    unsigned char md[AWS_HEX / 2];
    char hex[AWS_HEX + 1];
    if (f->passing == NULL)
        return !f->broken;
    f->broken = f->broken || EVP_DigestFinal_ex(f->passing, md, NULL) != 1;
    for (size_t i = 0; i < sizeof md && !f->broken; i++)
        snprintf(hex + 2 * i, 3, "%02x", md[i]);
    f->broken = f->broken || strcmp(hex, f->claim.hash) != 0;
    placement_free(f);
    return !f->broken;
}

bool placement_pass(struct placement *f, const void *p, size_t n)
{
    if (f->passing == NULL)
        return !f->broken;
    f->broken = f->broken || EVP_DigestUpdate(f->passing, p, n) != 1;
    if (f->left == 0) /* not counted */
        return true;
    f->left -= n < f->left ? n : f->left;
    return f->left > 0 || placement_passed(f);
}

void placement_free(struct placement *f)
{
    EVP_MD_CTX_free(f->passing);
    f->passing = NULL;
    signed_free(&f->text);
    buf_free(&f->shown);
}

/* ---- filling ---- */

/* prefix + secret + suffix, or Basic base64(user:secret). */
static int render(const struct credential *c, struct slice value, struct buf *out)
{
    if (c->kind != CREDENTIAL_BASIC)
        return buf_append_str(out, c->prefix) < 0 || buf_append_slice(out, value) < 0 ||
                       buf_append_str(out, c->suffix) < 0
                   ? -1
                   : 0;
    struct buf pair;
    buf_init_wiped(&pair, SECRET_MAX + 1024);
    bool ok = buf_append_str(&pair, c->user) == 0 && buf_append(&pair, ":", 1) == 0 &&
              buf_append_slice(&pair, value) == 0 && buf_append_str(out, "Basic ") == 0;
    unsigned char *to = ok ? buf_reserve(out, (buf_len(&pair) + 2) / 3 * 4 + 1) : NULL;
    if (to) {
        int n = EVP_EncodeBlock(to, buf_data(&pair), (int)buf_len(&pair));
        buf_commit(out, (size_t)n);
    }
    buf_free(&pair);
    return to ? 0 : -1;
}

static int placement_field(const struct credential *c, struct head *h, struct slice value,
                           struct buf *out)
{
    if (render(c, value, out) < 0 || !http1_is_value(buf_slice(out)))
        return -1; /* a line ending in a secret would write fields of its own (attack C19) */
    return http_head_set(h, c->header, buf_slice(out));
}

static int placement_query(const struct credential *c, struct head *h, struct slice value,
                           struct buf *out)
{
    if (buf_append_slice(out, h->query) < 0 || (h->query.n > 0 && buf_append_str(out, "&") < 0) ||
        buf_printf(out, "%s=", c->name) < 0 || put_escaped(out, value, ESC_QUERY) < 0)
        return -1;
    return http_head_set_query(h, buf_slice(out), true);
}

/* RFC 6265 4.1.1: what a cookie's value may hold. */
static bool cookie_value_ok(struct slice v)
{
    for (size_t i = 0; i < v.n; i++)
        if (v.p[i] <= 0x20 || v.p[i] >= 0x7f || strchr("\",;\\", v.p[i]))
            return false;
    return true;
}

static int placement_cookie(const struct credential *c, struct head *h, struct slice value,
                            struct buf *out)
{
    const struct field *kept = http_head_find(h, "cookie");
    if (!cookie_value_ok(value) ||
        (kept && (buf_append_slice(out, kept->value) < 0 || buf_append_str(out, "; ") < 0)) ||
        buf_printf(out, "%s=", c->name) < 0 || buf_append_slice(out, value) < 0)
        return -1;
    return http_head_set(h, "cookie", buf_slice(out));
}

static int mark_path(const struct placement *f, struct head *h, struct slice value, struct buf *out)
{
    const char *why;
    if (count_in(f, h->path) == 0)
        return 0;
    buf_clear(out);
    if (replace_in(f, out, h->path, ESC_PATH, value) < 0 ||
        path_check_asked(buf_slice(out), &why) < 0) /* a secret of dots would be another path */
        return -1;
    return http_head_set_path(h, buf_slice(out));
}

static int mark_query(const struct placement *f, struct head *h, struct slice value,
                      struct buf *out)
{
    struct guard_part part;
    struct slice q = h->query;
    buf_clear(out);
    while (guard_next_part(&q, false, &part)) {
        const char *end = part.whole.p + part.whole.n;
        bool named = guard_parameter_is(part.name, f->credential->name);
        if ((named ? replace_in(f, out, part.whole, ESC_QUERY, value)
                   : buf_append_slice(out, part.whole)) < 0 ||
            (end < h->query.p + h->query.n && buf_append(out, end, 1) < 0))
            return -1;
    }
    return http_head_set_query(h, buf_slice(out), h->has_query);
}

static int mark_fields(const struct placement *f, struct head *h, struct slice value,
                       struct buf *out)
{
    for (size_t i = 0, n = h->n; i < n; i++) {
        struct field field = h->fields[0];
        /* each field goes to the end once: their order stays, and those replaced have storage */
        memmove(h->fields, h->fields + 1, (h->n - 1) * sizeof *h->fields);
        h->fields[h->n - 1] = field;
        if (!slice_eq_str(field.name, f->credential->header) || count_in(f, field.value) == 0)
            continue;
        buf_clear(out);
        if (replace_in(f, out, field.value, ESC_RAW, value) < 0 || !http1_is_value(buf_slice(out)))
            return -1;
        h->n--;
        if (http_head_add(h, f->credential->header, buf_slice(out)) < 0)
            return -1;
    }
    return 0;
}

static int mark_body(const struct placement *f, struct head *h, struct body_buffer *body,
                     struct slice value)
{
    struct buf out;
    buf_init_wiped(&out, PLACEMENT_BODY_MAX + (size_t)PLACE_COUNT_MAX * SECRET_MAX * 3);
    int r = replace_in(f, &out, buf_slice(&body->body),
                       f->body == PLACEMENT_JSON ? ESC_JSON : ESC_QUERY, value);
    if (r == 0)
        body_buffer_replace(body, &out);
    buf_free(&out);
    h->length = buf_len(&body->body);
    h->body = h->length > 0 ? BODY_LENGTH : BODY_NONE;
    return r;
}

static int placement_marks(const struct placement *f, struct head *h, struct body_buffer *body,
                           struct slice value, struct buf *out)
{
    unsigned places = f->credential->places;
    if ((places & PLACE_PATH && mark_path(f, h, value, out) < 0) ||
        (places & PLACE_QUERY && mark_query(f, h, value, out) < 0) ||
        (places & PLACE_HEADER && mark_fields(f, h, value, out) < 0))
        return -1;
    return body->state == BODY_BUFFER_WHOLE ? mark_body(f, h, body, value) : 0;
}

int placement_apply(const struct placement *f, struct head *h, struct body_buffer *body,
                    struct slice value)
{
    struct buf out;
    int r;
    if (placement_signs(f) || f->credential->kind == CREDENTIAL_CERTIFICATE)
        return 0; /* it is in the head already, or nowhere in it */
    buf_init_wiped(&out, SECRET_MAX * 3 + 256 * 1024);
    switch (f->credential->kind) {
    case CREDENTIAL_QUERY:
        r = placement_query(f->credential, h, value, &out);
        break;
    case CREDENTIAL_COOKIE:
        r = placement_cookie(f->credential, h, value, &out);
        break;
    case CREDENTIAL_PLACEHOLDER:
        r = placement_marks(f, h, body, value, &out);
        break;
    default:
        r = placement_field(f->slot, h, value, &out);
        buf_clear(&out);
        if (r == 0 && f->also)
            r = placement_field(f->also, h, value, &out);
        break;
    }
    buf_free(&out);
    return r;
}
