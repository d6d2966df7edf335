/* POST /v1/audit/verify: the whole audit log, checked anew by a process that the parent starts.
 * Whoever asks while one runs is told what that one finds. */
#include "api_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire.h"

enum { WHY_MAX = 256 };

/* Its word for the directory; of a run's own log the rest is a name in it. */
static const char *log_name(const json_t *log)
{
    static const char top[] = "/proc/self/fd/0";
    const char *dir = json_string_value(json_object_get(log, "dir"));
    if (dir == NULL || strncmp(dir, top, sizeof top - 1) != 0)
        return "";
    dir += sizeof top - 1;
    return *dir == '/' ? dir + 1 : dir;
}

static json_t *problem(const json_t *log)
{
    const char *name = log_name(log);
    const char *file = json_string_value(json_object_get(log, "file"));
    const char *why = json_string_value(json_object_get(log, "why"));
    json_t *line = json_object_get(log, "line");
    json_t *where = *name && file && *file ? json_sprintf("%s/%s", name, file)
                                           : json_string(*name || file == NULL ? name : file);
    return json_pack("{s:o, s:I, s:s}", "file", where, "line",
                     json_is_integer(line) ? json_integer_value(line) : 0, "why",
                     why ? why : "it is broken");
}

static json_int_t number(const json_t *log, const char *name)
{
    return json_integer_value(json_object_get(log, name));
}

/* What was said of each log, as one answer. NULL: it is malformed. */
static json_t *summary(const json_t *said, const char *running)
{
    json_int_t records = 0, files = 0, checkpoints = 0, left = 0;
    const json_t *list = json_object_get(said, "logs"), *ok = json_object_get(said, "ok");
    const char *key = json_string_value(json_object_get(said, "key"));
    json_t *first = NULL;
    size_t i;
    json_t *log;
    if (!json_is_array(list) || !json_is_boolean(ok) || key == NULL)
        return NULL;
    json_array_foreach((json_t *)list, i, log)
    {
        records += number(log, "records");
        files += number(log, "files");
        checkpoints += number(log, "checkpoints");
        left += number(log, "unsigned");
        if (first == NULL && !json_is_true(json_object_get(log, "ok")))
            first = problem(log);
    }
    if (first == NULL && strcmp(key, running) != 0)
        first = json_pack("{s:s, s:i, s:s}", "file", "key.pub", "line", 0, "why",
                          "this is not the key of the logger that runs: the log was replaced");
    if (first == NULL && !json_is_true(ok))
        first = json_pack("{s:s, s:i, s:s}", "file", "", "line", 0, "why",
                          "part of it cannot be read: see the daemon's diagnostics");
    json_t *v = json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:s}", "ok", first == NULL, "records",
                          records, "files", files, "checkpoints", checkpoints, "unsigned", left,
                          "logs", (json_int_t)json_array_size(list), "key", key);
    if (first)
        json_object_set_new(v, "problem", first);
    return v;
}

static json_t *read_said(struct api *a, int fd)
{
    struct err err = {0};
    char *text;
    size_t n;
    if (ipc_memfd_read(fd, WIRE_VERIFIED_MAX, &text, &n, &err) < 0)
        return NULL;
    json_t *said = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
    free(text);
    json_t *v = said ? summary(said, feed_key(a->feed)) : NULL;
    json_decref(said);
    return v;
}

int api_answer_verified(struct api *a, struct msg *m)
{
    uint8_t ok;
    char why[WHY_MAX];
    int fd = -1;
    struct evhttp_request *req;
    if (msg_get_u8(m, &ok) < 0 || ok > 1 || msg_get_str(m, why, sizeof why) < 0 ||
        (ok && msg_get_fd(m, &fd) < 0) || msg_end(m) < 0) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    json_t *v = ok ? read_said(a, fd) : NULL;
    if (fd >= 0)
        close(fd);
    bool known = *feed_key(a->feed) != 0;
    while ((req = api_first_waiting(&a->verify)) != NULL) {
        if (!known)
            api_refuse(req, 503, "unavailable", "no logger runs whose key it could be");
        else if (v)
            api_reply(req, 200, json_incref(v));
        else
            api_refuse(req, 503, "unavailable", ok ? "its result is malformed" : why);
    }
    json_decref(v);
    return 0;
}

void api_verify(struct api *a, struct evhttp_request *req, struct asked *q UNUSED)
{
    api_ask_parent(a, req, &a->verify, W_VERIFY);
}
