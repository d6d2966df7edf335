/* lib/secret.h: secret memory. */
#include "secret.h"
#include "tap_main.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void suite_secret(void);

static void test_bounds(void)
{
    static const char big[SECRET_MAX + 1] = "x";
    CU_ASSERT_PTR_NULL(secret_new("", 0));
    CU_ASSERT_PTR_NULL(secret_alloc(0));
    CU_ASSERT_PTR_NULL(secret_new(big, sizeof big));
    struct secret *s = secret_new(big, SECRET_MAX);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    CU_ASSERT_EQUAL(secret_slice(s).n, SECRET_MAX);
    secret_unref(s);
    secret_unref(NULL);
}

static void test_value(void)
{
    struct secret *s = secret_new("hunter2", 7);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    CU_ASSERT(slice_eq(secret_slice(s), SLICE("hunter2")));
    CU_ASSERT(secret_eq(s, SLICE("hunter2")));
    CU_ASSERT(!secret_eq(s, SLICE("hunter3")));
    CU_ASSERT(!secret_eq(s, SLICE("hunter")));
    CU_ASSERT(!secret_eq(s, SLICE("")));
    struct secret *same = secret_ref(s);
    secret_unref(s);
    CU_ASSERT(slice_eq(secret_slice(same), SLICE("hunter2")));
    unsigned char *bytes = secret_bytes(same);
    secret_shorten(same, 4);
    CU_ASSERT(slice_eq(secret_slice(same), SLICE("hunt")));
    CU_ASSERT(bytes[4] == 0 && bytes[5] == 0 && bytes[6] == 0);
    secret_shorten(same, 7); /* never longer again */
    CU_ASSERT_EQUAL(secret_slice(same).n, 4);
    secret_unref(same);
}

/* The flags of the mapping that holds p, out of /proc/self/smaps; "" when it is not listed. */
static void flags_of(const void *p, char *to, size_t size)
{
    char line[512], *at;
    int inside = 0;
    FILE *f = fopen("/proc/self/smaps", "re");
    to[0] = 0;
    while (f && fgets(line, sizeof line, f)) {
        unsigned long from = strtoul(line, &at, 16);
        if (at > line && *at == '-') /* "7f00-7f10 rw-s …" begins a mapping */
            inside = (unsigned long)p >= from && (unsigned long)p < strtoul(at + 1, NULL, 16);
        if (inside && strncmp(line, "VmFlags:", 8) == 0)
            snprintf(to, size, "%s", line);
    }
    if (f)
        fclose(f);
}

static void test_memory(void)
{
    char flags[512];
    struct secret *s = secret_new("canary", 6);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    flags_of(secret_bytes(s), flags, sizeof flags);
    printf("# secret memory is %s,%s", secret_backing(), flags[0] ? flags + 8 : " not listed\n");
    CU_ASSERT_PTR_NOT_NULL(strstr(flags, " dd")); /* left out of core dumps */
    /* secret pages of the kernel are never swapped, whether it shows them as locked (6.1 does not)
     */
    if (strcmp(secret_backing(), "mlock") == 0)
        CU_ASSERT_PTR_NOT_NULL(strstr(flags, " lo"));
    secret_unref(s);
}

/* Bytes of this process as a debugger would read them: 1 read, 0 refused. */
static int peek(const void *p, char *to, size_t n)
{
    int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    ssize_t r = fd < 0 ? -1 : pread(fd, to, n, (off_t)(uintptr_t)p);
    if (fd >= 0)
        close(fd);
    return r == (ssize_t)n;
}

/* Out of reach for a child: wiped at fork. Secret pages of the kernel are shared with a child
 * instead, but nobody reads them through /proc/PID/mem. */
static void test_reach(void)
{
    char seen[6], plain[] = "canary";
    struct secret *s = secret_new("canary", 6);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    CU_ASSERT(peek(plain, seen, 6) && memcmp(seen, "canary", 6) == 0); /* the reader works */
    if (strcmp(secret_backing(), "memfd_secret") == 0) {
        CU_ASSERT_EQUAL(peek(secret_bytes(s), seen, 6), 0);
    } else {
        int status;
        pid_t pid = fork();
        if (pid == 0)
            _exit(memcmp(secret_bytes(s), "\0\0\0\0\0\0", 6) == 0 ? 0 : 1);
        CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
        CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    secret_unref(s);
}

void suite_secret(void)
{
    CU_pSuite s = CU_add_suite("secret", NULL, NULL);
    CU_add_test(s, "bounds", test_bounds);
    CU_add_test(s, "value, references, cutting", test_value);
    CU_add_test(s, "locked and left out of dumps", test_memory);
    CU_add_test(s, "out of reach", test_reach);
}

void tap_suites(void)
{
    suite_secret();
}
