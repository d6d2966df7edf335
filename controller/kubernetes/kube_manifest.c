/* Makes the manifest, and reads the status of what came of it. */
#include "kube_manifest.h"

#include <stdio.h>
#include <string.h>

#include "cluster.h"
#include "pod.h"
#include "pod_inside.h"

enum {
    USER = 1000,    /* restricted wants any but root */
    CPU_MILLI = 10, /* of one percent */
    INIT_BYTES = 64 << 20
};

/* Where durward-init lies in the image of Durward's own. */
#define INIT_IN_IMAGE "/usr/libexec/durward/durward-init"

/* ---- what it is asked for ---- */

static json_t *security(bool read_only)
{
    return json_pack("{s:b, s:b, s:{s:[s]}}", "allowPrivilegeEscalation", 0,
                     "readOnlyRootFilesystem", read_only, "capabilities", "drop", "ALL");
}

/* A directory of the pod's own; bytes 0: bounded by the pod's limit alone. */
static json_t *volume(const char *name, json_int_t bytes)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)bytes);
    return bytes ? json_pack("{s:s, s:{s:s}}", "name", name, "emptyDir", "sizeLimit", text)
                 : json_pack("{s:s, s:{}}", "name", name, "emptyDir");
}

static json_t *mount(const char *name, const char *at, bool read_only)
{
    return json_pack("{s:s, s:s, s:b}", "name", name, "mountPath", at, "readOnly", read_only);
}

/* Tests the network, and lays durward-init into the volume that the other container has. */
static json_t *first(const json_t *plan)
{
    return json_pack("{s:s, s:s, s:O, s:[s, s, s, O], s:o, s:[o, o]}", "name", "durward",
                     "terminationMessagePolicy", "FallbackToLogsOnError", "image",
                     json_object_get(plan, "init"), "command", INIT_IN_IMAGE, POD_INSIDE_WORD,
                     "install", json_object_get(plan, "policy"), "securityContext", security(true),
                     "volumeMounts", mount(POD_VOLUME, "/etc/durward", true),
                     mount("init", HANDOVER_DIR, false));
}

static json_t *limits_of(const json_t *plan)
{
    static const struct {
        const char *of, *is, *unit;
        json_int_t factor;
    } rows[] = {{"memory", "memory", "", 1},
                {"cpu", "cpu", "m", CPU_MILLI},
                {"disk", "ephemeral-storage", "", 1}};
    json_t *limits = json_object();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[40];
        json_int_t n = json_integer_value(json_object_get(plan, rows[i].of));
        snprintf(text, sizeof text, "%lld%s", (long long)(n * rows[i].factor), rows[i].unit);
        if (n > 0)
            json_object_set_new(limits, rows[i].is, json_string(text));
    }
    return json_pack("{s:o}", "limits", limits);
}

/* The image's own entry point does not run. */
static json_t *second(const json_t *plan)
{
    bool writable = json_is_true(json_object_get(plan, "writable"));
    json_t *mounts =
        json_pack("[o, o, o, o, o]", mount(POD_VOLUME, "/etc/durward", true),
                  mount("init", HANDOVER_DIR, true), mount("workspace", "/workspace", false),
                  mount("tmp", "/tmp", false), mount("var-tmp", "/var/tmp", false));
    return json_pack("{s:s, s:O, s:[s, s, s], s:s, s:o, s:o, s:o}", "name", CLUSTER_CONTAINER,
                     "image", json_object_get(plan, "image"), "command", POD_INSIDE_PROGRAM,
                     POD_INSIDE_WORD, "wait", "workingDir", "/", "securityContext",
                     security(!writable), "resources", limits_of(plan), "volumeMounts", mounts);
}

static json_t *spec(const json_t *plan)
{
    json_int_t disk = json_integer_value(json_object_get(plan, "disk"));
    json_t *volumes =
        json_pack("[o, o, o, o, o]", volume(POD_VOLUME, 0), volume("init", INIT_BYTES),
                  volume("workspace", disk), volume("tmp", disk), volume("var-tmp", disk));
    json_t *user =
        json_pack("{s:b, s:i, s:i, s:i, s:{s:s}}", "runAsNonRoot", 1, "runAsUser", USER,
                  "runAsGroup", USER, "fsGroup", USER, "seccompProfile", "type", "RuntimeDefault");
    return json_pack("{s:s, s:b, s:b, s:i, s:s, s:{s:[s]}, s:{s:s}, s:o, s:o, s:[o], s:[o]}",
                     "restartPolicy", "Never", "automountServiceAccountToken", 0,
                     "enableServiceLinks", 0, "terminationGracePeriodSeconds", 1, "dnsPolicy",
                     "None", "dnsConfig", "nameservers", "127.0.0.1", "nodeSelector",
                     "node-restriction.kubernetes.io/durward", "ready", "securityContext", user,
                     "volumes", volumes, "initContainers", first(plan), "containers", second(plan));
}

json_t *kube_manifest(const json_t *plan)
{
    return json_pack("{s:s, s:s, s:{s:O, s:O, s:{s:s, s:O, s:O, s:O}}, s:o}", "apiVersion", "v1",
                     "kind", "Pod", "metadata", "name", json_object_get(plan, "sandbox"),
                     "namespace", json_object_get(plan, "namespace"), "labels",
                     "app.kubernetes.io/managed-by", "durward", KUBE_LABEL_SANDBOX,
                     json_object_get(plan, "sandbox"), KUBE_LABEL_POLICY,
                     json_object_get(plan, "policy"), KUBE_LABEL_DAEMON,
                     json_object_get(plan, "daemon"), "spec", spec(plan));
}

/* ---- what became of it ---- */

/* Words of others, in a line for people. */
static void put(char *why, size_t size, const char *before, const char *text)
{
    snprintf(why, size, "%s%.600s", before, text ? text : "");
    for (char *c = why; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = ' ';
}

/* Nobody waits for an image that is not to be had. */
static bool is_hopeless(const char *reason)
{
    static const char *const reasons[] = {"ImagePullBackOff", "InvalidImageName",
                                          "ErrImageNeverPull", "CreateContainerConfigError"};
    for (size_t i = 0; reason && i < sizeof reasons / sizeof reasons[0]; i++)
        if (strcmp(reason, reasons[i]) == 0)
            return true;
    return false;
}

static bool is_over(const json_t *container, char *why, size_t size)
{
    const json_t *state = json_object_get(container, "state");
    const json_t *ended = json_object_get(state, "terminated");
    const json_t *waits = json_object_get(state, "waiting");
    const char *reason = json_string_value(json_object_get(waits, "reason"));
    if (ended && json_integer_value(json_object_get(ended, "exitCode")) != 0) {
        const char *text = json_string_value(json_object_get(ended, "message"));
        put(why, size, "",
            text && *text ? text : json_string_value(json_object_get(ended, "reason")));
        return true;
    }
    if (!is_hopeless(reason))
        return false;
    put(why, size, "the cluster cannot start its container: ",
        json_string_value(json_object_get(waits, "message")));
    return true;
}

enum kube_pod_state kube_pod_state(const json_t *of, char *why, size_t size)
{
    static const char *const lists[] = {"initContainerStatuses", "containerStatuses"};
    const json_t *status = json_object_get(of, "status");
    const char *phase = json_string_value(json_object_get(status, "phase"));
    const json_t *one;
    size_t i;
    why[0] = '\0';
    if (json_object_get(json_object_get(of, "metadata"), "deletionTimestamp")) {
        put(why, size, "", "the pod is being deleted");
        return KUBE_POD_OVER;
    }
    for (size_t k = 0; k < 2; k++)
        json_array_foreach(json_object_get(status, lists[k]), i,
                           one) if (is_over(one, why, size)) return KUBE_POD_OVER;
    if (phase && (strcmp(phase, "Failed") == 0 || strcmp(phase, "Succeeded") == 0)) {
        put(why, size, "the pod has ended: ", json_string_value(json_object_get(status, "reason")));
        return KUBE_POD_OVER;
    }
    one = json_array_get(json_object_get(status, "containerStatuses"), 0);
    bool runs = json_object_get(json_object_get(one, "state"), "running") != NULL;
    return phase && strcmp(phase, "Running") == 0 && runs ? KUBE_POD_RUNS : KUBE_POD_COMES;
}
