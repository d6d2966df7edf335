/* The configuration: YAML 1.2 core (libyaml) into jansson values, checked whole, immutable.
 * See doc/durward.yaml.5.md for the keys. Errors read "FILE:LINE: what; hint". */
#ifndef DURWARD_CONFIG_H
#define DURWARD_CONFIG_H

#include <jansson.h>

#include "authority.h"
#include "err.h"
#include "policy.h"
#include "request_limits.h"

struct config;
struct derived_spec;
struct login_use;
struct profile;

/* MINT: made of other secrets by the vault: a token of an endpoint, or a pair that it signs with.
 * LOGIN: a part of a file that another program keeps its login in; to the vault it is a FILE. */
enum store_kind { STORE_ENV = 1, STORE_FILE, STORE_COMMAND, STORE_MINT, STORE_LOGIN, STORE_AGENT };

/* LOGIN: what of a login file of another program (rules/compile/login.h). */
struct config_login {
    const char *format;
    const char *entry; /* "": the file is one */
    const char *part;  /* a secret of the format; "session": all that a refresh needs */
};

struct config_secret {
    const char *name;
    enum store_kind store;
    const char *source;         /* variable name or path; "" of one that is made; AGENT: the key,
                                 * "SHA256:..." or "TYPE BASE64", */
    const char *socket;         /* where its agent listens; NULL: $SSH_AUTH_SOCK says */
    const char *folder;         /* FILE: the variable with the directory of source; NULL: a path */
    const char *const *command; /* STORE_COMMAND: argv, NULL-terminated */
    const struct config_login *login; /* STORE_LOGIN; else NULL */
    const char *kind; /* "github-pat", "openai", … shapes the placeholder; "" if none */
    unsigned ttl;     /* seconds a value may be kept; 0: read again each time asked */
    const struct derived_spec *derived; /* MINT: what it is made of; else NULL */
    const char *endpoint;               /* MINT: the URL it comes from; NULL: none */
    bool lines;                         /* a key of another secret: several lines, and never sent */
    bool hidden; /* a login of stores behind an endpoint: declared by them, named by nobody */
    bool used;   /* another secret is made of it */
};

enum listen_kind { LISTEN_HTTP = 1, LISTEN_HTTPS };

/* A provider that sends its sandboxes' requests on to the listener. */
struct config_forwarded {
    const char *url;     /* what it was told to send to; no slash at its end */
    const char *issuer;  /* of its tokens */
    const char *team;    /* whose sandboxes these are */
    const char *project; /* NULL: any of the team's */
    const char *keys;    /* path of its key set (RFC 7517) */
};

struct config_listen {
    enum listen_kind kind;
    const char *address;    /* "127.0.0.1:3128" */
    const char *name;       /* LISTEN_HTTPS: what its certificate is for, canonical */
    const char *reached_at; /* what clients are told: the name, else the address; and the port */
    bool local;             /* reached_at is of this host only */
    const char *policy;     /* NULL: needs a sandbox's token */
    bool insecure;
    const struct config_forwarded *forwarded; /* NULL: a proxy */
};

/* upstream.resolve: host[:port] → a fixed address, exempt from the private-address guard. */
struct config_resolve {
    const char *host; /* canonical; a leading dot is any subdomain */
    uint16_t port;
    const char *address; /* "127.0.0.1:8443" or "[::1]:8443" */
};

/* upstream.proxy */
struct config_proxy {
    enum scheme scheme;
    const char *host; /* canonical; IPv6 without brackets */
    uint16_t port;
    const char *user, *password; /* the name of a secret; both or neither (NULL) */
};

enum audit_durability { AUDIT_WRITTEN = 0, AUDIT_SYNCED };

/* audit.notify.when: what is summed up for each sandbox, as `durward audit exfil` names it. */
enum notify_measure {
    NOTIFY_BYTES_UP = 1,
    NOTIFY_HOSTS, /* distinct ones that a request named */
    NOTIFY_DENIED,
    NOTIFY_NAMES,   /* refused names */
    NOTIFY_PACKETS, /* refused packets */
    NOTIFY_FOREIGN, /* credentials that are not the sandbox's */
    NOTIFY_CROSS,   /* placeholders of another sandbox */
    NOTIFY_MISPLACED,
    NOTIFY_REFLECTED, /* secrets that came back */
    NOTIFY_LOG_BYTES, /* of the log */
    NOTIFY_MEASURES
};

enum notify_then { NOTIFY_ONLY = 0, NOTIFY_PAUSE, NOTIFY_KILL };

enum { NOTIFY_MAX = 16, NOTIFY_HOSTS_MAX = 1000 };

struct config_threshold {
    enum notify_measure measure;
    uint64_t limit;   /* reached by so many within */
    unsigned seconds; /* this time; 10 or more */
    enum notify_then then;
};

/* Where the exporter may send to. */
enum exporter_place {
    EXPORTER_WEBHOOK = 0,
    EXPORTER_ANCHOR,
    EXPORTER_LOGS,
    EXPORTER_TRACES,
    EXPORTER_PLACES
};

struct config_notify {
    struct config_threshold when[NOTIFY_MAX];
    size_t n;
    const char *const *command; /* argv; NULL: none. One notice a run, as JSON on stdin */
    const char *syslog;         /* a socket's path; NULL: none */
};

struct config_audit {
    enum audit_durability durability;
    uint64_t rotate_bytes, rotate_seconds; /* a new file past this size, or age (0: any) */
    bool compress;                         /* rotated files, with zstd */
    uint64_t keep_bytes, keep_seconds;     /* rotated files beyond are removed; 0: never */
    uint64_t share_burst, share_rate;      /* of the log, each sandbox: bytes at once, a second */
    const char *const *anchor_command;     /* argv; NULL: none. A checkpoint a run, on stdin */
    const char *anchor_syslog;             /* a socket's path; NULL: none */
    struct config_notify notify;
};

enum { CONFIG_SECRETS_MAX = 512 }; /* and the logins of their stores */

enum { CONFIG_PIDS = 4096 }; /* processes and threads of a sandbox when nothing is said */

enum { CONFIG_SOCKET_MAX = 107, CONFIG_ENGINE_IMAGE_MAX = 255 };

/* What makes the local sandboxes. */
enum config_backend {
    BACKEND_BWRAP = 0,
    BACKEND_DOCKER,
    BACKEND_GVISOR,
    BACKEND_KUBERNETES,
    BACKEND_MICROVM,
    BACKENDS,    /* those before it are named by policies and users */
    BACKEND_POD, /* somebody else makes it; ours are its listeners alone */
    BACKENDS_ALL
};

/* A container engine that speaks the Docker Engine API. */
struct config_docker {
    char socket[CONFIG_SOCKET_MAX + 1];      /* its unix socket, absolute */
    char image[CONFIG_ENGINE_IMAGE_MAX + 1]; /* one that it has; "" for none */
    bool given;                              /* the policy names this backend, or its keys */
};

/* Pods of the cluster that `cluster` names. */
enum { CONFIG_NAMESPACE_MAX = 63 };
struct config_kubernetes {
    char ns[CONFIG_NAMESPACE_MAX + 1];       /* where they are made */
    char image[CONFIG_ENGINE_IMAGE_MAX + 1]; /* "" for none */
    bool given;                              /* the policy names this backend, or its keys */
};

#define CONFIG_DOCKER_SOCKET "/run/docker.sock"

/* What the end of a sandbox's idle time is. */
enum config_idle { IDLE_DELETE, IDLE_PAUSE, IDLE_STOP, IDLE_KINDS };

enum {
    CONFIG_IMAGE_MAX = 64,      /* bytes of an imported image's name */
    CONFIG_TTL = 86400,         /* seconds that a sandbox of the daemon lives */
    CONFIG_IDLE_TTL = 3600,     /* and without a use */
    CONFIG_TTL_MAX = 30 * 86400 /* of both */
};

/* A program in the sandbox that listens, by name. */
enum { CONFIG_SERVICES_MAX = 16, CONFIG_SERVICE_NAME_MAX = 31, CONFIG_SERVICE_PATH_MAX = 127 };
struct config_service {
    char name[CONFIG_SERVICE_NAME_MAX + 1];
    uint16_t port;                            /* inside */
    char health[CONFIG_SERVICE_PATH_MAX + 1]; /* the path of a GET; "": that it listens */
};

/* `controller.preview`: where HTTP to services of sandboxes is taken, and how browsers see it. */
struct config_preview {
    const char *address;
    struct authority at; /* the domain: sandboxes' names are below it */
};

enum { CONFIG_VOLUMES_MAX = 8, CONFIG_VOLUME_PATH_MAX = 255, CONFIG_VOLUME_MAX = 330 };

/* What a local sandbox may use. 0: not limited. */
struct config_sandbox {
    uint64_t memory; /* bytes */
    uint64_t disk;   /* bytes of files it can write outside of binds */
    unsigned pids;   /* processes and threads */
    unsigned cpu;    /* percent of one processor */
    unsigned files;  /* open files of a process */
    bool writable;   /* its root can be written, in a layer of its own */
    bool nested;     /* its programs may make namespaces and mounts: containers inside */
    enum config_backend backend;
    struct config_docker docker; /* also of a policy whose backend is another: for --backend */
    struct config_kubernetes kubernetes; /* likewise */
    /* of the daemon's, where whoever makes one does not say it: */
    char image[CONFIG_IMAGE_MAX + 1]; /* for bwrap, an imported one; "": the host's /usr */
    unsigned ttl, idle_ttl, soft_ttl; /* seconds; idle_ttl, soft_ttl 0: never */
    enum config_idle on_idle;
    enum config_idle on_soft;                                /* IDLE_STOP or IDLE_PAUSE */
    char volumes[CONFIG_VOLUMES_MAX][CONFIG_VOLUME_MAX + 1]; /* NAME:/path[:ro], for bwrap */
    unsigned n_volumes;
    bool previews;          /* they may be seen from outside */
    uint32_t redact_output; /* detectors (DETECT_BIT) of what the API gives of them */
    struct config_service services[CONFIG_SERVICES_MAX];
    unsigned n_services;
    const json_t *devices; /* config_devices.c; of the configuration's tree; NULL: none */
};

/* Where nothing is said. */
#define CONFIG_SANDBOX_DEFAULT                                                         \
    {                                                                                  \
        .pids = CONFIG_PIDS, .docker.socket = CONFIG_DOCKER_SOCKET, .ttl = CONFIG_TTL, \
        .idle_ttl = CONFIG_IDLE_TTL, .on_soft = IDLE_STOP                              \
    }

struct config_env {
    const char *name;
    const char *value; /* text with "{{placeholder NAME}}" still inside */
};

/* `mcp_servers`: programs that speak MCP over their standard input and output, each in a sandbox of
 * its own. */
enum { CONFIG_MCP_FILES_MAX = 32, CONFIG_MCP_PATH_MAX = 4096 };

struct config_mcp_file {
    const char *path, *at; /* of the host, inside */
    bool writable;
};

struct config_mcp_server {
    const char *name;
    const char *policy;         /* its own */
    const char *const *command; /* argv, NULL-terminated */
    const char *image;          /* "host": its /usr */
    const struct config_mcp_file *files;
    size_t n_files;
    unsigned idle; /* seconds without a use until it is ended */
};

/* `templates`: kinds of sandboxes of the daemon, by name; of some a pool is kept ready. */
enum {
    CONFIG_TEMPLATES_MAX = 256,
    CONFIG_TEMPLATE_NAME_MAX = 63,
    CONFIG_TEMPLATE_PORTS_MAX = 16,
    CONFIG_POOL_MAX = 256,  /* of one template */
    CONFIG_POOLED_MAX = 512 /* of all together */
};

struct config_template {
    const char *name;   /* [a-z0-9-]{1,63} */
    const char *policy; /* of the configuration */
    struct config_sandbox
        sandbox;                /* the policy's, with its own image and times; volumes: its own */
    const char *const *warm_up; /* argv, NULL-terminated; NULL: none */
    unsigned warm_up_timeout;   /* seconds */
    const char *snapshot;       /* NULL: none */
    json_t *labels, *env;       /* objects of texts; NULL: none */
    uint16_t ports[CONFIG_TEMPLATE_PORTS_MAX];
    unsigned n_ports;
    unsigned pool;
};

/* `node`: the pods of a Kubernetes node. */
enum {
    CONFIG_NODE_RANGES_MAX = 64,
    CONFIG_NODE_NAMESPACES_MAX = 1024,
    CONFIG_NODE_BINDINGS_MAX = 256, /* of a namespace */
    CONFIG_NODE_LABELS_MAX = 16,    /* of a binding */
    CONFIG_NODE_ACCOUNTS_MAX = 64,
};

/* Pods of a namespace that have all of these labels, and one of these service accounts. */
struct config_node_binding {
    const char *policy;
    const json_t *labels;        /* an object of texts; NULL: whatever they are */
    const char *const *accounts; /* n_accounts 0: whichever it is */
    size_t n_accounts;
};

struct config_node_namespace {
    const char *name;
    bool unbound;       /* its pods are left as they are */
    const char *policy; /* of pods that none of the bindings is of; NULL: they do not start */
    struct config_node_binding *bindings;
    size_t n_bindings;
};

/* What the API server says of a pod. */
struct config_node_pod {
    const char *account;  /* NULL: nobody asked */
    const json_t *labels; /* an object of texts */
};

enum config_node_choice {
    CONFIG_NODE_BOUND,
    CONFIG_NODE_UNBOUND,   /* left as it is */
    CONFIG_NODE_NONE,      /* there is no policy for it */
    CONFIG_NODE_UNKNOWN,   /* it is decided by labels or account, and nobody asked for them */
    CONFIG_NODE_AMBIGUOUS, /* bindings of several policies are of it: two[] of them */
};

struct config_fleet_log {
    const char *name;
    unsigned char key[32]; /* the public one */
};

/* `fleet.logs`: whose audit logs are held against one another. */
struct config_fleet_logs {
    const char *host; /* which of these is ours; NULL: there are none */
    const struct config_fleet_log *all;
    size_t n;
    unsigned every, silent; /* seconds */
};

struct config_node {
    const char *socket, *netns, *kubelet; /* paths */
    const char *objects; /* path of a cluster's policies and namespaces; NULL: none */
    struct config_node_namespace *namespaces;
    size_t n_namespaces;
    const char *const *inbound; /* IPv4 ranges */
    size_t n_inbound;
};

/* Another host of the fleet, whose people's answers count here. */
enum { FLEET_HOSTS_MAX = 64, FLEET_KEY = 32, FLEET_NAME_MAX = 64 };
struct config_fleet_host {
    const char *name;
    unsigned char key[FLEET_KEY]; /* Ed25519 */
};

/* `fleet`: the database by which hosts share budgets, revocations and approvals, and how long one
 * that is cut off goes on. */
struct config_fleet {
    const char *url, *database, *login; /* database: within url; login: a secret's name */
    struct config_fleet_logs logs;
    struct authority at;
    json_t *to;    /* ranges of addresses, as in a rule; borrowed from the tree; NULL: none */
    unsigned hold; /* seconds */
    unsigned revocations; /* the same: tokens are taken so long after the last look */
    struct config_fleet_host *hosts;
    size_t n_hosts;
};

/* `cluster`: where pods of `backend: kubernetes` are made, and as whom. */
struct config_cluster {
    const char *api;        /* HOST[:PORT] */
    const char *ca, *token; /* files */
    const char *image;      /* Durward's own, which has durward-init */
};

/* path "-" reads standard input. Relative paths inside are relative to the file. */
struct config *config_load(const char *path, struct err *err);
/* The same, but each error is told, not the first alone: those that follow from another are not.
 * NULL where there is any. Lines of what it gives are for errors of config_check alone. */
struct config *config_check(const char *path, void (*fn)(void *arg, const char *text), void *arg);
struct config *config_parse(struct slice text, const char *name, struct err *err);
/* The same with these objects, in place of what node.objects names: { policies: { NAME: POLICY },
 * namespaces: { NAME: POLICY'S NAME or bindings } }. */
struct config *config_parse_with(struct slice text, const char *name, const json_t *objects,
                                 struct err *err);
/* What such a file holds, a new reference; an empty object where there is no file. NULL with err.
 */
json_t *config_load_objects(const char *path, struct err *err);
/* From the canonical JSON of config_json(). */
struct config *config_from_json(const char *json, size_t n, struct err *err);
/* The whole configuration as JSON, presets not expanded. malloc'd. */
char *config_json(const struct config *c);
/* What the configuration of package managers on this host said, for presets that take their hosts
 * from it: { PRESET: { "file": PATH below a home, "text": TEXT for it, "files": [NAME of what was
 * read], "notes": [TEXT], "policies": { NAME: true } } }. NULL: no such preset is used, or this is
 * not the one that was read from a file. Borrowed. */
const json_t *config_found(const struct config *c);
struct config *config_ref(struct config *c);
void config_unref(struct config *c);
/* $DURWARD_CONFIG, $XDG_CONFIG_HOME/durward/durward.yaml (or ~/.config/…),
 * /etc/durward/durward.yaml: the first that exists, malloc'd; NULL with err when none does. Never
 * the current directory. */
char *config_find(struct err *err);

const struct config_secret *config_secrets(const struct config *c, size_t *n);
const struct config_secret *config_secret(const struct config *c, const char *name);
const struct config_listen *config_listens(const struct config *c, size_t *n);
/* Of `listen`: where the controller answers /metrics and the console; NULL: nowhere. */
const char *config_metrics(const struct config *c);
const char *config_console(const struct config *c);
/* Of `controller`: where the API is served over TLS, and by what name; NULL: nowhere. */
const struct config_listen *config_api(const struct config *c);
/* NULL: there is no such listener. */
const struct config_preview *config_preview(const struct config *c);
/* This section of the two says the same. */
bool config_same(const struct config *a, const struct config *b, const char *section);
const struct config_resolve *config_resolves(const struct config *c, size_t *n);
const struct config_mcp_server *config_mcp_servers(const struct config *c, size_t *n);
const struct config_mcp_server *config_mcp_server(const struct config *c, const char *name);
const struct config_template *config_templates(const struct config *c, size_t *n);
const struct config_template *config_template(const struct config *c, const char *name);
/* NULL: this daemon has no node's pods. */
const struct config_node *config_node(const struct config *c);
/* Is all of `node` the same but for its namespaces? */
bool config_namespace_ok(const char *s); /* the name of a cluster's namespace */
bool config_node_same(const struct config *a, const struct config *b);
/* NULL: nothing is said of this namespace, so that its pods do not start. */
const struct config_node_namespace *config_node_namespace(const struct config *c, const char *name);
/* Which policy a pod of this namespace (NULL: as above) has: two[0], where it has one. */
enum config_node_choice config_node_choose(const struct config_node_namespace *n,
                                           const struct config_node_pod *pod, const char *two[2]);
/* A rule of this policy names that server. */
bool config_mcp_allowed(const struct config *c, const char *policy, const char *name);
const struct config_proxy *config_upstream_proxy(const struct config *c); /* NULL: none */
/* upstream.no_proxy: canonical host, ".host" for what is under it, address, or range. */
const char *const *config_no_proxy(const struct config *c, size_t *n);
const struct limits *config_limits(const struct config *c);
/* How many injectors a policy may have: several only where no value of its secrets can ever be
 * another one, and none is captured, so that each knows by itself all that a reply has to be
 * searched for. */
enum { CONFIG_INJECTORS_MAX = 16 };
unsigned config_policy_injectors(const struct config *c, const char *policy);
/* `log_level: debug` for the role of this name. c may be NULL. */
bool config_debugs(const struct config *c, const char *role);
size_t config_policies(const struct config *c);
const char *config_policy_name(const struct config *c, size_t i);
/* JSON text of one policy with presets expanded: what policy_parse reads. malloc'd; NULL if there
 * is no such policy. */
char *config_policy_json(const struct config *c, const char *name);
/* The policy itself, as compiled when it was checked; owned by the configuration. NULL: none. */
const struct policy *config_policy(const struct config *c, const char *name);
/* What loads but may not do what it seems to: "FILE:LINE: text", for `durward check`. */
typedef void (*config_warning_fn)(void *arg, const char *text);
void config_warnings(const struct config *c, config_warning_fn fn, void *arg);
const struct config_env *config_policy_env(const struct config *c, const char *name, size_t *n);
/* Names of the secrets that a policy's rules use (the vault's release list). */
/* Of the rules of a broker's scheme; those are none of the above, and no injector has them. */
const char *const *config_policy_broker_secrets(const struct config *c, const char *name,
                                                enum scheme scheme, size_t *n);
const char *const *config_policy_secrets(const struct config *c, const char *name, size_t *n);
/* JSON text of the policy under which the vault may reach token endpoints, malloc'd; NULL when no
 * secret has one. */
char *config_endpoints_json(const struct config *c);
/* It comes from an endpoint, and asking for it uses nothing up (as a refresh token would be). */
bool config_secret_asks(const struct config_secret *s);
/* It is a key that signs. */
bool config_secret_signs(const struct config_secret *s);
/* A policy's limits; defaults where there is no such policy. */
const struct config_sandbox *config_policy_sandbox(const struct config *c, const char *name);
/* NULL: none is named. */
const struct config_cluster *config_cluster(const struct config *c);
const struct config_fleet *config_fleet(const struct config *c); /* NULL: there is none */
/* The dialer's policy of the fleet's role. malloc'd; NULL: there is no fleet. */
char *config_fleet_json(const struct config *c);
/* "bwrap", "docker", "gvisor", "kubernetes", "microvm"; NULL: no backend has that number. */
const char *config_backend_name(enum config_backend b);
/* Is its root one that we lay out, with our images, layers and volumes? */
bool config_backend_lays_out(enum config_backend b);
/* BACKENDS: there is none of this name. */
enum config_backend config_backend_named(const char *name);
/* "delete", "pause", "stop". */
const char *config_idle_name(enum config_idle i);
/* An engine's name of an image: [A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}. */
bool config_engine_image_ok(const char *s);
/* Where a volume may be mounted: absolute, canonical, without ':' and control characters. */
bool config_volume_path_ok(const char *s);
/* The path of a unix socket: absolute, without control characters, at most CONFIG_SOCKET_MAX. */
bool config_socket_ok(const char *s);
/* Each may be NULL: the default for this user applies (see lib/paths.h). */
const char *config_ca_dir(const struct config *c);
const char *config_ca_cert(const struct config *c);
const char *config_ca_key(const struct config *c);
const char *config_controller_socket(const struct config *c);
const char *config_controller_state(const struct config *c);
const char *config_audit_dir(const struct config *c);
const struct config_audit *config_audit(const struct config *c);
/* "bytes_up", … */
const char *config_notify_measure(enum notify_measure m);
const char *config_notify_then(enum notify_then t); /* "notify", "pause", "kill" */
enum { NOTIFY_THENS = 3 };
extern const char *const config_notify_thens[NOTIFY_THENS];
/* The URL of such a place; NULL: there is none. */
const char *config_exporter_url(const struct config *c, enum exporter_place p);
/* JSON text of the policy under which the exporter may reach them, malloc'd; NULL when there is
 * none. */
char *config_exporter_json(const struct config *c);
/* Extra roots for origins, PEM files, NULL-terminated. */
const char *const *config_upstream_ca(const struct config *c);
/* Hosts with a `git` rule: the local sandbox rewrites ssh remotes for them. */
const char *const *config_policy_git_hosts(const struct config *c, const char *name, size_t *n);
/* Servers of its rules of ssh://, as known_hosts names them: "HOST" or "[HOST]:PORT". */
const char *const *config_policy_ssh_hosts(const struct config *c, const char *name, size_t *n);

/* What `durward run` adds from its flags, before the configuration is used: allow rules without a
 * credential, and environment secrets NAME@host[:header][,host], in that header, or by the host's
 * preset, else as bearer. A
 * missing configuration is an empty one. `policy` must exist or, with an empty configuration, is
 * made. Returns a new configuration. */
struct config_flags {
    const char *policy;       /* NULL: the only policy, or "default" */
    const char *const *allow; /* HOST[/path] */
    size_t n_allow;
    const char *const *secret; /* NAME@host[:header][,host] */
    size_t n_secret;
    const char **ret_policy;        /* out: the policy's name, owned by the result */
    const struct profile *profile;  /* adds what it stands for; NULL: none */
    const struct login_use *logins; /* (login.h) adds what they stand for */
    size_t n_logins;
    bool telemetry;     /* with the hosts of its telemetry */
    unsigned inside;    /* enum profile_inside: its program's own login takes the place of keys */
    bool profile_alone; /* only to check it: its secrets need not be there */
    const char *const *use; /* presets */
    size_t n_use;
};
/* One of the logins is that of the profile: it needs no key. */
bool config_flags_login(const struct config_flags *f);
struct config *config_with_flags(const struct config *c, const struct config_flags *f,
                                 struct err *err);
/* A preset by name ("github", "openai", …) as YAML text, or NULL. */
const char *preset_text(const char *name);
const char *preset_name(size_t i); /* in the order of the alphabet; NULL past the end */
/* A text of the preset's own file ("found", "file", "write"), or false. */
enum { PRESET_NAMES_MAX = 500, PRESET_WORD_MAX = 400 };
bool preset_says(const char *name, const char *key, char to[PRESET_WORD_MAX]);
void preset_names(char *to, size_t n); /* "anthropic, … and xai" */
/* The secret kind a preset host has ("github-pat"), or "" */
const char *preset_kind_for_host(const char *host);

#endif
