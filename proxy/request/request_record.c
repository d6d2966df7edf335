/* Puts a request into a record: where to, which method and path, by which rule and for whom. What
 * may hold a placeholder is left out, and so are the values of a query. */
#include "request_record.h"

#include "guard.h"
#include "kube_rule.h"

enum { SHAPE_MAX = 1024 };

static const struct slice hidden = {"[placeholder]", sizeof "[placeholder]" - 1};

static void put_query(struct record *r, const struct request_record *q)
{
    struct buf shape;
    if (q->hides_query) {
        record_put(r, RF_QUERY, hidden);
        return;
    }
    buf_init(&shape, SHAPE_MAX);
    guard_query_shape(q->head->query, &shape);
    record_put(r, RF_QUERY, buf_slice(&shape));
    buf_free(&shape);
}

/* What a cluster is asked, and the command that is to run in a container. */
static void put_kubernetes(struct record *r, const struct request_record *q)
{
    struct kube_facts f;
    struct buf text;
    if (kube_read(q->head->method, q->head->path, q->head->query, &f) < 0)
        return;
    buf_init(&text, KUBE_COMMAND_MAX);
    if (kube_text(&f, &text) == 0)
        record_put(r, RF_KUBERNETES, buf_slice(&text));
    buf_clear(&text);
    if (!q->hides_query && !q->hides_command)
        kube_command(&f, &text);
    record_put(r, RF_COMMAND, buf_slice(&text));
    buf_free(&text);
}

void request_record(struct record *r, enum record_kind kind, uint64_t counter,
                    const struct request_record *q)
{
    char text[HOST_TEXT_MAX + 16];
    record_init(r, kind, counter);
    if (q->authority) {
        record_put_str(r, RF_SCHEME, scheme_name(q->authority->scheme));
        record_put_str(r, RF_AUTHORITY, authority_text(q->authority, text, sizeof text));
    }
    record_put(r, RF_METHOD, q->head->method);
    record_put(r, RF_PATH,
               !q->hides_path        ? q->head->path
               : q->shown_path.n > 0 ? q->shown_path
                                     : hidden);
    if (q->head->has_query && q->head->path.n)
        put_query(r, q);
    if (q->kubernetes && !q->hides_path)
        put_kubernetes(r, q);
    record_put_str(r, RF_RULE, q->rule);
    record_put_str(r, RF_CREDENTIAL, q->credential);
    record_put_str(r, RF_ENTRY, q->entry);
    record_put_str(r, RF_SANDBOX, q->sandbox);
    record_put_str(r, RF_POLICY, q->policy);
}
