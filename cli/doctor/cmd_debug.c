/* durward debug bundle: one tar for a bug report. What may be in it is listed here, member by
 * member and key by key; everything else of the configuration is told by its length alone. */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "api_client.h"
#include "commands.h"
#include "doctor.h"
#include "out.h"
#include "program.h"
#include "settings.h"

enum { BLOCK = 512, REPLY_MAX = 8 << 20 };

static int cmd_debug(int argc, char **argv);

static const struct arg_option options[] = {
    ARG_CONFIG,
    {0},
};

const struct command command_debug = {
    "debug",
    "bundle [-c FILE] [--socket PATH] FILE.tar",
    "Put together what a bug report needs, without a secret.",
    options,
    "FILE.tar, which must not exist, gets: versions; what doctor finds on this host; the shape of\n"
    "the configuration (secrets by their names; a text that is not known to be harmless as its\n"
    "length); and of the daemon, if one answers, its roles, metrics and last events.\n"
    "Values of secrets, paths and bodies of requests, and the audit log are not in it.\n"
    "Look through it before you send it.\n\n"
    "  durward debug bundle /tmp/report.tar\n",
    cmd_debug,
};

/* ---- the archive (ustar) ---- */

struct bundle {
    int fd;
    struct err err;
};

static int put(struct bundle *b, const void *p, size_t n)
{
    const char *at = p;
    while (n > 0) {
        ssize_t w = write(b->fd, at, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return err_sys(&b->err, "writing the bundle");
        at += w;
        n -= (size_t)w;
    }
    return 0;
}

static int add(struct bundle *b, const char *name, const char *text, size_t n)
{
    static const char zeros[BLOCK];
    char h[BLOCK] = {0};
    unsigned sum = 8 * ' ';
    snprintf(h, 100, "durward-debug/%s", name);
    memcpy(h + 100, "0000600", 8);
    memcpy(h + 108, "0000000", 8);
    memcpy(h + 116, "0000000", 8);
    snprintf(h + 124, 12, "%011llo", (unsigned long long)n);
    snprintf(h + 136, 12, "%011llo", (unsigned long long)time(NULL));
    h[156] = '0';
    memcpy(h + 257, "ustar\00000", 8);
    for (size_t i = 0; i < BLOCK; i++)
        sum += (unsigned char)h[i]; /* its own place counts as blanks */
    snprintf(h + 148, 8, "%06o", sum);
    h[155] = ' ';
    return put(b, h, BLOCK) < 0 || put(b, text, n) < 0 ? -1
                                                       : put(b, zeros, (BLOCK - n % BLOCK) % BLOCK);
}

/* Takes the reference. */
static int add_json(struct bundle *b, const char *name, json_t *v)
{
    char *text = v ? json_dumps(v, JSON_INDENT(2) | JSON_SORT_KEYS) : NULL;
    json_decref(v);
    int r = text ? add(b, name, text, strlen(text))
                 : err_set(&b->err, ERR_INTERNAL, "out of memory for %s", name);
    free(text);
    return r;
}

/* ---- the configuration ---- */

/* Keys whose texts are names, patterns, words or references of ours. Any other text may be or hold
 * a secret (a header that a rule sets, a variable, a URL with a password or a token in it). */
static bool is_harmless(const char *key)
{
    static const char *const keys[] = {
        "allow", "deny",    "ask",        "methods", "bearer",    "basic",      "policy",
        "kind",  "backend", "durability", "on_idle", "websocket", "on_reflect", "measure",
        "then",  "gate",    "injector",   "dialer",  "vault"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

/* Below it the user chooses the names: a variable called `kind` is none of ours. */
static bool names_are_theirs(const char *key)
{
    static const char *const keys[] = {"env", "header", "headers", "set_headers", "query"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

/* The same shape; of texts those that `harmless` key has, else how long they are. New reference. */
static json_t *shape(const json_t *v, bool harmless, bool theirs)
{
    char length[48];
    const char *key;
    json_t *member, *to;
    size_t i;
    if (json_is_object(v)) {
        to = json_object();
        json_object_foreach((json_t *)v, key, member) json_object_set_new(
            to, key, shape(member, !theirs && is_harmless(key), theirs || names_are_theirs(key)));
        return to;
    }
    if (json_is_array(v)) {
        to = json_array();
        json_array_foreach(v, i, member) json_array_append_new(to, shape(member, harmless, theirs));
        return to;
    }
    if (!json_is_string(v))
        return json_deep_copy(v);
    if (harmless) { /* of a place its host alone: a path may be a credential */
        size_t host = strcspn(json_string_value(v), "/");
        bool path = json_string_value(v)[host] == '/';
        return json_sprintf("%.*s%s", (int)host, json_string_value(v), path ? "/[...]" : "");
    }
    snprintf(length, sizeof length, "[%zu bytes]", json_string_length(v));
    return json_string(length);
}

static int add_configuration(struct bundle *b, const struct config *c)
{
    char *text = config_json(c);
    json_t *whole = text ? json_loads(text, 0, NULL) : NULL;
    free(text);
    json_t *v = whole ? shape(whole, false, false) : NULL;
    json_decref(whole);
    return add_json(b, "configuration.json", v);
}

/* ---- members ---- */

static int add_versions(struct bundle *b)
{
    struct utsname u;
    uname(&u);
    return add_json(b, "versions.json",
                    json_pack("{s:s, s:s, s:s, s:s, s:s, s:b}", "build", program_build, "kernel",
                              u.release, "machine", u.machine, "openssl",
                              OpenSSL_version(OPENSSL_VERSION), "libevent", event_get_version(),
                              "root", geteuid() == 0));
}

static int add_findings(struct bundle *b, const struct config *c, const char *socket)
{
    struct findings f = {0};
    doctor_host(&f);
    doctor_files(&f, c, socket);
    int r = add_json(b, "doctor.json", f.list ? json_incref(f.list) : json_array());
    findings_done(&f);
    return r;
}

/* What the daemon answers; why not, where it does not. */
static int add_answer(struct bundle *b, const char *socket, const char *path, const char *name)
{
    struct api_request q = {.method = "GET", .path = path};
    struct err err = {0};
    struct buf in;
    struct slice body;
    int r = api_bytes(socket, &q, REPLY_MAX, &in, &body, &err);
    r = r < 0 ? add(b, name, err.text, strlen(err.text)) : add(b, name, body.p, body.n);
    buf_free(&in);
    return r;
}

static int fill(struct bundle *b, const struct config *c, const char *socket)
{
    static const char end[2 * BLOCK];
    if (add_versions(b) < 0 || add_findings(b, c, socket) < 0 ||
        (c && add_configuration(b, c) < 0) ||
        add_answer(b, socket, "/v1/health", "health.json") < 0 ||
        add_answer(b, socket, "/v1/status", "status.json") < 0 ||
        add_answer(b, socket, "/v1/events?limit=100", "events.json") < 0 ||
        add_answer(b, socket, "/metrics", "metrics.txt") < 0)
        return -1;
    return put(b, end, sizeof end);
}

static int bundle(const char *file, const char *config, const char *socket, bool json)
{
    struct bundle b = {.fd = -1};
    struct config *c = NULL;
    if (settings_load_if_any(config, &c, &b.err) < 0)
        return out_fail(&b.err);
    if (socket == NULL && c)
        socket = config_controller_socket(c);
    b.fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int r = 0;
    if (b.fd < 0 && errno == EEXIST)
        r = err_set(&b.err, ERR_DENIED, "%s is there already; name a new file", file);
    else
        r = b.fd < 0 ? err_sys(&b.err, "%s", file) : fill(&b, c, socket);
    if (b.fd >= 0 && close(b.fd) < 0 && r == 0)
        r = err_sys(&b.err, "%s", file);
    config_unref(c);
    if (r == 0 && json)
        return out_json(json_pack("{s:s}", "file", file)) < 0 ? EXIT_NO : EXIT_OK;
    if (r == 0) {
        printf("%s\nRead it before you send it: it names hosts, policies and secrets.\n", file);
        return out_flush() < 0 ? EXIT_NO : EXIT_OK;
    }
    if (b.fd >= 0)
        (void)unlink(file); /* a part of it is of no use */
    return out_fail(&b.err);
}

static int cmd_debug(int argc, char **argv)
{
    struct args a = {.cmd = &command_debug, .argc = argc, .argv = argv};
    const char *config = NULL;
    int o;
    while ((o = args_next(&a)) != ARGS_END) {
        if (o == ARGS_STOP)
            return a.exit_code;
        config = a.value;
    }
    if (argc - a.next != 2 || strcmp(argv[a.next], "bundle") != 0)
        return args_usage(a.cmd, "bundle and the name of a file are needed");
    return bundle(argv[a.next + 1], config, a.socket, a.json);
}
