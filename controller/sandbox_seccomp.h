/* The system-call filter of everything that runs inside a local sandbox.
 *
 * It closes what namespaces do not: socket families other than unix, IPv4, IPv6 and plain
 * rtnetlink, kernel interfaces that need no file (io_uring, keyrings, bpf, userfaultfd, ...), new
 * namespaces, mounts, debugging of others. Refused calls are EPERM; unknown ones, and clone3, are
 * ENOSYS so that callers fall back; another architecture's calls (i386, x32) kill the process. */
#ifndef DURWARD_SANDBOX_SECCOMP_H
#define DURWARD_SANDBOX_SECCOMP_H

#include "err.h"

struct sock_filter;

struct sandbox_seccomp {
    struct sock_filter *code; /* malloc'd */
    size_t n;                 /* instructions */
};

/* Compile it; once a process is enough. */
int sandbox_seccomp_compile(struct sandbox_seccomp *ret, struct err *err);
/* As a fresh sealed file, rewound, for bubblewrap's --seccomp. */
int sandbox_seccomp_memfd(const struct sandbox_seccomp *f, struct err *err);
void sandbox_seccomp_free(struct sandbox_seccomp *f);

#endif
