/* Frames of whatever bytes: whole and in pieces they read the same; what was read, framed anew as a
 * tunnel does it, reads the same again. First byte: masked or not; second: how much at a time. */
#include "buf.h"
#include "websocket.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct reading {
    enum websocket_event end;
    unsigned code;
    size_t messages;
    struct buf out;   /* payloads, an opcode before each control frame and message's end */
    struct buf again; /* the same as frames */
};

static void require(bool right)
{
    if (!right)
        abort();
}

static void write_again(struct reading *r, const struct websocket_part *part, bool masked,
                        bool *begun, bool control)
{
    static const unsigned char mask[4] = {9, 8, 7, 200};
    unsigned char header[WEBSOCKET_HEADER_MAX];
    char copy[WEBSOCKET_PIECE_MAX];
    enum websocket_opcode o = *begun && !control ? WEBSOCKET_CONTINUATION : part->opcode;
    size_t n = websocket_header(header, o, part->last, part->n, masked ? mask : NULL);
    memcpy(copy, part->p, part->n);
    if (masked)
        websocket_mask(copy, part->n, mask, 0);
    require(buf_append(&r->again, header, n) == 0 && buf_append(&r->again, copy, part->n) == 0);
    if (!control)
        *begun = !part->last;
}

static struct reading read_all(struct slice in, bool masked, size_t step)
{
    struct reading r = {WEBSOCKET_MORE, 0, 0, {0}, {0}};
    struct websocket_reader reader;
    struct websocket_part part;
    char scratch[WEBSOCKET_PIECE_MAX];
    bool begun = false;
    buf_init(&r.out, 1 << 20);
    buf_init(&r.again, 4 << 20);
    websocket_reader_init(&reader, masked);
    while (in.n > 0 && r.end == WEBSOCKET_MORE) {
        struct slice piece = {in.p, in.n < step ? in.n : step};
        in.p += piece.n;
        in.n -= piece.n;
        enum websocket_event e;
        while ((e = websocket_read(&reader, &piece, scratch, &part)) != WEBSOCKET_MORE) {
            if (e == WEBSOCKET_VIOLATION) {
                r.end = e;
                r.code = reader.code;
                break;
            }
            bool control = e == WEBSOCKET_CONTROL;
            char mark = (char)part.opcode;
            require(part.n <= (control ? WEBSOCKET_CONTROL_MAX : WEBSOCKET_PIECE_MAX));
            require(buf_append(&r.out, &mark, control) == 0 &&
                    buf_append(&r.out, part.p, part.n) == 0 &&
                    buf_append(&r.out, &mark, !control && part.last) == 0);
            r.messages += !control && part.last;
            write_again(&r, &part, masked, &begun, control);
        }
        require(e == WEBSOCKET_VIOLATION || piece.n == 0);
    }
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > 65536)
        return 0;
    bool masked = data[0] & 1;
    struct slice in = {(const char *)data + 2, size - 2};
    struct reading whole = read_all(in, masked, in.n ? in.n : 1);
    struct reading pieces = read_all(in, masked, data[1] ? data[1] : 1);
    require(whole.end == pieces.end && whole.code == pieces.code);
    if (whole.end == WEBSOCKET_MORE) {
        require(whole.messages == pieces.messages);
        require(slice_eq(buf_slice(&whole.out), buf_slice(&pieces.out)));
        struct reading again = read_all(buf_slice(&whole.again), masked, 4096);
        require(again.end == WEBSOCKET_MORE && again.messages == whole.messages);
        require(slice_eq(buf_slice(&again.out), buf_slice(&whole.out)));
        buf_free(&again.out);
        buf_free(&again.again);
    }
    buf_free(&whole.out);
    buf_free(&whole.again);
    buf_free(&pieces.out);
    buf_free(&pieces.again);
    return 0;
}
