/* What a client claims to have signed, and the canonical request made of it: no read past the end,
 * no line of the canonical request that the head did not have, presigned parts gone after they are
 * lifted. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aws.h"
#include "http1_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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

static void canonical(struct head *h, const struct aws_claim *claim)
{
    struct authority a = {.scheme = SCHEME_HTTPS, .kind = HOST_NAME, .port = 443, .host = "a"};
    char names[AWS_SIGNED_MAX];
    struct buf text;
    buf_init(&text, 1 << 20);
    if (aws_canonical(&text, h, &a, claim->service, claim->signed_names, "x", names) == 0) {
        size_t fields = 1;
        for (const char *p = names; *p; p++)
            fields += *p == ';';
        must(lines(buf_slice(&text)) == 5 + fields); /* method, path, query, fields, blank, names */
    }
    buf_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct limits limits = {
        .head_bytes = 65536, .headers = 100, .target_bytes = 32768};
    static const struct credential any = {.kind = CREDENTIAL_AWS, .region = "", .service = ""};
    struct refusal why;
    struct aws_claim claim;
    struct head h;
    if (http1_parse_request(&h, (struct slice){(const char *)data, size}, &limits, &why) == 0 &&
        h.form == TARGET_ORIGIN) {
        bool lifted = aws_lift(&h) == NULL;
        const char *bad = lifted ? aws_claim(&h, &any, &claim) : "lift";
        if (bad == NULL) {
            must(claim.region[0] && claim.service[0] && claim.key_id.n > 0);
            aws_strip(&h);
            canonical(&h, &claim);
        }
    }
    http_head_free(&h);
    return 0;
}
