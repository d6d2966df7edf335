/* What the injector and the controller say of a request that an `ask` rule holds.
 *
 * W_PENDING_APPROVAL: req:u32 seconds:u32 (left), then sandbox:str method:str scheme:str
 * authority:str path:str query:str (names and lengths) rule:str credential:str type:str length:u64
 * (PENDING_APPROVAL_UNKNOWN: not known) cut:u8 (the path is longer). */
#ifndef DURWARD_HELD_H
#define DURWARD_HELD_H

#include <stdint.h>

enum {
    PENDING_APPROVAL_PATH_MAX = 4096,
    PENDING_APPROVAL_TEXT_MAX = 512,
    PENDING_APPROVAL_WHO_MAX = 160
};
#define PENDING_APPROVAL_UNKNOWN UINT64_MAX
#define PENDING_APPROVAL_MARK    "[...]" /* in the place of what is too long to be shown */
#define PENDING_APPROVAL_CUT     " " PENDING_APPROVAL_MARK

/* How it ended; FULL: too many are held. W_PENDING_APPROVAL_ANSWER says one of the first three. */
enum pending_approval_end {
    PENDING_APPROVAL_DENIED = 0,
    PENDING_APPROVAL_ALLOWED,
    PENDING_APPROVAL_FULL,
    PENDING_APPROVAL_TIMEOUT
};

#endif
