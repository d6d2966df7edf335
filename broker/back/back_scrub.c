/* Replaces a password in what a server says, in pieces of any size. What comes out is as long as
 * what went in, so that lengths of replies stay right. */
#include "back_scrub.h"

#include <stdlib.h>
#include <string.h>

int back_scrub_begin(struct back_scrub *s, struct slice word)
{
    s->word = secret_new(word.p, word.n);
    s->borders = calloc(word.n + 1, sizeof *s->borders);
    if (s->word == NULL || s->borders == NULL || word.n == 0)
        return -1;
    for (size_t i = 1, k = 0; i < word.n; i++) {
        while (k > 0 && word.p[i] != word.p[k])
            k = s->borders[k];
        k += word.p[i] == word.p[k];
        s->borders[i + 1] = k;
    }
    return 0;
}

void back_scrub_end(struct back_scrub *s)
{
    secret_unref(s->word);
    free(s->borders);
    memset(s, 0, sizeof *s);
}

int back_scrub_put(struct back_scrub *s, struct slice in, struct buf *out)
{
    if (s->word == NULL)
        return buf_append_slice(out, in);
    struct slice word = secret_slice(s->word);
    for (size_t i = 0; i < in.n; i++) {
        size_t was = s->held;
        if (was == 0) {
            const char *next = memchr(in.p + i, word.p[0], in.n - i);
            size_t n = next ? (size_t)(next - in.p) - i : in.n - i;
            if (buf_append(out, in.p + i, n) < 0)
                return -1;
            i += n;
            if (next == NULL)
                break;
        }
        while (s->held > 0 && in.p[i] != word.p[s->held])
            s->held = s->borders[s->held];
        bool is = in.p[i] == word.p[s->held];
        /* What waited and is no part of it any more; the word's own beginning, it was. */
        if (buf_append(out, word.p, was - s->held) < 0 || (!is && buf_append(out, in.p + i, 1) < 0))
            return -1;
        s->held += is;
        if (s->held < word.n)
            continue;
        unsigned char *stars = buf_reserve(out, word.n);
        if (stars == NULL)
            return -1;
        memset(stars, '*', word.n);
        buf_commit(out, word.n);
        s->held = 0;
    }
    return 0;
}
