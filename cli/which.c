/* Looks a word up in the daemon's list. An exact id wins over a name, a name over first letters; a
 * word that fits several is refused with the ids that it fits. */
#include "which.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api_client.h"
#include "out.h"

enum { PATH_BYTES = 16 * 1024, SHOWN = 8 };

/* digits: how many letters and digits follow the first ones in a whole id; 0: it has no id. */
static const struct kind {
    const char *path, *member, *what, *first, *list;
    size_t digits;
} kinds[] = {
    [WHICH_SANDBOX] = {"/v1/sandboxes", "sandboxes", "sandbox", "sb-", "durward sandbox ls", 26},
    [WHICH_APPROVAL] = {"/v1/approvals", "approvals", "held request", "ap-", "durward approve ls",
                        8},
    [WHICH_TOKEN] = {"/v1/tokens", "tokens", "token", "tk-", "durward token ls", 26},
    [WHICH_POLICY] = {"/v1/policies", "policies", "policy", "", "durward check", 0},
    [WHICH_SNAPSHOT] = {"/v1/snapshots", "snapshots", "snapshot", "", "durward sandbox snapshot ls",
                        0},
    [WHICH_PROPOSAL] = {"/v1/proposals", "proposals", "proposal", "pr-", "durward proposals ls",
                        12},
    [WHICH_VOLUME] = {"/v1/volumes", "volumes", "volume", "", "durward volume ls", 0},
    [WHICH_SUPPRESSION] = {"/v1/suppressions", "suppressions", "suppression", "su-",
                           "durward suppressions ls", 12},
    [WHICH_TEMPLATE] = {"/v1/templates", "templates", "template", "", "durward template ls", 0},
};

static json_t *page(const char *socket, const char *path, const char *after, struct err *err)
{
    json_t *reply = NULL;
    struct buf b;
    buf_init(&b, PATH_BYTES);
    int bad = buf_printf(&b, "%s%climit=1000", path, strchr(path, '?') ? '&' : '?');
    if (*after && !bad) {
        bad = buf_append_str(&b, "&after=");
        api_quote(&b, after);
    }
    bad |= buf_append(&b, "", 1);
    if (bad)
        err_set(err, ERR_LIMIT, "the question is too long");
    else if (api_call(socket, "GET", (const char *)buf_data(&b), NULL, &reply, err) < 0)
        reply = NULL;
    buf_free(&b);
    return reply;
}

json_t *which_pages(const char *socket, const char *path, const char *member, struct err *err)
{
    json_t *list = json_array(), *reply;
    char after[64] = "";
    do {
        if ((reply = page(socket, path, after, err)) == NULL) {
            json_decref(list);
            return NULL;
        }
        json_array_extend(list, json_object_get(reply, member));
        snprintf(after, sizeof after, "%s", out_member(reply, "next"));
        json_decref(reply);
    } while (*after);
    return list;
}

json_t *which_list(const char *socket, enum which_kind k, struct err *err)
{
    json_t *reply;
    if (k == WHICH_SANDBOX)
        return which_pages(socket, kinds[k].path, kinds[k].member, err);
    if (api_call(socket, "GET", kinds[k].path, NULL, &reply, err) < 0)
        return NULL;
    json_t *list = json_incref(json_object_get(reply, kinds[k].member));
    json_decref(reply);
    if (list == NULL)
        err_set(err, ERR_UPSTREAM, "the daemon's answer has no list");
    return list;
}

static bool path_safe(const char *word)
{
    size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return n > 0 && n <= WHICH_ID_MAX && word[n] == 0;
}

bool which_is_whole(enum which_kind k, const char *word)
{
    const struct kind *w = &kinds[k];
    return path_safe(word) && strncmp(word, w->first, strlen(w->first)) == 0 &&
           strlen(word) == strlen(w->first) + w->digits;
}

const char *which_lister(const char *path, const char *code)
{
    static const struct {
        const char *code;
        enum which_kind of;
    } own[] = {{"sandbox_not_found", WHICH_SANDBOX},
               {"snapshot_not_found", WHICH_SNAPSHOT},
               {"template_not_found", WHICH_TEMPLATE}};
    static const enum which_kind by_path[] = {WHICH_APPROVAL, WHICH_PROPOSAL, WHICH_SUPPRESSION};
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (strcmp(code, own[i].code) == 0)
            return kinds[own[i].of].list;
    for (size_t i = 0; strcmp(code, "not_found") == 0 && i < ARRAY_LEN(by_path); i++) {
        const struct kind *w = &kinds[by_path[i]];
        size_t n = strlen(w->path);
        if (strncmp(path, w->path, n) == 0 && path[n] == '/')
            return w->list;
    }
    return NULL;
}

/* How well it fits: 3 its id, 2 its name, 1 the first letters of its id; 0. */
static int fits(const struct kind *w, const json_t *o, const char *word)
{
    const char *id = out_member(o, "id");
    size_t n = strlen(word), first = strlen(w->first);
    if (strcmp(id, word) == 0)
        return 3;
    if (strcmp(out_member(o, "name"), word) == 0)
        return 2;
    if (n > first && strncmp(id, word, n) == 0)
        return 1;
    /* without what every id begins with */
    return strncmp(id, w->first, first) == 0 && strncmp(id + first, word, n) == 0;
}

/* Fewer letters than these, of an id made by chance, soon fit another than the one that was read.
 */
enum { PREFIX_MIN = 4 };

static bool is_short(const struct kind *w, const char *word)
{
    size_t n = strlen(word), first = strlen(w->first);
    if (n > first && strncmp(word, w->first, first) == 0)
        n -= first;
    return first > 0 && n < PREFIX_MIN;
}

/* " (NAME, 3h ago)" of what is known of it. */
static void about(const json_t *o, char *to, size_t size)
{
    char name[WHICH_ID_MAX + 1], span[32] = "";
    const json_t *made = json_object_get(o, "created_at");
    out_clean(out_member(o, "name"), name, sizeof name);
    if (json_is_integer(made))
        out_span((int64_t)time(NULL) - json_integer_value(made), span, sizeof span);
    to[0] = 0;
    if (*name || *span)
        snprintf(to, size, " (%s%s%s%s)", name, *name && *span ? ", " : "", span,
                 *span ? " ago" : "");
}

static int several(const struct kind *w, const json_t *list, const char *word, int best,
                   struct err *err)
{
    char text[SHOWN * (2 * WHICH_ID_MAX + 50)] = "", clean[WHICH_ID_MAX + 1],
                                          known[WHICH_ID_MAX + 50];
    size_t i, at = 0, n = 0;
    json_t *o;
    json_array_foreach(list, i, o)
    {
        if (fits(w, o, word) != best || ++n > SHOWN || at >= sizeof text)
            continue;
        about(o, known, sizeof known);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s%s", at ? ", " : "",
                               out_clean(out_member(o, "id"), clean, sizeof clean), known);
    }
    return err_set(err, ERR_PARSE, "'%.64s' may be %s%s; %s", word, text,
                   n > SHOWN ? " and others" : "",
                   best == 2 ? "write the id of one" : "write more of it");
}

int which_of(const json_t *list, enum which_kind k, const char *word, char id[WHICH_ID_MAX + 1],
             struct err *err)
{
    const struct kind *w = &kinds[k];
    const char *found = NULL;
    char clean[WHICH_ID_MAX + 1];
    int best = 0;
    size_t i, n = 0;
    json_t *o;
    json_array_foreach(list, i, o)
    {
        int fit = *word ? fits(w, o, word) : 0;
        if (fit > best || (fit == best && fit > 0)) {
            n = fit > best ? 1 : n + 1;
            best = fit;
            found = out_member(o, "id");
        }
    }
    if (n == 0)
        return err_set(err, ERR_UNREADY, "there is no %s '%s'; '%s' lists them", w->what,
                       out_clean(word, clean, sizeof clean), w->list);
    if (n > 1 || (best == 1 && is_short(w, word)))
        return several(w, list, out_clean(word, clean, sizeof clean), best, err);
    if (!path_safe(found))
        return err_set(err, ERR_UPSTREAM, "the daemon's answer is malformed");
    snprintf(id, WHICH_ID_MAX + 1, "%s", found);
    return 0;
}

/* Of a kind without ids: the name itself, if something has it. */
static int by_name(const char *socket, enum which_kind k, const char *word,
                   char id[WHICH_ID_MAX + 1], struct err *err)
{
    char clean[WHICH_ID_MAX + 1];
    size_t i;
    const json_t *o;
    bool there = false;
    json_t *list = which_list(socket, k, err);
    json_array_foreach(list, i, o) there |= strcmp(out_member(o, "name"), word) == 0;
    json_decref(list);
    if (list && !there)
        err_set(err, ERR_UNREADY, "there is no %s '%s'; '%s' lists them", kinds[k].what,
                out_clean(word, clean, sizeof clean), kinds[k].list);
    if (!there || strlen(word) > WHICH_ID_MAX)
        return -1;
    memcpy(id, word, strlen(word) + 1);
    return 0;
}

static int remove_one(const char *socket, enum which_kind k, const char *word, struct err *err)
{
    char id[WHICH_ID_MAX + 1];
    struct buf path;
    json_t *reply = NULL;
    if ((kinds[k].digits ? which_one : by_name)(socket, k, word, id, err) < 0)
        return -1;
    buf_init(&path, 1024);
    int bad = buf_printf(&path, "%s/", kinds[k].path);
    api_quote(&path, id);
    bad |= buf_append(&path, "", 1);
    if (bad)
        err_set(err, ERR_LIMIT, "the name is too long");
    else
        bad = api_call(socket, "DELETE", (const char *)buf_data(&path), NULL, &reply, err);
    json_decref(reply);
    buf_free(&path);
    return bad ? -1 : 0;
}

int which_remove(const struct args *a, enum which_kind k)
{
    int code = EXIT_OK;
    json_t *removed = json_array();
    for (int i = a->next; i < a->argc; i++) {
        struct err err = {0};
        if (remove_one(a->socket, k, a->argv[i], &err) == 0)
            json_array_append_new(removed, json_string(a->argv[i]));
        else
            code = out_fail(&err);
    }
    if (a->json && out_json(json_pack("{s:O}", "removed", removed)) < 0)
        code = EXIT_NO;
    json_decref(removed);
    return code;
}

int which_one(const char *socket, enum which_kind k, const char *word, char id[WHICH_ID_MAX + 1],
              struct err *err)
{
    if (which_is_whole(k, word)) {
        snprintf(id, WHICH_ID_MAX + 1, "%s", word);
        return 0;
    }
    json_t *list = which_list(socket, k, err);
    int r = list ? which_of(list, k, word, id, err) : -1;
    json_decref(list);
    return r;
}
