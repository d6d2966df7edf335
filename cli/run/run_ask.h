/* `durward run --ask`: requests that an `ask` rule holds are shown on the terminal, and its user
 * says yes or no.
 *
 * While a question stands, nothing of the sandbox reaches the terminal and no key reaches the
 * sandbox: what is on the screen is ours, and so is the answer. Keys pressed before it are dropped.
 * The question is about what the controller says; texts are cleaned before they are shown. */
#ifndef DURWARD_RUN_ASK_H
#define DURWARD_RUN_ASK_H

#include "err.h"
#include "ipc.h"
#include "run_stdio.h"

struct event;
struct run_ask;

/* NULL with err where there is no terminal. stdio is borrowed. */
struct run_ask *run_ask_new(struct event_base *base, struct run_stdio *stdio, struct err *err);
/* NULL is fine; a question that stands is taken back. */
void run_ask_free(struct run_ask *a);
/* W_HELD or W_HELD_OVER; answers go to `controller`. -1: bad. */
int run_ask_message(struct run_ask *a, struct ipc *controller, struct msg *m);

#endif
