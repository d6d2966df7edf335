/* A policy's `sandbox`: what a local sandbox of it may use, what it is made of, how long it stays.
 */
#include <string.h>

#include "config_tree.h"
#include "quantity.h"

enum { CPU_PERCENT_MAX = 102400, TEXT_MAX = 32 };

#define MEMORY_MIN (16ull << 20)
#define DISK_MIN   (1ull << 20)
#define SIZE_LIMIT (1ull << 50)

/* "512MB": digits, then one of the units. */
static int read_size(const struct node *n, uint64_t min, uint64_t *ret, struct err *err)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } units[] = {
        {"KB", 1000},        {"MB", 1000000},     {"GB", 1000000000},
        {"KiB", 1ull << 10}, {"MiB", 1ull << 20}, {"GiB", 1ull << 30},
    };
    const char *text;
    uint64_t v = 0, unit = 0;
    if (node_string(n, &text, err) < 0)
        return -1;
    size_t digits = strspn(text, "0123456789");
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (strcmp(text + digits, units[i].name) == 0)
            unit = units[i].bytes;
    if (unit == 0 || slice_u64((struct slice){text, digits}, SIZE_LIMIT, &v) < 0)
        return node_fail(n, err,
                         "a size is written as in 512MB or 2GiB (KB, MB, GB, KiB, MiB, GiB)");
    if (v > SIZE_LIMIT / unit || v * unit < min)
        return node_fail(n, err, "must be at least %lluMiB", (unsigned long long)(min >> 20));
    *ret = v * unit;
    return 0;
}

/* "150%" of one processor. */
static int read_cpu(const struct node *n, unsigned *ret, struct err *err)
{
    const char *text;
    uint64_t v = 0;
    if (node_string(n, &text, err) < 0)
        return -1;
    size_t digits = strspn(text, "0123456789");
    if (strcmp(text + digits, "%") != 0 ||
        slice_u64((struct slice){text, digits}, CPU_PERCENT_MAX, &v) < 0 || v == 0)
        return node_fail(n, err, "processor time is a share of one processor, as in 50%% or 200%%");
    *ret = (unsigned)v;
    return 0;
}

/* ---- what makes it ---- */

static const char *const backends[BACKENDS] = {"bwrap", "docker"};

const char *config_backend_name(enum config_backend b)
{
    return (unsigned)b < BACKENDS ? backends[b] : NULL;
}

enum config_backend config_backend_named(const char *name)
{
    unsigned b = 0;
    while (b < BACKENDS && strcmp(backends[b], name) != 0)
        b++;
    return (enum config_backend)b;
}

bool config_engine_image_ok(const char *s)
{
    size_t n = strlen(s);
    if (n > CONFIG_ENGINE_IMAGE_MAX || !ascii_is_alnum(*s))
        return false;
    for (; *s; s++)
        if (!ascii_is_alnum(*s) && strchr("._/:@-", *s) == NULL)
            return false;
    return true;
}

bool config_socket_ok(const char *s)
{
    size_t n = strlen(s);
    if (*s != '/' || n > CONFIG_SOCKET_MAX)
        return false;
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            return false;
    return true;
}

static int read_docker(const struct node *n, struct config_docker *d, struct err *err)
{
    static const struct key keys[] = {{"socket", NULL}, {"image", NULL}};
    const char *text;
    struct node at;
    if (node_keys(n, keys, ARRAY_LEN(keys), err) < 0)
        return -1;
    if (node_get(n, "socket", &at)) {
        if (node_string(&at, &text, err) < 0)
            return -1;
        if (!config_socket_ok(text))
            return node_fail(&at, err,
                             "must be the absolute path of the engine's unix socket, at most %d "
                             "bytes, such as " CONFIG_DOCKER_SOCKET,
                             CONFIG_SOCKET_MAX);
        memcpy(d->socket, text, strlen(text) + 1);
    }
    if (node_get(n, "image", &at)) {
        if (node_string(&at, &text, err) < 0)
            return -1;
        if (!config_engine_image_ok(text))
            return node_fail(&at, err,
                             "must be an image's name as the engine knows it, such as "
                             "python:3.12-slim");
        memcpy(d->image, text, strlen(text) + 1);
    }
    return 0;
}

static int read_backend(const struct node *n, struct config_sandbox *s, struct err *err)
{
    struct node at;
    size_t word;
    memcpy(s->docker.socket, CONFIG_DOCKER_SOCKET, sizeof CONFIG_DOCKER_SOCKET);
    s->docker.given = node_get(n, "docker", &at);
    if (s->docker.given && read_docker(&at, &s->docker, err) < 0)
        return -1;
    if (!node_get(n, "backend", &at))
        return 0;
    if (node_word(&at, backends, BACKENDS, &word, err) < 0)
        return -1;
    s->backend = (enum config_backend)word;
    s->docker.given = s->docker.given || s->backend == BACKEND_DOCKER;
    return 0;
}

/* ---- how it begins and ends ---- */

static const char *const idle_names[IDLE_KINDS] = {"delete", "pause", "stop"};

const char *config_idle_name(enum config_idle i)
{
    return idle_names[i];
}

static int read_image(const struct node *n, struct config_sandbox *s, struct err *err)
{
    const char *text;
    if (node_string(n, &text, err) < 0)
        return -1;
    size_t len = strlen(text);
    if (len > CONFIG_IMAGE_MAX || !config_engine_image_ok(text) || strpbrk(text, "/:@"))
        return node_fail(n, err,
                         "must be the name of an imported image (durward image ls), or host");
    memcpy(s->image, text, len + 1);
    return 0;
}

static int read_life(const struct node *n, struct config_sandbox *s, struct err *err)
{
    struct node at;
    size_t word;
    if (node_get(n, "image", &at) && read_image(&at, s, err) < 0)
        return -1;
    if (node_get(n, "ttl", &at) && quantity_long_duration(&at, CONFIG_TTL_MAX, &s->ttl, err) < 0)
        return -1;
    if (s->ttl == 0)
        return node_fail(&at, err, "'ttl' must be at least 1s: every sandbox ends");
    if (node_get(n, "idle_ttl", &at) &&
        quantity_long_duration(&at, CONFIG_TTL_MAX, &s->idle_ttl, err) < 0)
        return -1;
    if (node_get(n, "on_idle", &at)) {
        if (node_word(&at, idle_names, IDLE_KINDS, &word, err) < 0)
            return -1;
        s->on_idle = (enum config_idle)word;
    }
    return 0;
}

int config_read_sandbox(const struct node *n, struct config_sandbox *s, struct err *err)
{
    static const struct key keys[] = {{"memory", NULL},  {"disk", NULL},     {"pids", NULL},
                                      {"cpu", NULL},     {"files", NULL},    {"root", NULL},
                                      {"backend", NULL}, {"docker", NULL},   {"image", NULL},
                                      {"ttl", NULL},     {"idle_ttl", NULL}, {"on_idle", NULL}};
    static const char *const roots[] = {"read-only", "writable"};
    struct node at;
    size_t word;
    if (node_keys(n, keys, ARRAY_LEN(keys), err) < 0)
        return -1;
    if (node_get(n, "memory", &at) && read_size(&at, MEMORY_MIN, &s->memory, err) < 0)
        return -1;
    if (node_get(n, "disk", &at) && read_size(&at, DISK_MIN, &s->disk, err) < 0)
        return -1;
    if (node_get(n, "pids", &at) && node_uint(&at, 8, 4194304, &s->pids, err) < 0)
        return -1;
    if (node_get(n, "files", &at) && node_uint(&at, 32, 1048576, &s->files, err) < 0)
        return -1;
    if (node_get(n, "cpu", &at) && read_cpu(&at, &s->cpu, err) < 0)
        return -1;
    if (node_get(n, "root", &at)) {
        if (node_word(&at, roots, ARRAY_LEN(roots), &word, err) < 0)
            return -1;
        s->writable = word == 1;
    }
    return read_backend(n, s, err) < 0 ? -1 : read_life(n, s, err);
}

const struct config_sandbox *config_policy_sandbox(const struct config *c, const char *name)
{
    static const struct config_sandbox none = CONFIG_SANDBOX_DEFAULT;
    const struct config_policy *p = config_policy_find(c, name);
    return p ? &p->sandbox : &none;
}
