/* What the kernel does with a filter, for filters of other processors: a reader of the classic BPF
 * that seccomp takes. What it takes for nonsense (a jump out of the program, a load past the data,
 * an operation that seccomp has not) is FILTER_WRONG, which is no answer of a filter's. */
#ifndef DURWARD_FILTER_MACHINE_H
#define DURWARD_FILTER_MACHINE_H

#include "filter.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>

enum { FILTER_WRONG = 0x12345678 };

static bool filter_jump(const struct sock_filter *i, uint32_t a)
{
    switch (BPF_OP(i->code)) {
    case BPF_JEQ:
        return a == i->k;
    case BPF_JGT:
        return a > i->k;
    case BPF_JGE:
        return a >= i->k;
    default:
        return (a & i->k) != 0;
    }
}

static uint32_t filter_answer(const struct filter_program *p, const struct seccomp_data *d)
{
    uint32_t a = 0;
    for (size_t at = 0; at < p->n; at++) {
        const struct sock_filter *i = p->code + at;
        switch (i->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            if (i->k % 4 != 0 || i->k > sizeof *d - sizeof a)
                return FILTER_WRONG;
            memcpy(&a, (const char *)d + i->k, sizeof a);
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= i->k;
            break;
        case BPF_JMP | BPF_JA:
            if (i->k >= p->n - at - 1)
                return FILTER_WRONG;
            at += i->k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
        case BPF_JMP | BPF_JGT | BPF_K:
        case BPF_JMP | BPF_JGE | BPF_K:
        case BPF_JMP | BPF_JSET | BPF_K:
            at += filter_jump(i, a) ? i->jt : i->jf;
            break;
        case BPF_RET | BPF_K:
            return i->k;
        default:
            return FILTER_WRONG;
        }
    }
    return FILTER_WRONG;
}

#endif
