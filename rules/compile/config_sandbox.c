/* A policy's `sandbox`: what a local sandbox of it may use, what it is made of, how long it stays.
 */
#include <string.h>

#include "config_tree.h"
#include "quantity.h"
#include "rule.h"

enum { CPU_PERCENT_MAX = 102400 };

#define SIZE_LIMIT (1ull << 50)

static const char *const backends[BACKENDS] = {"bwrap", "docker", "gvisor", "kubernetes",
                                               "microvm"};
static const char *const idle_names[IDLE_KINDS] = {"delete", "pause", "stop"};

static const char *const soft_names[] = {"stop", "pause"};

static const struct key sandbox_keys[] = {
    KEY("memory", SIZE(16 << 20),
        "three quarters of the machine's, or of what durward's own control group may have, where a "
        "control group can be had; else not limited",
        "memory of all processes together: their own, files in memory (memfd, SysV shm, tmpfs), "
        "and the kernel's for their pipes, sockets and watches"),
    KEY("disk", SIZE(1 << 20), "half of the memory and 1000000 files",
        "what can be written outside of binds: /tmp, /var/tmp, /run, `$HOME` and a root in memory "
        "together, and as much again in /dev/shm; one file for each 8 KiB of it (at least 4096)"),
    KEY("pids", UINT(8, 4194304), "4096", "processes and threads"),
    KEY("cpu", AS(share), "not limited",
        "processor time, as a share of one processor: `50%`, `200%`"),
    KEY("files", UINT(32, 1048576), "that half",
        "open files of a process; at most half of what durward itself may have"),
    KEY("root", WORDS("read-only", "writable"), "`read-only`",
        "of `durward run`: `read-only`, or `writable`: what is written below / goes to a layer in "
        "memory that ends with the sandbox"),
    KEY("nested", AS(bool), "`false`",
        "`true`: programs inside may make namespaces and mounts, so that containers, builds of "
        "images and programs' own sandboxes work; its files are in memory. See *Containers "
        "inside*"),
    KEY("backend", WORDS_OF(backends), "`bwrap`",
        "what makes the sandboxes: `bwrap` (bubblewrap), `gvisor`, see *Under gVisor*, `microvm`, "
        "see *In a virtual machine*, "
        "`docker`, see *Containers of an engine*, or `kubernetes`, see *Pods of a cluster*"),
    KEY("docker", OWN, "`/run/docker.sock`, no image",
        "mapping: `socket`, the path of the engine's unix socket; `image`, an image that the "
        "engine has. Also used where `--backend docker` asks for it; by the API only policies that "
        "name it have it"),
    KEY("kubernetes", OWN, "none",
        "mapping: `namespace`, of the cluster, where the pods are made; `image`, which the cluster "
        "pulls"),
    KEY("image", AS(image), "the host's /usr",
        "of the daemon's sandboxes that `bwrap`, `gvisor` or `microvm` makes, where who makes one "
        "names none: "
        "an "
        "imported image (`durward image`), or `host`"),
    KEY("ttl", AS(lasting), "`24h`",
        "of the daemon's, where it is not said: how long one lives, whatever it does; `90s`, "
        "`15m`, `1h`, `7d`, at most 30d"),
    KEY("idle_ttl", AS(idle), "`1h`",
        "the same: how long without a command or a file operation; `0s`: for ever"),
    KEY("on_idle", WORDS_OF(idle_names), "`delete`",
        "the same: what then becomes of it, `delete`, `pause` or `stop`"),
    KEY("soft_ttl", AS(idle), "`0s`",
        "the same: how long one runs at a stretch, whatever it does, before `on_soft_ttl`; it "
        "begins anew when it is resumed; `0s`: for ever"),
    KEY("on_soft_ttl", WORDS_OF(soft_names), "`stop`",
        "the same: what then becomes of it, `stop` or `pause`; its files stay, so `stop` is not "
        "for one whose files `disk` bounds, nor for a container"),
    KEY("volumes", AS(volumes), "none",
        "volumes of this policy (`durward volume`) that its sandboxes have: one or a list of at "
        "most 8, each `NAME:/path` or `NAME:/path:ro`"),
    KEY("devices", AS(devices), "none",
        "devices of this host, by the names that its CDI specifications give them: one or a list "
        "of at most 8, each `vendor.com/class=name`. See *Devices*"),
    KEY("device_specs", AS(folders), "`/etc/cdi`, `/var/run/cdi`",
        "directories of CDI specifications: one or a list of at most 4, of which the last wins"),
    KEY("previews", AS(bool), "`false`",
        "`true`: of the daemon's, services and other ports can be seen from outside, by who is "
        "given a link or token (`controller.preview`). See *Services and previews*"),
    KEY("redact_output", AS(strings), "nothing",
        "of the daemon's: list or one of detectors: what they find in outputs of commands, in "
        "files and archives is made unreadable before whoever asked for it has it, see *What comes "
        "out*"),
    KEY("services", OWN, "none",
        "mapping of at most 16 names to ports, or to `{ port: N, health: tcp }`, where `health` "
        "may "
        "be the path of a GET: programs inside that listen"),
};

/* "512MB": digits, then one of the units. */
static int read_size(const struct node *n, uint64_t *ret, struct err *err)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } units[] = {
        {"KB", 1000},        {"MB", 1000000},     {"GB", 1000000000},
        {"KiB", 1ull << 10}, {"MiB", 1ull << 20}, {"GiB", 1ull << 30},
    };
    const char *text = json_is_string(n->value) ? json_string_value(n->value) : "";
    uint64_t v = 0, unit = 0, min = node_key(sandbox_keys, n->key)->least;
    size_t digits = strspn(text, "0123456789");
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (strcmp(text + digits, units[i].name) == 0)
            unit = units[i].bytes;
    if (unit == 0 || slice_u64((struct slice){text, digits}, SIZE_LIMIT, &v) < 0)
        return node_fail(n, err,
                         "'%s' is a size with its unit, as in 512MB or 2GiB (KB, MB, GB, KiB, MiB, "
                         "GiB)",
                         n->key);
    if (v > SIZE_LIMIT / unit || v * unit < min)
        return node_fail(n, err, "'%s' must be at least %lluMiB", n->key,
                         (unsigned long long)(min >> 20));
    *ret = v * unit;
    return 0;
}

/* "150%" of one processor. */
static int read_cpu(const struct node *n, unsigned *ret, struct err *err)
{
    const char *text = json_is_string(n->value) ? json_string_value(n->value) : "";
    uint64_t v = 0;
    size_t digits = strspn(text, "0123456789");
    if (strcmp(text + digits, "%") != 0 ||
        slice_u64((struct slice){text, digits}, CPU_PERCENT_MAX, &v) < 0 || v == 0)
        return node_fail(n, err, "'%s' is a share of one processor's time, as in 50%% or 200%%",
                         n->key);
    *ret = (unsigned)v;
    return 0;
}

/* ---- what makes it ---- */

const char *config_backend_name(enum config_backend b)
{
    if (b == BACKEND_POD)
        return "pod";
    return (unsigned)b < BACKENDS ? backends[b] : NULL;
}

bool config_backend_lays_out(enum config_backend b)
{
    return b == BACKEND_BWRAP || b == BACKEND_GVISOR || b == BACKEND_MICROVM;
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

static const struct key docker_keys[] = {
    KEY("socket", AS(socket), "", ""),
    KEY("image", AS(engine_image), "", ""),
};

static int read_docker(const struct node *n, struct config_docker *d, struct err *err)
{
    const char *text;
    struct node at;
    if (node_keys(n, KEYS(docker_keys), err) < 0)
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

static const struct key kubernetes_keys[] = {
    KEY("namespace", AS(namespace), "", ""),
    KEY("image", AS(engine_image), "", ""),
};

static int read_kubernetes(const struct node *n, struct config_kubernetes *k, struct err *err)
{
    const char *text;
    struct node at;
    if (node_keys(n, KEYS(kubernetes_keys), err) < 0)
        return -1;
    if (node_get(n, "namespace", &at)) {
        if (node_string(&at, &text, err) < 0)
            return -1;
        if (!config_namespace_ok(text))
            return node_fail(&at, err, "'%.80s' is not the name of a namespace", text);
        memcpy(k->ns, text, strlen(text) + 1);
    }
    if (node_get(n, "image", &at)) {
        if (node_string(&at, &text, err) < 0)
            return -1;
        if (!config_engine_image_ok(text))
            return node_fail(&at, err,
                             "must be an image's name as the cluster knows it, such as "
                             "python:3.12-slim");
        memcpy(k->image, text, strlen(text) + 1);
    }
    return k->ns[0] ? 0 : node_fail(n, err, "'namespace' is missing: where the pods are made");
}

static int read_backend(const struct node *n, struct config_sandbox *s, struct err *err)
{
    struct node at;
    size_t word = s->backend;
    memcpy(s->docker.socket, CONFIG_DOCKER_SOCKET, sizeof CONFIG_DOCKER_SOCKET);
    s->docker.given = node_get(n, "docker", &at);
    if (s->docker.given && read_docker(&at, &s->docker, err) < 0)
        return -1;
    if (node_key_word(n, sandbox_keys, "backend", &word, err) < 0)
        return -1;
    s->backend = (enum config_backend)word;
    s->docker.given = s->docker.given || s->backend == BACKEND_DOCKER;
    s->kubernetes.given = node_get(n, "kubernetes", &at);
    if (s->kubernetes.given)
        return read_kubernetes(&at, &s->kubernetes, err);
    return s->backend == BACKEND_KUBERNETES
               ? node_fail(n, err, "'kubernetes' is missing: it says in which namespace")
               : 0;
}

/* ---- volumes ---- */

bool config_volume_path_ok(const char *s)
{
    if (s[0] != '/' || s[1] == '\0' || strlen(s) > CONFIG_VOLUME_PATH_MAX)
        return false;
    for (const char *c = s; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f || *c == ':')
            return false;
    while (*s) {
        size_t n = strcspn(++s, "/");
        if (n == 0 || (n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.'))
            return false;
        s += n;
    }
    return true;
}

/* NAME:/path[:ro] */
static bool volume_ok(const char *text)
{
    char name[65], path[CONFIG_VOLUME_PATH_MAX + 4];
    size_t n = strcspn(text, ":"), len = strlen(text);
    if (n == 0 || n >= sizeof name || n == len || len - n - 1 >= sizeof path)
        return false;
    memcpy(name, text, n);
    name[n] = '\0';
    memcpy(path, text + n + 1, len - n);
    size_t p = len - n - 1;
    if (p > 3 && strcmp(path + p - 3, ":ro") == 0)
        path[p - 3] = '\0';
    return node_name_ok(name) && config_volume_path_ok(path);
}

static int read_volumes(const struct node *n, struct config_sandbox *s, struct err *err)
{
    size_t count;
    struct node item;
    const char *text;
    if (node_strings(n, &count, err) < 0)
        return -1;
    if (count > CONFIG_VOLUMES_MAX)
        return node_fail(n, err, "a sandbox has at most %d volumes", CONFIG_VOLUMES_MAX);
    for (size_t i = 0; i < count; i++) {
        if (node_strings_at(n, i, &item, &text, err) < 0)
            return -1;
        if (!volume_ok(text))
            return node_fail(&item, err, "a volume is written as in cache:/cache or data:/data:ro");
        memcpy(s->volumes[s->n_volumes++], text, strlen(text) + 1);
    }
    return 0;
}

/* ---- how it begins and ends ---- */

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

int config_read_life(const struct node *n, struct config_sandbox *s, struct err *err)
{
    struct node at;
    size_t word = s->on_idle;
    if (node_get(n, "image", &at) && read_image(&at, s, err) < 0)
        return -1;
    if (node_get(n, "ttl", &at) && quantity_long_duration(&at, CONFIG_TTL_MAX, &s->ttl, err) < 0)
        return -1;
    if (s->ttl == 0)
        return node_fail(&at, err, "'ttl' must be at least 1s: every sandbox ends");
    if (node_get(n, "idle_ttl", &at) &&
        quantity_long_duration(&at, CONFIG_TTL_MAX, &s->idle_ttl, err) < 0)
        return -1;
    if (node_key_word(n, sandbox_keys, "on_idle", &word, err) < 0)
        return -1;
    s->on_idle = (enum config_idle)word;
    word = s->on_soft == IDLE_PAUSE;
    if (node_get(n, "soft_ttl", &at) &&
        quantity_long_duration(&at, CONFIG_TTL_MAX, &s->soft_ttl, err) < 0)
        return -1;
    if (node_key_word(n, sandbox_keys, "on_soft_ttl", &word, err) < 0)
        return -1;
    s->on_soft = word == 1 ? IDLE_PAUSE : IDLE_STOP;
    return node_get(n, "volumes", &at) ? read_volumes(&at, s, err) : 0;
}

int config_read_sandbox(const struct node *n, struct config_sandbox *s, struct err *err)
{
    struct node at;
    size_t word = 0;
    if (node_keys(n, KEYS(sandbox_keys), err) < 0)
        return -1;
    if (node_get(n, "memory", &at) && read_size(&at, &s->memory, err) < 0)
        return -1;
    if (node_get(n, "disk", &at) && read_size(&at, &s->disk, err) < 0)
        return -1;
    if (node_key_uint(n, sandbox_keys, "pids", &s->pids, err) < 0 ||
        node_key_uint(n, sandbox_keys, "files", &s->files, err) < 0)
        return -1;
    if (node_get(n, "cpu", &at) && read_cpu(&at, &s->cpu, err) < 0)
        return -1;
    if (node_key_word(n, sandbox_keys, "root", &word, err) < 0)
        return -1;
    s->writable = word == 1;
    if (node_key_bool(n, "nested", &s->nested, err) < 0 || read_backend(n, s, err) < 0)
        return -1;
    if (node_key_bool(n, "previews", &s->previews, err) < 0 ||
        (node_get(n, "redact_output", &at) &&
         rule_detectors_read(&at, &s->redact_output, err) < 0) ||
        (node_get(n, "services", &at) && config_read_services(&at, s, err) < 0))
        return -1;
    if (s->nested && s->backend != BACKEND_BWRAP)
        return node_fail(n, err, "'nested' is of sandboxes that bwrap makes");
    return config_read_life(n, s, err);
}

const struct config_sandbox *config_policy_sandbox(const struct config *c, const char *name)
{
    static const struct config_sandbox none = CONFIG_SANDBOX_DEFAULT;
    const struct config_policy *p = config_policy_find(c, name);
    return p ? &p->sandbox : &none;
}
