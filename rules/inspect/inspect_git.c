/* git over HTTP: the commands of a push against `refs`, and the operation of a git-lfs batch, which
 * stands in its body. Every other endpoint passes by its path alone. */
#include "inspect_internal.h"
#include "push_judge.h"

#include <string.h>

static const char lfs[] = "lfs";

static bool is_push(const struct inspect_request *r)
{
    return slice_ends(r->path, SLICE("/git-receive-pack"));
}

static bool is_batch(const struct inspect_request *r)
{
    return slice_ends(r->path, SLICE("/info/lfs/objects/batch"));
}

enum inspect_answer inspect_git_head(const struct inspection *in, const struct inspect_request *r,
                                     struct inspect_result *ret)
{
    if (is_batch(r)) {
        if (!r->has_body)
            return inspect_refuse(ret, 403, lfs, "no batch");
        return inspect_media(r) == MEDIA_JSON ? INSPECT_MORE
                                              : inspect_refuse(ret, 415, "content_type", "");
    }
    if (!in->refs_given || !is_push(r))
        return INSPECT_PASS;
    return r->has_body ? INSPECT_MORE : inspect_refuse(ret, 403, "ref", "no commands");
}

static enum inspect_answer judge_batch(const struct inspection *in, struct slice body,
                                       struct inspect_result *ret)
{
    json_t *root;
    if (inspect_json(body, &root, ret) < 0)
        return INSPECT_REFUSED;
    enum inspect_answer a = INSPECT_PASS;
    const char *operation = json_string_value(json_object_get(root, "operation"));
    bool upload = operation && strcmp(operation, "upload") == 0;
    if (operation == NULL || body_json_twisted(root, "operation") ||
        (!upload && strcmp(operation, "download") != 0) || (upload && !in->push))
        a = inspect_refuse(ret, 403, lfs, operation ? operation : "no operation");
    json_decref(root);
    return a;
}

enum inspect_answer inspect_git_body(const struct inspection *in, const struct inspect_request *r,
                                     struct slice body, bool whole, struct inspect_result *ret)
{
    if (!is_batch(r))
        return push_judge(in, body, whole, ret);
    return whole ? judge_batch(in, body, ret) : INSPECT_MORE;
}
