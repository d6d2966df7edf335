/* A pod is its daemon's by label, and kept as long as its keeper holds a lock of its name. */
#define _GNU_SOURCE 1
#include "kube_owned.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "kube_manifest.h"

bool kube_is_kept(int locks, const char *pod)
{
    int fd = openat(locks, pod, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno != ENOENT;
    bool kept = flock(fd, LOCK_EX | LOCK_NB) < 0;
    close(fd);
    return kept;
}

json_t *kube_removal(const json_t *pod, const char *daemon)
{
    const json_t *meta = json_object_get(pod, "metadata");
    const json_t *labels = json_object_get(meta, "labels");
    const char *whose = json_string_value(json_object_get(labels, KUBE_LABEL_DAEMON));
    const char *uid = json_string_value(json_object_get(meta, "uid"));
    if (whose == NULL || uid == NULL || strcmp(whose, daemon) != 0)
        return NULL;
    return json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", "v1", "kind", "DeleteOptions",
                     "preconditions", "uid", uid);
}
