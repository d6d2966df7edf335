/* Writes a session that was refreshed back into its program's file: the same JSON with other texts,
 * by a new file that takes its name. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "login_file.h"

/* The member that the place names, put there; its parents are there already. */
static int set_at(json_t *tree, login_place at, json_t *value)
{
    size_t n = json_array_size(at);
    json_t *v = tree;
    for (size_t i = 0; i + 1 < n; i++)
        v = json_object_get(v, json_string_value(json_array_get(at, i)));
    return json_object_set_new(v, json_string_value(json_array_get(at, n - 1)), value);
}

static int set_all(const struct login_format *f, json_t *tree, const struct login_session *s)
{
    login_place expires = login_secret(f, "expires"), stamp = login_stamp(f);
    time_t now = time(NULL);
    char when[32];
    struct tm tm;
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S.000Z", gmtime_r(&now, &tm));
    int bad = 0;
    if (s->refresh.n > 0)
        bad |= set_at(tree, login_secret(f, "refresh"), json_stringn(s->refresh.p, s->refresh.n));
    if (s->access.n == 0)
        return bad;
    bad |= set_at(tree, login_secret(f, "access"), json_stringn(s->access.p, s->access.n));
    if (expires)
        bad |= set_at(tree, expires, json_integer(s->expires * (login_is_ms(f) ? 1000 : 1)));
    return stamp ? bad | set_at(tree, stamp, json_string(when)) : bad;
}

int login_file_replace(const char *path, const char *like, struct slice text, struct err *err)
{
    char fresh[PATH_MAX + 16];
    struct stat st = {.st_uid = geteuid()};
    snprintf(fresh, sizeof fresh, "%s.durward", path);
    unlink(fresh);
    int fd = like && stat(like, &st) < 0
                 ? -1
                 : open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(err, "cannot write %s", fresh);
    bool ok = st.st_uid == geteuid() || fchown(fd, st.st_uid, st.st_gid) == 0;
    ok = ok && write(fd, text.p, text.n) == (ssize_t)text.n && fsync(fd) == 0;
    ok = close(fd) == 0 && ok && rename(fresh, path) == 0;
    if (ok)
        return 0;
    err_sys(err, "cannot write %s", path);
    unlink(fresh);
    return -1;
}

int login_file_save(const struct login_format *f, const char *path,
                    const struct login_session *session, struct err *err)
{
    char real[PATH_MAX], *lines = NULL;
    size_t n;
    char *text = realpath(path, real) ? login_text_read(real, &n, err) : NULL;
    if (text == NULL)
        return err->code ? -1 : err_sys(err, "%s", path);
    size_t layout = memchr(text, '\n', n > 1 ? n - 1 : 0) ? JSON_INDENT(2) : JSON_COMPACT;
    json_t *tree = login_tree_of(login_syntax(f), text, n, path, &lines, err);
    login_text_free(text, n);
    free(lines);
    if (tree == NULL)
        return -1;
    char *out = set_all(f, tree, session) ? NULL : json_dumps(tree, layout);
    int r = out ? login_file_replace(real, real, slice_str(out), err)
                : err_set(err, ERR_PARSE, "%s is not what it was when it was read", path);
    if (out)
        explicit_bzero(out, strlen(out));
    free(out);
    json_decref(tree);
    return r;
}
