/* A receive-pack body: its commands, and what its pack shows. */
#include "pack.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
    (void)pack_shows((struct slice){body.p + p.end, size - p.end}, &p);
    buf_init(&out, 1 << 20);
    if (push_answer(&p, "reason", &out) == 0 && buf_len(&out) < 8)
        abort();
    buf_free(&out);
    return 0;
}
