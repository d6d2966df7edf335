/* How much of the log each sandbox may write: a rate, and what it may use at once. One count bounds
 * bytes and records, since a record counts as SHARE_RECORD bytes at least. What was written is
 * charged as it is on disk, afterwards: so much may be owed, and is paid off before more is had.
 *
 * Bounded: SHARES_MAX besides those that are held. Where it is full, who has used least is
 * forgotten, which costs nobody anything: whoever is new has all of its share. */
#ifndef DURWARD_SHARES_H
#define DURWARD_SHARES_H

#include "compiler.h"
#include "slice.h"

enum { SHARES_MAX = 4096, SHARE_RECORD = 512, SHARE_NAME_MAX = 600 };

struct shares;
struct share;

/* burst: at once; rate: bytes a second. NULL: out of memory. */
struct shares *shares_new(uint64_t burst, uint64_t rate);
void shares_free(struct shares *s); /* and all of them; NULL is fine */
/* That of this name, made if need be; `times` as much as others. Good until the next call. NULL:
 * out of memory. */
struct share *shares_get(struct shares *s, const char *name, unsigned times, uint64_t now_ms);
void share_hold(struct share *x); /* it stays until share_drop */
void share_drop(struct share *x);
void share_times(struct share *x, unsigned times, uint64_t now_ms); /* from now on */
uint64_t shares_burst(const struct shares *s);
size_t shares_count(const struct shares *s); /* that nobody holds */
void share_charge(struct share *x, uint64_t bytes, uint64_t now_ms);
/* What it may write now, so that what it used lately (and has not had again) stays within `used`
 * for each of its times; UINT64_MAX: whatever it is. */
uint64_t share_left(struct share *x, uint64_t used, uint64_t now_ms);

#endif
