/* What counts as a credential file. The search itself needs a mount namespace: test_builder.c. */
#include <string.h>

#include "mask.h"
#include "tap_main.h"

static void test_names(void)
{
    static const char *const yes[] = {
        "/p/.env",
        "/p/.env.local",
        "/p/.env.production",
        ".env",
        "/p/.netrc",
        "/p/_netrc",
        "/p/.git-credentials",
        "/p/a/b/.npmrc",
        "/p/.pypirc",
        "/h/.aws/credentials",
        "/h/.docker/config.json",
        "/h/.kube/config",
        "/p/x.p12",
        "/p/X.PFX",
        "/p/.config/gcloud/credentials.db",
        "/h/.terraform.d/credentials.tfrc.json",
        "/h/.cargo/credentials.toml",
        "/h/.config/gh/hosts.yml",
        "/h/.config/git/credentials",
        ".aws/credentials",
    };
    static const char *const no[] = {
        "/p/env",
        "/p/.envx",
        "/p/.env.example",
        "/p/.env.sample",
        "/p/.env.template",
        "/p/credentials",
        "/p/config.json",
        "/p/docker/config.json",
        "/p/.kube/config.yml",
        "/p/xaws/credentials",
        "/p/x.aws/credentials",
        "/p/main.c",
        "/p/id.txt",
        "/p/p12",
        "/p/.p12",
        "/p/hosts.yml",
    };
    for (size_t i = 0; i < ARRAY_LEN(yes); i++)
        CU_ASSERT_EQUAL(mask_match(yes[i], false), MASK_YES);
    for (size_t i = 0; i < ARRAY_LEN(no); i++)
        CU_ASSERT_EQUAL(mask_match(no[i], false), MASK_NO);
}

static void test_directories(void)
{
    CU_ASSERT_EQUAL(mask_match("/h/.config/gcloud", true), MASK_YES);
    CU_ASSERT_EQUAL(mask_match("/h/.gnupg", true), MASK_YES);
    CU_ASSERT_EQUAL(mask_match("/h/gcloud", true), MASK_NO);
    CU_ASSERT_EQUAL(mask_match("/h/.gnupg", false), MASK_NO);
    CU_ASSERT_EQUAL(mask_match("/p/.env", true), MASK_NO); /* some keep a virtualenv there */
    CU_ASSERT_EQUAL(mask_match("/p/.aws", true), MASK_NO);
}

static void test_keys(void)
{
    CU_ASSERT_EQUAL(mask_match("/p/server.pem", false), MASK_IF_KEY);
    CU_ASSERT_EQUAL(mask_match("/p/server.KEY", false), MASK_IF_KEY);
    CU_ASSERT_EQUAL(mask_match("/h/.ssh/work", false), MASK_IF_KEY);
    CU_ASSERT_EQUAL(mask_match("/p/id_ed25519", false), MASK_IF_KEY);
    CU_ASSERT_EQUAL(mask_match("/p/id_ed25519.pub", false), MASK_NO);
    static const char pem[] = "-----BEGIN RSA PRIVATE KEY-----\n";
    static const char openssh[] = "x\n-----BEGIN OPENSSH PRIVATE KEY-----\n";
    static const char cert[] = "-----BEGIN CERTIFICATE-----\n";
    static const char putty[] = "PuTTY-User-Key-File-3: ssh-ed25519\n";
    CU_ASSERT_TRUE(mask_is_key(pem, sizeof pem - 1));
    CU_ASSERT_TRUE(mask_is_key(openssh, sizeof openssh - 1));
    CU_ASSERT_TRUE(mask_is_key(putty, sizeof putty - 1));
    CU_ASSERT_FALSE(mask_is_key(cert, sizeof cert - 1));
    CU_ASSERT_FALSE(mask_is_key("", 0));
}

static void suite_mask(void)
{
    CU_pSuite s = CU_add_suite("mask", NULL, NULL);
    CU_add_test(s, "names", test_names);
    CU_add_test(s, "directories", test_directories);
    CU_add_test(s, "private keys", test_keys);
}

void tap_suites(void)
{
    suite_mask();
}
