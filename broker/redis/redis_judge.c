/* Decides about a command by the table and a rule's terms. */
#include "redis_judge.h"

#include <string.h>

static const char unfound[] = "a command whose keys cannot be found";
static const char unread_hello[] = "a HELLO that cannot be read";

/* ---- its row ---- */

/* Adds a word of its name, in small letters. */
static bool add_name(struct redis_judged *j, struct slice word)
{
    size_t n = strlen(j->name);
    if (n + word.n + 2 > sizeof j->name)
        return false;
    if (n)
        j->name[n++] = '|';
    for (size_t i = 0; i < word.n; i++) {
        if (word.p[i] <= ' ' || word.p[i] == '|')
            return false;
        j->name[n++] = ascii_lower(word.p[i]);
    }
    j->name[n] = 0;
    return true;
}

/* True: the row is found, or there is none; it goes on with the next argument else. */
static bool name_read(struct redis_judged *j, size_t i, const struct slice *word)
{
    const struct redis_command *row =
        word && add_name(j, *word) ? redis_command_find(j->name) : NULL;
    /* COMMAND alone tells of all commands; the others are wrong without a part */
    bool alone = j->n == 1 && strcmp(j->name, "command") == 0;
    if (row && i == 0 && row->classes & REDIS_CONTAINER && !alone && j->n > 1)
        return false;
    if (row && row->classes & REDIS_CONTAINER && !alone)
        row = NULL;
    j->command = row;
    if (row == NULL)
        j->why = "a command that is not known here";
    return true;
}

static bool is(const struct redis_judged *j, const char *name)
{
    return j->command && strcmp(j->command->name, name) == 0;
}

static bool class_named(const struct redis_command *row, const char *word)
{
    static const struct {
        const char *word;
        unsigned class;
    } classes[] = {{"read", REDIS_READ},       {"write", REDIS_WRITE},
                   {"session", REDIS_SESSION}, {"transaction", REDIS_TRANSACTION},
                   {"pubsub", REDIS_PUBSUB},   {"blocking", REDIS_BLOCKING}};
    for (size_t i = 0; i < ARRAY_LEN(classes); i++)
        if (strcmp(word, classes[i].word) == 0)
            return row->classes & classes[i].class;
    return false;
}

/* A pattern with '*' names none of those that must be named, but the parts of one that it writes
 * out: config|*. */
static bool entry_matches(const struct redis_command *row, const char *entry, bool takes)
{
    struct slice pattern = slice_str(entry), name = slice_str(row->name);
    ssize_t star = slice_find(pattern, '*'), bar = slice_find(pattern, '|');
    bool must = !takes && row->classes & REDIS_NAMED;
    if (entry[0] == '@')
        return !must && class_named(row, entry + 1);
    if (must && star >= 0 && (bar < 0 || bar > star))
        return false;
    return redis_pattern_match(pattern, name);
}

static bool is_allowed(const struct redis_terms *t, const struct redis_command *row)
{
    bool names = false, allowed = false;
    for (size_t i = 0; i < t->n_commands; i++) {
        const char *entry = t->commands[i];
        if (entry[0] == '!') {
            if (entry_matches(row, entry + 1, true))
                return false;
            continue;
        }
        names = true;
        allowed = allowed || entry_matches(row, entry, false);
    }
    return names ? allowed : !(row->classes & REDIS_NAMED);
}

static bool reads_only(unsigned classes)
{
    if (classes & REDIS_WRITE)
        return false;
    return classes & REDIS_READ || !(classes & (REDIS_NAMED | REDIS_SCRIPTING));
}

/* ---- words ---- */

/* A server ends a word where a C string ends, so what stands behind a byte 0 does not count. One
 * that is too long to be read could be any. */
static bool could_be(const struct slice *argument, const char *word)
{
    ssize_t end = argument ? slice_find(*argument, 0) : -1;
    return argument == NULL ||
           slice_ieq_str((struct slice){argument->p, end < 0 ? argument->n : (size_t)end}, word);
}

static bool is_plain(const struct slice *argument)
{
    return argument && slice_find(*argument, 0) < 0;
}

/* ---- keys ---- */

/* They begin at an argument, or behind their number. */
static const char *span_begin(struct redis_span *s, const struct redis_keys *k, int first, int n)
{
    s->first = first;
    if (k->find == REDIS_FIND_COUNT) {
        s->count = first + k->a;
        return s->count < n ? NULL : unfound;
    }
    if (first == n && k->a < 0) /* as UNSUBSCRIBE without a channel */
        return NULL;
    s->last = k->a >= 0 ? first + k->a : k->c >= 2 ? first + (n - first) / k->c + k->a : n + k->a;
    s->step = k->b;
    if (k->c >= 2 && (n - first) % k->c != 0)
        return unfound;
    if (first >= n || s->last >= n || s->last < first || s->step < 1)
        return unfound;
    s->last -= (s->last - first) % s->step; /* the last that is one */
    return NULL;
}

static const char *span_count(struct redis_span *s, const struct redis_keys *k,
                              const struct slice *argument, int n)
{
    uint64_t count;
    int at = s->count;
    s->count = 0;
    if (argument == NULL || slice_u64(*argument, RESP_ARGUMENTS_MAX, &count) < 0)
        return unfound;
    if (count == 0)
        return NULL;
    s->first += k->b;
    s->step = k->c;
    if (s->first <= at || s->step < 1 || count > (uint64_t)n)
        return unfound;
    s->last = s->first + ((int)count - 1) * s->step;
    return s->first >= n || s->last >= n ? unfound : NULL;
}

static bool key_allowed(const struct redis_terms *t, struct slice key)
{
    for (size_t i = 0; i < t->n_keys; i++)
        if (redis_pattern_match(slice_str(t->keys[i]), key))
            return true;
    return false;
}

static const char *keys_begin(struct redis_judged *j)
{
    const struct redis_command *row = j->command;
    const char *why = NULL;
    if (row->arity < 0 ? j->n < -row->arity : j->n != row->arity)
        return "a command with another number of arguments than it has";
    if (row->classes & (REDIS_HIDDEN | REDIS_SCRIPTING | REDIS_BROAD))
        return unfound;
    for (size_t i = 0; i < REDIS_KEYS_MAX && row->keys[i].find && why == NULL; i++) {
        j->keys[i].looking = row->keys[i].keyword != NULL;
        if (!j->keys[i].looking)
            why = span_begin(&j->keys[i], &row->keys[i], row->keys[i].begin, j->n);
    }
    return why;
}

/* A keyword that is there twice could be either; one with a byte 0 is none to some. */
static const char *key_argument(struct redis_judged *j, size_t of, int i,
                                const struct slice *argument)
{
    const struct redis_keys *k = &j->command->keys[of];
    struct redis_span *s = &j->keys[of];
    const char *why = NULL;
    bool word = k->keyword && could_be(argument, k->keyword);
    if (word && (!s->looking || i < k->begin || !is_plain(argument)))
        return unfound;
    if (word) {
        s->looking = false;
        return span_begin(s, k, i + 1, j->n);
    }
    if (s->count == i)
        why = span_count(s, k, argument, j->n);
    else if (s->step && i >= s->first && i <= s->last && (i - s->first) % s->step == 0)
        why = argument == NULL                   ? "a key that is too long to be compared"
              : key_allowed(j->terms, *argument) ? NULL
                                                 : "a key or a channel that its rule does not name";
    return why;
}

/* ---- databases ---- */

static const char other_database[] = "a command about another database";

static const char *database_begin(const struct redis_judged *j)
{
    if (j->command->classes & REDIS_SCRIPTING)
        return "a script, which could ask another database";
    return is(j, "move") || is(j, "swapdb") || is(j, "flushall") || is(j, "migrate") ||
                   (is(j, "select") && j->n != 2)
               ? other_database
               : NULL;
}

static const char *database_argument(const struct redis_judged *j, int i,
                                     const struct slice *argument)
{
    uint64_t number;
    if (is(j, "select") && i == 1)
        return argument && slice_u64(*argument, UINT32_MAX, &number) == 0 &&
                       number == j->terms->database
                   ? NULL
                   : other_database;
    return is(j, "copy") && i >= 3 && could_be(argument, "db") ? other_database : NULL;
}

/* ---- what shows a password ---- */

/* Parameters of Redis' and of Valkey's, as CONFIG GET takes them: a pattern that could mean one
 * does. What is said of the login lets nobody compare a guess: it does not come at all. */
static const char *parameter_argument(const struct slice *argument)
{
    static const char *const passwords[] = {"requirepass", "masterauth", "primaryauth",
                                            "tls-key-file-pass", "tls-client-key-file-pass"};
    static const char shows[] = "a parameter that holds a password, or a pattern that may mean one";
    size_t n = 0;
    if (argument == NULL)
        return shows;
    while (n < argument->n && argument->p[n] && strchr("*?[\\", argument->p[n]) == NULL)
        n++; /* of one with a byte 0 servers read what is before it */
    struct slice begin = {argument->p, n};
    for (size_t i = 0; i < ARRAY_LEN(passwords); i++) {
        struct slice name = slice_str(passwords[i]);
        if (n == argument->n ? slice_ieq(*argument, name) : slice_istarts(name, begin))
            return shows;
    }
    return NULL;
}

/* ---- HELLO ---- */

enum { HELLO_VERSION = 0, HELLO_WORD, HELLO_USER, HELLO_PASSWORD, HELLO_NAME };

static const char *hello_argument(struct redis_hello *h, const struct slice *a)
{
    if (a == NULL)
        return unread_hello;
    switch (h->next) {
    case HELLO_VERSION:
        if (!slice_eq_str(*a, "2") && !slice_eq_str(*a, "3"))
            return unread_hello;
        h->version = a->p[0];
        break;
    case HELLO_USER:
        h->next = HELLO_PASSWORD;
        return NULL;
    case HELLO_PASSWORD:
        break;
    case HELLO_NAME:
        if (a->n > sizeof h->name)
            return unread_hello;
        if (a->n)
            memcpy(h->name, a->p, a->n);
        h->n_name = a->n;
        break;
    default:
        if (slice_ieq_str(*a, "auth") && !h->has_login) {
            h->has_login = true;
            h->next = HELLO_USER;
        } else if (slice_ieq_str(*a, "setname") && !h->has_name) {
            h->has_name = true;
            h->next = HELLO_NAME;
        } else {
            return unread_hello;
        }
        return NULL;
    }
    h->next = HELLO_WORD;
    return NULL;
}

bool redis_judged_hello(const struct redis_judged *j)
{
    return is(j, "hello");
}

/* ---- all of it ---- */

static void row_found(struct redis_judged *j)
{
    const struct redis_terms *t = j->terms;
    const struct redis_command *row = j->command;
    j->login = is(j, "auth");
    if (j->login)
        return;
    if (row->classes & REDIS_NEVER)
        j->why = "a command that nobody may use here";
    else if (!is(j, "hello") && !is_allowed(t, row))
        j->why = row->classes & REDIS_NAMED && t->n_commands == 0
                     ? "a command that its rule would have to name"
                     : "a command that its rule does not allow";
    else if (!is(j, "hello") && t->read_only && !reads_only(row->classes))
        j->why = "a command that writes";
    if (j->why == NULL && t->has_database)
        j->why = database_begin(j);
    if (j->why == NULL && t->n_keys)
        j->why = keys_begin(j);
}

/* Behind argument i: can anything that comes be a reason? */
static bool is_settled(const struct redis_judged *j, int i)
{
    const struct redis_terms *t = j->terms;
    if (is(j, "hello") || is(j, "config|get") ||
        (t->has_database && (is(j, "copy") || (is(j, "select") && i < 1))))
        return false;
    for (size_t of = 0; t->n_keys && of < REDIS_KEYS_MAX && j->command->keys[of].find; of++) {
        const struct redis_span *s = &j->keys[of];
        if (j->command->keys[of].keyword || s->count || (s->step && i < s->last))
            return false;
    }
    return true;
}

void redis_judge_begin(struct redis_judged *j, const struct redis_terms *t, size_t n)
{
    memset(j, 0, sizeof *j);
    j->terms = t;
    j->n = (int)n;
}

void redis_judge_argument(struct redis_judged *j, size_t at, const struct slice *argument)
{
    int i = (int)at;
    if (j->why || j->login || j->settled)
        return;
    if (j->command == NULL) {
        if (!name_read(j, at, argument) || j->why)
            return;
        row_found(j);
    } else if (is(j, "hello")) {
        j->why = hello_argument(&j->hello, argument);
    } else {
        if (is(j, "config|get"))
            j->why = parameter_argument(argument);
        if (j->why == NULL && j->terms->has_database)
            j->why = database_argument(j, i, argument);
        for (size_t of = 0;
             j->terms->n_keys && of < REDIS_KEYS_MAX && j->command->keys[of].find && j->why == NULL;
             of++)
            j->why = key_argument(j, of, i, argument);
    }
    j->settled = j->why == NULL && !j->login && is_settled(j, i);
}

void redis_judge_end(struct redis_judged *j)
{
    if (j->why == NULL && is(j, "hello") && j->hello.next > HELLO_WORD)
        j->why = unread_hello;
}
