/* Tokens for the API: whose one is, what it may and sees, what is kept of it. */
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bearer.h"
#include "tap_main.h"

void suite_bearer(void);

static char dir[64];
static int dirfd_;
static struct registry *registry;

static int begin(void)
{
    struct err err = {0};
    snprintf(dir, sizeof dir, "/tmp/durward-bearer-XXXXXX");
    if (mkdtemp(dir) == NULL)
        return -1;
    dirfd_ = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    registry = dirfd_ < 0 ? NULL : registry_open(dirfd_, &err);
    return registry ? 0 : -1;
}

static int end(void)
{
    static const char *const files[] = {"registry.db", "registry.db-journal", "registry.db-wal"};
    registry_close(registry);
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        unlinkat(dirfd_, files[i], 0);
    close(dirfd_);
    return rmdir(dir);
}

static struct bearers *load(void)
{
    struct err err = {0};
    struct bearers *b = bearers_load(registry, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    return b;
}

static const struct bearer *make(struct bearers *all, const char *name, unsigned scopes,
                                 int64_t ttl, char text[BEARER_TEXT_MAX])
{
    struct err err = {0};
    struct bearer_wish w = {.name = name, .scopes = scopes, .ttl = ttl};
    const struct bearer *b = bearer_new(all, &w, text, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    return b;
}

static void test_whose(void)
{
    char one[BEARER_TEXT_MAX], two[BEARER_TEXT_MAX], bad[2 * BEARER_TEXT_MAX];
    struct bearers *all = load();
    const struct bearer *a = make(all, "one", SCOPE_READ, 60, one);
    const struct bearer *b = make(all, "two", SCOPE_EXEC, 60, two);
    CU_ASSERT_PTR_EQUAL(bearer_check(all, one), a);
    CU_ASSERT_PTR_EQUAL(bearer_check(all, two), b);
    CU_ASSERT_EQUAL(strlen(strchr(one, '.') + 1), 2 * BEARER_SECRET);
    for (size_t i = 0; i < strlen(one); i++) { /* each byte counts */
        snprintf(bad, sizeof bad, "%s", one);
        bad[i] = bad[i] == 'a' ? 'b' : 'a';
        CU_ASSERT_PTR_NULL(bearer_check(all, bad));
        snprintf(bad, sizeof bad, "%.*s", (int)i, one); /* and all of them */
        CU_ASSERT_PTR_NULL(bearer_check(all, bad));
    }
    snprintf(bad, sizeof bad, "%s0", one);
    CU_ASSERT_PTR_NULL(bearer_check(all, bad));
    snprintf(bad, sizeof bad, "%s.%s", a->id, strchr(two, '.') + 1);
    CU_ASSERT_PTR_NULL(bearer_check(all, bad));
    snprintf(bad, sizeof bad, "%0100d.%s", 1, strchr(one, '.') + 1);
    CU_ASSERT_PTR_NULL(bearer_check(all, bad));
    bearers_free(all);
}

static void test_lasts(void)
{
    char one[BEARER_TEXT_MAX], two[BEARER_TEXT_MAX], id[BEARER_ID_MAX + 1];
    struct err err = {0};
    struct bearers *all = load();
    snprintf(id, sizeof id, "%s", make(all, "kept", SCOPE_READ, 60, one)->id);
    make(all, "revoked", SCOPE_READ, 60, two);
    char gone[BEARER_ID_MAX + 1];
    snprintf(gone, sizeof gone, "%s", bearer_check(all, two)->id);
    CU_ASSERT_EQUAL(bearer_revoke(all, gone, &err), 0);
    CU_ASSERT_EQUAL(bearer_revoke(all, gone, &err), 1);
    CU_ASSERT_PTR_NULL(bearer_check(all, two));
    bearers_free(all);
    all = load();
    const struct bearer *b = bearer_check(all, one);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    CU_ASSERT_STRING_EQUAL(b->id, id);
    CU_ASSERT_PTR_NULL(bearer_check(all, two));
    CU_ASSERT_PTR_NULL(bearer_find(all, gone));
    bearers_free(all);
}

static void test_time(void)
{
    char text[BEARER_TEXT_MAX];
    struct bearers *all = load();
    struct bearer *b = (struct bearer *)(uintptr_t)make(all, "short", SCOPE_READ, 60, text);
    b->expires = 1;
    CU_ASSERT_PTR_NULL(bearer_check(all, text));
    CU_ASSERT_PTR_NULL(bearer_find(all, b->id));
    json_t *before = bearers_json(all);
    make(all, "next", SCOPE_READ, 60, text);
    json_t *after = bearers_json(all);
    CU_ASSERT_EQUAL(json_array_size(after), json_array_size(before) + 1);
    json_decref(before);
    json_decref(after);
    bearers_free(all);
}

static void test_bounds(void)
{
    char text[BEARER_TEXT_MAX];
    struct err err = {0};
    struct bearers *all = load();
    struct bearer_wish w = {.name = "many", .scopes = SCOPE_READ, .ttl = 60};
    size_t n = 0;
    while (n <= BEARERS_MAX && bearer_new(all, &w, text, &err))
        n++;
    CU_ASSERT(n > 0 && n <= BEARERS_MAX);
    CU_ASSERT_EQUAL(err.code, ERR_DENIED);
    bearers_free(all);
}

static void test_scopes(void)
{
    struct bearer b = {.scopes = SCOPE_READ | SCOPE_EXEC};
    CU_ASSERT(bearer_may(&b, SCOPE_READ) && bearer_may(&b, SCOPE_EXEC));
    CU_ASSERT_FALSE(bearer_may(&b, SCOPE_SANDBOXES) || bearer_may(&b, SCOPE_APPROVALS) ||
                    bearer_may(&b, SCOPE_IDENTITIES) || bearer_may(&b, SCOPE_ADMIN));
    b.scopes = SCOPE_ADMIN;
    CU_ASSERT(bearer_may(&b, SCOPE_READ) && bearer_may(&b, SCOPE_IDENTITIES));
    CU_ASSERT_EQUAL(bearer_scope_of("exec"), SCOPE_EXEC);
    CU_ASSERT_EQUAL(bearer_scope_of("root"), -1);
}

static void test_sees(void)
{
    struct bearer b = {.policies = json_pack("[s]", "coder"),
                       .labels = json_pack("{s:s}", "t", "a")};
    json_t *both = json_pack("{s:s, s:s}", "t", "a", "u", "b"),
           *other = json_pack("{s:s}", "t", "b");
    CU_ASSERT(bearer_is_narrow(&b));
    CU_ASSERT(bearer_sees(&b, "coder", both));
    CU_ASSERT_FALSE(bearer_sees(&b, "other", both));
    CU_ASSERT_FALSE(bearer_sees(&b, "coder", other));
    CU_ASSERT_FALSE(bearer_sees(&b, "coder", NULL));
    json_object_clear(b.labels);
    CU_ASSERT(bearer_sees(&b, "coder", NULL) && bearer_is_narrow(&b));
    json_array_clear(b.policies);
    CU_ASSERT(bearer_sees(&b, "other", other) && !bearer_is_narrow(&b));
    json_decref(b.policies);
    json_decref(b.labels);
    json_decref(both);
    json_decref(other);
}

/* A row that says nothing of whom it is for must not be for all. */
static void test_damage(void)
{
    static const struct registry_bearer rows[] = {
        {.id = "tk-x",
         .name = "",
         .policies = "",
         .labels = "{}",
         .scopes = 1,
         .expires = INT64_MAX},
        {.id = "tk-x",
         .name = "",
         .policies = "[]",
         .labels = "[]",
         .scopes = 1,
         .expires = INT64_MAX},
        {.id = "tk-x", .name = "", .policies = "null", .labels = "{}", .scopes = 1}};
    struct err err = {0};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CU_ASSERT_EQUAL(registry_bearer_add(registry, &rows[i], &err), 0);
        CU_ASSERT_PTR_NULL(bearers_load(registry, &err));
        CU_ASSERT_EQUAL(registry_bearer_delete(registry, "tk-x", &err), 0);
    }
}

void suite_bearer(void)
{
    CU_pSuite s = CU_add_suite("bearer", begin, end);
    CU_add_test(s, "whose a token is", test_whose);
    CU_add_test(s, "what lasts", test_lasts);
    CU_add_test(s, "its time", test_time);
    CU_add_test(s, "scopes", test_scopes);
    CU_add_test(s, "what it sees", test_sees);
    CU_add_test(s, "damaged rows", test_damage);
    CU_add_test(s, "not without bounds", test_bounds);
}

void tap_suites(void)
{
    suite_bearer();
}
