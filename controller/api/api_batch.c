/* Several file operations in one request, one after the other, each with a result of its own. */
#include "api_internal.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

enum { OPERATIONS_MAX = 1000, BATCH_BYTES = 64 << 20 };

struct batch {
    struct evhttp_request *req;
    struct api *api;
    char id[SANDBOX_ID_MAX + 1]; /* the sandbox may go in between */
    json_t *body, *results;
    size_t at;
    size_t bytes; /* read so far */
    bool base64;
};

static void next(struct batch *b);

static void batch_done(struct batch *b)
{
    json_decref(b->body);
    json_decref(b->results);
    free(b);
}

static json_t *operation(const struct batch *b)
{
    return json_array_get(json_object_get(b->body, "operations"), b->at);
}

static void add_result(struct batch *b, const char *code, const char *message, json_t *data,
                       bool base64)
{
    json_t *o = json_pack("{s:O}", "path", json_object_get(operation(b), "path"));
    json_object_set_new(
        o, "error", code ? json_pack("{s:s, s:s}", "code", code, "message", message) : json_null());
    if (data) {
        json_object_set_new(o, "data", data);
        json_object_set_new(o, "encoding", json_string(base64 ? "base64" : "utf-8"));
    }
    json_array_append_new(b->results, o);
    b->at++;
}

static void add_read(struct batch *b, struct slice s)
{
    json_t *v = b->base64 ? NULL : asked_encode(s, false);
    bool base64 = v == NULL;
    b->bytes += s.n;
    add_result(b, NULL, NULL, v ? v : asked_encode(s, true), base64);
}

static void on_ended(void *arg, struct execution *e)
{
    struct batch *b = arg;
    const char *code;
    const char *op = json_string_value(json_object_get(operation(b), "op"));
    uint32_t status = execution_truncated(e) ? EFBIG : execution_status(e);
    if (status != 0) {
        api_errno(status, &code);
        add_result(b, code, api_errno_text(status), NULL, false);
    } else if (strcmp(op, "read") == 0) {
        add_read(b, execution_output(e, 1));
    } else {
        add_result(b, NULL, NULL, NULL, false);
    }
    next(b);
}

/* 0 begun; 1 refused, and the result says so. */
static int begin(struct batch *b, struct managed_sandbox *r)
{
    static const struct execution_ops ops = {.ended = on_ended};
    struct err err = {0};
    const json_t *o = operation(b);
    const char *op = json_string_value(json_object_get(o, "op")), *mode_text = NULL;
    const char *path = json_string_value(json_object_get(o, "path")), *encoding = NULL;
    unsigned mode = 0644;
    bool tree = false;
    char *data = NULL;
    size_t n = 0;
    if (asked_path(path, &err) < 0 ||
        strlen(path) != json_string_length(json_object_get(o, "path"))) {
        add_result(b, "invalid_path", "path must be absolute, without NUL", NULL, false);
        return 1;
    }
    /* checked by check_operations */
    (void)asked_text(o, "mode", 8, &mode_text, &err);
    (void)asked_mode(mode_text, &mode, &err);
    (void)asked_flag(o, "recursive", &tree, &err);
    (void)asked_text(o, "encoding", 16, &encoding, &err);
    b->base64 = encoding && strcmp(encoding, "base64") == 0;
    enum inside_op what = INSIDE_READ;
    if (strcmp(op, "write") == 0)
        what = INSIDE_WRITE;
    else if (strcmp(op, "delete") == 0)
        what = tree ? INSIDE_DELETE_TREE : INSIDE_DELETE;
    if (what == INSIDE_WRITE && asked_bytes(o, "data", "encoding", &data, &n, &err) < 0) {
        add_result(b, "unavailable", err.text, NULL, false);
        return 1;
    }
    struct execution *e =
        execution_file(r, what, path, mode, data, n, BATCH_BYTES - b->bytes, &ops, b, &err);
    free(data);
    if (e == NULL)
        add_result(b, "unavailable", err.text, NULL, false);
    return e == NULL;
}

static void next(struct batch *b)
{
    struct managed_sandbox *r = managed_sandbox_find(b->api->controller, b->id);
    size_t n = json_array_size(json_object_get(b->body, "operations"));
    while (b->at < n) {
        if (r == NULL)
            add_result(b, "unavailable", "the sandbox is gone", NULL, false);
        else if (begin(b, r) == 0)
            return;
    }
    api_reply(b->req, 200, json_pack("{s:O}", "results", b->results));
    batch_done(b);
}

/* All of it before the first is done: a request that is half nonsense does nothing. */
static int check_operation(const json_t *o, struct err *err)
{
    static const char *const ops[] = {"read", "write", "delete"};
    const char *op = NULL, *mode_text = NULL;
    unsigned mode;
    bool tree, known = false;
    char *data = NULL;
    size_t n;
    if (asked_keys(o, "op path data encoding recursive mode", err) < 0 ||
        asked_text(o, "op", 16, &op, err) < 0 || asked_text(o, "mode", 8, &mode_text, err) < 0 ||
        asked_mode(mode_text, &mode, err) < 0 || asked_flag(o, "recursive", &tree, err) < 0 ||
        asked_bytes(o, "data", "encoding", &data, &n, err) < 0)
        return -1;
    free(data);
    for (size_t i = 0; op && i < ARRAY_LEN(ops); i++)
        known = known || strcmp(op, ops[i]) == 0;
    if (!known)
        return err_set(err, ERR_PARSE, "op must be read, write or delete");
    if (!json_is_string(json_object_get(o, "path")))
        return err_set(err, ERR_PARSE, "path must be a text");
    return 0;
}

static int check_operations(const json_t *body, struct err *err)
{
    json_t *list = json_object_get(body, "operations"), *o;
    size_t i;
    if (!json_is_array(list) || json_array_size(list) > OPERATIONS_MAX)
        return err_set(err, ERR_PARSE, "operations must be a list of at most %d", OPERATIONS_MAX);
    json_array_foreach(list, i, o)
    {
        if (check_operation(o, err) < 0)
            return -1;
    }
    return 0;
}

HANDLER_IN(api_batch)
{
    struct err err = {0};
    json_t *body = asked_body(req, "operations", &err);
    (void)q;
    if (body && check_operations(body, &err) == 0 && r->state != MANAGED_SANDBOX_RUNNING)
        err_set(&err, ERR_UNREADY, "the sandbox is %s", managed_sandbox_state_name(r->state));
    struct batch *b = err.code == ERR_NONE ? calloc(1, sizeof *b) : NULL;
    if (b == NULL) {
        api_refuse_err(req, &err);
        json_decref(body);
        return;
    }
    b->req = req;
    b->api = a;
    memcpy(b->id, r->id, sizeof b->id);
    b->body = body;
    b->results = json_array();
    next(b);
}
