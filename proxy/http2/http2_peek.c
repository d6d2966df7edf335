/* Compares the preface. Reads frames up to the first HEADERS and inflates its field block as far as
 * :authority. */
#include "http2_peek.h"

#include <nghttp2/nghttp2.h>
#include <string.h>

enum { FRAME_HEAD = 9, PRIORITY_PART = 5 };

static struct slice rest(struct slice s, size_t n)
{
    return (struct slice){s.p + n, s.n - n};
}

/* Pseudo-fields come first: behind them no :authority is to be found. */
static int from_block(nghttp2_hd_inflater *hd, struct slice block, char *to, size_t size)
{
    while (block.n > 0) {
        nghttp2_nv nv;
        int flags = 0;
        ssize_t used =
            nghttp2_hd_inflate_hd2(hd, &nv, &flags, (const uint8_t *)block.p, block.n, 1);
        if (used < 0)
            return -1;
        block = rest(block, (size_t)used);
        if (flags & NGHTTP2_HD_INFLATE_EMIT) {
            struct slice name = {(const char *)nv.name, nv.namelen};
            if (name.n == 0 || name.p[0] != ':')
                return -1;
            if (slice_eq_str(name, ":authority")) {
                if (nv.valuelen == 0 || nv.valuelen >= size || memchr(nv.value, 0, nv.valuelen))
                    return -1;
                memcpy(to, nv.value, nv.valuelen);
                to[nv.valuelen] = 0;
                return 1;
            }
        }
        if ((flags & NGHTTP2_HD_INFLATE_FINAL) || (used == 0 && !(flags & NGHTTP2_HD_INFLATE_EMIT)))
            return -1;
    }
    return -1;
}

static int from_headers(struct slice frame, uint8_t flags, char *to, size_t size)
{
    nghttp2_hd_inflater *hd;
    if (!(flags & NGHTTP2_FLAG_END_HEADERS))
        return -1;
    if (flags & NGHTTP2_FLAG_PADDED) {
        size_t pad = frame.n ? (unsigned char)frame.p[0] : 0;
        if (frame.n < 1 + pad)
            return -1;
        frame = (struct slice){frame.p + 1, frame.n - 1 - pad};
    }
    if (flags & NGHTTP2_FLAG_PRIORITY) {
        if (frame.n < PRIORITY_PART)
            return -1;
        frame = rest(frame, PRIORITY_PART);
    }
    if (nghttp2_hd_inflate_new(&hd) != 0)
        return -1;
    int found = from_block(hd, frame, to, size);
    nghttp2_hd_inflate_del(hd);
    return found;
}

int http2_peek_preface(struct slice in)
{
    static const struct slice preface = {HTTP2_PREFACE, sizeof HTTP2_PREFACE - 1};
    if (in.n >= preface.n)
        return slice_starts(in, preface) ? 1 : -1;
    return slice_starts(preface, in) ? 0 : -1;
}

int http2_peek_authority(struct slice in, char *to, size_t size)
{
    while (in.n >= FRAME_HEAD) {
        const unsigned char *h = (const unsigned char *)in.p;
        size_t n = (size_t)h[0] << 16 | (size_t)h[1] << 8 | h[2];
        if (h[3] != NGHTTP2_HEADERS && h[3] != NGHTTP2_SETTINGS && h[3] != NGHTTP2_WINDOW_UPDATE &&
            h[3] != NGHTTP2_PRIORITY && h[3] != NGHTTP2_PING)
            return -1;
        if (in.n - FRAME_HEAD < n)
            return 0;
        if (h[3] == NGHTTP2_HEADERS)
            return from_headers((struct slice){in.p + FRAME_HEAD, n}, h[4], to, size);
        in = rest(in, FRAME_HEAD + n);
    }
    return 0;
}
