/* The system-call filter of everything that runs inside a local sandbox.
 *
 * It closes what namespaces do not: socket families other than unix, IPv4, IPv6 and plain
 * rtnetlink, kernel interfaces that need no file (io_uring, keyrings, bpf, userfaultfd, ...), new
 * namespaces, mounts, debugging of others. Refused calls are EPERM; unknown ones, and clone3, are
 * ENOSYS so that callers fall back; another architecture's calls (i386, x32) kill the process.
 *
 * nested opens what containers inside need: namespaces but those of time, mounts, roots, host
 * names, set-ID bits, as nothing inside is a file of the host's. */
#ifndef DURWARD_SANDBOX_SECCOMP_H
#define DURWARD_SANDBOX_SECCOMP_H

#include <stdbool.h>

#include "filter.h"

/* Compile it for FILTER_NATIVE or, to be looked at, another architecture that we know; once a
 * process is enough. */
int sandbox_seccomp_compile(uint32_t arch, bool nested, struct filter_program *ret,
                            struct err *err);
/* Of all that only what keeps set-ID bits off files: for a program of the host's that writes files
 * for whoever has taken over a kernel in which the filter above stands. */
int sandbox_seccomp_files(struct filter_program *ret, struct err *err);
/* As a fresh sealed file, rewound, for bubblewrap's --seccomp. */
int sandbox_seccomp_memfd(const struct filter_program *p, struct err *err);

#endif
