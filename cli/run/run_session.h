/* One `durward run` from the started parent to the exit status: channels, signals, terminal. */
#ifndef DURWARD_RUN_SESSION_H
#define DURWARD_RUN_SESSION_H

#include "denials.h"
#include "run.h"
#include "run_publish.h"

struct run_result {
    bool started;     /* the command was */
    uint32_t status;  /* as in controller/proto/run.h */
    char text[8192];  /* why, where the status is Durward's own; "" otherwise */
    char sandbox[65]; /* "" if it was not made */
    struct denials denials;
};

/* channel: our end of the parent's descriptor 3 (taken over). The request's descriptors are filled
 * in here. publish: taken over, or NULL. Returns when the sandbox is gone and its output written.
 */
void run_session(int channel, struct run_request *r, struct run_publish *publish,
                 struct run_result *ret);

#endif
