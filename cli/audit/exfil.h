/* What a log says of each sandbox that could be a way out for data: bytes and hosts, refusals,
 * names asked for in bursts, credentials that are not its own, secrets that came back. */
#ifndef DURWARD_EXFIL_H
#define DURWARD_EXFIL_H

#include <jansson.h>

#include "query.h"

enum { EXFIL_MAX = 200000 /* sandboxes and destinations; what finds no room is counted only */ };

struct exfil;

struct exfil *exfil_new(void);
void exfil_free(struct exfil *e); /* NULL is fine */
void exfil_add(struct exfil *e, const struct query_row *row);
/* Sandboxes, those with signs first, then by bytes out; each with its destinations, by bytes out:
 * [{"sandbox","policy","bytes_up","bytes_down","hosts","requests","denied","names_refused",
 *   "packets_refused","burst","foreign_credentials","cross_sandbox","misplaced","reflected",
 *   "first","last","destinations":[{"host","bytes_up","bytes_down","requests","denied"}]}]
 * sandbox "": clients of a listener that is bound to the policy. NULL: out of memory. */
json_t *exfil_report(struct exfil *e);
uint64_t exfil_left_out(const struct exfil *e);

#endif
