/* Reads the syntaxes of login files into one form: objects of texts. JSON and YAML by their
 * libraries; INI files, netrc and npmrc here, line by line. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "login_file.h"
#include "login_shapes.h"
#include "yaml_tree.h"

enum { HARMLESS_MAX = 4096 };

static json_t *object_in(json_t *tree, const char *name)
{
    json_t *v = json_object_get(tree, name);
    if (v == NULL) {
        v = json_object();
        if (v == NULL || json_object_set_new(tree, name, v) < 0)
            v = NULL; /* not UTF-8: nobody's */
    }
    return v;
}

static void put(json_t *object, const char *name, const char *value)
{
    if (object && json_object_get(object, name) == NULL)
        json_object_set_new(object, name, json_string(value));
}

static char *trimmed(char *s)
{
    while (*s == ' ' || *s == '\t')
        s++;
    size_t n = strlen(s);
    while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t' || s[n - 1] == '\r'))
        n--;
    s[n] = 0;
    if (n > 1 && (s[0] == '"' || s[0] == '\'') && s[n - 1] == s[0]) {
        s[n - 1] = 0;
        s++;
    }
    return s;
}

/* NAME = VALUE; false: it is none. Both end with the line, which is taken apart. */
static bool setting(char *line, char **name, char **value)
{
    char *equals = strchr(line, '=');
    if (equals == NULL)
        return false;
    *equals = 0;
    *name = trimmed(line);
    *value = trimmed(equals + 1);
    return **name != 0;
}

static void read_ini(char *text, json_t *tree)
{
    json_t *section = NULL;
    char *name, *value;
    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        char *s = trimmed(line), *end = strchr(s, ']');
        if (*s == '#' || *s == ';' || *s == 0)
            continue;
        if (*s == '[' && end) {
            *end = 0;
            section = object_in(tree, trimmed(s + 1));
        } else if (section && setting(s, &name, &value)) {
            put(section, name, value);
        }
    }
}

/* ---- netrc ---- */

static char *next_word(char **at)
{
    char *s = *at;
    for (;;) {
        while (isspace((unsigned char)*s))
            s++;
        if (*s != '#')
            break;
        s += strcspn(s, "\n");
    }
    if (*s == 0)
        return NULL;
    bool quoted = *s == '"';
    char *word = s + quoted;
    s = quoted ? word + strcspn(word, "\"\n") : word + strcspn(word, " \t\r\n");
    if (*s)
        *s++ = 0;
    *at = s;
    return word;
}

/* A macro goes on to the first empty line. */
static char *behind_macro(char *s)
{
    char *end = strstr(s, "\n\n");
    return end ? end : s + strlen(s);
}

static void read_netrc(char *text, json_t *tree)
{
    json_t *machine = NULL;
    for (char *word; (word = next_word(&text)) != NULL;) {
        if (strcmp(word, "macdef") == 0) {
            text = behind_macro(text);
        } else if (strcmp(word, "default") == 0) {
            machine = NULL; /* of whoever asks: of nobody here */
        } else {
            char *value = next_word(&text);
            if (value == NULL)
                return;
            if (strcmp(word, "machine") == 0)
                machine = json_object_get(tree, value) ? NULL : object_in(tree, value);
            else
                put(machine, word, value);
        }
    }
}

/* ---- npmrc ---- */

/* Where packages come from is no secret, unless somebody wrote one into the URL. */
static bool is_harmless(const char *name, const char *value)
{
    size_t n = strlen(name);
    static const char end[] = ":registry";
    bool place = strcmp(name, "registry") == 0 ||
                 (name[0] == '@' && n >= sizeof end && strcmp(name + n - 9, end) == 0);
    return place && strncmp(value, "https://", 8) == 0 && strlen(value) <= LOGIN_VALUE_MAX &&
           strpbrk(value, "@{}?#\"'\\ ") == NULL && strpbrk(name, "{}\"'\\ ") == NULL;
}

/* //HOST/PATH/:NAME */
static void put_registry(json_t *tree, char *name, const char *value)
{
    char *colon = strrchr(name, ':');
    if (strncmp(name, "//", 2) != 0 || colon == NULL || strstr(value, "${"))
        return;
    *colon = 0;
    name += 2;
    size_t n = strlen(name);
    if (n > 0 && name[n - 1] == '/')
        name[n - 1] = 0;
    put(object_in(tree, name), colon + 1, value);
}

static void read_npmrc(char *text, json_t *tree, char **lines)
{
    struct buf kept;
    char *name, *value;
    buf_init(&kept, HARMLESS_MAX);
    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        if (*line == '#' || *line == ';' || !setting(line, &name, &value))
            continue;
        if (!is_harmless(name, value))
            put_registry(tree, name, value);
        else if (buf_printf(&kept, "%s=%s\n", name, value) < 0)
            break; /* more of them than anybody has */
    }
    *lines = slice_dup(buf_slice(&kept));
    buf_free(&kept);
}

/* ---- all ---- */

static json_t *read_yaml(struct slice text, const char *path, struct err *err)
{
    json_t *tree = NULL, *numbers = NULL;
    if (yaml_tree_parse(text, path, &tree, &numbers, err) < 0)
        return NULL;
    json_decref(numbers);
    return tree;
}

json_t *login_tree_of(enum login_syntax syntax, char *text, size_t n, const char *path,
                      char **lines, struct err *err)
{
    json_t *tree = NULL;
    *lines = NULL;
    if (memchr(text, 0, n) != NULL) {
        err_set(err, ERR_PARSE, "%s holds a NUL byte", path);
        return NULL;
    }
    if (syntax >= LOGIN_PIP)
        return login_shape_of(syntax, text, n, path, lines, err);
    switch (syntax) {
    case LOGIN_JSON:
        tree = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
        break;
    case LOGIN_YAML:
        tree = read_yaml((struct slice){text, n}, path, err);
        break;
    case LOGIN_INI:
        read_ini(text, tree = json_object());
        break;
    case LOGIN_NETRC:
        read_netrc(text, tree = json_object());
        break;
    default:
        read_npmrc(text, tree = json_object(), lines);
    }
    if (!json_is_object(tree)) {
        json_decref(tree);
        tree = NULL;
        err_set(err, ERR_PARSE, "%s cannot be read as what it should be", path);
    }
    return tree;
}
