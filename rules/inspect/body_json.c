/* Parses a body with jansson after a cheap estimate of its values, and compares keys as a reader
 * that folds case would. */
#include "body_json.h"

#include <string.h>

/* Commas and opening brackets outside strings: about how many values there will be. */
static size_t count_values(struct slice s)
{
    size_t n = 1;
    bool in = false;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (in && c == '\\')
            i++;
        else if (c == '"')
            in = !in;
        else if (!in && (c == ',' || c == '[' || c == '{'))
            n++;
    }
    return n;
}

enum body_json body_json_read(struct slice text, json_t **ret)
{
    if (count_values(text) > BODY_JSON_VALUES)
        return BODY_JSON_TOO_MANY;
    *ret = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, NULL);
    return *ret ? BODY_JSON_OK : BODY_JSON_BAD;
}

bool body_json_same(const char *key, const char *name)
{
    for (; *name; name++) {
        char c = ascii_lower(*key);
        if (c == *name)
            key++;
        else if (*name == 's' && strncmp(key, "\xc5\xbf", 2) == 0) /* U+017F */
            key += 2;
        else if (*name == 'k' && strncmp(key, "\xe2\x84\xaa", 3) == 0) /* U+212A */
            key += 3;
        else
            return false;
    }
    return *key == 0;
}

bool body_json_twisted(const json_t *object, const char *name)
{
    char lower[64];
    size_t n = strlen(name);
    if (n >= sizeof lower)
        return true;
    for (size_t i = 0; i <= n; i++)
        lower[i] = ascii_lower(name[i]);
    for (void *it = json_object_iter((json_t *)(uintptr_t)object); it;
         it = json_object_iter_next((json_t *)(uintptr_t)object, it)) {
        const char *key = json_object_iter_key(it);
        if (strcmp(key, name) != 0 && body_json_same(key, lower))
            return true;
    }
    return false;
}

bool body_json_only(const json_t *object, const char *const *names, size_t n)
{
    for (void *it = json_object_iter((json_t *)(uintptr_t)object); it;
         it = json_object_iter_next((json_t *)(uintptr_t)object, it)) {
        size_t i = 0;
        while (i < n && strcmp(json_object_iter_key(it), names[i]) != 0)
            i++;
        if (i == n)
            return false;
    }
    return true;
}
