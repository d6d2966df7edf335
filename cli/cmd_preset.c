/* durward preset ls|show: the rules that `use: NAME` stands for, and for package managers the hosts
 * that their configuration on this host names. Nothing is asked or sent. */
#include "commands.h"
#include "config.h"
#include "out.h"
#include "registries.h"
#include "yaml_tree.h"

#include <string.h>

static int run_ls(int argc, char **argv);
static int run_show(int argc, char **argv);

const struct command preset_verbs[] = {
    {"preset ls", "[--json]", "List the presets.", NULL, NULL, run_ls},
    {"preset show", "[--json] NAME", "Print what `use: NAME` stands for.", NULL,
     "{{secret}} is the secret's name; {{api}} and the like are the hosts, which `preset_hosts` of "
     "a\n"
     "rule names anew. A preset of a package manager has no hosts: those that its configuration "
     "on\n"
     "this host names are printed below it, with the files that say so and what was left out.\n"
     "Example: durward preset show github\n",
     run_show},
    {0},
};

/* ---- what this host's configuration says ---- */

static void put_list(const char *title, const json_t *list)
{
    char clean[1024];
    json_t *v;
    size_t i;
    json_array_foreach(list, i, v)
        printf("#   %s%s\n", title, out_clean(json_string_value(v), clean, sizeof clean));
}

static void put_found(const struct registries *r, const char *name)
{
    char write[PRESET_WORD_MAX] = "";
    bool any = json_array_size(r->places) > 0;
    printf("\n# On this host%s:\n", any ? ", its hosts" : " no host is named; write");
    if (any) {
        put_list("", r->places);
    } else {
        preset_says(name, "write", write);
        printf("#   %s\n", write);
    }
    puts(json_array_size(r->files) ? "# read from:" : "# Looked for:");
    put_list("", json_array_size(r->files) ? r->files : r->looked);
    if (json_array_size(r->notes))
        puts("# and left out:");
    put_list("", r->notes);
}

static int print_found(const char *name, const char *client, json_t *to)
{
    struct registries r = {0};
    struct err err = {0};
    int bad = registries_find(client, &r, &err);
    if (bad < 0)
        out_error("%s", err.text);
    else if (to)
        json_object_set_new(to, "found",
                            json_pack("{s:O, s:O, s:O, s:O}", "hosts", r.places, "files", r.files,
                                      "looked", r.looked, "left_out", r.notes));
    else
        put_found(&r, name);
    registries_done(&r);
    return bad;
}

int preset_print(const char *name, bool json)
{
    char client[PRESET_WORD_MAX];
    const char *text = preset_text(name);
    if (text == NULL) {
        char names[PRESET_NAMES_MAX];
        preset_names(names, sizeof names);
        out_error("there is no preset '%s'; there are %s", name, names);
        return EXIT_NO;
    }
    if (json) {
        struct err err = {0};
        json_t *tree, *lines;
        if (yaml_tree_parse(slice_str(text), name, &tree, &lines, &err) < 0) {
            out_error("%s", err.text);
            return EXIT_NO;
        }
        json_decref(lines);
        json_t *all = json_pack("{s:s, s:o}", "preset", name, "stands_for", tree);
        if (preset_says(name, "found", client) && print_found(name, client, all) < 0) {
            json_decref(all);
            return EXIT_NO;
        }
        return out_json(all) < 0 ? EXIT_NO : EXIT_OK;
    }
    fputs(text, stdout);
    if (preset_says(name, "found", client) && print_found(name, client, NULL) < 0)
        return EXIT_NO;
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

static int run_ls(int argc, char **argv)
{
    struct args a = {.cmd = &preset_verbs[0], .argc = argc, .argv = argv};
    int code = args_plain(&a, 0, 0, "");
    if (code != ARGS_END)
        return code;
    json_t *all = json_array();
    for (size_t i = 0; preset_name(i); i++) {
        if (!a.json)
            puts(preset_name(i));
        json_array_append_new(all, json_string(preset_name(i)));
    }
    int r = a.json ? out_json(json_pack("{s:O}", "presets", all)) : out_flush();
    json_decref(all);
    return r < 0 ? EXIT_NO : EXIT_OK;
}

static int run_show(int argc, char **argv)
{
    struct args a = {.cmd = &preset_verbs[1], .argc = argc, .argv = argv};
    int code = args_plain(&a, 1, 1, "a preset's name is needed");
    return code != ARGS_END ? code : preset_print(argv[a.next], a.json);
}

const struct command command_preset = {
    .name = "preset",
    .usage = "ls|show [OPTION...]",
    .summary = "List or print presets.",
    .verbs = preset_verbs,
};
