/* Sends an answer of the gate's own: its head first, then its body as its downstream has room. */
#include "prepared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void prepared_init(struct prepared *p, size_t max)
{
    memset(p, 0, sizeof *p);
    buf_init(&p->body, max);
}

void prepared_free(struct prepared *p)
{
    buf_free(&p->body);
    free(p->location);
    free(p->cookie);
    p->location = p->cookie = NULL;
}

static int prepared_tell(const struct prepared *p, const struct downstream *f)
{
    struct head h;
    char length[24];
    http_head_init(&h);
    h.status = p->status;
    h.minor = 1;
    h.keep_alive = true;
    h.body = p->bare ? BODY_NONE : BODY_LENGTH;
    h.length = buf_len(&p->body);
    snprintf(length, sizeof length, "%zu", buf_len(&p->body));
    int rc = http_head_add(&h, "content-type", slice_str(p->type));
    if (rc == 0 && p->bare) /* else whoever frames the body writes it */
        rc = http_head_add(&h, "content-length", slice_str(length));
    if (rc == 0)
        rc = http_head_add(&h, "cache-control", SLICE("no-store"));
    for (size_t i = 0; i < p->n_fields && rc == 0; i++)
        rc = http_head_add(&h, p->fields[i].name, slice_str(p->fields[i].value));
    if (rc == 0 && p->location)
        rc = http_head_add(&h, "location", slice_str(p->location));
    if (rc == 0 && p->cookie)
        rc = http_head_add(&h, "set-cookie", slice_str(p->cookie));
    if (rc == 0)
        f->ops->reply(f->self, &h);
    http_head_free(&h);
    return rc;
}

enum prepared_sent prepared_send(struct prepared *p, const struct downstream *f)
{
    if (!p->told && prepared_tell(p, f) < 0)
        return PREPARED_FAILED;
    p->told = true;
    while (!p->bare && buf_len(&p->body) > 0) {
        size_t n = f->ops->room(f->self);
        if (n == 0)
            return PREPARED_MORE;
        if (n > buf_len(&p->body))
            n = buf_len(&p->body);
        f->ops->data(f->self, buf_data(&p->body), n);
        buf_drain(&p->body, n);
    }
    return PREPARED_ALL;
}
