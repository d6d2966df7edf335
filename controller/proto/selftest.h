/* The start-up self-test of a local sandbox (promise P10): run by durward-init inside, before the
 * first command. Each probe tries something that must fail or looks at something that must hold.
 * What can only be seen from outside (whose network namespace this is) the builder checks. */
#ifndef DURWARD_SELFTEST_H
#define DURWARD_SELFTEST_H

#include <stdbool.h>

#include "compiler.h"

enum { SELFTEST_MAX = 64, SELFTEST_DETAIL = 96 };

struct selftest_result {
    const char *probe; /* constant text */
    bool ok;
    char detail[SELFTEST_DETAIL]; /* what was seen; "" when nothing is worth saying */
};

/* What the root is meant to be. */
enum selftest_root {
    SELFTEST_READ_ONLY,
    SELFTEST_LAYERED, /* written to, in a layer of ours */
    SELFTEST_ENGINE,  /* written to, in the engine's copy, which we cannot tell from another */
};

/* Which kernel answers, and what it lets programs do. */
enum selftest_wall {
    SELFTEST_PLAIN,
    SELFTEST_NESTED,    /* this one; namespaces and mounts are theirs to make */
    SELFTEST_OF_GVISOR, /* gVisor's */
    SELFTEST_IN_GUEST,  /* a microVM's, like this one */
};

/* Capabilities of root where programs inside may make namespaces, as in /proc/PID/status: those of
 * nested_capability (controller/backends/nested.h). */
#define SELFTEST_NESTED_CAPS 0xa82435ffULL

/* Runs every probe; control is the one descriptor above 2 that may be open. Returns how many
 * results it filled in. Takes about 2 ms, at most 20. */
unsigned selftest_run(int control, enum selftest_root root, enum selftest_wall wall,
                      struct selftest_result results[SELFTEST_MAX]);

#endif
