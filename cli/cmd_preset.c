/* durward preset ls|show: the rules that `use: NAME` stands for. Nothing is asked or sent. */
#include "commands.h"
#include "config.h"
#include "out.h"
#include "yaml_tree.h"

#include <string.h>

static int run_ls(int argc, char **argv);
static int run_show(int argc, char **argv);

const struct command preset_verbs[] = {
    {"preset ls", "[--json]", "List the presets.", NULL, NULL, run_ls},
    {"preset show", "[--json] NAME", "Print what `use: NAME` stands for.", NULL,
     "{{secret}} is the secret's name; {{api}} and the like are the hosts, which `preset_hosts` of "
     "a\n"
     "rule names anew. Example: durward preset show github\n",
     run_show},
    {0},
};

int preset_print(const char *name, bool json)
{
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
        return out_json(json_pack("{s:s, s:o}", "preset", name, "stands_for", tree)) < 0 ? EXIT_NO
                                                                                         : EXIT_OK;
    }
    fputs(text, stdout);
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
