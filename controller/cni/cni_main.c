/* The plugin's main: one command of the specification a run, its result or error on standard
 * output. It stands in a list of plugins behind the one that makes the pod's interface; what that
 * one said is passed on. */
#include "cni.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const versions[] = {"0.3.1", "0.4.0", "1.0.0", "1.1.0"};

static int put(json_t *v)
{
    int r = v && json_dumpf(v, stdout, JSON_COMPACT) == 0 && putchar('\n') != EOF ? 0 : 1;
    json_decref(v);
    return r;
}

static int fail(const struct cni_call *c, int code, const char *text)
{
    (void)put(json_pack("{s:s, s:i, s:s, s:s}", "cniVersion", c->version ? c->version : "1.0.0",
                        "code", code, "msg", text, "details", "durward-cni"));
    return 1;
}

static int say_versions(const struct cni_call *c)
{
    json_t *list = json_array();
    for (size_t i = 0; i < ARRAY_LEN(versions); i++)
        json_array_append_new(list, json_string(versions[i]));
    return put(json_pack("{s:s, s:o}", "cniVersion", c->version, "supportedVersions", list));
}

static bool known(const char *version)
{
    for (size_t i = 0; i < ARRAY_LEN(versions); i++)
        if (strcmp(versions[i], version) == 0)
            return true;
    return false;
}

static int pass_on(const struct cni_call *c)
{
    json_t *result = json_deep_copy(json_object_get(c->config, "prevResult"));
    if (result)
        json_object_set_new(result, "cniVersion", json_string(c->version));
    return put(result);
}

/* The daemon decides whether it has to know who the pod is; the API server says it, not the pod. */
static int ask_for_pod(struct cni_call *c, struct cni_answer *a, struct err *err)
{
    struct err why = {0};
    int asked = cni_ask(c, a, err);
    if (asked < 0 || a->end != POD_WHO)
        return asked;
    free(a->env);
    *a = (struct cni_answer){.env = NULL};
    cni_ask_who(c, &why);
    asked = cni_ask(c, a, err);
    size_t n = strlen(a->text);
    if (asked == 0 && a->end == POD_REFUSED && why.text[0])
        snprintf(a->text + n, sizeof a->text - n, ": %s", why.text);
    return asked;
}

/* The way out stands, or the pod does not start. */
static int add(struct cni_call *c)
{
    struct err err = {0};
    struct cni_answer a = {.env = NULL};
    if (json_object_get(c->config, "prevResult") == NULL)
        return fail(c, CNI_CONFIG,
                    "durward-cni stands behind a plugin that makes the pod's interface");
    if (cni_pin(c, &err) < 0)
        return fail(c, CNI_AGAIN, err.text);
    int asked = ask_for_pod(c, &a, &err);
    if (asked == 0 && a.end == POD_OK && cni_lay_env(c, &a, &err) == 0) {
        free(a.env);
        cni_say_bound(c, a.text);
        return pass_on(c);
    }
    free(a.env);
    char said[POD_TEXT_MAX];
    snprintf(said, sizeof said, "%s", asked == 0 && a.end == POD_REFUSED ? a.text : err.text);
    if (cni_unpin(c, c->q.container, &err) < 0 && a.end == POD_UNBOUND)
        return fail(c, CNI_AGAIN, err.text);
    if (asked == 0 && a.end == POD_UNBOUND)
        return pass_on(c);
    return fail(c, asked < 0 ? CNI_AGAIN : CNI_REFUSED, said);
}

/* A daemon that is not there sees at its next start that the pod's namespace is gone. One that is
 * there has to have heard of it, or the runtime asks again. */
static int del(const struct cni_call *c)
{
    struct err err = {0};
    struct cni_answer a = {.env = NULL};
    int asked = cni_ask(c, &a, &err);
    free(a.env);
    if (a.met && (asked < 0 || a.end != POD_OK))
        return fail(c, CNI_AGAIN, asked < 0 ? err.text : a.text);
    return cni_unpin(c, c->q.container, &err) < 0 ? fail(c, CNI_AGAIN, err.text) : 0;
}

static int gc(const struct cni_call *c)
{
    struct err err = {0};
    struct cni_answer a = {.env = NULL};
    int r = cni_ask(c, &a, &err);
    if (r == 0 && a.end != POD_OK)
        r = err_set(&err, ERR_UNREADY, "%s", a.text);
    if (r == 0)
        r = cni_unpin_others(c, a.env, &err);
    free(a.env);
    return r < 0 ? fail(c, CNI_AGAIN, err.text) : 0;
}

static int ask(const struct cni_call *c)
{
    struct err err = {0};
    struct cni_answer a = {.env = NULL};
    int code = c->q.op == POD_STATUS ? CNI_NOT_AVAILABLE : CNI_REFUSED;
    int asked = cni_ask(c, &a, &err);
    free(a.env);
    if (asked < 0)
        return fail(c, c->q.op == POD_STATUS ? CNI_NOT_AVAILABLE : CNI_AGAIN, err.text);
    return a.end == POD_OK ? 0 : fail(c, code, a.text);
}

int main(void)
{
    struct cni_call c = {.version = NULL};
    struct err err = {0};
    int code = cni_read(&c, &err);
    if (code)
        return fail(&c, code, err.text);
    if (c.q.op == 0)
        return say_versions(&c);
    if (!known(c.version))
        return fail(&c, CNI_VERSION, "this version of the specification is not spoken here");
    int status = 0;
    switch (c.q.op) {
    case POD_ADD:
        status = add(&c);
        break;
    case POD_DEL:
        status = del(&c);
        break;
    case POD_GC:
        status = gc(&c);
        break;
    default:
        status = ask(&c);
        break;
    }
    pod_request_done(&c.q);
    json_decref(c.config);
    return status;
}
