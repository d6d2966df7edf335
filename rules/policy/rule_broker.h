/* Rules of protocols that a broker carries: what reading them has in common, whatever the protocol.
 * Internal to rules/. */
#ifndef DURWARD_RULE_BROKER_H
#define DURWARD_RULE_BROKER_H

#include "rule.h"

struct rule_broker_reading {
    struct arena *arena;
    const struct node *rule;
    struct rule_entry *entry;
    void *terms;    /* what `terms` read, for `server` */
    uint32_t verbs; /* and of a pattern */
    uint32_t runs;  /* the same, of ssh:// without a path: exec, shell */
};

/* Whether a connection of theirs may show a certificate: beside a login, or also without one. */
enum rule_certificates { CERTIFICATE_NEVER = 0, CERTIFICATE_BESIDE, CERTIFICATE_ALONE };

struct rule_broker_with {
    const char *with;
    enum credential_kind kind;
};

struct rule_broker {
    struct slice mark;       /* "ssh://", with which its patterns begin */
    const char *const *keys; /* that only its rules have */
    size_t n_keys;
    const char *also; /* one that they have in common with HTTP, or NULL */
    const char *with; /* the key of its credential, and the kind */
    enum credential_kind kind;
    enum rule_certificates certificates;
    const struct rule_broker_with *others; /* that may stand in its place; or NULL */
    size_t n_others;
    size_t arms; /* of a pattern at most */
    int (*terms)(struct rule_broker_reading *r, struct err *err);
    /* rest: the pattern behind the mark */
    int (*pattern)(struct rule_broker_reading *r, const struct node *n, const char *text,
                   struct slice rest, struct err *err);
    int (*server)(struct rule_broker_reading *r, struct err *err); /* of `allow`; or NULL */
};

extern const struct rule_broker rule_ssh, rule_ssh_agent, rule_postgres, rule_redis, rule_rediss,
    rule_mysql, rule_smtp, rule_smtps, rule_imap, rule_imaps;

/* Whose patterns these are, or NULL. */
const struct rule_broker *rule_broker_of(const struct node *patterns);
/* The whole rule but its text. */
int rule_broker_read(const struct rule_broker *b, struct arena *a, const struct node *rule,
                     const struct node *patterns, const json_t *secrets, struct rule_entry *ret,
                     struct err *err);
/* An HTTP rule has none of their keys. After `with`. */
int rule_broker_absent(const struct node *rule, const struct rule *r, struct err *err);
/* One more arm of the entry: the whole pattern, and how it is shown. */
int rule_broker_arm(struct rule_broker_reading *r, const struct node *n, const char *pattern,
                    const char *shown, uint32_t verbs, struct err *err);
/* The same of a pattern that is at `port` where it names none. rest: behind the mark. */
int rule_broker_arm_at(struct rule_broker_reading *r, const struct node *n, const char *text,
                       struct slice rest, unsigned port, struct err *err);
/* A protocol of mail in two schemes: one that begins in clear and goes on in TLS, at its own port,
 * and one, with an `s` behind it, of TLS from the first byte at another. */
struct rule_broker_mail {
    const char *name;  /* "imap" */
    unsigned tls_port; /* of the second */
    const char *paths; /* what a path would have said: "mailboxes are 'folders'" */
};
/* The patterns of the first and of the second: no user, no path. */
int rule_broker_starttls(const struct rule_broker_mail *m, struct rule_broker_reading *r,
                         const struct node *n, const char *text, struct slice rest,
                         struct err *err);
int rule_broker_tls(const struct rule_broker_mail *m, struct rule_broker_reading *r,
                    const struct node *n, const char *text, struct slice rest, struct err *err);
/* Which of these words the list at `key` has, as bits in their order; all where there is no list.
 * At most 32 words, of a few letters. */
int rule_broker_words(const struct node *rule, const char *key, const char *const *words, size_t n,
                      unsigned *ret, struct err *err);
/* -1: the text is no such pattern; err says what one is. */
typedef int (*rule_pattern_check)(const struct node *item, const char *text, struct err *err);
/* The patterns of the list at `key`, 1 to most, into the arena; *ret is left alone where there is
 * no list. */
int rule_broker_patterns(struct arena *a, const struct node *rule, const char *key, size_t most,
                         rule_pattern_check check, const char *const **ret, size_t *n_ret,
                         struct err *err);

#endif
