/* Writes the forms of a value from a table of what encoders in use write; those that are the same
 * are kept once. */
#include "scrub_forms.h"

#include <openssl/evp.h>
#include <string.h>

enum { BYTES_MAX = 256 * SCRUB_VALUE_MAX, ONE_MAX = 8 * SCRUB_VALUE_MAX, TOKEN_PARTS_MAX = 5 };

static const char lower_digits[] = "0123456789abcdef", upper_digits[] = "0123456789ABCDEF";

void scrub_forms_init(struct scrub_forms *f)
{
    memset(f, 0, sizeof *f);
    buf_init_wiped(&f->bytes, BYTES_MAX);
}

void scrub_forms_free(struct scrub_forms *f)
{
    buf_free(&f->bytes);
    f->n = 0;
}

struct slice scrub_forms_get(const struct scrub_forms *f, size_t i)
{
    return (struct slice){(const char *)buf_data(&f->bytes) + f->form[i].at, f->form[i].n};
}

int scrub_forms_add(struct scrub_forms *f, struct slice form)
{
    if (form.n < SCRUB_VALUE_MIN)
        return -1;
    for (size_t i = 0; i < f->n; i++)
        if (slice_eq(scrub_forms_get(f, i), form))
            return 0;
    if (f->n == SCRUB_FORMS_MAX)
        return -1;
    size_t at = buf_len(&f->bytes);
    if (buf_append_slice(&f->bytes, form) < 0)
        return -1;
    f->form[f->n].at = at;
    f->form[f->n++].n = form.n;
    return 0;
}

/* ---- one byte at a time ---- */

enum style {
    HEX,
    HEX_ESCAPE,
    PERCENT,
    PERCENT_TWICE,
    JSON_UNICODE,
    HTML_DECIMAL,
    HTML_HEX,
    HTML_NAMED,
    UTF16,
};

/* How a value is written: bytes of `keep` (and letters and digits) as they are, others in the
 * style; keep NULL: every byte in the style. With `only` these bytes alone are written in it.
 * `special` bytes get the text beside them first. */
struct writing {
    enum style style;
    const char *digits;
    const char *keep, *only;
    const char *special, *texts[6];
};

/* HTML 5 has a name for each sign; where it has two, that which PHP writes. */
static const char named[] = "!\"#$%&'()*+,./:;<=>?@[\\]^_`{|}";
static const char names[][8] = {
    "excl",   "quot",   "num",    "dollar", "percnt", "amp",    "apos",  "lpar",   "rpar", "ast",
    "plus",   "comma",  "period", "sol",    "colon",  "semi",   "lt",    "equals", "gt",   "quest",
    "commat", "lbrack", "bsol",   "rsqb",   "Hat",    "lowbar", "grave", "lbrace", "vert", "rcub",
};
_Static_assert(ARRAY_LEN(names) == sizeof named - 1, "a name for each");

static int put_named(struct buf *b, unsigned char c)
{
    const char *at = c ? strchr(named, c) : NULL;
    return at ? buf_printf(b, "&%s;", names[at - named]) : buf_append(b, &c, 1);
}

static int put_styled(struct buf *b, const struct writing *w, unsigned char c)
{
    char hi = w->digits ? w->digits[c >> 4] : 0, lo = w->digits ? w->digits[c & 15] : 0;
    switch (w->style) {
    case HEX:
        return buf_append(b, (char[]){hi, lo}, 2);
    case HEX_ESCAPE:
        return buf_append(b, (char[]){'\\', 'x', hi, lo}, 4);
    case PERCENT:
        return buf_append(b, (char[]){'%', hi, lo}, 3);
    case PERCENT_TWICE:
        return buf_append(b, (char[]){'%', '2', '5', hi, lo}, 5);
    case JSON_UNICODE:
        return buf_append(b, (char[]){'\\', 'u', '0', '0', hi, lo}, 6);
    case HTML_DECIMAL:
        return buf_printf(b, "&#%u;", c);
    case HTML_HEX: /* without a leading zero; a value's bytes below 16 are no field's either */
        return c < 16 ? buf_append(b, (char[]){'&', '#', 'x', lo, ';'}, 5)
                      : buf_append(b, (char[]){'&', '#', 'x', hi, lo, ';'}, 6);
    case HTML_NAMED:
        return put_named(b, c);
    case UTF16:
        return buf_append(b, (unsigned char[]){c, 0}, 2);
    }
    return -1;
}

static bool stays(const struct writing *w, unsigned char c)
{
    if (w->only)
        return c == 0 || strchr(w->only, c) == NULL;
    return w->keep && (ascii_is_alnum((char)c) || (c && strchr(w->keep, c) != NULL));
}

static int put_byte(struct buf *b, const struct writing *w, unsigned char c)
{
    const char *s = w->special && c ? strchr(w->special, c) : NULL;
    if (s)
        return buf_append_str(b, w->texts[s - w->special]);
    return stays(w, c) ? buf_append(b, &c, 1) : put_styled(b, w, c);
}

static int add_written(struct scrub_forms *f, struct slice value, const struct writing *w)
{
    struct buf b;
    int r = 0;
    buf_init_wiped(&b, ONE_MAX);
    for (size_t i = 0; i < value.n && r == 0; i++)
        r = put_byte(&b, w, (unsigned char)value.p[i]);
    struct slice form = buf_slice(&b);
    if (w->style == UTF16 && form.n > 0)
        form.n--; /* what both byte orders have: a NUL between any two bytes */
    if (r == 0 && form.n <= SCRUB_FORM_MAX) /* longer: names of signs, of thousands of signs */
        r = scrub_forms_add(f, form);
    buf_free(&b);
    return r;
}

/* What encoders in use write (tests/adversary/encoders.t runs them). For a value of letters,
 * digits, "-" and "_" most are one form. */
static const struct writing writings[] = {
    {.style = HEX, .digits = lower_digits},
    {.style = HEX, .digits = upper_digits},
    {.style = HEX_ESCAPE, .digits = lower_digits},
    {.style = HEX_ESCAPE, .digits = upper_digits},
    {.style = HEX_ESCAPE, .digits = upper_digits, .keep = "._,"},
    /* URLs and forms */
    {.style = PERCENT, .digits = lower_digits},
    {.style = PERCENT, .digits = upper_digits},
    {.style = PERCENT, .digits = upper_digits, .keep = "-._~"}, /* RFC 3986 */
    {.style = PERCENT, .digits = lower_digits, .keep = "-._~"},
    {.style = PERCENT, .digits = upper_digits, .keep = "-._~/"},
    {.style = PERCENT, .digits = upper_digits, .keep = "-._~!*'()"},
    {.style = PERCENT, .digits = upper_digits, .keep = "-._*", .special = " ", .texts = {"+"}},
    {.style = PERCENT, .digits = upper_digits, .keep = "-._~", .special = " ", .texts = {"+"}},
    {.style = PERCENT, .digits = upper_digits, .keep = "-_!*().", .special = " ", .texts = {"+"}},
    {.style = PERCENT, .digits = lower_digits, .keep = "-_!*().", .special = " ", .texts = {"+"}},
    {.style = PERCENT, .digits = upper_digits, .keep = ""},
    {.style = PERCENT, .digits = upper_digits, .keep = "-._~$&+:=@"},        /* Go: a segment */
    {.style = PERCENT, .digits = upper_digits, .keep = "-._~$&+,;="},        /* and a password */
    {.style = PERCENT, .digits = upper_digits, .keep = "-._~!$&'()*+,;=:@"}, /* RFC 3986: pchar */
    {.style = PERCENT, .digits = upper_digits, .keep = "-._~!$&'()*+,;=:@/?"},
    {.style = PERCENT, .digits = upper_digits, .keep = "-._~!$&'()*+,;=:@/?#"},
    {.style = PERCENT, .digits = upper_digits, .keep = "-._~!$%&'()*+,"}, /* WHATWG: a password */
    {.style = PERCENT, .digits = upper_digits, .keep = "-._*+@/"},
    {.style = PERCENT_TWICE, .digits = upper_digits, .keep = "-._~"},
    {.style = PERCENT, .digits = upper_digits, .keep = "-._"},
    {.style = PERCENT, .digits = upper_digits, .keep = "-._", .special = " ", .texts = {"+"}},
    {.style = PERCENT, .digits = upper_digits, .keep = "-._~$&+,/:;=@"},
    {.style = PERCENT, .digits = upper_digits, .only = "\"#<>' "}, /* WHATWG: a query */
    {.style = PERCENT, .digits = upper_digits, .only = "\"#<>?`{} "},
    {.style = PERCENT, .digits = upper_digits, .only = "\"<>` "},
    /* JSON and scripts */
    {.style = JSON_UNICODE, .digits = lower_digits},
    {.style = JSON_UNICODE, .digits = upper_digits},
    {.only = "", .special = "\"\\", .texts = {"\\\"", "\\\\"}},
    {.only = "", .special = "\"\\/", .texts = {"\\\"", "\\\\", "\\/"}},
    {.only = "", .special = "\"\\'", .texts = {"\\\"", "\\\\", "\\'"}},
    {.only = "", .special = "\\'", .texts = {"\\\\", "\\'"}},
    {.only = "", .special = "'", .texts = {"''"}},
    {.style = JSON_UNICODE,
     .digits = lower_digits,
     .only = "<>&",
     .special = "\"\\",
     .texts = {"\\\"", "\\\\"}},
    {.style = JSON_UNICODE,
     .digits = lower_digits,
     .only = "<>&'",
     .special = "\"\\",
     .texts = {"\\\"", "\\\\"}},
    {.style = JSON_UNICODE, /* Gson */
     .digits = lower_digits,
     .only = "<>&'=",
     .special = "\"\\",
     .texts = {"\\\"", "\\\\"}},
    {.style = JSON_UNICODE, /* Go's templates */
     .digits = lower_digits,
     .only = "<>&'\"+`",
     .special = "\\/",
     .texts = {"\\\\", "\\/"}},
    {.style = JSON_UNICODE,
     .digits = upper_digits,
     .only = "<>&",
     .special = "\"\\",
     .texts = {"\\\"", "\\\\"}},
    {.style = JSON_UNICODE,
     .digits = upper_digits,
     .only = "<>/",
     .special = "\"\\",
     .texts = {"\\\"", "\\\\"}},
    {.style = JSON_UNICODE, /* .NET */
     .digits = upper_digits,
     .only = "<>&'\"+`",
     .special = "\\",
     .texts = {"\\\\"}},
    {.style = JSON_UNICODE, /* PHP, where it says so */
     .digits = upper_digits,
     .only = "<>&'\"",
     .special = "\\/",
     .texts = {"\\\\", "\\/"}},
    {.style = JSON_UNICODE,
     .digits = upper_digits,
     .only = "<>&=",
     .special = "\"\\'",
     .texts = {"\\\"", "\\\\", "\\'"}},
    {.style = JSON_UNICODE, .digits = upper_digits, .only = "<>&'\"\\=-;`"}, /* Django */
    /* HTML and XML */
    {.style = HTML_DECIMAL},
    {.style = HTML_DECIMAL, .keep = "-._, "},
    {.style = HTML_DECIMAL, .only = "\"&'<>"},
    {.style = HTML_HEX, .digits = upper_digits, .only = "\"&'<>"},
    {.style = HTML_HEX, .digits = upper_digits, .only = "\"&'<>`"},
    {.style = HTML_HEX, .digits = lower_digits},
    {.style = HTML_HEX, .digits = upper_digits},
    {.style = HTML_HEX, .digits = lower_digits, .keep = "-._, "},
    {.style = HTML_NAMED, .keep = "-~ "},
    {.style = HTML_NAMED, .keep = "~ ", .special = "-[{", .texts = {"&#45;", "&lsqb;", "&lcub;"}},
    {.only = "", .special = "&<>", .texts = {"&amp;", "&lt;", "&gt;"}},
    {.only = "", .special = "&<>\"", .texts = {"&amp;", "&lt;", "&gt;", "&quot;"}},
    {.only = "", .special = "&<>\"'", .texts = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"}},
    {.only = "", .special = "&<>\"'", .texts = {"&amp;", "&lt;", "&gt;", "&quot;", "&#039;"}},
    {.only = "", .special = "&<>\"'", .texts = {"&amp;", "&lt;", "&gt;", "&quot;", "&#x27;"}},
    {.only = "", .special = "&<>\"'", .texts = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"}},
    {.style = HTML_DECIMAL, /* Go's templates: a text, and a value without quotes */
     .only = "\"'+",
     .special = "&<>",
     .texts = {"&amp;", "&lt;", "&gt;"}},
    {.style = HTML_DECIMAL,
     .only = "\"'+=` ",
     .special = "&<>",
     .texts = {"&amp;", "&lt;", "&gt;"}},
    {.style = HTML_DECIMAL, .only = "\"'", .special = "&<>", .texts = {"&amp;", "&lt;", "&gt;"}},
    {.style = HTML_HEX, /* Handlebars */
     .digits = upper_digits,
     .only = "'`=",
     .special = "&<>\"",
     .texts = {"&amp;", "&lt;", "&gt;", "&quot;"}},
    {.style = HTML_HEX, /* Mustache */
     .digits = upper_digits,
     .only = "/`=",
     .special = "&<>\"'",
     .texts = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"}},
    {.style = HTML_HEX,
     .digits = upper_digits,
     .only = "'/\\",
     .special = "&<>\"`",
     .texts = {"&amp;", "&lt;", "&gt;", "&quot;", "&#96;"}},
    {.style = HTML_HEX,
     .digits = upper_digits,
     .only = "'`",
     .special = "&<>\"",
     .texts = {"&amp;", "&lt;", "&gt;", "&quot;"}},
    {.style = HTML_HEX, /* .NET */
     .digits = upper_digits,
     .only = "'`+",
     .special = "&<>\"",
     .texts = {"&amp;", "&lt;", "&gt;", "&quot;"}},
    /* others */
    {.only = "", .special = "=", .texts = {"=3D"}}, /* quoted-printable */
    {.style = UTF16},
};

/* ---- base64 ---- */

/* Base64 as it stands, in its url-safe alphabet, and as it is escaped within JSON and URLs. */
static int add_base64(struct scrub_forms *f, struct slice text)
{
    static const struct writing again[] = {
        {.only = ""},
        {.only = "", .special = "+/", .texts = {"-", "_"}},
        {.only = "", .special = "/", .texts = {"\\/"}},
        {.only = "", .special = "+/=", .texts = {"%2B", "%2F", "%3D"}},
        {.only = "", .special = "+/=", .texts = {"%2b", "%2f", "%3d"}},
    };
    for (size_t i = 0; i < ARRAY_LEN(again); i++)
        if (add_written(f, text, &again[i]) < 0)
            return -1;
    return 0;
}

/* prefix + value encoded; of it the characters from `first`, and only those made of whole bits of
 * prefix and value where `inner`, else all with their padding. */
static int add_encoded(struct scrub_forms *f, struct slice prefix, struct slice value, bool inner)
{
    struct buf plain, coded;
    int r = -1;
    buf_init_wiped(&plain, SCRUB_VALUE_MAX + 1024);
    buf_init_wiped(&coded, 2 * SCRUB_VALUE_MAX + 2048);
    if (buf_append_slice(&plain, prefix) == 0 && buf_append_slice(&plain, value) == 0) {
        size_t n = buf_len(&plain);
        unsigned char *to = buf_reserve(&coded, (n + 2) / 3 * 4 + 1);
        if (to) {
            size_t made = (size_t)EVP_EncodeBlock(to, buf_data(&plain), (int)n);
            buf_commit(&coded, made);
            size_t first = inner ? (8 * prefix.n + 5) / 6 : 0, end = inner ? 8 * n / 6 : made;
            r = add_base64(f, (struct slice){(const char *)to + first, end - first});
        }
    }
    buf_free(&plain);
    buf_free(&coded);
    return r;
}

/* ---- tokens ---- */

/* Base64 of a text that begins with "{", which a token's head does: "eyJ" where a quote follows,
 * and others where a blank or the end of a line does. */
static bool is_object(struct slice s)
{
    return s.n > 1 && s.p[0] == 'e' && s.p[1] >= 'w' && s.p[1] <= 'z';
}

/* Of a token (RFC 7515, 7516) each part behind its head, by itself: one of them tells its claims,
 * and all of them are the token, for its head can be guessed. */
static int add_parts(struct scrub_forms *f, struct slice value)
{
    struct slice part[TOKEN_PARTS_MAX];
    size_t n = 0, at = 0;
    if (!is_object(value))
        return 0;
    for (size_t i = 0; i <= value.n; i++) {
        char c = i < value.n ? value.p[i] : '.';
        if (ascii_is_alnum(c) || c == '-' || c == '_')
            continue;
        if (c != '.' || n == TOKEN_PARTS_MAX)
            return 0;
        part[n++] = (struct slice){value.p + at, i - at};
        at = i + 1;
    }
    for (size_t i = 1; n >= 3 && i < n; i++)
        if (part[i].n >= SCRUB_VALUE_MIN && scrub_forms_add(f, part[i]) < 0)
            return -1;
    return 0;
}

int scrub_forms_make(struct scrub_forms *f, struct slice value, const char *user)
{
    scrub_forms_init(f);
    if (value.n < SCRUB_VALUE_MIN || value.n > SCRUB_VALUE_MAX || scrub_forms_add(f, value) < 0)
        return -1;
    for (size_t shift = 0; shift < 3; shift++)
        if (add_encoded(f, (struct slice){"\0\0", shift}, value, true) < 0)
            return -1;
    for (size_t i = 0; i < ARRAY_LEN(writings); i++)
        if (add_written(f, value, &writings[i]) < 0)
            return -1;
    if (add_parts(f, value) < 0)
        return -1;
    if (user == NULL)
        return 0;
    struct buf pair;
    buf_init(&pair, 1024);
    int r = buf_append_str(&pair, user) < 0 || buf_append(&pair, ":", 1) < 0
                ? -1
                : add_encoded(f, buf_slice(&pair), value, false);
    buf_free(&pair);
    return r;
}
