/* `redact` and `refuse` of a rule: what detectors look for in bodies on their way out. */
#include <stdio.h>
#include <string.h>

#include "detector.h"
#include "rule.h"

int rule_detectors_read(const struct node *n, uint32_t *ret, struct err *err)
{
    size_t count;
    if (node_strings(n, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct node item;
        const char *word;
        if (node_strings_at(n, i, &item, &word, err) < 0)
            return -1;
        uint32_t bits = detectors_of(slice_str(word));
        if (bits == 0)
            return node_fail(&item, err,
                             "'%.40s' is not a detector; write credentials, national_ids, card, "
                             "iban, email, entropy or one of those that the manual lists",
                             word);
        *ret |= bits;
    }
    return 0;
}

/* Bodies that no detector reads, or that nothing may be changed in. */
static int check_bodies(const struct node *n, const struct rule_entry *e, bool redacts,
                        const struct node *redact, struct err *err)
{
    if (e->git)
        return node_fail(n, err, "what git sends is compressed, and no detector reads it");
    if (e->rule.websocket)
        return node_fail(n, err, "messages of a WebSocket are not looked through");
    if (redacts && e->rule.credential && e->rule.credential->kind == CREDENTIAL_AWS)
        return node_fail(redact, err,
                         "the client signs its body for AWS, which would not fit any more; use "
                         "'refuse'");
    return 0;
}

int rule_outward_read(struct arena *a, const struct node *rule, struct rule_entry *ret,
                      struct err *err)
{
    struct node redact, refuse;
    bool redacts = node_get(rule, "redact", &redact), refuses = node_get(rule, "refuse", &refuse);
    if (!redacts && !refuses)
        return 0;
    struct detect_rules *d = arena_zalloc(a, 1, sizeof *d);
    if ((redacts && rule_detectors_read(&redact, &d->redact, err) < 0) ||
        (refuses && rule_detectors_read(&refuse, &d->refuse, err) < 0))
        return -1;
    if (d->redact & d->refuse) {
        unsigned first = (unsigned)__builtin_ctz(d->redact & d->refuse);
        return node_fail(&refuse, err, "'%s' is in 'redact' too; keep one", detector_name(first));
    }
    ret->rule.outward = d;
    return check_bodies(refuses ? &refuse : &redact, ret, redacts, &redact, err);
}

static size_t put_words(const char *what, uint32_t bits, char *buf, size_t size)
{
    size_t used = (size_t)snprintf(buf, size, "%s", what);
    for (unsigned i = 0, n = 0; i < DETECTORS && used < size; i++)
        if (bits & DETECT_BIT(i))
            used += (size_t)snprintf(buf + used, size - used, "%s%s", n++ ? ", " : " ",
                                     detector_name(i));
    return used < size ? used : size - 1;
}

char *rule_outward_text(const struct rule *r, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = 0;
    if (r->outward->redact)
        used = put_words("made unreadable:", r->outward->redact, buf, size);
    if (r->outward->refuse)
        put_words(used ? "; refused:" : "refused:", r->outward->refuse, buf + used, size - used);
    return buf;
}
