/* The only file that includes http-parser (2.9, unmaintained, lenient in places): a second reading
 * of heads that our own strict check accepted. It decides nothing; it can only refuse. */
#include "http1_head.h"

#include <http_parser.h>
#include <string.h>

struct reading {
    const struct head *h;
    size_t field;       /* index of the field being read */
    size_t name, value; /* bytes of it seen so far */
    bool in_value, differs, complete;
    size_t url;
    bool skip_body; /* a reply to HEAD */
};

static int same(struct reading *r, struct slice ours, size_t at, const char *p, size_t n, bool fold)
{
    if (at + n > ours.n) {
        r->differs = true;
        return 0;
    }
    struct slice a = {ours.p + at, n}, b = {p, n};
    if (!(fold ? slice_ieq(a, b) : slice_eq(a, b)))
        r->differs = true;
    return 0;
}

static int on_url(http_parser *hp, const char *p, size_t n)
{
    struct reading *r = hp->data;
    same(r, r->h->target, r->url, p, n, false);
    r->url += n;
    return 0;
}

static void field_ends(struct reading *r)
{
    const struct field *f = &r->h->fields[r->field];
    /* http-parser keeps trailing blanks of a value; our trim took them off */
    if (r->name != f->name.n || r->value < f->value.n)
        r->differs = true;
    r->field++;
    r->name = r->value = 0;
    r->in_value = false;
}

static int on_field(http_parser *hp, const char *p, size_t n)
{
    struct reading *r = hp->data;
    if (r->in_value)
        field_ends(r);
    if (r->field >= r->h->n) {
        r->differs = true;
        return 0;
    }
    same(r, r->h->fields[r->field].name, r->name, p, n, true);
    r->name += n;
    return 0;
}

static int on_value(http_parser *hp, const char *p, size_t n)
{
    struct reading *r = hp->data;
    r->in_value = true;
    if (r->field >= r->h->n) {
        r->differs = true;
        return 0;
    }
    struct slice ours = r->h->fields[r->field].value;
    for (size_t i = 0; i < n; i++, r->value++) {
        bool blank = p[i] == ' ' || p[i] == '\t';
        if (r->value < ours.n ? ours.p[r->value] != p[i] : !blank)
            r->differs = true;
    }
    return 0;
}

static int on_complete(http_parser *hp)
{
    struct reading *r = hp->data;
    if (r->in_value)
        field_ends(r);
    r->complete = true;
    http_parser_pause(hp, 1);
    return r->skip_body ? 1 : 0;
}

/* before: what stands in for the beginning of the head, or empty */
static void run(struct reading *r, http_parser *hp, enum http_parser_type type, struct slice before,
                struct slice raw)
{
    http_parser_settings s;
    http_parser_settings_init(&s);
    s.on_url = on_url;
    s.on_header_field = on_field;
    s.on_header_value = on_value;
    s.on_headers_complete = on_complete;
    http_parser_init(hp, type);
    hp->data = r;
    if (before.n)
        http_parser_execute(hp, &s, before.p, before.n);
    http_parser_execute(hp, &s, raw.p, raw.n);
    enum http_errno e = HTTP_PARSER_ERRNO(hp);
    if (e != HPE_OK && e != HPE_PAUSED)
        r->differs = true;
    if (!r->complete || r->field != r->h->n)
        r->differs = true;
}

/* It takes some names for framing that are not ("Transfer-Encoding%"): that is a disagreement even
 * where nothing comes of it here, for an origin may read heads by the same code. */
static bool framing_agrees(const struct head *h, const http_parser *hp)
{
    bool coding = http_head_count(h, "transfer-encoding") == 1;
    bool length = http_head_count(h, "content-length") == 1;
    if (((hp->flags & F_CHUNKED) != 0) != coding || hp->uses_transfer_encoding != coding ||
        ((hp->flags & F_CONTENTLENGTH) != 0) != length)
        return false;
    if (!length)
        return hp->content_length == UINT64_MAX || hp->content_length == 0;
    uint64_t v;
    return slice_u64(http_head_find(h, "content-length")->value, INT64_MAX, &v) == 0 &&
           hp->content_length == v;
}

/* It is older than these, and reads what follows them as it does behind any other. */
static bool is_newer(struct slice method)
{
    return slice_eq(method, SLICE("QUERY")) || slice_eq(method, SLICE("LIST"));
}

bool http1_parser_knows(struct slice method)
{
#define KNOWN(number, name, text)    \
    if (slice_eq_str(method, #text)) \
        return true;
    HTTP_METHOD_MAP(KNOWN)
#undef KNOWN
    return is_newer(method);
}

bool http1_parser_agrees_request(const struct head *h, struct slice raw)
{
    struct reading r = {.h = h};
    http_parser hp;
    bool newer = is_newer(h->method) && raw.n > h->method.n;
    struct slice as = newer ? SLICE("GET") : SLICE(""),
                 rest = newer ? (struct slice){raw.p + h->method.n, raw.n - h->method.n} : raw;
    run(&r, &hp, HTTP_REQUEST, as, rest);
    if (r.differs || r.url != h->target.n || hp.http_major != 1 || hp.http_minor != h->minor)
        return false;
    if (!slice_eq_str(newer ? as : h->method, http_method_str((enum http_method)hp.method)))
        return false;
    return framing_agrees(h, &hp);
}

bool http1_parser_agrees_reply(const struct head *h, struct slice raw, struct slice method)
{
    struct reading r = {.h = h, .skip_body = slice_eq(method, SLICE("HEAD"))};
    http_parser hp;
    run(&r, &hp, HTTP_RESPONSE, SLICE(""), raw);
    if (r.differs || hp.http_major != 1 || hp.http_minor != h->minor || hp.status_code != h->status)
        return false;
    return framing_agrees(h, &hp);
}
