/* A request of the agent inside a sandbox: keys are listed, or a signature is decided anew,
 * recorded, and asked of the vault, which reads what it signs once more. Nothing is dialled. */
#include "ssh_back.h"

#include "ssh_agent.h"
#include "ssh_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ssh_agent_request {
    struct ssh_back *of;
    struct back_request request; /* of a signature */
    struct quota_part place;
    bool signs;
    struct broker_stream *stream;
    struct buf facts; /* as they came; what points into them: */
    struct ssh_agent_facts asked;
    struct policy *policy; /* of a list: whose rules it goes through; a reference */
    size_t rule;
    uint32_t n_listed;
    struct buf list;
    bool asking; /* a callback may come at once */
    struct secret_wait *key;
    struct sign_wait *wait;
    LIST_ENTRY(ssh_agent_request) link;
};

static void request_free(struct ssh_agent_request *q, const char *code)
{
    secret_client_cancel(q->key);
    secret_client_sign_cancel(q->wait);
    if (q->signs)
        back_request_free(&q->request, code);
    policy_free(q->policy);
    quota_leave(&q->place);
    broker_stream_free(q->stream);
    buf_free(&q->facts);
    buf_free(&q->list);
    LIST_REMOVE(q, link);
    free(q);
}

static void refuse(struct ssh_agent_request *q, const char *code, const char *text)
{
    if (q->signs)
        back_request_end(&q->request, RECORD_ABORTED, code, "", text);
    broker_stream_refuse(q->stream, code, text);
    request_free(q, code);
}

/* The answer, and the end. */
static void answer(struct ssh_agent_request *q, struct slice s)
{
    if (broker_stream_send(q->stream, BROKER_DATA, s) <= 0 ||
        broker_stream_send(q->stream, BROKER_END, SLICE("")) <= 0) {
        refuse(q, "client_gone", "");
        return;
    }
    if (q->signs) {
        q->request.n_down += s.n;
        back_request_end(&q->request, RECORD_COMPLETED, "ok", "", "");
    }
    request_free(q, "ok");
}

/* ---- a list ---- */

/* Of a rule of ssh-agent:// the key's name, the first time that it is met; NULL: there are no more.
 */
static const char *next_key(struct ssh_agent_request *q)
{
    const struct rule *r;
    while ((r = policy_rule(q->policy, q->rule++)) != NULL) {
        bool again = r->ssh == NULL || !r->ssh->signs || r->credential == NULL;
        for (size_t i = 0; !again && i + 1 < q->rule; i++) {
            const struct rule *before = policy_rule(q->policy, i);
            again = before->ssh && before->ssh->signs && before->credential &&
                    strcmp(before->credential->secret, r->credential->secret) == 0;
        }
        if (!again)
            return r->credential->secret;
    }
    return NULL;
}

/* A key that cannot be had now is left out. */
static void append(struct ssh_agent_request *q, struct slice public)
{
    const struct rule *r = policy_rule(q->policy, q->rule - 1);
    struct slice name = slice_str(r->credential->secret);
    if (q->n_listed < SSH_AGENT_KEYS_MAX && buf_room(&q->list) >= 8 + public.n + name.n &&
        ssh_wire_put_string(&q->list, public) == 0 && ssh_wire_put_string(&q->list, name) == 0)
        q->n_listed++;
}

static void say_list(struct ssh_agent_request *q)
{
    struct buf b;
    buf_init(&b, BROKER_PACKET_MAX);
    if (ssh_wire_put_u32(&b, q->n_listed) == 0 && buf_append_slice(&b, buf_slice(&q->list)) == 0)
        answer(q, buf_slice(&b));
    else
        refuse(q, "memory", "");
    buf_free(&b);
}

static void list_on(struct ssh_agent_request *q);

static void on_listed(void *arg, struct secret *value, const struct err *err UNUSED)
{
    struct ssh_agent_request *q = arg;
    q->key = NULL;
    if (value)
        append(q, secret_slice(value));
    if (!q->asking)
        list_on(q);
}

static void list_on(struct ssh_agent_request *q)
{
    const char *name;
    while ((name = next_key(q)) != NULL) {
        q->asking = true;
        q->key = secret_client_look(q->of->back->secrets, name, on_listed, q);
        q->asking = false;
        if (q->key)
            return;
    }
    say_list(q);
}

/* ---- a signature ---- */

static void put_request(void *arg, struct record *r)
{
    const struct ssh_agent_request *q = arg;
    ssh_agent_record(&q->asked, r);
}

static void put_end(void *arg UNUSED, struct record *r UNUSED)
{
}

/* What somebody is asked about. */
static int show(void *arg, const char **verb, struct buf *path)
{
    const struct ssh_agent_request *q = arg;
    char hash[2 * SSHSIG_HASH_MAX + 16];
    *verb = SSH_AGENT_VERB;
    ssh_agent_hash(&q->asked.what, hash, sizeof hash);
    return buf_printf(path, "/%.*s: %s", SL(q->asked.what.space), hash);
}

static void decide(void *arg, const struct policy *p, struct decision *ret)
{
    const struct ssh_agent_request *q = arg;
    policy_ssh_decide_signature(p, &q->request.at, q->asked.what.space, ret);
}

static void on_signed(void *arg, struct slice signature, const struct err *err)
{
    struct ssh_agent_request *q = arg;
    q->wait = NULL;
    if (signature.n == 0)
        refuse(q, "ssh_signature", err ? err->text : "");
    else
        answer(q, signature);
}

/* Made anew of its parts. */
static void on_admitted(void *arg, const char *code, const char *text)
{
    struct ssh_agent_request *q = arg;
    struct buf b;
    if (code) {
        refuse(q, code, text);
        return;
    }
    buf_init(&b, SSHSIG_MAX);
    if (sshsig_put(&q->asked.what, &b) < 0) {
        buf_free(&b);
        refuse(q, "memory", "");
        return;
    }
    struct sign_wait *w = secret_client_sign_text(q->of->back->secrets, q->request.sandbox,
                                                  q->request.rule->credential->secret,
                                                  q->asked.flags, buf_slice(&b), on_signed, q);
    if (w)
        q->wait = w; /* else on_signed ran, and q is gone */
    buf_free(&b);
}

static int on_up(void *arg UNUSED, struct slice bytes UNUSED)
{
    return -1; /* a client says all that it has to say in its facts */
}

static void on_more(void *arg UNUSED)
{
}

static void on_spent(void *arg)
{
    refuse(arg, "budget", "a budget of its rule or policy is used up");
}

static const struct back_request_ops request_ops = {.put = put_request,
                                                    .put_end = put_end,
                                                    .show = show,
                                                    .decide = decide,
                                                    .admitted = on_admitted,
                                                    .up = on_up,
                                                    .more = on_more,
                                                    .spent = on_spent};

/* The key that was asked for is the one of the rule that was found. */
static void on_key(void *arg, struct secret *value, const struct err *err)
{
    struct ssh_agent_request *q = arg;
    q->key = NULL;
    if (value == NULL) {
        refuse(q, "secret_unavailable", err ? err->text : "");
    } else if (!slice_eq(secret_slice(value), q->asked.key)) {
        back_request_deny(&q->request, "ssh_agent_key", "");
        refuse(q, "ssh_agent_key", "the policy signs with another key in this namespace");
    } else {
        back_request_admit(&q->request); /* it may be gone */
    }
}

static void sign(struct ssh_agent_request *q)
{
    const char *code = back_request_decide(&q->request);
    if (code) {
        refuse(q, code, "the policy does not allow it");
        return;
    }
    struct secret_wait *w =
        secret_client_get(q->of->back->secrets, q->request.rule->credential->secret, on_key, q);
    if (w)
        q->key = w;
}

/* ---- from the front: nothing after its facts ---- */

static int on_packet(void *arg UNUSED, enum broker_packet type UNUSED, struct slice s UNUSED)
{
    return -1;
}

static void on_writable(void *arg UNUSED)
{
}

static void on_closed(void *arg)
{
    refuse(arg, "client_gone", "");
}

static const struct broker_stream_ops stream_ops = {
    .packet = on_packet, .writable = on_writable, .closed = on_closed};

/* Takes the stream, also where there is no room (NULL). */
static struct ssh_agent_request *request_new(struct ssh_back *of, const struct back_asked *asked)
{
    struct ssh_agent_request *q = calloc(1, sizeof *q);
    if (q == NULL ||
        quota_take(&of->agents, &q->place, slice_str(asked->sandbox), 1) != QUOTA_TAKEN) {
        free(q);
        close(asked->fd);
        return NULL;
    }
    q->stream = broker_stream_new(of->back->base, asked->fd, &stream_ops, q);
    if (q->stream == NULL) {
        quota_leave(&q->place);
        free(q);
        return NULL;
    }
    q->of = of;
    buf_init(&q->facts, SSH_AGENT_FACTS_MAX);
    buf_init(&q->list, BROKER_PACKET_MAX - 4);
    LIST_INSERT_HEAD(&of->agent_requests, q, link);
    return q;
}

void ssh_agent_requests_again(struct ssh_back *of)
{
    struct ssh_agent_request *q = LIST_FIRST(&of->agent_requests), *next;
    for (; q; q = next) {
        next = LIST_NEXT(q, link);
        if (q->signs && !back_request_goes_on(&q->request))
            refuse(q, "policy_changed", "the policy was changed, and this is over");
    }
}

int ssh_agent_request_new(struct ssh_back *of, const struct back_asked *asked)
{
    struct ssh_agent_facts facts;
    if (ssh_agent_facts_get(asked->facts, &facts) < 0)
        return -1;
    struct ssh_agent_request *q = request_new(of, asked);
    if (q == NULL)
        return 0;
    if (buf_append_slice(&q->facts, asked->facts) < 0 ||
        ssh_agent_facts_get(buf_slice(&q->facts), &q->asked) < 0) {
        refuse(q, "memory", "");
        return 0;
    }
    q->signs = q->asked.key.n > 0;
    if (q->signs) {
        back_request_init(&q->request, of->back, asked, q->stream, &request_ops, q);
        sign(q);
    } else {
        q->policy = policy_ref(of->back->policy);
        list_on(q);
    }
    return 0;
}
