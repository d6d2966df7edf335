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

static const struct command *verbs_of(const struct command *c)
{
    static const struct {
        const char *command;
        const struct command *verbs;
    } known[] = {{"approve", approve_verbs}, {"audit", audit_verbs},     {"ca", ca_verbs},
                 {"image", image_verbs},     {"sandbox", sandbox_verbs}, {"secret", secret_verbs},
                 {"token", token_verbs}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(known[i].command, c->name) == 0)
            return known[i].verbs;
    return NULL;
}

/* A command's verbs as one text, "tail query verify"; "" when it has none. */
static const char *verbs(const struct command *c, char *buf, size_t size)
{
    size_t at = 0;
    buf[0] = 0;
    if (c == &command_completion)
        snprintf(buf, size, "bash zsh fish");
    for (const struct command *v = verbs_of(c); v && v->name && at < size; v++)
        if (v->usage[0]) /* without one it is not built yet */
            at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? " " : "",
                                   strchr(v->name, ' ') + 1);
    return buf;
}

/* What a verb itself begins with. */
static const struct {
    const char *command, *verb, *words;
} further[] = {{"sandbox", "snapshot", "ls rm export import"}};

/* No verb before `end` has an option of this name. */
static bool is_new(const struct command *from, const struct command *end, const char *name)
{
    for (; from != end; from++)
        for (const struct arg_option *o = from->options; o && o->id; o++)
            if (strcmp(o->name, name) == 0)
                return false;
    return true;
}

/* Each option of a command, and of its verbs, once. */
static void each_option(const struct command *c,
                        void (*fn)(const struct command *c, const struct arg_option *o))
{
    const struct command *first = verbs_of(c);
    for (const struct arg_option *o = c->options; o && o->id; o++)
        fn(c, o);
    for (const struct command *v = first; v && v->name; v++)
        for (const struct arg_option *o = v->options; o && o->id; o++)
            if (is_new(first, v, o->name))
                fn(c, o);
}

/* ---- bash ---- */

static void bash_option(const struct command *c UNUSED, const struct arg_option *o)
{
    printf(" --%s", o->name);
}

static void bash(void)
{
    char list[200];
    printf("_durward() {\n    local cur=${COMP_WORDS[COMP_CWORD]} words=\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words=\"--help --version");
    for (const struct command *const *c = commands; *c; c++)
        printf(" %s", (*c)->name);
    printf("\"\n    else\n        case ${COMP_WORDS[1]} in\n");
    for (const struct command *const *c = commands; *c; c++) {
        printf("        %s) words=\"%s", (*c)->name, verbs(*c, list, sizeof list));
        each_option(*c, bash_option);
        printf(" --help --json --socket\" ;;\n");
    }
    printf("        esac\n    fi\n    if [ \"$COMP_CWORD\" -eq 3 ]; then\n"
           "        case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in\n");
    for (size_t i = 0; i < ARRAY_LEN(further); i++)
        printf("        \"%s %s\") words=\"%s $words\" ;;\n", further[i].command, further[i].verb,
               further[i].words);
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

static void zsh_option(const struct command *c UNUSED, const struct arg_option *o)
{
    printf(" '*--%s[", o->name);
    quoted(o->help);
    printf("]%s'", o->value ? ":value:_files" : "");
}

static void zsh(void)
{
    char list[200];
    printf("#compdef durward\n_durward() {\n    if (( CURRENT == 2 )); then\n"
           "        local -a list=(\n");
    for (const struct command *const *c = commands; *c; c++) {
        printf("            '%s:", (*c)->name);
        quoted((*c)->summary);
        printf("'\n");
    }
    printf("        )\n        _describe command list\n        return\n    fi\n"
           "    local -a more=()\n    case \"${words[2]} ${words[3]}\" in\n");
    for (size_t i = 0; i < ARRAY_LEN(further); i++)
        printf("    '%s %s') more=('3:what:(%s)') ;;\n", further[i].command, further[i].verb,
               further[i].words);
    printf("    esac\n    case ${words[2]} in\n");
    for (const struct command *const *c = commands; *c; c++) {
        printf(
            "    %s) _arguments '--help[help]' '--json[JSON]' '--socket[API socket]:path:_files'",
            (*c)->name);
        each_option(*c, zsh_option);
        if (*verbs(*c, list, sizeof list))
            printf(" '2:verb:(%s)'", list);
        printf(" $more '*:file:_files' ;;\n");
    }
    printf("    esac\n}\n_durward \"$@\"\n");
}

static void fish_option(const struct command *c, const struct arg_option *o)
{
    printf("complete -c durward -n '__durward_is %s' -l %s%s -d '", c->name, o->name,
           o->value ? " -r" : "");
    quoted(o->help);
    printf("'\n");
}

/* Names of commands are also those of verbs (`test`): what counts is where a word stands. */
static void fish(void)
{
    char list[200];
    printf("function __durward_is\n    set -l words (commandline -opc)\n"
           "    test \"$words[2]\" = $argv[1]; or return 1\n"
           "    test (count $argv) -eq 1; or test (count $words) -eq $argv[2]\nend\n");
    for (const struct command *const *c = commands; *c; c++) {
        printf("complete -c durward -n 'test (count (commandline -opc)) -eq 1' -f -a %s -d '",
               (*c)->name);
        quoted((*c)->summary);
        printf("'\n");
        if (*verbs(*c, list, sizeof list))
            printf("complete -c durward -n '__durward_is %s 2' -f -a '%s'\n", (*c)->name, list);
        each_option(*c, fish_option);
    }
    for (size_t i = 0; i < ARRAY_LEN(further); i++)
        printf("complete -c durward -n '__fish_seen_subcommand_from %s; "
               "and __fish_seen_subcommand_from %s' -a '%s'\n",
               further[i].command, further[i].verb, further[i].words);
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
