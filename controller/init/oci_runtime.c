/* Finds three places in the JSON text and writes there; the rest stays as it is, byte for byte. */
#define _GNU_SOURCE 1
#include "oci_runtime.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "health_ticker.h"
#include "json_walk.h"
#include "oci_program.h"

#define MOUNT                                                                          \
    "{\"destination\":\"/etc/durward\",\"type\":\"bind\",\"source\":\"/etc/durward\"," \
    "\"options\":[\"rbind\",\"ro\",\"nosuid\",\"nodev\"]}"

/* ---- the text ---- */

/* Does a list of "NAME=VALUE" set this one? */
static bool sets(struct slice list, struct slice name)
{
    struct json_walk w = {list.p, list.p + list.n};
    if (!json_next_is(&w, '[') || json_next_is(&w, ']'))
        return false;
    do {
        struct slice item;
        if (!json_value(&w, &item))
            return false;
        if (item.n > name.n + 1 && item.p[0] == '"' && memcmp(item.p + 1, name.p, name.n) == 0 &&
            item.p[1 + name.n] == '=')
            return true;
    } while (json_next_is(&w, ','));
    return false;
}

static bool is_empty(struct slice list)
{
    struct json_walk w = {list.p, list.p + list.n};
    return json_next_is(&w, '[') && json_next_is(&w, ']');
}

static int add_variables(struct slice env, struct slice variables, struct buf *ret)
{
    bool first = is_empty(env);
    while (variables.n > 0) {
        const char *end = memchr(variables.p, '\n', variables.n);
        size_t n = end ? (size_t)(end - variables.p) : variables.n;
        struct slice line = {variables.p, n};
        const char *equals = memchr(line.p, '=', line.n);
        variables.p += n + (end != NULL);
        variables.n -= n + (end != NULL);
        if (equals == NULL || memchr(line.p, '"', n) || memchr(line.p, '\\', n) ||
            sets(env, (struct slice){line.p, (size_t)(equals - line.p)}))
            continue;
        if (buf_printf(ret, "%s\"%.*s\"", first ? "" : ",", SL(line)) < 0)
            return -1;
        first = false;
    }
    return 0;
}

/* The text up to a list's last bracket. */
static int copy_to_end(struct slice *text, struct slice list, struct buf *ret)
{
    size_t n = (size_t)(list.p + list.n - 1 - text->p);
    int r = buf_append(ret, text->p, n);
    text->p += n;
    text->n -= n;
    return r;
}

int oci_extend(struct slice config, struct slice variables, struct buf *ret)
{
    struct slice env = json_find(json_find(config, "\"process\""), "\"env\"");
    struct slice mounts = json_find(config, "\"mounts\""), left = config;
    if (env.n < 2 || env.p[0] != '[' || mounts.n < 2 || mounts.p[0] != '[')
        return -1;
    bool env_first = env.p < mounts.p;
    for (int i = 0; i < 2; i++) {
        bool now = (i == 0) == env_first;
        if (copy_to_end(&left, now ? env : mounts, ret) < 0)
            return -1;
        if (now ? add_variables(env, variables, ret) < 0
                : buf_printf(ret, "%s%s", is_empty(mounts) ? "" : ",", MOUNT) < 0)
            return -1;
    }
    return buf_append(ret, left.p, left.n);
}

int oci_extend_process(struct slice process, struct slice variables, struct buf *ret)
{
    struct slice env = json_find(process, "\"env\""), left = process;
    if (env.n < 2 || env.p[0] != '[' || copy_to_end(&left, env, ret) < 0 ||
        add_variables(env, variables, ret) < 0)
        return -1;
    return buf_append(ret, left.p, left.n);
}

/* ---- the files ---- */

static int read_all(int dir, const char *path, struct buf *to, mode_t *mode)
{
    struct stat st;
    int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    int r = fd < 0 || fstat(fd, &st) < 0 || st.st_size > OCI_CONFIG_MAX ? -1 : 0;
    unsigned char *p = r == 0 ? buf_reserve(to, (size_t)st.st_size + 1) : NULL;
    ssize_t n = p ? read(fd, p, (size_t)st.st_size) : -1;
    if (n >= 0)
        buf_commit(to, (size_t)n);
    if (fd >= 0)
        close(fd);
    if (n >= 0 && mode)
        *mode = st.st_mode & 0777;
    return n < 0 ? -1 : 0;
}

static int write_all(int dir, const char *path, const struct buf *from, mode_t mode)
{
    static const char fresh[] = ".durward-config";
    (void)unlinkat(dir, fresh, 0);
    int fd = openat(dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    ssize_t n = fd < 0 ? -1 : write(fd, buf_data(from), buf_len(from));
    if (fd >= 0)
        close(fd);
    return n == (ssize_t)buf_len(from) ? renameat(dir, fresh, dir, path) : -1;
}

typedef int extend_fn(struct slice text, struct slice variables, struct buf *ret);

/* A file in a folder. */
static int extend_file(const char *folder, const char *name, extend_fn *extend)
{
    struct buf text, variables, out;
    mode_t mode = 0600;
    int dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    buf_init(&text, OCI_CONFIG_MAX + 1);
    buf_init(&variables, OCI_CONFIG_MAX + 1);
    buf_init(&out, 2 * OCI_CONFIG_MAX);
    int r = dir < 0 ? -1 : read_all(dir, name, &text, &mode);
    if (r == 0)
        r = read_all(AT_FDCWD, OCI_VARIABLES_INSIDE, &variables, NULL);
    if (r == 0)
        r = extend(buf_slice(&text), buf_slice(&variables), &out);
    if (r == 0)
        r = write_all(dir, name, &out, mode);
    buf_free(&text);
    buf_free(&variables);
    buf_free(&out);
    if (dir >= 0)
        close(dir);
    return r;
}

/* The process that `exec` is to begin, as podman says it: --process FILE. Whoever says a command
 * line instead has no variables of ours. */
static int extend_process(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) + 1 : 0;
    if (n >= sizeof folder - 1)
        return -1;
    memcpy(folder, n ? path : ".", n ? n : 1);
    folder[n ? n : 1] = '\0';
    return extend_file(folder, path + n, oci_extend_process);
}

/* The bundle that is asked to be made a container of; NULL: something else is asked. */
static const char *bundle(int argc, char **argv)
{
    const char *path = ".";
    bool makes = false;
    for (int i = 1; i < argc; i++) {
        makes = makes || strcmp(argv[i], "create") == 0 || strcmp(argv[i], "run") == 0;
        if ((strcmp(argv[i], "--bundle") == 0 || strcmp(argv[i], "-b") == 0) && i + 1 < argc)
            path = argv[++i];
        else if (strncmp(argv[i], "--bundle=", 9) == 0)
            path = argv[i] + 9;
    }
    return makes ? path : NULL;
}

/* The file of the process that is asked to be begun in a container; NULL: something else is asked,
 * or there is none. */
static const char *process_file(int argc, char **argv)
{
    bool execs = false;
    for (int i = 1; i < argc; i++) {
        execs = execs || strcmp(argv[i], "exec") == 0;
        if (execs && (strcmp(argv[i], "--process") == 0 || strcmp(argv[i], "-p") == 0))
            return i + 1 < argc ? argv[i + 1] : NULL;
        if (execs && strncmp(argv[i], "--process=", 10) == 0)
            return argv[i] + 10;
    }
    return NULL;
}

/* The container that is asked to be started; NULL: something else is asked. */
static const char *started(int argc, char **argv)
{
    bool starts = false;
    for (int i = 1; i < argc; i++)
        if (starts && argv[i][0] != '-')
            return argv[i];
        else
            starts = starts || strcmp(argv[i], "start") == 0;
    return NULL;
}

/* ---- who asks ---- */

/* The number of the process that a container began with, as crun's state of it says; 0: argv names
 * no container that is known. */
static unsigned first_process(int argc, char **argv)
{
    const char *root = "/run/crun";
    bool execs = false;
    uint64_t n = 0;
    struct buf state;
    buf_init(&state, OCI_CONFIG_MAX + 1);
    for (int i = 1; i < argc && n == 0; i++) {
        char path[PATH_MAX];
        if (strcmp(argv[i], "--root") == 0 && i + 1 < argc)
            root = argv[++i];
        else if (strncmp(argv[i], "--root=", 7) == 0)
            root = argv[i] + 7;
        else if (!execs)
            execs = strcmp(argv[i], "exec") == 0;
        else if (argv[i][0] != '-' && strchr(argv[i], '/') == NULL &&
                 snprintf(path, sizeof path, "%s/%s/status", root, argv[i]) < (int)sizeof path &&
                 read_all(AT_FDCWD, path, &state, NULL) == 0)
            (void)slice_u64(json_find(buf_slice(&state), "\"pid\""), INT_MAX, &n);
    }
    buf_free(&state);
    return (unsigned)n;
}

/* Who execs in a container enters the namespaces of its process. The kernel shows those to the same
 * user, or to CAP_SYS_PTRACE, which nobody has in here; so root becomes that user, and its ambient
 * capabilities stay while the saved user is root. */
static bool become_like(unsigned pid)
{
    char path[32];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%u", pid);
    if (pid == 0 || stat(path, &st) < 0 || st.st_uid == 0)
        return true;
    return setresgid(st.st_gid, st.st_gid, st.st_gid) == 0 &&
           setresuid(st.st_uid, st.st_uid, 0) == 0;
}

bool oci_main(int argc, char **argv, int *status)
{
    static const char *const real[] = {"/usr/bin/crun", "/usr/local/bin/crun", "/usr/bin/runc",
                                       "/usr/sbin/runc"};
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *path = argc > 0 ? bundle(argc, argv) : NULL;
    const char *process = argc > 0 ? process_file(argc, argv) : NULL;
    if (argc == 0 || strcmp(slash ? slash + 1 : argv[0], OCI_PROGRAM) != 0)
        return false;
    *status = 1;
    if ((path && extend_file(path, "config.json", oci_extend) < 0) ||
        (process && extend_process(process) < 0)) {
        dprintf(STDERR_FILENO, "%s: the configuration in %s cannot be extended\n", OCI_INSIDE,
                path ? path : process);
        return true;
    }
    if (!become_like(first_process(argc, argv))) {
        dprintf(STDERR_FILENO, "%s: cannot become the container's user\n", OCI_INSIDE);
        return true;
    }
    if (started(argc, argv))
        health_ticker_begin(started(argc, argv));
    for (size_t i = 0; i < ARRAY_LEN(real); i++)
        execv(real[i], argv);
    dprintf(STDERR_FILENO, "%s: there is no crun and no runc in here\n", OCI_INSIDE);
    return true;
}
