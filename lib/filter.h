/* A system-call filter: rules by the names of calls, made with libseccomp for this architecture or,
 * so that it can be looked at, for another; loaded, or written out as the kernel takes it.
 *
 * Names are x86-64's. Where an architecture lacks a call and libc makes a newer one instead (poll:
 * ppoll), the rule is the newer one's; where there is no such call at all, there is no rule. */
#ifndef DURWARD_FILTER_H
#define DURWARD_FILTER_H

#include "err.h"

#include <stddef.h>
#include <stdint.h>

enum {
    FILTER_NATIVE = 0,       /* SCMP_ARCH_NATIVE */
    FILTER_SOCKET_TYPE = 0xf /* of socket(2)'s second argument; the rest are flags */
};

/* Conditions (struct scmp_arg_cmp): argument i is v; its bits of mask are v. */
#define FILTER_IS(i, v)                               \
    {                                                 \
        .arg = (i), .op = SCMP_CMP_EQ, .datum_a = (v) \
    }
#define FILTER_HAS(i, mask, v)                                                  \
    {                                                                           \
        .arg = (i), .op = SCMP_CMP_MASKED_EQ, .datum_a = (mask), .datum_b = (v) \
    }

struct filter;
struct scmp_arg_cmp;
struct sock_filter;

struct filter_program {
    struct sock_filter *code; /* malloc'd */
    size_t n;                 /* instructions, at most 4096 */
};

/* arch: SCMP_ARCH_X86_64 or SCMP_ARCH_AARCH64 (seccomp.h), or FILTER_NATIVE for which of them
 * this is. What no rule is for has the action `otherwise`; a call of another architecture kills the
 * process. The first thing that fails, here (NULL) or in filter_rule, is what filter_load and
 * filter_write say; all take NULL. */
struct filter *filter_new(uint32_t arch, uint32_t otherwise);
/* One rule; its n conditions (at most 6) must all hold. */
void filter_rule(struct filter *f, uint32_t action, const char *call, unsigned n,
                 const struct scmp_arg_cmp *conditions);
/* For this process and what it starts, for good. A native filter only. */
int filter_load(const struct filter *f, struct err *err);
/* Behind room for `before` instructions, which are the caller's to fill in. */
int filter_write(const struct filter *f, size_t before, struct filter_program *ret,
                 struct err *err);
void filter_free(struct filter *f);
void filter_program_free(struct filter_program *p);

/* The number there of the call, or of the one that stands in for it; -1: there is none. */
int filter_number(uint32_t arch, const char *call);
/* The same by its own name. */
uint32_t filter_arch(uint32_t arch);

#endif
