/* The second half of what a request may carry (guard.h is the first): credentials and placeholders,
 * judged by what only the gate knows, which placeholders are this sandbox's (attacks C1, C2,
 * C7-C9). */
#ifndef DURWARD_GUARD_PLACEHOLDER_H
#define DURWARD_GUARD_PLACEHOLDER_H

#include "gate.h"
#include "guard.h"

/* A request's trailers. NULL when they are harmless (they go nowhere); else a constant refusal:
 * one names a credential, framing or routing, or holds a placeholder (attack B14). */
const struct refusal *guard_request_trailers(const struct gate *g, const struct identity *who,
                                             const struct head *h);

/* The gate's own part of admission: credentials and placeholders. On success the client's copy of
 * the slot's field is gone from h, but for an empty one where the rule has two places and the
 * client wrote in the second. inject is false for client_credential: pass with a credential of the
 * client's own. -1: refused. Foreign credentials are the list's next check. */
int guard_credentials(const struct gate *g, const struct identity *who, struct head *h,
                      const struct rule *rule, struct guard_answer *ret) WUNUSED;
/* This sandbox's placeholders: those of the rule's secret, for an injector that is to find them (if
 * something is injected), and those for what the rule captures of the reply; the injector refuses
 * when one is missing. */
void guard_marks(const struct gate *g, const struct identity *who, const struct rule *rule,
                 bool inject, struct injector_channel_marks *marks,
                 struct injector_channel_blanks *ret);
/* Something a sandbox sends that no placeholder may be in. NULL, or a constant refusal. */
const struct refusal *guard_text(const struct gate *g, const struct identity *who,
                                 struct slice text);
/* Does this text hold a placeholder of this installation? For what is logged. */
bool guard_has_placeholder(const struct gate *g, struct slice text);

#endif
