/* The decoder of journal bytes and the lines made of them: whatever a writer appends, each record
 * is within its bounds, every line is printable ASCII and JSON, and reads back as what it was. */
#include "record_read.h"
#include "render.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok)
        abort();
}

static void check_fields(const struct record_view *v, const uint8_t *data, size_t size)
{
    const char *from = (const char *)data;
    for (int f = 1; f < RF_FIELDS; f++) {
        struct slice s = v->field[f];
        uint64_t number;
        require(s.n <= RECORD_FIELD_MAX);
        if (s.n == 0)
            continue;
        require(s.p >= from && s.p + s.n <= from + size);
        if (record_field_is_number((enum record_field)f))
            require(slice_u64(s, INT64_MAX, &number) == 0);
    }
}

static void check_line(const struct record_view *v, struct chain *c, uint64_t at)
{
    struct render_source from = {.channel = 7, .role = "gate", .sandbox = "box", .policy = ""};
    struct render_head h;
    struct buf line;
    buf_init(&line, 2 * RENDER_LINE_MAX);
    require(render_line(&line, c, v, &from, at, v->wall_ns) == 0);
    struct slice s = buf_slice(&line);
    for (size_t i = 0; i < s.n; i++)
        require(s.p[i] >= 0x20 && s.p[i] <= 0x7e);
    json_t *j = json_loadb(s.p, s.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    require(json_is_object(j));
    require(strcmp(json_string_value(json_object_get(j, "sandbox")), "box") == 0);
    json_decref(j);
    require(render_parse(s, &h) == 0);
    require(h.kind == v->kind && h.counter == v->counter && h.at == at && h.seq == c->seq + 1);
    require(chain_step(c, s) == 0);
    buf_free(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chain c;
    chain_genesis(&c);
    for (size_t at = 0; at < size;) {
        struct record_view v;
        const char *why = NULL;
        ssize_t n = record_read(&v, data + at, size - at, &why);
        require(why != NULL && (n >= 0 || *why));
        if (n <= 0)
            break;
        require((size_t)n <= size - at && n <= RECORD_MAX);
        check_fields(&v, data, size);
        check_line(&v, &c, at + (size_t)n);
        at += (size_t)n;
    }
    return 0;
}
