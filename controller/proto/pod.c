/* Writes and reads what is said of pods; each reader checks every name again, since names become
 * those of files. */
#include "pod.h"

#include <stdlib.h>
#include <string.h>

#include "cidr.h"

bool pod_word_ok(const char *s, size_t max)
{
    size_t n = strlen(s);
    if (n == 0 || n > max || s[0] == '.' || s[0] == '-')
        return false;
    for (; *s; s++)
        if (!ascii_is_alnum(*s) && strchr("_.-", *s) == NULL)
            return false;
    return true;
}

/* ---- what the API server says of it ---- */

/* KEY=VALUE, where KEY may have one prefix and VALUE may be empty. */
static bool fact_label_ok(const char *s)
{
    const char *is = strchr(s, '=');
    if (is == NULL || is == s || strlen(s) > POD_LABEL_MAX)
        return false;
    for (const char *p = s; *p; p++)
        if (p != is && !ascii_is_alnum(*p) && strchr(p < is ? "-_./" : "-_.", *p) == NULL)
            return false;
    return true;
}

bool pod_facts_ok(const struct pod_facts *f)
{
    bool ok = pod_word_ok(f->account, POD_ACCOUNT_MAX) && f->labels.n <= POD_LABELS_MAX;
    for (size_t i = 0; ok && i < f->labels.n; i++)
        ok = fact_label_ok(f->labels.v[i]);
    return ok;
}

void pod_facts_put(const struct pod_facts *f, struct msg *m)
{
    msg_put_str(m, f->account);
    strlist_put(&f->labels, m);
}

int pod_facts_get(struct pod_facts *f, struct msg *m)
{
    return msg_get_str(m, f->account, sizeof f->account) < 0 || strlist_get(&f->labels, m) < 0 ||
                   !pod_facts_ok(f)
               ? -1
               : 0;
}

void pod_facts_done(struct pod_facts *f)
{
    strlist_done(&f->labels);
    memset(f, 0, sizeof *f);
}

/* ---- what is asked ---- */

bool pod_request_ok(const struct pod_request *r)
{
    bool one = r->op == POD_ADD || r->op == POD_DEL || r->op == POD_CHECK;
    if (one && !pod_word_ok(r->container, POD_CONTAINER_MAX))
        return false;
    if (r->op == POD_ADD &&
        (!pod_word_ok(r->ns, POD_NAMESPACE_MAX) || !pod_word_ok(r->name, POD_NAME_MAX) ||
         !pod_word_ok(r->netns, POD_NETNS_MAX) || (r->uid[0] && !pod_word_ok(r->uid, POD_UID_MAX))))
        return false;
    if ((r->op == POD_ADD || r->op == POD_GC) && !pod_word_ok(r->list, POD_LIST_MAX))
        return false;
    if (r->facts.known == POD_KNOWN && !pod_facts_ok(&r->facts))
        return false;
    for (unsigned i = 0; i < r->n_listed; i++)
        if (!pod_word_ok(r->listed[i], POD_CONTAINER_MAX))
            return false;
    return r->op >= POD_ADD && r->op < POD_OPS;
}

void pod_request_put(const struct pod_request *r, struct msg *m)
{
    msg_put_u8(m, (uint8_t)r->op);
    if (r->op == POD_STATUS)
        return;
    if (r->op == POD_GC) {
        msg_put_str(m, r->list);
        msg_put_u32(m, r->n_listed);
        for (unsigned i = 0; i < r->n_listed; i++)
            msg_put_str(m, r->listed[i]);
        return;
    }
    msg_put_str(m, r->container);
    if (r->op != POD_ADD)
        return;
    msg_put_str(m, r->ns);
    msg_put_str(m, r->name);
    msg_put_str(m, r->uid);
    msg_put_str(m, r->netns);
    msg_put_str(m, r->list);
    msg_put_u8(m, (uint8_t)r->facts.known);
    if (r->facts.known == POD_KNOWN)
        pod_facts_put(&r->facts, m);
}

static int get_listed(struct pod_request *r, struct msg *m)
{
    uint32_t n;
    if (msg_get_str(m, r->list, sizeof r->list) < 0 || msg_get_u32(m, &n) < 0 || n > POD_LISTED_MAX)
        return -1;
    r->listed = calloc(n + 1, sizeof *r->listed);
    if (r->listed == NULL)
        return -1;
    for (; r->n_listed < n; r->n_listed++)
        if (msg_get_str(m, r->listed[r->n_listed], sizeof r->listed[0]) < 0)
            return -1;
    return 0;
}

static int get_known(struct pod_facts *f, struct msg *m)
{
    uint8_t known;
    if (msg_get_u8(m, &known) < 0 || known >= POD_KNOWNS)
        return -1;
    f->known = (enum pod_known)known;
    return known == POD_KNOWN ? pod_facts_get(f, m) : 0;
}

static int get_fields(struct pod_request *r, struct msg *m)
{
    if (r->op == POD_STATUS)
        return 0;
    if (r->op == POD_GC)
        return get_listed(r, m);
    if (msg_get_str(m, r->container, sizeof r->container) < 0)
        return -1;
    if (r->op != POD_ADD)
        return 0;
    return msg_get_str(m, r->ns, sizeof r->ns) < 0 || msg_get_str(m, r->name, sizeof r->name) < 0 ||
                   msg_get_str(m, r->uid, sizeof r->uid) < 0 ||
                   msg_get_str(m, r->netns, sizeof r->netns) < 0 ||
                   msg_get_str(m, r->list, sizeof r->list) < 0 || get_known(&r->facts, m) < 0
               ? -1
               : 0;
}

int pod_request_get(struct pod_request *r, struct msg *m)
{
    uint8_t op;
    memset(r, 0, sizeof *r);
    if (msg_get_u8(m, &op) < 0 || op == 0 || op >= POD_OPS)
        return -1;
    r->op = (enum pod_op)op;
    return get_fields(r, m) < 0 || msg_end(m) < 0 || !pod_request_ok(r) ? -1 : 0;
}

void pod_request_done(struct pod_request *r)
{
    free(r->listed);
    r->listed = NULL;
    r->n_listed = 0;
    pod_facts_done(&r->facts);
}

/* ---- which pod ---- */

void pod_spec_put(const struct pod_spec *s, struct msg *m)
{
    msg_put_str(m, s->netns);
    msg_put_str(m, s->container);
    msg_put_str(m, s->uid);
}

int pod_spec_get(struct pod_spec *s, struct msg *m)
{
    if (msg_get_str(m, s->netns, sizeof s->netns) < 0 ||
        msg_get_str(m, s->container, sizeof s->container) < 0 ||
        msg_get_str(m, s->uid, sizeof s->uid) < 0)
        return -1;
    return pod_word_ok(s->netns, POD_NETNS_MAX) && pod_word_ok(s->container, POD_CONTAINER_MAX) &&
                   (s->uid[0] == '\0' || pod_word_ok(s->uid, POD_UID_MAX))
               ? 0
               : -1;
}

/* ---- where they are ---- */

void pod_place_put(const struct pod_place *p, struct msg *m)
{
    msg_put_str(m, p->netns_dir);
    msg_put_str(m, p->kubelet);
    msg_put_u32(m, p->n_ranges);
    for (unsigned i = 0; i < p->n_ranges; i++)
        msg_put_str(m, p->ranges[i]);
}

int pod_place_get(struct pod_place *p, struct msg *m)
{
    uint32_t n;
    struct cidr range;
    memset(p, 0, sizeof *p);
    if (msg_get_str(m, p->netns_dir, sizeof p->netns_dir) < 0 ||
        msg_get_str(m, p->kubelet, sizeof p->kubelet) < 0 || msg_get_u32(m, &n) < 0 ||
        n > POD_RANGES_MAX)
        return -1;
    for (; p->n_ranges < n; p->n_ranges++) {
        char *text = p->ranges[p->n_ranges];
        if (msg_get_str(m, text, POD_RANGE_TEXT) < 0 || cidr_parse(&range, slice_str(text)) < 0 ||
            range.kind != HOST_IPV4)
            return -1;
    }
    return 0;
}

/* ---- who connected, and what was refused ---- */

void pod_seen_count(struct pod_seen *s, uint32_t address, uint16_t port, bool refused)
{
    struct pod_seen_entry *e = s->entries[refused];
    unsigned *n = &s->n[refused], i = 0;
    while (i < *n && (e[i].address != address || e[i].port != port))
        i++;
    if (i == POD_INBOUND_MAX) {
        i = POD_INBOUND_MAX - 1;
        e[i].address = e[i].port = 0;
    } else if (i == *n) {
        e[(*n)++] = (struct pod_seen_entry){.address = address, .port = port};
    }
    if (e[i].count < UINT32_MAX)
        e[i].count++;
}

static void put_one(const struct pod_seen_entry *e, bool refused, struct msg *m)
{
    msg_put_u32(m, e->address);
    msg_put_u32(m, e->port);
    msg_put_u32(m, e->count);
    msg_put_u8(m, refused);
}

void pod_seen_put(struct pod_seen *s, struct msg *m)
{
    msg_put_u32(m, s->n[0] + s->n[1]);
    for (unsigned refused = 0; refused < 2; refused++) {
        for (unsigned i = 0; i < s->n[refused]; i++)
            put_one(&s->entries[refused][i], refused != 0, m);
        s->n[refused] = 0;
    }
}
