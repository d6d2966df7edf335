/* durward audit recording: what a session said, put together again from its pieces in the log. */
#include "audit_read.h"
#include "buf.h"
#include "out.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORDING_MAX = 100 * 1000000 };

struct recording {
    struct buf text;
    const char *wrong; /* NULL: nothing is, so far */
    bool any, whole;
};

/* "4711 bytes, sha256:HEX...": the last piece says what all of them make. */
static bool is_whole(const struct recording *r, const char *detail)
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    char want[120], hex[2 * 32 + 1] = "";
    struct slice text = buf_slice(&r->text);
    if (EVP_Digest(text.p, text.n, sum, &n, EVP_sha256(), NULL) != 1 || n != 32)
        return false;
    for (size_t i = 0; i < n; i++)
        snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    snprintf(want, sizeof want, "%zu bytes, sha256:%s", text.n, hex);
    return strncmp(detail, want, strlen(want)) == 0;
}

static void take(void *arg, const struct query_row *row)
{
    struct recording *r = arg;
    json_t *o = json_loadb(row->line.p, row->line.n, 0, NULL);
    const json_t *offset = json_object_get(o, "offset");
    const char *body = json_string_value(json_object_get(o, "body"));
    if (strcmp(row->code, "recording") != 0) {
        json_decref(o);
        return;
    }
    if (r->whole || (r->any && json_integer_value(offset) == 0 && body))
        r->wrong = "several requests of this log and its runs have that id; name the directory "
                   "of one with --dir";
    else if (!json_is_integer(offset) ||
             (uint64_t)json_integer_value(offset) != buf_len(&r->text) ||
             (body && buf_append_str(&r->text, body) < 0))
        r->wrong = "a piece of it is not in the log";
    r->any = true;
    if (r->wrong == NULL && body == NULL) {
        r->whole = is_whole(r, row->detail);
        if (!r->whole)
            r->wrong = "it is not what its end in the log says";
        else if (strchr(row->detail, ';'))
            out_error("the recording ends before its session: %s", strchr(row->detail, ';') + 2);
    }
    json_decref(o);
}

/* What is wrong with it; NULL: nothing. */
static const char *find(const char *dir, const char *id, struct recording *r, struct err *err)
{
    const struct query_filter f = {.id = id, .kinds = 1u << RECORD_BODY};
    if (audit_each(dir, &f, take, r, err) < 0)
        return err->text;
    if (!r->any)
        return "no recording has that id; its request's rule needs 'record', see durward.yaml(5)";
    if (r->wrong)
        return r->wrong;
    return r->whole ? NULL : "it has no end: the session goes on, or was cut with its role";
}

int audit_run_recording(int argc, char **argv)
{
    struct args a = {.cmd = args_verb(audit_verbs, "audit recording"), .argc = argc, .argv = argv};
    struct audit_where w = {0};
    struct recording r = {0};
    struct err err = {0};
    int code = args_into(&a, &w);
    if (code != ARGS_END)
        return code;
    if (a.next == argc)
        return args_usage(a.cmd, "which request? 'durward audit query' prints each one's id");
    const char *id = argv[a.next++];
    char *dir = audit_where_dir(&a, &w, &code);
    if (dir == NULL)
        return code;
    buf_init(&r.text, RECORDING_MAX);
    const char *wrong = find(dir, id, &r, &err);
    struct slice text = buf_slice(&r.text);
    bool written = text.n == 0 || fwrite(text.p, 1, text.n, stdout) == text.n;
    if (wrong)
        out_error("%s", wrong);
    buf_free(&r.text);
    free(dir);
    return out_flush() < 0 || !written || wrong ? EXIT_NO : EXIT_OK;
}
