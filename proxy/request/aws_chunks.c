/* Finds the end of each chunk and of the trailer in what there is, checks their grammar, and says
 * where the signature stands and what it is to sign. */
#include "aws_chunks.h"

#include "http1_head.h"

#include <stdio.h>
#include <string.h>

static const struct slice signature_of_chunk = SLICE_INIT(";chunk-signature="),
                          signature_of_trailer = SLICE_INIT("x-amz-trailer-signature:");

int aws_chunks_init(struct aws_chunks *c, uint64_t decoded, const char *names)
{
    *c = (struct aws_chunks){.trailer = names != NULL, .left = decoded};
    if (names == NULL)
        return 0;
    if (*names == 0 || strlen(names) >= sizeof c->names)
        return -1;
    snprintf(c->names, sizeof c->names, "%s", names);
    return 0;
}

static struct slice behind(struct slice s, size_t n)
{
    return (struct slice){s.p + n, s.n - n};
}

static bool is_hex(struct slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = ascii_lower(s.p[i]);
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
    }
    return s.n > 0;
}

/* ---- a chunk ---- */

/* "SIZE;chunk-signature=HEX CRLF" -> its bytes, 0 when it is not whole, -1. */
static ssize_t read_line(struct slice text, size_t *size, size_t *hole)
{
    struct slice start = {text.p, text.n < AWS_CHUNK_LINE ? text.n : AWS_CHUNK_LINE};
    ssize_t lf = slice_find(start, '\n'), semicolon = slice_find(start, ';');
    if (lf < 0)
        return start.n < AWS_CHUNK_LINE ? 0 : -1;
    if (semicolon < 1 || semicolon > 6 || lf < 1 || text.p[lf - 1] != '\r')
        return -1;
    struct slice digits = {text.p, (size_t)semicolon};
    struct slice rest = {text.p + semicolon, (size_t)(lf - 1 - semicolon)};
    if (!is_hex(digits) || !slice_starts(rest, signature_of_chunk))
        return -1;
    *hole = (size_t)semicolon + signature_of_chunk.n;
    rest = behind(rest, signature_of_chunk.n);
    if (rest.n != AWS_HEX || !is_hex(rest))
        return -1;
    *size = 0;
    for (size_t i = 0; i < digits.n; i++) {
        char d = ascii_lower(digits.p[i]);
        *size = *size * 16 + (size_t)(d <= '9' ? d - '0' : d - 'a' + 10);
    }
    return *size <= AWS_CHUNK_MAX ? lf + 1 : -1;
}

static int next_chunk(struct aws_chunks *c, struct slice text, struct aws_piece *ret)
{
    size_t size;
    ssize_t line = read_line(text, &size, &ret->hole);
    ret->text = AWS_CHUNK;
    ret->n = text.n + 1;
    if (line <= 0)
        return (int)line;
    /* a chunk of no data ends the data; all of it must have come */
    if (size > c->left || (size < c->left && size < AWS_CHUNK_MIN))
        return -1;
    bool bare = size == 0 && c->trailer; /* the trailer follows its line */
    ret->n = (size_t)line + size + (bare ? 0 : 2);
    if (text.n < ret->n)
        return 0;
    if (!bare && memcmp(text.p + ret->n - 2, "\r\n", 2) != 0)
        return -1;
    if (aws_hash((struct slice){text.p + line, size}, ret->hash) < 0)
        return -1;
    c->left -= size;
    if (size == 0)
        c->state = bare ? CHUNKS_TRAILER : CHUNKS_OVER;
    return 1;
}

/* ---- the trailer ---- */

/* Takes the name out of the list; false: it is not in it. */
static bool take_name(char *names, struct slice name)
{
    size_t from = 0;
    while (names[from]) {
        size_t n = strcspn(names + from, ",");
        struct slice one = slice_trim((struct slice){names + from, n});
        if (one.n > 0 && slice_ieq(one, name)) {
            memset(names + from, ' ', n);
            return true;
        }
        from += n + (names[from + n] == ',');
    }
    return false;
}

static bool names_left(const char *names)
{
    return names[strspn(names, " ,\t")] != 0;
}

/* "name:value" as it is signed: nothing around the value, a line feed behind it. */
static int put_field(struct aws_chunks *c, struct slice line, struct buf *out)
{
    ssize_t colon = slice_find(line, ':');
    struct slice name = {line.p, colon < 0 ? 0 : (size_t)colon};
    if (colon < 1 || !http1_is_token(name) || !take_name(c->names, name))
        return -1;
    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] != ascii_lower(name.p[i]))
            return -1; /* what is signed has them in lower case */
    struct slice value = behind(line, name.n + 1);
    if (value.n == 0 || !http1_is_value(value) || slice_trim(value).n != value.n)
        return -1;
    return buf_append_slice(out, line) | buf_append_str(out, "\n");
}

/* Fields and the line of the signature are there. */
static int read_trailer(struct aws_chunks *c, struct slice fields, struct aws_piece *ret)
{
    struct buf text;
    int r = 0;
    buf_init(&text, AWS_TRAILER_MAX);
    while (r == 0 && fields.n > 0) {
        ssize_t lf = slice_find(fields, '\n');
        struct slice line = {fields.p, lf < 0 ? 0 : (size_t)lf};
        if (line.n > 0 && line.p[line.n - 1] == '\r')
            line.n--;
        if (lf < 0 || (line.n == 0 && (size_t)lf + 1 < fields.n))
            r = -1; /* an empty line stands last at most */
        else if (line.n > 0)
            r = put_field(c, line, &text);
        fields = behind(fields, (size_t)lf + 1);
    }
    if (r == 0 && (buf_len(&text) == 0 || names_left(c->names)))
        r = -1;
    if (r == 0)
        r = aws_hash(buf_slice(&text), ret->hash);
    buf_free(&text);
    return r;
}

static int next_trailer(struct aws_chunks *c, struct slice text, struct aws_piece *ret)
{
    struct slice start = {text.p, text.n < AWS_TRAILER_MAX ? text.n : AWS_TRAILER_MAX};
    ssize_t at = slice_find_slice(start, signature_of_trailer);
    ret->text = AWS_TRAILER;
    ret->n = text.n + 1;
    if (at < 0)
        return start.n < AWS_TRAILER_MAX ? 0 : -1;
    ret->hole = (size_t)at + signature_of_trailer.n;
    ret->n = ret->hole + AWS_HEX + 4;
    if (text.n < ret->n)
        return 0;
    if (!is_hex((struct slice){text.p + ret->hole, AWS_HEX}) ||
        memcmp(text.p + ret->hole + AWS_HEX, "\r\n\r\n", 4) != 0 ||
        read_trailer(c, (struct slice){text.p, (size_t)at}, ret) < 0)
        return -1;
    c->state = CHUNKS_OVER;
    return 1;
}

int aws_chunks_next(struct aws_chunks *c, struct slice text, struct aws_piece *ret)
{
    *ret = (struct aws_piece){.n = 0};
    switch (c->state) {
    case CHUNKS_DATA:
        return next_chunk(c, text, ret);
    case CHUNKS_TRAILER:
        return next_trailer(c, text, ret);
    case CHUNKS_OVER:
        break;
    }
    return text.n > 0 ? -1 : 0;
}

bool aws_chunks_over(const struct aws_chunks *c)
{
    return c->state == CHUNKS_OVER;
}
