/* The CNI plugin on a node: its file among the runtime's, its entry in the runtime's list. Another
 * program may write that list anew at any time (a network's own installer does), so it is watched.
 */
#ifndef DURWARD_KUBE_PLUGIN_H
#define DURWARD_KUBE_PLUGIN_H

#include <stdbool.h>

#include "err.h"

struct kube;

struct kube_plugin {
    const char *from;   /* the plugin as it comes with this program */
    const char *bin;    /* the folder of the runtime's plugins */
    const char *lists;  /* the folder of its lists; the first by name is the one it uses */
    const char *socket; /* of the daemon, here and for the plugin */
    const char *netns, *kubelet, *pods; /* what the entry says */
};

/* Puts it in once the daemon answers, and keeps it there until SIGTERM. Then it is taken out if the
 * DaemonSet (NS/NAME) is gone: one that only starts anew leaves it, so that no pod starts without
 * its way out meanwhile. -1 with err. */
int kube_plugin_keep(const struct kube_plugin *p, const struct kube *k, const char *daemonset,
                     struct err *err);
/* Is all of it in place, and does the daemon answer? */
int kube_plugin_check(const struct kube_plugin *p, struct err *err);
int kube_plugin_remove(const struct kube_plugin *p, struct err *err);

#endif
