/* What a container may be given of the host: copies that `durward run` made, and nothing else,
 * whatever a controller asks for. */
#define _GNU_SOURCE 1
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "docker.h"
#include "tap_main.h"
#include "tree.h"

static char top[] = "/tmp/durward-copies-XXXXXX";
static struct plan plan;
static struct making making = {.plan = &plan};

static void at(char *to, const char *below)
{
    snprintf(to, PATH_MAX, "%s/state/%s", top, below);
}

static int make_folder(void)
{
    static const char *const dirs[] = {
        "", "copies", "copies/run-1", "other", "copies/run-1/0", "copies/run-1/0/sub", "other/0"};
    static char state[PATH_MAX];
    char path[PATH_MAX], to[PATH_MAX];
    if (mkdtemp(top) == NULL)
        return 1;
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        at(path, dirs[i]);
        if (mkdir(path, 0700) < 0)
            return 1;
    }
    at(path, "copies/run-1/1");
    if (symlink("/etc", path) < 0)
        return 1;
    at(path, "copies/run-2");
    at(to, "other");
    if (symlink(to, path) < 0)
        return 1;
    snprintf(state, sizeof state, "%s/state", top);
    making.parts.state_dir = state;
    return 0;
}

static int remove_folder(void)
{
    return tree_remove(AT_FDCWD, top, NULL);
}

static int check(const char *source, const char *target)
{
    char path[PATH_MAX], inside[64];
    struct docker_copies c = {0};
    struct err err = {0};
    if (source[0] == '/')
        snprintf(path, sizeof path, "%s", source);
    else
        at(path, source);
    snprintf(inside, sizeof inside, "%s", target);
    plan.nbinds = 1;
    plan.binds[0] = (struct plan_bind){.source = path, .target = inside, .writable = true};
    int r = docker_copies_check(&making, &c, &err);
    CU_ASSERT(r < 0 ? err.code == ERR_DENIED : c.owner == getuid());
    return r;
}

static void test_sources(void)
{
    static const char *const not [] = {"/etc",
                                       "/",
                                       "copies",
                                       "copies/run-1",
                                       "copies/run-1/0/sub",
                                       "copies/run-1/../run-1/0",
                                       "copies/../other/0",
                                       "copies/run-1/9",
                                       "copies/run-1/1",
                                       "copies/run-2/0",
                                       "copies//0",
                                       "copiesrun-1/0",
                                       "other/0"};
    CU_ASSERT_EQUAL(check("copies/run-1/0", "/home/u/project"), 0);
    for (size_t i = 0; i < ARRAY_LEN(not ); i++)
        CU_ASSERT_EQUAL(check(not [i], "/home/u/project"), -1);
}

static void test_targets(void)
{
    static const char *const not [] = {"/",     "/etc",         "/etc/ssl", "/etc/durward", "/run",
                                       "/proc", "/run/durward", "/usr",     "/sys/x",       "/dev"};
    for (size_t i = 0; i < ARRAY_LEN(not ); i++)
        CU_ASSERT_EQUAL(check("copies/run-1/0", not [i]), -1);
    CU_ASSERT_EQUAL(check("copies/run-1/0", "/workspace"), 0);
    CU_ASSERT_EQUAL(check("copies/run-1/0", "/srv/etc"), 0);
}

static void test_owner(void)
{
    struct docker_copies c = {.owner = getuid()};
    struct err err = {0};
    plan.nbinds = 1;
    plan.uid = getuid();
    CU_ASSERT_EQUAL(docker_copies_owner(&plan, &c, getpid(), &err), 0);
    c.owner++;
    CU_ASSERT_EQUAL(docker_copies_owner(&plan, &c, getpid(), &err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "--no-bind"));
    plan.nbinds = 0;
    CU_ASSERT_EQUAL(docker_copies_owner(&plan, &c, getpid(), &err), 0);
}

void suite_docker_copies(void);

void suite_docker_copies(void)
{
    CU_pSuite s = CU_add_suite("docker_copies", make_folder, remove_folder);
    CU_add_test(s, "what is bound", test_sources);
    CU_add_test(s, "where to", test_targets);
    CU_add_test(s, "whose it is", test_owner);
}

void tap_suites(void)
{
    suite_docker_copies();
}
