/* A configuration of any bytes: refused with a message, or whole, and then the same again through
 * its JSON; each policy of it compiles from its own JSON. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void ignore(void *arg, const char *text)
{
    (void)arg;
    must(text[0] != 0);
}

static void each_policy(const struct config *c)
{
    static const char *const paths[] = {"/", "/v1/x", "/repos/acme/x/%2Fy", "/a/../b"};
    struct authority a;
    struct decision d;
    must(authority_parse(&a, SCHEME_HTTPS, SLICE("api.github.com")) == 0);
    for (size_t i = 0; i < config_policies(c); i++) {
        char *json = config_policy_json(c, config_policy_name(c, i));
        struct err e = {0};
        struct policy *p = policy_parse(json, strlen(json), &e);
        must(p != NULL);
        for (size_t k = 0; k < ARRAY_LEN(paths); k++) {
            struct policy_request r = {&a, SLICE("GET"), slice_str(paths[k])};
            policy_decide(p, &r, &d);
            /* what is allowed is allowed at a host that the policy names */
            must(d.verdict == VERDICT_DENY || policy_host(p, &a) != 0);
            must(d.verdict == VERDICT_DENY || policy_names_host(p, &a));
        }
        must(policy_ports(p, NULL, 0) <= 65535);
        policy_free(p);
        free(json);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = {0};
    struct config *c = config_parse((struct slice){(const char *)data, size}, "/f/fuzz", &e);
    if (c == NULL) {
        must(e.code != ERR_NONE && e.text[0] != 0);
        return 0;
    }
    char *json = config_json(c);
    struct config *again = config_from_json(json, strlen(json), &e);
    must(again != NULL);
    char *twice = config_json(again);
    must(strcmp(json, twice) == 0);
    config_warnings(c, ignore, NULL);
    each_policy(c);
    config_unref(again);
    config_unref(c);
    free(json);
    free(twice);
    return 0;
}
