/* A request and the texts that are signed of it: no line in them that the head did not have, and
 * the signature's fields are fields. First byte: the kind. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http1_head.h"
#include "signed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct header_edit parts[] = {
    {"@method", NULL},    {"@target-uri", NULL},  {"@path", NULL},         {"@query", NULL},
    {"@authority", NULL}, {"content-type", NULL}, {"content-digest", NULL}};
static const struct header_edit sent[] = {{"x-signature", "{signature}"},
                                          {"x-timestamp", "{timestamp}"}};
static const struct credential kinds[] = {
    {.kind = CREDENTIAL_SIGNATURE,
     .signs = parts,
     .n_signs = ARRAY_LEN(parts),
     .text = "sig1",
     .prefix = "app",
     .count = 60,
     .nonce = true},
    {.kind = CREDENTIAL_AZURE},
    {.kind = CREDENTIAL_HMAC,
     .text = "{timestamp}.{method}.{path}.{body}",
     .signs = sent,
     .n_signs = ARRAY_LEN(sent)},
};

static void must(bool holds)
{
    if (!holds)
        abort();
}

static size_t lines(struct slice s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += s.p[i] == '\n';
    return n;
}

static void sign(const struct credential *c, struct head *h)
{
    static const struct authority a = {
        .scheme = SCHEME_HTTPS, .kind = HOST_NAME, .port = 443, .host = "h.example"};
    struct signed_text s = {.timestamp = ""};
    const char *bad = signed_prepare(&s, c, h, &a, SLICE("{\"a\":1}"),
                                     c->kind == CREDENTIAL_SIGNATURE ? SLICE("ed25519 k1")
                                                                     : SLICE("sha256 account"),
                                     1700000000123);
    if (bad == NULL) {
        struct slice text = buf_slice(&s.text);
        must(text.n > 0 && text.n <= SIGNED_TEXT_MAX);
        if (c->kind == CREDENTIAL_SIGNATURE)
            must(lines(text) == ARRAY_LEN(parts) && slice_starts(text, SLICE("\"@method\": ")));
        if (c->kind == CREDENTIAL_AZURE)
            must(lines(text) >= 12); /* verb, eleven fields, then x-ms-* and the resource */
        if (signed_finish(&s, c, h, SLICE("signature")) == 0)
            for (size_t i = 0; i < h->n; i++)
                must(http1_is_token(h->fields[i].name) && http1_is_value(h->fields[i].value));
    }
    signed_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct limits limits = {
        .head_bytes = 65536, .headers = 100, .target_bytes = 32768};
    struct refusal why;
    struct head h;
    if (size < 1)
        return 0;
    if (http1_parse_request(&h, (struct slice){(const char *)data + 1, size - 1}, &limits, &why) ==
            0 &&
        h.form == TARGET_ORIGIN)
        sign(&kinds[data[0] % ARRAY_LEN(kinds)], &h);
    http_head_free(&h);
    return 0;
}
