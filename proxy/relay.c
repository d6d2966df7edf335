#include "relay.h"

#include <string.h>

void relay_init(struct relay *r, struct front front)
{
    memset(r, 0, sizeof *r);
    r->front = front;
    clock_gettime(CLOCK_MONOTONIC, &r->begun);
}

void relay_open(struct relay *r, struct back back)
{
    r->back = back;
    if (r->request_ended)
        back.ops->end(back.self);
    else /* a kept connection has room at once, and nobody else says so */
        r->front.ops->wanted(r->front.self);
}

uint64_t relay_ms(const struct relay *r)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t ns =
        (now.tv_sec - r->begun.tv_sec) * INT64_C(1000000000) + now.tv_nsec - r->begun.tv_nsec;
    return (uint64_t)(ns / 1000000);
}

void relay_up_bytes(void *self, const void *p, size_t n)
{
    struct relay *r = self;
    r->up += n;
    if (r->back.ops)
        r->back.ops->data(r->back.self, p, n);
}

void relay_up_end(void *self)
{
    struct relay *r = self;
    r->request_ended = true;
    if (r->back.ops)
        r->back.ops->end(r->back.self);
}

size_t relay_up_room(void *self)
{
    struct relay *r = self;
    return r->back.ops ? r->back.ops->room(r->back.self) : 0;
}

void relay_resume(void *self)
{
    struct relay *r = self;
    if (r->back.ops)
        r->back.ops->resume(r->back.self);
}

void relay_down_bytes(void *self, const void *p, size_t n)
{
    struct relay *r = self;
    r->down += n;
    r->front.ops->data(r->front.self, p, n);
}

size_t relay_down_room(void *self)
{
    struct relay *r = self;
    return r->front.ops->room(r->front.self);
}

void relay_wanted(void *self)
{
    struct relay *r = self;
    r->front.ops->wanted(r->front.self);
}
