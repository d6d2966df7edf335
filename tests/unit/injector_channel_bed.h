/* What the tests of the injector channel share: a downstream that notes what it is told, and the
 * two kinds of raw peers. Only test files include this, so everything is static. */
#ifndef DURWARD_INJECTOR_CHANNEL_BED_H
#define DURWARD_INJECTOR_CHANNEL_BED_H

#include "injector_channel.h"
#include "http1_head.h"
#include "tap_main.h"
#include "wire.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct event_base *base;

static int bed_setup(void)
{
    base = event_base_new();
    return base ? 0 : -1;
}

static int bed_teardown(void)
{
    event_base_free(base);
    return 0;
}

/* Turns of the loop until nothing more happens by itself. */
static void turn(void)
{
    for (int i = 0; i < 50; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
}

struct noted {
    size_t room; /* what room() says */
    unsigned replies, trailers, ends, fails, wanted;
    unsigned status;
    char code[64], id[64];
    uint64_t bytes;
    struct buf body; /* the first 4 KiB */
    struct head reply;
};

static UNUSED void noted_init(struct noted *n, size_t room)
{
    memset(n, 0, sizeof *n);
    n->room = room;
    buf_init(&n->body, 4096);
    http_head_init(&n->reply);
}

static UNUSED void noted_free(struct noted *n)
{
    buf_free(&n->body);
    http_head_free(&n->reply);
}

static void noted_reply(void *self, const struct head *h)
{
    struct noted *n = self;
    n->replies++;
    n->status = h->status;
    CU_ASSERT_EQUAL(http_head_copy(&n->reply, h), 0);
}

static void noted_data(void *self, const void *p, size_t len)
{
    struct noted *n = self;
    size_t keep = buf_room(&n->body) < len ? buf_room(&n->body) : len;
    CU_ASSERT_EQUAL(buf_append(&n->body, p, keep), 0);
    n->bytes += len;
}

static void noted_trailers(void *self, const struct head *h)
{
    struct noted *n = self;
    CU_ASSERT_EQUAL(n->ends, 0);
    n->trailers += (unsigned)h->n;
}

static void noted_end(void *self)
{
    ((struct noted *)self)->ends++;
}

static void noted_fail(void *self, unsigned status, const char *code, const char *id)
{
    struct noted *n = self;
    n->fails++;
    n->status = status;
    snprintf(n->code, sizeof n->code, "%s", code);
    snprintf(n->id, sizeof n->id, "%s", id ? id : "NULL");
}

static size_t noted_room(void *self)
{
    return ((struct noted *)self)->room;
}

static void noted_wanted(void *self)
{
    ((struct noted *)self)->wanted++;
}

static const struct downstream_ops noted_ops = {
    .reply = noted_reply,
    .data = noted_data,
    .trailers = noted_trailers,
    .end = noted_end,
    .fail = noted_fail,
    .room = noted_room,
    .wanted = noted_wanted,
};

static UNUSED struct downstream noted_downstream(struct noted *n)
{
    return (struct downstream){&noted_ops, n};
}

/* A request head with this framing. */
static UNUSED void bed_head(struct head *h, enum body_kind body, uint64_t length)
{
    static const struct limits limits = {.head_bytes = 32768, .headers = 100, .target_bytes = 8192};
    struct refusal why;
    CU_ASSERT_EQUAL_FATAL(
        http1_parse_request(h, SLICE("POST /p?q HTTP/1.1\r\nHost: a\r\nX-A: b\r\nX-E:\r\n\r\n"),
                            &limits, &why),
        0);
    http_head_remove(h, "host");
    h->body = body;
    h->length = length;
}

static void bed_send(int fd, struct msg *m)
{
    CU_ASSERT_EQUAL(msg_send(fd, m), 0);
    msg_done(m);
}

/* True when the far end has closed; messages before that are dropped. */
static UNUSED bool bed_closed(int fd)
{
    struct msg m;
    int r;
    turn();
    while ((r = msg_recv(fd, &m)) == 1)
        msg_done(&m);
    return r == 0;
}

static struct bed_datagram {
    int fd; /* whose messages are left */
    struct msg all;
} bed_held = {.fd = -1};

/* The next message of a channel that gathers, at once, or false. */
static UNUSED bool bed_next(int fd, struct msg *m)
{
    struct bed_datagram *held = &bed_held;
    struct slice fields;
    uint8_t type[2];
    if (held->fd != fd || buf_len(&held->all.body) == 0) {
        if (held->fd >= 0)
            msg_done(&held->all);
        held->fd = -1;
        if (msg_recv(fd, m) != 1)
            return false;
        if (m->type != IPC_GATHERED)
            return true;
        *held = (struct bed_datagram){fd, *m};
    }
    if ((msg_get_u8(&held->all, &type[0]) | msg_get_u8(&held->all, &type[1]) |
         msg_get_slice(&held->all, IPC_MSG_MAX, &fields)) < 0)
        return false;
    msg_init(m, (uint16_t)(type[0] << 8 | type[1]));
    return buf_append_slice(&m->body, fields) == 0;
}

/* The next message of this type for exchange 1 at once, or false. */
static UNUSED bool bed_take(int fd, uint16_t type, struct msg *m)
{
    uint32_t id;
    turn();
    if (!bed_next(fd, m))
        return false;
    if (m->type == type && msg_get_u32(m, &id) == 0)
        return true;
    msg_done(m);
    return false;
}

static void bed_put_id(struct msg *m, uint16_t type, uint32_t id)
{
    msg_init(m, type);
    msg_put_u32(m, id);
}

static UNUSED void bed_body(int fd, uint32_t id, size_t n)
{
    static const char zeros[INJECTOR_CHANNEL_BODY_MAX + 1];
    struct msg m;
    bed_put_id(&m, W_INJECTOR_CHANNEL_BODY, id);
    msg_put_bytes(&m, zeros, n);
    bed_send(fd, &m);
}

static UNUSED void bed_id(int fd, uint16_t type, uint32_t id)
{
    struct msg m;
    bed_put_id(&m, type, id);
    bed_send(fd, &m);
}

static UNUSED void bed_abort(int fd, uint32_t id, const char *code)
{
    struct msg m;
    bed_put_id(&m, W_INJECTOR_CHANNEL_ABORT, id);
    msg_put_str(&m, code);
    bed_send(fd, &m);
}

static UNUSED void bed_credit(int fd, uint32_t id, uint32_t n)
{
    struct msg m;
    bed_put_id(&m, W_INJECTOR_CHANNEL_CREDIT, id);
    msg_put_u32(&m, n);
    bed_send(fd, &m);
}

#endif
