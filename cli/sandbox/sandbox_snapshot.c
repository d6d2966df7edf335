/* durward sandbox snapshot, restore: copies of sandboxes' files, by name. */
#include <stdio.h>
#include <string.h>

#include "api_client.h"
#include "commands.h"
#include "out.h"
#include "which.h"

enum { OPT_REUSE = 256, OPT_FORCE };

const struct arg_option sandbox_snapshot_options[] = {
    {OPT_REUSE, "reuse", NULL, "take the one of this name if there is one"},
    {'o', "output", "FILE", "of export: write to this file (- is standard output)"},
    {OPT_FORCE, "force", NULL, "of export: in place of a file that is there"},
    {0},
};

static void print_row(struct out_table *t, const json_t *s)
{
    static const char *const members[] = {"name", "sandbox", "policy", "image", "state"};
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        out_table_cell(t, out_member(s, members[i]));
}

static int list(const struct args *a)
{
    static const char *const titles[] = {"NAME", "SANDBOX", "POLICY", "IMAGE", "STATE", NULL};
    struct err err = {0};
    json_t *all = which_list(a->socket, WHICH_SNAPSHOT, &err);
    return all ? out_list(all, a->json, titles, "there are no snapshots", print_row)
               : out_fail(&err);
}

/* Takes the reference of `body`; NULL: a text of it is no UTF-8. */
static int post(const struct args *a, const char *path, json_t *body, void (*print)(const json_t *))
{
    if (body == NULL) {
        out_error("the name is not UTF-8");
        return EXIT_NO;
    }
    int code = api_print(a, "POST", path, body, print);
    json_decref(body);
    return code;
}

static int make(const struct args *a, const char *word, const char *name, bool reuse)
{
    struct err err = {0};
    char id[WHICH_ID_MAX + 1];
    if (which_one(a->socket, WHICH_SANDBOX, word, id, &err) < 0)
        return out_fail(&err);
    return post(a, "/v1/snapshots",
                json_pack("{s:s, s:s, s:b}", "sandbox", id, "name", name, "get_or_create", reuse),
                api_print_name);
}

static const struct command *self(const char *name)
{
    const struct command *v = sandbox_verbs;
    while (strcmp(v->name, name) != 0)
        v++;
    return v;
}

int verb_snapshot(int argc, char **argv)
{
    struct args a = {.cmd = self("sandbox snapshot"), .argc = argc, .argv = argv};
    bool reuse = false, force = false;
    const char *file = NULL;
    int id;
    while ((id = args_next(&a)) != ARGS_END) {
        if (id == ARGS_STOP)
            return a.exit_code;
        if (id == 'o')
            file = a.value;
        else if (id == OPT_FORCE)
            force = true;
        else
            reuse = true;
    }
    int n = argc - a.next;
    const char *first = a.next < argc ? argv[a.next] : "";
    if (strcmp(first, "ls") == 0 && n > 1)
        return args_usage(a.cmd, "'ls' lists the snapshots of all sandboxes, and takes no name");
    if (strcmp(first, "ls") == 0)
        return list(&a);
    if (strcmp(first, "rm") == 0 && a.next + 1 < argc) {
        a.next++;
        return which_remove(&a, WHICH_SNAPSHOT);
    }
    if (strcmp(first, "export") == 0 && n == 2)
        return snapshot_export_verb(&a, argv[a.next + 1], file, force);
    if (strcmp(first, "import") == 0 && (n == 2 || n == 3))
        return snapshot_import_verb(&a, n == 3 ? argv[a.next + 1] : NULL, argv[argc - 1]);
    if (n != 2)
        return args_usage(a.cmd, "a sandbox's id and a name, ls, export, import, or rm and names?");
    return make(&a, first, argv[a.next + 1], reuse);
}

int verb_restore(int argc, char **argv)
{
    struct args a = {.cmd = self("sandbox restore"), .argc = argc, .argv = argv};
    struct err err = {0};
    char path[128], id[WHICH_ID_MAX + 1];
    if (args_next(&a) == ARGS_STOP)
        return a.exit_code;
    if (a.next + 2 != argc)
        return args_usage(a.cmd, "a sandbox's id and a snapshot's name?");
    if (which_one(a.socket, WHICH_SANDBOX, argv[a.next], id, &err) < 0)
        return out_fail(&err);
    snprintf(path, sizeof path, "/v1/sandboxes/%s/restore", id);
    return post(&a, path, json_pack("{s:s}", "snapshot", argv[a.next + 1]), api_print_id);
}
