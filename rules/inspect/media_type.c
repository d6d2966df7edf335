/* Reads media types strictly: servers cut them at ';', at ',', at a blank, or look for words
 * anywhere in them, and where these readings differ it is no type here. */
#include "media_type.h"

#include <string.h>

static bool token_ok(struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!ascii_is_alnum(s.p[i]) && (s.p[i] == 0 || !strchr("!#$&^_.+-", s.p[i])))
            return false;
    return s.n > 0;
}

bool media_type_has_word(struct slice text, struct slice word)
{
    for (size_t i = 0; i + word.n <= text.n; i++)
        if (slice_istarts((struct slice){text.p + i, text.n - i}, word))
            return true;
    return false;
}

bool media_type_is_json(struct slice type)
{
    static const char *const others[] = {"form", "multipart", "urlencoded"};
    ssize_t slash = slice_find(type, '/');
    if (slice_ieq(type, SLICE("application/json")))
        return true;
    if (slash < 0 || type.n < 6 ||
        !slice_ieq((struct slice){type.p + type.n - 5, 5}, SLICE("+json")))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (media_type_has_word(type, slice_str(others[i])))
            return false;
    size_t at = (size_t)slash;
    return token_ok((struct slice){type.p, at}) && at + 6 < type.n &&
           token_ok((struct slice){type.p + at + 1, type.n - at - 1});
}

bool media_type_parameter_ok(struct slice p)
{
    ssize_t eq = slice_find(p, '=');
    if (eq <= 0)
        return p.n == 0;
    struct slice name = slice_trim((struct slice){p.p, (size_t)eq});
    struct slice value = slice_trim((struct slice){p.p + eq + 1, p.n - (size_t)eq - 1});
    if (!slice_ieq_str(name, "charset"))
        return true;
    return slice_ieq_str(value, "utf-8") || slice_ieq_str(value, "\"utf-8\"") ||
           slice_ieq_str(value, "utf8");
}

/* A name and a value that need no quotes, but those around a charset. */
static bool plain_parameter(struct slice p, unsigned *charsets)
{
    ssize_t eq = slice_find(p, '=');
    if (p.n == 0)
        return true;
    if (eq <= 0 || !media_type_parameter_ok(p))
        return false;
    struct slice name = {p.p, (size_t)eq}, value = {p.p + eq + 1, p.n - (size_t)eq - 1};
    bool charset = slice_ieq_str(name, "charset");
    *charsets += charset;
    return token_ok(name) && (charset || token_ok(value)) && !slice_ieq_str(name, "boundary");
}

enum media_form media_type_form(struct slice value)
{
    ssize_t semi = slice_find(value, ';');
    struct slice rest = value;
    struct slice type = slice_trim((struct slice){value.p, semi < 0 ? value.n : (size_t)semi});
    unsigned charsets = 0;
    while (semi >= 0) {
        rest = (struct slice){rest.p + semi + 1, rest.n - (size_t)semi - 1};
        semi = slice_find(rest, ';');
        if (!plain_parameter(slice_trim((struct slice){rest.p, semi < 0 ? rest.n : (size_t)semi}),
                             &charsets))
            return MEDIA_TYPE_OTHER;
    }
    if (charsets > 1)
        return MEDIA_TYPE_OTHER;
    if (slice_ieq_str(type, "application/x-www-form-urlencoded"))
        return MEDIA_TYPE_FORM;
    return media_type_is_json(type) ? MEDIA_TYPE_JSON : MEDIA_TYPE_OTHER;
}
