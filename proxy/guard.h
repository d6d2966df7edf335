/* What a request may carry: hop-by-hop and forwarding fields are taken off, methods are those of a
 * list, foreign credentials and misplaced placeholders are refused (attacks A24-A26, B20-B21, C2,
 * C5, C7-C9). Pure functions over a head. */
#ifndef DURWARD_GUARD_H
#define DURWARD_GUARD_H

#include "gate.h"

/* 0, or -1: the method is not one that passes (405). */
int guard_method(struct slice method);
/* Take off everything that is between client and proxy only, or that lies about where a request
 * comes from or goes to. The framing fields go too: the head's own body kind says it. */
void guard_clean_request(struct head *h);
/* A method-scoped rule: fields that name another method go. Returns how many. */
size_t guard_strip_overrides(struct head *h);
/* A parameter that names another method (_method, attack A25): refused on a method-scoped rule. */
bool guard_query_override(struct slice query);
/* The same for a reply. credentialed: cookies are dropped unless keep_cookies. */
void guard_clean_reply(struct head *h, bool credentialed, bool keep_cookies);

/* A reply's trailers: what names framing, routing or a cookie goes. */
void guard_clean_trailers(struct head *h);
/* A request's trailers. NULL when they are harmless (they go nowhere); else a constant refusal:
 * one names a credential, framing or routing, or holds a placeholder (attack B14). */
const struct refusal *guard_request_trailers(const struct gate *g, const struct identity *who,
                                             const struct head *h);

/* After the decision: credentials and placeholders. On success the client's copy of the slot's
 * field is gone from h, and so is what a credentialed request may not carry (Cookie, Range,
 * Accept-Encoding). -1: refuse with 403 and *code. *inject says whether the rule's credential is to
 * be filled (false for client_credential: pass with a credential of the client's own). */
int guard_credentials(const struct gate *g, const struct identity *who, struct head *h,
                      const struct rule *rule, bool *inject, const char **code);
/* This sandbox's placeholders: those of the rule's secret, for an injector that is to find them (if
 * something is injected), and those for what the rule captures of the reply; the injector refuses
 * when one is missing. */
void guard_marks(const struct gate *g, const struct identity *who, const struct rule *rule,
                 bool inject, struct hop_marks *marks, struct hop_blanks *ret);
/* The parts of it that need no placeholder, repeated by the injector over what a gate sent.
 * Credentials other than the slot's: dropped where the rule says replace; true: refuse, they are
 * there (or one is in the query, from where nothing is dropped). */
bool guard_foreign(struct head *h, const struct rule *rule);
/* What a credentialed request may not carry, and Accept-Encoding. -1: too many fields. */
int guard_credentialed(struct head *h, const struct rule *rule) WUNUSED;
/* Something a sandbox sends that no placeholder may be in. NULL, or a constant refusal. */
const struct refusal *guard_text(const struct gate *g, const struct identity *who,
                                 struct slice text);
/* Does this text hold a placeholder of this installation? For what is logged. */
bool guard_has_placeholder(const struct gate *g, struct slice text);
/* The rule's conditions on query and headers. NULL when they are met, else the code of the refusal.
 */
const char *guard_conditions(const struct rule *rule, const struct head *h);
/* A rule's set_headers and remove_headers. */
int guard_edit(struct head *h, const struct rule *rule) WUNUSED;
/* "name=<len>&…" of a query, for the audit. */
void guard_query_shape(struct slice query, struct buf *out);

#endif
