/* Rules of ssh://: what is asked of an SSH server, and the decision about it. Front and back of the
 * broker both decide, by this one function, from what each knows by itself.
 *
 * A request is a path to the engine whose first segment is the user: /USER/acme/app.git for a
 * repository, /USER for a command. So one site holds the rules of a host, whoever logs in there. */
#ifndef DURWARD_SSH_RULE_H
#define DURWARD_SSH_RULE_H

#include "policy.h"
#include "ssh_files.h"
#include "ssh_target.h"

/* Behind sftp three are git's, too: `git archive --remote`, and git-lfs' objects each way. To the
 * rules the first two are fetches, the last is a push. A forward is "connect" to them. */
enum ssh_verb {
    SSH_FETCH = 1,
    SSH_PUSH,
    SSH_EXEC,
    SSH_SHELL,
    SSH_SFTP,
    SSH_ARCHIVE,
    SSH_LFS_FETCH,
    SSH_LFS_PUSH,
    SSH_FORWARD, /* the server makes a connection, of which we carry the bytes */
    SSH_VERBS
};

enum {
    SSH_USER_MAX = 64,
    SSH_TEXT_MAX = 1024, /* of a command, or of a repository's path */
    SSH_COMMANDS_MAX = 64,
    SSH_PATTERN_MAX = 256,
    SSH_KEYS_MAX = 16,
    SSH_BLOB_MAX = 1400, /* of a public key in base64: RSA of 8192 bits */
};

/* A public key of a server, as known_hosts has it. */
struct ssh_host_key {
    const char *type; /* "ssh-ed25519" */
    const char *blob; /* base64 */
};

/* The agent inside a sandbox is no server: it is reached at port 22 of the gate itself, and its
 * rules are those of ssh-agent://NAMESPACE, which are ssh://SSH_AGENT_HOST/NAMESPACE to the engine.
 */
#define SSH_AGENT_HOST "gate.durward.internal"
#define SSH_AGENT_VERB "sign"

struct ssh_terms {
    const char *const *commands; /* patterns: '*' is one word's part */
    size_t n_commands;
    bool shell;                      /* which runs any command, so any may be asked for */
    bool terminal;                   /* a command may have one */
    bool record_typed;               /* what is typed is in its recording, too */
    uint64_t record_bytes;           /* of a recording, at most; 0: there is none */
    uint32_t record_redact;          /* detectors whose finds are made unreadable in it */
    const struct ssh_host_key *keys; /* the only ones that the server may have */
    size_t n_keys;
    struct ssh_files files;           /* over SFTP */
    const struct ssh_target *targets; /* that it may connect to */
    size_t n_targets;
    bool signs; /* of ssh-agent://; then there is nothing of the above */
};

struct ssh_asked {
    struct slice user;
    enum ssh_verb verb;
    struct slice text; /* of git: the repository, "/acme/app.git" or "~/app"; exec: the
                        * command; shell, sftp: ""; forward: "db.internal:5432" */
    bool terminal;     /* on one: pagers and editors give a shell there */
};

const char *ssh_verb_name(enum ssh_verb v); /* "fetch", of several verbs */
/* A login name that is sent as it is: letters, digits, "_", ".", "-"; not "-" first. */
bool ssh_user_ok(struct slice user);
/* The keys that hosts known to everybody publish; how many, 0: it is none of them. */
size_t ssh_known_host(const char *host, const struct ssh_host_key **ret);
/* Does the command match? '*' stands for one byte or more of letters, digits and "_.:=@%+,-", but
 * begins no word, quoted or not, with "-"; ".." matches only where the pattern has it. */
bool ssh_command_matches(const char *pattern, struct slice command);
/* Codes beside the engine's: "command" where no pattern matches it, "ssh_user", "ssh_path",
 * "ssh_terminal" where there may be none, "ssh_forwarding" where no rule of that user's has
 * targets, "ssh_target" where it has others. Which files of sftp: ssh_files.h. */
void policy_ssh_decide(const struct policy *p, const struct authority *a,
                       const struct ssh_asked *asked, struct decision *ret);
/* May the agent at SSH_AGENT_HOST sign in this namespace? The engine's codes, and
 * "ssh_agent_namespace" where it is none. */
void policy_ssh_decide_signature(const struct policy *p, const struct authority *a,
                                 struct slice space, struct decision *ret);

#endif
