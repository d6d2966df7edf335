/* What a request may carry: hop-by-hop and forwarding fields are taken off, methods are those of a
 * list, foreign credentials and misplaced placeholders are refused (attacks A24-A26, B20-B21, C2,
 * C5, C7-C9). Pure functions over a head. */
#ifndef DURWARD_GUARD_H
#define DURWARD_GUARD_H

#include "http_head.h"
#include "policy.h"

/* 0, or -1: the method is not one that passes (405). */
int guard_method(struct slice method);
/* What a check says of a request. */
struct guard_answer {
    bool inject;      /* the rule's credential is to be filled */
    unsigned status;  /* of a refusal, with its code */
    const char *code; /* constant */
    /* the field that was refused ("header x-api-key"), of a placeholder also where the rule puts
     * its own; never a value; or "" */
    char where[INSPECT_DETAIL_MAX];
};

/* The fields that will be written, made once and before anything is judged of them, in the gate and
 * in the injector alike: off goes what is between client and proxy only (also by Connection), what
 * says where a request comes from or goes to, and what may not travel beside the rule's credential
 * (Cookie, Range, other codings), or where the reply is searched. The framing fields go too: the
 * head's own body kind says it. -1: there is no room for those that are added. */
int guard_fields(struct head *h, const struct rule *rule, bool searched) WUNUSED;
/* NULL, or the code of the first of the rule's conditions that fields and this query do not meet;
 * another spelling of a field that the rule speaks of meets none. */
const char *guard_conditions(const struct head *h, const struct rule *rule, struct slice query,
                             bool has_query, struct guard_answer *ret);
/* The first part of it, which needs no rule: alike for every one. */
void guard_clean_request(struct head *h);
/* Where the method matters: fields that name another one go. Returns how many. */
size_t guard_strip_overrides(struct head *h);
/* A parameter that names another method (attack A25): refused where the method matters. */
bool guard_query_override(struct slice query);
/* Of COPY and MOVE, once guard_fields has made the fields: what they write at is on the same
 * authority, and a PUT there would be decided by a rule with the same credential, whose conditions
 * these fields and the place's own query meet; where it would be asked about, counted, captured
 * from or its body would be read, this very rule does so. What a field names as the source of a
 * copy is judged so as a GET. False: not so, or nobody can tell. */
bool guard_destination(const struct policy *p, const struct authority *a, const struct head *h,
                       const struct rule *rule) WUNUSED;
/* The same for a reply. credentialed: cookies are dropped unless keep_cookies. */
void guard_clean_reply(struct head *h, bool credentialed, bool keep_cookies);

/* A reply's trailers: what names framing, routing or a cookie goes. */
void guard_clean_trailers(struct head *h);
/* Of the checks of credentials, those that need no placeholder: of the gate, and of the injector
 * again over what a gate sent. Credentials other than the slot's: dropped where the rule says
 * replace; true: refuse, they are there (or one is in the query, from where nothing is dropped).
 * What the rule itself writes (set_headers) is none: a gate has written it before it sends. */
bool guard_foreign(struct head *h, const struct rule *rule, struct guard_answer *ret);
/* A rule's set_headers and remove_headers. */
int guard_edit(struct head *h, const struct rule *rule) WUNUSED;
/* "name=<len>&…" of a query, for the audit. */
void guard_query_shape(struct slice query, struct buf *out);

#endif
