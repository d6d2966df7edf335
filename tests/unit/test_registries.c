/* What is read of package managers' configuration: hosts, what the client is given inside, and that
 * no credential is among it. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "registries.h"
#include "tap_main.h"

#define SECRET "S3cretS3cret"

static char dir[64];

static void write_file(const char *path, const char *text)
{
    char whole[300];
    snprintf(whole, sizeof whole, "%s/%s", dir, path);
    for (char *slash = whole + strlen(dir) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = 0;
        mkdir(whole, 0700);
        *slash = '/';
    }
    FILE *f = fopen(whole, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    fputs(text, f);
    fclose(f);
    chmod(whole, 0600);
}

static void remove_file(const char *path)
{
    char whole[300];
    snprintf(whole, sizeof whole, "%s/%s", dir, path);
    unlink(whole);
}

static bool holds(const json_t *list, const char *text)
{
    json_t *v;
    size_t i;
    json_array_foreach(list, i, v) if (strcmp(json_string_value(v), text) == 0) return true;
    return false;
}

static bool says(const json_t *list, const char *text)
{
    json_t *v;
    size_t i;
    json_array_foreach(list, i, v) if (strstr(json_string_value(v), text)) return true;
    return false;
}

/* client, file, its text; hosts that come of it, separated by blanks; what stands inside; what does
 * not, as a host or inside; what a note says */
static const struct sample {
    const char *client, *file, *text, *places, *inside, *not, *note;
} samples[] = {
    {"pip", ".config/pip/pip.conf",
     "[global]\nindex_url = https://u:" SECRET "@a.example:8443/simple?x=" SECRET "\n"
     "extra-index-url =\n  http://b.example/simple\n  # no\n  https://c.example\n"
     "proxy = http://u:" SECRET
     "@p.example\n[install]\nfind-links: /srv/wheels https://d.example/l\n",
     "a.example:8443 http://b.example c.example d.example",
     "index-url = https://a.example:8443/simple\nextra-index-url = http://b.example/simple\n    "
     "https://c.example\n",
     "p.example", "index-url: a credential in the URL was left out"},
    {"pip", ".config/pip/pip.conf", "[global]\nindex-url = https://${HOST}/x\n", "", "", "HOST",
     "it holds a variable"},
    {"npm", ".npmrc",
     "registry = \"https://A.example:443/npm/\"\n@x:registry=https://b.example/\n"
     "//a.example/npm/:_authToken=" SECRET
     "\nproxy=http://p.example\n; registry=https://z.example\n",
     "a.example b.example",
     "registry=https://A.example:443/npm/\n@x:registry=https://b.example/\naudit=false\n",
     "z.example", ""},
    {"cargo", ".cargo/config.toml",
     "[source.upstream]\nreplace-with = 'corp'\n[source.corp]\nregistry = "
     "\"sparse+https://u:" SECRET "@a.example/i/\"\n[registries]\nmine = { index = "
     "\"sparse+https://b.example/\", token = \"" SECRET
     "\" }\nother.index = \"https://c.example/git\"\n[http]\nproxy = \"p.example\"\n",
     "a.example b.example c.example",
     "[source.\"corp\"]\nregistry = \"sparse+https://a.example/i/\"\n", "p.example", "credential"},
    {"go", ".config/go/env",
     "GOPROXY=https://u:" SECRET "@a.example/go|http://b.example,direct\nGOSUMDB=db.example+1ab "
     "https://c.example/sum\nGOPRIVATE=*.corp.example\nGOFLAGS=-x\n",
     "a.example http://b.example c.example",
     "GOPROXY=https://a.example/go|http://b.example,direct\n", "GOFLAGS", "GOPROXY: a credential"},
    {"go", ".config/go/env", "GOSUMDB=db.example\nGOPROXY=off\n", "db.example", "GOPROXY=off\n",
     "x.x", ""},
    {"maven", ".m2/settings.xml",
     "<?xml version=\"1.0\"?><settings><servers><server><id>a</id><password>" SECRET
     "</password></server></servers><mirrors><mirror><id>a</id><mirrorOf>*,!x</mirrorOf>"
     "<url> https://a.example/m </url></mirror></mirrors><!-- <mirror><url>https://z.example</url>"
     "</mirror> --><profiles><profile><repositories><repository><id>r</id><url>https://b.example/"
     "</url></repository></repositories></profile></profiles><proxies><proxy><host>p.example</host>"
     "</proxy></proxies></settings>",
     "a.example b.example",
     "<mirror><id>a</id><url>https://a.example/m</url><mirrorOf>*,!x</mirrorOf></mirror>",
     "z.example", ""},
    {"maven", ".m2/settings.xml",
     "<!DOCTYPE s [<!ENTITY e \"https://a.example\">]><settings><mirrors><mirror><id>a</id>"
     "<url>&e;</url></mirror></mirrors></settings>",
     "", "", "a.example", "cannot be read as XML"},
    {"nuget", ".nuget/NuGet/NuGet.Config",
     "<configuration><packageSources><clear/><add key=\"a\" "
     "value=\"https://a.example/v3/index.json\"/>"
     "<add key=\"off\" value=\"https://off.example/\"/><add key=\"dir\" value=\"/srv/x\"/>"
     "</packageSources><disabledPackageSources><add key=\"off\" value=\"true\"/>"
     "</disabledPackageSources><packageSourceCredentials><a><add key=\"ClearTextPassword\" "
     "value=\"" SECRET "\"/></a></packageSourceCredentials></configuration>",
     "a.example", "<add key=\"a\" value=\"https://a.example/v3/index.json\"/>", "off.example", ""},
    {"rubygems", ".gemrc",
     "---\n:backtrace: false\n:sources:\n- https://a.example/\n- \"https://u:" SECRET
     "@b.example/g\"\n:update_sources: true\n- https://z.example/\n",
     "a.example b.example", ":sources:\n- https://a.example/\n- https://b.example/g\n", "z.example",
     "sources: a credential"},
    {"rubygems", ".bundle/config",
     "---\nBUNDLE_MIRROR__HTTPS://X.EXAMPLE/: \"https://m.example/\"\n", "m.example", "",
     "x.example", ""},
    {"oci", ".docker/config.json",
     "{\"auths\":{\"a.example:5000\":{\"auth\":\"" SECRET "\"},\"https://b.example/v1/\":{}},"
     "\"credHelpers\":{\"c.example\":\"x\"},\"proxies\":{\"default\":{\"httpsProxy\":\"http://"
     "p.example\"}}}",
     "a.example:5000 b.example c.example", "", "p.example", ""},
    {"oci", ".config/containers/registries.conf",
     "unqualified-search-registries = [\"d.example\", 'e.example:5000']\n[[registry]]\nprefix = "
     "\"z.example\"\nlocation = \"f.example/team\"\n[[registry.mirror]]\nlocation = "
     "\"g.example\"\n",
     "d.example e.example:5000 f.example g.example", "", "z.example", ""},
};

static void try_sample(const struct sample *s)
{
    struct registries r;
    struct err err = {0};
    struct buf text;
    char places[300];
    write_file(s->file, s->text);
    CU_ASSERT_EQUAL_FATAL(registries_find(s->client, &r, &err), 0);
    buf_init(&text, REGISTRY_TEXT_MAX);
    CU_ASSERT_EQUAL(registries_text(s->client, &r, &text), 0);
    CU_ASSERT_EQUAL(buf_append(&text, "", 1), 0);
    const char *inside = (const char *)buf_data(&text);
    char *all = json_dumps(r.settings, 0), *notes = json_dumps(r.notes, 0);
    snprintf(places, sizeof places, "%s", s->places);
    bool good = true;
    for (char *at = places, *place; (place = strsep(&at, " ")) != NULL;)
        good = good && (*place == 0 || holds(r.places, place));
    good =
        good && strstr(inside, s->inside) && !holds(r.places, s->not ) && !strstr(inside, s->not );
    good = good && (!*s->note || says(r.notes, s->note)) && !strstr(all, SECRET) &&
           !strstr(notes, SECRET);
    if (!good)
        printf("# %s %s:\n%s\n%s\n%s\n", s->client, s->file, all, notes, inside);
    CU_ASSERT_TRUE(good);
    free(all);
    free(notes);
    buf_free(&text);
    registries_done(&r);
    remove_file(s->file);
}

static void each_client(void)
{
    for (size_t i = 0; i < ARRAY_LEN(samples); i++)
        try_sample(&samples[i]);
}

/* What is no URL of a host never becomes one. */
static void strange_urls(void)
{
    static const char *const urls[] = {
        "https://",
        "https://.a.example",
        "https://a.example:/",
        "https://a.example:123456/",
        "https://a b/",
        "https://u:p/q@a.example/",
        "https://[::1",
        "https://*.example/",
        "ftp://a.example/",
        "//a.example",
        "https://a.example/\"x",
        "https://a{b}.example/",
    };
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        struct registries r;
        struct err err = {0};
        char text[200];
        snprintf(text, sizeof text, "@x:registry=%s\n", urls[i]);
        write_file(".npmrc", text);
        CU_ASSERT_EQUAL_FATAL(registries_find("npm", &r, &err), 0);
        json_t *found = json_object_get(json_object_get(r.settings, ""), "@x:registry");
        if (json_array_size(json_object_get(found, "urls")))
            printf("# %s\n", urls[i]);
        CU_ASSERT_EQUAL(json_array_size(json_object_get(found, "urls")), 0);
        registries_done(&r);
    }
    remove_file(".npmrc");
}

/* A token as a part of a path never comes inside; names of places do. */
static void doubtful_paths(void)
{
    static const struct {
        const char *path;
        bool doubtful;
    } rows[] = {
        {"/simple", false},
        {"/artifactory/api/pypi/pypi-virtual/simple", false},
        {"/repository/npm-group/", false},
        {"/organization/_packaging/1b6f1c5e-2f0a-4a3e-9d7b-0c1d2e3f4a5b/pypi/simple/", false},
        {"/MyCompanyInternalPackages/python3packages2024/v1", false},
        {"/internationalization/20240131120000/", false},
        {"/api/v4/projects/12345678901234567890/packages/pypi/simple", false},
        {"/kV4b9ZxQ2mT7wR1c/me/simple/", true},
        {"/basic/Zk3vY8qLp0WsX5nD/org/repo/python/simple", true},
        {"/1a2B3c4D5e6F7g8H9i0J", true},
        {"/npm/ghp_16C7e42F292c6912E7710c838347Ae178B4a/", true},
        {"/q/9f86d081884c7d659a2feaa0c55ad015", true},
        {"/x/u:p@b.example/", true},
        {"", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct registries r;
        struct err err = {0};
        char text[300];
        snprintf(text, sizeof text, "[global]\nindex-url = https://a.example%s\n", rows[i].path);
        write_file(".config/pip/pip.conf", text);
        CU_ASSERT_EQUAL_FATAL(registries_find("pip", &r, &err), 0);
        if ((json_object_size(r.settings) == 0) != rows[i].doubtful)
            printf("# %s\n", rows[i].path);
        CU_ASSERT_EQUAL(json_object_size(r.settings) == 0, rows[i].doubtful);
        CU_ASSERT_EQUAL(says(r.notes, "its path may hold a credential"), rows[i].doubtful);
        registries_done(&r);
    }
    remove_file(".config/pip/pip.conf");
}

/* More settings than anybody has; a file that is too long. */
static void bounded(void)
{
    struct registries r;
    struct err err = {0};
    static char text[REGISTRY_FILE_MAX + 100];
    size_t n = 0;
    for (unsigned i = 0; i < 2 * REGISTRY_SETTINGS_MAX; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "@s%u:registry=https://h%u.example/\n", i,
                              i);
    write_file(".npmrc", text);
    CU_ASSERT_EQUAL_FATAL(registries_find("npm", &r, &err), 0);
    CU_ASSERT_TRUE(json_array_size(r.places) <= REGISTRY_SETTINGS_MAX);
    CU_ASSERT_TRUE(says(r.notes, "too many settings"));
    registries_done(&r);
    memset(text, '#', sizeof text - 1);
    write_file(".npmrc", text);
    CU_ASSERT_EQUAL_FATAL(registries_find("npm", &r, &err), 0);
    CU_ASSERT_TRUE(says(r.notes, "it is too long"));
    registries_done(&r);
    remove_file(".npmrc");
    CU_ASSERT_EQUAL(registries_find("conda", &r, &err), -1);
    registries_done(&r);
}

/* What is not there yet counts, too: another could put it there. */
static void looked(void)
{
    static const char *const paths[][2] = {{"maven", ".m2/settings.xml"},
                                           {"oci", ".config/containers/registries.conf.d"},
                                           {"rubygems", ".bundle/config"}};
    struct registries r;
    struct err err = {0};
    char whole[300];
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        CU_ASSERT_EQUAL_FATAL(registries_find(paths[i][0], &r, &err), 0);
        snprintf(whole, sizeof whole, "%s/%s", dir, paths[i][1]);
        CU_ASSERT_TRUE(holds(r.looked, whole));
        CU_ASSERT_FALSE(holds(r.files, whole));
        registries_done(&r);
    }
}

static int make_dir(void)
{
    snprintf(dir, sizeof dir, "/tmp/durward-registries-XXXXXX");
    return mkdtemp(dir) && setenv("HOME", dir, 1) == 0 && unsetenv("XDG_CONFIG_HOME") == 0 ? 0 : -1;
}

static int remove_dir(void)
{
    static const char *const made[] = {".config/pip", ".config/go", ".config/containers", ".config",
                                       ".cargo",      ".m2",        ".nuget/NuGet",       ".nuget",
                                       ".bundle",     ".docker"};
    char path[300];
    for (size_t i = 0; i < ARRAY_LEN(made); i++) {
        snprintf(path, sizeof path, "%s/%s", dir, made[i]);
        rmdir(path);
    }
    return rmdir(dir);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("registries", make_dir, remove_dir);
    CU_add_test(s, "each_client", each_client);
    CU_add_test(s, "strange_urls", strange_urls);
    CU_add_test(s, "tokens in paths", doubtful_paths);
    CU_add_test(s, "bounded", bounded);
    CU_add_test(s, "looked", looked);
}
