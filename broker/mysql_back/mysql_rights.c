/* Reads "GRANT SELECT, INSERT (`a`) ON `orders`.* TO ...". */
#include "mysql_rights.h"

#include <stdio.h>
#include <string.h>

/* Where a word begins that is in no quotes and no parentheses; -1: nowhere. */
static ssize_t find(struct slice s, struct slice word)
{
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '`')
            quoted = !quoted;
        else if (!quoted && s.p[i] == '(')
            depth++;
        else if (!quoted && s.p[i] == ')' && depth > 0)
            depth--;
        else if (!quoted && depth == 0 && slice_starts((struct slice){s.p + i, s.n - i}, word))
            return (ssize_t)i;
    }
    return -1;
}

static struct slice from(struct slice s, size_t n)
{
    return (struct slice){s.p + n, s.n - n};
}

static const char *say(char *why, size_t size, const char *what, struct slice s)
{
    snprintf(why, size, "%s%.*s", what, s.n < 120 ? (int)s.n : 120, s.p);
    return why;
}

static bool reads(struct slice right)
{
    static const char *const all[] = {"USAGE",          "SELECT",  "SHOW VIEW",
                                      "SHOW DATABASES", "PROCESS", "REPLICATION CLIENT",
                                      "BINLOG MONITOR"};
    ssize_t columns = slice_find_slice(right, SLICE(" ("));
    if (columns >= 0)
        right.n = (size_t)columns;
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (slice_eq_str(right, all[i]))
            return true;
    return false;
}

/* The first right that is more than reading, p NULL: there is none. */
static struct slice writing(struct slice rights)
{
    for (;;) {
        ssize_t comma = find(rights, SLICE(", "));
        struct slice one = {rights.p, comma < 0 ? rights.n : (size_t)comma};
        if (!reads(one))
            return one;
        if (comma < 0)
            return (struct slice){NULL, 0};
        rights = from(rights, (size_t)comma + 2);
    }
}

/* `name`. and what follows, the name with "\_" for "_" as a pattern has it. */
static bool is_within(struct slice where, struct slice database)
{
    size_t k = 0, i = 1;
    if (where.n < 3 || where.p[0] != '`')
        return false;
    for (; i < where.n && where.p[i] != '`'; i++) {
        if (where.p[i] == '\\' && i + 1 < where.n && strchr("_%", where.p[i + 1]))
            i++;
        if (k >= database.n || where.p[i] != database.p[k++])
            return false;
    }
    return k == database.n && i + 1 < where.n && where.p[i + 1] == '.';
}

const char *mysql_rights_beyond(struct slice line, bool read_only, struct slice database, char *why,
                                size_t size)
{
    ssize_t on, to;
    if (!slice_starts(line, SLICE("GRANT ")))
        return say(why, size,
                   "it has more than grants: ", (struct slice){line.p, line.n < 6 ? line.n : 6});
    line = from(line, 6);
    on = find(line, SLICE(" ON "));
    if (on < 0) {
        to = find(line, SLICE(" TO "));
        return say(why, size, "it has the role ", (struct slice){line.p, to < 0 ? 0 : (size_t)to});
    }
    struct slice rights = {line.p, (size_t)on}, where = from(line, (size_t)on + 4);
    to = find(where, SLICE(" TO "));
    if (to < 0)
        return say(why, size, "its grants cannot be read", SLICE(""));
    struct slice behind = from(where, (size_t)to);
    where.n = (size_t)to;
    struct slice beyond = writing(rights);
    if (read_only && beyond.p)
        return say(why, size, "it may ",
                   (struct slice){beyond.p,
                                  line.n > where.n ? (size_t)(where.p + where.n - beyond.p) : 0});
    if (read_only && slice_find_slice(behind, SLICE("WITH GRANT OPTION")) >= 0)
        return say(why, size, "it may hand on its rights on ", where);
    if (database.n == 0 || is_within(where, database))
        return NULL;
    if (slice_eq_str(where, "*.*") && slice_eq_str(rights, "USAGE"))
        return NULL;
    return say(why, size, "it has rights beyond that database, on ", where);
}
