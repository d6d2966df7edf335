/* Follows replies by the first bytes of their packets. */
#include "mysql_reply.h"

enum reply_state {
    REPLY_OVER = 0,
    REPLY_ONE,
    REPLY_RESULT,      /* OK, an error, a wish for a file, or a number of columns */
    REPLY_COLUMNS,     /* their definitions */
    REPLY_COLUMNS_END, /* and the EOF behind */
    REPLY_ROWS,
    REPLY_PREPARED,
    REPLY_PARAMETERS,
    REPLY_PARAMETERS_END,
    REPLY_PREPARED_COLUMNS,
    REPLY_PREPARED_END,
};

enum { MORE_RESULTS = 8, CURSOR_EXISTS = 64, OF_EOF = 9, COLUMNS_MAX = 65535 };

void mysql_reply_begin(struct mysql_reply *r, enum mysql_reply_kind kind, bool may_ask)
{
    static const unsigned char states[] = {
        [MYSQL_REPLY_NONE] = REPLY_OVER,     [MYSQL_REPLY_ONE] = REPLY_ONE,
        [MYSQL_REPLY_RESULT] = REPLY_RESULT, [MYSQL_REPLY_PREPARED] = REPLY_PREPARED,
        [MYSQL_REPLY_ROWS] = REPLY_ROWS,
    };
    *r = (struct mysql_reply){.state = states[kind], .may_ask = may_ask};
}

bool mysql_reply_over(const struct mysql_reply *r)
{
    return r->state == REPLY_OVER;
}

void mysql_reply_sent(struct mysql_reply *r)
{
    r->file = false;
}

static bool is_error(const struct mysql_part *m)
{
    return (unsigned char)m->body.p[0] == 0xff;
}

/* An EOF, its flags in *status. A row may begin with that byte, and is longer then. */
static bool is_eof(const struct mysql_part *m, uint16_t *status)
{
    struct slice rest = {m->body.p + 1, m->body.n - 1};
    uint16_t warnings;
    return (unsigned char)m->body.p[0] == 0xfe && m->length < OF_EOF &&
           mysql_take_u16(&rest, &warnings) == 0 && mysql_take_u16(&rest, status) == 0;
}

static int on_ok(struct mysql_reply *r, struct slice body)
{
    uint64_t n;
    uint16_t status;
    struct slice rest = {body.p + 1, body.n - 1};
    if (mysql_take_count(&rest, &n) < 0 || mysql_take_count(&rest, &n) < 0 ||
        mysql_take_u16(&rest, &status) < 0)
        return -1;
    r->state = status & MORE_RESULTS ? REPLY_RESULT : REPLY_OVER;
    return 0;
}

static int on_result(struct mysql_reply *r, const struct mysql_part *m)
{
    struct slice body = m->body;
    unsigned char first = (unsigned char)body.p[0];
    if (first == 0)
        return on_ok(r, body);
    if (is_error(m)) {
        r->state = REPLY_OVER;
        return 0;
    }
    if (first == 0xfb) {
        r->file = r->may_ask;
        return r->may_ask ? 0 : -1;
    }
    if (mysql_take_count(&body, &r->left) < 0 || body.n > 0 || r->left == 0 ||
        r->left > COLUMNS_MAX)
        return -1;
    r->state = REPLY_COLUMNS;
    return 0;
}

static int on_prepared(struct mysql_reply *r, const struct mysql_part *m)
{
    struct slice rest = m->body, head;
    uint16_t columns, parameters;
    if (is_error(m)) {
        r->state = REPLY_OVER;
        return 0;
    }
    if (rest.p[0] != 0 || mysql_take_bytes(&rest, 5, &head) < 0 ||
        mysql_take_u16(&rest, &columns) < 0 || mysql_take_u16(&rest, &parameters) < 0)
        return -1;
    r->left = parameters ? parameters : columns;
    r->behind = parameters ? columns : 0;
    r->state = parameters ? REPLY_PARAMETERS : columns ? REPLY_PREPARED_COLUMNS : REPLY_OVER;
    return 0;
}

static int on_definition(struct mysql_reply *r, enum reply_state then)
{
    if (--r->left == 0)
        r->state = (unsigned char)then;
    return 0;
}

static int on_definitions_end(struct mysql_reply *r, const struct mysql_part *m)
{
    uint16_t status;
    if (is_error(m)) {
        r->state = REPLY_OVER;
        return 0;
    }
    if (!is_eof(m, &status))
        return -1;
    if (r->state == REPLY_COLUMNS_END) {
        r->state = status & CURSOR_EXISTS ? REPLY_OVER : REPLY_ROWS;
        return 0;
    }
    r->left = r->state == REPLY_PARAMETERS_END ? r->behind : 0;
    r->state = r->left ? REPLY_PREPARED_COLUMNS : REPLY_OVER;
    return 0;
}

static int on_row(struct mysql_reply *r, const struct mysql_part *m)
{
    uint16_t status;
    if (is_error(m)) /* no row begins with it: it is no length */
        r->state = REPLY_OVER;
    else if (is_eof(m, &status))
        r->state = status & MORE_RESULTS ? REPLY_RESULT : REPLY_OVER;
    else
        r->row = true;
    return 0;
}

int mysql_reply_take(struct mysql_reply *r, const struct mysql_part *m)
{
    r->row = false;
    if (!m->first || m->continued)
        return 0;
    if (r->file) /* it reads all of it, whatever comes of that */
        return -1;
    switch ((enum reply_state)r->state) {
    case REPLY_ONE:
        r->state = REPLY_OVER;
        return 0;
    case REPLY_RESULT:
        return on_result(r, m);
    case REPLY_COLUMNS:
        return is_error(m) ? -1 : on_definition(r, REPLY_COLUMNS_END);
    case REPLY_PARAMETERS:
        return is_error(m) ? -1 : on_definition(r, REPLY_PARAMETERS_END);
    case REPLY_PREPARED_COLUMNS:
        return is_error(m) ? -1 : on_definition(r, REPLY_PREPARED_END);
    case REPLY_COLUMNS_END:
    case REPLY_PARAMETERS_END:
    case REPLY_PREPARED_END:
        return on_definitions_end(r, m);
    case REPLY_ROWS:
        return on_row(r, m);
    case REPLY_PREPARED:
        return on_prepared(r, m);
    default: /* unasked: it says why it goes */
        return is_error(m) ? 0 : -1;
    }
}
