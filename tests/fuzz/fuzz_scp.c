/* The protocol that scp had before SFTP: a command, then what a client and a server say, in parts.
 * A session asks for nothing that is no request, of no name that leads elsewhere, and its buffers
 * stay within their bounds. A line of the input is the command; then each part is a byte (whose it
 * is) and one of its length. */
#include "scp_session.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool leads_elsewhere(struct slice path, const struct scp_command *c)
{
    struct slice asked = slice_str(c->path);
    if (slice_find_slice(asked, SLICE("..")) >= 0)
        return false;
    while (path.n > 0) {
        ssize_t slash = slice_find(path, '/');
        struct slice name = {path.p, slash < 0 ? path.n : (size_t)slash};
        if (slice_eq_str(name, ".."))
            return true;
        path =
            slash < 0 ? SLICE("") : (struct slice){path.p + slash + 1, path.n - (size_t)slash - 1};
    }
    return false;
}

static void look(struct buf *requests, const struct scp_command *c)
{
    struct slice body;
    struct sftp_request q;
    size_t n;
    while (buf_len(requests) > 0) {
        if (sftp_packet_next(buf_slice(requests), SFTP_REQUEST_MAX, &body, &n) != 1 ||
            (body.p[0] != SFTP_INIT &&
             (sftp_request_read(body, &q) < 0 || leads_elsewhere(q.path, c))))
            abort();
        buf_drain(requests, n);
    }
}

static void session(const struct scp_command *c, struct slice said)
{
    struct buf client, replies, out, requests;
    struct scp_io io = {&client, &replies, &out, &requests, false};
    struct scp_session *s = scp_session_new(c);
    bool over = false;
    buf_init(&client, SCP_CLIENT_MAX);
    buf_init(&replies, SFTP_SPACE);
    buf_init(&out, SFTP_SPACE);
    buf_init(&requests, SFTP_REQUEST_MAX + 4 + SCP_CLIENT_MAX);
    for (unsigned turns = 0; s && !over && turns < 2000; turns++) {
        size_t n = said.n < 2 ? 0 : (unsigned char)said.p[1];
        struct slice part = {said.p + 2, said.n < 2 + n ? 0 : n};
        if (said.n >= 2 && buf_append_slice(said.p[0] % 2 ? &replies : &client, part) < 0)
            break;
        io.eof = said.n < 2 + n;
        over = scp_session_run(s, &io);
        look(&requests, c);
        if (buf_len(&out) > SCP_OUT_MAX)
            buf_clear(&out);
        if (io.eof)
            break;
        said = (struct slice){part.p + n, said.n - 2 - n};
    }
    scp_session_free(s);
    buf_free(&client);
    buf_free(&replies);
    buf_free(&out);
    buf_free(&requests);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice all = {(const char *)data, size};
    ssize_t end = slice_find(all, '\n');
    struct slice line = {all.p, end < 0 ? all.n : (size_t)end};
    struct scp_command c;
    if (scp_command_read(line, &c) < 0)
        return 0;
    (void)scp_command_matches(&c, line);
    if (end >= 0)
        session(&c, (struct slice){all.p + end + 1, all.n - (size_t)end - 1});
    return 0;
}
