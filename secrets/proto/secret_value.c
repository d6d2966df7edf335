/* Trims the end of a line, refuses control bytes, and copies a value into secret memory of its own
 * size. */
#include "secret_value.h"

size_t secret_value_trim(struct slice s)
{
    if (s.n > 0 && s.p[s.n - 1] == '\n') {
        s.n--;
        if (s.n > 0 && s.p[s.n - 1] == '\r')
            s.n--;
    }
    return s.n;
}

int secret_value_check(struct slice s, bool lines, struct err *err)
{
    if (s.n == 0)
        return err_set(err, ERR_DENIED, "its value is empty");
    if (s.n > SECRET_MAX)
        return err_set(err, ERR_LIMIT, "its value is longer than %d bytes", SECRET_MAX);
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (lines && (c == '\n' || c == '\r' || c == '\t'))
            continue;
        if (c == '\n' || c == '\r')
            return err_set(err, ERR_DENIED,
                           "its value has more than one line; a credential is one line");
        if (c < 0x20 || c == 0x7f)
            return err_set(err, ERR_DENIED, "its value has a control byte (0x%02x at byte %zu)", c,
                           i + 1);
    }
    return 0;
}

struct secret *secret_value_of(struct secret *raw, bool lines, struct err *err)
{
    struct slice s = secret_slice(raw);
    s.n = secret_value_trim(s);
    struct secret *value = NULL;
    if (secret_value_check(s, lines, err) == 0) {
        value = secret_new(s.p, s.n); /* a copy of its size: a store is read into 64 KiB */
        if (value == NULL)
            err_set(err, ERR_INTERNAL, "no memory for a secret");
    }
    secret_unref(raw);
    return value;
}
