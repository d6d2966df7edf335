/* Rules of smtp:// and smtps://: what messages may be handed to a mail server, and the decision
 * about one. Front and back of the broker both decide, by this one function.
 *
 * An address is what every reader takes for the same: one '@', no quotes, no route, no address
 * literal, and none of the signs by which servers forward elsewhere ('%', '!'). */
#ifndef DURWARD_SMTP_RULE_H
#define DURWARD_SMTP_RULE_H

#include "policy.h"

enum {
    SMTP_ADDRESS_MAX = 254,
    SMTP_PATTERNS_MAX = 64,
    SMTP_RECIPIENTS_MAX = 100,
    SMTP_MEGABYTES = 25, /* of a message, where its rule says nothing */
};

struct smtp_terms {
    bool implicit; /* smtps://: TLS from the first byte; else STARTTLS, */
    bool plain;    /* or neither */
    const char *const *recipients, *const *senders; /* patterns; n 0: any */
    size_t n_recipients, n_senders;
    unsigned most_recipients; /* of a message */
    uint64_t most_bytes;
};

struct smtp_envelope {
    struct slice sender; /* n 0: none, as of a bounce */
    struct slice recipients[SMTP_RECIPIENTS_MAX];
    size_t n;
    uint64_t size; /* as it was declared; 0: it was not */
};

/* utf8: of a message with SMTPUTF8. */
bool smtp_address_ok(struct slice address, bool utf8);
struct slice smtp_address_domain(struct slice address); /* of one that is */
/* LOCAL@DOMAIN: '*' is any part of LOCAL; DOMAIN is one, or "*.DOMAIN", names below it, or "*". */
bool smtp_pattern_ok(struct slice pattern);
bool smtp_pattern_match(struct slice pattern, struct slice address);

/* NULL, or a constant code. */
const char *smtp_sender_refused(const struct smtp_terms *t, struct slice sender);
const char *smtp_recipient_refused(const struct smtp_terms *t, struct slice recipient);
/* e NULL: a connection, of which no message is known yet. */
void policy_smtp_decide(const struct policy *p, const struct authority *a,
                        const struct smtp_envelope *e, struct decision *ret);

#endif
