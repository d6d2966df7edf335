/* What is added to a container's configuration, and what is not. */
#include "oci_runtime.h"

#include <stdio.h>
#include <string.h>

#include "tap_main.h"

#define MOUNT                                                                          \
    "{\"destination\":\"/etc/durward\",\"type\":\"bind\",\"source\":\"/etc/durward\"," \
    "\"options\":[\"rbind\",\"ro\",\"nosuid\",\"nodev\"]}"

static const char variables[] = "A=/etc/durward/a\nBC=two words\nODD=\"x\nnothing\nD=4\n";

static int extend(const char *config, char *to, size_t size)
{
    struct buf b;
    buf_init(&b, OCI_CONFIG_MAX);
    int r = oci_extend(slice_str(config), slice_str(variables), &b);
    snprintf(to, size, "%.*s", SL(buf_slice(&b)));
    buf_free(&b);
    return r;
}

static void check(const char *config, const char *want)
{
    char got[2000];
    CU_ASSERT_EQUAL(extend(config, got, sizeof got), want ? 0 : -1);
    if (want)
        CU_ASSERT_STRING_EQUAL(got, want);
    if (want && strcmp(got, want) != 0)
        printf("# %s\n", got);
}

static void test_added(void)
{
    check("{\"process\":{\"args\":[\"]\"],\"env\":[\"PATH=/bin\",\"BC=own\"]},\"mounts\":[{}]}",
          "{\"process\":{\"args\":[\"]\"],\"env\":[\"PATH=/bin\",\"BC=own\",\"A=/etc/durward/"
          "a\",\"D=4\"]},"
          "\"mounts\":[{}," MOUNT "]}");
    check("{ \"mounts\" : [ ] , \"process\" : { \"env\" : [ ] } } ",
          "{ \"mounts\" : [ " MOUNT "] , \"process\" : { \"env\" : [ \"A=/etc/durward/a\","
          "\"BC=two words\",\"D=4\"] } } ");
    /* a name that another one begins with is another one */
    check("{\"process\":{\"env\":[\"AA=1\",\"B=2\"]},\"mounts\":[]}",
          "{\"process\":{\"env\":[\"AA=1\",\"B=2\",\"A=/etc/durward/a\",\"BC=two words\",\"D=4\"]},"
          "\"mounts\":[" MOUNT "]}");
}

static void check_process(const char *process, const char *want)
{
    struct buf b;
    buf_init(&b, OCI_CONFIG_MAX);
    int r = oci_extend_process(slice_str(process), slice_str(variables), &b);
    CU_ASSERT_EQUAL(r, want ? 0 : -1);
    CU_ASSERT_TRUE(want == NULL || slice_eq_str(buf_slice(&b), want));
    buf_free(&b);
}

/* `exec` says a process alone */
static void test_process(void)
{
    check_process(
        "{\"args\":[\"env\"],\"env\":[\"A=own\"],\"cwd\":\"/\"}",
        "{\"args\":[\"env\"],\"env\":[\"A=own\",\"BC=two words\",\"D=4\"],\"cwd\":\"/\"}");
    check_process("{\"env\":[]}", "{\"env\":[\"A=/etc/durward/a\",\"BC=two words\",\"D=4\"]}");
    check_process("{\"process\":{\"env\":[]},\"mounts\":[]}", NULL);
    check_process("{\"env\":{}}", NULL);
    check_process("", NULL);
}

static void test_others(void)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"process\":{},\"mounts\":[]}",
        "{\"process\":{\"env\":[]}}",
        "{\"process\":{\"env\":{}},\"mounts\":[]}",
        "{\"process\":{\"env\":[]},\"mounts\":7}",
        "{\"process\":{\"env\":[\"A=1\"},\"mounts\":[]}",
        "{\"process\":{\"env\":[]},\"mounts\":[]",
        "{\"process\" \"env\"}",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        check(bad[i], NULL);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("oci_runtime", NULL, NULL);
    CU_add_test(s, "the mount, and variables that are not set", test_added);
    CU_add_test(s, "a process that is begun in a container", test_process);
    CU_add_test(s, "what is no such configuration", test_others);
}
