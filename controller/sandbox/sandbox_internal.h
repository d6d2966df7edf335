/* Shared by sandbox.c (the order of things) and sandbox_peers.c (what init and gates may say). */
#ifndef DURWARD_SANDBOX_INTERNAL_H
#define DURWARD_SANDBOX_INTERNAL_H

#include "sandbox.h"

struct event;

enum { SANDBOX_TEXT_MAX = 8192 };

struct sandbox {
    struct sandbox_owner *owner;
    LIST_ENTRY(sandbox) link;
    struct sandbox_plan plan;
    enum sandbox_state state;
    struct ipc *client; /* owned by the controller's client; NULL once it left */
    struct ipc *init;   /* owned; READY and RUNNING */
    struct ipc *gate;   /* owned; NULL between a gate's death and the next one */
    struct name_table *names;
    struct denials denials;
    struct event *timer;
    bool told;     /* this gate has heard of the names that a former one gave out */
    size_t step;   /* of the request's steps: the one being done, or how many there are */
    bool tested;   /* READY: the self-test passed; the steps are done, then W_INIT_EXEC is sent */
    bool unwanted; /* NEW: to be ended as soon as there is a builder */
    bool torn;     /* ENDING: the builder has taken it down */
    uint32_t status;
    char text[SANDBOX_TEXT_MAX];   /* why it ended */
    char masked[SANDBOX_TEXT_MAX]; /* files hidden from it, one a line */
};

/* Messages and ends of the channels of the sandbox's own processes. */
int sandbox_on_init(struct ipc *ch, struct msg *m, void *arg);
void sandbox_on_init_closed(struct ipc *ch, const char *why, void *arg);
int sandbox_on_gate(struct ipc *ch, struct msg *m, void *arg);
void sandbox_on_gate_closed(struct ipc *ch, const char *why, void *arg);

/* Steps that those messages bring about. */
int sandbox_exec(struct sandbox *s);
void sandbox_started(struct sandbox *s, int pty);
/* To whoever asked by W_RUN_CONNECT; fd -1: there is none. */
void sandbox_connected(struct sandbox *s, uint32_t number, int fd);
void sandbox_running(struct sandbox *s);    /* a kept one */
void sandbox_last_words(struct sandbox *s); /* ENDING: the gate has told its last counts */

#endif
