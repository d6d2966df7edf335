/* Formats and wraps errors. The macros by which err.h tells an analyser that these functions return
 * -1 are taken away first. */
#include "err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* what an analyser is told of them elsewhere */
#undef err_set
#undef err_sys
#undef err_wrap

int err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
    if (e == NULL)
        return -1;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    e->code = code;
    return -1;
}

int err_sys(struct err *e, const char *fmt, ...)
{
    int saved = errno;
    if (e == NULL)
        return -1;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof e->text)
        snprintf(e->text + n, sizeof e->text - (size_t)n, ": %s", strerror(saved));
    e->code = ERR_SYS;
    errno = saved;
    return -1;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    if (e == NULL)
        return -1;
    char old[sizeof e->text];
    memcpy(old, e->text, sizeof old);
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof e->text)
        snprintf(e->text + n, sizeof e->text - (size_t)n, ": %.700s", old);
    if (e->code == ERR_NONE)
        e->code = ERR_INTERNAL;
    return -1;
}
