/* The client's half of the WebSocket of an `exec`. */
#include "kube_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { IN_MAX = 64 * 1024, TAKE = 16 * 1024 };
enum { ALIVE_S = 15, ALIVE_TIMES = 4 }; /* of silence, and how often the kernel asks */

/* A link that is cut ends what went through it, in a minute or so, and not when TCP sees it. */
static void ask_whether_alive(int fd)
{
    const int rows[][3] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, ALIVE_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, ALIVE_S},
        {IPPROTO_TCP, TCP_KEEPCNT, ALIVE_TIMES},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, ALIVE_S * (ALIVE_TIMES + 1) * 1000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        (void)setsockopt(fd, rows[i][0], rows[i][1], &rows[i][2], sizeof(int));
}

int kube_exec_open(const struct kube *k, const char *what, struct kube_exec *e, struct err *err)
{
    e->channel = -1;
    e->over = false;
    websocket_reader_init(&e->reader, false);
    buf_init(&e->in, IN_MAX);
    buf_init(&e->out, KUBE_STREAM_OUT_MAX + 64);
    if (kube_upgrade(k, what, KUBE_STREAM_PROTOCOL, &e->at, &e->in, err) < 0) {
        buf_free(&e->in);
        return -1;
    }
    ask_whether_alive(e->at.fd);
    SSL_set_mode(e->at.ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return fcntl(e->at.fd, F_SETFL, O_NONBLOCK) < 0 ? err_sys(err, "fcntl") : 0;
}

void kube_exec_close(struct kube_exec *e)
{
    kube_unwatch(&e->at);
    buf_free(&e->in);
    buf_free(&e->out);
}

/* ---- out ---- */

/* A frame of a client is masked (RFC 6455, 5.3). */
static int put_frame(struct kube_exec *e, enum websocket_opcode op, const char *head, size_t head_n,
                     const void *p, size_t n)
{
    unsigned char to[WEBSOCKET_HEADER_MAX], mask[4];
    size_t all = head_n + n;
    if (RAND_bytes(mask, sizeof mask) != 1)
        return -1;
    size_t header = websocket_header(to, op, true, all, mask);
    if (buf_room(&e->out) < header + all)
        return -1;
    unsigned char *at = buf_reserve(&e->out, header + all);
    if (at == NULL)
        return -1;
    memcpy(at, to, header);
    if (head_n)
        memcpy(at + header, head, head_n);
    if (n)
        memcpy(at + header + head_n, p, n);
    websocket_mask((char *)at + header, all, mask, 0);
    buf_commit(&e->out, header + all);
    return 0;
}

int kube_exec_put(struct kube_exec *e, enum kube_channel c, const void *p, size_t n)
{
    char channel = (char)c;
    return put_frame(e, WEBSOCKET_BINARY, &channel, 1, p, n);
}

/* 1: all is sent; 0: not now. */
static int send_out(struct kube_exec *e, struct err *err)
{
    while (buf_len(&e->out) > 0) {
        ERR_clear_error();
        int n = SSL_write(e->at.ssl, buf_data(&e->out), (int)buf_len(&e->out));
        if (n > 0) {
            buf_drain(&e->out, (size_t)n);
            continue;
        }
        int why = SSL_get_error(e->at.ssl, n);
        return why == SSL_ERROR_WANT_WRITE || why == SSL_ERROR_WANT_READ
                   ? 0
                   : err_set(err, ERR_UPSTREAM, "the API server hung up");
    }
    return 1;
}

/* ---- in ---- */

static void take_piece(struct kube_exec *e, const struct websocket_part *part)
{
    const char *p = part->p;
    size_t n = part->n;
    if (e->channel < 0 && n > 0) {
        e->channel = (unsigned char)*p++;
        n--;
    }
    if (n > 0 && e->channel >= KUBE_STDOUT && e->channel <= KUBE_STATUS)
        e->on(e->arg, (enum kube_channel)e->channel, p, n);
    if (part->last)
        e->channel = -1;
}

static int take_control(struct kube_exec *e, const struct websocket_part *part, struct err *err)
{
    if (part->opcode == WEBSOCKET_CLOSE)
        e->over = true;
    if (part->opcode == WEBSOCKET_PING &&
        put_frame(e, WEBSOCKET_PONG, NULL, 0, part->p, part->n) < 0)
        return err_set(err, ERR_LIMIT, "the API server asks too often whether we are there");
    return 0;
}

static int take_frames(struct kube_exec *e, struct err *err)
{
    static char scratch[WEBSOCKET_PIECE_MAX];
    struct slice in = buf_slice(&e->in);
    size_t had = in.n;
    int r = 0;
    for (bool more = true; more && r == 0;) {
        struct websocket_part part;
        switch (websocket_read(&e->reader, &in, scratch, &part)) {
        case WEBSOCKET_PIECE:
            take_piece(e, &part);
            break;
        case WEBSOCKET_CONTROL:
            r = take_control(e, &part, err);
            break;
        case WEBSOCKET_VIOLATION:
            r = err_set(err, ERR_UPSTREAM, "the API server's WebSocket is malformed");
            break;
        case WEBSOCKET_MORE:
            more = false;
            break;
        }
    }
    buf_drain(&e->in, had - in.n);
    return r;
}

static int take_in(struct kube_exec *e, struct err *err)
{
    unsigned char *to = buf_reserve(&e->in, TAKE);
    if (to == NULL)
        return err_set(err, ERR_LIMIT, "the API server's WebSocket is malformed");
    ERR_clear_error();
    int n = SSL_read(e->at.ssl, to, TAKE);
    if (n > 0) {
        buf_commit(&e->in, (size_t)n);
        return take_frames(e, err);
    }
    int why = SSL_get_error(e->at.ssl, n);
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
        e->over = true; /* whether all has come is seen by the status */
    return 0;
}

int kube_exec_turn(struct kube_exec *e, bool more, struct err *err)
{
    if (send_out(e, err) < 0)
        return -1;
    if (!more || e->over)
        return 0;
    if (buf_len(&e->in) > 0 && take_frames(e, err) < 0) /* what came with the head */
        return -1;
    do {
        if (take_in(e, err) < 0)
            return -1;
    } while (!e->over && SSL_pending(e->at.ssl) > 0);
    return 0;
}

short kube_exec_events(const struct kube_exec *e, bool more)
{
    return (short)((more ? POLLIN : 0) | (buf_len(&e->out) ? POLLOUT : 0));
}

/* ---- the end ---- */

static int exit_code(const json_t *status)
{
    const json_t *cause;
    size_t i;
    uint64_t code;
    json_array_foreach(json_object_get(json_object_get(status, "details"), "causes"), i, cause)
    {
        const char *reason = json_string_value(json_object_get(cause, "reason"));
        const char *text = json_string_value(json_object_get(cause, "message"));
        if (reason && text && strcmp(reason, "ExitCode") == 0 &&
            slice_u64(slice_str(text), 255, &code) == 0)
            return (int)code;
    }
    return -1;
}

int kube_exec_status(struct slice said, char *why, size_t size)
{
    json_t *v = json_loadb(said.p, said.n, JSON_REJECT_DUPLICATES, NULL);
    const char *status = json_string_value(json_object_get(v, "status"));
    const char *text = json_string_value(json_object_get(v, "message"));
    int code = status && strcmp(status, "Success") == 0 ? 0 : exit_code(v);
    snprintf(why, size, "%.200s", code >= 0 ? "" : text ? text : "the connection to the pod broke");
    for (char *c = why; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = ' ';
    json_decref(v);
    return code;
}
