/* Reads W_BUILD field by field and refuses the first that does not fit; binds are ordered so that
 * an outer one is mounted first. */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

#include "slice.h"

bool plan_root_inside(const struct plan *p)
{
    return p->sandbox_spec.image[0] && p->nbinds == 0;
}

bool plan_is_root(const struct plan *p)
{
    enum config_backend b = p->sandbox_spec.limits.backend;
    return plan_root_inside(p) || b == BACKEND_GVISOR || b == BACKEND_MICROVM;
}

void plan_idmap(const struct plan *p, struct idmap *ret)
{
    if (plan_root_inside(p))
        idmap_root(ret);
    else
        idmap_caller(ret, p->uid, p->gid, p->nbinds > 0);
}

bool plan_path_within(const char *inner, const char *outer)
{
    size_t n = strlen(outer);
    if (n == 1)
        return true; /* everything is below / */
    return strncmp(inner, outer, n) == 0 && (inner[n] == '\0' || inner[n] == '/');
}

/* [a-z0-9-]{1,64}, as build.h says. */
static bool id_ok(const char *s)
{
    if (*s == '\0')
        return false;
    for (; *s; s++)
        if (!(*s >= 'a' && *s <= 'z') && !(*s >= '0' && *s <= '9') && *s != '-')
            return false;
    return true;
}

static bool host_ok(const char *s)
{
    if (!ascii_is_alnum(*s))
        return false;
    for (; *s; s++)
        if (!ascii_is_alnum(*s) && *s != '-' && *s != '.')
            return false;
    return true;
}

/* What can stand in a field of /etc/passwd. */
static bool user_ok(const char *s)
{
    if (!ascii_is_alnum(*s) && *s != '_')
        return false;
    for (; *s; s++)
        if (!ascii_is_alnum(*s) && *s != '-' && *s != '.' && *s != '_')
            return false;
    return true;
}

static bool path_ok(const char *s)
{
    if (s[0] != '/')
        return false;
    for (const char *c = s; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return false;
    if (s[1] == '\0')
        return true;
    while (*s) {
        size_t n = strcspn(++s, "/");
        if (n == 0 || n > 255 || (n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.'))
            return false;
        s += n;
    }
    return true;
}

static char *get_path(struct msg *m, const char *what, struct err *err)
{
    struct slice s;
    if (msg_get_slice(m, PLAN_PATH_MAX, &s) < 0) {
        err_set(err, ERR_PARSE, "W_BUILD: %s is missing or too long", what);
        return NULL;
    }
    char *path = slice_dup(s);
    if (path == NULL || !path_ok(path)) {
        err_set(err, ERR_PARSE, "W_BUILD: %s is not a canonical absolute path", what);
        free(path);
        return NULL;
    }
    return path;
}

static int read_count(struct msg *m, const char *what, unsigned max, uint32_t *n, struct err *err)
{
    if (msg_get_u32(m, n) < 0)
        return err_set(err, ERR_PARSE, "W_BUILD: the count of %s is missing", what);
    if (*n > max)
        return err_set(err, ERR_LIMIT, "%u %s, at most %u are possible", (unsigned)*n, what, max);
    return 0;
}

static int read_ports(struct msg *m, struct plan *p, struct err *err)
{
    uint32_t n, port;
    /* the message may name more than a sandbox without nf_tables can listen on; nft needs none */
    if (read_count(m, "ports", 65535, &n, err) < 0)
        return -1;
    while (n-- > 0) {
        if (msg_get_u32(m, &port) < 0 || port == 0 || port > 65535)
            return err_set(err, ERR_PARSE, "W_BUILD: a port is out of range");
        bool known = port == 53 || port == 80 || port == 443;
        for (unsigned i = 0; i < p->nports && !known; i++)
            known = p->ports[i] == port;
        if (!known && p->nports < PLAN_PORTS_MAX)
            p->ports[p->nports++] = (uint16_t)port;
    }
    return 0;
}

static int order_binds(const void *a, const void *b)
{
    const struct plan_bind *x = a, *y = b;
    return strcmp(x->target, y->target); /* a prefix sorts first */
}

static int read_binds(struct msg *m, struct plan *p, struct err *err)
{
    uint32_t n;
    if (read_count(m, "binds", PLAN_BINDS_MAX, &n, err) < 0)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        struct plan_bind *b = &p->binds[p->nbinds++];
        uint8_t mode = 0;
        b->source = get_path(m, "a bind's source", err);
        b->target = b->source ? get_path(m, "a bind's target", err) : NULL;
        if (b->target == NULL)
            return -1;
        if (msg_get_u8(m, &mode) < 0 || mode > SANDBOX_SPEC_BIND_ALL)
            return err_set(err, ERR_PARSE, "W_BUILD: a bind lacks its mode");
        b->writable = mode & SANDBOX_SPEC_BIND_WRITABLE;
        b->view = mode & SANDBOX_SPEC_BIND_VIEW;
        b->home = mode & SANDBOX_SPEC_BIND_HOME;
    }
    qsort(p->binds, p->nbinds, sizeof p->binds[0], order_binds);
    for (unsigned i = 1; i < p->nbinds; i++)
        if (strcmp(p->binds[i - 1].target, p->binds[i].target) == 0)
            return err_set(err, ERR_PARSE, "two binds have the target %s", p->binds[i].target);
    return 0;
}

/* It becomes a line of a file. */
static bool host_key_ok(const char *s, enum host_key_kind kind)
{
    struct slice type =
        kind == HOST_KEY_ED25519 ? SLICE("ssh-ed25519 ") : SLICE("ecdsa-sha2-nistp256 ");
    size_t n = strlen(s);
    return n == 0 || (slice_starts(slice_str(s), type) &&
                      strspn(s + type.n, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                         "0123456789+/=") == n - type.n);
}

static int read_githosts(struct msg *m, struct plan *p, struct err *err)
{
    uint32_t n;
    char host[256];
    if (read_count(m, "git hosts", PLAN_GITHOSTS_MAX, &n, err) < 0)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        if (msg_get_str(m, host, sizeof host) < 0 || !host_ok(host))
            return err_set(err, ERR_PARSE, "W_BUILD: a git host is not a host name");
        p->githosts[p->ngithosts] = slice_dup(slice_str(host));
        if (p->githosts[p->ngithosts++] == NULL)
            return err_set(err, ERR_INTERNAL, "out of memory");
    }
    return 0;
}

/* It becomes a name in a line of a file. */
static bool ssh_host_ok(const char *s)
{
    char host[256];
    size_t n = strcspn(s, "]");
    if (*s != '[')
        return host_ok(s);
    if (n < 2 || n > sizeof host || s[n] != ']' || s[n + 1] != ':' || s[n + 2] == 0 ||
        strlen(s + n + 2) > 5 || strspn(s + n + 2, "0123456789") != strlen(s + n + 2))
        return false;
    memcpy(host, s + 1, n - 1);
    host[n - 1] = 0;
    return host_ok(host);
}

static int read_sshhosts(struct msg *m, struct plan *p, struct err *err)
{
    uint32_t n;
    char host[300];
    if (read_count(m, "hosts of ssh", PLAN_SSHHOSTS_MAX, &n, err) < 0)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        if (msg_get_str(m, host, sizeof host) < 0 || !ssh_host_ok(host))
            return err_set(err, ERR_PARSE, "W_BUILD: a host of ssh is none");
        p->sshhosts[p->nsshhosts] = slice_dup(slice_str(host));
        if (p->sshhosts[p->nsshhosts++] == NULL)
            return err_set(err, ERR_INTERNAL, "out of memory");
    }
    return 0;
}

static int read_all(struct msg *m, struct plan *p, char *id, struct err *err)
{
    uint32_t uid, gid;
    uint8_t signs;
    if (msg_get_str(m, p->sandbox, sizeof p->sandbox) < 0 || !id_ok(p->sandbox))
        return err_set(err, ERR_PARSE, "W_BUILD: the sandbox's id is malformed");
    memcpy(id, p->sandbox, sizeof p->sandbox);
    if (msg_get_str(m, p->policy, sizeof p->policy) < 0)
        return err_set(err, ERR_PARSE, "W_BUILD: the policy's name is malformed");
    if (msg_get_str(m, p->hostname, sizeof p->hostname) < 0 || !host_ok(p->hostname))
        return err_set(err, ERR_PARSE, "W_BUILD: the host name is malformed");
    if (msg_get_u32(m, &uid) < 0 || msg_get_u32(m, &gid) < 0 || uid == UINT32_MAX ||
        gid == UINT32_MAX)
        return err_set(err, ERR_PARSE, "W_BUILD: the uid or gid is malformed");
    p->uid = uid;
    p->gid = gid;
    if (read_ports(m, p, err) < 0 || read_binds(m, p, err) < 0)
        return -1;
    p->home = get_path(m, "the home directory", err);
    if (p->home == NULL)
        return -1;
    if (msg_get_str(m, p->user, sizeof p->user) < 0 || !user_ok(p->user))
        return err_set(err, ERR_PARSE, "W_BUILD: the login name is malformed");
    if (read_githosts(m, p, err) < 0 || read_sshhosts(m, p, err) < 0)
        return -1;
    for (int k = 0; k < HOST_KEY_KINDS; k++)
        if (msg_get_str(m, p->host_keys[k], sizeof p->host_keys[k]) < 0 ||
            !host_key_ok(p->host_keys[k], (enum host_key_kind)k))
            return err_set(err, ERR_PARSE, "W_BUILD: a host key is malformed");
    if (msg_get_u8(m, &signs) < 0 || signs > 1)
        return err_set(err, ERR_PARSE, "W_BUILD: whether it signs is not said");
    p->signs = signs;
    if (sandbox_spec_get(&p->sandbox_spec, m) < 0)
        return err_set(err, ERR_PARSE, "W_BUILD: the image, the root or a limit is malformed");
    if (msg_end(m) < 0)
        return err_set(err, ERR_PARSE, "W_BUILD: fields are left over");
    return 0;
}

struct plan *plan_read(struct msg *m, char *id, struct err *err)
{
    id[0] = '\0';
    struct plan *p = calloc(1, sizeof *p);
    if (p == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    if (read_all(m, p, id, err) < 0) {
        plan_free(p);
        return NULL;
    }
    return p;
}

void plan_free(struct plan *p)
{
    if (p == NULL)
        return;
    for (unsigned i = 0; i < p->nbinds; i++) {
        free(p->binds[i].source);
        free(p->binds[i].target);
    }
    for (unsigned i = 0; i < p->ngithosts; i++)
        free(p->githosts[i]);
    for (unsigned i = 0; i < p->nsshhosts; i++)
        free(p->sshhosts[i]);
    free(p->home);
    free(p);
}

unsigned plan_server_tasks(const struct plan *p)
{
    unsigned n = p->sandbox_spec.n_volumes;
    for (unsigned i = 0; i < p->nbinds; i++)
        n += p->binds[i].view;
    n *= PLAN_SERVER_THREADS;
    enum config_backend b = p->sandbox_spec.limits.backend;
    return b == BACKEND_GVISOR || b == BACKEND_MICROVM ? n + PLAN_WALL_TASKS : n;
}

uint64_t plan_server_memory(const struct plan *p)
{
    const struct config_sandbox *l = &p->sandbox_spec.limits;
    return l->backend == BACKEND_MICROVM ? PLAN_MACHINE_BESIDE + plan_scratch(p) : 0;
}

uint64_t plan_machine_mib(const struct plan *p)
{
    enum { UNSAID = 1024, LEAST = 256 };
    uint64_t mib = p->sandbox_spec.limits.memory / PLAN_MIB;
    return mib == 0 ? UNSAID : mib < LEAST ? LEAST : mib;
}

uint64_t plan_scratch(const struct plan *p)
{
    const struct config_sandbox *l = &p->sandbox_spec.limits;
    return l->disk || l->backend != BACKEND_MICROVM ? l->disk : plan_machine_mib(p) * PLAN_MIB / 2;
}
