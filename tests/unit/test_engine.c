/* What is understood, and what is not, of answers at a container engine's socket. The engine itself
 * is asked in tests/functional/docker.t; here is what none would say. */
#define _GNU_SOURCE 1
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine.h"
#include "engine_http.h"
#include "tap_main.h"

static char folder[] = "/tmp/durward-engine-XXXXXX", path[64];

static int make_folder(void)
{
    if (mkdtemp(folder) == NULL)
        return 1;
    snprintf(path, sizeof path, "%s/sock", folder);
    return 0;
}

static int remove_folder(void)
{
    unlink(path);
    return rmdir(folder);
}

static _Noreturn void answer(int listener, const char *text, size_t n, unsigned times)
{
    char request[16384];
    while (times-- > 0) {
        int fd = accept(listener, NULL, NULL);
        ssize_t got = 0;
        for (size_t at = 0; at < sizeof request - 1; at += (size_t)got) {
            got = read(fd, request + at, sizeof request - 1 - at);
            if (got <= 0)
                break;
            request[at + (size_t)got] = '\0';
            if (strstr(request, "\r\n\r\n"))
                break;
        }
        for (size_t at = 0; at < n; at += (size_t)got)
            if ((got = send(fd, text + at, n - at, MSG_NOSIGNAL)) <= 0)
                break;
        shutdown(fd, SHUT_WR);
        while (read(fd, request, sizeof request) > 0) /* a body, which would be refused else */
            continue;
        close(fd);
    }
    _exit(0);
}

/* A child that gives these bytes to each of so many connections. */
static pid_t serve(const char *text, size_t n, unsigned times)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    unlink(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    CU_ASSERT_EQUAL_FATAL(listen(fd, 8), 0);
    pid_t pid = fork();
    if (pid == 0)
        answer(fd, text, n, times);
    close(fd);
    return pid;
}

/* What comes of one exchange: the status, 0 with the error. */
static unsigned ask(const char *text, size_t n, struct buf *reply, struct err *err)
{
    static const struct engine_request q = {.method = "GET", .path = "/x"};
    unsigned status = 0;
    pid_t pid = serve(text, n, 1);
    int r = engine_exchange(path, &q, &status, reply, err);
    waitpid(pid, NULL, 0);
    return r < 0 ? 0 : status;
}

#define OK   "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
#define LEN2 OK "Content-Length: 2\r\n\r\n"

static void test_answers(void)
{
    static const struct {
        const char *text;
        unsigned status;
        const char *body; /* or what the error says */
    } rows[] = {
        {LEN2 "{}", 200, "{}"},
        {OK "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", 200, "{}"},
        {OK "Connection: close\r\n\r\n{\"a\":1}", 200, "{\"a\":1}"},
        {"HTTP/1.1 204 No Content\r\n\r\n", 204, ""},
        {"HTTP/1.1 409 Conflict\r\nContent-Length: 1\r\n\r\nx", 409, "x"},
        {"", 0, "closed"},
        {"HTTP/1.1 200 OK\r\n", 0, "closed"},
        {"hello\n", 0, "HTTP"},
        {"SSH-2.0-OpenSSH\r\n\r\n", 0, "not understood"},
        {LEN2 "{", 0, "cut off"},
        {OK "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x", 0, "not understood"},
        {OK "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", 0, "not understood"},
        {OK "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 0, "badly framed"},
        {OK "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", 0, "cut off"},
        {"HTTP/1.1 101 UPGRADED\r\nUpgrade: tcp\r\nConnection: Upgrade\r\n\r\n", 0,
         "not understood"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf reply;
        struct err err = {0};
        buf_init(&reply, 1024);
        unsigned status = ask(rows[i].text, strlen(rows[i].text), &reply, &err);
        bool right =
            status == rows[i].status && (status ? slice_eq_str(buf_slice(&reply), rows[i].body)
                                                : strstr(err.text, rows[i].body) != NULL);
        if (!right)
            printf("# %zu: %u, %s, %.*s\n", i, status, err.text, SL(buf_slice(&reply)));
        CU_ASSERT_TRUE(right);
        buf_free(&reply);
    }
}

static void test_bounds(void)
{
    enum { MUCH = 200000 };
    char *text = malloc(MUCH);
    struct buf reply;
    struct err err = {0};
    memset(text, 'a', MUCH);
    memcpy(text, "HTTP/1.1 200 OK\r\nA: ", 20);
    buf_init(&reply, 1024);
    CU_ASSERT_EQUAL(ask(text, MUCH, &reply, &err), 0);
    CU_ASSERT_EQUAL(err.code, ERR_UPSTREAM);
    int n = snprintf(text, MUCH, OK "Content-Length: %d\r\n\r\n", MUCH / 2);
    text[n] = 'b';
    CU_ASSERT_EQUAL(ask(text, MUCH / 2 + (size_t)n, &reply, &err), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "too long"));
    buf_free(&reply);
    free(text);
}

static void test_nobody(void)
{
    static const struct engine_request q = {.method = "GET", .path = "/x"};
    char much[300];
    struct buf reply;
    struct err err = {0};
    unsigned status;
    buf_init(&reply, 1024);
    unlink(path);
    CU_ASSERT_EQUAL(engine_exchange(path, &q, &status, &reply, &err), -1);
    CU_ASSERT_EQUAL(err.code, ERR_UNREADY);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
    memset(much, 'x', sizeof much - 1);
    much[sizeof much - 1] = '\0';
    CU_ASSERT_EQUAL(engine_exchange(much, &q, &status, &reply, &err), -1);
    CU_ASSERT_EQUAL(err.code, ERR_LIMIT);
    buf_free(&reply);
}

/* One call of the engine's that gets this body with 200. */
static int look(const char *body, pid_t *pid, struct buf *notes, struct err *err)
{
    char text[2048];
    struct engine e = {path};
    int n = snprintf(text, sizeof text, OK "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
    pid_t child = serve(text, (size_t)n, 1);
    int r = engine_look(&e, "abc", pid, notes, err);
    waitpid(child, NULL, 0);
    return r;
}

static void test_look(void)
{
    static const char *const bad[] = {"{}",
                                      "[]",
                                      "null",
                                      "{\"State\":{\"Pid\":0}}",
                                      "{\"State\":{\"Pid\":1}}",
                                      "{\"State\":{\"Pid\":-5}}",
                                      "{\"State\":{\"Pid\":4294967301}}",
                                      "{\"State\":{\"Pid\":\"77\"}}",
                                      "{\"State\":{\"Pid\":77}"};
    struct buf notes;
    struct err err = {0};
    pid_t pid = 0;
    buf_init(&notes, 1024);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_EQUAL(look(bad[i], &pid, &notes, &err), -1);
    CU_ASSERT_EQUAL(look("{\"State\":{\"Pid\":77},\"Mounts\":[{\"Type\":\"volume\","
                         "\"Destination\":\"/v\\n\\u001b[2J\"},{\"Type\":\"bind\"},7]}",
                         &pid, &notes, &err),
                    0);
    CU_ASSERT_EQUAL(pid, 77);
    CU_ASSERT_TRUE(slice_eq_str(buf_slice(&notes), "note: limit disk: not held below /v  [2J, a "
                                                   "volume of the image\n"));
    buf_free(&notes);
}

static void test_create(void)
{
    static const struct {
        const char *body, *id; /* NULL: refused */
    } rows[] = {
        {"{\"Id\":\"0a1b\",\"Warnings\":[]}", "0a1b"},
        {"{\"Id\":\"0a1b\",\"Warnings\":null}", "0a1b"},
        {"{\"Id\":\"../../x\"}", NULL},
        {"{\"Id\":\"\"}", NULL},
        {"{\"Id\":7}", NULL},
        {"x", NULL},
    };
    struct engine e = {path};
    json_t *spec = json_object();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[1024], id[ENGINE_ID_MAX] = "";
        struct buf notes;
        struct err err = {0};
        int n = snprintf(text, sizeof text, OK "Content-Length: %zu\r\n\r\n%s",
                         strlen(rows[i].body), rows[i].body);
        pid_t child = serve(text, (size_t)n, 1);
        buf_init(&notes, 100);
        int r = engine_create(&e, "durward-sb-x", spec, id, &notes, &err);
        CU_ASSERT_EQUAL(r, rows[i].id ? 0 : -1);
        CU_ASSERT_STRING_EQUAL(id, rows[i].id ? rows[i].id : "");
        buf_free(&notes);
        waitpid(child, NULL, 0);
    }
    json_decref(spec);
}

void suite_engine(void);

void suite_engine(void)
{
    CU_pSuite s = CU_add_suite("engine", make_folder, remove_folder);
    CU_add_test(s, "answers", test_answers);
    CU_add_test(s, "bounds", test_bounds);
    CU_add_test(s, "nobody answers", test_nobody);
    CU_add_test(s, "what is said of a container", test_look);
    CU_add_test(s, "what is said of a new one", test_create);
}

void tap_suites(void)
{
    suite_engine();
}
