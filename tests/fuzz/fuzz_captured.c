/* Replies with secrets: what is written holds no value that was taken out, and is read again. First
 * byte: the form. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "captured.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void none_left(const struct captured_field *f, size_t n, struct slice written)
{
    for (size_t i = 0; i < n; i++) {
        struct slice value = f[i].value ? secret_slice(f[i].value) : (struct slice){"", 0};
        /* with a tilde it may be made of a placeholder and what stands beside that */
        if (value.n > 0 && slice_find(value, '\n') < 0 && slice_find(value, '~') < 0)
            must(slice_find_slice(written, value) < 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct captured_field f[] = {{"a", "~~~~1~~~~", "x", NULL},
                                 {"*.k", "~~~~2~~~~", "y", NULL},
                                 {"r.c", "~~~~3~~~~", "z", NULL},
                                 {"l.*.a", "~~~~1~~~~", "x", NULL}};
    struct err err = {0};
    struct buf out;
    if (size < 1 || size > CAPTURED_REPLY_MAX)
        return 0;
    enum captured_form form = data[0] % 3;
    buf_init_wiped(&out, CAPTURED_WRITTEN_MAX);
    struct slice body = {(const char *)data + 1, size - 1};
    if (captured_rewrite(body, form, f, ARRAY_LEN(f), &out, &err) == 0)
        none_left(f, ARRAY_LEN(f), buf_slice(&out));
    else
        must(err.text[0] != 0);
    for (size_t i = 0; i < ARRAY_LEN(f); i++)
        secret_unref(f[i].value);
    buf_free(&out);
    return 0;
}
