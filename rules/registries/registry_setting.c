/* What readers found, cleaned: URLs without credentials, texts that end no value, hosts. */
#define _GNU_SOURCE 1
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "registry_read.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

char *registry_trim(char *s)
{
    s += strspn(s, " \t\r\n");
    size_t n = strlen(s);
    while (n > 0 && strchr(" \t\r\n", s[n - 1]))
        n--;
    s[n] = 0;
    if (n > 1 && (s[0] == '"' || s[0] == '\'') && s[n - 1] == s[0]) {
        s[n - 1] = 0;
        s++;
    }
    return s;
}

char *registry_word(char **at)
{
    char *s = *at + strspn(*at, " \t\r\n");
    size_t n = strcspn(s, " \t\r\n");
    if (n == 0)
        return NULL;
    *at = s + n + (s[n] != 0);
    s[n] = 0;
    return s;
}

/* ---- URLs ---- */

/* NAME, NAME:PORT, [ADDRESS], [ADDRESS]:PORT */
static bool authority_ok(const char *s, size_t n)
{
    size_t host =
        s[0] == '[' ? 1 + strspn(s + 1, "0123456789abcdefABCDEF:.") : strspn(s, LETTERS ".-_");
    if (s[0] == '[')
        host = s[host] == ']' && host > 1 ? host + 1 : 0;
    if (host == 0 || host > n || s[0] == '.' || s[0] == '-')
        return false;
    size_t port = s[host] == ':' && host < n ? strspn(s + host + 1, "0123456789") : 0;
    return host == n || (port > 0 && port <= 5 && host + 1 + port == n);
}

/* Behind "sparse+" and the like. NULL: neither http nor https. */
static const char *scheme_end(const char *url)
{
    static const char *const before[] = {"sparse+", "registry+"};
    for (size_t i = 0; i < ARRAY_LEN(before); i++)
        if (strncmp(url, before[i], strlen(before[i])) == 0)
            url += strlen(before[i]);
    return strncasecmp(url, "https://", 8) == 0  ? url + 8
           : strncasecmp(url, "http://", 7) == 0 ? url + 7
                                                 : NULL;
}

enum { TOKEN_LEAST = 16 }; /* letters and digits */

/* How often digits and letters take turns, or a capital stands inside a word: seldom in names,
 * which may have words, years and versions in them. The parts of a UUID are shorter. */
static bool is_token(const char *s, size_t n)
{
    size_t turns = 0;
    for (size_t i = 1; i < n; i++) {
        bool digit = isdigit((unsigned char)s[i]), before = isdigit((unsigned char)s[i - 1]);
        turns +=
            digit != before || (isupper((unsigned char)s[i]) && islower((unsigned char)s[i - 1]));
    }
    return n >= TOKEN_LEAST && turns * 4 >= n;
}

bool registry_path_doubtful(const char *path)
{
    for (const char *s = path; *s; s++) {
        size_t n = strspn(s, LETTERS);
        if (is_token(s, n))
            return true;
        s += n;
        if (*s == 0)
            break;
    }
    for (const char *at = path; (at = strchr(at, '@')) != NULL; at++) {
        size_t n = strcspn(at, "/");
        if (memchr(at, '.', n) || memchr(at, ':', n))
            return true;
    }
    return false;
}

bool registry_url(struct registry_reading *r, const char *key, const char *url,
                  char to[REGISTRY_URL_MAX])
{
    const char *rest = scheme_end(url);
    if (strpbrk(url, "${}")) {
        registry_note(r, key, "left out: it holds a variable, and nothing is computed here");
        return false;
    }
    if (rest == NULL)
        return false; /* a file, a git remote, "direct" */
    size_t n = strcspn(rest, "/?#"), path = n + strcspn(rest + n, "?#");
    const char *at = memrchr(rest, '@', n);
    size_t user = at ? (size_t)(at - rest) + 1 : 0;
    if (!authority_ok(rest + user, n - user) || strlen(url) >= REGISTRY_URL_MAX ||
        strspn(rest + n, LETTERS "/._~+@:=,-%!") < path - n) {
        registry_note(r, key, "left out: it is not a URL of a host");
        return false;
    }
    if (registry_path_doubtful(rest + n)) {
        registry_note(
            r, key,
            "left out: its path may hold a credential; write '/' in a password as %2F, or name "
            "the host with preset_hosts and the credential with a rule's `with`");
        return false;
    }
    if (user || rest[path])
        registry_note(r, key,
                      user ? "a credential in the URL was left out; 'durward login ls' says whose "
                             "logins can be used"
                           : "what stands behind the path of the URL was left out");
    snprintf(to, REGISTRY_URL_MAX, "%.*s%.*s", (int)(rest - url), url, (int)(path - user),
             rest + user);
    return true;
}

void registry_place(const char *url, char to[REGISTRY_URL_MAX])
{
    const char *rest = scheme_end(url);
    size_t n = rest ? strcspn(rest, "/") : 0;
    bool plain = rest && rest - url >= 7 && strncasecmp(rest - 7, "http://", 7) == 0;
    static const char *const own[] = {":443", ":80"};
    const char *port = own[plain];
    if (n > strlen(port) && strncmp(rest + n - strlen(port), port, strlen(port)) == 0)
        n -= strlen(port);
    snprintf(to, REGISTRY_URL_MAX, "%s%.*s", plain ? "http://" : "", (int)n, rest ? rest : "");
    for (char *c = to; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c - 'A' + 'a');
}

/* ---- settings ---- */

/* A name or a text that stands in every syntax as it is. */
static bool text_ok(const char *s)
{
    return *s && strlen(s) < REGISTRY_URL_MAX && strspn(s, LETTERS "@/._~+:=,|*!- ") == strlen(s);
}

static size_t count(const struct registries *r)
{
    const char *section;
    json_t *keys;
    size_t n = 0;
    json_object_foreach(r->settings, section, keys) n += json_object_size(keys);
    return n;
}

static void put(struct registry_reading *r, const char *section, const char *key, const char *text,
                json_t *urls)
{
    json_t *keys = json_object_get(r->into->settings, section);
    if ((*section && !text_ok(section)) || !text_ok(key)) {
        registry_note(r, "", "a setting was left out: its name has signs that are not carried");
        json_decref(urls);
        return;
    }
    if (count(r->into) >= REGISTRY_SETTINGS_MAX) {
        registry_note(r, key, "left out: there are too many settings");
        json_decref(urls);
        return;
    }
    if (keys == NULL && (keys = json_object()) != NULL)
        json_object_set_new(r->into->settings, section, keys);
    if (keys == NULL ||
        json_object_set_new(keys, key, json_pack("{s:s, s:o}", "text", text, "urls", urls)) < 0)
        abort(); /* memory is out */
}

void registry_set_both(struct registry_reading *r, const char *section, const char *key,
                       const char *text, const char *urls)
{
    char copy[4096], clean[REGISTRY_URL_MAX], *at = copy;
    json_t *list = json_array();
    if (snprintf(copy, sizeof copy, "%s", urls) >= (int)sizeof copy)
        registry_note(r, key, "its end was left out: it is too long");
    for (char *word; (word = registry_word(&at)) != NULL;)
        if (registry_url(r, key, word, clean))
            json_array_append_new(list, json_string(clean));
    if (json_array_size(list) == 0 && !*text)
        json_decref(list);
    else
        put(r, section, key, text, list);
}

void registry_set_urls(struct registry_reading *r, const char *section, const char *key,
                       const char *urls)
{
    registry_set_both(r, section, key, "", urls);
}

void registry_set_text(struct registry_reading *r, const char *section, const char *key,
                       const char *text)
{
    if (text_ok(text))
        put(r, section, key, text, json_array());
    else if (*text)
        registry_note(r, key, "left out: it has signs that are not carried");
}

void registry_set_host(struct registry_reading *r, const char *section, const char *key,
                       const char *host)
{
    char url[REGISTRY_URL_MAX];
    size_t n = strcspn(host, "/");
    bool has_scheme = strstr(host, "://") != NULL;
    /* one without a dot and a port is a folder of whatever registry is the default */
    if (!has_scheme && !memchr(host, '.', n) && !memchr(host, ':', n))
        return;
    if (snprintf(url, sizeof url, "%s%s", has_scheme ? "" : "https://", host) < (int)sizeof url)
        registry_set_both(r, section, key, "", url);
}

void registry_drop(struct registry_reading *r, const char *section, const char *key)
{
    json_object_del(json_object_get(r->into->settings, section), key);
}

void registry_drop_section(struct registry_reading *r, const char *section)
{
    json_object_del(r->into->settings, section);
}
