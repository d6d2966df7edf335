/* durward completion: words for the shell, made from the same tables as --help. */
#include <string.h>

#include "commands.h"
#include "out.h"
#include "settings.h"
#include "which.h"

static int cmd_completion(int argc, char **argv);

struct asked {
    const char *kind;
};

static const struct arg_option options[] = {
    {0, "list", "KIND", "what is there now, a line each: for the shell's completion",
     offsetof(struct asked, kind)},
    {0},
};

const struct command command_completion = {
    "completion",
    "bash|zsh|fish",
    "Print completions for a shell.",
    options,
    "bash: source <(durward completion bash)\n"
    "zsh:  durward completion zsh > \"${fpath[1]}/_durward\"\n"
    "fish: durward completion fish > ~/.config/fish/completions/durward.fish\n\n"
    "They ask this command for names as they are needed: --list sandboxes, approvals, proposals, "
    "suppressions,\n"
    "tokens, snapshots, volumes, templates (of the daemon), policies, presets, secrets (of the "
    "configuration),\nimages, profiles, homes, commands, records (their kinds).\n",
    cmd_completion,
};

/* A command's verbs as one text, "tail query verify"; "" when it has none. */
static const char *verbs(const struct command *c, char *buf, size_t size)
{
    size_t at = 0;
    buf[0] = 0;
    if (c == &command_completion)
        snprintf(buf, size, "bash zsh fish");
    for (const struct command *v = c->verbs; v && v->name && at < size; v++)
        if (v->usage[0]) /* without one it is not built yet */
            at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? " " : "",
                                   strchr(v->name, ' ') + 1);
    return buf;
}

/* What a word after a verb (or after a command without one) is of: KIND of --list. */
static const struct {
    const char *command, *verb, *kind;
} things[] = {
    {"sandbox", "show", "sandboxes"},
    {"sandbox", "exec", "sandboxes"},
    {"sandbox", "attach", "sandboxes"},
    {"sandbox", "cp", "sandboxes"},
    {"sandbox", "watch", "sandboxes"},
    {"sandbox", "sync", "sandboxes"},
    {"sandbox", "forward", "sandboxes"},
    {"sandbox", "services", "sandboxes"},
    {"sandbox", "preview", "sandboxes"},
    {"sandbox", "rm", "sandboxes"},
    {"sandbox", "pause", "sandboxes"},
    {"sandbox", "stop", "sandboxes"},
    {"sandbox", "resume", "sandboxes"},
    {"sandbox", "snapshot", "sandboxes"},
    {"sandbox", "restore", "sandboxes"},
    {"sandbox", "fork", "sandboxes"},
    {"approve", "allow", "approvals"},
    {"approve", "deny", "approvals"},
    {"token", "revoke", "tokens"},
    {"preset", "show", "presets"},
    {"secret", "test", "secrets"},
    {"proposals", "show", "proposals"},
    {"proposals", "accept", "proposals"},
    {"proposals", "reject", "proposals"},
    {"logs", NULL, "sandboxes"},
    {"trace", NULL, "sandboxes"},
    {"volume", "show", "volumes"},
    {"volume", "rm", "volumes"},
    {"volume", "snapshot", "volumes"},
    {"volume", "restore", "volumes"},
    {"volume", "clone", "volumes"},
    {"volume", "export", "volumes"},
    {"template", "show", "templates"},
    {"suppressions", "show", "suppressions"},
    {"suppressions", "accept", "suppressions"},
    {"suppressions", "lift", "suppressions"},
    {"image", "rm", "images"},
    {"profile", "show", "profiles"},
    {"home", "logout", "homes"},
    {"home", "renew", "homes"},
    {"home", "rm", "homes"},
    {"help", NULL, "commands"},
};

/* And the value of an option, whatever command has it. */
static const struct {
    const char *option, *kind;
} values[] = {{"policy", "policies"},       {"sandbox", "sandboxes"},
              {"snapshot", "snapshots"},    {"use", "presets"},
              {"preset", "presets"},        {"template", "templates"},
              {"image", "images"},          {"profile", "profiles"},
              {"from", "profiles"},         {"home", "homes"},
              {"backend", "backends"},      {"on-idle", "idle-ends"},
              {"on-soft-ttl", "soft-ends"}, {"direction", "directions"},
              {"scope", "scopes"},          {"access", "access"},
              {"credential", "secrets"},    {"format", "formats"},
              {"kind", "records"},          {"decision", "records"}};

/* Kinds whose words are always the same. */
static const struct {
    const char *kind, *words[8];
} fixed[] = {{"backends", {"bwrap", "docker", "gvisor", "kubernetes", "microvm"}},
             {"scopes", {"read", "sandboxes", "exec", "approvals", "identities", "admin"}},
             {"idle-ends", {"delete", "pause", "stop"}},
             {"soft-ends", {"stop", "pause"}},
             {"directions", {"both", "in", "out"}},
             {"formats", {"shell", "dotenv", "docker", "json", "github-actions"}},
             {"records", {"allow", "deny"}}, /* and the kinds of records */
             {"access", {"one", "many"}}};

static const char *kind_of_value(const struct arg_option *o)
{
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        if (o->value && strcmp(values[i].option, o->name) == 0)
            return values[i].kind;
    return NULL;
}

/* What a verb itself begins with. */
static const struct {
    const char *command, *verb, *words;
} further[] = {{"sandbox", "snapshot", "ls rm export import"}};

/* No verb before `end` has an option of this name. */
static bool is_new(const struct command *from, const struct command *end, const char *name)
{
    for (; from != end; from++)
        for (const struct arg_option *o = from->options; o && o->name; o++)
            if (strcmp(o->name, name) == 0)
                return false;
    return true;
}

/* Each option of a command, and of its verbs, once. */
static void each_option(const struct command *c,
                        void (*fn)(const struct command *c, const struct arg_option *o))
{
    const struct command *first = c->verbs;
    for (const struct arg_option *o = c->options; o && o->name; o++)
        fn(c, o);
    for (const struct command *v = first; v && v->name; v++)
        for (const struct arg_option *o = v->options; o && o->name; o++)
            if (is_new(first, v, o->name))
                fn(c, o);
}

/* ---- bash ---- */

/* `help COMMAND`: that command's verbs. */
static void bash_help(void)
{
    char list[200];
    printf("    if [ \"${COMP_WORDS[1]}\" = help ] && [ \"$COMP_CWORD\" -gt 2 ]; then\n"
           "        kind=\n        case \"$COMP_CWORD ${COMP_WORDS[2]}\" in\n");
    for (const struct command *const *c = commands; *c; c++)
        if ((*c)->verbs && *verbs(*c, list, sizeof list))
            printf("        \"3 %s\") words=\"%s\" ;;\n", (*c)->name, list);
    printf("        esac\n    fi\n");
}

/* `run PROFILE`, also behind an option's value. */
static void bash_run(void)
{
    printf("    if [ \"${COMP_WORDS[1]}\" = run ] && [ \"${cur#-}\" = \"$cur\" ]; then\n"
           "        case \"$COMP_CWORD ${COMP_WORDS[COMP_CWORD-2]}\" in\n"
           "        \"2 \"*");
    for (const struct arg_option *o = command_run.options; o->name; o++)
        if (o->value)
            printf("|*\" --%s\"", o->name);
    printf(") kind=profiles ;;\n        esac\n    fi\n");
}

static void bash_option(const struct command *c UNUSED, const struct arg_option *o)
{
    printf(" --%s", o->name);
}

static void bash(void)
{
    char list[200];
    printf("_durward() {\n    local cur=${COMP_WORDS[COMP_CWORD]} words=\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words=\"help --help --version");
    for (const struct command *const *c = commands; *c; c++)
        printf(" %s", (*c)->name);
    printf("\"\n    else\n        case ${COMP_WORDS[1]} in\n");
    for (const struct command *const *c = commands; *c; c++) {
        printf("        %s)\n", (*c)->name);
        if (*verbs(*c, list, sizeof list))
            printf("            [ \"$COMP_CWORD\" -ne 2 ] || words=\"%s\"\n", list);
        printf("            [ \"${cur#-}\" = \"$cur\" ] || words=\"$words");
        each_option(*c, bash_option);
        printf(" --help --json --socket\" ;;\n");
    }
    printf("        esac\n    fi\n    if [ \"$COMP_CWORD\" -eq 3 ]; then\n"
           "        case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in\n");
    for (size_t i = 0; i < ARRAY_LEN(further); i++)
        printf("        \"%s %s\") words=\"%s $words\" ;;\n", further[i].command, further[i].verb,
               further[i].words);
    printf("        esac\n    fi\n    local kind=\n"
           "    case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in\n");
    for (size_t i = 0; i < ARRAY_LEN(things); i++)
        printf("    \"%s \"%s) [ \"$COMP_CWORD\" -lt %d ] || kind=%s ;;\n", things[i].command,
               things[i].verb ? things[i].verb : "*", things[i].verb ? 3 : 2, things[i].kind);
    printf("    esac\n");
    bash_help();
    bash_run();
    printf("    case ${COMP_WORDS[COMP_CWORD-1]} in\n");
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        printf("    --%s) kind=%s words= ;;\n", values[i].option, values[i].kind);
    printf("    esac\n"
           "    [ -z \"$kind\" ] ||\n"
           "        words=\"$words $(\"${COMP_WORDS[0]}\" completion --list $kind 2>/dev/null)\"\n"
           "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
           "}\n"
           "complete -o bashdefault -o default -F _durward durward\n");
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
    const char *kind = kind_of_value(o);
    if (kind)
        printf("]:value:{compadd -- $(durward completion --list %s 2>/dev/null)}'", kind);
    else
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
    for (const struct command *const *c = commands; *c; c++)
        if ((*c)->verbs && *verbs(*c, list, sizeof list))
            printf("    'help %s') more=('2:command:(%s)' '3:verb:(%s)') ;;\n", (*c)->name,
                   (*c)->name, list);
    printf("    'run '*) more=('2:profile or command:{compadd -- $(durward completion --list "
           "profiles 2>/dev/null); _command_names -e; _files}' '*:file:_files') ;;\n");
    for (size_t i = 0; i < ARRAY_LEN(things); i++)
        printf("    '%s '%s) more+=('*:id:{compadd -- $(durward completion --list %s "
               "2>/dev/null)}') ;;\n",
               things[i].command, things[i].verb ? things[i].verb : "*", things[i].kind);
    printf("    esac\n    [[ $#more -gt 0 ]] || more=('*:file:_files')\n    case ${words[2]} in\n");
    for (const struct command *const *c = commands; *c; c++) {
        printf(
            "    %s) _arguments '--help[help]' '--json[JSON]' '--socket[API socket]:path:_files'",
            (*c)->name);
        each_option(*c, zsh_option);
        if (*verbs(*c, list, sizeof list))
            printf(" '2:verb:(%s)'", list);
        printf(" $more ;;\n");
    }
    printf("    esac\n}\n_durward \"$@\"\n");
}

static void fish_option(const struct command *c, const struct arg_option *o)
{
    const char *kind = kind_of_value(o);
    printf("complete -c durward -n '__durward_is %s' -l %s%s", c->name, o->name,
           o->value ? " -r" : "");
    if (kind)
        printf(" -f -a '(durward completion --list %s 2>/dev/null)'", kind);
    printf(" -d '");
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
        if ((*c)->verbs && *list)
            printf("complete -c durward -n '__durward_is help 3; and test (commandline -opc)[3] = "
                   "%s' -f -a '%s'\n",
                   (*c)->name, list);
        each_option(*c, fish_option);
    }
    printf("complete -c durward -n '__durward_is run 2' -a '(durward completion --list profiles "
           "2>/dev/null)'\n");
    for (size_t i = 0; i < ARRAY_LEN(further); i++)
        printf("complete -c durward -n '__fish_seen_subcommand_from %s; "
               "and __fish_seen_subcommand_from %s' -a '%s'\n",
               further[i].command, further[i].verb, further[i].words);
    for (size_t i = 0; i < ARRAY_LEN(things); i++)
        printf("complete -c durward -n '__durward_is %s%s%s' -f "
               "-a '(durward completion --list %s 2>/dev/null)'\n",
               things[i].command, things[i].verb ? "; and __fish_seen_subcommand_from " : " 2",
               things[i].verb ? things[i].verb : "", things[i].kind);
    printf("complete -c durward -l help -d 'show help'\ncomplete -c durward -l json -d 'JSON'\n"
           "complete -c durward -l socket -r -d 'API socket'\n");
}

/* ---- what is there ---- */

/* A shell expands these words: only those in which there is nothing to expand. */
static void put_word(const char *word)
{
    size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
    if (n > 0 && word[n] == 0)
        printf("%s\n", word);
}

static int list_things(const char *socket, enum which_kind k, struct err *err)
{
    json_t *list = which_list(socket, k, err);
    size_t i;
    const json_t *o;
    json_array_foreach(list, i, o)
    {
        put_word(out_member(o, "id"));
        put_word(out_member(o, "name"));
    }
    json_decref(list);
    return list ? 0 : -1;
}

/* Of the configuration; without one there are none. */
static int list_configured(bool policies, struct err *err)
{
    struct config *c;
    size_t n;
    if (settings_load_if_any(NULL, &c, err) < 0)
        return -1;
    for (size_t i = 0; c && policies && i < config_policies(c); i++)
        put_word(config_policy_name(c, i));
    const struct config_secret *s = c && !policies ? config_secrets(c, &n) : NULL;
    for (size_t i = 0; s && i < n; i++)
        if (!s[i].hidden)
            put_word(s[i].name);
    config_unref(c);
    return 0;
}

static int list(const struct args *a, const char *kind)
{
    static const struct {
        const char *kind;
        enum which_kind of;
    } asked[] = {{"sandboxes", WHICH_SANDBOX},        {"approvals", WHICH_APPROVAL},
                 {"proposals", WHICH_PROPOSAL},       {"tokens", WHICH_TOKEN},
                 {"snapshots", WHICH_SNAPSHOT},       {"volumes", WHICH_VOLUME},
                 {"suppressions", WHICH_SUPPRESSION}, {"templates", WHICH_TEMPLATE}};
    static const struct {
        const char *kind;
        const struct command *of;
    } named[] = {{"images", &command_image},
                 {"profiles", &command_profile},
                 {"homes", &command_home},
                 {"records", &command_audit}};
    struct err err = {0};
    int r = 1;
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        for (size_t w = 0; strcmp(fixed[i].kind, kind) == 0 && fixed[i].words[w]; w++) {
            put_word(fixed[i].words[w]);
            r = 0;
        }
    for (size_t i = 0; i < ARRAY_LEN(named); i++)
        if (strcmp(named[i].kind, kind) == 0)
            r = named[i].of->names(put_word);
    for (size_t i = 0; strcmp(kind, "commands") == 0 && commands[i]; i++, r = 0)
        put_word(commands[i]->name);
    for (size_t i = 0; i < ARRAY_LEN(asked); i++)
        if (strcmp(asked[i].kind, kind) == 0)
            r = list_things(a->socket, asked[i].of, &err);
    if (strcmp(kind, "policies") == 0 || strcmp(kind, "secrets") == 0)
        r = list_configured(kind[0] == 'p', &err);
    if (strcmp(kind, "presets") == 0)
        for (size_t i = r = 0; preset_name(i); i++)
            put_word(preset_name(i));
    if (r > 0)
        return args_usage(a->cmd, "there is no list of %s", kind);
    return r < 0 ? out_fail(&err) : out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

static int cmd_completion(int argc, char **argv)
{
    struct args a = {.cmd = &command_completion, .argc = argc, .argv = argv};
    struct asked asked = {0};
    int code = args_into(&a, &asked);
    if (code != ARGS_END)
        return code;
    if (asked.kind)
        return list(&a, asked.kind);
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
