/* Counts what the server has not answered yet, and holds back or refuses a statement that it could
 * read otherwise than we did.
 *
 * Only a backslash can be: standard_conforming_strings says what it is in a text, and in some
 * encodings it is the second byte of a character. A function or a rule of the database's own may
 * change either; then the server says so with its next ReadyForQuery, and the session ends. */
#include "postgres_front.h"

#include <string.h>

void postgres_answers_up(struct postgres_answers *a, char type)
{
    bool is_copy = type == 'd' || type == 'c' || type == 'f';
    if (a->copying && !is_copy && type != 'H') /* a Sync is answered where the COPY has failed */
        a->unsure = true; /* the server ends the COPY, and what it answers is not what we count */
    if (type == 'S' && !a->copying) {
        a->due++;
        a->syncs++;
        a->ran = a->executed = false;
    } else if (type == 'Q' || type == 'F') {
        a->due++;
    }
    if (type == 'B' || type == 'E')
        a->ran = true;
    if (type == 'E') {
        a->alone = !a->executed;
        a->executed = true;
        a->syncs = 0;
        a->only_syncs = true;
    } else if (type != 'S' && type != 'H') {
        a->only_syncs = false;
    }
    if (type == 'c' || type == 'f')
        a->copying = false;
}

/* COPY ... FROM STDIN by an Execute: what was sent behind that is passed over. By a Query, which is
 * due still: the count is right. */
static void on_copy(struct postgres_answers *a)
{
    if (!a->only_syncs || a->due != a->syncs)
        return;
    a->unsure = a->unsure || !a->alone; /* an earlier Execute may be that COPY */
    a->due = a->syncs = 0;
    a->copying = true;
    a->ran = true; /* the Sync behind it is passed over */
}

bool postgres_answers_down(struct postgres_answers *a, char type)
{
    if (type == 'G')
        on_copy(a);
    if (type != 'Z')
        return false;
    if (a->due == 0)
        a->unsure = true;
    else
        a->due--;
    if (!a->held || --a->before > 0)
        return false;
    a->held = false;
    return true;
}

const char *postgres_answers_judge(struct postgres_answers *a, struct slice text, size_t up)
{
    if (text.n == 0 || memchr(text.p, '\\', text.n) == NULL)
        return NULL;
    if (a->ran || a->copying || a->unsure)
        return "a backslash in a statement behind others that are not answered; send Sync first";
    if (a->due > 0) {
        a->held = true;
        a->before = a->due;
        a->held_at = up;
    }
    return NULL;
}
