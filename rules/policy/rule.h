/* One rule as read from its mapping: what policy.h shows of it, and the requests it covers.
 * Internal to rules/. */
#ifndef DURWARD_RULE_H
#define DURWARD_RULE_H

#include "method.h"
#include "node.h"
#include "pattern.h"
#include "policy.h"

/* Methods of a deny rule that names none: the listed ones and every other token. */
#define METHODS_ANY (METHODS_ALL | VERBS_ALL | 1u << 31)

struct rule_arm {
    struct pattern pattern;
    uint32_t methods;
};

struct rule_entry {
    struct rule rule;
    bool deny;
    bool git, push;
    bool read_only;      /* access: read-only, which a wider rule does not lift */
    const char *where;   /* "FILE:LINE" */
    const char *json;    /* what was read; of one of an image NULL */
    unsigned credential; /* equal numbers: the same credential; 0: none */
    unsigned terms;      /* equal numbers: the same in all but patterns and methods */
    size_t n_arms;       /* a pattern of a list, or an endpoint of a git rule, is one arm */
    struct rule_arm *arms;
};

/* secrets: an object whose keys are the declared secrets, NULL: do not check. Everything that *ret
 * points to is the arena's; rule.index and credential are the caller's to set. */
int rule_read(struct arena *a, const struct node *n, const json_t *secrets, struct rule_entry *ret,
              struct err *err);

/* The keys of a rule, those of later milestones included. */
extern const struct key rule_keys[];
extern const size_t rule_n_keys;

/* Which kind of rule (POLICY_HOST_*) an allow or ask rule is (policy_open.c). */
unsigned policy_rule_kind(const struct rule *r);

/* `with`, set_headers and remove_headers (rule_credential.c). */
int rule_credential_read(struct arena *a, const struct node *with, const json_t *secrets,
                         const struct credential **ret, struct err *err);
/* `not_credentials`. After `with` (rule_not_credentials.c). */
int rule_not_credentials_read(struct arena *a, const struct node *rule, struct rule *ret,
                              struct err *err);
int rule_kube_read(struct arena *a, const struct node *rule, struct rule *ret,
                   struct err *err); /* `kubernetes` (rule_kube.c) */
/* Patterns of commands, which ssh_command_matches reads (rule_ssh.c). */
int rule_commands_read(struct arena *a, const struct node *n, const char *const **ret,
                       size_t *n_ret, struct err *err);
int rule_conditions_read(struct arena *a, const struct node *rule, struct rule *ret,
                         struct err *err); /* rule_condition.c */
int rule_to_read(struct arena *a, const struct node *rule, struct rule *ret,
                 struct err *err); /* rule_network.c */
int rule_tunnel_read(const struct node *rule, struct rule *ret, struct err *err);
/* A tunnel's pattern is one host over TLS, any path. */
int rule_tunnel_pattern(const struct node *n, const struct pattern *p, struct err *err);
/* What would be promised of a host that a tunnel hides (attack C26). Before the index is built. */
int rule_tunnels_check(struct rule_entry *const *rules, size_t n, struct err *err);
/* graphql, mcp, server_tools (rule_inspect.c). After the patterns. */
/* `refs` of a rule whose pushes a broker reads. */
int rule_refs_read(struct arena *a, const struct node *rule, struct rule_entry *ret,
                   struct err *err);
int rule_inspection_read(struct arena *a, const struct node *rule, struct rule_entry *ret,
                         struct err *err);
/* Some host of it is known to serve models. */
bool rule_names_model(const struct rule_entry *e);
/* "any": *any, and nothing else. */
int rule_server_tools_read(struct arena *a, const struct node *n, struct inspection *in, bool *any,
                           struct err *err);
/* `llm`, with the rule's `server_tools` (tools; NULL: not said) (rule_llm.c). */
int rule_llm_read(struct arena *a, const struct node *n, const struct node *tools,
                  const struct rule_entry *rule, struct inspection *in, struct err *err);
/* `mcp` (rule_mcp.c). */
int rule_mcp_read(struct arena *a, const struct node *n, const struct node *rule,
                  struct inspection *in, struct err *err);
/* A text or a list of them, at most 256 of at most 256 bytes: whole names; or none of them too; or
 * patterns. */
enum rule_words { RULE_WORDS = 0, RULE_WORDS_OR_NONE, RULE_WORDS_PATTERNS };
int rule_words_read(struct arena *a, const struct node *n, enum rule_words how,
                    struct word_list *ret, struct err *err);
/* `redact`, `refuse`. After `with` and `websocket` (rule_outward.c). */
int rule_outward_read(struct arena *a, const struct node *rule, struct rule_entry *ret,
                      struct err *err);
/* One or a list of detectors, or of their groups, added to ret. */
int rule_detectors_read(const struct node *n, uint32_t *ret, struct err *err);
/* `capture`. After `with` (rule_capture.c). */
int rule_capture_read(struct arena *a, const struct node *rule, const json_t *secrets,
                      struct rule *ret, struct err *err);
/* When all rules are read: which credentials are captured ones. */
int rule_captures_settle(struct arena *a, struct rule_entry *const *rules, size_t n,
                         const json_t *secrets, struct err *err);
/* The rule's credential is a captured one. */
void rule_capture_mark(struct arena *a, struct rule *r);
int rule_edits_read(struct arena *a, const struct node *rule, struct rule *ret, struct err *err);
/* What `with` holds beyond header fields (rule_place.c). */
int rule_place_read(struct arena *a, const struct node *with, const json_t *secrets,
                    struct credential *ret, struct err *err);
int rule_sign_read(struct arena *a, const struct node *with, const json_t *secrets,
                   struct credential *ret, struct err *err); /* those that sign (rule_sign.c) */
/* The value of `n` as a secret's name, declared and of a kind that a rule may send: `signs` says
 * whether it is to be one that only signs ("aws"; NULL: a value). */
int rule_secret_read(struct arena *a, const struct node *n, const json_t *secrets,
                     const char *signs, const char **ret, struct err *err);
int rule_secret_known(const struct node *n, const char *name, const json_t *secrets,
                      struct err *err);

#endif
