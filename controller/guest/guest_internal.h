/* durward-guest's parts: the first process of a microVM's guest. It makes the place that
 * durward-init runs in, takes what programs there connect to, and carries all of it over the
 * trunk. */
#ifndef DURWARD_GUEST_INTERNAL_H
#define DURWARD_GUEST_INTERNAL_H

#include <poll.h>

#include "compiler.h"
#include "trunk.h"

enum { GUEST_LISTENERS = 16, GUEST_WORDS_MAX = 16, GUEST_TEXT_MAX = 1024 };

/* GUEST_WORDS, read. */
struct guest_words {
    const char *hostname, *build;
    unsigned pids;
    unsigned long known, shared; /* files that the host serves at once; bytes of /dev/shm */
    char *init[GUEST_WORDS_MAX + 1];
    char text[GUEST_TEXT_MAX];
};

/* The network that programs have: lo, where every address is local, and our listeners. */
struct guest_net {
    int ours, theirs; /* network namespaces */
    struct {
        int kind, fd;
    } at[GUEST_LISTENERS];
    unsigned n;
};

/* Each says on stderr, which is the machine's console, what is wrong. */
int guest_fail(const char *what);
/* In the namespaces that the guest began with, after it the caller is where it was. */
int guest_net_make(struct guest_net *net);
unsigned guest_net_watch(const struct guest_net *net, struct pollfd p[GUEST_LISTENERS]);
void guest_net_turn(const struct guest_net *net, const struct pollfd *p, unsigned n,
                    struct trunk *t);
/* File systems of its own, modules, the root below GUEST_ROOT. */
int guest_place_make(const struct guest_words *w);
/* Starts durward-init there, in namespaces of its own; its descriptor 0 is control. */
int guest_place_start(const struct guest_words *w, const struct guest_net *net, int control);

/* Files that this kernel knows: for each of them the host holds a descriptor. */
struct guest_files {
    unsigned long most, left; /* of these, how many were left when the last were dropped */
    int count;                /* where the kernel tells how many there are */
};

int guest_files_open(struct guest_files *k, unsigned long most);
/* Where there are many, those that nobody uses are forgotten. When it wants to look again, in ms.
 */
int guest_files_turn(struct guest_files *k);

#define GUEST_ROOT "/root"

#endif
