/* Writes what was found as the client's own configuration: it is laid into the sandbox's home. */
#include <stdio.h>
#include <string.h>

#include "registries.h"

static const char *text_of(const json_t *setting)
{
    return json_string_value(json_object_get(setting, "text"));
}

static const char *first_url(const json_t *setting)
{
    return json_string_value(json_array_get(json_object_get(setting, "urls"), 0));
}

static int put_urls(struct buf *to, const json_t *setting, const char *between)
{
    json_t *url;
    size_t i;
    int bad = 0;
    json_array_foreach(json_object_get(setting, "urls"), i, url) bad |=
        buf_printf(to, "%s%s", i ? between : "", json_string_value(url));
    return bad;
}

static int put_pip(const json_t *settings, struct buf *to)
{
    const char *section, *key;
    json_t *keys, *setting;
    int bad = 0;
    json_object_foreach((json_t *)(uintptr_t)settings, section, keys)
    {
        bad |= buf_printf(to, "[%s]\n", section);
        json_object_foreach(keys, key, setting)
        {
            bad |= buf_printf(to, "%s = ", key) | put_urls(to, setting, "\n    ");
            bad |= buf_append_str(to, "\n");
        }
    }
    return bad;
}

/* npm asks its registry about known holes with a POST, which a preset that reads refuses. */
static int put_npm(const json_t *settings, struct buf *to)
{
    const char *key;
    json_t *setting;
    int bad = 0;
    json_object_foreach(json_object_get(settings, ""), key, setting) bad |=
        buf_printf(to, "%s=%s\n", key, first_url(setting));
    return buf_len(to) ? bad | buf_append_str(to, "audit=false\n") : bad;
}

static int put_go(const json_t *settings, struct buf *to)
{
    const char *key;
    json_t *setting;
    int bad = 0;
    json_object_foreach(json_object_get(settings, ""), key, setting) if (*text_of(setting)) bad |=
        buf_printf(to, "%s=%s\n", key, text_of(setting));
    return bad;
}

static int put_cargo(const json_t *settings, struct buf *to)
{
    const char *section, *key;
    json_t *keys, *setting;
    int bad = 0;
    json_object_foreach((json_t *)(uintptr_t)settings, section, keys)
    {
        const char *dot = strchr(section, '.');
        bad |= dot ? buf_printf(to, "[%.*s.\"%s\"]\n", (int)(dot - section), section, dot + 1)
                   : buf_printf(to, "[%s]\n", section);
        json_object_foreach(keys, key, setting) bad |= buf_printf(
            to, "%s = \"%s\"\n", key, *text_of(setting) ? text_of(setting) : first_url(setting));
    }
    return bad;
}

/* "mirror NAME", "repository NAME", "pluginRepository NAME" */
static int put_maven_items(const json_t *settings, const char *kind, struct buf *to)
{
    const char *section;
    json_t *keys;
    size_t n = strlen(kind);
    int bad = 0;
    json_object_foreach((json_t *)(uintptr_t)settings, section, keys)
    {
        json_t *of = json_object_get(keys, "mirrorOf"), *url = json_object_get(keys, "url");
        if (strncmp(section, kind, n) != 0 || section[n] != ' ' || url == NULL)
            continue;
        bad |=
            buf_printf(to, "<%s><id>%s</id><url>%s</url>", kind, section + n + 1, first_url(url));
        if (of)
            bad |= buf_printf(to, "<mirrorOf>%s</mirrorOf>", text_of(of));
        bad |= buf_printf(to, "</%s>\n", kind);
    }
    return bad;
}

static int put_maven(const json_t *settings, struct buf *to)
{
    int bad = buf_append_str(to, "<settings>\n<mirrors>\n");
    bad |= put_maven_items(settings, "mirror", to);
    bad |= buf_append_str(to, "</mirrors>\n<profiles><profile><id>host</id><activation>"
                              "<activeByDefault>true</activeByDefault></activation>\n"
                              "<repositories>\n");
    bad |= put_maven_items(settings, "repository", to);
    bad |= buf_append_str(to, "</repositories>\n<pluginRepositories>\n");
    bad |= put_maven_items(settings, "pluginRepository", to);
    return bad | buf_append_str(to, "</pluginRepositories>\n</profile></profiles>\n</settings>\n");
}

static int put_nuget(const json_t *settings, struct buf *to)
{
    const char *key;
    json_t *setting;
    int bad = buf_append_str(to, "<configuration><packageSources><clear/>\n");
    json_object_foreach(json_object_get(settings, "packageSources"), key, setting) bad |=
        buf_printf(to, "<add key=\"%s\" value=\"%s\"/>\n", key, first_url(setting));
    return bad | buf_append_str(to, "</packageSources></configuration>\n");
}

static int put_gem(const json_t *settings, struct buf *to)
{
    const json_t *setting = json_object_get(json_object_get(settings, ""), "sources");
    if (setting == NULL)
        return 0;
    int bad = buf_append_str(to, ":sources:\n- ") | put_urls(to, setting, "\n- ");
    return bad | buf_append_str(to, "\n");
}

int registries_text(const char *client, const struct registries *r, struct buf *to)
{
    static const struct {
        const char *client;
        int (*put)(const json_t *settings, struct buf *to);
    } writers[] = {{"cargo", put_cargo}, {"go", put_go},   {"maven", put_maven}, {"npm", put_npm},
                   {"nuget", put_nuget}, {"pip", put_pip}, {"rubygems", put_gem}};
    if (json_object_size(r->settings) == 0)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(writers); i++)
        if (strcmp(writers[i].client, client) == 0)
            return writers[i].put(r->settings, to);
    return 0;
}
