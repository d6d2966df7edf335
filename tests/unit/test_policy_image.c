/* Images of policies: what is opened decides as what was compiled, what is damaged is refused, and
 * what does not depend on the number of rules stays so. */
#include <CUnit/CUnit.h>
#include <jansson.h>
#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "buf.h"
#include "config.h"
#include "policy_build.h"
#include "policy_image_bed.h"
#include "tap_main.h"

/* Each kind of thing that a rule can say. */
static const char everything[] =
    "version: 1\n"
    "secrets:\n"
    "  key: { env: KEY }\n"
    "  other: { env: OTHER }\n"
    "  pem: { file: /t/pem }\n"
    "  login_key: { ssh_key: { key: pem } }\n"
    "  got: { captured: {} }\n"
    "  login: { captured: {} }\n"
    "prices: [{ model: gpt-*, in: 2.50, out: 10 }]\n"
    "policies:\n"
    "  full:\n"
    "    names: nxdomain\n"
    "    guide: none\n"
    "    budget: { requests: 1000/h }\n"
    "    rules:\n"
    "      - allow: [api.example.com/v1/**, \"http://plain.example.com:8080\"]\n"
    "      - { allow: api.example.com/v1/read/**, access: read-only }\n"
    "      - { deny: api.example.com/v1/secret/**, methods: [POST, PUT] }\n"
    "      - { deny: api.example.com/v1/%41/a/* }\n"
    "      - { ask: api.example.com/v1/ask/*/x }\n"
    "      - { allow: .wide.example.com/a/b*c/**, with: { bearer: key }, cookies: pass }\n"
    "      - { allow: basic.example.com, with: { basic: { user: me, password: other } }, "
    "on_reflect: block }\n"
    "      - allow: token.example.com/login\n"
    "        with: { bearer: key }\n"
    "        capture: { access_token: got, \"a.*.b\": login }\n"
    "      - { allow: token.example.com/use/**, with: { bearer: got } }\n"
    "      - { allow: more.example.com, with: { query: { k: key } }, budget: { requests: 5/h } }\n"
    "      - { allow: q.example.com, query: { a: [x, y], b: any }, headers: { x-one: any } }\n"
    "      - { allow: to.example.com, to: [10.0.0.0/8] }\n"
    "      - { allow: sets.example.com, set_headers: { X-A: b }, remove_headers: [X-C] }\n"
    "      - { allow: ql.example.com/graphql, graphql: { read_only: true } }\n"
    "      - { allow: 192.0.2.1, websocket: true }\n"
    "      - { allow: github.com/acme/app, git: fetch }\n"
    "  none: { rules: [] }\n"
    "  tunnels: { rules: [{ allow: [a.example, b.example:8443], tunnel: true }] }\n"
    "  brokers:\n"
    "    rules:\n"
    "      - { allow: \"ssh://git@github.com/acme/*\", with: { ssh_key: login_key } }\n";

static struct config *config_of(const char *yaml)
{
    struct err err = {0};
    struct config *c = config_parse(slice_str(yaml), "/t/t.yaml", &err);
    if (c == NULL) {
        printf("# %s\n", err.text);
        CU_FAIL_FATAL("a configuration");
    }
    return c;
}

/* ---- the same in everything that is said of a rule ---- */

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool same_edits(const struct header_edit *a, const struct header_edit *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!same_text(a[i].name, b[i].name) || !same_text(a[i].value, b[i].value))
            return false;
    return true;
}

static bool same_conditions(const struct condition *a, const struct condition *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!same_text(a[i].name, b[i].name) || a[i].n_values != b[i].n_values)
            return false;
        for (size_t k = 0; k < a[i].n_values; k++)
            if (!same_text(a[i].values[k], b[i].values[k]))
                return false;
    }
    return true;
}

static bool same_credential(const struct credential *a, const struct credential *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return a->kind == b->kind && same_text(a->secret, b->secret) &&
           same_credential(a->other, b->other) && same_text(a->header, b->header) &&
           same_text(a->prefix, b->prefix) && same_text(a->suffix, b->suffix) &&
           same_text(a->user, b->user) && same_text(a->name, b->name) && a->places == b->places &&
           same_text(a->slots, b->slots) && same_text(a->beside, b->beside) &&
           a->count == b->count && same_text(a->region, b->region) &&
           same_text(a->service, b->service) && same_text(a->text, b->text) &&
           a->n_signs == b->n_signs && same_edits(a->signs, b->signs, a->n_signs) &&
           a->base64 == b->base64 && a->nonce == b->nonce && a->captured == b->captured;
}

static bool same_inspection(const struct inspection *a, const struct inspection *b)
{
    char one[500], two[500];
    if (a == NULL || b == NULL)
        return a == b;
    return a->kind == b->kind &&
           same_text(inspection_text(a, one, sizeof one), inspection_text(b, two, sizeof two));
}

static bool same_budget(const struct budget *a, const struct budget *b)
{
    char one[500], two[500];
    if (a == NULL || b == NULL)
        return a == b;
    return a->key == b->key &&
           same_text(budget_text(a, one, sizeof one), budget_text(b, two, sizeof two));
}

static bool same_captures(const struct rule *a, const struct rule *b)
{
    if (a->n_captures != b->n_captures)
        return false;
    for (size_t i = 0; i < a->n_captures; i++)
        if (!same_text(a->captures[i].path, b->captures[i].path) ||
            !same_text(a->captures[i].secret, b->captures[i].secret))
            return false;
    return true;
}

static bool same_flags(const struct rule *a, const struct rule *b)
{
    return a->index == b->index && a->client_credential == b->client_credential &&
           a->ask == b->ask && a->cookies == b->cookies && a->method_scoped == b->method_scoped &&
           a->websocket == b->websocket && a->ranges == b->ranges &&
           a->query_limited == b->query_limited && a->on_reflect == b->on_reflect &&
           a->allow_plaintext == b->allow_plaintext && a->tunnel == b->tunnel &&
           a->uncounted == b->uncounted && a->capture_body == b->capture_body;
}

static bool same_rule(const struct rule *a, const struct rule *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    if (!same_flags(a, b) || !same_text(a->text, b->text) || !same_text(a->said, b->said) ||
        a->n_edits != b->n_edits || a->n_query != b->n_query || a->n_headers != b->n_headers ||
        a->n_not_credentials != b->n_not_credentials || a->n_to != b->n_to)
        return false;
    for (size_t i = 0; i < a->n_not_credentials; i++)
        if (!same_text(a->not_credentials[i], b->not_credentials[i]))
            return false;
    return same_credential(a->credential, b->credential) &&
           same_edits(a->edits, b->edits, a->n_edits) &&
           same_conditions(a->query, b->query, a->n_query) &&
           same_conditions(a->headers, b->headers, a->n_headers) && same_captures(a, b) &&
           (a->n_to == 0 || memcmp(a->to, b->to, a->n_to * sizeof *a->to) == 0) &&
           same_inspection(a->inspection, b->inspection) && same_budget(a->budget, b->budget) &&
           (a->ssh == NULL) == (b->ssh == NULL) && (a->postgres == NULL) == (b->postgres == NULL);
}

/* ---- the same decisions ---- */

static bool same_taints(const struct policy *a, const struct policy *b, const struct authority *at)
{
    const struct taint *x[POLICY_TAINTS_MAX], *y[POLICY_TAINTS_MAX];
    size_t n = policy_taints(a, at, x);
    if (n != policy_taints(b, at, y))
        return false;
    for (size_t i = 0; i < n; i++) {
        const struct taint *s = x[i], *t = y[i];
        for (; s && t; s = s->next, t = t->next)
            if (!same_text(s->secret, t->secret) || !same_text(s->user, t->user) ||
                s->captured != t->captured || s->aws != t->aws || s->on_reflect != t->on_reflect)
                return false;
        if (s || t)
            return false;
    }
    return true;
}

static bool same_host(const struct policy *a, const struct policy *b, const struct authority *at)
{
    const struct rule *s = policy_tunnel(a, at), *t = policy_tunnel(b, at);
    struct authority address;
    if (authority_parse(&address, SCHEME_HTTPS, SLICE("10.1.2.3")) < 0)
        return false;
    return policy_host(a, at) == policy_host(b, at) && same_taints(a, b, at) &&
           policy_names_host(a, at) == policy_names_host(b, at) &&
           policy_serves_tls(a, at) == policy_serves_tls(b, at) && same_rule(s, t) &&
           policy_leads_to(a, at, ~0u, &address) == policy_leads_to(b, at, ~0u, &address);
}

/* One of the two was asked about as few rules as possible so far. */
static bool same_decision(const struct policy *a, const struct policy *b,
                          const struct policy_request *r)
{
    struct decision x, y;
    policy_decide(a, r, &x);
    policy_decide(b, r, &y);
    return x.verdict == y.verdict && strcmp(x.code, y.code) == 0 && same_rule(x.rule, y.rule) &&
           x.methods_matter == y.methods_matter && same_host(a, b, r->authority);
}

static uint32_t chance = 1;

static unsigned pick(unsigned n)
{
    chance = chance * 1664525u + 1013904223u;
    return (chance >> 8) % n;
}

/* A host and a path that rules come near to: the text of one of them with a part replaced. */
static void near_request(const char *text, char *host, size_t host_size, char *path, size_t size)
{
    static const char *const parts[] = {"x", "a", "v1", "bxc", "..", "%2e", "%2F", "A", "x;y", ""};
    const char *at = strpbrk(text, " ");
    size_t n = strcspn(at ? at + 1 : text, " ,/"), used = 1;
    const char *rest = (at ? at + 1 : text) + n;
    snprintf(host, host_size, "%s%.*s", at && at[1] == '.' ? "sub" : "", (int)n,
             at ? at + 1 : text);
    path[0] = '/';
    path[1] = 0;
    while (*rest == '/' && used + 40 < size) {
        size_t len = strcspn(++rest, "/ ,");
        bool replace = pick(4) == 0 || rest[0] == '*';
        used += (size_t)snprintf(path + used, size - used, "%s%.*s", used > 1 ? "/" : "",
                                 replace ? (int)strlen(parts[pick(10)]) : (int)len,
                                 replace ? parts[pick(10)] : rest);
        rest += len;
    }
}

static size_t compare_requests(const struct policy *a, const struct policy *b, size_t n)
{
    static const char *const methods[] = {"GET", "POST", "PUT", "DELETE", "PURGE", "HEAD"};
    size_t differ = 0, many = 0;
    struct rule_told told;
    while (policy_rule_told(a, many, &told))
        many++;
    for (size_t i = 0; i < n; i++) {
        char host[300] = "nobody.example", path[600] = "/";
        struct authority at;
        if (many && policy_rule_told(a, pick((unsigned)many), &told))
            near_request(told.text, host, sizeof host, path, sizeof path);
        enum scheme scheme = pick(5) ? SCHEME_HTTPS : SCHEME_HTTP;
        if (authority_parse(&at, scheme, slice_str(host)) < 0)
            continue;
        struct policy_request r = {&at, slice_str(methods[pick(6)]), slice_str(path)};
        differ += !same_decision(a, b, &r);
    }
    return differ;
}

/* Rules that were not asked for, and then all of them. */
static void compare(const struct policy *a, size_t requests)
{
    struct err err = {0};
    struct policy *b = image_opened(a, &err);
    if (b == NULL) {
        printf("# %s\n", err.text);
        CU_FAIL_FATAL("an image that opens");
    }
    CU_ASSERT_EQUAL(compare_requests(a, b, requests), 0);
    CU_ASSERT_STRING_EQUAL(policy_name(a), policy_name(b));
    CU_ASSERT_EQUAL(policy_nxdomain(a), policy_nxdomain(b));
    CU_ASSERT_EQUAL(policy_guide_none(a), policy_guide_none(b));
    CU_ASSERT_EQUAL(policy_has_tunnels(a), policy_has_tunnels(b));
    CU_ASSERT_EQUAL(policy_needs_injector(a), policy_needs_injector(b));
    CU_ASSERT_EQUAL(policy_ports(a, NULL, 0), policy_ports(b, NULL, 0));
    CU_ASSERT(same_budget(policy_budget(a), policy_budget(b)));
    CU_ASSERT_EQUAL(policy_prices(a) == NULL, policy_prices(b) == NULL);
    CU_ASSERT_EQUAL(policy_identity(a) == NULL, policy_identity(b) == NULL);
    size_t i = 0;
    for (const struct rule *r; (r = policy_rule(a, i)) != NULL; i++) {
        CU_ASSERT(same_rule(r, policy_rule(b, i)));
        if (r->budget)
            CU_ASSERT_PTR_EQUAL(policy_budget_find(b, r->budget->key, false),
                                policy_rule(b, i)->budget);
    }
    CU_ASSERT_PTR_NULL(policy_rule(b, i));
    CU_ASSERT_PTR_NULL(policy_budget_find(b, 4711, false));
    policy_free(b);
}

static void compare_all(const struct config *c, size_t requests)
{
    for (size_t i = 0; i < config_policies(c); i++)
        compare(config_policy(c, config_policy_name(c, i)), requests);
}

static void test_everything(void)
{
    struct config *c = config_of(everything);
    compare_all(c, 4000);
    config_unref(c);
}

static char *file_text(const char *name)
{
    const char *top = getenv("srcdir");
    char path[600];
    snprintf(path, sizeof path, "%s/%s", top ? top : "../..", name);
    FILE *f = fopen(path, "re");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    char *text = calloc(1, 1 << 20);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    CU_ASSERT(fread(text, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    return text;
}

/* The example that ships, and each preset as its text declares it. */
static void test_shipped(void)
{
    char *text = file_text("doc/examples/durward.yaml");
    struct config *c = config_of(text);
    compare_all(c, 2000);
    config_unref(c);
    free(text);
    size_t n = 0;
    for (const char *name; (name = preset_name(n)) != NULL; n++) {
        char yaml[600];
        struct err err = {0};
        snprintf(yaml, sizeof yaml,
                 "version: 1\nsecrets:\n  s: { env: S }\npolicies:\n  p:\n    rules:\n"
                 "      - { use: %s, secret: s }\n",
                 name);
        c = config_parse(slice_str(yaml), "/t/t.yaml", &err);
        if (c)
            compare_all(c, 500);
        else
            printf("# %s needs more than a secret: %s\n", name, err.text);
        if (c)
            config_unref(c);
    }
    CU_ASSERT(n > 10);
}

/* ---- damage ---- */

static struct policy *small(void)
{
    static const char json[] =
        "{\"policy\":\"p\",\"rules\":[{\"allow\":\".a.example/x/*\",\"methods\":[\"GET\"]},"
        "{\"deny\":\"b.a.example/x/y\"},{\"ask\":\"a.example:8080\",\"budget\":"
        "{\"requests\":\"5/"
        "h\"}},{\"allow\":\"c.example\",\"with\":{\"basic\":{\"user\":\"u\",\"password\":\"key\"}"
        "}}]}";
    struct err err = {0};
    struct policy *p = policy_parse(json, sizeof json - 1, &err);
    if (p == NULL) {
        printf("# %s\n", err.text);
        CU_FAIL_FATAL("a policy");
    }
    return p;
}

static struct image_header *head_of(unsigned char *bytes)
{
    return (struct image_header *)(void *)bytes;
}

static void *part_of(unsigned char *bytes, unsigned part)
{
    return bytes + head_of(bytes)->part[part].at;
}

/* Takes the bytes. */
static bool opens(unsigned char *bytes, size_t n)
{
    struct err err = {0};
    struct policy *p = policy_open(bytes, n, image_release, &err);
    CU_ASSERT((p == NULL) == (err.text[0] != 0));
    policy_free(p);
    return p != NULL;
}

/* Each byte, where it stands alone: the digest notices. */
static void test_digest(void)
{
    struct policy *p = small();
    size_t n = policy_image_bytes(p).n, passed = 0;
    for (size_t i = 0; i < n; i++) {
        size_t size;
        unsigned char *bytes = image_copy(p, &size);
        bytes[i] ^= 0x10;
        passed += opens(bytes, size);
    }
    CU_ASSERT_EQUAL(passed, 0);
    policy_free(p);
}

static void use(const struct policy *p)
{
    static const char *const hosts[] = {"b.a.example", "a.example:8080", "c.example", "z.example"};
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        struct authority a;
        struct decision d;
        char text[300];
        CU_ASSERT_FATAL(authority_parse(&a, SCHEME_HTTPS, slice_str(hosts[i])) == 0);
        struct policy_request r = {&a, SLICE("GET"), SLICE("/x/y")};
        policy_decide(p, &r, &d);
        (void)policy_taint_text(p, &a, text, sizeof text);
        (void)policy_names_host(p, &a);
        (void)policy_tunnel(p, &a);
        CU_ASSERT(d.code != NULL);
    }
    for (size_t i = 0; i < 8; i++)
        (void)policy_rule(p, i);
    (void)policy_ports(p, NULL, 0);
}

/* Each byte, with a digest that agrees: refused, or no harm (AddressSanitizer looks on where the
 * tests are built with it). */
static void test_any_byte(void)
{
    static const unsigned char other[] = {0x01, 0x80, 0xff};
    struct policy *p = small();
    size_t n = policy_image_bytes(p).n, refused = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < ARRAY_LEN(other); k++) {
            size_t size;
            struct err err = {0};
            unsigned char *bytes = image_copy(p, &size);
            bytes[i] ^= other[k];
            image_agree(bytes, size);
            struct policy *q = policy_open(bytes, size, image_release, &err);
            refused += q == NULL;
            if (q)
                use(q);
            policy_free(q);
        }
    printf("# %zu of %zu changes were refused\n", refused, n * ARRAY_LEN(other));
    CU_ASSERT(refused > n / 2);
    policy_free(p);
}

static void test_short(void)
{
    struct policy *p = small();
    size_t n = policy_image_bytes(p).n;
    for (size_t less = 1; less <= n; less += less < 64 ? 1 : 64) {
        size_t size;
        unsigned char *bytes = image_copy(p, &size);
        if (size - less > sizeof(struct image_header)) {
            head_of(bytes)->size = (uint32_t)(size - less);
            image_agree(bytes, size - less);
        }
        CU_ASSERT(!opens(bytes, size - less));
    }
    policy_free(p);
}

/* Each of these would lead a reader out of the image, or round and round: in a part (or the header)
 * the bytes at `at` become `to`. LAST and PAST are the number of a part's last record and the next.
 */
enum { HEADER = IMAGE_PARTS, LAST = 1, PAST, AS_IT_IS };

struct harm {
    unsigned part;
    size_t at, size;
    uint32_t to;
    unsigned of; /* LAST, PAST of part `which`; else `to` as it is */
    unsigned which;
};

#define FIELD(record, member) offsetof(struct record, member), sizeof(((struct record *)0)->member)
#define PART(i, member)       offsetof(struct image_header, part[i].member), sizeof(uint32_t)

static const struct harm harms[] = {
    {HEADER, FIELD(image_header, version), 2, AS_IT_IS, 0},
    {HEADER, FIELD(image_header, flags), IMAGE_FLAGS + 1, AS_IT_IS, 0},
    {HEADER, FIELD(image_header, name), 0, PAST, IMAGE_TEXT},
    {HEADER, FIELD(image_header, extras), 0, PAST, IMAGE_TEXT},
    {HEADER, PART(IMAGE_ARMS, n), UINT32_MAX / 48, AS_IT_IS, 0},
    {HEADER, PART(IMAGE_RULES, at), UINT32_MAX - 7, AS_IT_IS, 0},
    {HEADER, PART(IMAGE_SITES, at), sizeof(struct image_header) + 4, AS_IT_IS, 0},
    {HEADER, PART(IMAGE_RULES, at), 0, AS_IT_IS, 0},
    {HEADER, PART(IMAGE_WAY_TABLE, n), 0, LAST, IMAGE_WAY_TABLE},
    {IMAGE_RULES, FIELD(image_rule, text), 0, PAST, IMAGE_TEXT},
    {IMAGE_RULES, FIELD(image_rule, json_n), 0, PAST, IMAGE_TEXT},
    {IMAGE_RULES, FIELD(image_rule, secret), 0, PAST, IMAGE_TEXT},
    {IMAGE_RULES, FIELD(image_rule, flags), RULE_FLAGS + 1, AS_IT_IS, 0},
    {IMAGE_ARMS, FIELD(image_arm, rule), 0, PAST, IMAGE_RULES},
    {IMAGE_ARMS, FIELD(image_arm, site), 0, PAST, IMAGE_SITES},
    {IMAGE_ARMS, FIELD(image_arm, next_way), 0, PAST, IMAGE_ARMS},
    {IMAGE_ARMS, FIELD(image_arm, next_way), 0, AS_IT_IS, 0}, /* itself */
    {IMAGE_ARMS, FIELD(image_arm, next_site), 0, AS_IT_IS, 0},
    {IMAGE_ARMS, FIELD(image_arm, path.first), UINT32_MAX, AS_IT_IS, 0},
    {IMAGE_ARMS, FIELD(image_arm, path.n), PATTERN_SEGMENTS + 1, AS_IT_IS, 0},
    {IMAGE_ARMS, FIELD(image_arm, kind), ARM_DENY, AS_IT_IS, 0}, /* the rule is none */
    {IMAGE_ARMS, FIELD(image_arm, kind), ARM_SHADOW + 1, AS_IT_IS, 0},
    {IMAGE_SITES, FIELD(image_site, host), 0, PAST, IMAGE_TEXT},
    {IMAGE_SITES, FIELD(image_site, host_n), 1, AS_IT_IS, 0}, /* no NUL stands there */
    {IMAGE_SITES, FIELD(image_site, next_host), 0, PAST, IMAGE_SITES},
    {IMAGE_SITES, FIELD(image_site, first_arm), 0, PAST, IMAGE_ARMS},
    {IMAGE_SITES, FIELD(image_site, first_way[0]), 0, PAST, IMAGE_WAYS},
    {IMAGE_SITES, FIELD(image_site, first_way[1]), 0, PAST, IMAGE_WAYS},
    {IMAGE_SITES, FIELD(image_site, n_taints), 0, PAST, IMAGE_TEXT},
    {IMAGE_SITES, FIELD(image_site, scheme), SCHEME_ENDS, AS_IT_IS, 0},
    {IMAGE_SITES, FIELD(image_site, kind), 0, AS_IT_IS, 0},
    {IMAGE_WAYS, FIELD(way, depth), POLICY_DEPTH + 1, AS_IT_IS, 0},
    {IMAGE_WAYS, FIELD(way, next), 0, AS_IT_IS, 0}, /* itself */
    {IMAGE_WAY_TABLE, FIELD(image_bucket, first), 0, PAST, IMAGE_ARMS},
    {IMAGE_SITE_TABLE, FIELD(image_bucket, first), 0, PAST, IMAGE_SITES},
    {IMAGE_HOST_TABLE, FIELD(image_bucket, first), 0, PAST, IMAGE_SITES},
    {IMAGE_SEGMENTS, FIELD(image_segment, at), 0, PAST, IMAGE_TEXT},
    {IMAGE_SEGMENTS, FIELD(image_segment, kind), SEGMENT_GLOB + 1, AS_IT_IS, 0},
    {IMAGE_TAINTS, FIELD(image_taint, secret), 0, PAST, IMAGE_TEXT},
    {IMAGE_TAINTS, FIELD(image_taint, user), 0, PAST, IMAGE_TEXT},
    {IMAGE_TAINTS, FIELD(image_taint, on_reflect), REFLECT_KILL + 1, AS_IT_IS, 0},
    {IMAGE_BUDGETS, FIELD(image_budget, rule), 0, PAST, IMAGE_RULES},
    {IMAGE_SECRETS, 0, sizeof(uint32_t), 0, PAST, IMAGE_TEXT},
};

static void harm_with(unsigned char *bytes, const struct harm *h)
{
    uint32_t n = head_of(bytes)->part[h->which].n, to = h->of == LAST   ? n - 1
                                                        : h->of == PAST ? n
                                                                        : h->to;
    unsigned char *at = h->part == HEADER ? bytes : part_of(bytes, h->part);
    memcpy(at + h->at, &to, h->size); /* the machine's numbers begin with their low byte */
}

static void test_ranges(void)
{
    struct policy *p = small();
    for (size_t i = 0; i < ARRAY_LEN(harms); i++) {
        size_t n;
        unsigned char *bytes = image_copy(p, &n);
        harm_with(bytes, &harms[i]);
        image_agree(bytes, n);
        if (opens(bytes, n)) {
            printf("# harm %zu was not noticed\n", i);
            CU_FAIL("harm");
        }
    }
    policy_free(p);
}

/* The last text does not end: what is behind the texts of a good image is taken for text, too. */
static void test_open_text(void)
{
    struct policy *p = small();
    size_t n;
    for (int open = 0; open < 2; open++) {
        unsigned char *bytes = image_copy(p, &n);
        CU_ASSERT_PTR_NOT_NULL_FATAL(bytes = realloc(bytes, n + 8));
        memset(bytes + n, 0, 8);
        struct image_header *h = head_of(bytes);
        h->size = (uint32_t)(n + 8);
        h->part[IMAGE_TEXT].n = h->size - h->part[IMAGE_TEXT].at;
        bytes[n + 7] = open ? 'x' : 0;
        image_agree(bytes, n + 8);
        CU_ASSERT_EQUAL(opens(bytes, n + 8), !open);
    }
    policy_free(p);
}

/* A record whose JSON says another rule: what it would allow is denied, whatever it allows. */
static void test_other_rule(void)
{
    struct policy *p = small();
    size_t n;
    struct err err = {0};
    struct authority a;
    struct decision d;
    unsigned char *bytes = image_copy(p, &n);
    struct image_rule *rules = part_of(bytes, IMAGE_RULES);
    rules[2].json = rules[3].json; /* what asks, and what allows */
    rules[2].json_n = rules[3].json_n;
    rules[3].json_n = 3; /* no JSON at all */
    image_agree(bytes, n);
    struct policy *q = policy_open(bytes, n, image_release, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(q);
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_FATAL(
            authority_parse(&a, SCHEME_HTTPS, slice_str(i ? "c.example" : "a.example:8080")) == 0);
        struct policy_request r = {&a, SLICE("GET"), SLICE("/")};
        policy_decide(p, &r, &d);
        CU_ASSERT_EQUAL(d.verdict, i ? VERDICT_ALLOW : VERDICT_ASK);
        policy_decide(q, &r, &d);
        CU_ASSERT_EQUAL(d.verdict, VERDICT_DENY);
        CU_ASSERT_PTR_NULL(d.rule);
    }
    CU_ASSERT_PTR_NULL(policy_rule(q, 2));
    CU_ASSERT_PTR_NOT_NULL(policy_rule(q, 0));
    policy_free(q);
    policy_free(p);
}

/* ---- what it costs ---- */

static struct policy *many(size_t n)
{
    struct buf text;
    struct err err = {0};
    buf_init(&text, 4 << 20);
    CU_ASSERT_FATAL(buf_append_str(&text, "{\"policy\":\"p\",\"rules\":[") == 0);
    for (size_t i = 0; i < n; i++)
        CU_ASSERT_FATAL(buf_printf(&text,
                                   "%s{\"allow\":\"h%zu.example.com/v1/**\",\"methods\":[\"GET\"],"
                                   "\"with\":{\"bearer\":\"key\"}}",
                                   i ? "," : "", i) == 0);
    CU_ASSERT_FATAL(buf_append_str(&text, "]}") == 0);
    struct policy *p = policy_parse((char *)buf_data(&text), buf_len(&text), &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    buf_free(&text);
    return p;
}

static size_t in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

/* What one role holds beside the image that all share, after deciding once. */
static size_t held(const struct policy *p)
{
    struct err err = {0};
    struct authority a;
    struct decision d;
    struct slice image = policy_image_bytes(p);
    size_t before = in_use();
    struct policy *q = policy_open((void *)(uintptr_t)image.p, image.n, NULL, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(q);
    CU_ASSERT_FATAL(authority_parse(&a, SCHEME_HTTPS, SLICE("h9.example.com")) == 0);
    struct policy_request r = {&a, SLICE("GET"), SLICE("/v1/x")};
    policy_decide(q, &r, &d);
    CU_ASSERT_EQUAL(d.verdict, VERDICT_ALLOW);
    CU_ASSERT(policy_tainted(q, &a));
    size_t ret = in_use() - before;
    policy_free(q);
    return ret;
}

/* A path of more segments than a request is matched with, though the image has that many. */
static void test_long_path(void)
{
    struct policy *p = many(2 * PATTERN_SEGMENTS);
    for (uint32_t more = 0; more < 2; more++) {
        size_t n;
        unsigned char *bytes = image_copy(p, &n);
        struct image_arm *arms = part_of(bytes, IMAGE_ARMS);
        CU_ASSERT_FATAL(head_of(bytes)->part[IMAGE_SEGMENTS].n > PATTERN_SEGMENTS);
        arms[0].path.first = 0;
        arms[0].path.n = (uint16_t)(PATTERN_SEGMENTS + more);
        image_agree(bytes, n);
        CU_ASSERT_EQUAL(opens(bytes, n), more == 0);
    }
    policy_free(p);
}

static void test_memory(void)
{
    struct policy *few = many(10), *lots = many(10000);
    size_t small_one = held(few), large_one = held(lots);
    printf("# 10 rules: image %zu bytes, a role holds %zu; 10000: image %zu bytes, a role holds "
           "%zu\n",
           policy_image_bytes(few).n, small_one, policy_image_bytes(lots).n, large_one);
    CU_ASSERT(large_one <= small_one + 32768);
    policy_free(few);
    policy_free(lots);
}

/* ---- the most that there may be ---- */

/* So many rules with so many patterns each, and a condition of so many bytes. NULL: refused, as err
 * says. */
static struct policy *full(size_t n, size_t patterns, size_t bytes, struct err *err)
{
    struct buf text;
    char *long_value = calloc(1, bytes + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(long_value);
    memset(long_value, 'v', bytes);
    buf_init(&text, 256 << 20);
    CU_ASSERT_FATAL(buf_append_str(&text, "{\"policy\":\"p\",\"rules\":[") == 0);
    for (size_t i = 0; i < n; i++) {
        CU_ASSERT_FATAL(buf_printf(&text, "%s{\"allow\":[", i ? "," : "") == 0);
        for (size_t k = 0; k < patterns; k++)
            CU_ASSERT_FATAL(
                buf_printf(&text, "%s\"h%zu.example.com/%zu/**\"", k ? "," : "", i, k) == 0);
        CU_ASSERT_FATAL(
            buf_printf(&text, "],\"headers\":{\"x-one\":[\"%zu%s\"]}}", i, long_value) == 0);
    }
    CU_ASSERT_FATAL(buf_append_str(&text, "]}") == 0);
    struct policy *p = policy_parse((char *)buf_data(&text), buf_len(&text), err);
    buf_free(&text);
    free(long_value);
    return p;
}

static void test_most(void)
{
    enum { EACH = 32 };
    static const struct {
        size_t n, patterns, bytes;
        const char *refused;
    } rows[] = {
        {POLICY_RULES_MAX, 1, 1, NULL},
        {POLICY_RULES_MAX + 1, 1, 1, "more than 20000 rules"},
        {POLICY_ARMS_MAX / EACH, EACH, 1, NULL},
        {POLICY_ARMS_MAX / EACH + 1, EACH, 1, "more than 65536 patterns"},
        {(POLICY_IMAGE_MAX >> 20) - 4, 1, 1 << 20, NULL},
        {(POLICY_IMAGE_MAX >> 20) + 1, 1, 1 << 20, "larger than 64 MiB"},
        /* none of its parts alone */
        {POLICY_RULES_MAX, 1, 3150, "larger than 64 MiB"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = {0};
        struct policy *p = full(rows[i].n, rows[i].patterns, rows[i].bytes, &err);
        CU_ASSERT_EQUAL(p == NULL, rows[i].refused != NULL);
        if (rows[i].refused)
            CU_ASSERT_PTR_NOT_NULL(strstr(err.text, rows[i].refused));
        if (p == NULL) {
            printf("# %zu: %s\n", i, err.text);
            continue;
        }
        struct policy *q = image_opened(p, &err);
        CU_ASSERT_PTR_NOT_NULL(q);
        policy_free(q);
        policy_free(p);
    }
}

/* What could not be parsed for want of memory is not taken for damage: it is read the next time. */
static void *no_memory(size_t n)
{
    (void)n;
    return NULL;
}

static void test_starved(void)
{
    struct err err = {0};
    struct policy *p = small(), *q = image_opened(p, &err);
    json_malloc_t take;
    json_free_t give;
    CU_ASSERT_PTR_NOT_NULL_FATAL(q);
    json_get_alloc_funcs(&take, &give);
    json_set_alloc_funcs(no_memory, give);
    const struct rule *starved = policy_rule(q, 0);
    json_set_alloc_funcs(take, give);
    CU_ASSERT_PTR_NULL(starved);
    CU_ASSERT_PTR_NOT_NULL(policy_rule(q, 0));
    policy_free(q);
    policy_free(p);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("policy_image", NULL, NULL);
    CU_add_test(s, "everything a rule can say", test_everything);
    CU_add_test(s, "the example and the presets", test_shipped);
    CU_add_test(s, "a changed byte is noticed", test_digest);
    CU_add_test(s, "any bytes do no harm", test_any_byte);
    CU_add_test(s, "a part of an image is none", test_short);
    CU_add_test(s, "numbers and offsets out of range", test_ranges);
    CU_add_test(s, "texts end", test_open_text);
    CU_add_test(s, "a path is no longer than a request's", test_long_path);
    CU_add_test(s, "a record with the text of another rule", test_other_rule);
    CU_add_test(s, "a rule that memory was short for", test_starved);
    CU_add_test(s, "as many rules, patterns and bytes as may be", test_most);
    CU_add_test(s, "what a role holds does not grow with the rules", test_memory);
}
