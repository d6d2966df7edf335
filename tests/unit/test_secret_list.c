/* Names of secrets on their way to the vault, and the block of the environment's: what is written,
 * what is read back, and what is damaged. */
#include "env_block.h"
#include "ipc.h"
#include "secret_list.h"
#include "secret_value.h"
#include "tap_main.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void suite_secret_list(void);

static char long_name[SECRET_NAME_MAX + 2];

static int pack(const char *name, size_t n)
{
    struct buf b;
    const char **names = calloc(n + 1, sizeof *names);
    CU_ASSERT_PTR_NOT_NULL_FATAL(names);
    for (size_t i = 0; i < n; i++)
        names[i] = name;
    buf_init(&b, 1 << 22);
    int r = secret_list_pack(&b, names, n);
    buf_free(&b);
    free(names);
    return r;
}

static void test_pack(void)
{
    memset(long_name, 'n', SECRET_NAME_MAX);
    CU_ASSERT_EQUAL(pack("", 1), -1);
    CU_ASSERT_EQUAL(pack(long_name, 1), 0);
    long_name[SECRET_NAME_MAX] = 'n';
    CU_ASSERT_EQUAL(pack(long_name, 1), -1);
    CU_ASSERT_EQUAL(pack("n", SECRET_LIST_MAX), 0);
    CU_ASSERT_EQUAL(pack("n", SECRET_LIST_MAX + 1), -1);
}

/* How many names; -1: damaged. */
static int count(const char *bytes, size_t n)
{
    struct secret_list l;
    struct slice name;
    int r, names = 0;
    /* at the end of a page behind which nothing can be read */
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_FATAL(map != MAP_FAILED && mprotect(map + page, page, PROT_NONE) == 0);
    char *copy = map + page - n;
    memcpy(copy, bytes, n);
    if (secret_list_open(&l, (struct slice){copy, n}) < 0)
        r = -1;
    else
        while ((r = secret_list_next(&l, &name)) == 1) {
            CU_ASSERT(name.p >= copy && name.p + name.n <= copy + n);
            names++;
        }
    munmap(map, 2 * page);
    return r < 0 ? -1 : names;
}

#define COUNT(text) count(text, sizeof(text) - 1)

static void test_read(void)
{
    char text[8 + SECRET_NAME_MAX + 1];
    CU_ASSERT_EQUAL(COUNT("\0\0\0\0"), 0);
    CU_ASSERT_EQUAL(COUNT("\0\0\0\2\0\0\0\1a\0\0\0\2bc"), 2);
    CU_ASSERT_EQUAL(COUNT(""), -1);
    CU_ASSERT_EQUAL(COUNT("\0\0\0"), -1);
    CU_ASSERT_EQUAL(COUNT("\0\0\0\0x"), -1);          /* more than it says */
    CU_ASSERT_EQUAL(COUNT("\0\0\0\1"), -1);           /* less */
    CU_ASSERT_EQUAL(COUNT("\0\0\0\1\0\0\0"), -1);     /* cut in a length */
    CU_ASSERT_EQUAL(COUNT("\0\0\0\1\0\0\0\0"), -1);   /* a name of nothing */
    CU_ASSERT_EQUAL(COUNT("\0\0\0\1\0\0\0\3ab"), -1); /* cut in a name */
    CU_ASSERT_EQUAL(COUNT("\377\377\377\377"), -1);
    memset(text, 'a', sizeof text);
    memcpy(text, "\0\0\0\1", 4);
    memcpy(text + 4,
           (unsigned char[]){0, 0, (SECRET_NAME_MAX + 1) >> 8, (SECRET_NAME_MAX + 1) & 255}, 4);
    CU_ASSERT_EQUAL(count(text, sizeof text), -1); /* a name that is too long */
}

static void test_block_names(void)
{
    static const char *const bad[] = {"", "a\"b", "a\\b", "a\nb", "a\x7f", "\x1f"};
    struct err err = {0};
    struct buf b;
    char *big = malloc(SECRET_MAX);
    CU_ASSERT_PTR_NOT_NULL_FATAL(big);
    memset(big, 'x', SECRET_MAX);
    env_block_begin(&b);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_EQUAL(env_block_add(&b, bad[i], SLICE("value"), &err), -1);
    CU_ASSERT_EQUAL(env_block_add(&b, "big", (struct slice){big, SECRET_MAX - 2}, &err), -1);
    CU_ASSERT_EQUAL(env_block_add(&b, "big", (struct slice){big, SECRET_MAX - 3}, &err), 0);
    CU_ASSERT_EQUAL(env_block_add(&b, "other one", SLICE("value"), &err), 0);
    int fd = env_block_end(&b, &err);
    struct secret *s = env_block_get(fd, "other one", &err);
    CU_ASSERT(s && slice_eq(secret_slice(s), SLICE("value")));
    secret_unref(s);
    s = env_block_get(fd, "big", &err);
    CU_ASSERT(s && secret_slice(s).n == SECRET_MAX - 3);
    secret_unref(s);
    CU_ASSERT_PTR_NULL(env_block_get(fd, "other", &err));
    close(fd);
    free(big);
}

/* Why this block has no "a"; "" when it has one. */
static const char *why_not(const char *text, size_t n)
{
    static struct err err;
    int fd = ipc_memfd("block", text, n, NULL);
    err = (struct err){0};
    struct secret *s = env_block_get(fd, "a", &err);
    CU_ASSERT((s == NULL) == (err.text[0] != 0));
    secret_unref(s);
    close(fd);
    return err.text;
}

static void damaged(const char *text)
{
    const char *why = why_not(text, strlen(text));
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "damaged"));
}

static void test_block_damaged(void)
{
    static const char *const bad[] = {"x",
                                      "[]",
                                      "{}x",
                                      "{\"a\"}",
                                      "{\"a\"=\"eA==\"}",
                                      "{a:\"eA==\"}",
                                      "{\"a\":eA==}",
                                      "{\"b\":\"eA==\"",
                                      "{\"b\":\"eA==\"}x",
                                      "{\"b\":\"eA==\",}",
                                      "{\"b",
                                      "{\"b\":\"",
                                      "{\"a\":\"eA=\"}",
                                      "{\"a\":\"e*==\"}",
                                      "{\"a\":\"eA\"}",
                                      "{x\"a\":\"eA==\"}",
                                      "{xa\":\"eA==\"}",
                                      "{\"a\":xeA==\"}"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        damaged(bad[i]);
    CU_ASSERT_STRING_EQUAL(why_not("{\"a\":\"eA==\"}", 12), "");
    CU_ASSERT_PTR_NOT_NULL(strstr(why_not("{}", 2), "was not set"));
    CU_ASSERT_PTR_NOT_NULL(strstr(why_not("{\"a\":\"\"}", 8), "its value is empty"));
    CU_ASSERT_PTR_NOT_NULL(strstr(why_not("", 0), "there is no block"));
    char *big = calloc(1, ENV_BLOCK_MAX + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(big);
    CU_ASSERT_PTR_NOT_NULL(strstr(why_not(big, ENV_BLOCK_MAX + 1), "there is no block"));
    free(big);
}

static void test_values(void)
{
    struct err err = {0};
    char *big = malloc(SECRET_MAX + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(big);
    memset(big, 'x', SECRET_MAX + 1);
    CU_ASSERT_EQUAL(secret_value_check((struct slice){big, SECRET_MAX}, false, &err), 0);
    CU_ASSERT_EQUAL(secret_value_check((struct slice){big, SECRET_MAX + 1}, false, &err), -1);
    CU_ASSERT_EQUAL(err.code, ERR_LIMIT);
    free(big);
}

void suite_secret_list(void)
{
    CU_pSuite s = CU_add_suite("secret_list", NULL, NULL);
    CU_add_test(s, "names that are packed", test_pack);
    CU_add_test(s, "lists that are read", test_read);
    CU_add_test(s, "the environment's block: names and sizes", test_block_names);
    CU_add_test(s, "a block that is damaged", test_block_damaged);
    CU_add_test(s, "how long a value may be", test_values);
}

void tap_suites(void)
{
    suite_secret_list();
}
