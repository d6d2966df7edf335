/* Login files of other programs: each format makes a configuration that compiles and a file without
 * a secret; the syntaxes; what is written back; locks, and how many may be held. */
#include <CUnit/CUnit.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "login_file.h"
#include "login_lock.h"
#include "tap_main.h"
#include "wire.h"

#define SECRET "S3cretS3cret"

static char dir[64];

static void path_of(const char *name, char to[200])
{
    snprintf(to, 200, "%s/%s", dir, name);
}

static void write_file(const char *name, const char *text)
{
    char path[200];
    path_of(name, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CU_ASSERT_FATAL(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static struct login_use look(const char *format, const char *text, const char *only,
                             struct err *err)
{
    char path[200];
    struct login_use u = {.format = login_format_new(format, err)};
    CU_ASSERT_PTR_NOT_NULL_FATAL(u.format);
    write_file("login", text);
    path_of("login", path);
    u.file = strdup(path);
    if (login_file_look(&u, only, err) < 0)
        login_use_done(&u);
    return u;
}

static const struct {
    const char *name, *text, *inside;
} samples[] = {
    {"adc",
     "{\"type\":\"authorized_user\",\"client_id\":\"c.apps\",\"client_secret\":\"" SECRET
     "\",\"refresh_token\":\"" SECRET "\",\"quota_project_id\":\"acme\"}",
     NULL}, /* an identity, and no file */
    {"aws",
     "[default]\naws_access_key_id = " SECRET "1\naws_secret_access_key=" SECRET "2\n"
     "[other]\naws_access_key_id = " SECRET "3\naws_secret_access_key = " SECRET "4\n",
     "[default]\naws_access_key_id = {{placeholder login_aws_1_pair}}"},
    {"azure",
     "{\"Account\":{\"a\":{\"home_account_id\":\"o.t\",\"username\":\"me\",\"realm\":\"t\"}},"
     "\"RefreshToken\":{\"r\":{\"home_account_id\":\"o.t\",\"client_id\":\"c\",\"secret\":\"" SECRET
     "\"}}}",
     NULL}, /* an identity, too */
    {"cargo",
     "[registry]\ntoken = \"x\"\n[registries.corp]\ntoken = \"" SECRET
     "\"\n[registries.b]\ntoken = \"y\"\n",
     "[registries.corp]\ntoken = \"{{placeholder login_cargo_1_token}}\"\n"},
    {"claude",
     "{\"claudeAiOauth\":{\"accessToken\":\"" SECRET "\",\"refreshToken\":\"" SECRET
     "\",\"expiresAt\":1000,\"subscriptionType\":\"max\"}}",
     "\"accessToken\": \"{{placeholder login_claude_access}}\""},
    {"codex",
     "{\"tokens\":{\"access_token\":\"" SECRET "\",\"refresh_token\":\"" SECRET
     "\",\"account_id\":\"a-1\",\"id_token\":\"e30.e30.x\"}}",
     "\"access_token\": \"{{placeholder login_codex_access}}\""},
    {"docker", "{\"auths\":{\"a.example\":{\"auth\":\"bWU6UzNjcmV0UzNjcmV0\"},\"b.example\":{}}}",
     "\"a.example\": { \"auth\": \"{{placeholder login_docker_1_password basic me}}\" }, "
     "\"durward"},
    {"docker-basic", "{\"auths\":{\"https://a.example/v1/\":{\"auth\":\"bWU6UzNjcmV0UzNjcmV0\"}}}",
     "\"a.example\": { \"auth\": \"{{placeholder login_docker-basic_1_password basic me}}\" }"},
    {"gemini", "{\"refresh_token\":\"" SECRET "\",\"scope\":\"a b\"}", "\"scope\": \"a b\""},
    {"gh",
     "github.com:\n    oauth_token: " SECRET "\n    user: me\ngit.corp.example:\n"
     "    oauth_token: " SECRET "\n",
     "git.corp.example:\n    oauth_token: {{placeholder login_gh_2_token}}\n    user: \n"},
    {"kube",
     "{\"clusters\":[{\"name\":\"c\",\"cluster\":{\"server\":\"https://"
     "a.example:6443\"}}],\"users\":[{"
     "\"name\":\"u\",\"user\":{\"token\":\"" SECRET "\"}}],\"current-context\":\"x\",\"contexts\":["
     "{\"name\":\"x\",\"context\":{\"cluster\":\"c\",\"user\":\"u\"}}]}",
     "users:\n- { name: \"x\", user: { token: \"{{placeholder login_kube_1_token}}\" } "
     "}\ncontexts:\n"},
    {"mcp",
     "{\"server\":\"a.example/mcp\",\"resource\":\"https://a.example/mcp\",\"token_url\":"
     "\"https://i.example/t\",\"client\":{\"id\":\"c\",\"secret\":\"" SECRET
     "\"},\"access\":\"" SECRET "\",\"refresh\":\"" SECRET "\"}",
     NULL}, /* a server that wants no login */
    {"netrc", "machine a.example login me password " SECRET "\n",
     "machine a.example login me password {{placeholder login_netrc_1_password}}\n"},
    {"npm", "registry=https://a.example/\n//a.example/x/:_authToken=" SECRET "\n",
     "registry=https://a.example/\n//a.example/x/:_authToken={{placeholder login_npm_1_token}}\n"},
    {"opencode",
     "{\"openai\":{\"type\":\"oauth\",\"access\":\"" SECRET "\",\"refresh\":\"" SECRET
     "\",\"expires\":1000,\"accountId\":\"a-1\"},\"groq\":{\"type\":\"api\",\"key\":\"" SECRET
     "\"}}",
     "\"accountId\": \"a-1\""},
    {"pi",
     "{\"anthropic\":{\"type\":\"oauth\",\"access\":\"" SECRET "\",\"refresh\":\"" SECRET
     "\",\"expires\":1000}}",
     "\"access\": \"{{placeholder login_pi_access}}\""},
    {"pip",
     "[global]\nindex-url = https://me:" SECRET "@a.example/x\nextra_index_url=https://me:" SECRET
     "@b.example\n  https://" SECRET "@c.example https://u:" SECRET "/" SECRET "@d.example\n"
     "proxy=http://u:" SECRET "@e.example\n",
     "[global]\nindex-url = https://me:{{placeholder login_pip_1_password}}@a.example/x\n"
     "extra-index-url = https://me:{{placeholder login_pip_2_password}}@b.example\n    "
     "https://c.example\n"},
};

static const char *text_of(const char *name)
{
    size_t i = 0;
    while (strcmp(samples[i].name, name) != 0)
        i++;
    return samples[i].text;
}

static void each_format(void)
{
    size_t n = 0;
    for (; login_builtin(n); n++) {
        struct err err = {0};
        CU_ASSERT_STRING_EQUAL_FATAL(login_builtin(n), samples[n].name);
        struct login_use u = look(samples[n].name, samples[n].text, NULL, &err);
        CU_ASSERT_PTR_NOT_NULL_FATAL(u.entries);
        struct config_flags flags = {.policy = "p", .logins = &u, .n_logins = 1};
        struct config *c = config_with_flags(NULL, &flags, &err);
        if (c == NULL)
            fprintf(stderr, "%s: %s\n", samples[n].name, err.text);
        CU_ASSERT_PTR_NOT_NULL_FATAL(c);
        char *whole = config_json(c);
        CU_ASSERT_PTR_NULL(strstr(whole, SECRET));
        free(whole);
        bool found = samples[n].inside == NULL;
        const char *path;
        struct buf text;
        buf_init(&text, LOGIN_TEXT_MAX);
        for (size_t i = 0; login_file_inside(&u, i, &path, &text, &err) == 1; i++) {
            CU_ASSERT(buf_append(&text, "", 1) == 0);
            found = found || strstr((char *)buf_data(&text), samples[n].inside);
            CU_ASSERT_PTR_NULL(strstr((char *)buf_data(&text), SECRET));
            buf_clear(&text);
        }
        CU_ASSERT_TRUE(found);
        buf_free(&text);
        config_unref(c);
        login_use_done(&u);
    }
    CU_ASSERT_EQUAL(n, ARRAY_LEN(samples));
}

static size_t entries(const char *format, const char *text, const char *only)
{
    struct err err = {0};
    struct login_use u = look(format, text, only, &err);
    size_t n = json_object_size(u.entries);
    login_use_done(&u);
    return n;
}

static void syntaxes(void)
{
    CU_ASSERT_EQUAL(entries("aws", text_of("aws"), NULL), 1);
    CU_ASSERT_EQUAL(entries("aws", text_of("aws"), "default,other"), 2);
    CU_ASSERT_EQUAL(entries("gh", text_of("gh"), "github.com"), 1);
    CU_ASSERT_EQUAL(entries("gh", text_of("gh"), "github.co"), 0);
    CU_ASSERT_EQUAL(
        entries("netrc",
                "macdef x\nmachine m.example password y\n\n# machine n.example password y\n"
                "machine a.example\n password \"p q\"\ndefault password z",
                NULL),
        1);
    CU_ASSERT_EQUAL(entries("netrc", "machine a\"b password x", NULL), 0);
    CU_ASSERT_EQUAL(entries("netrc", "machine a.example login x", NULL), 0);
    CU_ASSERT_EQUAL(
        entries("npm", "//a.example/:_authToken=${TOKEN}\n//b.example/:_authToken=x", NULL), 1);
    CU_ASSERT_EQUAL(entries("claude", "{\"claudeAiOauth\": {}}", NULL), 0);
    CU_ASSERT_EQUAL(entries("claude", "[]", NULL), 0);
    CU_ASSERT_EQUAL(entries("claude", text_of("claude"), "x"), 0);
    struct err err = {0};
    struct login_use u =
        look("npm",
             "registry=https://u:" SECRET "@a.example/\n@b:registry=https://b.example/\n"
             "//b.example/:_authToken=x",
             NULL, &err);
    CU_ASSERT_STRING_EQUAL(u.lines, "@b:registry=https://b.example/\n");
    login_use_done(&u);
}

static void open_to_others(void)
{
    struct err err = {0};
    char path[200];
    path_of("login", path);
    CU_ASSERT_EQUAL(entries("netrc", text_of("netrc"), NULL), 1);
    chmod(path, 0644);
    struct login_use u = {.format = login_format_new("netrc", &err), .file = strdup(path)};
    CU_ASSERT_EQUAL(login_file_look(&u, NULL, &err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "open to others"));
    login_use_done(&u);
    chmod(path, 0600);
}

static void saved(void)
{
    struct err err = {0};
    char path[200], text[400] = "";
    struct stat st;
    struct login_format *f = login_format_new("claude", &err);
    write_file("login",
               "{\"x\":[1,null],\"claudeAiOauth\":{\"accessToken\":\"a\",\"refreshToken\":\"b\","
               "\"expiresAt\":1,\"scopes\":[\"s\"]},\"y\":\"\\u00e9\"}");
    path_of("login", path);
    struct login_session s = {.access = SLICE("new"), .refresh = SLICE(""), .expires = 7};
    CU_ASSERT_EQUAL(login_file_save(f, path, &s, &err), 0);
    int fd = open(path, O_RDONLY);
    CU_ASSERT(fd >= 0 && read(fd, text, sizeof text - 1) > 0 && fstat(fd, &st) == 0);
    close(fd);
    CU_ASSERT_STRING_EQUAL(text, "{\"x\":[1,null],\"claudeAiOauth\":{\"accessToken\":\"new\","
                                 "\"refreshToken\":\"b\",\"expiresAt\":7000,\"scopes\":[\"s\"]},"
                                 "\"y\":\"\xc3\xa9\"}");
    CU_ASSERT_EQUAL(st.st_mode & 0777, 0600);
    struct login_session next = {.access = SLICE(""), .refresh = SLICE("next")};
    CU_ASSERT_EQUAL(login_file_save(f, path, &next, &err), 0);
    memset(text, 0, sizeof text);
    fd = open(path, O_RDONLY);
    CU_ASSERT(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    close(fd);
    CU_ASSERT_STRING_EQUAL(text, "{\"x\":[1,null],\"claudeAiOauth\":{\"accessToken\":\"new\","
                                 "\"refreshToken\":\"next\",\"expiresAt\":7000,\"scopes\":[\"s\"]},"
                                 "\"y\":\"\xc3\xa9\"}");
    write_file("login", "{\"claudeAiOauth\":1}");
    CU_ASSERT_EQUAL(login_file_save(f, path, &s, &err), -1);
    login_format_free(f);
}

/* ---- locks ---- */

enum { SESSIONS = LOGIN_LOCKS_MAX + 1 };

struct world {
    struct event_base *base;
    struct ipc *ch;
    int far;
    struct login_locks *locks;
    struct config_secret list[SESSIONS];
    struct config_login login;
    char names[SESSIONS][8], files[SESSIONS][200];
};

static int nothing(struct ipc *ch UNUSED, struct msg *m UNUSED, void *arg UNUSED)
{
    return 0;
}

static void closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg UNUSED)
{
}

static void begin(struct world *w)
{
    int fds[2];
    w->base = event_base_new();
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    w->ch = ipc_new(w->base, fds[0], nothing, closed, NULL);
    w->far = fds[1];
    w->locks = login_locks_new(w->base);
    w->login = (struct config_login){"codex", "", "session"};
    for (size_t i = 0; i < SESSIONS; i++) {
        snprintf(w->names[i], sizeof w->names[i], "s%zu", i);
        write_file(w->names[i], text_of("codex"));
        path_of(w->names[i], w->files[i]);
        w->list[i] = (struct config_secret){
            .name = w->names[i], .store = STORE_LOGIN, .source = w->files[i], .login = &w->login};
    }
}

/* What comes back: end of W_LOGIN_LOCKED, or -1: the message was refused. */
static int ask(struct world *w, const char *name)
{
    struct msg m;
    uint32_t req;
    uint8_t end = 9;
    msg_init(&m, W_LOGIN_LOCK);
    msg_put_u32(&m, 5);
    msg_put_str(&m, name);
    int r = login_locks_message(w->locks, w->ch, &m, w->list, SESSIONS);
    msg_done(&m);
    event_base_loop(w->base, EVLOOP_NONBLOCK);
    if (r < 0 || msg_recv(w->far, &m) != 1)
        return -1;
    CU_ASSERT(m.type == W_LOGIN_LOCKED && msg_get_u32(&m, &req) == 0 && req == 5 &&
              msg_get_u8(&m, &end) == 0);
    msg_done(&m);
    return end;
}

static void unlock(struct world *w, const char *name)
{
    struct msg m;
    msg_init(&m, W_LOGIN_UNLOCK);
    msg_put_str(&m, name);
    CU_ASSERT_EQUAL(login_locks_message(w->locks, w->ch, &m, w->list, SESSIONS), 0);
    msg_done(&m);
}

static void locks(void)
{
    static struct world w;
    struct timespec old[2] = {{.tv_sec = time(NULL) - 2 * LOGIN_LOCK_SECONDS}, {.tv_sec = 1}};
    char lock[220];
    begin(&w);
    old[1] = old[0];
    for (size_t i = 0; i < LOGIN_LOCKS_MAX; i++)
        CU_ASSERT_EQUAL(ask(&w, w.names[i]), 1);
    CU_ASSERT_EQUAL(ask(&w, w.names[LOGIN_LOCKS_MAX]), 2); /* no room for one more */
    CU_ASSERT_EQUAL(ask(&w, w.names[0]), 0);               /* it is ours already */
    CU_ASSERT_EQUAL(ask(&w, "strange"), 2);
    snprintf(lock, sizeof lock, "%s.lock", w.files[0]);
    CU_ASSERT_EQUAL(access(lock, F_OK), 0);
    unlock(&w, w.names[0]);
    CU_ASSERT_EQUAL(access(lock, F_OK), -1);
    CU_ASSERT_EQUAL(mkdir(lock, 0700), 0); /* another program's */
    CU_ASSERT_EQUAL(ask(&w, w.names[0]), 0);
    utimensat(AT_FDCWD, lock, old, 0); /* which has died */
    CU_ASSERT_EQUAL(ask(&w, w.names[0]), 1);
    login_locks_release(w.locks);
    CU_ASSERT_EQUAL(access(lock, F_OK), -1);
    w.login.part = "access";
    CU_ASSERT_EQUAL(ask(&w, w.names[0]), 2); /* no session */
    login_locks_free(w.locks);
    ipc_free(w.ch);
    close(w.far);
    event_base_free(w.base);
    for (size_t i = 0; i < SESSIONS; i++)
        unlink(w.files[i]);
}

static int make_dir(void)
{
    char path[200];
    snprintf(dir, sizeof dir, "/tmp/durward-login-XXXXXX");
    if (mkdtemp(dir) == NULL || setenv("HOME", dir, 1) < 0)
        return -1;
    path_of(".cargo", path);
    if (mkdir(path, 0700) < 0)
        return -1;
    path_of(".cargo/config.toml", path);
    FILE *f = fopen(path, "w");
    if (f == NULL)
        return -1;
    fputs("[registries.corp]\nindex = \"sparse+https://a.example/i/\"\n", f);
    return fclose(f);
}

static int remove_dir(void)
{
    char path[200];
    path_of("login", path);
    unlink(path);
    path_of(".cargo/config.toml", path);
    unlink(path);
    path_of(".cargo", path);
    rmdir(path);
    return rmdir(dir);
}

static void suite_login(void)
{
    CU_pSuite s = CU_add_suite("login", make_dir, remove_dir);
    CU_add_test(s, "each_format", each_format);
    CU_add_test(s, "syntaxes", syntaxes);
    CU_add_test(s, "open_to_others", open_to_others);
    CU_add_test(s, "saved", saved);
    CU_add_test(s, "locks", locks);
}

void tap_suites(void)
{
    suite_login();
}
