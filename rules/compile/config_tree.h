/* What a configuration holds, and the parts of its reader. Internal to rules/. */
#ifndef DURWARD_CONFIG_TREE_H
#define DURWARD_CONFIG_TREE_H

#include "arena.h"
#include "buf.h"
#include "config.h"
#include "derived_spec.h"
#include "node.h"
#include "policy_build.h"

/* What one role is told of in its first message has to fit into it (lib/ipc_msg.h). */
enum {
    CONFIG_ENTRIES_MAX = 4096,         /* policies */
    CONFIG_RESOLVES_MAX = 1024,        /* resolved names */
    CONFIG_RESOLVES_BYTES = 64 * 1024, /* and what they and their addresses take together */
    CONFIG_DIRECT_BYTES = 16 * 1024,   /* no_proxy */
    CONFIG_SECRETS_BYTES = 80 * 1024,  /* what the vault is told of secrets */
    CONFIG_ENTRY_BYTES = 32,           /* beside the texts of an entry */
};

/* Where we send to by ourselves. */
struct config_place {
    const char *url; /* NULL: not there */
    json_t *to;      /* ranges of addresses, as in a rule; borrowed from the tree; NULL: none */
};

struct config_policy {
    const char *name;
    const char *where;
    struct config_env *env;
    size_t n_env;
    struct config_sandbox sandbox;
    json_t *rules;             /* presets expanded; owned */
    json_t *budget, *identity; /* as written; borrowed; NULL: none */
    struct policy *compiled;
    const char **secrets, **git_hosts, **ssh_hosts; /* NULL-terminated */
    size_t n_secrets, n_git_hosts, n_ssh_hosts;
    const char **broker_secrets[SCHEME_ENDS]; /* of brokers' rules, by scheme */
    size_t n_broker_secrets[SCHEME_ENDS];
};

enum { CONFIG_LEVELS = 4 }; /* roles that take steps of requests */

struct config {
    unsigned refs;
    struct arena *arena;
    struct source source; /* lines owned */
    const char *base;     /* directory of relative paths; NULL: only absolute ones */
    json_t *root;         /* owned; file names in it are absolute */
    json_t *found;        /* owned; see config_found; NULL: nothing was looked for */
    json_t *prices;       /* as written; borrowed; NULL: none */
    struct config_secret *secrets;
    struct config_policy *policies;
    struct config_listen *listens;
    struct config_resolve *resolves;
    struct config_proxy *proxy; /* NULL: none */
    const char **no_proxy;
    const char **upstream_ca; /* NULL-terminated */
    size_t n_secrets, n_policies, n_listens, n_resolves, n_no_proxy;
    struct limits limits;
    unsigned injectors; /* of a policy at most; 0: not said */
    const char *ca_dir, *ca_cert, *ca_key, *socket, *state, *audit_dir, *metrics, *console;
    struct config_listen api;      /* of `controller`; address NULL: none */
    struct config_preview preview; /* likewise */
    struct config_audit audit;
    struct config_place places[EXPORTER_PLACES];
    struct config_mcp_server *mcp;
    size_t n_mcp;
    struct config_template *templates;
    size_t n_templates;
    struct config_node *node;       /* NULL: none */
    struct config_cluster *cluster; /* NULL: none */
    struct config_fleet *fleet;     /* NULL: none */
    bool debugs[CONFIG_LEVELS];     /* log_level: debug, by the words of config_read_levels */
};

/* Reads the whole tree; takes root and lines (lines may be NULL) in either case. */
struct config *config_build(const char *name, const char *base, json_t *root, json_t *lines,
                            struct err *err);
/* The text of a file ("-": standard input) in *b, and the directory of its relative paths; both are
 * freed by the caller in any case. The name that errors give it, or NULL. */
const char *config_text(const char *path, struct buf *b, char **base, struct err *err);
/* All that comes of fd, into b (at most its bound). */
int config_read_all(int fd, const char *name, struct buf *b, struct err *err);
/* config_load.c: the hosts of presets that have none of their own, from the configuration of
 * package managers on this host, into `preset_hosts`; *found (an object) gets what config_found
 * tells. */
int config_fill_hosts(json_t *root, json_t *found, struct err *err);
/* config_objects.c: a cluster's policies and namespaces, into the tree; lines get what their errors
 * are called by. */
int config_add_objects(json_t *root, json_t *lines, const json_t *objects, struct err *err);
/* Those of the file that node.objects names, if it names one. */
int config_read_objects(json_t *root, json_t *lines, struct err *err);
/* A file name made absolute, in the tree too. */
int config_file(struct config *c, const struct node *n, const char **ret, struct err *err);

bool config_env_name_ok(const char *s); /* of an environment variable */

/* config_store.c: the one store that a secret is read from. */
int config_read_store(struct config *c, const struct node *n, struct config_secret *s,
                      struct err *err);

/* config_mint.c: is this declaration of a secret one that is made of others; read it; mark what
 * such secrets are made of, once all are read. */
bool config_is_minted(const json_t *declared);
int config_read_mint(struct config *c, const struct node *n, struct config_secret *s,
                     struct err *err);
void config_mark_keys(struct config *c);
/* Such a secret is kept behind an endpoint (and not a token of it). */
bool config_is_remote(const struct config_secret *s);

/* One section each; the node is present. */
int config_read_levels(struct config *c, const struct node *n, struct err *err);
int config_read_secrets(struct config *c, const struct node *n, struct err *err);
int config_read_node(struct config *c, const struct node *n, struct err *err);
int config_read_cluster(struct config *c, const struct node *n, struct err *err);
int config_read_fleet(struct config *c, const struct node *n, struct err *err);
int config_read_fleet_logs(struct config *c, const struct node *n, struct config_fleet_logs *f,
                           struct err *err);
/* Is there one, where budgets are the fleet's? */
int config_check_fleet(const struct config *c, const struct node *root, struct err *err);
/* Is there one, where a policy's sandboxes are its pods? */
int config_check_cluster(const struct config *c, const struct node *root, struct err *err);
/* device_specs.c: what this host's specifications say of policies' `devices`, in their place. */
int config_fill_devices(json_t *root, json_t *lines, const char *name, struct err *err);
/* config_devices.c: a policy's `devices`, as that has left them. */
int config_read_devices(const struct node *sandbox, struct config_sandbox *s, struct err *err);
int config_read_mcp(struct config *c, const struct node *n, struct err *err);
int config_read_templates(struct config *c, const struct node *n, struct err *err);
int config_read_policies(struct config *c, const struct node *n, struct err *err);
int config_read_upstream(struct config *c, const struct node *n, struct err *err);
/* config_forwarded.c: what `forwarded` of a listener says. */
int config_read_forwarded(struct config *c, const struct node *n, struct config_listen *l,
                          struct err *err);
int config_read_listen(struct config *c, const struct node *n, struct err *err);
/* `https` and `name` of `controller` */
int config_read_api(struct config *c, const struct node *n, struct err *err);
/* Its `preview` and `preview_url`, after `name`. */
int config_read_preview(struct config *c, const struct node *n, struct err *err);
int config_read_audit(struct config *c, const struct node *n, struct err *err);
/* config_notify.c: what `notify` of `audit` says; a place: a URL, or { url, to }. */
int config_read_notify(struct config *c, const struct node *n, struct err *err);
int config_read_place(struct config *c, const struct node *n, enum exporter_place p,
                      struct err *err);
int config_read_tracing(struct config *c, const struct node *n, struct err *err);
/* audit.*.syslog: *ret is the path of its socket, /dev/log for true, NULL for false. */
int config_read_syslog(struct config *c, const struct node *n, const char **ret, struct err *err);
/* config_command.c: a program and its arguments, ended by NULL. What its first word is: a file of
 * this host; one of the PATH where it has no slash; something inside a sandbox. */
enum config_program { CONFIG_PROGRAM_FILE, CONFIG_PROGRAM_PATH, CONFIG_PROGRAM_INSIDE };
int config_read_command(struct config *c, const struct node *n, enum config_program program,
                        const char *const **ret, struct err *err);
int config_read_ca(struct config *c, const struct node *n, struct err *err);
int config_read_controller(struct config *c, const struct node *n, struct err *err);
int config_read_sandbox(const struct node *n, struct config_sandbox *s, struct err *err);
/* config_service.c: its services. */
int config_read_services(const struct node *n, struct config_sandbox *s, struct err *err);
/* Its image, volumes and times alone, over what *s has. */
int config_read_life(const struct node *n, struct config_sandbox *s, struct err *err);
void limits_default(struct limits *l);
void config_audit_default(struct config_audit *a);
int limits_read(struct limits *l, const struct node *n, struct err *err);

struct config_policy *config_policy_find(const struct config *c, const char *name);
/* The policy that a node names. */
int config_policy_named(const struct config *c, const struct node *n,
                        const struct config_policy **ret, struct err *err);

/* preset.c: the rules of a preset, with the secret's name filled in, for these hosts (as in
 * `preset_hosts`; NULL: its own). New reference or NULL when there is no such preset. */
json_t *preset_rules(const char *name, const char *secret, const json_t *hosts, bool read_only);
/* In what was read of a preset or profile: the secret's name wherever its mark stands. */
void preset_fill(json_t *v, const char *secret);
/* `preset_hosts` of a preset that there is; hosts NULL: it is not given. */
int preset_hosts_check(const char *name, const struct node *use, const struct node *hosts,
                       struct err *err);
/* Those of them that send the secret to this host; NULL when no preset knows the host. */
json_t *preset_rules_for_host(const char *host, const char *secret);
const char *preset_kind(const char *name); /* "github-pat", or ""; NULL: no such preset */
/* Of a preset that there is: the first role of `hosts`. */
void preset_first_role(const char *name, char to[PRESET_WORD_MAX]);
bool preset_takes_secret(const char *name);
enum { SECRET_KINDS = 4 };
extern const char *const secret_kinds[SECRET_KINDS];

/* The value of this field of this kind of made secret, which is one of some words. */
int config_mint_word(const struct node *n, enum derived_kind kind, enum spec_field field,
                     const char **ret, struct err *err);

/* key_id and account of a key that signs: they go into a header. */
int config_mint_key_ok(const struct node *n, const struct derived_spec *spec, struct err *err);
int config_mint_claims_ok(const struct node *n, const struct derived_spec *spec, struct err *err);
/* What a certificate of SSH says; of another kind: 0. */
int config_mint_certificate_ok(const struct node *n, const struct derived_spec *spec,
                               struct err *err);

#endif
