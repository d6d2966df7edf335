/* Maps the stack at the first run and keeps its place; what a run touched goes back to the host. */
#include "parser_stack.h"

#include "compiler.h"

#include <stddef.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

static struct {
    char *base; /* below it nothing may be written */
    ucontext_t here, there;
    void (*fn)(void *arg);
    void *arg;
} stack;

static int make(void)
{
    size_t guard = (size_t)sysconf(_SC_PAGESIZE);
    char *p = mmap(NULL, PARSER_STACK + guard, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (p == MAP_FAILED)
        return -1;
    if (mprotect(p, guard, PROT_NONE) < 0) {
        munmap(p, PARSER_STACK + guard);
        return -1;
    }
    stack.base = p + guard;
    return 0;
}

static void begin(void)
{
    stack.fn(stack.arg);
}

int parser_stack_run(void (*fn)(void *arg), void *arg)
{
    if (SANITIZED) { /* which know one stack only */
        fn(arg);
        return 0;
    }
    if ((stack.base == NULL && make() < 0) || getcontext(&stack.there) < 0)
        return -1;
    stack.there.uc_stack.ss_sp = stack.base;
    stack.there.uc_stack.ss_size = PARSER_STACK;
    stack.there.uc_link = &stack.here;
    stack.fn = fn;
    stack.arg = arg;
    makecontext(&stack.there, begin, 0);
    int r = swapcontext(&stack.here, &stack.there);
    (void)madvise(stack.base, PARSER_STACK, MADV_DONTNEED);
    return r;
}
