/* durward sandbox cp. Inside, paths are the daemon's matter (resolved in the sandbox). Outside,
 * what comes from a sandbox is written below one directory, by descriptor, following no link. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api_client.h"
#include "commands.h"
#include "out.h"
#include "which.h"

enum { FILE_BYTES = 64 << 20, PATH_BYTES = 16 * 1024, PATH_INSIDE = 4096, DEPTH_MAX = 64 };

struct copy {
    const char *socket, *id;
    unsigned left_out;           /* links, devices */
    uint64_t files, bytes, dirs; /* dirs: empty ones, into the sandbox */
    struct err err;
};

/* /v1/sandboxes/ID/files…?path=P&more */
static int ask(struct copy *c, const char *method, const char *tail, const char *inside,
               const char *more, struct slice body, struct buf *in, struct slice *reply)
{
    struct buf path;
    buf_init(&path, PATH_BYTES);
    buf_init(in, 0);
    int bad = buf_printf(&path, "/v1/sandboxes/%s/%s?path=", c->id, tail);
    if (!bad)
        api_quote(&path, inside);
    bad |= buf_append_str(&path, more) | buf_append(&path, "", 1);
    struct api_request q = {.method = method,
                            .path = (const char *)buf_data(&path),
                            .type = "application/octet-stream",
                            .body = body.p,
                            .n = body.n};
    int r = bad ? err_set(&c->err, ERR_LIMIT, "the path is too long")
                : api_bytes(c->socket, &q, FILE_BYTES, in, reply, &c->err);
    buf_free(&path);
    return r < 0 ? err_wrap(&c->err, "%s:%s", c->id, inside) : 0;
}

static int join(struct copy *c, char *to, const char *dir, const char *name)
{
    int n = snprintf(to, PATH_INSIDE, "%s%s%s", dir, dir[strlen(dir) - 1] == '/' ? "" : "/", name);
    return n < PATH_INSIDE ? 0 : err_set(&c->err, ERR_LIMIT, "%s/…: the path is too long", dir);
}

/* ---- into the sandbox ---- */

static int put_file(struct copy *c, int fd, const struct stat *st, const char *inside)
{
    struct buf data, in;
    struct slice reply;
    char more[32];
    buf_init(&data, FILE_BYTES + 1);
    int r = 0;
    for (ssize_t n = 1; n > 0 && r == 0;) {
        unsigned char *p = buf_reserve(&data, 64 * 1024);
        n = p ? read(fd, p, 64 * 1024) : -1;
        if (n > 0)
            buf_commit(&data, (size_t)n);
        else if (n < 0)
            r = p ? err_sys(&c->err, "%s", inside)
                  : err_set(&c->err, ERR_LIMIT, "%s is larger than 64 MiB", inside);
    }
    snprintf(more, sizeof more, "&mode=%03o", (unsigned)st->st_mode & 0777);
    if (r == 0) {
        r = ask(c, "PUT", "files", inside, more, buf_slice(&data), &in, &reply);
        buf_free(&in);
    }
    c->files += r == 0;
    c->bytes += r == 0 ? buf_len(&data) : 0;
    buf_free(&data);
    return r;
}

/* What is to be there although nothing is in it: unpacking makes the directory, then asks for tar,
 * which an archive without entries does not need. */
static int put_empty_dir(struct copy *c, const char *inside)
{
    static const char nothing[1024];
    struct buf in;
    struct slice reply;
    int r = ask(c, "PUT", "tar", inside, "", (struct slice){nothing, sizeof nothing}, &in, &reply);
    buf_free(&in);
    if (r < 0 && strstr(c->err.text, "has no tar")) {
        c->err = (struct err){0};
        r = 0;
    }
    c->dirs += r == 0;
    return r;
}

static int put_tree(struct copy *c, int at, const char *name, const char *inside, unsigned depth);

static int put_dir(struct copy *c, int fd, const char *inside, unsigned depth)
{
    char path[PATH_INSIDE];
    uint64_t before = c->files + c->dirs;
    DIR *d = fdopendir(fd);
    int r = d ? 0 : err_sys(&c->err, "a directory");
    for (struct dirent *e; r == 0 && (e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            r = join(c, path, inside, e->d_name);
            if (r == 0)
                r = put_tree(c, dirfd(d), e->d_name, path, depth + 1);
        }
    if (r == 0 && c->files + c->dirs == before)
        r = put_empty_dir(c, inside);
    if (d)
        closedir(d);
    else
        close(fd);
    return r;
}

/* The first name may be a link, as the user gave it; none below. */
static int put_tree(struct copy *c, int at, const char *name, const char *inside, unsigned depth)
{
    struct stat st;
    int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (depth ? O_NOFOLLOW : 0);
    if (depth > DEPTH_MAX)
        return err_set(&c->err, ERR_LIMIT, "directories are nested too deeply");
    int fd = openat(at, name, flags);
    if (fd < 0 && errno == ELOOP && depth) {
        c->left_out++;
        return 0;
    }
    if (fd < 0 || fstat(fd, &st) < 0) {
        err_sys(&c->err, "%s", name);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    if (S_ISDIR(st.st_mode))
        return put_dir(c, fd, inside, depth);
    int r = 0;
    if (S_ISREG(st.st_mode))
        r = put_file(c, fd, &st, inside);
    else
        c->left_out++;
    close(fd);
    return r;
}

/* ---- out of the sandbox ---- */

static int get_file(struct copy *c, const char *inside, int at, const char *name, mode_t mode)
{
    struct buf in;
    struct slice reply;
    int r = ask(c, "GET", "files", inside, "", (struct slice){"", 0}, &in, &reply);
    /* a link that lies there already is not followed: it may be an earlier copy's */
    int fd =
        r < 0 ? -1
              : openat(at, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                       0600 | (mode & 0777));
    if (r == 0 && fd < 0)
        r = err_sys(&c->err, "%s", name);
    for (size_t done = 0; r == 0 && done < reply.n;) {
        ssize_t n = write(fd, reply.p + done, reply.n - done);
        if (n < 0 && errno != EINTR)
            r = err_sys(&c->err, "%s", name);
        done += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0 && close(fd) < 0 && r == 0)
        r = err_sys(&c->err, "%s", name);
    c->files += r == 0;
    c->bytes += r == 0 ? reply.n : 0;
    buf_free(&in);
    return r;
}

static int get_dir(struct copy *c, const char *inside, int at, unsigned depth);

/* A name is one component, whatever the sandbox says. */
static bool name_ok(const char *name)
{
    return *name && strchr(name, '/') == NULL && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* As tar unpacks: what the umask leaves of it. */
static mode_t mode_of(const json_t *entry)
{
    const char *mode = json_string_value(json_object_get(entry, "mode"));
    return mode ? (mode_t)strtoul(mode, NULL, 8) & 0777 : 0600;
}

static int get_entry(struct copy *c, const json_t *e, const char *inside, int at, unsigned depth)
{
    char path[PATH_INSIDE];
    const char *name = json_string_value(json_object_get(e, "name"));
    const char *type = json_string_value(json_object_get(e, "type"));
    const char *encoding = json_string_value(json_object_get(e, "encoding"));
    if (name == NULL || type == NULL || encoding == NULL)
        return err_set(&c->err, ERR_UPSTREAM, "the daemon's answer is malformed");
    bool dir = strcmp(type, "directory") == 0;
    if (strcmp(encoding, "utf-8") != 0 || !name_ok(name) || (!dir && strcmp(type, "file") != 0)) {
        c->left_out++;
        return 0;
    }
    if (join(c, path, inside, name) < 0)
        return -1;
    if (!dir)
        return get_file(c, path, at, name, mode_of(e));
    if (mkdirat(at, name, 0700 | mode_of(e)) < 0 && errno != EEXIST)
        return err_sys(&c->err, "%s", name);
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_sys(&c->err, "%s", name);
    int r = get_dir(c, path, fd, depth + 1);
    close(fd);
    return r;
}

static int get_dir(struct copy *c, const char *inside, int at, unsigned depth)
{
    struct buf in;
    struct slice reply;
    size_t i;
    json_t *e;
    if (depth > DEPTH_MAX)
        return err_set(&c->err, ERR_LIMIT, "directories are nested too deeply");
    int r = ask(c, "GET", "files/list", inside, "", (struct slice){"", 0}, &in, &reply);
    json_t *list = r == 0 ? json_loadb(reply.p, reply.n, 0, NULL) : NULL;
    buf_free(&in);
    if (r == 0 && json_is_true(json_object_get(list, "truncated")))
        r = err_set(&c->err, ERR_LIMIT, "%s has too many entries", inside);
    json_array_foreach(json_object_get(list, "entries"), i, e)
    {
        if (r == 0)
            r = get_entry(c, e, inside, at, depth);
    }
    json_decref(list);
    return r;
}

/* A link's is its own, and says nothing of what it leads to. */
static int top_mode(struct copy *c, const char *inside, bool dir, mode_t *ret)
{
    struct buf in;
    struct slice reply;
    if (ask(c, "GET", "files/stat", inside, "", (struct slice){"", 0}, &in, &reply) < 0) {
        buf_free(&in);
        return -1;
    }
    json_t *e = json_loadb(reply.p, reply.n, 0, NULL);
    const char *type = json_string_value(json_object_get(e, "type"));
    *ret = type && strcmp(type, dir ? "directory" : "file") == 0 ? mode_of(e) : dir ? 0700 : 0600;
    json_decref(e);
    buf_free(&in);
    return 0;
}

/* dst is a directory (the copy goes into it under its own name), or the copy's name. */
static int get_tree(struct copy *c, const char *inside, const char *dst)
{
    struct stat st;
    struct buf in;
    struct slice reply;
    const char *base = strrchr(inside, '/') + 1;
    bool into = stat(dst, &st) == 0 && S_ISDIR(st.st_mode) && *base;
    bool dir = ask(c, "GET", "files/list", inside, "", (struct slice){"", 0}, &in, &reply) == 0;
    buf_free(&in);
    if (!dir && strstr(c->err.text, "Not a directory") == NULL)
        return -1;
    c->err = (struct err){0};
    mode_t mode = 0;
    if (top_mode(c, inside, dir, &mode) < 0)
        return -1;
    int at = into ? open(dst, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : AT_FDCWD;
    if (into && at < 0)
        return err_sys(&c->err, "%s", dst);
    const char *name = into ? base : dst;
    int r, fd = -1;
    if (!dir) {
        r = get_file(c, inside, at, name, mode);
    } else if ((mkdirat(at, name, 0700 | mode) < 0 && errno != EEXIST) ||
               (fd = openat(at, name,
                            O_RDONLY | O_DIRECTORY | O_CLOEXEC | (into ? O_NOFOLLOW : 0))) < 0) {
        r = err_sys(&c->err, "%s", name);
    } else {
        r = get_dir(c, inside, fd, 0);
    }
    if (fd >= 0)
        close(fd);
    if (into)
        close(at);
    return r;
}

/* ---- the command ---- */

/* "ID:PATH": the length of ID, which is an id or a name; else 0. */
static size_t id_of(const char *word)
{
    size_t n = 0;
    while (ascii_is_alnum(word[n]) || (word[n] && strchr("._-", word[n])))
        n++;
    return n > 0 && n <= WHICH_ID_MAX && word[n] == ':' ? n : 0;
}

static int copy(struct copy *c, const char *src, const char *dst, size_t from)
{
    if (from)
        return get_tree(c, src, dst);
    char path[PATH_INSIDE];
    const char *base = strrchr(src, '/');
    size_t n = strlen(dst);
    snprintf(path, sizeof path, "%s", dst);
    if (dst[n - 1] == '/' && join(c, path, dst, base ? base + 1 : src) < 0)
        return -1;
    return put_tree(c, AT_FDCWD, src, path, 0);
}

int verb_cp(int argc, char **argv)
{
    struct args a = {.argc = argc, .argv = argv};
    char id[WHICH_ID_MAX + 1], word[WHICH_ID_MAX + 1];
    for (const struct command *v = sandbox_verbs; v->name; v++)
        if (v->run == verb_cp)
            a.cmd = v;
    if (args_next(&a) == ARGS_STOP)
        return a.exit_code;
    if (argc - a.next != 2)
        return args_usage(a.cmd, "a source and a destination are needed");
    const char *src = argv[a.next], *dst = argv[a.next + 1];
    size_t from = id_of(src), to = id_of(dst);
    if (!from == !to)
        return args_usage(a.cmd, "one of both must be ID:PATH");
    snprintf(word, sizeof word, "%.*s", (int)(from ? from : to), from ? src : dst);
    const char **inside = from ? &src : &dst;
    *inside += (from ? from : to) + 1;
    if (**inside != '/' || strlen(*inside) >= PATH_INSIDE)
        return args_usage(a.cmd, "PATH in ID:PATH must be absolute");
    if (*src == 0 || *dst == 0)
        return args_usage(a.cmd, "an empty path");
    struct copy c = {.socket = a.socket, .id = id};
    int r = which_one(a.socket, WHICH_SANDBOX, word, id, &c.err);
    if (r == 0)
        r = copy(&c, src, dst, from);
    if (r < 0)
        out_error("%s", c.err.text);
    if (c.left_out)
        out_error("%u links, devices or oddly named files were left out", c.left_out);
    if (r == 0 && a.json)
        r = out_json(json_pack("{s:s, s:I, s:I, s:I}", "id", id, "files", (json_int_t)c.files,
                               "bytes", (json_int_t)c.bytes, "left_out", (json_int_t)c.left_out));
    return r < 0 ? EXIT_NO : EXIT_OK;
}
