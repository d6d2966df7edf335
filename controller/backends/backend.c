/* Finds the backend of a plan; no other file lists them all. */
#include "backend.h"

const struct backend *backend_of(const struct plan *plan)
{
    static const struct backend *const all[BACKENDS_ALL] = {
        [BACKEND_BWRAP] = &backend_bwrap,   [BACKEND_DOCKER] = &backend_docker,
        [BACKEND_GVISOR] = &backend_gvisor, [BACKEND_KUBERNETES] = &backend_kubernetes,
        [BACKEND_POD] = &backend_pod,       [BACKEND_MICROVM] = &backend_microvm,
    };
    return all[plan->sandbox_spec.limits.backend];
}
