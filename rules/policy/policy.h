/* A compiled policy and the one decision function (promises P2, P7, P9).
 *
 * Allows match the normal form of a path. Whatever restricts (a deny; of two rules that differ in
 * anything but patterns and methods, the narrower or the one that asks) holds in every reading of
 * the path: where another reading than the plain one meets such a rule, the request is refused as
 * "respelled". So no spelling is worth more than the plain one.
 *
 * A policy is a pure value: no events, no OpenSSL, no I/O. Who has the configuration compiles it,
 * to an image without a pointer (policy_image.h), by which all decide: the parent gives one sealed
 * file of it to every role, which maps it. Order is the engine's: deny, then ask, then allow; among
 * matching allows the strictly narrower wins. */
#ifndef DURWARD_POLICY_H
#define DURWARD_POLICY_H

#include "authority.h"
#include "budget.h"
#include "cidr.h"
#include "detector.h"
#include "err.h"
#include "inspect.h"
#include "price.h"

struct cloud_identity;
struct policy;

enum credential_kind {
    CREDENTIAL_BEARER = 1,
    CREDENTIAL_BASIC,
    CREDENTIAL_HEADER,
    CREDENTIAL_QUERY,           /* a query parameter */
    CREDENTIAL_COOKIE,          /* a cookie */
    CREDENTIAL_PLACEHOLDER,     /* where the client wrote its placeholder */
    CREDENTIAL_AWS,             /* AWS Signature Version 4: what the client signed is signed anew */
    CREDENTIAL_CERTIFICATE,     /* of the TLS connection to the origin */
    CREDENTIAL_HMAC,            /* of a text made of the request */
    CREDENTIAL_SIGNATURE,       /* an HTTP message signature (RFC 9421) */
    CREDENTIAL_AZURE,           /* SharedKey of Azure Storage */
    CREDENTIAL_POSTGRES,        /* the vault proves a login's password with it */
    CREDENTIAL_REDIS,           /* the vault gives it to a broker's back for a login */
    CREDENTIAL_MYSQL,           /* the vault proves it, or gives it for a login */
    CREDENTIAL_SMTP,            /* the vault gives it to a broker's back for a login */
    CREDENTIAL_IMAP,            /* the same */
    CREDENTIAL_SSH_KEY,         /* the vault signs a broker's login with it */
    CREDENTIAL_SSH_SIGNING,     /* the vault signs commits, tags and files with it */
    CREDENTIAL_SSH_PASSWORD,    /* the vault gives it to a broker's back for a login */
    CREDENTIAL_SSH_CERTIFICATE, /* the vault signs a certificate with it, and a broker's login */
};

/* Where a client's placeholder may stand (CREDENTIAL_PLACEHOLDER); a mask. */
enum credential_place {
    PLACE_HEADER = 1,
    PLACE_QUERY = 2,
    PLACE_PATH = 4,
    PLACE_BODY = 8, /* of a JSON object or a form */
};
enum { PLACE_COUNT_MAX = 16 };

enum client_credential { CLIENT_REFUSE = 0, CLIENT_REPLACE, CLIENT_PASS };

struct header_edit {
    const char *name;  /* lower case */
    const char *value; /* NULL: remove */
};

/* How a rule's secret is put into a request. All strings owned by the policy. */
struct credential {
    enum credential_kind kind;
    const char *secret;             /* its name in `secrets` */
    const struct credential *other; /* bearer, header: where it goes instead when the client wrote
                                     * its placeholder there; NULL: there is one place. Of a login:
                                     * the certificate that its connection shows, a secret of its
                                     * own */
    bool both; /* beside other: where the client wrote it in both, it goes into both; true of a
                * login */
    const char
        *header; /* lower case: "authorization", "x-api-key"; "" where the slot is no field */
    const char *prefix; /* "Bearer ", "token ", "" … before the secret; "" for basic;
                         * signature: its tag */
    const char *suffix; /* after it, usually "" */
    const char *user;   /* basic: the user name; else NULL */
    const char *name;   /* of the query parameter or cookie; of hmac and signature all
                         * that was written; "" if none */
    unsigned places;    /* placeholder: enum credential_place; else 0 */
    const char *slots;  /* placeholder: the fields of a body, one a line: JSON pointers
                         * ("/a/b") and names of a form's; "" for none */
    const char *beside; /* placeholder: the other fields of the body and their texts, NAME=TEXT, or
                         * ?NAME for one that may be there, one a line; behind a line | those of a
                         * body without it; "" for none */
    unsigned count;     /* placeholder: how often it must stand there; signature: seconds
                         * until it expires, 0 for never */
    const char *region, *service; /* aws: the only ones that are signed for; "" for any */
    const char *text;             /* hmac: what is signed, with {parts}; signature: its label */
    const struct header_edit
        *signs; /* hmac: headers with {parts}; signature: names of components */
    size_t n_signs;
    bool base64, nonce; /* hmac: how the signature is written, else hex; signature: it has one */
    bool captured;      /* from a reply: it goes only where the client wrote its placeholder */
};

/* "bearer", "query parameter api_key", …: how it travels, for people. buf holds 300 bytes. */
char *credential_text(const struct credential *c, char *buf, size_t size);

/* A query parameter or header that a rule speaks of: one of these values, or any (n_values 0). */
struct condition {
    const char *name; /* a header's is lower case */
    const char *const *values;
    size_t n_values;
};

/* A field of a JSON, form or XML reply that becomes a secret of the sandbox: what it gets is the
 * placeholder. */
struct capture {
    const char *path; /* "token", "objects.*.actions.*.header.Authorization" */
    const char *secret;
};
enum { CAPTURES_MAX = 8, CAPTURE_PATH_MAX = 128, CAPTURE_DEPTH_MAX = 8 };

/* What becomes of a reply in which the secret comes back: it is taken out, or the reply is refused,
 * or it is refused and the sandbox ends. */
enum on_reflect { REFLECT_REDACT = 0, REFLECT_BLOCK, REFLECT_KILL };

struct rule {
    unsigned index;                      /* position in the policy's list, 0-based */
    const char *text;                    /* as written, e.g. "allow api.github.com" */
    const struct credential *credential; /* NULL: none */
    enum client_credential client_credential;
    bool ask;           /* somebody has to approve each request */
    bool cookies;       /* cookies: pass */
    bool method_scoped; /* access, methods or kubernetes given */
    bool websocket;     /* it may become a WebSocket */
    bool ranges;        /* Range passes beside a credential */
    const struct header_edit *edits;
    size_t n_edits;
    bool query_limited; /* only these parameters, each at most once */
    const struct condition *query;
    size_t n_query;
    const struct condition *headers; /* each must be there, once */
    size_t n_headers;
    const struct kube_terms *kubernetes; /* verbs and resources (kube_rule.h); NULL: not asked */
    const char *const *not_credentials;  /* headers, lower case, that carry no credential here */
    size_t n_not_credentials;
    enum on_reflect on_reflect;
    const struct capture *captures;
    size_t n_captures;
    bool allow_plaintext;  /* the credential may go over http:// */
    bool tunnel;           /* what is between client and origin passes unread, TLS and all */
    const struct cidr *to; /* forbidden addresses that its hosts may lead to all the same */
    size_t n_to;
    const struct inspection *inspection; /* what is asked of the body; NULL: nothing */
    const struct detect_rules *outward;  /* looked for in the body (detector.h); NULL: nothing */
    const struct budget *budget;         /* of its own; NULL: none */
    bool uncounted;        /* its secret goes to where models are, and it has no `llm` */
    unsigned capture_body; /* bytes of each body that go into the log; 0: none */
    const struct postgres_terms *postgres; /* of postgres:// (postgres_rule.h), likewise */
    const struct redis_terms *redis;       /* of redis:// and rediss:// (redis_rule.h), likewise */
    const struct mysql_terms *mysql;       /* of mysql:// (mysql_rule.h), likewise */
    const struct smtp_terms *smtp;         /* of smtp:// and smtps:// (smtp_rule.h), likewise */
    const struct imap_terms *imap;         /* of imap:// and imaps:// (imap_rule.h), likewise */
    const struct ssh_terms *ssh; /* its patterns are of ssh:// (ssh_rule.h); NULL: they are not */
    const char *said; /* of both: all that the rule says but its patterns; NULL: of another */
};

/* The secret whose certificate a connection of a broker's shows, or NULL. */
static inline const char *rule_certificate(const struct rule *r)
{
    const struct credential *c = r->credential;
    if (c && c->kind != CREDENTIAL_CERTIFICATE)
        c = c->other;
    return c && c->kind == CREDENTIAL_CERTIFICATE ? c->secret : NULL;
}

/* Of a protocol that is not HTTP. */
static inline bool rule_is_of_broker(const struct rule *r)
{
    return r->ssh || r->postgres || r->redis || r->mysql || r->smtp || r->imap;
}

enum { CAPTURE_BODY_MAX = 16000 };

/* "made unreadable: email; refused: github", for people, of a rule that has such. Returns buf. */
char *rule_outward_text(const struct rule *r, char *buf, size_t size);

/* Its bodies are messages of the Model Context Protocol, those of replies too. */
static inline bool rule_reads_messages(const struct rule *r)
{
    return r->inspection && r->inspection->kind == INSPECT_MCP;
}

/* Its bodies are calls to models. */
static inline bool rule_reads_calls(const struct rule *r)
{
    return r->inspection && r->inspection->kind == INSPECT_LLM;
}

/* The injector reads what the gate has read, and decides again. */
static inline bool rule_read_again(const struct rule *r)
{
    return rule_reads_messages(r) || rule_reads_calls(r);
}

enum verdict { VERDICT_DENY = 0, VERDICT_ALLOW = 1, VERDICT_ASK = 2 };

struct policy_request {
    const struct authority *authority;
    struct slice method; /* exact token */
    struct slice path;   /* from "/" to before "?" ; raw, as it will be forwarded */
};

struct decision {
    enum verdict verdict;
    const struct rule *rule; /* the rule that decided; NULL: no rule matched */
    const char *code;        /* constant: "ok", "no_rule", "denied_by_rule", "method", "respelled",
                              * or "path_ambiguous" (path_check, once more) */
    bool methods_matter;     /* with another method it might have been decided otherwise: what asks
                              * an origin to act on another one must not reach it */
};

/* JSON text of one policy as config_policy_json() makes it. */
struct policy *policy_parse(const char *json, size_t n, struct err *err);
/* The policy of an image, which is read where it lies: `release` gives the bytes back, also when
 * this fails. NULL: they are borrowed, and stay. A rule whose text the image does not hold as it
 * should decides nothing: what it would allow is denied. */
struct policy *policy_open(void *image, size_t n, void (*release)(void *image, size_t n),
                           struct err *err);
/* The image of one that was compiled or opened; lives as long as it does. */
struct slice policy_image_bytes(const struct policy *p);
/* Rules are borrowed from their policy: who keeps one over a reload holds a reference. */
struct policy *policy_ref(struct policy *p);
void policy_free(struct policy *p); /* drops one reference; NULL is fine */
const char *policy_name(const struct policy *p);
const struct rule *policy_rule(const struct policy *p, size_t i); /* NULL past the end */

/* What people are told of rule i, read from the image alone; false past the end. */
struct rule_told {
    const char *text;
    const char *secret; /* that it sends; NULL: none */
    bool deny, ask, websocket;
};
bool policy_rule_told(const struct policy *p, size_t i, struct rule_told *ret);
/* The i-th secret that some rule sends, each once; NULL past the end. */
const char *policy_secret(const struct policy *p, size_t i);

/* Where rule i was written, "FILE:LINE" when it came from a file; NULL past the end. */
const char *policy_rule_where(const struct policy *p, size_t i);

/* Are some requests, whatever their method, of rule i of p and of the first rule of `with`? */
bool policy_overlaps(const struct policy *p, size_t i, const struct policy *with);
/* An allow rule that the first of the list takes requests from though the two differ in more than
 * patterns and methods: what that rule asks, or adds, falls away for them. NULL: there is none. */
const struct rule *policy_first_steps(const struct policy *p);

/* What models cost, as the configuration says it for all policies; NULL: it does not. */
const struct price_table *policy_prices(const struct policy *p);
/* Who its sandboxes are to clouds; NULL: nobody. */
const struct cloud_identity *policy_identity(const struct policy *p);
/* Of all its rules together; NULL: none. */
const struct budget *policy_budget(const struct policy *p);

/* The budgets of a rule, from 0 on: its own, and those of calls of its tools. *ret: NULL where it
 * has none there. False: there are no more. */
bool rule_budget_at(const struct rule *r, size_t i, const struct budget **ret);
/* The budget of a rule, or of a tool of one (of_tool), by its key; NULL: there is none (any more).
 * Who may spend the one may not name the other in its place. */
const struct budget *policy_budget_find(const struct policy *p, uint64_t key, bool of_tool);

/* Which kinds of allow rules (CREDENTIALED: or one of `mcp` or `llm`) name this scheme, host and
 * port, whatever the path and method. */
enum { POLICY_HOST_PLAIN = 1, POLICY_HOST_CREDENTIALED = 2, POLICY_HOST_ASK = 4 };
unsigned policy_host(const struct policy *p, const struct authority *a);
/* What a policy lets go to a host, whatever the scheme, port and path, or captures of its replies:
 * every reply of that host is searched for it, whichever rule asked (promise P1). */
struct taint {
    const char *secret;
    const char *user;           /* of a Basic pair; NULL: none */
    bool captured;              /* each sandbox has its own */
    bool aws;                   /* only its session token goes */
    enum on_reflect on_reflect; /* the strictest of the rules that send it */
    struct taint *next;
};
/* The lists of those whose pattern names this host: its own and its parents'; how many. */
enum { POLICY_TAINTS_MAX = 130 };
size_t policy_taints(const struct policy *p, const struct authority *a,
                     const struct taint *ret[POLICY_TAINTS_MAX]);
bool policy_tainted(const struct policy *p, const struct authority *a);
/* The kinds of rules (POLICY_HOST_*) for which an injector, or else a gate, speaks with this host:
 * a gate with none that gets a secret, as nobody would search what it is told. */
unsigned policy_served(const struct policy *p, const struct authority *a, bool injector);
/* Their names for people, "a, b"; buf, or NULL when there are none. */
const char *policy_taint_text(const struct policy *p, const struct authority *a, char *buf,
                              size_t size);
/* The tunnel rule of this authority; NULL: there is none, its TLS ends here. */
const struct rule *policy_tunnel(const struct policy *p, const struct authority *a);
bool policy_has_tunnels(const struct policy *p);
/* Some rule of it asks somebody, or reads messages (`mcp`) or calls (`llm`): without any secret an
 * injector serves those. */
bool policy_needs_injector(const struct policy *p);
/* A request that this rule decided goes through the injector: it gets a secret, is asked about, is
 * read again there (`mcp`, `llm`), or is for a host that gets a secret by another rule. */
bool policy_by_injector(const struct policy *p, const struct rule *r, const struct authority *a);
/* A rule of these kinds (POLICY_HOST_*) that names this authority, whatever the path, says that it
 * may lead to this address (`to`). at: a literal one. */
bool policy_leads_to(const struct policy *p, const struct authority *a, unsigned kinds,
                     const struct authority *at);
/* What all allow and ask rules of this authority have for a path, where that is one segment without
 * a star; n 0: there is none, or one says another. As long as the policy. */
struct slice policy_only_segment(const struct policy *p, const struct authority *a);
/* Some allow or ask rule, or the identity, names this host at some port or scheme: DNS may answer
 * for it. */
bool policy_names_host(const struct policy *p, const struct authority *host);
/* The same of its https rules alone: a certificate for it may be needed. */
bool policy_serves_tls(const struct policy *p, const struct authority *host);
/* DNS says of every name but those that there is none (`names: nxdomain`). */
bool policy_nxdomain(const struct policy *p);
/* The sandbox is not told what the policy allows (`guide: none`). */
bool policy_guide_none(const struct policy *p);
/* Some allow rule is of this scheme. */
bool policy_speaks(const struct policy *p, enum scheme scheme);
/* Every port that an allow or ask rule names beyond 80 and 443; returns how many (ports may be
 * NULL to count). */
size_t policy_ports(const struct policy *p, uint16_t *ports, size_t max);

void policy_decide(const struct policy *p, const struct policy_request *r, struct decision *ret);

/* Does this policy grant this secret here (asked or not)? The injector's own check. */
bool policy_injects(const struct policy *p, const struct policy_request *r, const char *secret);

/* 0 when the path has nothing ambiguous (dot segments however encoded, "//", backslash, control or
 * high bytes, "#", a broken percent escape, %00, ";" before a dot segment); else -1 with a constant
 * reason in *why: a pattern's path, and one that is named beside a request's. */
int path_check(struct slice path, const char **why);
/* The same of a request's own path, which passes here before a decision (attacks A18-A23). Behind
 * its first segment it may have empty ones ("/web/https://example.com/"). Allows match them only by
 * "**", which names the path without them as well, and what restricts matches without them. */
int path_check_asked(struct slice path, const char **why);
bool path_has_empty(struct slice path);

#endif
