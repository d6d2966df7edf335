/* Mailboxes of whatever bytes: commands end at the same place whole and in pieces, what is written
 * of one reads the same again and names no mailbox that its rule has not; a server's answers come
 * out the same in any pieces. First byte: how much at a time, and what the rule has. */
#include "imap_answer.h"
#include "imap_command.h"
#include "imap_response.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
    if (!right)
        abort();
}

static const char *const folders[] = {"INBOX", "A/*"};

/* What goes on is what a back takes. */
static void command(struct imap_command *c, struct slice text, const struct imap_terms *t)
{
    struct imap_command again;
    if (imap_command_read(c, text, t) < 0 || c->verb < IMAP_VERB_NOOP)
        return;
    imap_command_init(&again);
    require(imap_command_read(&again, buf_slice(&c->out), t) == 0);
    require(slice_eq(buf_slice(&again.out), buf_slice(&c->out)) && again.verb == c->verb);
    for (size_t i = 0; i < c->n_folders; i++)
        require(imap_folder_allowed(t, buf_slice(&c->folder[i])));
    imap_command_free(&again);
}

static void commands(struct slice in, size_t step, const struct imap_terms *t)
{
    struct imap_command c;
    imap_command_init(&c);
    while (in.n > 0) {
        struct imap_reader whole = {.at = 0}, pieces = {.at = 0};
        struct imap_found f, g;
        enum imap_seen e, p = IMAP_MORE;
        while ((e = imap_reader_next(&whole, in, &f)) == IMAP_LITERAL &&
               imap_reader_take(&whole, &f))
            ;
        for (size_t n = 0; n <= in.n && (p == IMAP_MORE || p == IMAP_LITERAL); n += step) {
            while ((p = imap_reader_next(&pieces, (struct slice){in.p, n}, &g)) == IMAP_LITERAL &&
                   imap_reader_take(&pieces, &g))
                ;
            if (p == IMAP_LITERAL)
                break;
        }
        if (p != IMAP_MORE && p != IMAP_VIOLATION)
            require(p == e && f.n == g.n && f.size == g.size);
        if (e != IMAP_WHOLE)
            break;
        struct slice text = {in.p, f.n - 2}, tag;
        if (imap_command_tag(&text, &tag))
            command(&c, text, t);
        in = (struct slice){in.p + f.n, in.n - f.n};
    }
    imap_command_free(&c);
}

/* False: they are bad somewhere. */
static bool answers(struct slice in, size_t step, const struct imap_terms *t, struct buf *out)
{
    struct imap_responses r;
    struct imap_answer a;
    struct imap_server s;
    bool good = true;
    imap_responses_init(&r);
    while (in.n > 0 && good) {
        struct slice some = {in.p, in.n < step ? in.n : step};
        size_t had = some.n;
        enum imap_part part = imap_responses_read(&r, &some, out);
        in = (struct slice){in.p + had - some.n, in.n - had + some.n};
        good = part != IMAP_PART_BAD;
        if (part != IMAP_PART_WHOLE)
            continue;
        good = imap_answer_read(buf_slice(&r.line), &a) == 0 && imap_answer_put(&a, t, out) == 0;
        if (good && a.kind == IMAP_ANSWER_CAPABILITY)
            imap_server_read(a.text, &s);
        imap_responses_next(&r);
    }
    imap_responses_free(&r);
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf one, other;
    if (size < 2 || size > 65536)
        return 0;
    const struct imap_terms t = {.folders = folders,
                                 .n_folders = ARRAY_LEN(folders),
                                 .actions = IMAP_READ | (data[0] & 62u),
                                 .most_bytes = 1000};
    struct slice in = {(const char *)data + 1, size - 1};
    commands(in, 1 + data[0] % 64, &t);
    buf_init(&one, 1 << 20);
    buf_init(&other, 1 << 20);
    bool good = answers(in, in.n, &t, &one), same = answers(in, 1 + data[0] % 64, &t, &other);
    require(good == same && slice_eq(buf_slice(&one), buf_slice(&other)));
    buf_free(&one);
    buf_free(&other);
    return 0;
}
