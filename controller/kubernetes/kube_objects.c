/* Judges each object by itself, so that a bad one harms no other, and builds what the daemon
 * reads. */
#include "kube_objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

struct sorting { /* of bindings: the older decides, then the name */
    const json_t *object;
    const char *made, *name;
};

static const char *text_in(const json_t *v, const char *section, const char *key)
{
    const char *s = json_string_value(json_object_get(json_object_get(v, section), key));
    return s ? s : "";
}

/* ---- judging ---- */

static void keep_warning(void *arg, const char *text)
{
    json_array_append_new(arg, json_string(text));
}

/* Does the configuration load with these? */
static int try(const struct kube_base *base, const json_t *objects, json_t *warned, struct err *err)
{
    struct config *c = config_parse_with(base->text, base->path, objects, err);
    if (c == NULL)
        return -1;
    if (warned)
        config_warnings(c, keep_warning, warned);
    config_unref(c);
    return 0;
}

int kube_judge(const struct kube_base *base, const char *name, const json_t *spec, json_t *warned,
               struct err *err)
{
    json_t *one = json_pack("{s:{s:O}}", "policies", name, (json_t *)(uintptr_t)spec);
    int r = one ? try(base, one, warned, err)
                : err_set(err, ERR_PARSE, "Policy %.80s: it has no spec", name);
    json_decref(one);
    return r;
}

static void say(json_t *verdicts, const char *kind, const char *name, const char *message)
{
    json_array_append_new(verdicts, json_pack("{s:s, s:s, s:b, s:s}", "kind", kind, "name", name,
                                              "accepted", message[0] == '\0', "message", message));
}

/* ---- policies ---- */

static json_t *nothing_allowed(void)
{
    return json_pack("{s:[]}", "rules");
}

/* That all load together says of each that it does, by one look for all of them. Where they do not
 * each is looked at by itself. */
static bool are_good(const struct kube_base *base, const json_t *policies)
{
    struct err ignored = {0};
    json_t *all = json_pack("{s:{}}", "policies"), *to = json_object_get(all, "policies");
    const json_t *one;
    size_t i;
    int bad = all == NULL;
    json_array_foreach(policies, i, one) bad |=
        json_object_set(to, text_in(one, "metadata", "name"), json_object_get(one, "spec"));
    bool good = !bad && try(base, all, NULL, &ignored) == 0;
    json_decref(all);
    return good;
}

static int keep_policy(const struct kube_base *base, const json_t *object, bool good,
                       const json_t *last, json_t *to, json_t *verdicts)
{
    struct err err = {0}, other = {0};
    const char *name = text_in(object, "metadata", "name");
    json_t *spec = json_object_get(object, "spec"), *was = json_object_get(last, name);
    if (good || kube_judge(base, name, spec, NULL, &err) == 0) {
        say(verdicts, "Policy", name, "");
        return json_object_set(to, name, spec);
    }
    bool kept = was && kube_judge(base, name, was, NULL, &other) == 0;
    char text[sizeof err.text + 64];
    snprintf(text, sizeof text, "%s%s", err.text, kept ? "; what it was before stays" : "");
    say(verdicts, "Policy", name, text);
    return kept ? json_object_set(to, name, was) : 0;
}

/* A policy never vanishes from a daemon that runs: gates may have it. */
static int keep_gone(const struct kube_base *base, const json_t *last, json_t *to)
{
    const char *name;
    json_t *was;
    int bad = 0;
    json_object_foreach((json_t *)(uintptr_t)last, name, was)
    {
        struct err err = {0};
        json_t *none = json_object_get(to, name) ? NULL : nothing_allowed();
        if (none && kube_judge(base, name, none, NULL, &err) == 0)
            bad |= json_object_set(to, name, none);
        json_decref(none);
    }
    return bad;
}

/* ---- bindings ---- */

static int older(const void *a, const void *b)
{
    const struct sorting *x = a, *y = b;
    int r = strcmp(x->made, y->made);
    return r ? r : strcmp(x->name, y->name);
}

static struct sorting *sorted(const json_t *bindings)
{
    size_t i, n = json_array_size(bindings);
    const json_t *one;
    struct sorting *list = calloc(n + 1, sizeof *list);
    json_array_foreach(bindings, i, one) if (list) list[i] = (struct sorting){
        one, text_in(one, "metadata", "creationTimestamp"), text_in(one, "metadata", "name")};
    if (list)
        qsort(list, n, sizeof *list, older);
    return list;
}

/* As node.namespaces has it, of one binding. */
static json_t *entry_of(const json_t *spec)
{
    json_t *labels = json_object_get(spec, "labels");
    json_t *accounts = json_object_get(spec, "serviceAccounts");
    json_t *v = json_pack("{s:O?}", "policy", json_object_get(spec, "policy"));
    int bad = v == NULL || (labels && json_object_set(v, "labels", labels) < 0) ||
              (accounts && json_object_set(v, "accounts", accounts) < 0);
    if (!bad)
        return v;
    json_decref(v);
    return NULL;
}

static bool is_whole(const json_t *entry)
{
    return !json_object_get(entry, "labels") && !json_object_get(entry, "accounts");
}

static bool has_whole(const json_t *bindings)
{
    const json_t *one;
    size_t i;
    json_array_foreach(bindings, i, one) if (is_whole(one)) return true;
    return false;
}

static int add_to(json_t *namespaces, const char *ns, const json_t *spec, struct err *err)
{
    json_t *list = json_object_get(namespaces, ns), *one = entry_of(spec);
    if (list == NULL && json_object_set_new(namespaces, ns, list = json_array()) < 0)
        list = NULL;
    if (list && one && is_whole(one) && has_whole(list))
        err_set(err, ERR_PARSE, "the namespace %.63s is bound by an older PolicyBinding", ns);
    int bad = list == NULL || one == NULL || json_array_append(list, one) < 0 ? -1 : 0;
    json_decref(one);
    return bad;
}

static int add_binding(json_t *objects, const json_t *object, struct err *err)
{
    const json_t *spec = json_object_get(object, "spec"), *one;
    json_t *wanted = json_object_get(objects, "namespaces");
    size_t i;
    int bad = 0;
    json_array_foreach(json_object_get(spec, "namespaces"), i, one)
    {
        const char *ns = json_string_value(one);
        if (ns)
            bad |= add_to(wanted, ns, spec, err);
    }
    return bad;
}

/* n of them, all or none: what is good together costs one look, however many they are. Where
 * something is wrong the older half is looked at first, and then the younger one beside what is
 * left of it, so that in the end each is judged as if it had come alone. */
static int add_some(const struct kube_base *base, const struct sorting *list, size_t n,
                    json_t *objects, json_t *verdicts)
{
    struct err err = {0};
    json_t *tried = json_deep_copy(objects);
    int bad = tried == NULL;
    for (size_t i = 0; !bad && i < n; i++)
        bad = add_binding(tried, list[i].object, &err);
    if (!bad && err.code == ERR_NONE && try(base, tried, NULL, &err) == 0)
        bad = json_object_set(objects, "namespaces", json_object_get(tried, "namespaces"));
    json_decref(tried);
    if (bad || (err.code != ERR_NONE && n > 1))
        return bad ? -1
                   : add_some(base, list, n / 2, objects, verdicts) |
                         add_some(base, list + n / 2, n - n / 2, objects, verdicts);
    for (size_t i = 0; i < n; i++)
        say(verdicts, "PolicyBinding", list[i].name, err.text);
    return 0;
}

static int add_bindings(const struct kube_base *base, const json_t *bindings, json_t *objects,
                        json_t *verdicts)
{
    struct sorting *list = sorted(bindings);
    size_t n = json_array_size(bindings);
    int bad = list == NULL || (n > 0 && add_some(base, list, n, objects, verdicts) < 0);
    free(list);
    return bad;
}

json_t *kube_objects(const struct kube_base *base, const json_t *policies, const json_t *bindings,
                     const json_t *last, json_t *verdicts)
{
    json_t *objects = json_pack("{s:{}, s:{}}", "policies", "namespaces");
    json_t *to = json_object_get(objects, "policies");
    const json_t *was = json_object_get(last, "policies"), *one;
    size_t i;
    int bad = objects == NULL;
    bool good = are_good(base, policies);
    json_array_foreach(policies, i, one) bad |= keep_policy(base, one, good, was, to, verdicts);
    bad |= keep_gone(base, was, to);
    bad |= add_bindings(base, bindings, objects, verdicts);
    if (!bad)
        return objects;
    json_decref(objects);
    return NULL;
}

/* ---- what the API server asks ---- */

static json_t *verdict(const char *uid, bool allowed, const char *message, json_t *warned)
{
    return json_pack("{s:s, s:s, s:{s:s, s:b, s:{s:i, s:s}, s:o}}", "apiVersion",
                     "admission.k8s.io/v1", "kind", "AdmissionReview", "response", "uid", uid,
                     "allowed", allowed, "status", "code", allowed ? 200 : 422, "message", message,
                     "warnings", warned);
}

json_t *kube_review_answer(const struct kube_base *base, const json_t *asked)
{
    struct err err = {0};
    const json_t *request = json_object_get(asked, "request");
    const char *uid = json_string_value(json_object_get(request, "uid"));
    const json_t *object = json_object_get(request, "object"), *spec;
    const char *name =
        json_string_value(json_object_get(json_object_get(object, "metadata"), "name"));
    if (uid == NULL || name == NULL)
        return NULL;
    spec = json_object_get(object, "spec");
    json_t *warned = json_array();
    if (base == NULL)
        err_set(&err, ERR_UNREADY,
                "the configuration beside which policies are judged is not there");
    else
        (void)kube_judge(base, name, spec, warned, &err);
    return verdict(uid, err.code == ERR_NONE, err.text, warned);
}
