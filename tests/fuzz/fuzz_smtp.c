/* Mail of whatever bytes: a message's text whole and in pieces reads the same; what a reader makes
 * of it a writer takes, and a reader of what that one wrote has the same again, with one end, at
 * the end. Lines, replies and envelopes stay within what they came in. First byte: how much at a
 * time.
 */
#include "smtp_command.h"
#include "smtp_facts.h"
#include "smtp_message.h"
#include "smtp_reply.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
    if (!right)
        abort();
}

static int read_all(struct slice in, size_t step, struct smtp_reader *r, struct buf *out,
                    size_t *left)
{
    int e = 0;
    memset(r, 0, sizeof *r);
    while (in.n > 0 && e == 0) {
        struct slice some = {in.p, in.n < step ? in.n : step};
        size_t had = some.n;
        e = smtp_message_read(r, &some, out);
        require(e >= 0);
        in = (struct slice){in.p + had - some.n, in.n - had + some.n};
    }
    *left = in.n;
    return e;
}

static void texts(struct slice in, size_t step)
{
    struct smtp_reader whole, pieces, again;
    struct smtp_writer w = {.column = 0};
    struct buf a, b, wire;
    size_t left[3];
    buf_init(&a, 1 << 18);
    buf_init(&b, 1 << 18);
    buf_init(&wire, 1 << 19);
    int e = read_all(in, in.n, &whole, &a, &left[0]);
    require(e == read_all(in, step, &pieces, &b, &left[1]) && left[0] == left[1]);
    require(whole.why == pieces.why && slice_eq(buf_slice(&a), buf_slice(&b)));
    if (e == 1 && whole.why == NULL) {
        require(smtp_message_write(&w, buf_slice(&a), &wire) == 0);
        require(smtp_message_end(&w, &wire) == 0);
        /* no end of any reader's but at the end */
        require(slice_find_slice(buf_slice(&wire), SLICE("\n.\n")) < 0);
        buf_clear(&b);
        require(read_all(buf_slice(&wire), step, &again, &b, &left[2]) == 1 && left[2] == 0);
        require(again.why == NULL && slice_eq(buf_slice(&a), buf_slice(&b)));
    }
    buf_free(&a);
    buf_free(&b);
    buf_free(&wire);
}

static void lines(struct slice in)
{
    struct slice line, rest;
    struct smtp_path p;
    ssize_t n;
    while ((n = smtp_line(in, SMTP_LINE_MAX, &line)) > 0) {
        enum smtp_verb v = smtp_verb(line, &rest);
        if (v == SMTP_MAIL && smtp_mail_read(rest, &p) == 0)
            require(p.address.n == 0 || smtp_address_ok(p.address, p.utf8));
        if (v == SMTP_RCPT && smtp_rcpt_read(rest, true, &p) == 0)
            require(p.address.n > 0 && slice_find(p.address, ' ') < 0 &&
                    slice_find(p.address, '>') < 0 &&
                    smtp_address_domain(p.address).n < p.address.n);
        in = (struct slice){in.p + n, in.n - (size_t)n};
    }
}

static void replies(struct slice in)
{
    struct smtp_reply r;
    struct smtp_server s;
    struct buf text;
    if (smtp_reply_read(in, &r) <= 0)
        return;
    require(r.lines.n <= in.n);
    smtp_server_read(&r, &s);
    buf_init(&text, SMTP_REPLY_MAX);
    require(smtp_reply_text(&r, &text) == 0 && slice_find(buf_slice(&text), '\n') < 0);
    buf_free(&text);
}

static void facts(struct slice in)
{
    struct smtp_facts f;
    struct buf b;
    if (smtp_facts_read(in, &f) < 0)
        return;
    buf_init(&b, SMTP_FACTS_MAX);
    if (smtp_facts_put(&b, &f) == 0)
        require(slice_eq(buf_slice(&b), in));
    buf_clear(&b);
    smtp_facts_domains(&f.envelope, &b);
    buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > 65536)
        return 0;
    struct slice in = {(const char *)data + 1, size - 1};
    texts(in, data[0] ? data[0] : 1);
    lines(in);
    replies(in);
    facts(in);
    return 0;
}
