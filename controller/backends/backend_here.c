/* Asks each backend's own finder of programs (gvisor_program.c, microvm_program.c). */
#include "backend_here.h"

#include "gvisor.h"
#include "microvm.h"

int backend_here(enum config_backend b, struct err *err)
{
    struct microvm_program machine;
    if (b == BACKEND_GVISOR)
        return gvisor_path(err) ? 0 : -1;
    return b == BACKEND_MICROVM ? microvm_find(&machine, err) : 0;
}

void backends_absent(const struct config *c, backend_absent_fn fn, void *arg)
{
    for (size_t i = 0; i < config_policies(c); i++) {
        const char *name = config_policy_name(c, i);
        enum config_backend b = config_policy_sandbox(c, name)->backend;
        struct err err = {0};
        if (backend_here(b, &err) < 0)
            fn(arg, name, b, err.text);
    }
}
