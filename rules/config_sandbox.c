/* A policy's `sandbox`: what a local sandbox of it may use, and whether its root can be written. */
#include <string.h>

#include "config_tree.h"

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

int config_read_sandbox(const struct node *n, struct config_sandbox *s, struct err *err)
{
    static const struct key keys[] = {{"memory", NULL}, {"disk", NULL},  {"pids", NULL},
                                      {"cpu", NULL},    {"files", NULL}, {"root", NULL}};
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
    return 0;
}

const struct config_sandbox *config_policy_sandbox(const struct config *c, const char *name)
{
    static const struct config_sandbox none = {.pids = CONFIG_PIDS};
    const struct config_policy *p = config_policy_find(c, name);
    return p ? &p->sandbox : &none;
}
