/* Answers the vault's requests to open stores, and keeps a job with a time limit for each command
 * that runs. */
#include "store_broker.h"

#include "login_lock.h"
#include "secret_list.h"
#include "store.h"
#include "store_watch.h"
#include "wire.h"

#include <event2/event.h>
#include <stdlib.h>
#include <sys/queue.h>

/* One command that runs. */
struct job {
    struct store_broker *store_broker;
    struct ipc *vault; /* NULL: the vault that asked is gone */
    uint32_t req;
    struct store_result opened;
    struct event *timeout;
    LIST_ENTRY(job) link;
};

struct store_broker {
    struct event_base *base;
    struct ipc *vault;         /* who asked last; NULL: gone */
    struct store_watch *watch; /* NULL: files are only read again */
    struct login_locks *locks;
    unsigned jobs;
    LIST_HEAD(, job) list;
};

static void job_free(struct job *j)
{
    LIST_REMOVE(j, link);
    j->store_broker->jobs--;
    if (j->timeout)
        event_free(j->timeout);
    free(j);
}

/* The vault times out by itself; this only ends what runs. */
static void on_timeout(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct job *j = arg;
    store_kill(&j->opened);
}

static int job_new(struct store_broker *d, struct ipc *vault, uint32_t req,
                   const struct store_result *opened, struct err *err)
{
    struct timeval tv = {STORE_SECONDS, 0};
    struct job *j = calloc(1, sizeof *j);
    if (j == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    j->store_broker = d;
    j->vault = vault;
    j->req = req;
    j->opened = *opened;
    j->opened.fd = -1; /* it goes to the vault */
    LIST_INSERT_HEAD(&d->list, j, link);
    d->jobs++;
    j->timeout = event_new(d->base, -1, 0, on_timeout, j);
    if (j->timeout)
        event_add(j->timeout, &tv);
    return 0;
}

static void on_changed(void *arg, const char *secret)
{
    struct store_broker *d = arg;
    struct msg m;
    if (d->vault == NULL)
        return;
    msg_init(&m, W_STORE_CHANGED);
    msg_put_str(&m, secret);
    ipc_send(d->vault, &m);
}

/* Before it is opened: nothing that happens after the reading is missed. */
static void watch(struct store_broker *d, const struct config_secret *s)
{
    char path[STORE_PATH_MAX];
    struct err err = {0};
    if (d->watch && (s->store == STORE_FILE || s->store == STORE_LOGIN) &&
        store_path(s, path, sizeof path, &err) == 0)
        store_watch_add(d->watch, s->name, path);
}

static const struct config_secret *find(const struct config_secret *list, size_t n,
                                        struct slice name)
{
    for (size_t i = 0; i < n; i++)
        if (slice_eq_str(name, list[i].name))
            return &list[i];
    return NULL;
}

static int open_for(struct store_broker *d, struct ipc *ch, uint32_t req,
                    const struct config_secret *s, struct store_result *ret, struct err *err)
{
    if (s == NULL)
        return err_set(err, ERR_UNREADY, "it is not in the configuration any more");
    if (s->store == STORE_COMMAND && d->jobs >= STORE_BROKER_MAX)
        return err_set(err, ERR_LIMIT, "%d commands of secrets run already", STORE_BROKER_MAX);
    watch(d, s);
    if (store_open(s, ret, err) < 0)
        return -1;
    if (ret->pid > 0 && job_new(d, ch, req, ret, err) < 0) {
        store_kill(ret); /* the parent's watcher reaps it as a stranger */
        return -1;
    }
    return 0;
}

int store_broker_message(struct store_broker *d, struct ipc *ch, struct msg *m,
                         const struct config_secret *list, size_t n)
{
    uint32_t req;
    struct slice name;
    struct err err = {0};
    struct store_result opened = {.fd = -1};
    struct msg reply;
    if (m->type == W_LOGIN_LOCK || m->type == W_LOGIN_SAVE || m->type == W_LOGIN_UNLOCK)
        return login_locks_message(d->locks, ch, m, list, n);
    if (m->type != W_STORE_OPEN || msg_get_u32(m, &req) < 0 ||
        msg_get_slice(m, SECRET_NAME_MAX, &name) < 0 || msg_end(m) < 0)
        return -1;
    d->vault = ch;
    const struct config_secret *s = find(list, n, name);
    bool ok = open_for(d, ch, req, s, &opened, &err) == 0;
    msg_init(&reply, W_STORE_FD);
    msg_put_u32(&reply, req);
    msg_put_u8(&reply, ok);
    msg_put_str(&reply, !ok ? err.text : s->store == STORE_AGENT ? s->source : "");
    if (opened.fd >= 0)
        msg_put_fd(&reply, opened.fd);
    ipc_send(ch, &reply);
    return 0;
}

bool store_broker_reaped(struct store_broker *d, pid_t pid, int status)
{
    struct job *j;
    LIST_FOREACH(j, &d->list, link)
    if (j->opened.pid == pid)
        break;
    if (j == NULL)
        return false;
    if (j->vault) {
        struct msg m;
        msg_init(&m, W_STORE_EXIT);
        msg_put_u32(&m, j->req);
        msg_put_u32(&m, (uint32_t)status);
        ipc_send(j->vault, &m);
    }
    job_free(j);
    return true;
}

void store_broker_vault_gone(struct store_broker *d)
{
    struct job *j;
    d->vault = NULL;
    login_locks_release(d->locks);
    LIST_FOREACH(j, &d->list, link)
    {
        j->vault = NULL;
        store_kill(&j->opened);
    }
}

struct store_broker *store_broker_new(struct event_base *base)
{
    struct store_broker *d = calloc(1, sizeof *d);
    if (d == NULL || (d->locks = login_locks_new(base)) == NULL) {
        free(d);
        return NULL;
    }
    d->base = base;
    LIST_INIT(&d->list);
    d->watch = store_watch_new(base, on_changed, d);
    return d;
}

void store_broker_free(struct store_broker *d)
{
    if (d == NULL)
        return;
    store_broker_vault_gone(d);
    while (!LIST_EMPTY(&d->list))
        job_free(LIST_FIRST(&d->list));
    store_watch_free(d->watch);
    login_locks_free(d->locks);
    free(d);
}
