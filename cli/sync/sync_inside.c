/* Asks for one thing at a time, each on a connection of its own, and reads what is answered. */
#include "sync_inside.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_client.h"
#include "out.h"
#include "sync_name.h"

enum { TARGET_BYTES = 32 * 1024, ANSWER_BYTES = 16 << 20, SPARE = 1 << 20 };

struct answer {
    int status; /* 0: nobody answered */
    struct buf in;
    struct slice body;
    char code[48];
};

static void answer_free(struct answer *a)
{
    buf_free(&a->in);
}

static void read_refusal(struct answer *a, const char *path, struct err *err)
{
    json_t *v = json_loadb(a->body.n ? a->body.p : "", a->body.n, JSON_REJECT_DUPLICATES, NULL);
    snprintf(a->code, sizeof a->code, "%s", out_member(json_object_get(v, "error"), "code"));
    json_decref(v);
    (void)api_refused(a->status, path, a->body, err);
}

/* /v1/sandboxes/ID/files…?path=P&more */
static void ask(const struct sync_inside *s, const char *method, const char *tail, const char *path,
                const char *more, struct slice body, size_t max, struct answer *a, struct err *err)
{
    char whole[2 * SYNC_PATH];
    struct buf target;
    *a = (struct answer){0};
    buf_init(&a->in, 0);
    buf_init(&target, TARGET_BYTES);
    int bad = snprintf(whole, sizeof whole, "%s%s%s", s->path, *path ? "/" : "", path) >=
              (int)sizeof whole;
    bad |= buf_printf(&target, "/v1/sandboxes/%s/%s?path=", s->id, tail);
    if (!bad)
        api_quote(&target, whole);
    bad |= buf_append_str(&target, more) | buf_append(&target, "", 1);
    struct api_request q = {.method = method,
                            .path = (const char *)buf_data(&target),
                            .type = "application/octet-stream",
                            .body = body.p,
                            .n = body.n};
    if (bad)
        err_set(err, ERR_LIMIT, "the path is too long");
    else if (api_exchange(s->socket, &q, max, &a->in, &a->status, &a->body, err) < 0)
        a->status = 0;
    else if (a->status / 100 != 2)
        read_refusal(a, q.path, err);
    buf_free(&target);
}

static enum sync_end end_of(const struct answer *a, const struct err *err)
{
    if (a->status / 100 == 2)
        return SYNC_DONE;
    if (a->status == 0)
        return err->code == ERR_LIMIT ? SYNC_MOVING : SYNC_GONE;
    if (a->status == 412 || strcmp(a->code, "busy") == 0)
        return SYNC_MOVING;
    if (strcmp(a->code, "file_not_found") == 0)
        return SYNC_MOVING;
    bool other = a->status == 401 || a->status == 404 || a->status == 503 ||
                 strcmp(a->code, "not_running") == 0 || strcmp(a->code, "scope") == 0;
    return other ? SYNC_GONE : SYNC_BLOCKED;
}

/* ---- looking ---- */

static enum sync_kind kind_of(const char *type)
{
    return strcmp(type, "file") == 0        ? SYNC_KIND_FILE
           : strcmp(type, "directory") == 0 ? SYNC_KIND_FOLDER
                                            : SYNC_KIND_OTHER;
}

static void describe(const json_t *e, struct sync_side *ret)
{
    struct file_version v;
    const char *version = out_member(e, "version");
    json_int_t size = json_integer_value(json_object_get(e, "size"));
    *ret = (struct sync_side){.kind = kind_of(out_member(e, "type"))};
    ret->exec = strtoul(out_member(e, "mode"), NULL, 8) & 0100;
    ret->size = size < 0 ? UINT64_MAX : (uint64_t)size;
    ret->still = file_version_read(version, &v) == 0;
    if (ret->still)
        snprintf(ret->version, sizeof ret->version, "%s", version);
}

enum sync_end sync_inside_look(const struct sync_inside *s, const char *path, struct sync_side *ret,
                               struct err *err)
{
    struct answer a;
    struct err why = {0};
    *ret = (struct sync_side){.kind = SYNC_KIND_NONE};
    ask(s, "GET", "files/stat", path, "", (struct slice){"", 0}, ANSWER_BYTES, &a, &why);
    enum sync_end r = end_of(&a, &why);
    if (r == SYNC_DONE) {
        json_t *v = json_loadb(a.body.p, a.body.n, JSON_REJECT_DUPLICATES, NULL);
        describe(v, ret);
        json_decref(v);
    } else if (strcmp(a.code, "file_not_found") == 0 || strcmp(a.code, "not_directory") == 0) {
        r = SYNC_DONE; /* it is not there */
    } else if (r == SYNC_BLOCKED && strcmp(a.code, "invalid_path") == 0) {
        r = SYNC_DONE; /* links in a circle are no file */
        ret->kind = SYNC_KIND_OTHER;
    }
    if (r != SYNC_DONE)
        *err = why;
    answer_free(&a);
    return r;
}

enum sync_end sync_inside_load(const struct sync_inside *s, const char *path, size_t max,
                               struct sync_side *side, struct err *err)
{
    struct answer a;
    struct sync_side after;
    ask(s, "GET", "files", path, "", (struct slice){"", 0}, max + SPARE, &a, err);
    enum sync_end r = end_of(&a, err);
    if (r != SYNC_DONE || a.body.n > max) {
        answer_free(&a);
        return r == SYNC_DONE ? SYNC_MOVING : r;
    }
    buf_drain(&a.in, (size_t)(a.body.p - (const char *)buf_data(&a.in)));
    side->data = a.in;
    side->loaded = true;
    if (EVP_Digest(buf_data(&side->data), buf_len(&side->data), side->hash, NULL, EVP_sha256(),
                   NULL) != 1) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return SYNC_BLOCKED;
    }
    if (!side->still) /* it never is: what was read may be a part */
        return SYNC_DONE;
    r = sync_inside_look(s, path, &after, err);
    bool same = after.kind == SYNC_KIND_FILE && strcmp(after.version, side->version) == 0;
    return r != SYNC_DONE ? r : same ? SYNC_DONE : SYNC_MOVING;
}

/* ---- changing ---- */

enum sync_end sync_inside_write(const struct sync_inside *s, const char *path,
                                const struct sync_side *there, struct slice data, bool exec,
                                struct err *err)
{
    char more[FILE_VERSION_TEXT + 40];
    struct answer a;
    bool file = there->kind == SYNC_KIND_FILE;
    if (file && !there->version[0])
        return SYNC_MOVING;
    snprintf(more, sizeof more, "&mode=%s&if_version=%s", exec ? "0755" : "0644",
             file ? there->version : "none");
    ask(s, "PUT", "files", path, more, data, ANSWER_BYTES, &a, err);
    enum sync_end r = end_of(&a, err);
    answer_free(&a);
    return r;
}

enum sync_end sync_inside_remove(const struct sync_inside *s, const char *path,
                                 const struct sync_side *there, struct err *err)
{
    char more[FILE_VERSION_TEXT + 40];
    struct answer a;
    if (!there->version[0])
        return SYNC_MOVING;
    snprintf(more, sizeof more, "&if_version=%s", there->version);
    ask(s, "DELETE", "files", path, more, (struct slice){"", 0}, ANSWER_BYTES, &a, err);
    enum sync_end r = end_of(&a, err);
    answer_free(&a);
    return r;
}

void sync_inside_prune(const struct sync_inside *s, const char *path,
                       bool (*gone)(void *arg, const char *folder), void *arg)
{
    char folder[SYNC_PATH];
    struct answer a;
    struct sync_side side;
    struct err err = {0};
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash; (slash = strrchr(folder, '/')) != NULL;) {
        *slash = '\0';
        if (!gone(arg, folder) || sync_inside_look(s, folder, &side, &err) != SYNC_DONE ||
            side.kind != SYNC_KIND_FOLDER)
            return;
        ask(s, "DELETE", "files", folder, "", (struct slice){"", 0}, ANSWER_BYTES, &a, &err);
        bool done = a.status / 100 == 2;
        answer_free(&a);
        if (!done)
            return; /* something is in it */
    }
}

/* ---- walking ---- */

static enum sync_end walk(struct sync_inside *s, const char *path, const struct sync_walk *w,
                          unsigned depth, struct err *err);

static enum sync_end walk_entry(struct sync_inside *s, const json_t *e, const char *path,
                                const struct sync_walk *w, unsigned depth, struct err *err)
{
    char below[SYNC_PATH];
    struct sync_side side;
    const char *name = out_member(e, "name");
    bool fine =
        strcmp(out_member(e, "encoding"), "utf-8") == 0 && *name &&
        strlen(name) == json_string_length(json_object_get(e, "name")) &&
        strchr(name, '/') == NULL &&
        snprintf(below, sizeof below, "%s%s%s", path, *path ? "/" : "", name) < (int)sizeof below &&
        sync_name_ok(below);
    if (!fine) {
        s->odd++;
        return SYNC_DONE;
    }
    describe(e, &side);
    if (!w->enter(w->arg, below, side.kind == SYNC_KIND_FOLDER))
        return SYNC_DONE;
    if (side.kind == SYNC_KIND_FOLDER)
        return walk(s, below, w, depth + 1, err);
    w->entry(w->arg, below, &side);
    return SYNC_DONE;
}

static enum sync_end walk(struct sync_inside *s, const char *path, const struct sync_walk *w,
                          unsigned depth, struct err *err)
{
    struct answer a;
    struct err why = {0};
    size_t i;
    json_t *e;
    if (depth > SYNC_DEPTH) {
        w->unknown(w->arg, path, "it lies too deep");
        return SYNC_DONE;
    }
    ask(s, "GET", "files/list", path, "", (struct slice){"", 0}, ANSWER_BYTES, &a, &why);
    enum sync_end r = end_of(&a, &why);
    bool none = strcmp(a.code, "file_not_found") == 0 || strcmp(a.code, "not_directory") == 0;
    json_t *list =
        r == SYNC_DONE ? json_loadb(a.body.p, a.body.n, JSON_REJECT_DUPLICATES, NULL) : NULL;
    answer_free(&a);
    if (r == SYNC_DONE &&
        (!json_is_object(list) || json_is_true(json_object_get(list, "truncated"))))
        w->unknown(w->arg, path, "it has too many entries");
    else if (r == SYNC_GONE)
        *err = why;
    else if (r != SYNC_DONE && (*path == '\0' || !none))
        w->unknown(w->arg, path, why.text);
    json_array_foreach(json_object_get(list, "entries"), i, e)
    {
        if (r == SYNC_DONE)
            r = walk_entry(s, e, path, w, depth, err);
    }
    json_decref(list);
    return r == SYNC_GONE ? r : SYNC_DONE;
}

enum sync_end sync_inside_walk(struct sync_inside *s, const char *path, const struct sync_walk *w,
                               struct err *err)
{
    return walk(s, path, w, 0, err);
}

const char *sync_inside_state(const struct sync_inside *s, char to[32])
{
    char path[128];
    struct err err = {0};
    struct answer a = {0};
    snprintf(path, sizeof path, "/v1/sandboxes/%s", s->id);
    struct api_request q = {.method = "GET", .path = path, .body = ""};
    buf_init(&a.in, 0);
    int r = api_exchange(s->socket, &q, ANSWER_BYTES, &a.in, &a.status, &a.body, &err);
    json_t *v = r == 0 && a.status == 200
                    ? json_loadb(a.body.p, a.body.n, JSON_REJECT_DUPLICATES, NULL)
                    : NULL;
    snprintf(to, 32, "%s", v ? out_member(v, "state") : "");
    json_decref(v);
    answer_free(&a);
    return r < 0 || (a.status != 200 && a.status != 404) ? NULL : to;
}
