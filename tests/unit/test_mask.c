/* What counts as a credential file. The search itself needs a mount namespace: test_builder.c. */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mask.h"
#include "mask_seen.h"
#include "shown_login.h"
#include "sample_keys.h"
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

/* The keys themselves are not in this tree: masks.t has one where Go is installed. */
static void test_published(void)
{
    enum { MOST = 16 * 1024 }; /* of a file's bytes that are read */
    static char file[MOST] = "-----BEGIN PRIVATE KEY-----\n";
    CU_ASSERT_TRUE(sample_key_size_max() > 0 && sample_key_size_max() < MOST);
    for (size_t n = sizeof "-----BEGIN PRIVATE KEY-----"; n < MOST; n++)
        CU_ASSERT_TRUE(mask_is_key(file, n)); /* a size alone shows nothing */
}

static void test_links(void)
{
    unsigned env = 0, aws = 0;
    const char *name;
    for (size_t i = 0; (name = mask_link_name(i, "src", 3)) != NULL; i++) {
        env += strcmp(name, ".env") == 0;
        aws += strcmp(name, "credentials") == 0;
        CU_ASSERT_NOT_EQUAL(name[strlen(name) - 1], '/');
    }
    CU_ASSERT_EQUAL(env, 1);
    CU_ASSERT_EQUAL(aws, 0);
    for (size_t i = 0; (name = mask_link_name(i, ".aws", 4)) != NULL; i++)
        aws += strcmp(name, "credentials") == 0;
    CU_ASSERT_EQUAL(aws, 1);
    CU_ASSERT_TRUE(mask_names_children(".aws") && mask_names_children(".ssh"));
    CU_ASSERT_FALSE(mask_names_children("aws") || mask_names_children("ssh"));
}

/* What cannot be searched whole is refused, not shown. */
static void test_too_large(void)
{
    char dir[] = "/tmp/durward-mask-XXXXXX", path[64], text[512];
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    for (int i = 0; i < 20; i++) {
        snprintf(path, sizeof path, "%s/f%d", dir, i);
        close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    }
    int tree = open(dir, O_PATH | O_CLOEXEC);
    struct buf notes;
    struct err err = {0};
    buf_init(&notes, sizeof text);
    struct mask m = {.empty_file = -1, .empty_dir = -1, .notes = &notes, .entries_max = 19};
    CU_ASSERT_EQUAL(mask_tree(&m, tree, "/p", &err), -1);
    CU_ASSERT_EQUAL(err.code, ERR_LIMIT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "narrower"));
    m.entries_max = 20;
    CU_ASSERT_EQUAL(mask_tree(&m, tree, "/p", &err), 0);
    CU_ASSERT_EQUAL(buf_len(&notes), 0);
    buf_free(&notes);
    close(tree);
    for (int i = 0; i < 20; i++) {
        snprintf(path, sizeof path, "%s/f%d", dir, i);
        unlink(path);
    }
    CU_ASSERT_EQUAL(rmdir(dir), 0);
}

static void test_seen(void)
{
    struct seen seen = {.at = NULL};
    struct timespec now = {1000, 0};
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 1; i <= 3000; i++) {
            struct stat st = {.st_dev = i % 3, .st_ino = i, .st_ctim = {900, i}};
            CU_ASSERT_EQUAL(seen_note(&seen, &st, &now), (int)round);
        }
    struct stat changed = {.st_dev = 1, .st_ino = 1, .st_ctim = {900, 2}};
    CU_ASSERT_EQUAL(seen_note(&seen, &changed, &now), 0);
    CU_ASSERT_EQUAL(seen_note(&seen, &changed, &now), 1);
    /* of the last tick: it may change again and look the same */
    struct stat fresh = {.st_dev = 1, .st_ino = 1, .st_ctim = {999, 999000000}};
    CU_ASSERT_EQUAL(seen_note(&seen, &fresh, &now), 0);
    CU_ASSERT_EQUAL(seen_note(&seen, &fresh, &now), 0);
    seen_free(&seen);
}

/* Of files that a sandbox would see of the host's /etc: a login that is filled in. */
static void test_shown_logins(void)
{
    static const struct {
        const char *text;
        enum shown_form form;
        bool login;
    } files[] = {
        {"<settings><!-- <server><password>x</password></server> -->\n<mirrors/></settings>",
         SHOWN_XML, false},
        {"<settings><servers/><mirrors><mirror><id>a</id></mirror></mirrors></settings>", SHOWN_XML,
         false},
        {"<settings><servers><server><id>a</id></server></servers></settings>", SHOWN_XML, true},
        {"<a><!-- x --><proxy>\n<password\n>p</password></proxy></a>", SHOWN_XML, true},
        {"<!-->--><!-- <server> --><passphrase>", SHOWN_XML, true},
        {"<!-- open <server>", SHOWN_XML, false},
        {"# https_proxy:http://u:p@h/\n;db_pw = x\n!token=x\n", SHOWN_LINES, false},
        {"mysqli.default_pw =\r\nx_secret = \"\"\nkeys=1\nSITE=https://h:80/a@b\n", SHOWN_LINES,
         false},
        {"//r.example/:_authToken=${NPM_TOKEN}\n@a:registry=https://r.example/\n", SHOWN_LINES,
         false},
        {"//r.example/:_authToken = npm_x\n", SHOWN_LINES, true},
        {"//r.example/:_auth=dTpw", SHOWN_LINES, true},
        {"[global]\nindex-url = https://u:p@r.example/simple\n", SHOWN_LINES, true},
        {"A=1\nGITHUB_PAT=ghp_x", SHOWN_LINES, true},
        {"  Sys.setenv(API_KEY = \"x\")\r\n", SHOWN_LINES, true},
        {"options(repos = c(A = \"https://me:t@cran.example/\"))\n", SHOWN_LINES, true},
        {"http_proxy:http://me:t@proxy.example:80/\n", SHOWN_LINES, true},
        {"extension=redis.so\nsession.save_path = \"tcp://h:6379?weight=1&auth=geheim\"\n",
         SHOWN_LINES, true},
        {"session.save_path = \"tcp://h:6379?weight=1\"\n;x=\"tcp://h?auth=geheim\"\n", SHOWN_LINES,
         false},
        {"extension=newrelic.so\nnewrelic.license = \"0123\"\n", SHOWN_LINES, true},
        {"newrelic.license = \"\"\n", SHOWN_LINES, false},
        {"<add name=\"a\" connectionString=\"Server=h;User ID=u;Password=x;\"/>", SHOWN_ATTRIBUTES,
         true},
        {"<add connectionString='Server=h; Pwd = x'/>", SHOWN_ATTRIBUTES, true},
        {"<identity userName=\"u\"\n password=\"x\"/>", SHOWN_ATTRIBUTES, true},
        {"<machineKey validationKey=\"ABCD\"/>", SHOWN_ATTRIBUTES, true},
        {"<identity impersonate=\"false\" userName=\"\" password=\"\"/>", SHOWN_ATTRIBUTES, false},
        {"<machineKey validationKey=\"AutoGenerate,IsolateApps\"/><x publicKeyToken=\"b77a\"/>",
         SHOWN_ATTRIBUTES, false},
        {"<!-- <add password=\"x\"/> --><credentials passwordFormat=\"SHA1\"/>", SHOWN_ATTRIBUTES,
         false},
        {"<!-- password=\"x\" --><a password='y'/>", SHOWN_ATTRIBUTES, true},
        {"<add c=\"User=u;Pwd=\"/><a b='password='/>it's password=x", SHOWN_ATTRIBUTES, false},
        {"<a password = \"/x\"/>", SHOWN_ATTRIBUTES, true},
        {"# monitorRole  QED\n", SHOWN_SECRETS, false},
        {"# monitorRole  QED\ncontrolRole  R\n", SHOWN_SECRETS, true},
        {"machine h.example login me password geheim\n", SHOWN_ANY, true},
        {"account a\nhost h.example\npassword geheim\n", SHOWN_ANY, true},
        {"{\"auths\": {\"h.example\": {\"auth\": \"dTpw\"}}}\n", SHOWN_ANY, true},
        {"api:\n  token: geheim\n", SHOWN_ANY, true},
        {"//r.example/:_authToken=${NPM_TOKEN}\ntoken: ${TOKEN}\n", SHOWN_ANY, false},
        {"prefix=/usr/local\ncolor: always\nauth on\n", SHOWN_ANY, false},
        {"prefix=/usr/local\ncolor: always\n# password x\npassword =\n", SHOWN_ANY, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        bool good = shown_login_in(slice_str(files[i].text), files[i].form) == files[i].login;
        CU_ASSERT(good || printf("# %s\n", files[i].text) < 0);
    }
}

static void suite_mask(void)
{
    CU_pSuite s = CU_add_suite("mask", NULL, NULL);
    CU_add_test(s, "names", test_names);
    CU_add_test(s, "directories", test_directories);
    CU_add_test(s, "private keys", test_keys);
    CU_add_test(s, "published keys", test_published);
    CU_add_test(s, "names that links may bear", test_links);
    CU_add_test(s, "a directory that is too large", test_too_large);
    CU_add_test(s, "what was read before", test_seen);
    CU_add_test(s, "logins in what is shown of /etc", test_shown_logins);
}

void tap_suites(void)
{
    suite_mask();
}
