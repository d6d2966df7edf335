/* Keeps the first bytes of both bodies and writes them to the journal in pieces that fit a record;
 * of a body with a placeholder in it, the record only says so. */
#include "body_capture.h"

#include "buf.h"

#include <stdio.h>
#include <stdlib.h>

enum { PIECE = 2000 }; /* bytes in one record: below RECORD_FIELD_MAX */

struct body_capture {
    size_t max;
    struct {
        struct buf kept;
        uint64_t passed;
        bool broken;
    } side[BODY_SIDES];
};

struct body_capture *body_capture_new(size_t max)
{
    struct body_capture *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->max = max;
    for (size_t i = 0; i < BODY_SIDES; i++)
        buf_init_wiped(&c->side[i].kept, max);
    return c;
}

void body_capture_free(struct body_capture *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < BODY_SIDES; i++)
        buf_free(&c->side[i].kept);
    free(c);
}

void body_capture_take(struct body_capture *c, enum body_side s, const void *p, size_t n)
{
    size_t room = buf_room(&c->side[s].kept);
    c->side[s].passed += n;
    if (c->side[s].broken || buf_append(&c->side[s].kept, p, n < room ? n : room) < 0)
        c->side[s].broken = true; /* memory is out: what there is stands at the beginning */
}

static size_t piece(struct journal *j, uint64_t counter, enum body_side s, size_t at,
                    struct slice text, const char *detail)
{
    struct record r;
    record_init(&r, RECORD_BODY, counter);
    record_put_str(&r, RF_CODE, s == BODY_REQUEST ? "request" : "reply");
    record_put_u64(&r, RF_OFFSET, at);
    record_put(&r, RF_BODY, text);
    record_put_str(&r, RF_DETAIL, detail);
    return journal_note(j, &r) < 0;
}

static size_t side(const struct body_capture *c, enum body_side s, struct journal *j,
                   uint64_t counter, body_capture_fn unfit, void *arg)
{
    struct slice all = buf_slice(&c->side[s].kept);
    char detail[80] = "";
    size_t lost = 0;
    if (all.n < c->side[s].passed)
        snprintf(detail, sizeof detail, "the first %zu of %llu bytes", all.n,
                 (unsigned long long)c->side[s].passed);
    if (unfit && unfit(arg, all))
        return piece(j, counter, s, 0, SLICE("[placeholder]"),
                     "not recorded: it holds a placeholder");
    for (size_t at = 0; at < all.n; at += PIECE) {
        size_t n = all.n - at < PIECE ? all.n - at : PIECE;
        lost +=
            piece(j, counter, s, at, (struct slice){all.p + at, n}, at + n == all.n ? detail : "");
    }
    return lost + (all.n == 0 && c->side[s].passed > 0); /* there was no memory for a byte */
}

size_t body_capture_record(const struct body_capture *c, struct journal *j, uint64_t counter,
                           body_capture_fn unfit, void *arg)
{
    size_t lost = 0;
    for (int s = 0; c && s < BODY_SIDES; s++)
        lost += side(c, (enum body_side)s, j, counter, unfit, arg);
    return lost;
}
