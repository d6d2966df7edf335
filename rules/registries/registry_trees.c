/* The files of package managers that are trees: Maven's and NuGet's XML by expat, Docker's JSON. */
#include <expat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "registry_read.h"

enum { DEPTH_MAX = 16, NAME_SIZE = 64, TEXT_SIZE = 1024 };

/* Where in the file we are, and what was gathered of the element around. */
struct reading {
    struct registry_reading *r;
    XML_Parser parser;
    size_t depth;
    char name[DEPTH_MAX][NAME_SIZE], text[TEXT_SIZE];
    /* of a mirror or a repository of Maven's */
    char id[TEXT_SIZE], url[TEXT_SIZE], of[TEXT_SIZE], blocked[TEXT_SIZE];
};

/* No document type: what it defines could make little text much. */
static void XMLCALL on_doctype(void *arg, const XML_Char *name, const XML_Char *system,
                               const XML_Char *public, int internal)
{
    struct reading *x = arg;
    (void)name, (void)system, (void)public, (void)internal;
    XML_StopParser(x->parser, XML_FALSE);
}

static void XMLCALL on_text(void *arg, const XML_Char *s, int n)
{
    struct reading *x = arg;
    size_t used = strlen(x->text);
    if (used + (size_t)n < sizeof x->text) {
        memcpy(x->text + used, s, (size_t)n);
        x->text[used + (size_t)n] = 0;
    }
}

static void push(struct reading *x, const char *name)
{
    if (x->depth == DEPTH_MAX) {
        XML_StopParser(x->parser, XML_FALSE);
        return;
    }
    snprintf(x->name[x->depth++], NAME_SIZE, "%s", name);
    x->text[0] = 0;
}

static bool is_at(const struct reading *x, size_t up, const char *name)
{
    return x->depth > up && strcmp(x->name[x->depth - 1 - up], name) == 0;
}

static void parse(struct reading *x, XML_StartElementHandler start, XML_EndElementHandler end,
                  const char *text, size_t n)
{
    x->parser = XML_ParserCreate(NULL);
    if (x->parser == NULL)
        abort(); /* memory is out */
    XML_SetUserData(x->parser, x);
    XML_SetElementHandler(x->parser, start, end);
    XML_SetCharacterDataHandler(x->parser, on_text);
    XML_SetStartDoctypeDeclHandler(x->parser, on_doctype);
    if (XML_Parse(x->parser, text, (int)n, 1) != XML_STATUS_OK)
        registry_note(x->r, "", "not used to its end: it cannot be read as XML");
    XML_ParserFree(x->parser);
    explicit_bzero(x, sizeof *x); /* passwords of servers stand in it, too */
}

/* ---- Maven ---- */

static bool maven_item(const struct reading *x)
{
    return is_at(x, 0, "mirror") || is_at(x, 0, "repository") || is_at(x, 0, "pluginRepository");
}

static void XMLCALL maven_start(void *arg, const XML_Char *name, const XML_Char **atts)
{
    struct reading *x = arg;
    (void)atts;
    push(x, name);
    if (maven_item(x))
        x->id[0] = x->url[0] = x->of[0] = x->blocked[0] = 0;
}

static void keep(struct reading *x, const char *name, char to[TEXT_SIZE])
{
    if (is_at(x, 0, name) &&
        (is_at(x, 1, "mirror") || is_at(x, 1, "repository") || is_at(x, 1, "pluginRepository")))
        snprintf(to, TEXT_SIZE, "%s", registry_trim(x->text));
}

static void XMLCALL maven_end(void *arg, const XML_Char *name)
{
    struct reading *x = arg;
    char section[TEXT_SIZE + NAME_SIZE];
    (void)name;
    keep(x, "id", x->id);
    keep(x, "url", x->url);
    keep(x, "mirrorOf", x->of);
    keep(x, "blocked", x->blocked);
    if (maven_item(x) && *x->url && strcmp(x->blocked, "true") != 0) {
        snprintf(section, sizeof section, "%s %.400s", x->name[x->depth - 1], x->id);
        registry_drop_section(x->r, section);
        registry_set_urls(x->r, section, "url", x->url);
        if (*x->of)
            registry_set_text(x->r, section, "mirrorOf", x->of);
    }
    x->text[0] = 0;
    x->depth--;
}

void registry_read_maven(struct registry_reading *r, char *text, size_t n)
{
    struct reading x = {.r = r};
    parse(&x, maven_start, maven_end, text, n);
}

/* ---- NuGet ---- */

static const char *attribute(const XML_Char **atts, const char *name)
{
    for (size_t i = 0; atts[i]; i += 2)
        if (strcasecmp(atts[i], name) == 0)
            return atts[i + 1];
    return "";
}

static void XMLCALL nuget_start(void *arg, const XML_Char *name, const XML_Char **atts)
{
    struct reading *x = arg;
    push(x, name);
    const char *key = attribute(atts, "key"), *value = attribute(atts, "value");
    if (is_at(x, 1, "packageSources") && strcmp(name, "clear") == 0)
        registry_drop_section(x->r, "packageSources");
    else if (is_at(x, 1, "packageSources") && strcmp(name, "add") == 0)
        registry_set_urls(x->r, "packageSources", key, value);
    else if (is_at(x, 1, "packageSources") && strcmp(name, "remove") == 0)
        registry_drop(x->r, "packageSources", key);
    else if (is_at(x, 1, "disabledPackageSources") && strcasecmp(value, "true") == 0)
        registry_drop(x->r, "packageSources", key);
}

static void XMLCALL nuget_end(void *arg, const XML_Char *name)
{
    struct reading *x = arg;
    (void)name;
    x->text[0] = 0;
    x->depth--;
}

void registry_read_nuget(struct registry_reading *r, char *text, size_t n)
{
    struct reading x = {.r = r};
    parse(&x, nuget_start, nuget_end, text, n);
}

/* ---- Docker ---- */

static json_t *read_json(struct registry_reading *r, const char *text, size_t n)
{
    json_t *v = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(v))
        registry_note(r, "", "not used: it cannot be read as JSON");
    return v;
}

/* The registries that one has logged in to; of what is written there nothing else is looked at. */
void registry_read_docker(struct registry_reading *r, char *text, size_t n)
{
    static const char *const members[] = {"auths", "credHelpers"};
    json_t *root = read_json(r, text, n), *v;
    const char *host;
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        json_object_foreach(json_object_get(root, members[i]), host, v)
            registry_set_host(r, "docker", host, host);
    json_decref(root);
}

void registry_read_docker_daemon(struct registry_reading *r, char *text, size_t n)
{
    json_t *root = read_json(r, text, n), *v;
    char key[32];
    size_t i;
    json_array_foreach(json_object_get(root, "registry-mirrors"), i, v)
    {
        snprintf(key, sizeof key, "mirror %zu", i + 1);
        if (json_is_string(v))
            registry_set_urls(r, "daemon", key, json_string_value(v));
    }
    json_decref(root);
}
