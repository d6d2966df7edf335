/* durward sandbox snapshot export, import: snapshots as archives, for another daemon. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api_client.h"
#include "commands.h"
#include "exec_session.h"
#include "out.h"
#include "sandbox_spec.h"

enum { HEAD = 5, CHUNK = 60 * 1024, FRAME_MAX = 64 * 1024, FROM_BYTES = 1, FROM_LAST = 3 };

struct carrying {
    int sock;
    struct buf in; /* from the daemon */
    uint64_t bytes;
    bool show; /* how far it is */
    json_t *last;
};

static void progress(const struct carrying *c)
{
    if (c->show)
        fprintf(stderr, "\r%" PRIu64 " MiB\033[K", c->bytes >> 20);
}

static int write_all(int fd, const unsigned char *p, size_t n, struct err *err)
{
    while (n > 0) {
        ssize_t w = write(fd, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return err_sys(err, "cannot write the archive");
        p += w;
        n -= (size_t)w;
    }
    return 0;
}

/* The frames that are here; those with bytes go to `to`. */
static int take(struct carrying *c, int to, struct err *err)
{
    while (c->last == NULL && buf_len(&c->in) >= HEAD) {
        const unsigned char *p = buf_data(&c->in);
        size_t n = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
        if (n > FRAME_MAX || (p[0] != FROM_LAST && (p[0] != FROM_BYTES || to < 0)))
            return err_set(err, ERR_PARSE, "the daemon's answer is malformed");
        if (buf_len(&c->in) < HEAD + n)
            return 0;
        if (p[0] == FROM_BYTES && write_all(to, p + HEAD, n, err) < 0)
            return -1;
        c->bytes += p[0] == FROM_BYTES ? n : 0;
        if (p[0] == FROM_LAST && (c->last = json_loadb((const char *)p + HEAD, n, 0, NULL)) == NULL)
            return err_set(err, ERR_PARSE, "the daemon's answer is malformed");
        buf_drain(&c->in, HEAD + n);
    }
    return 0;
}

static int receive(struct carrying *c, int to, struct err *err)
{
    unsigned char *p = buf_reserve(&c->in, CHUNK);
    ssize_t n = p ? read(c->sock, p, CHUNK) : -1;
    if (n < 0 && errno == EINTR)
        return 0;
    if (n <= 0)
        return err_set(err, ERR_UNREADY, "the daemon ended the transfer");
    buf_commit(&c->in, (size_t)n);
    int r = take(c, to, err);
    progress(c);
    return r;
}

static int send_some(struct carrying *c, int from, bool *all, struct err *err)
{
    unsigned char room[HEAD + CHUNK] = {0};
    ssize_t n = read(from, room + HEAD, CHUNK);
    if (n < 0)
        return errno == EINTR ? 0 : err_sys(err, "cannot read the archive");
    *all = n == 0;
    c->bytes += (uint64_t)n;
    for (int i = 0; i < 4; i++)
        room[1 + i] = (unsigned char)((size_t)n >> (24 - 8 * i));
    progress(c);
    return api_push(c->sock, room, HEAD + (size_t)n, err);
}

/* Bytes of `from` (-1: none) there, and of what comes to `to`, until the daemon has said its last
 * word. The snapshot or volume, or NULL with err. */
static json_t *carry(const char *socket, const char *path, int from, int to, struct err *err)
{
    struct carrying c = {.show = isatty(STDERR_FILENO)};
    struct timeval none = {0};
    bool all = from < 0;
    c.sock = exec_upgrade(socket, path, "durward-archive", NULL, &c.in, err);
    if (c.sock < 0) {
        buf_free(&c.in);
        return NULL;
    }
    setsockopt(c.sock, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
    int r = take(&c, to, err);
    while (r == 0 && c.last == NULL) {
        struct pollfd p = {.fd = c.sock, .events = (short)(all ? POLLIN : POLLIN | POLLOUT)};
        if (poll(&p, 1, -1) < 0 && errno != EINTR)
            r = err_sys(err, "poll");
        else if (p.revents & ~POLLOUT)
            r = receive(&c, to, err);
        else if (p.revents)
            r = send_some(&c, from, &all, err);
    }
    if (c.show)
        fputs("\r\033[K", stderr);
    close(c.sock);
    buf_free(&c.in);
    json_t *made = json_object_get(c.last, "snapshot");
    made = json_incref(made ? made : json_object_get(c.last, "volume"));
    const char *why =
        json_string_value(json_object_get(json_object_get(c.last, "error"), "message"));
    if (r == 0 && made == NULL)
        err_set(err, ERR_UNREADY, "%s", why ? why : "the daemon's answer is malformed");
    json_decref(c.last);
    return made;
}

static int finish(const struct args *a, json_t *made, const char *text, const struct err *err)
{
    char clean[sizeof err->text];
    if (made == NULL) {
        out_error("%s", out_clean(err->text, clean, sizeof clean));
        return EXIT_NO;
    }
    if (text == NULL) {
        json_decref(made);
        return EXIT_OK;
    }
    if (a->json)
        return out_json(made) < 0 ? EXIT_NO : EXIT_OK;
    json_decref(made);
    printf("%s\n", text);
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

/* Nothing stands where the archive is to be, or a file that may go. */
static int free_to_write(const char *file, bool force, struct err *err)
{
    struct stat st;
    if (lstat(file, &st) < 0)
        return errno == ENOENT ? 0 : err_sys(err, "%.200s", file);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_PARSE, "%.200s is there and is not a regular file", file);
    return force ? 0 : err_set(err, ERR_PARSE, "%.200s exists; --force replaces it", file);
}

/* Unless forced, what came to stand there meanwhile stays. */
static int give_name(const char *part, const char *file, bool force)
{
    if (force)
        return rename(part, file);
    int r = renameat2(AT_FDCWD, part, AT_FDCWD, file, RENAME_NOREPLACE);
    if (r < 0 && errno == EINVAL) { /* a file system that cannot do so (NFS) can link */
        r = link(part, file);
        if (r == 0)
            (void)unlink(part);
    }
    return r;
}

/* It gets its name when it is whole. */
static json_t *export_to(const struct args *a, const char *path, const char *file, bool force,
                         struct err *err)
{
    char part[PATH_MAX];
    if (free_to_write(file, force, err) < 0)
        return NULL;
    int n = snprintf(part, sizeof part, "%s.part-%d", file, (int)getpid());
    int fd = n < 0 || (size_t)n >= sizeof part
                 ? -1
                 : open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        err_sys(err, "%.200s", file);
        return NULL;
    }
    json_t *made = carry(a->socket, path, -1, fd, err);
    bool kept = made && fsync(fd) == 0 && give_name(part, file, force) == 0;
    if (made && !kept)
        err_sys(err, "%.200s", file);
    close(fd);
    if (kept)
        return made;
    unlink(part);
    json_decref(made);
    return NULL;
}

static int export(const struct args *a, const char *of, const char *name, const char *file,
                  bool force)
{
    struct err err = {0};
    char own[SANDBOX_SPEC_NAME_MAX + 8], path[128];
    snprintf(path, sizeof path, "/v1/%s/%s/export", of, name);
    if (file && strcmp(file, "-") == 0)
        return finish(a, carry(a->socket, path, -1, STDOUT_FILENO, &err), NULL, &err);
    snprintf(own, sizeof own, "%s.tar", name);
    file = file ? file : own;
    return finish(a, export_to(a, path, file, force, &err), file, &err);
}

int snapshot_export_verb(const struct args *a, const char *name, const char *file, bool force)
{
    return sandbox_spec_name_ok(name)
               ? export(a, "snapshots", name, file, force)
               : args_usage(a->cmd, "'%.64s' is not the name of a snapshot", name);
}

int volume_export_verb(const struct args *a, const char *name, const char *file, bool force)
{
    return sandbox_spec_name_ok(name)
               ? export(a, "volumes", name, file, force)
               : args_usage(a->cmd, "'%.64s' is not the name of a volume", name);
}

/* FILE.tar is FILE. */
static void name_of(const char *file, char name[SANDBOX_SPEC_NAME_MAX + 1])
{
    const char *slash = strrchr(file, '/');
    snprintf(name, SANDBOX_SPEC_NAME_MAX + 1, "%.64s", slash ? slash + 1 : file);
    size_t n = strlen(name);
    if (n > 4 && strcmp(name + n - 4, ".tar") == 0)
        name[n - 4] = '\0';
}

int snapshot_import_verb(const struct args *a, const char *given, const char *file)
{
    struct err err = {0};
    char name[SANDBOX_SPEC_NAME_MAX + 1], path[128];
    bool input = strcmp(file, "-") == 0;
    name_of(given ? given : file, name);
    if (given)
        snprintf(name, sizeof name, "%.64s", given);
    if ((input && given == NULL) || !sandbox_spec_name_ok(name) || (given && strlen(given) > 64))
        return args_usage(a->cmd, "under which name is it to be kept?");
    int fd = input ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        err_sys(&err, "%.200s", file);
        return finish(a, NULL, NULL, &err);
    }
    snprintf(path, sizeof path, "/v1/snapshots/%s/import", name);
    json_t *made = carry(a->socket, path, fd, -1, &err);
    if (!input)
        close(fd);
    return finish(a, made, name, &err);
}
