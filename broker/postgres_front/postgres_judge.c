/* What becomes of a message: statements are judged, and a refused one is replaced by a word that no
 * server can read, whose error becomes ours. */
#include "postgres_front.h"

#include <stdio.h>
#include <string.h>

static void note_refused(struct postgres_client *c, const struct statement *s, const char *why)
{
    struct record r;
    char path[POSTGRES_NAME_MAX + 2];
    snprintf(path, sizeof path, "/%s", c->database);
    record_init(&r, RECORD_DENIED, 0);
    record_put_str(&r, RF_METHOD, "connect");
    record_put_str(&r, RF_PATH, path);
    record_put_str(&r, RF_RULE, c->rule->text);
    record_put_str(&r, RF_DETAIL, why);
    if (s)
        record_put_str(&r, RF_STATEMENTS, s->fingerprint);
    front_denied(c->of->front, &r, &c->at, "postgres_statement");
}

/* The word for the next refusal. */
static struct slice mark_of(struct postgres_client *c, const char *why, char to[POSTGRES_MARK])
{
    int n = snprintf(to, POSTGRES_MARK, "durward_refused_%016llx_%u", (unsigned long long)c->mark,
                     (unsigned)c->n_refused);
    c->why[c->n_refused++ % POSTGRES_REFUSALS] = why;
    return (struct slice){to, (size_t)n};
}

/* There is something that another reading of a statement could undo. */
static bool is_bounded(const struct statement_bounds *b)
{
    return b->read_only || b->role || b->classes != STATEMENT_ANY;
}

/* NULL: it may go on as it is. */
static const char *judge(struct postgres_client *c, struct slice text)
{
    struct statement s;
    (void)statement_cache_read(c->of->cache, text, &s);
    const char *why = statement_refusal(&s, &c->bounds);
    if (why == NULL && is_bounded(&c->bounds))
        why = postgres_answers_judge(&c->answers, text, buf_len(&c->up));
    if (why) {
        note_refused(c, &s, why);
    } else if (s.fingerprint[0]) {
        c->print[0] = 'S';
        memcpy(c->print + 1, s.fingerprint, STATEMENT_FINGERPRINT);
        c->n_print = sizeof c->print;
    }
    return why;
}

static int on_query(struct postgres_client *c, const struct postgres_part *m)
{
    char word[POSTGRES_MARK];
    struct slice text;
    if (postgres_query_read(m->body, &text) < 0)
        return -1;
    const char *why = judge(c, text);
    return why ? postgres_put_query(&c->up, mark_of(c, why, word)) : postgres_put_part(&c->up, m);
}

static int on_parse(struct postgres_client *c, const struct postgres_part *m)
{
    char word[POSTGRES_MARK];
    struct postgres_parse p;
    if (postgres_parse_read(m->body, &p) < 0)
        return -1;
    const char *why = judge(c, p.text);
    return why ? postgres_put_parse(&c->up, p.name, mark_of(c, why, word))
               : postgres_put_part(&c->up, m);
}

/* A function by its number: its bytes go nowhere; a refused statement answers alike. */
static int on_function(struct postgres_client *c, const struct postgres_part *m)
{
    static const char why[] = "a function that is called by its number";
    char word[POSTGRES_MARK];
    if (!m->last)
        return 0;
    note_refused(c, NULL, why);
    return postgres_put_query(&c->up, mark_of(c, why, word));
}

static int judge_message(struct postgres_client *c, const struct postgres_part *m)
{
    switch (m->type) {
    case 'Q':
        return on_query(c, m);
    case 'P':
        return on_parse(c, m);
    case 'F':
        return on_function(c, m);
    case 'X':
        c->over = true;
        break;
    default:
        break;
    }
    return postgres_put_part(&c->up, m);
}

int postgres_judge_up(struct postgres_client *c, const struct postgres_part *m)
{
    int r = judge_message(c, m);
    if (m->last)
        postgres_answers_up(&c->answers, m->type);
    return r;
}

/* The server's error for one of our words: why it stood there; NULL: it is another error. */
static const char *refusal_of(const struct postgres_client *c, struct slice error)
{
    char prefix[POSTGRES_MARK];
    uint64_t i = 0;
    struct slice said = postgres_field(error, 'M');
    int n =
        snprintf(prefix, sizeof prefix, "durward_refused_%016llx_", (unsigned long long)c->mark);
    ssize_t at = said.p ? slice_find_slice(said, (struct slice){prefix, (size_t)n}) : -1;
    if (at < 0)
        return NULL;
    struct slice rest = {said.p + at + n, said.n - (size_t)at - (size_t)n};
    size_t digits = 0;
    while (digits < rest.n && rest.p[digits] >= '0' && rest.p[digits] <= '9')
        digits++;
    if (slice_u64((struct slice){rest.p, digits}, UINT32_MAX, &i) < 0 || i >= c->n_refused ||
        c->n_refused - i > POSTGRES_REFUSALS)
        return "a statement that its rule does not allow";
    return c->why[i % POSTGRES_REFUSALS];
}

int postgres_judge_down(struct postgres_client *c, const struct postgres_part *m, struct buf *out)
{
    char text[200];
    const char *why = m->type == 'E' ? refusal_of(c, m->body) : NULL;
    if (why == NULL)
        return postgres_put_part(out, m);
    snprintf(text, sizeof text, "durward: refused: %s", why);
    return postgres_put_error(out, "ERROR", "42501", slice_str(text));
}
