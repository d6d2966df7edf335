/* Reads one call of the plugin, and carries it to the daemon. */
#include "cni.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "wire.h"

enum { INPUT_MAX = 1 << 20, ENV_MAX = 256 * 1024, ANSWER_MS = 60000 };

static const char *word(const char *name)
{
    const char *v = getenv(name);
    return v ? v : "";
}

/* ---- the environment ---- */

/* KEY=VALUE;... of CNI_ARGS. 0, also where there is none; -1: it is too long. */
static int argument(const char *key, char *to, size_t size)
{
    size_t n = strlen(key);
    for (const char *at = word("CNI_ARGS"); *at; at += strcspn(at, ";"), at += *at == ';') {
        if (strncmp(at, key, n) != 0 || at[n] != '=')
            continue;
        size_t len = strcspn(at + n + 1, ";");
        if (len >= size)
            return -1;
        memcpy(to, at + n + 1, len);
        to[len] = '\0';
    }
    return 0;
}

static int read_op(struct cni_call *c, struct err *err)
{
    static const struct {
        const char *name;
        enum pod_op op;
    } ops[] = {{"ADD", POD_ADD},       {"DEL", POD_DEL}, {"CHECK", POD_CHECK},
               {"STATUS", POD_STATUS}, {"GC", POD_GC},   {"VERSION", 0}};
    const char *said = word("CNI_COMMAND");
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        if (strcmp(ops[i].name, said) == 0) {
            c->q.op = ops[i].op;
            return 0;
        }
    err_set(err, ERR_PARSE, "CNI_COMMAND is '%.40s'; durward-cni is run by a container runtime",
            said);
    return CNI_ENVIRONMENT;
}

/* The pod's namespace by its name in the directory where the daemon looks for it. */
static int read_netns(struct cni_call *c, struct err *err)
{
    const char *slash = strrchr(c->pod_path, '/');
    char *at = NULL, *want = NULL;
    char dir[512];
    if (slash == NULL || (size_t)(slash - c->pod_path) >= sizeof dir ||
        strlen(slash + 1) > POD_NETNS_MAX)
        return err_set(err, ERR_PARSE, "CNI_NETNS is not a file's path");
    snprintf(dir, sizeof dir, "%.*s", (int)(slash - c->pod_path), c->pod_path);
    at = realpath(dir, NULL);
    want = realpath(c->netns, NULL);
    bool ok = at && want && strcmp(at, want) == 0;
    free(at);
    free(want);
    if (!ok)
        return err_set(err, ERR_PARSE, "the network namespace %.200s is not in %.200s", c->pod_path,
                       c->netns);
    snprintf(c->q.netns, sizeof c->q.netns, "%s", slash + 1);
    return 0;
}

static int read_environment(struct cni_call *c, struct err *err)
{
    const char *container = word("CNI_CONTAINERID");
    bool one = c->q.op == POD_ADD || c->q.op == POD_DEL || c->q.op == POD_CHECK;
    c->pod_path = word("CNI_NETNS");
    if (one && strlen(container) <= POD_CONTAINER_MAX)
        memcpy(c->q.container, container, strlen(container) + 1);
    if (c->q.op == POD_ADD &&
        (argument("K8S_POD_NAMESPACE", c->q.ns, sizeof c->q.ns) < 0 ||
         argument("K8S_POD_NAME", c->q.name, sizeof c->q.name) < 0 ||
         argument("K8S_POD_UID", c->q.uid, sizeof c->q.uid) < 0 || read_netns(c, err) < 0)) {
        if (err->text[0] == '\0')
            err_set(err, ERR_PARSE, "CNI_ARGS: a name is too long");
        return CNI_ENVIRONMENT;
    }
    if ((c->q.op == POD_ADD || c->q.op == POD_GC) && !pod_word_ok(c->q.list, POD_LIST_MAX)) {
        err_set(err, ERR_PARSE, "the configuration's name is missing or malformed");
        return CNI_CONFIG;
    }
    if (c->q.op && !pod_request_ok(&c->q)) {
        err_set(err, ERR_PARSE,
                "CNI_CONTAINERID, or what CNI_ARGS says of the pod, is missing or malformed");
        return CNI_ENVIRONMENT;
    }
    return 0;
}

/* ---- standard input ---- */

static const char *text_of(const json_t *v, const char *key, const char *otherwise)
{
    const char *s = json_string_value(json_object_get(v, key));
    return s && *s ? s : otherwise;
}

/* What the runtime still knows of. */
static int read_listed(struct cni_call *c, struct err *err)
{
    const json_t *one, *list = json_object_get(c->config, "cni.dev/valid-attachments");
    size_t i, n = json_array_size(list);
    if (!json_is_array(list) || n > POD_LISTED_MAX)
        return err_set(err, ERR_PARSE, "cni.dev/valid-attachments is not there, or too long");
    c->q.listed = calloc(n + 1, sizeof *c->q.listed);
    if (c->q.listed == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    json_array_foreach(list, i, one)
    {
        const char *id = text_of(one, "containerID", "");
        if (strlen(id) <= POD_CONTAINER_MAX)
            snprintf(c->q.listed[c->q.n_listed++], sizeof *c->q.listed, "%s", id);
    }
    return 0;
}

static int read_input(struct cni_call *c, struct err *err)
{
    static char text[INPUT_MAX];
    json_error_t why;
    size_t n = fread(text, 1, sizeof text, stdin);
    c->config = n < sizeof text ? json_loadb(text, n, JSON_REJECT_DUPLICATES, &why) : NULL;
    if (!json_is_object(c->config))
        return err_set(err, ERR_PARSE, "the configuration on standard input is not a JSON object");
    c->version = text_of(c->config, "cniVersion", "0.2.0");
    c->socket = text_of(c->config, "socket", "/run/durward/node.sock");
    c->netns = text_of(c->config, "netns", "/run/netns");
    c->pods = text_of(c->config, "pods", "/run/objects/pods.sock");
    c->kubelet = text_of(c->config, "kubelet", "/var/lib/kubelet");
    const char *list = text_of(c->config, "name", "");
    if (strlen(list) <= POD_LIST_MAX)
        memcpy(c->q.list, list, strlen(list) + 1);
    return 0;
}

int cni_read(struct cni_call *c, struct err *err)
{
    int code = read_op(c, err);
    if (code)
        return code;
    if (read_input(c, err) < 0)
        return CNI_DECODE;
    if (c->q.op == POD_GC && read_listed(c, err) < 0)
        return CNI_DECODE;
    return read_environment(c, err);
}

/* ---- the daemon ---- */

static int meet(const char *path, const char *who, struct err *err)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof sa.sun_path)
        return err_set(err, ERR_LIMIT, "the socket's path %.100s is too long", path);
    memcpy(sa.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof sa) == 0)
        return fd;
    err_sys(err, "%s does not answer at %s", who, path);
    if (fd >= 0)
        close(fd);
    return -1;
}

/* For a shell: export NAME='value'. A name is one that a shell takes (POSIX 2018, XBD 3.235), so
 * that no answer writes a line of another kind. */
static int add_line(struct buf *to, const char *pair)
{
    static const char may[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    const char *is = strchr(pair, '=');
    if (is == NULL)
        return 0;
    if (is == pair || (*pair >= '0' && *pair <= '9') || strspn(pair, may) != (size_t)(is - pair))
        return -1;
    if (buf_printf(to, "export %.*s='", (int)(is - pair), pair) < 0)
        return -1;
    for (const char *s = is + 1; *s; s++)
        if ((*s == '\'' ? buf_append(to, "'\\''", 4) : buf_append(to, s, 1)) < 0)
            return -1;
    return buf_append(to, "'\n", 2);
}

/* lines: for a shell; else containers. */
static int get_words(struct cni_answer *a, bool lines, struct msg *m)
{
    static char pair[32 * 1024];
    struct buf text;
    uint32_t n;
    buf_init(&text, ENV_MAX);
    int r = msg_get_u32(m, &n);
    for (uint32_t i = 0; r == 0 && i < n; i++)
        if (msg_get_str(m, pair, sizeof pair) < 0 ||
            (lines ? add_line(&text, pair) < 0
                   : !pod_word_ok(pair, POD_CONTAINER_MAX) || buf_printf(&text, "%s\n", pair) < 0))
            r = -1;
    a->env = r == 0 && msg_end(m) == 0 ? slice_dup(buf_slice(&text)) : NULL;
    buf_free(&text);
    return a->env ? 0 : -1;
}

static int await(int fd, struct msg *m)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n;
    do
        n = poll(&p, 1, ANSWER_MS);
    while (n < 0 && errno == EINTR);
    return n <= 0 || msg_recv(fd, m) <= 0 ? -1 : 0;
}

static int read_answer(int fd, enum pod_op op, struct cni_answer *a, struct err *err)
{
    struct msg m;
    uint8_t end;
    if (await(fd, &m) < 0)
        return err_set(err, ERR_UNREADY, "the node's Durward has ended, or takes too long");
    int r = m.type == W_POD_DONE && msg_get_u8(&m, &end) == 0 && end < POD_ENDS &&
                    msg_get_str(&m, a->text, sizeof a->text) == 0 &&
                    msg_get_str(&m, a->dir, sizeof a->dir) == 0 &&
                    get_words(a, op != POD_GC, &m) == 0
                ? 0
                : err_set(err, ERR_UPSTREAM, "the node's Durward is of another version");
    if (r == 0)
        a->end = (enum pod_end)end;
    msg_done(&m);
    return r;
}

int cni_ask(const struct cni_call *c, struct cni_answer *ret, struct err *err)
{
    struct msg m;
    int fd = meet(c->socket, "the node's Durward", err);
    if (fd < 0)
        return -1;
    ret->met = true;
    msg_init(&m, W_POD);
    pod_request_put(&c->q, &m);
    int r = msg_send(fd, &m) == 0 ? read_answer(fd, c->q.op, ret, err)
                                  : err_set(err, ERR_UNREADY, "the node's Durward does not listen");
    msg_done(&m);
    close(fd);
    return r;
}

/* ---- who the pod is ---- */

static int read_facts(struct cni_call *c, struct msg *m, struct err *err)
{
    uint8_t known;
    char why[POD_TEXT_MAX];
    if (m->type == W_POD_FACTS && msg_get_u8(m, &known) == 0 && known <= 1) {
        if (known && pod_facts_get(&c->q.facts, m) == 0 && msg_end(m) == 0) {
            c->q.facts.known = POD_KNOWN;
            return 0;
        }
        if (!known && msg_get_str(m, why, sizeof why) == 0)
            return err_set(err, ERR_DENIED, "%s", why);
    }
    return err_set(err, ERR_UPSTREAM, "durward-kubernetes is of another version");
}

static void put_pod(const struct cni_call *c, struct msg *m, enum wire_type type)
{
    msg_init(m, type);
    msg_put_str(m, c->q.ns);
    msg_put_str(m, c->q.name);
    msg_put_str(m, c->q.uid);
}

void cni_say_bound(const struct cni_call *c, const char *what)
{
    struct err err = {0};
    struct msg m;
    int fd = c->q.facts.known == POD_KNOWN ? meet(c->pods, "durward-kubernetes", &err) : -1;
    if (fd < 0)
        return;
    put_pod(c, &m, W_POD_BOUND);
    msg_put_str(&m, what);
    (void)msg_send(fd, &m);
    msg_done(&m);
    close(fd);
}

void cni_ask_who(struct cni_call *c, struct err *why)
{
    struct msg m;
    int fd = meet(c->pods, "durward-kubernetes", why);
    pod_facts_done(&c->q.facts);
    if (fd >= 0) {
        put_pod(c, &m, W_POD_ASK);
        int r = msg_send(fd, &m);
        msg_done(&m);
        if (r < 0 || await(fd, &m) < 0) {
            err_set(why, ERR_UNREADY, "durward-kubernetes has ended, or takes too long");
        } else {
            (void)read_facts(c, &m, why);
            msg_done(&m);
        }
        close(fd);
    }
    if (c->q.facts.known != POD_KNOWN) {
        pod_facts_done(&c->q.facts);
        c->q.facts.known = POD_ASKED_IN_VAIN;
    }
}
