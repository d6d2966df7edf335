/* The host's ends of what runs in a pod: what durward-init would hand out, and what of it stays
 * here, where a session carries bytes. */
#ifndef DURWARD_KUBE_ENDS_H
#define DURWARD_KUBE_ENDS_H

#include "compiler.h"
#include "err.h"

struct kube_wish {
    bool in, out, split; /* split: a second output */
    bool tty;            /* one terminal in their place */
    bool socket;         /* one connection of loopback */
    uint32_t rows, cols;
};

struct kube_ends {
    int given[3]; /* to hand out, in W_INIT_STARTED's order */
    unsigned n_given;
    int input, output[2]; /* ours, which do not block; -1: none, or ended */
};

int kube_ends_make(const struct kube_wish *w, struct kube_ends *ret, struct err *err);
void kube_ends_close(struct kube_ends *e);

#endif
