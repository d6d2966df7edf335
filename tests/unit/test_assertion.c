/* Assertions: one that holds costs its condition, once; one that does not ends the process, after
 * one line that names the place and the condition. */
#include "tap_main.h"

#include "assertion.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_holds(void)
{
    int n = 0;
    ASSERT(++n == 1);
    CU_ASSERT_EQUAL(n, 1);
}

/* What a process says on standard error, and how it ends, where `value` is asserted to be 1. */
static int asserted(int value, char *said, size_t size)
{
    int pipes[2], status = 0;
    CU_ASSERT_EQUAL_FATAL(pipe(pipes), 0);
    pid_t pid = fork();
    CU_ASSERT_FATAL(pid >= 0);
    if (pid == 0) {
        dup2(pipes[1], STDERR_FILENO);
        ASSERT(value == 1);
        _exit(0);
    }
    close(pipes[1]);
    size_t n = 0;
    for (ssize_t r; (r = read(pipes[0], said + n, size - 1 - n)) > 0;)
        n += (size_t)r;
    said[n] = 0;
    close(pipes[0]);
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    return status;
}

static void test_ends(void)
{
    char said[1024];
    int status = asserted(1, said, sizeof said);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CU_ASSERT_STRING_EQUAL(said, "");
    status = asserted(2, said, sizeof said);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_ASSERTION);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, ": assertion failed at tests/unit/test_assertion.c:"));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, ": value == 1\n"));
    CU_ASSERT(strchr(said, '\n') == said + strlen(said) - 1);
}

/* Whatever the condition's text is, the line stays one, and within its bound. */
static void test_line(void)
{
    char said[1024], condition[2048];
    int pipes[2], status;
    memset(condition, 'c', sizeof condition - 1);
    condition[10] = '\n';
    condition[sizeof condition - 1] = 0;
    CU_ASSERT_EQUAL_FATAL(pipe(pipes), 0);
    pid_t pid = fork();
    CU_ASSERT_FATAL(pid >= 0);
    if (pid == 0) {
        dup2(pipes[1], STDERR_FILENO);
        assertion_failed("../../lib/x.c", 7, condition);
    }
    close(pipes[1]);
    ssize_t n = read(pipes[0], said, sizeof said);
    close(pipes[0]);
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    CU_ASSERT(n > 100 && n <= 512 && said[n - 1] == '\n' &&
              memchr(said, '\n', (size_t)n - 1) == NULL);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("assertion", NULL, NULL);
    CU_add_test(s, "one that holds is evaluated once", test_holds);
    CU_add_test(s, "one that does not ends the process with one line", test_ends);
    CU_add_test(s, "the line is one, and bounded", test_line);
}
