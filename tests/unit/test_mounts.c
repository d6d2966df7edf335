/* Mounts by descriptor: what a copy may do, how much a tmpfs holds, and links in the way. Runs in
 * children, each with namespaces of its own. */
#define _GNU_SOURCE 1
#include "mounts.h"
#include "netns.h"
#include "tap_main.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

void suite_mounts(void);

enum { NO_NAMESPACES = 77 };

static char top[] = "/tmp/durward-test-mounts-XXXXXX";

/* What a child found: 0, or the line of the check that failed. */
#define CHECK(condition)                                          \
    do {                                                          \
        if (!(condition)) {                                       \
            printf("# line %d: %s\n", __LINE__, strerror(errno)); \
            fflush(stdout);                                       \
            _exit(1);                                             \
        }                                                         \
    } while (0)

/* A tmpfs of our own at the top, with "from" (another one in "from/sub"), "to" and "links". */
static void enter(void)
{
    struct err err = {0};
    if (netns_enter(getuid(), getgid(), &err) < 0)
        _exit(NO_NAMESPACES);
    CHECK(mounts_private(&err) == 0);
    CHECK(mount("none", top, "tmpfs", 0, NULL) == 0 && chdir(top) == 0);
    CHECK(mkdir("from", 0755) == 0 && mkdir("to", 0755) == 0 && mkdir("real", 0755) == 0);
    CHECK(mount("none", "from", "tmpfs", 0, NULL) == 0 && mkdir("from/sub", 0755) == 0);
    CHECK(mount("none", "from/sub", "tmpfs", 0, NULL) == 0);
    CHECK(symlink("real", "link") == 0 && mkdir("real/below", 0755) == 0);
}

static int dir_fd(const char *path)
{
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

static unsigned long flags_of(const char *path)
{
    struct statvfs s;
    CHECK(statvfs(path, &s) == 0);
    return s.f_flag & (ST_RDONLY | ST_NOSUID | ST_NODEV);
}

static int make(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static void attach(int tree, const char *path)
{
    struct err err = {0};
    int at = dir_fd(path);
    CHECK(tree >= 0 && mounts_attach(tree, at, &err) == 0);
    close(at);
}

/* No set-uid programs and no devices, in what is mounted below it either; nothing else is less. */
static void clones(void)
{
    struct err err = {0};
    enter();
    CHECK(flags_of("from") == 0 && flags_of("from/sub") == 0);
    attach(mounts_clone(dir_fd("from"), false, &err), "to");
    CHECK(flags_of("to") == (ST_NOSUID | ST_NODEV));
    CHECK(flags_of("to/sub") == (ST_NOSUID | ST_NODEV));
    CHECK(make("to/f") == 0 && make("to/sub/f") == 0 && access("from/f", F_OK) == 0);
    CHECK(flags_of("from") == 0); /* the original stays as it is */
    _exit(0);
}

static void clones_to_read(void)
{
    struct err err = {0};
    enter();
    attach(mounts_clone(dir_fd("from"), true, &err), "to");
    CHECK(flags_of("to") == (ST_RDONLY | ST_NOSUID | ST_NODEV));
    CHECK(make("to/f") == EROFS && make("to/sub/f") == EROFS);
    CHECK(make("from/f") == 0 && access("to/f", F_OK) == 0);
    _exit(0);
}

static void freezes(void)
{
    struct err err = {0};
    enter();
    int fd = dir_fd("from");
    CHECK(make("from/before") == 0 && mounts_freeze(fd, &err) == 0);
    CHECK(make("from/f") == EROFS && make("from/sub/f") == 0);
    _exit(0);
}

static void tmpfs_bounds(void)
{
    static char bytes[128 * 1024];
    struct err err = {0};
    struct stat st;
    char name[32];
    unsigned made = 0;
    enter();
    attach(mounts_tmpfs("0711", "64k", "8", &err), "to");
    CHECK(flags_of("to") == (ST_NOSUID | ST_NODEV));
    CHECK(stat("to", &st) == 0 && (st.st_mode & 07777) == 0711);
    int fd = open("to/big", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    ssize_t n = write(fd, bytes, sizeof bytes);
    CHECK(n == 64 * 1024 && write(fd, bytes, 1) < 0 && errno == ENOSPC);
    do
        snprintf(name, sizeof name, "to/%u", made);
    while (make(name) == 0 && ++made < 100);
    CHECK(made > 0 && made < 8);
    CHECK(mounts_tmpfs("0711", "no size", NULL, &err) < 0 && err.text[0]);
    _exit(0);
}

static void opens(void)
{
    struct err err = {0};
    char path[sizeof top + 32];
    enter();
    static const char *const links[] = {"link", "link/below", "real/../link/below"};
    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        snprintf(path, sizeof path, "%s/%s", top, links[i]);
        CHECK(mounts_open(path, &err) < 0 && err.code == ERR_DENIED);
    }
    snprintf(path, sizeof path, "%s/real/below", top);
    CHECK(mounts_open(path, &err) >= 0);
    snprintf(path, sizeof path, "%s/not-there", top);
    CHECK(mounts_open(path, &err) < 0 && err.code != ERR_DENIED);
    CHECK(mounts_open("/proc/self/fd/0", &err) < 0 && err.code == ERR_DENIED);
    _exit(0);
}

/* Inside a sandbox's own tree, where links are its launcher's. */
static void places(void)
{
    struct err err = {0};
    char long_name[300];
    struct stat st;
    enter();
    int root = dir_fd("."), fd = mounts_place(root, "/a/b", true, &err);
    CHECK(fd >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) && access("a/b", F_OK) == 0);
    fd = mounts_place(root, "a//c", false, &err);
    CHECK(fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode));
    CHECK(mounts_place(root, "a/c", false, &err) >= 0); /* it is there already */
    CHECK(mounts_place(root, "a/c", true, &err) < 0 && err.code == ERR_DENIED);
    CHECK(mounts_place(root, "a/b", false, &err) < 0 && err.code == ERR_DENIED);
    CHECK(mounts_place(root, "a/c/d", true, &err) < 0 && access("a/c/d", F_OK) < 0);
    CHECK(mounts_place(root, "link", true, &err) < 0 && err.code == ERR_DENIED);
    CHECK(mounts_place(root, "link/x", true, &err) < 0 && err.code == ERR_DENIED);
    CHECK(access("real/x", F_OK) < 0); /* nothing was made behind it */
    CHECK(symlink("/nowhere", "a/away") == 0);
    CHECK(mounts_place(root, "a/away", false, &err) < 0 && err.code == ERR_DENIED);
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    CHECK(mounts_place(root, long_name, true, &err) < 0 && err.code == ERR_LIMIT);
    _exit(0);
}

static void in_child(void (*what)(void))
{
    int status = 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        what();
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_NAMESPACES) {
        tap_skip("user namespaces are not available here");
        return;
    }
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_clone(void)
{
    in_child(clones);
    in_child(clones_to_read);
}

static void test_freeze(void)
{
    in_child(freezes);
}

static void test_tmpfs(void)
{
    in_child(tmpfs_bounds);
}

static void test_links(void)
{
    in_child(opens);
    in_child(places);
}

static int setup(void)
{
    return mkdtemp(top) ? 0 : -1;
}

static int teardown(void)
{
    return rmdir(top);
}

void suite_mounts(void)
{
    CU_pSuite s = CU_add_suite("mounts", setup, teardown);
    CU_add_test(s, "copies: no set-uid, no devices, to read if asked", test_clone);
    CU_add_test(s, "made read-only", test_freeze);
    CU_add_test(s, "how much a tmpfs holds", test_tmpfs);
    CU_add_test(s, "links in the way", test_links);
}

void tap_suites(void)
{
    suite_mounts();
}
