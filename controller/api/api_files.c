/* Files of a sandbox. Every path is resolved by a child of durward-init, inside. */
#include "api_internal.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file_version.h"

enum { FILE_MODE = 0644, LIST_MAX = 16 << 20, STAT_MAX = 8192 };

int api_errno(uint32_t e, const char **code)
{
    static const struct {
        int e, status;
        const char *code;
    } known[] = {{ENOENT, 404, "file_not_found"},
                 {EACCES, 403, "permission_denied"},
                 {EPERM, 403, "permission_denied"},
                 {EROFS, 403, "permission_denied"},
                 {EISDIR, 409, "is_directory"},
                 {ENOTDIR, 409, "not_directory"},
                 {ENOTEMPTY, 409, "not_empty"},
                 {EEXIST, 409, "not_empty"},
                 {EBUSY, 409, "busy"},
                 {ETXTBSY, 409, "busy"},
                 {EINVAL, 400, "invalid_path"},
                 {ENAMETOOLONG, 400, "invalid_path"},
                 {ELOOP, 400, "invalid_path"},
                 {ENOSPC, 507, "no_space"},
                 {EDQUOT, 507, "no_space"},
                 {ESTALE, 412, "changed"},
                 {EBADMSG, 422, "unreadable"},
                 {EFBIG, 413, "too_large"}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if ((uint32_t)known[i].e == e) {
            *code = known[i].code;
            return known[i].status;
        }
    *code = "unavailable";
    return 503;
}

const char *api_errno_text(uint32_t e)
{
    if (e == ESTALE)
        return "it has another version by now";
    if (e == EBADMSG)
        return EXECUTION_UNREADABLE;
    if (e == EINVAL)
        return "it is no regular file (or its name is none): a device or a FIFO has no end";
    return e < 128 ? strerror((int)e) : "it was ended";
}

void api_refuse_errno(struct evhttp_request *req, uint32_t e)
{
    const char *code;
    int status = api_errno(e, &code);
    api_refuse(req, status, code, api_errno_text(e));
}

/* `path` of the query; answers itself when it is not fine. */
static const char *get_path(struct evhttp_request *req, const struct asked *q)
{
    struct err err = {0};
    const char *path = asked_param(q, "path");
    if (asked_path(path, &err) == 0)
        return path;
    api_refuse(req, 400, path ? "invalid_path" : "bad_request", err.text);
    return NULL;
}

/* `if_version` of the query; "": none was given. NULL, and answered: it is no version. */
static const char *get_version(struct evhttp_request *req, const struct asked *q, bool none)
{
    struct file_version v;
    const char *text = asked_param(q, "if_version");
    if (text == NULL)
        return "";
    if ((none && strcmp(text, INSIDE_NO_VERSION) == 0) ||
        (strlen(text) < FILE_VERSION_TEXT && file_version_read(text, &v) == 0))
        return text;
    api_refuse(req, 400, "bad_request", "if_version is a version as a list has it");
    return NULL;
}

static void go(struct evhttp_request *req, struct execution *e, const struct err *err)
{
    if (e == NULL)
        api_refuse_err(req, err);
}

/* ---- read ---- */

static void read_ended(void *arg, struct execution *e)
{
    struct slice s = execution_output(e, 1);
    if (execution_truncated(e))
        api_refuse_errno(arg, EFBIG);
    else if (execution_status(e) != 0)
        api_refuse_errno(arg, execution_status(e));
    else
        api_send(arg, 200, "application/octet-stream", s.p, s.n);
}

HANDLER_IN(api_file_read)
{
    static const struct execution_ops ops = {.ended = read_ended};
    struct err err = {0};
    const char *path = get_path(req, q);
    (void)a;
    if (path)
        go(req,
           execution_file(r, INSIDE_READ, path, 0, NULL, 0, EXECUTION_OUTPUT_MAX, &ops, req, &err),
           &err);
}

/* ---- write and delete ---- */

static void done_ended(void *arg, struct execution *e)
{
    if (execution_status(e) == 0)
        api_no_content(arg);
    else
        api_refuse_errno(arg, execution_status(e));
}

HANDLER_IN(api_file_write)
{
    static const struct execution_ops ops = {.ended = done_ended};
    struct err err = {0};
    struct evbuffer *in = evhttp_request_get_input_buffer(req);
    size_t n = evbuffer_get_length(in);
    unsigned mode = FILE_MODE;
    const char *path = get_path(req, q);
    const char *version = path ? get_version(req, q, true) : NULL;
    (void)a;
    if (version == NULL)
        return;
    if (asked_mode(asked_param(q, "mode"), &mode, &err) < 0) {
        api_refuse_err(req, &err);
        return;
    }
    const struct execution_file f = {.op = INSIDE_WRITE,
                                     .path = path,
                                     .version = version,
                                     .mode = mode,
                                     .input = n ? evbuffer_pullup(in, -1) : NULL,
                                     .n = n};
    go(req, execution_file_version(r, &f, &ops, req, &err), &err);
}

HANDLER_IN(api_file_delete)
{
    static const struct execution_ops ops = {.ended = done_ended};
    struct err err = {0};
    bool tree;
    const char *path = get_path(req, q);
    const char *version = path ? get_version(req, q, false) : NULL;
    (void)a;
    if (version == NULL)
        return;
    if (asked_bool(q, "recursive", &tree, &err) == 0 && tree && *version)
        err_set(&err, ERR_PARSE, "if_version is of one file, recursive of all below it");
    if (err.code) {
        api_refuse_err(req, &err);
        return;
    }
    const struct execution_file f = {
        .op = tree ? INSIDE_DELETE_TREE : INSIDE_DELETE, .path = path, .version = version};
    go(req, execution_file_version(r, &f, &ops, req, &err), &err);
}

/* ---- list ---- */

static const char *type_name(char c)
{
    return c == 'f' ? "file" : c == 'd' ? "directory" : c == 'l' ? "symlink" : "other";
}

static json_t *entry_json(const char *text)
{
    char type, version[FILE_VERSION_TEXT];
    unsigned mode;
    long long size, when;
    struct file_version v;
    int at = 0;
    if (sscanf(text, "%c %7o %18lld %18lld %71s%n", &type, &mode, &size, &when, version, &at) !=
            5 ||
        at == 0 || text[at++] != ' ')
        return NULL;
    bool still = file_version_read(version, &v) == 0;
    struct slice name = slice_str(text + at);
    json_t *shown = asked_encode(name, false);
    bool plain = shown != NULL;
    char octal[8];
    snprintf(octal, sizeof octal, "%04o", mode & 07777);
    if (shown == NULL)
        shown = asked_encode(name, true);
    return json_pack("{s:o, s:s, s:s, s:I, s:s, s:I, s:s?}", "name", shown, "encoding",
                     plain ? "utf-8" : "base64", "type", type_name(type), "size", (json_int_t)size,
                     "mode", octal, "modified_at", (json_int_t)when, "version",
                     still ? version : NULL);
}

static void list_ended(void *arg, struct execution *e)
{
    struct slice s = execution_output(e, 1);
    bool more = execution_status(e) == EFBIG || execution_truncated(e);
    if (execution_status(e) != 0 && !more) {
        api_refuse_errno(arg, execution_status(e));
        return;
    }
    json_t *list = json_array();
    for (const char *end; s.n && (end = memchr(s.p, 0, s.n)) != NULL;) {
        json_t *v = entry_json(s.p);
        if (v)
            json_array_append_new(list, v);
        s.n -= (size_t)(end + 1 - s.p);
        s.p = end + 1;
    }
    api_reply(arg, 200, json_pack("{s:o, s:b}", "entries", list, "truncated", more));
}

HANDLER_IN(api_file_list)
{
    static const struct execution_ops ops = {.ended = list_ended};
    struct err err = {0};
    const char *path = get_path(req, q);
    (void)a;
    if (path)
        go(req, execution_file(r, INSIDE_LIST, path, 0, NULL, 0, LIST_MAX, &ops, req, &err), &err);
}

/* ---- one ---- */

static void stat_ended(void *arg, struct execution *e)
{
    struct slice s = execution_output(e, 1);
    bool whole = execution_status(e) == 0 && s.n && s.p[s.n - 1] == '\0';
    json_t *v = whole ? entry_json(s.p) : NULL;
    if (v)
        api_reply(arg, 200, v);
    else if (execution_status(e))
        api_refuse_errno(arg, execution_status(e));
    else
        api_refuse(arg, 503, "unavailable", "what came from inside is not an entry");
}

HANDLER_IN(api_file_stat)
{
    static const struct execution_ops ops = {.ended = stat_ended};
    struct err err = {0};
    const char *path = get_path(req, q);
    (void)a;
    if (path)
        go(req, execution_file(r, INSIDE_STAT, path, 0, NULL, 0, STAT_MAX, &ops, req, &err), &err);
}
