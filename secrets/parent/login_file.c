/* Finds entries and parts in the tree of a login file, and hands values of it to the vault in files
 * of memory. */
#define _GNU_SOURCE 1
#include "login_file.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base64.h"

/* ---- the text ---- */

static void wiping_free(void *p)
{
    if (p)
        explicit_bzero(p, malloc_usable_size(p));
    free(p);
}

void login_trees_wiped(void)
{
    json_set_alloc_funcs(malloc, wiping_free);
}

void login_text_free(char *text, size_t n)
{
    if (text)
        explicit_bzero(text, n);
    free(text);
}

char *login_text_read(const char *path, size_t *n, struct err *err)
{
    login_trees_wiped();
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        err_sys(err, "cannot open %s", path);
        return NULL;
    }
    char *text = store_check_file(fd, path, err) < 0 ? NULL : calloc(1, SECRET_MAX + 2);
    ssize_t got = text ? 1 : 0;
    for (*n = 0; got > 0 && *n <= SECRET_MAX; *n += (size_t)(got > 0 ? got : 0))
        got = read(fd, text + *n, SECRET_MAX + 1 - *n);
    close(fd);
    if (text && (got < 0 || *n > SECRET_MAX)) {
        err_set(err, ERR_LIMIT, "%s is longer than %d bytes, or cannot be read", path, SECRET_MAX);
        login_text_free(text, *n);
        return NULL;
    }
    return text;
}

static json_t *read_tree(const struct login_format *f, const char *path, char **lines,
                         struct err *err)
{
    size_t n;
    char *text = login_text_read(path, &n, err);
    if (text == NULL)
        return NULL;
    json_t *tree = login_tree_of(login_syntax(f), text, n, path, lines, err);
    login_text_free(text, n);
    return tree;
}

/* ---- places ---- */

/* What a token says of itself. Nobody checks its signature: it is the user's own file. */
static json_t *claims_of(const json_t *token)
{
    struct slice all = json_is_string(token)
                           ? (struct slice){json_string_value(token), json_string_length(token)}
                           : SLICE("");
    ssize_t dot = slice_find(all, '.');
    struct slice rest = {all.p + dot + 1, dot < 0 ? 0 : all.n - (size_t)dot - 1};
    ssize_t end = slice_find(rest, '.');
    struct buf text;
    json_t *claims = NULL;
    buf_init_wiped(&text, SECRET_MAX);
    if (end > 0 && base64url_decode(&text, (struct slice){rest.p, (size_t)end}) == 0)
        claims = json_loadb((const char *)buf_data(&text), buf_len(&text), 0, NULL);
    buf_free(&text);
    return claims;
}

/* New reference; NULL: nothing is there. */
static json_t *walk(json_t *tree, login_place at, size_t from, size_t till)
{
    json_t *v = json_incref(tree);
    for (size_t i = from; v && i < till; i++) {
        const char *name = json_string_value(json_array_get(at, i));
        json_t *next =
            strcmp(name, "#claims") == 0 ? claims_of(v) : json_incref(json_object_get(v, name));
        json_decref(v);
        v = next;
    }
    return v;
}

/* The text or number that is there, malloc'd; NULL: neither. */
static char *text_at(json_t *tree, login_place at)
{
    json_t *v = walk(tree, at, 0, json_array_size(at));
    char *text = NULL;
    if (json_is_string(v) && json_string_length(v) > 0 &&
        strlen(json_string_value(v)) == json_string_length(v))
        text = strdup(json_string_value(v));
    else if (json_is_integer(v) && asprintf(&text, "%lld", (long long)json_integer_value(v)) < 0)
        text = NULL;
    json_decref(v);
    return text;
}

static void text_done(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

/* The entry of that name; new reference. */
static json_t *entry_of(const struct login_format *f, json_t *tree, const char *name)
{
    login_place at = login_entries(f);
    if (at == NULL)
        return json_incref(tree);
    json_t *all = walk(tree, at, 0, json_array_size(at) - 1);
    json_t *entry = json_incref(json_object_get(all, name));
    json_decref(all);
    return entry;
}

/* ---- looking ---- */

/* What is written into files of the sandbox, unquoted: no sign that means something in one. */
static bool plain(const char *s)
{
    return strlen(s) <= LOGIN_VALUE_MAX &&
           strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@:/+~-") ==
               strlen(s);
}

/* Scopes are words with blanks between. */
static bool plain_words(const char *s)
{
    char copy[LOGIN_VALUE_MAX + 1];
    if (strlen(s) > LOGIN_VALUE_MAX)
        return false;
    snprintf(copy, sizeof copy, "%s", s);
    for (char *c = copy; (c = strchr(c, ' ')) != NULL;)
        *c = '_';
    return plain(copy);
}

struct looking {
    json_t *entry, *parts;
    bool whole;
};

static void look_part(void *arg, const char *part, login_place at, bool secret, bool needed)
{
    struct looking *l = arg;
    char *text = text_at(l->entry, at);
    if (text && secret)
        json_object_set_new(l->parts, part, json_string(""));
    else if (!secret)
        json_object_set_new(l->parts, part, json_string(text && plain_words(text) ? text : ""));
    l->whole = l->whole && (text || !needed);
    text_done(text);
}

static bool is_asked(const char *only, const char *entry)
{
    size_t n = strlen(entry);
    while (only && *only) {
        size_t len = strcspn(only, ",");
        if (len == n && memcmp(only, entry, n) == 0)
            return true;
        only += len + (only[len] == ',');
    }
    return only == NULL;
}

static void look_entry(struct login_use *u, json_t *entry, const char *name)
{
    struct looking l = {.entry = entry, .parts = json_object(), .whole = json_is_object(entry)};
    if (l.whole)
        login_each_part(u->format, look_part, &l);
    if (l.whole && plain(name) && json_object_size(u->entries) < LOGIN_ENTRIES_MAX)
        json_object_set(u->entries, name, l.parts);
    json_decref(l.parts);
}

static void look_all(struct login_use *u, json_t *tree, const char *only)
{
    login_place at = login_entries(u->format);
    const char *name;
    json_t *entry;
    if (at == NULL) {
        look_entry(u, tree, "");
        return;
    }
    json_t *all = walk(tree, at, 0, json_array_size(at) - 1);
    json_object_foreach(all, name, entry) if (is_asked(only, name)) look_entry(u, entry, name);
    json_decref(all);
}

int login_file_look(struct login_use *u, const char *only, struct err *err)
{
    if (only && login_entries(u->format) == NULL)
        return err_set(err, ERR_PARSE, "--login %s: this login has no entries to choose from",
                       login_name(u->format));
    json_t *tree = read_tree(u->format, u->file, &u->lines, err);
    if (tree == NULL)
        return -1;
    u->entries = json_object();
    const char *one = login_one(u->format);
    if (one && *one == '=') {
        one = json_string_value(json_object_get(tree, one));
        one = one ? one : "";
    }
    look_all(u, tree, only ? only : one);
    json_decref(tree);
    if (json_object_size(u->entries) == 0)
        return err_set(
            err, ERR_UNREADY,
            "%s holds no login that can be used%s%s; is it kept in the system's keyring, "
            "or made of a variable?",
            u->file, only ? " for " : "", only ? only : "");
    return 0;
}

void login_use_done(struct login_use *u)
{
    json_decref(u->entries);
    free(u->lines);
    free(u->file);
    free(u->of);
    login_format_free(u->format);
    *u = (struct login_use){0};
}

/* ---- values ---- */

static int64_t expires_of(const struct login_format *f, json_t *tree)
{
    int64_t at = 0;
    if (login_is_jwt(f)) {
        json_t *token =
            walk(tree, login_secret(f, "access"), 0, json_array_size(login_secret(f, "access")));
        json_t *claims = claims_of(token);
        at = json_integer_value(json_object_get(claims, "exp"));
        json_decref(claims);
        json_decref(token);
    } else {
        char *text = text_at(tree, login_secret(f, "expires"));
        at = text ? strtoll(text, NULL, 10) : 0;
        text_done(text);
    }
    return login_is_ms(f) ? at / 1000 : at;
}

/* Where the file's format has such a part, and the file has it. */
static void copy_part(json_t *tree, login_place at, json_t *to, const char *name)
{
    json_t *part = at ? walk(tree, at, 0, json_array_size(at)) : NULL;
    if (part)
        json_object_set_new(to, name, part);
}

int login_file_session(const struct login_format *f, const char *path, struct buf *to,
                       struct err *err)
{
    char *lines = NULL;
    json_t *tree = read_tree(f, path, &lines, err);
    free(lines);
    if (tree == NULL)
        return -1;
    char *access = text_at(tree, login_secret(f, "access"));
    char *refresh = text_at(tree, login_secret(f, "refresh"));
    json_t *v = access
                    ? json_pack("{s:s, s:s, s:I}", "access", access, "refresh",
                                refresh ? refresh : "", "expires", (json_int_t)expires_of(f, tree))
                    : NULL;
    if (v) {
        copy_part(tree, login_secret(f, "client"), v, "client");
        copy_part(tree, login_beside(f, "token"), v, "token_url");
        copy_part(tree, login_beside(f, "resource"), v, "resource");
    }
    char *text = v ? json_dumps(v, JSON_COMPACT) : NULL;
    int r = text ? buf_append_str(to, text) : -1;
    text_done(access);
    text_done(refresh);
    text_done(text);
    json_decref(v);
    json_decref(tree);
    return r < 0 ? err_set(err, ERR_UNREADY, "%s holds no login any more; log in again", path) : 0;
}

static int value_of(const struct config_secret *s, const struct login_format *f, struct buf *to,
                    struct err *err)
{
    char *lines = NULL;
    if (strcmp(s->login->part, "session") == 0)
        return login_file_session(f, s->source, to, err);
    json_t *tree = read_tree(f, s->source, &lines, err);
    free(lines);
    if (tree == NULL)
        return -1;
    json_t *entry = entry_of(f, tree, s->login->entry);
    char *text = entry ? text_at(entry, login_secret(f, s->login->part)) : NULL;
    int r = text ? buf_append_str(to, text) : -1;
    text_done(text);
    json_decref(entry);
    json_decref(tree);
    return r < 0 ? err_set(err, ERR_UNREADY, "%s has no '%s'%s%s any more", s->source,
                           s->login->part, *s->login->entry ? " of " : "", s->login->entry)
                 : 0;
}

static int memory_file(struct slice text, struct err *err)
{
    int fd = memfd_create("login", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return err_sys(err, "memfd_create");
    if (write(fd, text.p, text.n) == (ssize_t)text.n &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == 0 &&
        lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    err_sys(err, "a file in memory");
    close(fd);
    return -1;
}

int login_file_open(const struct config_secret *s, struct store_result *ret, struct err *err)
{
    struct buf value;
    struct login_format *f = login_format_new(s->login->format, err);
    if (f == NULL)
        return -1;
    buf_init_wiped(&value, SECRET_MAX);
    int r = value_of(s, f, &value, err);
    int fd = r == 0 ? memory_file(buf_slice(&value), err) : -1;
    buf_free(&value);
    login_format_free(f);
    *ret = (struct store_result){.fd = fd};
    return fd < 0 ? -1 : 0;
}
