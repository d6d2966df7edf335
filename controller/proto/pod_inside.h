/* What durward-init does in a pod that a cluster runs for a sandbox (backend kubernetes), where no
 * descriptor can be handed in: an init container lays it into a volume, process 1 waits, and each
 * command, file or connection is a process of its own, which the API server starts (exec) for
 * durward-kubernetes.
 *
 *   init pod install POLICY                   is the gate there, and of that policy? Then it lays
 *                                             this program into the volume
 *   init pod wait                             process 1: reaps
 *   init pod exec CWD HOW N ENV... WORD...    HOW: "m" merges stderr into stdout, else "-"; then
 *                                             the size of a terminal, "33x77"
 *   init pod file OP PATH MODE VERSION        inside.h; MODE octal
 *   init pod watch PATH NAME...
 *   init pod connect PORT
 *   init pod signal PID SIGNAL                as command_signal
 *
 * Those from exec to connect say first, on their standard output, how far they came. */
#ifndef DURWARD_POD_INSIDE_H
#define DURWARD_POD_INSIDE_H

#include "compiler.h"
#include "handover.h"

#define POD_INSIDE_WORD "pod"
#define POD_INSIDE_PROGRAM \
    HANDOVER_DIR "/" HANDOVER_INIT /* the volume is mounted at the directory */

/* "P<pid>;": it is that process (and group), and what follows is its own.
 * "F<status>;<text>": it was not started, as env(1) has it. */
enum { POD_INSIDE_STARTED = 'P', POD_INSIDE_FAILED = 'F', POD_INSIDE_ENDS = ';' };

/* argv[1] is that word: *status is the process's. */
bool pod_inside_main(int argc, char **argv, int *status);

#endif
