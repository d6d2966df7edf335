/* Login files whose secrets stand inside other texts (URLs, pairs in base64) or belong to hosts
 * that are named elsewhere: pip's, cargo's, Docker's, kubectl's and the Azure command line's. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "login_shapes.h"
#include "registries.h"
#include "yaml_tree.h"

enum { TEXT_SIZE = 4096, LINES_MAX = 8192 };

#define USUAL "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

/* {NAME: VALUE} below an entry, made when it is not there; what was first counts. */
static void put(json_t *tree, const char *entry, const char *name, const char *value)
{
    json_t *all = json_object_get(tree, entry);
    if (all == NULL && (all = json_object()) != NULL && json_object_set_new(tree, entry, all) < 0)
        return; /* not UTF-8: nobody's */
    if (json_object_get(all, name) == NULL)
        json_object_set_new(all, name, json_string(value));
}

/* The host of a URL or of a name with a path, with its port. */
static bool host_of(const char *url, char to[LOGIN_VALUE_MAX])
{
    const char *scheme = strstr(url, "://"), *host = scheme ? scheme + 3 : url;
    size_t n = strcspn(host, "/?#"), port = strcspn(host, ":");
    if (scheme && strncmp(url, "https://", 8) != 0)
        return false; /* a login does not go where everybody reads it */
    if (n == 0 || n >= LOGIN_VALUE_MAX || strspn(host, USUAL ":") != n || port == 0)
        return false;
    if (n > 4 && strncmp(host + n - 4, ":443", 4) == 0)
        n -= 4;
    snprintf(to, LOGIN_VALUE_MAX, "%.*s", (int)n, host);
    return true;
}

/* ---- pip: https://USER:PASSWORD@HOST/PATH in what says where packages come from ---- */

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static void unescape(const char *s, size_t n, char to[TEXT_SIZE])
{
    size_t used = 0;
    for (size_t i = 0; i < n && used + 1 < TEXT_SIZE; i++) {
        bool coded = s[i] == '%' && i + 2 < n && hex(s[i + 1]) >= 0 && hex(s[i + 2]) >= 0;
        to[used++] = coded ? (char)(hex(s[i + 1]) * 16 + hex(s[i + 2])) : s[i];
        i += coded ? 2 : 0;
    }
    to[used] = 0;
}

/* One URL, its password replaced by a mark; one whose user is no plain name loses both. */
static int pip_url(char *url, json_t *tree, struct buf *lines)
{
    char host[LOGIN_VALUE_MAX], password[TEXT_SIZE], whole[TEXT_SIZE];
    char *rest = strstr(url, "://"),
         *at = rest ? memrchr(rest + 3, '@', strcspn(rest + 3, "/?#")) : NULL;
    size_t authority = rest ? strcspn(rest + 3, "/") : 0;
    if (strpbrk(url, "${}\"'\\#?") || strlen(url) >= sizeof whole ||
        (rest && registry_path_doubtful(rest + 3 + authority)))
        return 0;
    if (at == NULL)
        return buf_printf(lines, " %s", url);
    *rest = *at = 0;
    char *user = rest + 3, *colon = strchr(user, ':');
    size_t n = colon ? (size_t)(colon - user) : 0;
    snprintf(whole, sizeof whole, "%s://%s", url, at + 1);
    if (n == 0 || strspn(user, USUAL) != n || !host_of(whole, host))
        return buf_printf(lines, " %s", whole);
    unescape(colon + 1, strlen(colon + 1), password);
    put(tree, host, "user", (*colon = 0, user));
    put(tree, host, "password", password);
    explicit_bzero(password, sizeof password);
    /* another login for the same host is not used */
    const char *is = json_string_value(json_object_get(json_object_get(tree, host), "user"));
    return strcmp(is ? is : "", user) == 0
               ? buf_printf(lines, " %s://%s:{{secret %s password}}@%s", url, user, host, at + 1)
               : buf_printf(lines, " %s", whole);
}

static bool pip_key(char *key)
{
    static const char *const kept[] = {"index-url", "extra-index-url", "find-links"};
    for (char *c = key; *c; c++)
        *c = *c == '_' ? '-' : *c;
    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        if (strcmp(key, kept[i]) == 0)
            return true;
    return false;
}

static int pip_words(char *s, json_t *tree, struct buf *lines)
{
    int bad = 0;
    for (char *word; (word = strsep(&s, " \t\r")) != NULL;)
        if (*word)
            bad |= pip_url(word, tree, lines);
    return bad;
}

static void read_pip(char *text, json_t *tree, struct buf *lines)
{
    bool kept = false;
    int bad = 0;
    for (char *line; !bad && (line = strsep(&text, "\n")) != NULL;) {
        char *s = line + strspn(line, " \t"), *value = strpbrk(s, "=:");
        if (*s == '#' || *s == ';' || *s == 0 || *s == '\r')
            continue;
        if (*s == '[') {
            size_t n = strspn(s + 1, USUAL);
            kept = false;
            bad = s[1 + n] == ']' ? buf_printf(lines, "[%.*s]\n", (int)n, s + 1) : 0;
        } else if (s > line) {
            bad = kept ? buf_append_str(lines, "   ") | pip_words(s, tree, lines) |
                             buf_append_str(lines, "\n")
                       : 0;
        } else if (value) {
            *value = 0;
            s[strcspn(s, " \t")] = 0;
            kept = pip_key(s);
            bad = kept ? buf_printf(lines, "%s =", s) | pip_words(value + 1, tree, lines) |
                             buf_append_str(lines, "\n")
                       : 0;
        }
    }
    if (bad)
        buf_clear(lines); /* longer than anybody's */
}

/* ---- cargo: tokens by the names of registries, whose hosts its configuration has ---- */

static void put_cargo(json_t *tree, const struct registries *r, const char *name, const char *token)
{
    char section[LOGIN_VALUE_MAX], host[LOGIN_VALUE_MAX];
    snprintf(section, sizeof section, "registries.%.200s", name);
    const char *index = json_string_value(json_array_get(
        json_object_get(json_object_get(json_object_get(r->settings, section), "index"), "urls"),
        0));
    const char *url = index ? strstr(index, "https://") : NULL;
    if (url == NULL || !host_of(url, host))
        return; /* nobody here can say whose it is */
    put(tree, name, "token", token);
    put(tree, name, "host", host);
    put(tree, name, "index", index);
}

static int read_cargo(char *text, json_t *tree, struct err *err)
{
    struct registries r;
    char name[LOGIN_VALUE_MAX] = "";
    int bad = registries_find("cargo", &r, err);
    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        char *s = line + strspn(line, " \t"), *open = strchr(s, '"');
        char *shut = open ? strchr(open + 1, '"') : NULL;
        if (*s == '[') {
            static const char table[] = "[registries.";
            bool is = strncmp(s, table, sizeof table - 1) == 0;
            s += is ? sizeof table - 1 : 0;
            s += *s == '"';
            snprintf(name, sizeof name, "%.*s", is ? (int)strspn(s, USUAL) : 0, s);
        } else if (*name && strncmp(s, "token", 5) == 0 && shut &&
                   !memchr(open, '\\', (size_t)(shut - open)) &&
                   s + 5 + strspn(s + 5, " \t") == strchr(s, '=')) {
            *shut = 0;
            put_cargo(tree, &r, name, open + 1);
        }
    }
    registries_done(&r);
    return bad;
}

/* ---- Docker: { "auths": { HOST: { "auth": BASE64 of USER:PASSWORD } } } ---- */

static void put_docker(json_t *tree, const char *key, const json_t *one)
{
    char host[LOGIN_VALUE_MAX];
    struct buf pair;
    const char *auth = json_string_value(json_object_get(one, "auth"));
    buf_init_wiped(&pair, TEXT_SIZE);
    if (auth && host_of(key, host) && base64_decode(&pair, slice_str(auth)) == 0 &&
        buf_append(&pair, "", 1) == 0) {
        char *user = (char *)(uintptr_t)buf_data(&pair), *colon = strchr(user, ':');
        if (colon && colon[1] && colon != user) {
            *colon = 0;
            put(tree, host, "user", user);
            put(tree, host, "password", colon + 1);
        }
    }
    buf_free(&pair);
}

static void read_docker(const char *text, size_t n, json_t *tree)
{
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL), *one;
    const char *key;
    json_object_foreach(json_object_get(root, "auths"), key, one) put_docker(tree, key, one);
    json_decref(root);
}

/* ---- kubectl ---- */

static const json_t *named(const json_t *root, const char *list, const char *name, const char *what)
{
    json_t *item;
    size_t i;
    json_array_foreach(json_object_get(root, list), i, item)
    {
        const char *is = json_string_value(json_object_get(item, "name"));
        if (is && name && strcmp(is, name) == 0)
            return json_object_get(item, what);
    }
    return NULL;
}

static const char *word(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* A context whose user has a token, by its name. */
static void put_context(const json_t *root, json_t *tree, const char *name, const json_t *context)
{
    char host[LOGIN_VALUE_MAX];
    const json_t *cluster = named(root, "clusters", word(context, "cluster"), "cluster");
    const json_t *user = named(root, "users", word(context, "user"), "user");
    const char *server = word(cluster, "server"), *token = word(user, "token");
    const char *space = word(context, "namespace");
    if (server == NULL || token == NULL || !host_of(server, host))
        return;
    put(tree, name, "token", token);
    put(tree, name, "server", server);
    put(tree, name, "host", host);
    put(tree, name, "namespace", space ? space : "default");
}

static int read_kube(struct slice text, const char *path, json_t *tree, struct err *err)
{
    json_t *root = NULL, *numbers = NULL, *item;
    size_t i;
    if (yaml_tree_parse(text, path, &root, &numbers, err) < 0)
        return -1;
    json_array_foreach(json_object_get(root, "contexts"), i, item)
    {
        const char *name = word(item, "name");
        if (name)
            put_context(root, tree, name, json_object_get(item, "context"));
    }
    const char *current = word(root, "current-context");
    if (current)
        json_object_set_new(tree, "=current", json_string(current));
    json_decref(numbers);
    json_decref(root);
    return 0;
}

/* ---- the Azure command line: the cache of its library, by the user's name ---- */

static const json_t *account_of(const json_t *root, const char *id)
{
    const char *key;
    json_t *one;
    json_object_foreach(json_object_get(root, "Account"), key, one)
    {
        const char *is = word(one, "home_account_id");
        if (is && id && strcmp(is, id) == 0)
            return one;
    }
    return NULL;
}

static void read_azure(const char *text, size_t n, json_t *tree)
{
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL), *one;
    const char *key;
    json_object_foreach(json_object_get(root, "RefreshToken"), key, one)
    {
        const json_t *account = account_of(root, word(one, "home_account_id"));
        const char *name = word(account, "username"), *tenant = word(account, "realm");
        const char *refresh = word(one, "secret"), *client = word(one, "client_id");
        if (name == NULL || tenant == NULL || refresh == NULL || client == NULL ||
            strspn(tenant, USUAL) != strlen(tenant))
            continue;
        put(tree, name, "refresh", refresh);
        put(tree, name, "client", client);
        put(tree, name, "tenant", tenant);
        if (json_object_get(tree, "=current") == NULL)
            json_object_set_new(tree, "=current", json_string(name));
    }
    json_decref(root);
}

/* ---- all ---- */

json_t *login_shape_of(enum login_syntax syntax, char *text, size_t n, const char *path,
                       char **lines, struct err *err)
{
    json_t *tree = json_object();
    struct buf kept;
    int bad = tree ? 0 : err_set(err, ERR_INTERNAL, "out of memory");
    buf_init(&kept, LINES_MAX);
    if (bad == 0 && syntax == LOGIN_PIP)
        read_pip(text, tree, &kept);
    else if (bad == 0 && syntax == LOGIN_CARGO)
        bad = read_cargo(text, tree, err);
    else if (bad == 0 && syntax == LOGIN_KUBE)
        bad = read_kube((struct slice){text, n}, path, tree, err);
    else if (bad == 0 && syntax == LOGIN_DOCKER)
        read_docker(text, n, tree);
    else if (bad == 0)
        read_azure(text, n, tree);
    *lines = slice_dup(buf_slice(&kept));
    buf_free(&kept);
    if (bad == 0)
        return tree;
    json_decref(tree);
    return NULL;
}
