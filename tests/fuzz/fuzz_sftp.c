/* Packets of SFTP, of a client and of a server, and paths: what is read is written and read again,
 * and is the same; what is plain stays within its bounds. The first byte says which. */
#include "sftp_ask.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct slice body_of(const struct buf *b)
{
    struct slice body;
    size_t n;
    if (sftp_packet_next(buf_slice(b), SFTP_SPACE, &body, &n) != 1 || n != buf_len(b))
        abort();
    return body;
}

static void request(struct slice s)
{
    struct sftp_request q, again;
    struct ssh_file_asked asked;
    struct buf b;
    if (sftp_request_read(s, &q) < 0)
        return;
    buf_init(&b, SFTP_SPACE);
    if (sftp_request_write(&q, &b) < 0) {
        if (q.op != SFTP_OTHER)
            abort();
    } else if (sftp_request_read(body_of(&b), &again) < 0 || again.op != q.op ||
               !slice_eq(again.path, q.path) || !slice_eq(again.to, q.to) ||
               !slice_eq(again.handle, q.handle) || !slice_eq(again.data, q.data) ||
               memcmp(&again.attrs, &q.attrs, sizeof q.attrs) != 0 || again.offset != q.offset ||
               again.n != q.n || again.flags != q.flags || again.id != q.id) {
        abort();
    }
    (void)sftp_ask(&q, &asked);
    (void)sftp_attrs_settle(q.op, &q.attrs);
    buf_free(&b);
}

static void reply(struct slice s)
{
    struct sftp_reply r, again;
    struct buf b;
    if (sftp_reply_read(s, &r) < 0)
        return;
    buf_init(&b, SFTP_SPACE);
    if (sftp_reply_write(&r, &b) < 0 || sftp_reply_read(body_of(&b), &again) < 0 ||
        again.type != r.type || again.id != r.id || again.n_names != r.n_names ||
        again.status != r.status || !slice_eq(again.text, r.text))
        abort();
    for (int op = SFTP_OPEN; op < SFTP_OPS; op++)
        (void)sftp_reply_fits(&r, (enum sftp_op)op);
    buf_free(&b);
}

static void path(struct slice s)
{
    static const char *const patterns[] = {"/a/**", "/a/*b*c", "~/x*", "/a/*/d/**"};
    char to[SSH_FILE_PATH_MAX + 1];
    struct ssh_files f = {0};
    for (unsigned r = 0; r < SSH_FILE_RIGHTS; r++) {
        f.patterns[r] = patterns + r;
        f.n[r] = 2;
    }
    (void)ssh_file_pattern_ok(s);
    if (!sftp_path_settle(SLICE("/a/home"), s, s.n % 2, to))
        return;
    if (!ssh_file_path_ok(slice_str(to)))
        abort();
    for (int v = 0; v < SSH_FILE_VERBS; v++) {
        const struct ssh_file_asked asked = {(enum ssh_file_verb)v, slice_str(to),
                                             SLICE_INIT("/a/x")};
        const char *code = ssh_files_refused(&f, SLICE("/a/home"), &asked);
        if (code == NULL && (strncmp(to, "/a", 2) != 0 && strcmp(to, "/") != 0))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t known;
    if (size == 0)
        return 0;
    struct slice s = {(const char *)data + 1, size - 1};
    switch (data[0]) {
    case 'q':
        request(s);
        break;
    case 'r':
        reply(s);
        break;
    case 'h':
        (void)sftp_hello_read(s, SFTP_VERSION_IS, &known);
        break;
    default:
        path(s);
    }
    return 0;
}
