/* Directories as tar archives. The sandbox's own tar does it, in the sandbox, as any command: no
 * archive is read or written outside. */
#include "api_internal.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tar {
    struct evhttp_request *req;
    struct managed_sandbox *managed_sandbox;
    char *path;
    bool write;
};

static void tar_done(struct tar *t)
{
    free(t->path);
    free(t);
}

static void on_ended(void *arg, struct execution *e)
{
    struct tar *t = arg;
    struct slice out = execution_output(e, 1), why = execution_output(e, 2);
    char text[256];
    uint32_t status = execution_status(e);
    for (size_t i = 0; i < why.n && i < sizeof text; i++)
        text[i] = (char)(why.p[i] >= 0x20 && why.p[i] < 0x7f ? why.p[i] : '?');
    int n = (int)(why.n < sizeof text - 1 ? why.n : sizeof text - 1);
    text[n] = 0;
    if (execution_unreadable(e))
        api_refuse_errno(t->req, EBADMSG);
    else if (execution_truncated(e))
        api_refuse(t->req, 413, "too_large", "the archive is larger than 64 MiB");
    else if (status == EXIT_NOT_FOUND || status == EXIT_NOT_EXECUTABLE)
        api_refuse(t->req, 501, "unsupported", "the sandbox has no tar");
    else if (status == EXIT_DURWARD_FAILED)
        api_refuse(t->req, 503, "unavailable", execution_text(e));
    else if (status != 0)
        api_refuse(t->req, 409, "tar_failed", n ? text : "tar failed");
    else if (t->write)
        api_no_content(t->req);
    else
        api_send(t->req, 200, "application/x-tar", out.p, out.n);
    tar_done(t);
}

/* The directory is there: now tar. */
static void on_directory(void *arg, struct execution *e)
{
    static const struct execution_ops ops = {.ended = on_ended};
    struct tar *t = arg;
    struct err err = {0};
    struct strlist argv = {0};
    struct evbuffer *in = evhttp_request_get_input_buffer(t->req);
    size_t n = t->write ? evbuffer_get_length(in) : 0;
    if (execution_status(e) != 0) {
        api_refuse_errno(t->req, execution_status(e));
        tar_done(t);
        return;
    }
    int bad = strlist_add(&argv, "tar") | strlist_add(&argv, t->write ? "-xof" : "-cf") |
              strlist_add(&argv, "-");
    if (!t->write)
        bad |= strlist_add(&argv, ".");
    struct execution_command c = {.argv = &argv,
                                  .cwd = t->path,
                                  .timeout = EXECUTION_TIMEOUT_DEFAULT,
                                  .input = n ? evbuffer_pullup(in, -1) : NULL,
                                  .n_input = n,
                                  .split = true,
                                  .max_output = EXECUTION_OUTPUT_MAX,
                                  .whole = true};
    if (bad || execution_command(t->managed_sandbox, &c, &ops, t, &err) == NULL) {
        api_refuse_err(t->req, &err);
        tar_done(t);
    }
    strlist_done(&argv);
}

static void tar(struct evhttp_request *req, const struct asked *q, struct managed_sandbox *r,
                bool write)
{
    static const struct execution_ops ops = {.ended = on_directory};
    struct err err = {0};
    const char *path = asked_param(q, "path");
    if (asked_path(path, &err) < 0) {
        api_refuse(req, 400, path ? "invalid_path" : "bad_request", err.text);
        return;
    }
    struct tar *t = calloc(1, sizeof *t);
    if (t && (t->path = strdup(path)) != NULL) {
        t->req = req;
        t->managed_sandbox = r;
        t->write = write;
        if (execution_file(r, write ? INSIDE_MKDIR : INSIDE_CHECK, path, 0, NULL, 0, 0, &ops, t,
                           &err))
            return;
    }
    if (t)
        tar_done(t);
    api_refuse_err(req, &err);
}

HANDLER_IN(api_tar_read)
{
    (void)a;
    tar(req, q, r, false);
}

HANDLER_IN(api_tar_write)
{
    (void)a;
    tar(req, q, r, true);
}
