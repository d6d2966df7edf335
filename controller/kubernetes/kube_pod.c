/* Reads from a Pod object what bindings go by. */
#include "kube_pod.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *text_in(const json_t *v, const char *key)
{
    const char *s = json_string_value(json_object_get(v, key));
    return s ? s : "";
}

/* All labels: which of them bindings will ask for, nobody knows yet. */
static int add_labels(const json_t *labels, struct pod_facts *f, struct err *err)
{
    char text[POD_LABEL_MAX + 1];
    const char *key;
    json_t *value;
    if (json_object_size(labels) > POD_LABELS_MAX)
        return err_set(err, ERR_LIMIT, "the pod has more than %d labels", POD_LABELS_MAX);
    json_object_foreach((json_t *)(uintptr_t)labels, key, value)
    {
        const char *own = json_string_value(value);
        int n = own ? snprintf(text, sizeof text, "%s=%s", key, own) : -1;
        if (n < 0 || (size_t)n >= sizeof text || strlist_add(&f->labels, text) < 0)
            return err_set(err, ERR_UPSTREAM, "the pod's label %.80s is malformed", key);
    }
    return 0;
}

int kube_pod_facts(const json_t *pod, const char *uid, struct pod_facts *ret, struct err *err)
{
    const json_t *about = json_object_get(pod, "metadata");
    const char *account = text_in(json_object_get(pod, "spec"), "serviceAccountName");
    *ret = (struct pod_facts){.known = POD_KNOWN};
    if (uid[0] == '\0' || strcmp(text_in(about, "uid"), uid) != 0)
        return err_set(
            err, ERR_DENIED,
            "the API server has another pod of that name (a static pod has no label that "
            "it vouches for)");
    if (strlen(account) > POD_ACCOUNT_MAX)
        return err_set(err, ERR_UPSTREAM, "the pod's service account is malformed");
    snprintf(ret->account, sizeof ret->account, "%s", account);
    if (add_labels(json_object_get(about, "labels"), ret, err) < 0)
        return -1;
    return pod_facts_ok(ret) ? 0
                             : err_set(err, ERR_UPSTREAM, "what it says of the pod is malformed");
}

json_t *kube_pod_event(const char *ns, const char *name, const char *uid, const char *what,
                       const char *node)
{
    char now[32], text[POD_TEXT_MAX + 128];
    time_t at = time(NULL);
    struct tm tm;
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &tm));
    snprintf(text, sizeof text, "Durward: %s, node %.64s", what, node);
    return json_pack(
        "{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:s, s:s, s:s, s:s}, s:s, s:s, s:s, s:s, s:s, s:i, "
        "s:{s:s, s:s}, s:s, s:s}",
        "apiVersion", "v1", "kind", "Event", "metadata", "generateName", "durward-", "namespace",
        ns, "involvedObject", "apiVersion", "v1", "kind", "Pod", "namespace", ns, "name", name,
        "uid", uid, "type", "Normal", "reason", "DurwardBound", "message", text, "firstTimestamp",
        now, "lastTimestamp", now, "count", 1, "source", "component", "durward", "host", node,
        "reportingComponent", "durward.internal/node", "reportingInstance", node);
}
