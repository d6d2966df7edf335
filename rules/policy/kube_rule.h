/* What a request asks of a Kubernetes API server, read from method, path and query as the server
 * itself reads them (RequestInfo of k8s.io/apiserver), and what a rule's `kubernetes` allows of
 * that.
 *
 * What the server could read in another way is not read: a percent escape in what names the
 * resource, a query of a thousand parts. */
#ifndef DURWARD_KUBE_RULE_H
#define DURWARD_KUBE_RULE_H

#include "buf.h"
#include "policy.h"

enum {
    KUBE_ENTRIES_MAX = 64,
    KUBE_DISCOVERY = 0,
    KUBE_WORDS_MAX = 64,
    KUBE_WORD_MAX = 253,
    KUBE_COMMAND_MAX = 1024, /* of a command that is recorded */
};

enum kube_verb {
    KUBE_GET = 0,
    KUBE_LIST,
    KUBE_WATCH,
    KUBE_CREATE,
    KUBE_UPDATE,
    KUBE_PATCH,
    KUBE_DELETE,
    KUBE_DELETECOLLECTION,
    KUBE_VERBS,              /* those that an entry may have; never allowed are */
    KUBE_PROXY = KUBE_VERBS, /* one in the path, as clients of long ago wrote it */
    KUBE_OTHER,              /* of a method that the server knows no verb for */
};

struct kube_facts {
    bool is_resource; /* else `path` is all there is */
    enum kube_verb verb;
    struct slice path, query;
    struct slice group, resource, subresource, space, name; /* n 0: there is none */
    char selected[KUBE_WORD_MAX + 1]; /* the name of a list, where its field selector says it */
};

/* RESOURCE[.GROUP][/SUBRESOURCE], each of which may be "*". */
struct kube_resource {
    const char *resource, *group, *subresource; /* "": none */
};

struct kube_entry {
    uint32_t verbs; /* 1 << enum kube_verb */
    const struct kube_resource *resources;
    size_t n_resources;
    const char *const *spaces, *const *names; /* patterns; n 0: any, or none */
    size_t n_spaces, n_names;
    const char *const *commands; /* of an exec, patterns as those of ssh:// (ssh_rule.h) */
    size_t n_commands;           /* 0: any */
};

struct kube_terms {
    const struct kube_entry *entries;
    size_t n_entries;
};

const char *kube_verb_name(enum kube_verb v);
/* 0, or -1: it cannot be read with certainty. path is one that path_check passed; what is read lies
 * in path, query and ret. */
int kube_read(struct slice method, struct slice path, struct slice query,
              struct kube_facts *ret) WUNUSED;
/* '*' is any part of a name. */
bool kube_matches(const char *pattern, struct slice name);
/* The number of the entry that allows it, from 1; KUBE_DISCOVERY: none has to; -1: none does. */
int kube_decide(const struct kube_terms *t, const struct kube_facts *f) WUNUSED;
/* Whether the server makes what is patched or updated where it is not there. It asks for the verb
 * `create` then, as well. type: the request's content type, n 0: none, or several. */
bool kube_may_make(const struct kube_facts *f, struct slice type);
/* What makes a stream into a pod, for which the rule needs `websocket`. */
bool kube_streams(const struct kube_entry *e);
/* Resources that are made, by names, which they do not have yet: it lets nothing be made. */
bool kube_names_new(const struct kube_entry *e);
/* "create pods/exec team-a/web-1", "list deployments.apps ": for people. Nothing where no resource
 * is named. */
int kube_text(const struct kube_facts *f, struct buf *to);
/* The command that an exec asks for: its words with blanks between, in quotes where they need them.
 * Nothing is appended where there is none; what is too long ends in KUBE_COMMAND_CUT, as no word
 * does. */
#define KUBE_COMMAND_CUT "\\..."
void kube_command(const struct kube_facts *f, struct buf *to);

#endif
