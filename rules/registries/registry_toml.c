/* Cargo's configuration and that of Podman and its kin: of TOML, what they write there in practice.
 * A line that cannot be understood is nobody's. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "registry_read.h"

enum { NAME_SIZE = 128 };

/* A table's header without brackets, quotes and blanks: [source."a b"] is "source.a b". */
static bool header(const char *line, char to[NAME_SIZE], bool *list)
{
    size_t n = 0;
    *list = strncmp(line, "[[", 2) == 0;
    line += 1 + *list;
    for (; *line && *line != ']' && n + 1 < NAME_SIZE; line++)
        if (*line != '"' && *line != '\'' && *line != ' ' && *line != '\t')
            to[n++] = *line;
    to[n] = 0;
    return *line == ']';
}

/* KEY = VALUE; a comment behind a value that is quoted is cut off. */
static bool setting(char *line, char **key, char **value)
{
    char *equals = strchr(line, '=');
    if (equals == NULL)
        return false;
    *equals = 0;
    *key = registry_trim(line);
    char *v = equals + 1 + strspn(equals + 1, " \t");
    if (*v == '"' || *v == '\'') {
        char *end = strchr(v + 1, *v);
        if (end == NULL)
            return false;
        end[1] = 0;
    }
    *value = registry_trim(v);
    return strchr(*value, '\\') == NULL;
}

static void cargo_setting(struct registry_reading *r, char *table, char *key, char *value)
{
    bool source = strncmp(table, "source.", 7) == 0;
    if ((source && strcmp(key, "registry") == 0) ||
        (strncmp(table, "registries.", 11) == 0 && strcmp(key, "index") == 0))
        registry_set_urls(r, table, key, value);
    else if ((source && strcmp(key, "replace-with") == 0) ||
             (strcmp(table, "registry") == 0 && strcmp(key, "default") == 0))
        registry_set_text(r, table, key, value);
}

/* [source.NAME], [registries.NAME], and either as `NAME = { index = "..." }` of its table. */
void registry_read_cargo(struct registry_reading *r, char *text, size_t n)
{
    char table[NAME_SIZE] = "", *key, *value;
    bool list;
    (void)n;
    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        line += strspn(line, " \t");
        if (*line == '#' || *line == 0)
            continue;
        if (*line == '[') {
            if (!header(line, table, &list) || list)
                table[0] = 0;
            continue;
        }
        char *open = strchr(line, '{'), whole[2 * NAME_SIZE];
        if (open && strcspn(line, "=") < (size_t)(open - line)) {
            char *equals = strchr(line, '='), *shut = strchr(open, '}');
            *equals = 0;
            if (shut)
                *shut = 0;
            snprintf(whole, sizeof whole, "%s.%.100s", table, registry_trim(line));
            for (char *at = open + 1, *part; (part = strsep(&at, ",")) != NULL;)
                if (setting(part, &key, &value))
                    cargo_setting(r, whole, key, value);
        } else if (setting(line, &key, &value)) {
            char *dot = strrchr(key, '.');
            snprintf(whole, sizeof whole, "%s%s%.*s", table, dot && *table ? "." : "",
                     dot ? (int)(dot - key) : 0, key);
            cargo_setting(r, whole, dot ? dot + 1 : key, value);
        }
    }
}

/* unqualified-search-registries, and `location` of tables [[registry]] and [[registry.mirror]]. */
void registry_read_containers(struct registry_reading *r, char *text, size_t n)
{
    char table[NAME_SIZE] = "", *key, *value;
    bool list = false;
    (void)n;
    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        line += strspn(line, " \t");
        if (*line == '[' && !header(line, table, &list))
            table[0] = 0;
        if (*line == '#' || *line == '[' || !setting(line, &key, &value))
            continue;
        if (strncmp(table, "registry", 8) == 0 && list && strcmp(key, "location") == 0)
            registry_set_host(r, "containers", value, value);
        if (strcmp(key, "unqualified-search-registries") != 0 || *table)
            continue;
        for (char *at = value, *part; (part = strsep(&at, "[],")) != NULL;)
            if (*(part = registry_trim(part)))
                registry_set_host(r, "containers", part, part);
    }
}
