/* The bytes of a request's target: what is carried as it came, what is written as browsers write it
 * (the WHATWG URL standard's percent-encoding), and what is refused. */
#ifndef DURWARD_TARGET_H
#define DURWARD_TARGET_H

#include "http_head.h"

struct rule;

/* h->path and h->query were cut out of the target as it was received. A double quote, "<", ">" and
 * well-formed UTF-8 are percent-encoded (h->respelled); everything else stays as it is. Refused
 * are controls, blanks, "#", other bytes above 0x7f and, in the path, a backslash. max: bytes of
 * path and query, encoded. 0, or -1 with the refusal. */
int target_spell(struct head *h, size_t max, struct refusal *why);
/* Bytes that a CONNECT target or the authority of an absolute one may have. */
bool target_authority_ok(struct slice s);
/* A signature covers the target: one that the client made, or one that the rule is to make. What
 * was signed must not be spelled anew. rule may be NULL. */
bool target_is_signed(const struct head *h, const struct rule *rule);

#endif
