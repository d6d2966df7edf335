/* PostgreSQL's messages of whatever bytes: whole and in pieces they read the same, and what was
 * read, written anew, reads the same again. First byte: who wrote it and when; second: how much at
 * a time; the rest also as a first packet and as options. */
#include "buf.h"
#include "postgres_message.h"
#include "postgres_startup.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
    if (!right)
        abort();
}

struct reading {
    bool violation;
    struct buf again; /* as messages, each whole */
};

static struct reading read_all(struct slice in, enum postgres_side side, enum postgres_phase phase,
                               size_t step)
{
    struct reading r = {.violation = false};
    struct postgres_reader reader;
    struct postgres_part m;
    buf_init(&r.again, 1 << 20);
    postgres_reader_init(&reader, side, phase);
    while (in.n > 0 && !r.violation) {
        struct slice piece = {in.p, in.n < step ? in.n : step};
        enum postgres_event e;
        in.p += piece.n;
        in.n -= piece.n;
        while ((e = postgres_read(&reader, &piece, &m)) != POSTGRES_MORE) {
            if (e == POSTGRES_VIOLATION) {
                r.violation = true;
                break;
            }
            require(postgres_put_part(&r.again, &m) == 0);
        }
        require(e == POSTGRES_VIOLATION || piece.n == 0);
    }
    postgres_reader_free(&reader);
    return r;
}

static void first_packet(struct slice in)
{
    struct postgres_startup s;
    struct err err;
    struct buf out;
    ssize_t n = postgres_startup_length(in);
    require(n <= POSTGRES_STARTUP_MAX);
    if (n <= 0 || (size_t)n > in.n ||
        postgres_startup_read((struct slice){in.p, (size_t)n}, &s, &err) < 0 || s.n == 0)
        return;
    buf_init(&out, 2 * POSTGRES_STARTUP_MAX);
    require(postgres_startup_begin(&out) == 0);
    for (size_t i = 0; i < s.n; i++)
        require(postgres_startup_put(&out, s.settings[i].name, s.settings[i].value) == 0);
    struct postgres_startup again;
    if (postgres_startup_end(&out, 0) == 0)
        require(postgres_startup_read(buf_slice(&out), &again, &err) == 0 && again.n == s.n);
    buf_free(&out);
}

static void options(struct slice in)
{
    struct postgres_startup s = {0};
    struct err err;
    struct buf words;
    buf_init(&words, POSTGRES_STARTUP_MAX);
    if (postgres_options_read(in, &words, &s, &err) == 0)
        for (size_t i = 0; i < s.n; i++)
            require(s.settings[i].name.n > 0 && s.settings[i].name.n <= POSTGRES_NAME_MAX);
    buf_free(&words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > 65536)
        return 0;
    enum postgres_side side = data[0] & 1 ? POSTGRES_SERVER : POSTGRES_CLIENT;
    enum postgres_phase phase = data[0] & 2 ? POSTGRES_LOGIN : POSTGRES_SESSION;
    struct slice in = {(const char *)data + 2, size - 2};
    struct reading whole = read_all(in, side, phase, in.n ? in.n : 1);
    struct reading pieces = read_all(in, side, phase, data[1] ? data[1] : 1);
    require(whole.violation == pieces.violation);
    if (!whole.violation) {
        struct reading again = read_all(buf_slice(&whole.again), side, phase, 4096);
        require(!again.violation && slice_eq(buf_slice(&again.again), buf_slice(&whole.again)));
        buf_free(&again.again);
    }
    buf_free(&whole.again);
    buf_free(&pieces.again);
    first_packet(in);
    options(in);
    return 0;
}
