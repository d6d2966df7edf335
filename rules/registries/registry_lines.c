/* The files of package managers that are read line by line: pip's INI, npmrc, go env, gemrc and
 * Bundler's settings, apt's two forms of sources. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "registry_read.h"

/* KEY and value around the first of `signs`, both trimmed, taken apart in place. */
static bool split(char *line, const char *signs, char **key, char **value)
{
    size_t n = strcspn(line, signs);
    if (line[n] == 0)
        return false;
    line[n] = 0;
    *key = registry_trim(line);
    *value = registry_trim(line + n + 1);
    return **key != 0;
}

/* ---- pip: INI, whose values go on in lines that begin with a blank ---- */

static bool pip_key(const char *key)
{
    return strcmp(key, "index-url") == 0 || strcmp(key, "extra-index-url") == 0 ||
           strcmp(key, "find-links") == 0;
}

static void pip_flush(struct registry_reading *r, const char *section, char key[64], char *value)
{
    for (char *c = key; *c; c++)
        *c = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
    if (pip_key(key))
        registry_set_urls(r, section, key, value);
    key[0] = value[0] = 0;
}

void registry_read_pip(struct registry_reading *r, char *text, size_t n)
{
    char section[64] = "", key[64] = "", value[4096] = "", *name, *rest;
    (void)n;
    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        size_t used = strlen(value);
        if (line[strspn(line, " \t\r")] == 0 || *line == '#' || *line == ';')
            continue;
        if (*line == ' ' || *line == '\t') {
            char *more = registry_trim(line);
            if (*key && *more != '#' && *more != ';')
                snprintf(value + used, sizeof value - used, " %s", more);
            continue;
        }
        pip_flush(r, section, key, value);
        if (*line == '[') {
            snprintf(section, sizeof section, "%.*s", (int)strcspn(line + 1, "]"), line + 1);
        } else if (split(line, "=:", &name, &rest)) {
            snprintf(key, sizeof key, "%s", name);
            snprintf(value, sizeof value, "%s", rest);
        }
    }
    pip_flush(r, section, key, value);
    explicit_bzero(value, sizeof value);
}

/* ---- npm ---- */

void registry_read_npm(struct registry_reading *r, char *text, size_t n)
{
    char *key, *value;
    (void)n;
    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        line += strspn(line, " \t");
        if (*line == '#' || *line == ';' || !split(line, "=", &key, &value))
            continue;
        size_t len = strlen(key);
        if (strpbrk(value, " \t"))
            continue; /* no URL */
        if (strcmp(key, "registry") == 0 ||
            (*key == '@' && len > 10 && strcmp(key + len - 9, ":registry") == 0))
            registry_set_urls(r, "", key, value);
    }
}

/* ---- go ---- */

/* "NAME", "NAME+KEY" or either and a URL: the database asks at the URL, else at the name. */
static void go_sumdb(struct registry_reading *r, char *value)
{
    char url[REGISTRY_URL_MAX], text[REGISTRY_URL_MAX], *at = value;
    if (snprintf(text, sizeof text, "%s", value) >= (int)sizeof text)
        return registry_note(r, "GOSUMDB", "left out: it is too long");
    char *name = registry_word(&at), *where = registry_word(&at);
    if (name == NULL || strcmp(name, "off") == 0) {
        registry_set_text(r, "", "GOSUMDB", "off");
        return;
    }
    snprintf(url, sizeof url, "https://%.*s", (int)strcspn(name, "+"), name);
    registry_set_both(r, "", "GOSUMDB", strchr(text, '@') ? "" : text, where ? where : url);
}

/* URLs with ',' or '|' between them, and words such as `direct`. */
static void go_proxy(struct registry_reading *r, char *value)
{
    struct buf text, urls;
    char clean[REGISTRY_URL_MAX], sign = ',';
    int bad = 0;
    buf_init(&text, REGISTRY_URL_MAX);
    buf_init(&urls, REGISTRY_URL_MAX);
    while (*value && !bad) {
        size_t n = strcspn(value, ",|");
        char next = value[n] ? value[n] : ',';
        bool more = value[n] != 0;
        value[n] = 0;
        bool url = strstr(value, "://"), good = url && registry_url(r, "GOPROXY", value, clean);
        if (good || !url)
            bad |= (buf_len(&text) ? buf_append(&text, &sign, 1) : 0) |
                   buf_append_str(&text, good ? clean : value);
        if (good)
            bad |= buf_printf(&urls, "%s ", clean);
        sign = next;
        value += n + more;
    }
    bad |= buf_append(&text, "", 1) | buf_append(&urls, "", 1);
    if (bad)
        registry_note(r, "GOPROXY", "left out: it is too long");
    else
        registry_set_both(r, "", "GOPROXY", (const char *)buf_data(&text),
                          (const char *)buf_data(&urls));
    buf_free(&text);
    buf_free(&urls);
}

void registry_read_go(struct registry_reading *r, char *text, size_t n)
{
    static const char *const kept[] = {"GOPRIVATE", "GONOPROXY", "GONOSUMDB"};
    char *key, *value;
    (void)n;
    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        if (*line == '#' || !split(line, "=", &key, &value))
            continue;
        if (strcmp(key, "GOPROXY") == 0)
            go_proxy(r, value);
        else if (strcmp(key, "GOSUMDB") == 0)
            go_sumdb(r, value);
        for (size_t i = 0; i < ARRAY_LEN(kept); i++)
            if (strcmp(key, kept[i]) == 0)
                registry_set_text(r, "", key, value);
    }
}

/* ---- RubyGems and Bundler ---- */

/* :sources: and the list below it, one item a line. */
void registry_read_gem(struct registry_reading *r, char *text, size_t n)
{
    char urls[4096] = "";
    bool in = false;
    (void)n;
    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        char *s = registry_trim(line);
        size_t used = strlen(urls);
        if (*s == '-' && s[1] == ' ' && in)
            snprintf(urls + used, sizeof urls - used, "%s ", registry_trim(s + 2));
        else if (*s && *s != '#')
            in = strcmp(s, ":sources:") == 0 || strcmp(s, "sources:") == 0;
    }
    if (*urls)
        registry_set_urls(r, "", "sources", urls);
    explicit_bzero(urls, sizeof urls);
}

/* BUNDLE_MIRROR__...: "URL" */
void registry_read_bundle(struct registry_reading *r, char *text, size_t n)
{
    char *colon, key[16];
    unsigned number = 0;
    (void)n;
    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        char *s = registry_trim(line);
        if (strncmp(s, "BUNDLE_MIRROR__", 15) != 0 || (colon = strstr(s, ": ")) == NULL)
            continue;
        snprintf(key, sizeof key, "mirror %u", ++number);
        registry_set_urls(r, "bundle", key, registry_trim(colon + 2));
    }
}

/* ---- apt ---- */

static void apt_uri(struct registry_reading *r, const char *uri)
{
    char key[24];
    json_t *keys = json_object_get(r->into->settings, "apt");
    snprintf(key, sizeof key, "source %zu", json_object_size(keys) + 1);
    registry_set_urls(r, "apt", key, uri);
}

/* deb [OPTION=VALUE ...] URI SUITE ... */
void registry_read_apt_list(struct registry_reading *r, char *text, size_t n)
{
    (void)n;
    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        line[strcspn(line, "#")] = 0;
        char *at = line, *type = registry_word(&at), *word = type ? registry_word(&at) : NULL;
        if (type == NULL || (strcmp(type, "deb") != 0 && strcmp(type, "deb-src") != 0))
            continue;
        if (word && *word == '[')
            while (word && word[strlen(word) - 1] != ']')
                word = registry_word(&at);
        if (word && strlen(word) && word[strlen(word) - 1] == ']')
            word = registry_word(&at);
        if (word)
            apt_uri(r, word);
    }
}

static void apt_stanza(struct registry_reading *r, char *uris, bool *enabled)
{
    char *at = uris;
    for (char *word; *enabled && (word = registry_word(&at)) != NULL;)
        apt_uri(r, word);
    uris[0] = 0;
    *enabled = true;
}

/* Stanzas of fields, as deb822 has them: "URIs: URI ...", "Enabled: no". */
void registry_read_apt_sources(struct registry_reading *r, char *text, size_t n)
{
    char uris[4096] = "", *key, *value;
    bool enabled = true, going_on = false;
    (void)n;
    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        size_t used = strlen(uris);
        if (*line == '#')
            continue;
        if (line[strspn(line, " \t\r")] == 0) {
            apt_stanza(r, uris, &enabled);
            going_on = false;
        } else if (*line == ' ' || *line == '\t') {
            if (going_on)
                snprintf(uris + used, sizeof uris - used, " %s", registry_trim(line));
        } else if (split(line, ":", &key, &value)) {
            going_on = strcasecmp(key, "URIs") == 0;
            if (going_on)
                snprintf(uris, sizeof uris, "%s", value);
            else if (strcasecmp(key, "Enabled") == 0)
                enabled = strcasecmp(value, "no") != 0 && strcasecmp(value, "false") != 0;
        }
    }
    apt_stanza(r, uris, &enabled);
    explicit_bzero(uris, sizeof uris);
}
