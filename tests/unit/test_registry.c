/* The controller's state directory: identities that outlive a restart, keys that are made once. */
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keys.h"
#include "registry.h"
#include "tap_main.h"

void suite_registry(void);

static char dir[64];
static int dirfd_;

static int begin(void)
{
    snprintf(dir, sizeof dir, "/tmp/durward-registry-XXXXXX");
    if (mkdtemp(dir) == NULL)
        return -1;
    dirfd_ = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dirfd_ < 0 ? -1 : 0;
}

static int end(void)
{
    static const char *const files[] = {"registry.db", "registry.db-journal", "tag.key",
                                        "token.key"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        unlinkat(dirfd_, files[i], 0);
    close(dirfd_);
    return rmdir(dir); /* and nothing else was left */
}

static struct identity identity(const char *id, const char *policy, enum identity_kind kind,
                                int64_t expires)
{
    struct identity i = {.kind = kind, .expires = expires};
    snprintf(i.id, sizeof i.id, "%s", id);
    snprintf(i.policy, sizeof i.policy, "%s", policy);
    memset(i.seed, id[3], sizeof i.seed);
    return i;
}

static struct registry *reopen(struct registry *r)
{
    struct err err = {0};
    registry_close(r);
    r = registry_open(dirfd_, &err);
    if (r == NULL)
        fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    return r;
}

struct seen {
    char ids[256];
    unsigned n;
};

static int note(void *arg, const struct identity *i)
{
    struct seen *s = arg;
    size_t at = strlen(s->ids);
    snprintf(s->ids + at, sizeof s->ids - at, "%s ", i->id);
    CU_ASSERT_EQUAL(i->seed[0], (unsigned char)i->id[3]);
    CU_ASSERT_EQUAL(i->seed[15], (unsigned char)i->id[3]);
    s->n++;
    return 0;
}

static void test_identities_survive(void)
{
    struct registry *r = reopen(NULL);
    struct identity a = identity("rt-a", "coder", IDENTITY_TOKEN, 1000),
                    b = identity("rt-b", "coder", IDENTITY_TOKEN, 2000),
                    l = identity("rp-l", "coder", IDENTITY_LISTENER, INT64_MAX), found;
    struct err err = {0};
    struct seen s = {0};
    CU_ASSERT_EQUAL(registry_add(r, &a, &err), 0);
    CU_ASSERT_EQUAL(registry_add(r, &b, &err), 0);
    CU_ASSERT_EQUAL(registry_listener(r, "coder", &found, &err), 1);
    CU_ASSERT_EQUAL(registry_add(r, &l, &err), 0);
    CU_ASSERT_EQUAL(registry_add(r, &a, &err), -1); /* an id is given once */
    r = reopen(r);
    CU_ASSERT_EQUAL(registry_each(r, 999, note, &s, &err), 0);
    CU_ASSERT_STRING_EQUAL(s.ids, "rt-a rt-b rp-l ");
    CU_ASSERT_EQUAL(registry_listener(r, "coder", &found, &err), 0);
    CU_ASSERT_STRING_EQUAL(found.id, "rp-l");
    CU_ASSERT_EQUAL(found.expires, INT64_MAX);
    CU_ASSERT_EQUAL(registry_listener(r, "other", &found, &err), 1);
    registry_close(r);
}

static void test_expiry_and_revocation(void)
{
    struct registry *r = reopen(NULL);
    struct err err = {0};
    struct seen s = {0};
    int64_t expires = 0;
    CU_ASSERT_EQUAL(registry_each(r, 1000, note, &s, &err), 0); /* expires at 1000: not at 1000 */
    CU_ASSERT_STRING_EQUAL(s.ids, "rt-b rp-l ");
    CU_ASSERT_EQUAL(registry_revoke(r, "rt-b", &expires, &err), 0);
    CU_ASSERT_EQUAL(expires, 2000);
    CU_ASSERT_EQUAL(registry_revoke(r, "rt-b", &expires, &err), 1);
    CU_ASSERT_EQUAL(registry_revoke(r, "rt-x' OR '1'='1", &expires, &err), 1);
    r = reopen(r);
    memset(&s, 0, sizeof s);
    CU_ASSERT_EQUAL(registry_each(r, 500, note, &s, &err), 0);
    CU_ASSERT_STRING_EQUAL(s.ids, "rt-a rp-l ");
    registry_close(r);
}

static int count(void *arg, const struct identity *i)
{
    struct seen *s = arg;
    if (s->n++ == 0)
        snprintf(s->ids, sizeof s->ids, "%s", i->id);
    return 0;
}

/* A clock that was put forward has nothing forgotten that would be good when it is put back. */
static void test_forgetting(void)
{
    enum { MORE = 3, ALL = REGISTRY_EXPIRED_MAX + MORE };
    struct registry *r = reopen(NULL);
    struct err err = {0};
    struct seen s = {0};
    int64_t expires, floor = -1;
    CU_ASSERT_EQUAL(registry_prune(r, 1000000000, &err), 0);
    CU_ASSERT_EQUAL(registry_each_revoked(r, note, &s, &err), 0);
    CU_ASSERT_STRING_EQUAL(s.ids, "rt-b ");
    CU_ASSERT_EQUAL(registry_revoke(r, "rt-a", &expires, &err), 0);
    for (int i = 0; i < ALL; i++) {
        char id[32];
        snprintf(id, sizeof id, "rt-f%d", i);
        struct identity more = identity(id, "coder", IDENTITY_TOKEN, 3000 + i);
        CU_ASSERT_EQUAL_FATAL(registry_add(r, &more, &err), 0);
        CU_ASSERT_EQUAL_FATAL(registry_revoke(r, id, &expires, &err), 0);
    }
    CU_ASSERT_EQUAL(registry_revoked_floor(r, &floor, &err), 0);
    CU_ASSERT_EQUAL(floor, 0);
    CU_ASSERT_EQUAL(registry_prune(r, 3001, &err), 0); /* few have expired */
    memset(&s, 0, sizeof s);
    CU_ASSERT_EQUAL(registry_each_revoked(r, count, &s, &err), 0);
    CU_ASSERT_EQUAL(s.n, ALL + 2);
    CU_ASSERT_EQUAL(registry_prune(r, 1000000000, &err), 0);
    r = reopen(r);
    memset(&s, 0, sizeof s);
    CU_ASSERT_EQUAL(registry_each_revoked(r, count, &s, &err), 0);
    CU_ASSERT_EQUAL(s.n, REGISTRY_EXPIRED_MAX);
    CU_ASSERT_STRING_EQUAL(s.ids, "rt-f3");
    CU_ASSERT_EQUAL(registry_revoked_floor(r, &floor, &err), 0);
    CU_ASSERT_EQUAL(floor, 3000 + MORE - 1);
    memset(&s, 0, sizeof s);
    CU_ASSERT_EQUAL(registry_each(r, 0, note, &s, &err), 0);
    CU_ASSERT_STRING_EQUAL(s.ids, "rp-l ");
    registry_close(r);
}

static void test_file_is_private(void)
{
    struct stat st;
    CU_ASSERT_EQUAL_FATAL(fstatat(dirfd_, "registry.db", &st, 0), 0);
    CU_ASSERT_TRUE(S_ISREG(st.st_mode));
    CU_ASSERT_EQUAL(st.st_mode & 077, 0);
}

static void test_keys_are_made_once(void)
{
    struct keys a, b;
    struct err err = {0};
    struct stat st;
    CU_ASSERT_EQUAL_FATAL(keys_load(dirfd_, &a, &err), 0);
    CU_ASSERT_EQUAL_FATAL(keys_load(dirfd_, &b, &err), 0);
    CU_ASSERT_EQUAL(memcmp(a.tag, b.tag, sizeof a.tag), 0);
    CU_ASSERT_EQUAL(memcmp(a.token_public, b.token_public, sizeof a.token_public), 0);
    CU_ASSERT_NOT_EQUAL(memcmp(a.tag, a.token_public, sizeof a.tag), 0);
    CU_ASSERT_EQUAL(fstatat(dirfd_, "tag.key", &st, 0), 0);
    CU_ASSERT_EQUAL(st.st_mode & 0777, 0600);
    CU_ASSERT_EQUAL(st.st_size, KEY_BYTES);
    keys_done(&a);
    keys_done(&b);
}

static void test_bad_key_files_are_refused(void)
{
    struct keys k;
    struct err err = {0};
    CU_ASSERT_EQUAL(fchmodat(dirfd_, "tag.key", 0644, 0), 0);
    CU_ASSERT_EQUAL(keys_load(dirfd_, &k, &err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "chmod 600"));
    CU_ASSERT_EQUAL(fchmodat(dirfd_, "tag.key", 0600, 0), 0);
    int fd = openat(dirfd_, "tag.key", O_WRONLY | O_APPEND);
    CU_ASSERT_EQUAL(write(fd, "x", 1), 1);
    close(fd);
    CU_ASSERT_EQUAL(keys_load(dirfd_, &k, &err), -1);
    CU_ASSERT_EQUAL(unlinkat(dirfd_, "tag.key", 0), 0);
    CU_ASSERT_EQUAL(symlinkat("token.key", dirfd_, "tag.key"), 0);
    CU_ASSERT_EQUAL(keys_load(dirfd_, &k, &err), -1);
}

void suite_registry(void)
{
    CU_pSuite s = CU_add_suite("registry", begin, end);
    CU_add_test(s, "identities survive", test_identities_survive);
    CU_add_test(s, "expiry and revocation", test_expiry_and_revocation);
    CU_add_test(s, "what expired is forgotten by number, not by the clock alone", test_forgetting);
    CU_add_test(s, "the file is private", test_file_is_private);
    CU_add_test(s, "keys are made once", test_keys_are_made_once);
    CU_add_test(s, "bad key files are refused", test_bad_key_files_are_refused);
}

void tap_suites(void)
{
    suite_registry();
}
