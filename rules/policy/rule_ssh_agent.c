/* Reads a rule whose patterns are of ssh-agent://: the namespaces in which the agent inside a
 * sandbox signs (PROTOCOL.sshsig of OpenSSH), and with which key. */
#include "rule_broker.h"
#include "ssh_rule.h"
#include "sshsig.h"

#include <stdio.h>
#include <string.h>

static int read_terms(struct rule_broker_reading *r, struct err *err)
{
    static const char *const others[] = {"access", "to"};
    struct ssh_terms *t = arena_zalloc(r->arena, 1, sizeof *t);
    struct node n;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (node_get(r->rule, others[i], &n))
            return node_fail(&n, err, "'%s' has no meaning for ssh-agent://", others[i]);
    t->signs = true;
    r->entry->rule.ssh = t;
    return 0;
}

static int read_pattern(struct rule_broker_reading *r, const struct node *n, const char *text,
                        struct slice rest, struct err *err)
{
    char full[PATTERN_MAX + 64];
    if (!sshsig_space_ok(rest))
        return node_fail(n, err,
                         "'%.200s': write ssh-agent://NAMESPACE, as ssh-agent://git for commits "
                         "and tags: at most %d letters, digits and \"_.-@+\"",
                         text, SSHSIG_NAMESPACE_MAX);
    snprintf(full, sizeof full, "ssh://" SSH_AGENT_HOST "/%.*s", SL(rest));
    return rule_broker_arm(r, n, full, text,
                           r->entry->deny ? METHODS_ANY : verb_bit(SLICE(SSH_AGENT_VERB)), err);
}

const struct rule_broker rule_ssh_agent = {
    .mark = SLICE_INIT("ssh-agent://"),
    .with = "ssh_signing_key",
    .kind = CREDENTIAL_SSH_SIGNING,
    .arms = 1,
    .terms = read_terms,
    .pattern = read_pattern,
};
