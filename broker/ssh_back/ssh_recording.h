/* What a command or a shell says, and what is typed, for the audit log, where its rule has
 * `record`: the text of an asciicast of version 2, in records of kind `body`. Taken by the back,
 * which the sandbox cannot conquer by its own protocol, and written as any record is: no file is
 * made here.
 *
 * At most the rule's bytes of that text; then the recording ends, and says so. Who has its pieces
 * waiting for the log reads no more of what comes. */
#ifndef DURWARD_SSH_RECORDING_H
#define DURWARD_SSH_RECORDING_H

#include "ssh_facts.h"

#include <event2/event.h>

enum {
    SSH_RECORDING_READ = 4096, /* of what comes at a time: each byte may be twelve of its text */
    SSH_RECORDING_LOOKING = 32 << 20, /* bytes of memory for what is looked through; a quarter is a
                                       * sandbox's */
};

struct back_request;
struct quota;
struct ssh_recording;

/* Of a request that is on record. more: nothing waits any more. looking: bytes of memory for what
 * is looked through (`record_redact`), by sandbox. NULL: its rule asks for none, or there is no
 * memory for it (*failed). */
struct ssh_recording *ssh_recording_new(const struct back_request *of, const struct ssh_facts *f,
                                        struct quota *looking, void (*more)(void *arg), void *arg,
                                        bool *failed);
/* NULL is fine from here on. */
void ssh_recording_output(struct ssh_recording *r, struct slice bytes);
void ssh_recording_input(struct ssh_recording *r, struct slice bytes);
void ssh_recording_window(struct ssh_recording *r, uint32_t columns, uint32_t rows);
bool ssh_recording_waits(struct ssh_recording *r); /* then `more` follows */
/* What there is goes on record, before that of the request's end; then nothing more is taken. True:
 * it is there, or is lost. */
bool ssh_recording_end(struct ssh_recording *r);
const char *ssh_recording_note(const struct ssh_recording *r); /* for the request's end; "" */
void ssh_recording_free(struct ssh_recording *r);

#endif
