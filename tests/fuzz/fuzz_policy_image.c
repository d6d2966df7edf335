/* The image of a policy of any bytes: refused with a message, or it decides without harm. The
 * digest is made to agree first, as a fuzzer would not. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy.h"
#include "policy_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void ask(const struct policy *p)
{
    static const char *const hosts[] = {"api.example.com", "b.a.example", "192.0.2.1", "x.y.z.w"};
    static const char *const paths[] = {"/", "/v1/x", "/x/%2Fy/z/a/b", "/V1/x;a/.."};
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        struct authority a;
        struct decision d;
        char text[300];
        must(authority_parse(&a, SCHEME_HTTPS, slice_str(hosts[i])) == 0);
        for (size_t k = 0; k < ARRAY_LEN(paths); k++) {
            struct policy_request r = {&a, SLICE("GET"), slice_str(paths[k])};
            policy_decide(p, &r, &d);
            must(d.code != NULL && (d.verdict == VERDICT_DENY || d.rule != NULL));
        }
        (void)policy_host(p, &a);
        (void)policy_taint_text(p, &a, text, sizeof text);
        (void)policy_names_host(p, &a);
        (void)policy_tunnel(p, &a);
        (void)policy_leads_to(p, &a, ~0u, &a);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = {0};
    struct image_header h;
    struct rule_told told;
    unsigned char *bytes = malloc(size + 1);
    must(bytes != NULL);
    memcpy(bytes, data, size);
    if (size >= sizeof h) {
        memcpy(&h, bytes, sizeof h);
        memcpy(h.magic, POLICY_IMAGE_MAGIC, sizeof h.magic);
        h.size = (uint32_t)size;
        memcpy(bytes, &h, sizeof h);
        h.digest = policy_image_digest(bytes, size);
        memcpy(bytes, &h, sizeof h);
    }
    struct policy *p = policy_open(bytes, size, NULL, &err);
    must((p == NULL) == (err.text[0] != 0));
    if (p) {
        ask(p);
        for (size_t i = 0; i < 64 && policy_rule_told(p, i, &told); i++) {
            (void)policy_rule(p, i);
            must(strlen(told.text) <= size);
        }
        (void)policy_ports(p, NULL, 0);
        (void)policy_budget_find(p, 1, false);
    }
    policy_free(p);
    free(bytes);
    return 0;
}
