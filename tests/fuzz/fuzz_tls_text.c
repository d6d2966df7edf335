/* What the vault is asked to sign for a handshake: only the one text of TLS 1.3, or whole messages
 * of TLS 1.2; a byte more or less is none. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tls_sign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char copy[TLS_SIGNED_MAX + 1];
    struct slice text = {(const char *)data, size};
    if (size > TLS_SIGNED_MAX || !tls_is_signed_text(text))
        return 0;
    must(size >= 16); /* four messages */
    if (data[0] == ' ')
        must(size == 64 + 34 + 32 || size == 64 + 34 + 48);
    else
        must(data[0] == 1); /* ClientHello */
    must(!tls_is_signed_text((struct slice){text.p, size - 1}));
    must(!tls_is_signed_text((struct slice){text.p + 1, size - 1}));
    memcpy(copy, data, size);
    copy[size] = 16;
    must(!tls_is_signed_text((struct slice){copy, size + 1}));
    return 0;
}
