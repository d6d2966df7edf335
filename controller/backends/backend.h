/* What a local sandbox is made with. A backend's `make` is the launcher's whole work (launcher.h):
 * it opens the sandbox's listeners inside its network and offers them, says that it is built, waits
 * for the consent, and only then has anything of the sandbox's own run. */
#ifndef DURWARD_BACKEND_H
#define DURWARD_BACKEND_H

#include "err.h"
#include "plan.h"

struct making;

struct backend {
    const char *name;
    /* Can it be used here at all? -1 with the remedy. */
    int (*check)(const struct plan *plan, struct err *err);
    /* In the launcher. On success it does not return: the process becomes the sandbox's, or takes
     * the sandbox down by itself and exits. */
    int (*make)(const struct making *m, struct err *err);
    /* What to do about what it wrote on stderr; "" when that is not known. */
    const char *(*remedy)(const char *said);
    /* The launcher stays: SIGTERM has it take the sandbox down, as does the end of its channel.
     * Images and limits are the engine's business. */
    bool stays;
    int ready_s;       /* from its start to its self-test; 0: as usual */
    int start_wait_ms; /* between asking for the end of a sandbox and SIGKILL for its launcher */
};

const struct backend *backend_of(const struct plan *plan);

extern const struct backend backend_bwrap, backend_docker, backend_gvisor, backend_kubernetes,
    backend_microvm, backend_pod;

#endif
