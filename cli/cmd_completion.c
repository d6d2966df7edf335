/* durward completion: words for the shell, made from the same tables as --help. */
#include <string.h>

#include "commands.h"
#include "out.h"

static int cmd_completion(int argc, char **argv);

static const struct arg_option options[] = {{0}};

const struct command command_completion = {
    "completion",
    "bash|zsh|fish",
    "Print completions for a shell.",
    options,
    "bash: source <(durward completion bash)\n"
    "zsh:  durward completion zsh > \"${fpath[1]}/_durward\"\n"
    "fish: durward completion fish > ~/.config/fish/completions/durward.fish\n",
    cmd_completion,
};

/* Sub-verbs of the commands that parse by themselves. */
static const char *verbs(const char *command)
{
    static const struct {
        const char *command, *verbs;
    } known[] = {{"audit", "tail query verify"},
                 {"ca", "show export"},
                 {"secret", "ls test"},
                 {"completion", "bash zsh fish"}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(known[i].command, command) == 0)
            return known[i].verbs;
    return NULL;
}

static void bash(void)
{
    printf("_durward() {\n    local cur=${COMP_WORDS[COMP_CWORD]} words=\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words=\"--help --version");
    for (const struct command *const *c = commands; *c; c++)
        printf(" %s", (*c)->name);
    printf("\"\n    else\n        case ${COMP_WORDS[1]} in\n");
    for (const struct command *const *c = commands; *c; c++) {
        printf("        %s) words=\"%s", (*c)->name, verbs((*c)->name) ? verbs((*c)->name) : "");
        for (const struct arg_option *o = (*c)->options; o && o->id; o++)
            printf(" --%s", o->name);
        printf(" --help --json --socket\" ;;\n");
    }
    printf("        esac\n    fi\n"
           "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
           "    [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- \"$cur\"))\n}\n"
           "complete -F _durward durward\n");
}

/* Text inside single quotes and zsh's [..]: our own help lines hold none of these but to be sure.
 */
static void quoted(const char *s)
{
    for (; *s; s++)
        putchar(strchr("'[]:\\", *s) ? ' ' : *s);
}

static void zsh(void)
{
    printf("#compdef durward\n_durward() {\n    if (( CURRENT == 2 )); then\n"
           "        local -a list=(\n");
    for (const struct command *const *c = commands; *c; c++) {
        printf("            '%s:", (*c)->name);
        quoted((*c)->summary);
        printf("'\n");
    }
    printf("        )\n        _describe command list\n        return\n    fi\n"
           "    case ${words[2]} in\n");
    for (const struct command *const *c = commands; *c; c++) {
        printf(
            "    %s) _arguments '--help[help]' '--json[JSON]' '--socket[API socket]:path:_files'",
            (*c)->name);
        for (const struct arg_option *o = (*c)->options; o && o->id; o++) {
            printf(" '*--%s[", o->name);
            quoted(o->help);
            printf("]%s'", o->value ? ":value:_files" : "");
        }
        if (verbs((*c)->name))
            printf(" '2:verb:(%s)'", verbs((*c)->name));
        printf(" '*:file:_files' ;;\n");
    }
    printf("    esac\n}\n_durward \"$@\"\n");
}

static void fish(void)
{
    for (const struct command *const *c = commands; *c; c++) {
        printf("complete -c durward -n __fish_use_subcommand -f -a %s -d '", (*c)->name);
        quoted((*c)->summary);
        printf("'\n");
        if (verbs((*c)->name))
            printf("complete -c durward -n '__fish_seen_subcommand_from %s' -a '%s'\n", (*c)->name,
                   verbs((*c)->name));
        for (const struct arg_option *o = (*c)->options; o && o->id; o++) {
            printf("complete -c durward -n '__fish_seen_subcommand_from %s' -l %s%s -d '",
                   (*c)->name, o->name, o->value ? " -r" : "");
            quoted(o->help);
            printf("'\n");
        }
    }
    printf("complete -c durward -l help -d 'show help'\ncomplete -c durward -l json -d 'JSON'\n"
           "complete -c durward -l socket -r -d 'API socket'\n");
}

static int cmd_completion(int argc, char **argv)
{
    struct args a = {.cmd = &command_completion, .argc = argc, .argv = argv};
    if (args_next(&a) == ARGS_STOP)
        return a.exit_code;
    if (a.next + 1 != argc)
        return args_usage(a.cmd, "for which shell?");
    if (strcmp(argv[a.next], "bash") == 0)
        bash();
    else if (strcmp(argv[a.next], "zsh") == 0)
        zsh();
    else if (strcmp(argv[a.next], "fish") == 0)
        fish();
    else
        return args_usage(a.cmd, "bash, zsh or fish, not %s", argv[a.next]);
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}
