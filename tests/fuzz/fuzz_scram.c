/* SCRAM's texts of whatever bytes: what a server says first gives a text that whoever signs reads
 * again, with the same salt and iterations; no other text is signed. */
#include "scram.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
    if (!right)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char nonce[] = "abcdefghijklmnopqrstuvwx";
    static const unsigned char signature[SCRAM_HASH] = {1};
    struct slice in = {(const char *)data, size};
    struct scram_parts parts;
    struct scram s;
    struct err err;
    if (size > 4096)
        return 0;
    scram_init(&s, nonce, SCRAM_UNBOUND, SLICE(""));
    if (scram_server_first(&s, in, &err) == 0) {
        require(scram_text_read(scram_text(&s), &parts, &err) == 0);
        require(parts.iterations >= SCRAM_ITERATIONS_LEAST &&
                parts.iterations <= SCRAM_ITERATIONS_MOST &&
                slice_starts(parts.nonce, SLICE("abcdefghijklmnopqrstuvwx")));
    }
    scram_free(&s);
    if (scram_text_read(in, &parts, &err) == 0)
        require(slice_starts(in, SLICE("n=,r=")) && parts.iterations >= SCRAM_ITERATIONS_LEAST);
    (void)!scram_server_final(in, signature, &err);
    return 0;
}
