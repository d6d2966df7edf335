/* The logger: the only process that writes audit files. It makes each writer's journal, checks and
 * copies what they say into the hash chain, signs the head, grants credit only while it can write.
 */
#ifndef DURWARD_LOGGER_H
#define DURWARD_LOGGER_H

#include "err.h"

struct event_base;
struct logger;

/* The role: control channel on descriptor 3. Returns the exit status. */
int logger_main(void);

/* The same inside any event loop: takes control_fd over, answers W_INIT with W_READY or W_FAILED.
 * confine (may be NULL) runs before W_READY. When it is done (the control channel ended,
 * logger_stop, or a failed start) it ends the loop with event_base_loopexit. */
struct logger *logger_new(struct event_base *base, int control_fd,
                          int (*confine)(int dir, struct err *));
/* Copy what is left, write the ends, sign the head; then as above. Takes at most some 2 s. */
void logger_stop(struct logger *l);
bool logger_finished(const struct logger *l);
bool logger_ok(const struct logger *l); /* it had started, and nothing was left unwritten */
void logger_free(struct logger *l);

#endif
