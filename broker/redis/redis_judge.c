/* Decides about a command by the table and a rule's terms. */
#include "redis_judge.h"

#include <string.h>

/* Its row; a name that no row has, or a part of one: NULL. */
static const struct redis_command *row_of(const struct resp_commands *c)
{
    char name[REDIS_COMMAND_NAME_MAX];
    struct slice first = resp_argument(c, 0);
    size_t n = 0;
    for (; n < first.n; n++) {
        if (n + 1 >= sizeof name || first.p[n] <= ' ' || first.p[n] == '|')
            return NULL;
        name[n] = ascii_lower(first.p[n]);
    }
    name[n] = 0;
    const struct redis_command *row = redis_command_find(name);
    if (row == NULL || !(row->classes & REDIS_CONTAINER))
        return row;
    if (c->n < 2) /* COMMAND alone tells of all commands; the others are wrong without a part */
        return strcmp(name, "command") == 0 ? row : NULL;
    struct slice second = resp_argument(c, 1);
    if (n + 1 + second.n >= sizeof name)
        return NULL;
    name[n++] = '|';
    for (size_t i = 0; i < second.n; i++) {
        if (second.p[i] <= ' ' || second.p[i] == '|')
            return NULL;
        name[n++] = ascii_lower(second.p[i]);
    }
    name[n] = 0;
    return redis_command_find(name);
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

/* ---- keys ---- */

static bool key_allowed(const struct redis_terms *t, struct slice key)
{
    for (size_t i = 0; i < t->n_keys; i++)
        if (redis_pattern_match(slice_str(t->keys[i]), key))
            return true;
    return false;
}

static const char unfound[] = "a command whose keys cannot be found";

/* Where the keys of one description begin: 0: there are none; -1: it cannot be said. A keyword that
 * is there twice could be either. */
static int begin_of(const struct redis_keys *k, const struct resp_commands *c)
{
    int found = 0;
    if (k->keyword == NULL)
        return k->begin;
    for (size_t i = 1; i < c->n; i++) {
        if (!slice_ieq_str(resp_argument(c, i), k->keyword))
            continue;
        if (found || i < (size_t)k->begin)
            return -1;
        found = (int)i + 1;
    }
    return found;
}

static const char *check_keys_of(const struct redis_terms *t, const struct redis_keys *k,
                                 const struct resp_commands *c)
{
    int n = (int)c->n, first = begin_of(k, c), last, step = k->b;
    if (first == 0)
        return NULL;
    if (first < 0)
        return unfound;
    if (k->find == REDIS_FIND_RANGE) {
        if (first == n && k->a < 0)
            return NULL; /* as UNSUBSCRIBE without a channel */
        last = k->a >= 0 ? first + k->a : k->c >= 2 ? first + (n - first) / k->c + k->a : n + k->a;
        if (k->c >= 2 && (n - first) % k->c != 0)
            return unfound;
    } else {
        uint64_t count;
        int at = first + k->a;
        if (at >= n || slice_u64(resp_argument(c, (size_t)at), RESP_ARGUMENTS_MAX, &count) < 0)
            return unfound;
        first += k->b;
        step = k->c;
        last = first + ((int)count - 1) * step;
        if (count == 0)
            return NULL;
    }
    if (first >= n || last >= n || last < first || step < 1)
        return unfound;
    for (int i = first; i <= last; i += step)
        if (!key_allowed(t, resp_argument(c, (size_t)i)))
            return "a key or a channel that its rule does not name";
    return NULL;
}

static const char *check_keys(const struct redis_terms *t, const struct redis_command *row,
                              const struct resp_commands *c)
{
    const char *why = NULL;
    bool right = row->arity < 0 ? c->n >= (size_t)-row->arity : c->n == (size_t)row->arity;
    if (!right)
        return "a command with another number of arguments than it has";
    if (row->classes & (REDIS_HIDDEN | REDIS_SCRIPTING | REDIS_BROAD))
        return unfound;
    for (size_t i = 0; i < REDIS_KEYS_MAX && row->keys[i].find && why == NULL; i++)
        why = check_keys_of(t, &row->keys[i], c);
    return why;
}

/* ---- databases ---- */

static const char *check_database(const struct redis_terms *t, const struct redis_command *row,
                                  const struct resp_commands *c)
{
    static const char other[] = "a command about another database";
    uint64_t number;
    if (row->classes & REDIS_SCRIPTING)
        return "a script, which could ask another database";
    if (strcmp(row->name, "select") == 0)
        return c->n == 2 && slice_u64(resp_argument(c, 1), UINT32_MAX, &number) == 0 &&
                       number == t->database
                   ? NULL
                   : other;
    if (strcmp(row->name, "move") == 0 || strcmp(row->name, "swapdb") == 0 ||
        strcmp(row->name, "flushall") == 0 || strcmp(row->name, "migrate") == 0)
        return other;
    for (size_t i = 3; strcmp(row->name, "copy") == 0 && i < c->n; i++)
        if (slice_ieq_str(resp_argument(c, i), "db"))
            return other;
    return NULL;
}

int redis_hello_read(const struct resp_commands *c, struct redis_hello *ret)
{
    size_t i = 2;
    memset(ret, 0, sizeof *ret);
    if (c->n == 1)
        return 0;
    ret->version = resp_argument(c, 1);
    if (!slice_eq_str(ret->version, "2") && !slice_eq_str(ret->version, "3"))
        return -1;
    while (i < c->n) {
        struct slice word = resp_argument(c, i);
        if (slice_ieq_str(word, "auth") && i + 2 < c->n && !ret->has_login) {
            ret->has_login = true;
            i += 3;
        } else if (slice_ieq_str(word, "setname") && i + 1 < c->n && ret->name.p == NULL) {
            ret->name = resp_argument(c, i + 1);
            i += 2;
        } else {
            return -1;
        }
    }
    return 0;
}

void redis_judge(const struct redis_terms *t, const struct resp_commands *c,
                 struct redis_judged *ret)
{
    struct redis_hello hello;
    const struct redis_command *row = row_of(c);
    *ret = (struct redis_judged){.command = row};
    if (row == NULL) {
        ret->why = "a command that is not known here";
        return;
    }
    ret->login = strcmp(row->name, "auth") == 0;
    if (ret->login)
        return;
    if (row->classes & REDIS_NEVER)
        ret->why = "a command that nobody may use here";
    else if (strcmp(row->name, "hello") == 0)
        ret->why = redis_hello_read(c, &hello) < 0 ? "a HELLO that cannot be read" : NULL;
    else if (!is_allowed(t, row))
        ret->why = row->classes & REDIS_NAMED && t->n_commands == 0
                       ? "a command that its rule would have to name"
                       : "a command that its rule does not allow";
    else if (t->read_only && !reads_only(row->classes))
        ret->why = "a command that writes";
    if (ret->why == NULL && t->has_database)
        ret->why = check_database(t, row, c);
    if (ret->why == NULL && t->n_keys)
        ret->why = check_keys(t, row, c);
}
