/* What our own HTTP/1 code makes of messages: for the differential oracle
 * (tests/adversary/oracle.t). stdin: messages, each a byte 'q' (request) or 'r' (reply to GET),
 * four bytes of length (big endian) and that many bytes. stdout: one JSON line each; every text of
 * the message in hexadecimal. */
#include "http1_body.h"
#include "http1_head.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_MAX = 1 << 20 };

static const struct limits limits = {.head_bytes = 32768, .headers = 100, .target_bytes = 8192};

static void put_hex(const char *key, struct slice s)
{
    printf("\"%s\":\"", key);
    for (size_t i = 0; i < s.n; i++)
        printf("%02x", (unsigned char)s.p[i]);
    printf("\",");
}

static void put_fields(const struct head *h)
{
    printf("\"fields\":[");
    for (size_t i = 0; i < h->n; i++) {
        printf("%s{", i ? "," : "");
        put_hex("name", h->fields[i].name);
        put_hex("value", h->fields[i].value);
        printf("\"n\":%zu}", i);
    }
    printf("],");
}

/* The body in the bytes after the head, as it would be relayed. */
static void put_body(const struct head *h, struct slice in)
{
    struct http1_body b;
    struct slice out;
    size_t used = 0;
    ssize_t n = 1;
    http1_body_init(&b, h->body, h->length);
    printf("\"body\":\"");
    while (!b.done && n > 0) {
        n = http1_body_read(&b, (struct slice){in.p + used, in.n - used}, 65536, &out);
        for (size_t i = 0; n > 0 && i < out.n; i++)
            printf("%02x", (unsigned char)out.p[i]);
        used += n > 0 ? (size_t)n : 0;
    }
    printf("\",\"failed\":%s,\"done\":%s,\"trailers\":%s,\"used\":%zu", n < 0 ? "true" : "false",
           b.done ? "true" : "false", b.chunk == CHUNK_TRAILER ? "true" : "false", used);
    http1_body_free(&b);
}

static void reading(char kind, struct slice in)
{
    static const char *const kinds[] = {"none", "length", "chunked", "close", "tunnel"};
    struct head h;
    struct refusal why;
    size_t scanned = 0;
    ssize_t end = http1_head_end(in, limits.head_bytes, &scanned);
    if (end <= 0) {
        printf("{\"ok\":false}\n");
        return;
    }
    struct slice raw = {in.p, (size_t)end};
    int r = kind == 'q' ? http1_parse_request(&h, raw, &limits, &why)
                        : http1_parse_reply(&h, raw, SLICE("GET"), NULL, &limits, &why);
    if (r < 0 || h.repaired) { /* mended: nobody else is to read what came */
        printf("{\"ok\":false}\n");
    } else {
        printf(
            "{\"ok\":true,\"minor\":%u,\"status\":%u,\"head\":%zd,\"kind\":\"%s\",\"upgrade\":%s,",
            h.minor, h.status, end, kinds[h.body], h.upgrade != UPGRADE_NONE ? "true" : "false");
        put_hex("method", h.method);
        put_hex("target", h.target);
        put_fields(&h);
        put_body(&h, (struct slice){in.p + end, in.n - (size_t)end});
        printf("}\n");
    }
    http_head_free(&h);
}

int main(void)
{
    unsigned char head[5];
    char *data = malloc(MESSAGE_MAX);
    if (data == NULL)
        return 1;
    while (fread(head, 1, sizeof head, stdin) == sizeof head) {
        size_t n = (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
        if (n > MESSAGE_MAX || fread(data, 1, n, stdin) != n)
            return 1;
        reading((char)head[0], (struct slice){data, n});
    }
    free(data);
    return 0;
}
