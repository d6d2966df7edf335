/* Names that a sandbox gives to files and asks for in a view: whatever lies in what is masked is
 * masked, the place of the tree on the host counts, and nothing is read beyond a name. The input up
 * to its first zero byte is the path of what is bound, the rest a path in it. */
#include "view_internal.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
    if (!right)
        abort();
}

/* As FUSE gives it: absolute, no empty component, no "." and "..". */
static bool is_path(const char *p)
{
    if (p[0] != '/')
        return false;
    for (const char *at = p; at; at = strchr(at + 1, '/')) {
        size_t n = strcspn(at + 1, "/");
        if (n == 0 || n > NAME_MAX || (at[1] == '.' && (n == 1 || (n == 2 && at[2] == '.'))))
            return false;
    }
    return true;
}

/* Each directory on the way: once one is masked, so is all below. */
static void on_the_way(const struct view *v, char *path)
{
    enum mask_verdict last = judge_name(v, path, false);
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        bool masked = judge_name(v, path, true) == MASK_YES;
        *at = '/';
        require(!masked || (last == MASK_YES && judge_name(v, path, true) == MASK_YES));
    }
}

/* A name with a key's content is one by its file's content only. */
static void by_itself(const struct view *v, const char *path)
{
    char full[VIEW_PATH];
    int n = snprintf(full, sizeof full, "%s%s", v->source, path);
    if (n < 0 || (size_t)n >= sizeof full)
        require(judge_name(v, path, false) == MASK_YES);
    else if (mask_match(full, false) == MASK_YES)
        require(judge_name(v, path, false) == MASK_YES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char source[PATH_MAX], path[VIEW_PATH];
    size_t n = strnlen((const char *)data, size), rest = size - n - (n < size);
    if (n == 0 || n >= sizeof source || rest == 0 || rest >= sizeof path)
        return 0;
    memcpy(source, data, n);
    source[n] = '\0';
    memcpy(path, data + n + 1, rest);
    path[rest] = '\0';
    mask_is_key(path, rest);
    if (!is_path(source) || !is_path(path))
        return 0;
    struct view v = {.root = -1, .source = source, .nsource = n};
    on_the_way(&v, path);
    by_itself(&v, path);
    for (size_t i = 0; mask_link_name(i, source, n); i++)
        require(i < 1000);
    return 0;
}
