/* Builds filters with libseccomp. Where an architecture lacks a call, the rule is made for the call
 * that libc makes there instead. */
#define _GNU_SOURCE 1
#include "filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(FILTER_NATIVE == SCMP_ARCH_NATIVE, "libseccomp's name of it");

struct filter {
    scmp_filter_ctx c;
    uint32_t arch;
    const char *failed; /* the call whose rule was not taken; "" of no call */
    int why;            /* errno of it */
};

/* What libc makes where the kernel has no call of the name (arm64, riscv64). */
static const struct {
    const char *call, *instead;
} stand_ins[] = {
    {"poll", "ppoll"},      {"epoll_wait", "epoll_pwait"}, {"renameat", "renameat2"},
    {"unlink", "unlinkat"}, {"access", "faccessat"},       {"stat", "newfstatat"},
};

uint32_t filter_arch(uint32_t arch)
{
    return arch == FILTER_NATIVE ? seccomp_arch_native() : arch;
}

int filter_number(uint32_t arch, const char *call)
{
    int nr = seccomp_syscall_resolve_name_arch(arch, call);
    for (size_t i = 0; nr < 0 && i < ARRAY_LEN(stand_ins); i++)
        if (strcmp(stand_ins[i].call, call) == 0)
            nr = seccomp_syscall_resolve_name_arch(arch, stand_ins[i].instead);
    return nr < 0 ? -1 : nr;
}

static void fail(struct filter *f, const char *call, int r)
{
    if (r >= 0 || f->failed != NULL)
        return;
    f->failed = call;
    f->why = -r;
}

struct filter *filter_new(uint32_t arch, uint32_t otherwise)
{
    struct filter *f = calloc(1, sizeof *f);
    if (f == NULL)
        return NULL;
    f->arch = filter_arch(arch);
    f->c = seccomp_init(otherwise);
    if (f->c == NULL) {
        free(f);
        return NULL;
    }
    if (f->arch != seccomp_arch_native()) {
        fail(f, "", seccomp_arch_add(f->c, f->arch));
        fail(f, "", seccomp_arch_remove(f->c, SCMP_ARCH_NATIVE));
    }
    fail(f, "", seccomp_attr_set(f->c, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS));
    fail(f, "", seccomp_attr_set(f->c, SCMP_FLTATR_CTL_OPTIMIZE, 2));
    return f;
}

void filter_rule(struct filter *f, uint32_t action, const char *call, unsigned n,
                 const struct scmp_arg_cmp *conditions)
{
    int nr = f ? filter_number(f->arch, call) : -1;
    if (nr < 0)
        return;
    if (f->arch != seccomp_arch_native()) {
        /* libseccomp takes our own numbers, and goes by their names */
        char *name = seccomp_syscall_resolve_num_arch(f->arch, nr);
        nr = name ? seccomp_syscall_resolve_name(name) : -ENOMEM;
        free(name);
    }
    fail(f, call, seccomp_rule_add_array(f->c, action, nr, n, conditions));
}

static int said(const struct filter *f, struct err *err)
{
    if (f == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    if (f->failed)
        return err_set(err, ERR_INTERNAL, "libseccomp takes no rule of %s: %s",
                       *f->failed ? f->failed : "a filter", strerror(f->why));
    return 0;
}

int filter_load(const struct filter *f, struct err *err)
{
    if (said(f, err) < 0)
        return -1;
    int r = seccomp_load(f->c);
    return r < 0 ? err_set(err, ERR_INTERNAL, "loading a filter: %s", strerror(-r)) : 0;
}

/* libseccomp writes programs to descriptors only. */
int filter_write(const struct filter *f, size_t before, struct filter_program *ret, struct err *err)
{
    memset(ret, 0, sizeof *ret);
    if (said(f, err) < 0)
        return -1;
    int fd = memfd_create("filter", MFD_CLOEXEC);
    if (fd < 0)
        return err_sys(err, "memfd_create");
    int failed = seccomp_export_bpf(f->c, fd);
    off_t size = failed == 0 ? lseek(fd, 0, SEEK_END) : 0;
    size_t n = size > 0 ? (size_t)size / sizeof(struct sock_filter) : 0;
    struct sock_filter *code = n ? calloc(before + n, sizeof *code) : NULL;
    int r = -1;
    if (code == NULL || before + n > BPF_MAXINSNS) {
        err_set(err, ERR_INTERNAL, "cannot write a filter out");
    } else if (pread(fd, code + before, (size_t)size, 0) != size) {
        err_sys(err, "cannot read a filter");
    } else {
        *ret = (struct filter_program){code, before + n};
        code = NULL;
        r = 0;
    }
    free(code);
    close(fd);
    return r;
}

void filter_free(struct filter *f)
{
    if (f != NULL)
        seccomp_release(f->c);
    free(f);
}

void filter_program_free(struct filter_program *p)
{
    free(p->code);
    memset(p, 0, sizeof *p);
}
