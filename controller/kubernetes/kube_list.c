/* Puts the plugin into a list and takes it out, so that the same comes of it however often. */
#include "kube_list.h"

#include <string.h>

#define FROM "from" /* in our entry: what the list was made of */
#define OFF  "disableCheck"
#define OWN  "disabledCheck" /* in our entry: it was on before */

static bool is_ours(const json_t *plugin)
{
    const char *type = json_string_value(json_object_get(plugin, "type"));
    return type && strcmp(type, KUBE_LIST_TYPE) == 0;
}

static int take_out(json_t *list)
{
    json_t *plugins = json_object_get(list, "plugins");
    int bad = 0;
    for (size_t i = json_array_size(plugins); i-- > 0;) {
        const json_t *one = json_array_get(plugins, i);
        if (!is_ours(one))
            continue;
        if (json_is_true(json_object_get(one, OWN)))
            (void)json_object_del(list, OFF);
        bad |= json_array_remove(plugins, i);
    }
    return bad;
}

json_t *kube_list_without(const json_t *list, struct err *err)
{
    json_t *made = json_deep_copy(list);
    if (made && json_is_array(json_object_get(made, "plugins")) && take_out(made) == 0)
        return made;
    err_set(err, ERR_PARSE, "it is no list of plugins");
    json_decref(made);
    return NULL;
}

json_t *kube_list_with(const json_t *list, const json_t *entry, struct err *err)
{
    json_t *made = kube_list_without(list, err), *own = made ? json_deep_copy(entry) : NULL;
    json_t *plugins = json_object_get(made, "plugins");
    int bad = made == NULL || own == NULL;
    if (!bad && json_array_size(plugins) == 0) {
        err_set(err, ERR_PARSE, "it has no plugin that makes an interface");
        bad = -1;
    }
    if (!bad && !json_is_true(json_object_get(made, OFF)))
        bad = json_object_set_new(own, OWN, json_true()) |
              json_object_set_new(made, OFF, json_true());
    if (!bad)
        bad = json_array_append(plugins, own);
    json_decref(own);
    if (!bad)
        return made;
    json_decref(made);
    if (err->code == ERR_NONE)
        err_set(err, ERR_INTERNAL, "out of memory");
    return NULL;
}

static const json_t *from_of(const json_t *ours)
{
    const json_t *one;
    size_t i;
    json_array_foreach(json_object_get(ours, "plugins"), i, one)
    {
        if (is_ours(one))
            return json_object_get(one, FROM);
    }
    return NULL;
}

json_t *kube_list_made_of(const json_t *network, const json_t *ours, const json_t *entry,
                          struct err *err)
{
    json_t *plain = kube_list_without(network, err), *own = plain ? json_deep_copy(entry) : NULL;
    json_t *made = NULL;
    if (own && json_object_set(own, FROM, plain) == 0) {
        bool same = json_equal(from_of(ours), plain);
        made = kube_list_with(same ? ours : plain, own, err);
        if (made == NULL && same) { /* others have left it without a plugin: it is made anew */
            *err = (struct err){0};
            made = kube_list_with(plain, own, err);
        }
    } else if (err->code == ERR_NONE) {
        err_set(err, ERR_INTERNAL, "out of memory");
    }
    json_decref(own);
    json_decref(plain);
    return made;
}
