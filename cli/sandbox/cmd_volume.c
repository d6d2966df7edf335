/* durward volume: files that outlive the sandboxes which mount them, by the daemon's API. */
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "api_client.h"
#include "commands.h"
#include "out.h"
#include "sandbox_spec.h"
#include "which.h"

enum { CREATE, LS, SHOW, RM, SNAPSHOT, RESTORE, CLONE, EXPORT };

static int run_create(int argc, char **argv);
static int run_ls(int argc, char **argv);
static int run_show(int argc, char **argv);
static int run_rm(int argc, char **argv);
static int run_snapshot(int argc, char **argv);
static int run_restore(int argc, char **argv);
static int run_clone(int argc, char **argv);
static int run_export(int argc, char **argv);

static const struct arg_option create_options[] = {
    {0, "policy", "NAME", "whose sandboxes may have it, where there is more than one",
     .key = "policy"},
    {0, "size", "SIZE", "how much it may hold, as in 500MiB or 20GiB (default: 1GiB)",
     .key = "size", .member = ARG_SIZE},
    {0, "access", "WHO", "one sandbox at a time may write (one, the default), or several (many)",
     .key = "access"},
    ARG_LABEL,
    {0, "get-or-create", NULL, "take the one of this name if there is one", .key = "get_or_create"},
    {0},
};

static const struct arg_option clone_options[] = {
    {0, "size", "SIZE", "how much it may hold (default: as much; at least that)", .key = "size",
     .member = ARG_SIZE},
    {0, "access", "WHO", "one or many (default: the same)", .key = "access"},
    ARG_LABEL,
    {0},
};

struct export_options {
    const char *file;
    bool force;
};

static const struct arg_option export_options[] = {
    {'o', "output", "FILE", "write to this file (- is standard output; default: NAME.tar)",
     offsetof(struct export_options, file)},
    {0, "force", NULL, "in place of a file that is there", offsetof(struct export_options, force)},
    {0},
};

const struct command volume_verbs[] = {
    [CREATE] = {"volume create",
                "[--policy NAME] [--size SIZE] [--access one|many] [OPTION...] NAME",
                "Make a volume; prints its name.", create_options,
                "'durward sandbox create --volume NAME:/path' mounts it, as do 'durward run\n"
                "--volume' and a policy's `sandbox: { volumes: [...] }`.\n",
                run_create},
    [LS] = {"volume ls", "[--json]", "List volumes and snapshots of volumes.", NULL, NULL, run_ls},
    [SHOW] = {"volume show", "[--json] NAME", "Show a volume and how much it holds.", NULL, NULL,
              run_show},
    [RM] = {"volume rm", "NAME...", "Remove volumes or snapshots, with their files.", NULL,
            "Not while a sandbox has it.\n", run_rm},
    [SNAPSHOT] = {"volume snapshot", "NAME SNAPSHOT", "Keep a copy of a volume's files, by name.",
                  NULL,
                  "Of one that is written to, each file is as it is just then; pause or stop the\n"
                  "sandbox for a copy of one moment.\n",
                  run_snapshot},
    [RESTORE] = {"volume restore", "NAME SNAPSHOT",
                 "Put a snapshot's files in place of a volume's.", NULL,
                 "Not while a sandbox that runs has it.\n", run_restore},
    [CLONE] = {"volume clone", "[--size SIZE] [--access one|many] [--label K=V]... NAME NEW",
               "Make a volume with a copy of the files of another or of a snapshot.", clone_options,
               NULL, run_clone},
    [EXPORT] = {"volume export", "[--force] [-o FILE] NAME",
                "Write a volume's files to an archive.", export_options,
                "A tar archive; the files lie below root/ in it.\n", run_export},
    {0},
};

/* /v1/volumes/NAME… of a word; it is put where the caller says. */
static int path_of(const struct args *a, const char *name, const char *tail, char *path,
                   size_t size)
{
    if (!sandbox_spec_name_ok(name))
        return args_usage(a->cmd, "'%.64s' is not the name of a volume", name);
    snprintf(path, size, "/v1/volumes/%s%s", name, tail);
    return EXIT_OK;
}

static int post(const struct args *a, const char *path, const json_t *body)
{
    return api_print(a, "POST", path, body, api_print_name);
}

static int run_create(int argc, char **argv)
{
    struct args a = {.cmd = &volume_verbs[CREATE], .argc = argc, .argv = argv};
    json_t *body = json_object();
    int code = args_body(&a, body, 1, 1, "under which name?");
    if (code == ARGS_END) {
        json_object_set_new(body, "name", json_string(argv[a.next]));
        code = post(&a, "/v1/volumes", body);
    }
    json_decref(body);
    return code;
}

static int run_clone(int argc, char **argv)
{
    struct args a = {.cmd = &volume_verbs[CLONE], .argc = argc, .argv = argv};
    json_t *body = json_object();
    int code = args_body(&a, body, 2, 2, "which volume, and under which name?");
    if (code == ARGS_END) {
        json_object_set_new(body, "from", json_string(argv[a.next]));
        json_object_set_new(body, "name", json_string(argv[a.next + 1]));
        code = post(&a, "/v1/volumes", body);
    }
    json_decref(body);
    return code;
}

static int of_two(const struct command *cmd, const char *tail, const char *key, int argc,
                  char **argv)
{
    struct args a = {.cmd = cmd, .argc = argc, .argv = argv};
    char path[128];
    json_t *body = json_object();
    int code = args_plain(&a, 2, 2, "a volume's name and a snapshot's?");
    if (code == ARGS_END)
        code = path_of(&a, argv[a.next], tail, path, sizeof path);
    if (code == EXIT_OK) {
        json_object_set_new(body, key, json_string(argv[a.next + 1]));
        code = post(&a, path, body);
    }
    json_decref(body);
    return code;
}

static int run_snapshot(int argc, char **argv)
{
    return of_two(&volume_verbs[SNAPSHOT], "/snapshot", "name", argc, argv);
}

static int run_restore(int argc, char **argv)
{
    return of_two(&volume_verbs[RESTORE], "/restore", "snapshot", argc, argv);
}

/* ---- ls, show ---- */

static int64_t number(const json_t *v, const char *key)
{
    return json_integer_value(json_object_get(v, key));
}

static void print_row(struct out_table *t, const json_t *v)
{
    const char *of = out_member(v, "snapshot_of");
    out_table_cell(t, out_member(v, "name"));
    out_table_cell(t, out_member(v, "policy"));
    out_table_number(t, number(v, "size"));
    out_table_cell(t, out_member(v, "access"));
    out_table_cell(t, out_member(v, "state"));
    out_table_number(t, (int64_t)json_array_size(json_object_get(v, "mounted")));
    out_table_cell(t, *of ? of : "-");
}

static int run_ls(int argc, char **argv)
{
    static const char *const titles[] = {"NAME",  "POLICY",  "BYTES",       "ACCESS",
                                         "STATE", "MOUNTED", "SNAPSHOT OF", NULL};
    struct args a = {.cmd = &volume_verbs[LS], .argc = argc, .argv = argv};
    struct err err = {0};
    int code = args_plain(&a, 0, 0, "");
    if (code != ARGS_END)
        return code;
    json_t *all = which_list(a.socket, WHICH_VOLUME, &err);
    return all ? out_list(all, a.json, titles, "there are no volumes", print_row) : out_fail(&err);
}

static void print_one(const json_t *v)
{
    static const char *const shown[] = {"name", "policy", "state", "access", "snapshot_of"};
    const char *key;
    json_t *one;
    char clean[300];
    size_t i;
    for (i = 0; i < ARRAY_LEN(shown); i++)
        if (*out_member(v, shown[i]))
            printf("%-11s %s\n", shown[i], out_member(v, shown[i]));
    printf("%-11s %lld bytes\n", "size", (long long)number(v, "size"));
    printf("%-11s %lld bytes\n", "used", (long long)number(v, "used"));
    json_object_foreach(json_object_get(v, "labels"), key, one)
        printf("%-11s %s=%s\n", "label", key, out_clean(json_string_value(one), clean, 256));
    json_array_foreach(json_object_get(v, "mounted"), i, one)
        printf("%-11s %s at %s%s\n", "mounted", out_member(one, "sandbox"),
               out_clean(out_member(one, "path"), clean, sizeof clean),
               json_is_true(json_object_get(one, "read_only")) ? ", read-only" : "");
}

static int run_show(int argc, char **argv)
{
    struct args a = {.cmd = &volume_verbs[SHOW], .argc = argc, .argv = argv};
    char path[128];
    int code = args_plain(&a, 1, 1, "which volume?");
    if (code != ARGS_END)
        return code;
    code = path_of(&a, argv[a.next], "", path, sizeof path);
    return code == EXIT_OK ? api_print(&a, "GET", path, NULL, print_one) : code;
}

static int run_rm(int argc, char **argv)
{
    struct args a = {.cmd = &volume_verbs[RM], .argc = argc, .argv = argv};
    int code = args_plain(&a, 1, INT_MAX, "which volume?");
    return code != ARGS_END ? code : which_remove(&a, WHICH_VOLUME);
}

static int run_export(int argc, char **argv)
{
    struct args a = {.cmd = &volume_verbs[EXPORT], .argc = argc, .argv = argv};
    struct export_options asked = {0};
    int code = args_into(&a, &asked);
    if (code != ARGS_END)
        return code;
    return a.next + 1 == argc ? volume_export_verb(&a, argv[a.next], asked.file, asked.force)
                              : args_usage(a.cmd, "which volume?");
}

const struct command command_volume = {
    .name = "volume",
    .usage = "create|ls|show|rm|snapshot|... [OPTION...]",
    .summary = "Volumes: files that outlive the sandboxes of the daemon that mount them.",
    .verbs = volume_verbs,
};
