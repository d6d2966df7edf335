/* A client's packets of whatever bytes: whole and in pieces they read the same, a packet that is
 * written as it was read is what was read, and whatever a read-only rule leaves neither writes nor
 * defines. A server's: the same, each followed as a reply. First byte: how much at a time, and what
 * else the rule leaves. */
#include "mysql_judge.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
    if (!right)
        abort();
}

enum { STEP = 31, SEVERAL = 32, FILES = 64, DATABASES = 128 };

static void judge(const struct mysql_terms *t, const struct mysql_part *m)
{
    struct mysql_judged j;
    mysql_judge(t, SLICE("orders"), m, &j);
    require(j.why || !(j.statement.classes & (MYSQL_WRITE | MYSQL_DEFINE)));
}

/* -> whether it ended in a violation */
static bool read_all(struct slice in, size_t step, enum mysql_phase phase,
                     const struct mysql_terms *t, struct buf *out)
{
    struct mysql_reader r;
    struct mysql_reply reply;
    struct mysql_part m;
    enum mysql_event e = MYSQL_MORE;
    mysql_reader_init(&r, phase);
    mysql_reply_begin(&reply, MYSQL_REPLY_RESULT, true);
    while (in.n > 0 && e != MYSQL_VIOLATION) {
        struct slice piece = {in.p, in.n < step ? in.n : step};
        in = (struct slice){in.p + piece.n, in.n - piece.n};
        while ((e = mysql_read(&r, &piece, &m)) == MYSQL_PART) {
            require(mysql_put_part(out, &m) == 0);
            if (phase == MYSQL_COMMANDS && m.first)
                judge(t, &m);
            if (phase == MYSQL_REPLIES && mysql_reply_take(&reply, &m) < 0)
                mysql_reply_begin(&reply, MYSQL_REPLY_PREPARED, false);
        }
    }
    mysql_reader_free(&r);
    return e == MYSQL_VIOLATION;
}

static void logins(struct slice in)
{
    struct mysql_answer a;
    struct mysql_greeting g;
    struct mysql_facts f;
    struct slice plugin, nonce;
    (void)(mysql_answer_read(in, &a) + mysql_greeting_read(in, &g) +
           mysql_switch_read(in, &plugin, &nonce));
    if (mysql_facts_read(in, &f) == 0)
        require(f.database.n <= MYSQL_NAME_MAX && mysql_charset_ok(f.charset));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf a, b;
    if (size < 2 || size > 65536)
        return 0;
    size_t step = 1 + (data[0] & STEP);
    const struct mysql_terms terms = {.read_only = true,
                                      .statements = 31,
                                      .multi_statements = data[0] & SEVERAL,
                                      .local_infile = data[0] & FILES,
                                      .any_database = data[0] & DATABASES};
    struct slice in = {(const char *)data + 1, size - 1};
    for (enum mysql_phase p = MYSQL_LOGIN; p <= MYSQL_REPLIES; p++) {
        buf_init(&a, 1 << 18);
        buf_init(&b, 1 << 18);
        require(read_all(in, in.n, p, &terms, &a) == read_all(in, step, p, &terms, &b));
        size_t n = buf_len(&a) < buf_len(&b) ? buf_len(&a) : buf_len(&b);
        require(n <= in.n &&
                memcmp(buf_data(&a) ? buf_data(&a) : data, in.p, buf_data(&a) ? n : 0) == 0);
        buf_free(&a);
        buf_free(&b);
    }
    logins(in);
    struct mysql_statement s;
    mysql_statement_read(in, &terms, SLICE("orders"), false, &s);
    require(s.refused || !(s.classes & (MYSQL_WRITE | MYSQL_DEFINE)));
    return 0;
}
