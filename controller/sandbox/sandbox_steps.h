/* What is done inside a sandbox before its command starts (W_RUN's steps): files of the home, one
 * after the other, by durward-init, so that no path of the sandbox is resolved outside. */
#ifndef DURWARD_SANDBOX_STEPS_H
#define DURWARD_SANDBOX_STEPS_H

#include "sandbox_internal.h"

/* The self-test passed: the first step, or without any the command. */
void sandbox_steps_begin(struct sandbox *s);
/* READY: W_INIT_STARTED and W_INIT_EXIT of the step that is being done; fd is taken over. -1: the
 * number is not that of it. */
int sandbox_step_started(struct sandbox *s, uint32_t number, int fd);
int sandbox_step_ended(struct sandbox *s, uint32_t number, uint32_t status);

#endif
