/* What a front says of a message before its text: the envelope. There is no way to say a command
 * in it. */
#ifndef DURWARD_SMTP_FACTS_H
#define DURWARD_SMTP_FACTS_H

#include "buf.h"
#include "smtp_rule.h"

enum { SMTP_FACTS_MAX = 32 * 1024 };

struct smtp_facts {
    struct smtp_envelope envelope;
    bool eight, utf8;
};

int smtp_facts_put(struct buf *out, const struct smtp_facts *f) WUNUSED;
/* Slices lie in `in`. -1: it is none, or names what is no address. */
int smtp_facts_read(struct slice in, struct smtp_facts *ret) WUNUSED;
/* "example.com:2 example.org:1": domains of the recipients, and how many at each; as many domains
 * as there is room for. */
void smtp_facts_domains(const struct smtp_envelope *e, struct buf *out);

#endif
