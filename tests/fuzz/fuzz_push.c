/* A receive-pack body: its commands, and what its pack shows; the pack's end as it comes in pieces,
 * against the pack read whole. */
#include "pack.h"
#include "pack_end.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A pack that can be read whole ends where it ends. */
static void end_of(struct slice pack, const struct push *p)
{
    struct pack_end e;
    enum pack_end_state s = PACK_END_HEAD;
    size_t at = 0, step = 1 + pack.n % 37;
    bool good = pack_shows(pack, p) != PACK_BAD;
    pack_end_init(&e, p->n ? (unsigned)p->commands[0].old_id.n / 2 : 20);
    while (at < pack.n && s < PACK_END_WHOLE) {
        size_t n = pack.n - at < step ? pack.n - at : step;
        s = pack_end_take(&e, (struct slice){pack.p + at, n});
        at += n;
    }
    if (good && (s != PACK_END_WHOLE || at != pack.n))
        abort();
    pack_end_done(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice body = {(const char *)data, size};
    struct push p;
    struct buf out;
    if (push_read(body, &p) != 1)
        return 0;
    if (p.end > size || p.n > PUSH_COMMANDS)
        abort();
    for (size_t i = 0; i < p.n; i++)
        (void)push_ref_matches("refs/heads/*-*/**", p.commands[i].ref);
    end_of((struct slice){body.p + p.end, size - p.end}, &p);
    buf_init(&out, 1 << 20);
    if (push_answer(&p, "reason", &out) == 0 && buf_len(&out) < 8)
        abort();
    buf_free(&out);
    return 0;
}
