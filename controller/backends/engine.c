/* Makes the calls and checks each answer. A removal is tried again until the engine no longer knows
 * the container, or for 15 seconds. */
#define _GNU_SOURCE 1
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine_http.h"
#include "slice.h"

enum { PATH_SIZE = 2048, REMOVE_MS = 15000, TRY_MS = 20 };

/* ---- a call ---- */

static int refuse(unsigned status, const char *what, struct buf *reply, struct err *err)
{
    json_t *v = json_loadb((const char *)buf_data(reply), buf_len(reply), 0, NULL);
    const char *said = json_string_value(json_object_get(v, "message"));
    err_set(err, status == 404 ? ERR_DENIED : ERR_UPSTREAM, "%s: the engine says %u: %.400s", what,
            status, said ? said : "(nothing)");
    json_decref(v);
    return -1;
}

/* Returns the status, with the answer in *ret (NULL when it is not JSON); -1 with err when there is
 * no answer, or with what set, one that is no success. */
static int call(const struct engine *e, const char *method, const char *path, const json_t *body,
                const char *what, json_t **ret, struct err *err)
{
    struct engine_request q = {.method = method, .path = path};
    struct buf reply;
    unsigned status = 0;
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    if (body && text == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    q.body = slice_str(text);
    buf_init(&reply, ENGINE_REPLY_MAX);
    int r = engine_exchange(e->socket, &q, &status, &reply, err);
    free(text);
    if (r == 0 && what && status / 100 != 2)
        r = refuse(status, what, &reply, err);
    if (ret)
        *ret = r == 0 ? json_loadb((const char *)buf_data(&reply), buf_len(&reply), 0, NULL) : NULL;
    buf_free(&reply);
    return r < 0 ? -1 : (int)status;
}

static int lacks(const char *what, struct err *err)
{
    return err_set(err, ERR_UPSTREAM, "the engine's answer has no %s", what);
}

int engine_meet(struct engine *e, struct err *err)
{
    json_t *v = NULL, *part;
    size_t i;
    if (call(e, "GET", "/version", NULL, "cannot ask for its version", &v, err) < 0)
        return -1;
    json_array_foreach(json_object_get(v, "Components"), i, part)
    {
        const char *name = json_string_value(json_object_get(part, "Name"));
        e->podman = e->podman || (name && strcmp(name, "Podman Engine") == 0);
    }
    json_decref(v);
    return 0;
}

/* ---- life ---- */

static bool id_ok(const char *id)
{
    size_t n = strlen(id);
    for (const char *c = id; *c; c++)
        if (!ascii_is_alnum(*c))
            return false;
    return n > 0 && n < ENGINE_ID_MAX;
}

/* Lines of somebody else's, in a text for people. */
static int note(struct buf *notes, const char *text)
{
    char line[256];
    snprintf(line, sizeof line, "%.250s", text);
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = ' ';
    return buf_printf(notes, "note: %s\n", line);
}

int engine_create(const struct engine *e, const char *name, const json_t *spec,
                  char id[ENGINE_ID_MAX], struct buf *notes, struct err *err)
{
    char path[PATH_SIZE];
    json_t *v = NULL, *warning;
    size_t i;
    snprintf(path, sizeof path, "/containers/create?name=%.*s", ENGINE_NAME_MAX, name);
    if (call(e, "POST", path, spec, "cannot create the container", &v, err) < 0)
        return -1;
    const char *got = json_string_value(json_object_get(v, "Id"));
    int r = got && id_ok(got) ? 0 : lacks("container id", err);
    if (r == 0)
        snprintf(id, ENGINE_ID_MAX, "%s", got);
    json_array_foreach(json_object_get(v, "Warnings"), i, warning)
    {
        if (json_is_string(warning))
            (void)note(notes, json_string_value(warning)); /* no room: what fits is said */
    }
    json_decref(v);
    return r;
}

int engine_start(const struct engine *e, const char *id, struct err *err)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "/containers/%s/start", id);
    return call(e, "POST", path, NULL, "cannot start the container", NULL, err) < 0 ? -1 : 0;
}

static void note_volumes(const json_t *mounts, struct buf *notes)
{
    json_t *m;
    size_t i;
    json_array_foreach(mounts, i, m)
    {
        const char *type = json_string_value(json_object_get(m, "Type"));
        const char *at = json_string_value(json_object_get(m, "Destination"));
        char text[200];
        if (type == NULL || at == NULL || strcmp(type, "volume") != 0)
            continue;
        snprintf(text, sizeof text, "limit disk: not held below %.100s, a volume of the image", at);
        (void)note(notes, text);
    }
}

int engine_look(const struct engine *e, const char *id, pid_t *pid, struct buf *notes,
                struct err *err)
{
    char path[PATH_SIZE];
    json_t *v = NULL;
    snprintf(path, sizeof path, "/containers/%s/json", id);
    if (call(e, "GET", path, NULL, "cannot look at the container", &v, err) < 0)
        return -1;
    json_int_t n = json_integer_value(json_object_get(json_object_get(v, "State"), "Pid"));
    note_volumes(json_object_get(v, "Mounts"), notes);
    json_decref(v);
    if (n <= 1 || n > INT32_MAX)
        return err_set(err, ERR_UPSTREAM, "the container ended at once");
    *pid = (pid_t)n;
    return 0;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int engine_remove(const struct engine *e, const char *id, struct err *err)
{
    static const struct timespec pause = {0, TRY_MS * 1000000};
    char remove[PATH_SIZE], look[PATH_SIZE];
    int64_t end = now_ms() + REMOVE_MS;
    snprintf(remove, sizeof remove, "/containers/%s?force=1&v=1", id);
    snprintf(look, sizeof look, "/containers/%s/json", id);
    for (;;) { /* 409: the engine is at it by itself, as it was asked to when the container ends */
        int status = call(e, "DELETE", remove, NULL, NULL, NULL, err);
        if (status < 0)
            return -1;
        if (status == 404 ||
            (status / 100 == 2 && call(e, "GET", look, NULL, NULL, NULL, err) == 404))
            return 0;
        if (now_ms() > end)
            return err_set(err, ERR_UPSTREAM, "the engine does not remove container %.12s (%d)", id,
                           status);
        nanosleep(&pause, NULL);
    }
}

int engine_each(const struct engine *e, const char *label, const char *value,
                void (*fn)(void *arg, const char *id, const json_t *labels), void *arg,
                struct err *err)
{
    struct buf path;
    json_t *list = NULL, *c;
    size_t i;
    char *filter = NULL, pair[1024];
    snprintf(pair, sizeof pair, "%s=%s", label, value);
    json_t *v = json_pack("{s:[s]}", "label", pair);
    filter = v ? json_dumps(v, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    json_decref(v);
    buf_init(&path, 4 * PATH_SIZE);
    int bad = filter ? buf_append_str(&path, "/containers/json?all=1&filters=") : -1;
    for (const char *p = filter; bad == 0 && *p; p++)
        bad = buf_printf(&path, ascii_is_alnum(*p) ? "%c" : "%%%02X", (unsigned char)*p);
    free(filter);
    if (bad || buf_append(&path, "", 1) < 0)
        bad = err_set(err, ERR_LIMIT, "a label is too long");
    else
        bad = call(e, "GET", (const char *)buf_data(&path), NULL, "cannot list containers", &list,
                   err) < 0
                  ? -1
                  : 0;
    buf_free(&path);
    json_array_foreach(list, i, c)
    {
        const char *id = json_string_value(json_object_get(c, "Id"));
        if (id && id_ok(id))
            fn(arg, id, json_object_get(c, "Labels"));
    }
    json_decref(list);
    return bad;
}
