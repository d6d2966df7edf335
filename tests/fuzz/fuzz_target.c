/* Targets of whatever bytes: what is carried has only bytes that every reader takes alike, stands
 * for the very bytes that came, and is not spelled anew a second time. First byte: how long it may
 * be. */
#include "target.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
    if (!right)
        abort();
}

static int value(char c)
{
    return c >= '0' && c <= '9'                     ? c - '0'
           : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                    : -1;
}

static size_t decoded(struct slice s, char *to)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; n++) {
        bool escape =
            s.p[i] == '%' && s.n - i > 2 && value(s.p[i + 1]) >= 0 && value(s.p[i + 2]) >= 0;
        to[n] = escape ? (char)(value(s.p[i + 1]) * 16 + value(s.p[i + 2])) : s.p[i];
        i += escape ? 3 : 1;
    }
    return n;
}

static void same(struct slice was, struct slice is)
{
    char *a = malloc(was.n + 1), *b = malloc(is.n + 1);
    require(a && b);
    size_t n = decoded(was, a), m = decoded(is, b);
    require(n == m && memcmp(a, b, n) == 0);
    free(a);
    free(b);
}

static void clean(struct slice s, const char *never)
{
    for (size_t i = 0; i < s.n; i++)
        require(s.p[i] > 0x20 && s.p[i] < 0x7f && strchr(never, s.p[i]) == NULL);
}

static void carried(struct head *h, struct slice path, struct slice query, size_t max)
{
    struct refusal why;
    bool respelled = h->respelled;
    clean(h->path, "\"<>#\\");
    clean(h->query, "\"<>#");
    same(path, h->path);
    same(query, h->query);
    require(respelled || (slice_eq(h->path, path) && slice_eq(h->query, query)));
    require(!respelled || h->path.n + h->query.n <= max);
    require(target_spell(h, max, &why) == 0 && !h->respelled);
    h->respelled = respelled;
    target_is_signed(h, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct head h;
    if (size < 1)
        return 0;
    struct slice all = {(const char *)data + 1, size - 1};
    ssize_t mark = slice_find(all, '?');
    struct slice path = {all.p, mark < 0 ? all.n : (size_t)mark};
    struct slice query = {all.p + path.n + (mark >= 0), all.n - path.n - (mark >= 0)};
    struct refusal why = {0, ""};
    size_t max = (size_t)data[0] * 64;
    http_head_init(&h);
    h.path = path;
    h.query = query;
    h.has_query = mark >= 0;
    if (target_spell(&h, max, &why) == 0)
        carried(&h, path, query, max);
    else
        require(why.status == 414 || (why.status == 400 && h.path.n == 0 && h.query.n == 0));
    if (target_authority_ok(all))
        clean(all, "#\"<>\\^`{}|");
    http_head_free(&h);
    return 0;
}
