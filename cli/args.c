#include "args.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slice.h"

enum { OPTIONS_MAX = 32, ID_JSON = 1001, ID_SOCKET = 1002 };

static const struct arg_option common[] = {
    {'h', "help", NULL, "show this and exit"},
    {ID_JSON, "json", NULL, "answer in JSON"},
    {ID_SOCKET, "socket", "PATH|URL", "the daemon's API ($DURWARD_SOCKET, $DURWARD_URL)"},
    {0},
};

static void help_options(const struct arg_option *o)
{
    for (; o && o->id; o++) {
        char left[64];
        snprintf(left, sizeof left, "%c%c%s--%s%s%s", o->id < 256 ? '-' : ' ',
                 o->id < 256 ? o->id : ' ', o->id < 256 ? ", " : "  ", o->name, o->value ? " " : "",
                 o->value ? o->value : "");
        printf("  %-28s %s\n", left, o->help);
    }
}

void args_help(const struct command *cmd)
{
    printf("usage: durward %s %s\n\n%s\n\noptions:\n", cmd->name, cmd->usage, cmd->summary);
    help_options(cmd->options);
    help_options(common);
    if (cmd->more)
        printf("\n%s", cmd->more);
}

int args_usage(const struct command *cmd, const char *fmt, ...)
{
    va_list ap;
    fprintf(stderr, "durward %s: ", cmd->name);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\nusage: durward %s %s\nSee 'durward %s --help'.\n", cmd->name, cmd->usage,
            cmd->name);
    return EXIT_USAGE;
}

static size_t add_options(const struct arg_option *o, struct option *longs, size_t n, char *shorts)
{
    size_t at = strlen(shorts);
    for (; o && o->id && n < OPTIONS_MAX; o++, n++) {
        longs[n] =
            (struct option){o->name, o->value ? required_argument : no_argument, NULL, o->id};
        if (o->id < 256) {
            shorts[at++] = (char)o->id;
            if (o->value)
                shorts[at++] = ':';
        }
    }
    shorts[at] = 0;
    return n;
}

static int stop(struct args *a, int code)
{
    a->exit_code = code;
    return ARGS_STOP;
}

static int bad_option(struct args *a, int kind)
{
    if (kind == ':')
        return stop(a, args_usage(a->cmd, "%s needs a value", a->argv[optind - 1]));
    const char *word = a->argv[optind - 1], *equals = strchr(word, '=');
    if (optopt && equals && strncmp(word, "--", 2) == 0)
        return stop(a, args_usage(a->cmd, "%.*s takes no value", (int)(equals - word), word));
    if (optopt && optopt < 256)
        return stop(a, args_usage(a->cmd, "unknown option -%c", optopt));
    return stop(a, args_usage(a->cmd, "unknown option %s", a->argv[optind - 1]));
}

int args_next(struct args *a)
{
    struct option longs[OPTIONS_MAX + 1] = {0};
    char shorts[4 + 2 * OPTIONS_MAX];
    snprintf(shorts, sizeof shorts, "%s:", a->in_order ? "+" : "");
    size_t n = add_options(a->cmd->options, longs, 0, shorts);
    add_options(common, longs, n, shorts);
    if (a->next == 0) { /* first call */
        optind = 0;
        a->next = 1;
        const char *env = getenv("DURWARD_URL"); /* of a daemon elsewhere */
        if (env == NULL || *env == 0)
            env = getenv("DURWARD_SOCKET");
        a->socket = env && *env ? env : NULL;
    }
    opterr = 0;
    for (;;) {
        int id = getopt_long(a->argc, a->argv, shorts, longs, NULL);
        a->value = optarg;
        switch (id) {
        case -1:
            a->next = optind;
            return ARGS_END;
        case '?':
        case ':':
            return bad_option(a, id);
        case 'h':
            args_help(a->cmd);
            return stop(a, EXIT_OK);
        case ID_JSON:
            a->json = true;
            break;
        case ID_SOCKET:
            a->socket = optarg;
            break;
        default:
            return id;
        }
    }
}

int args_duration(const char *text, unsigned max, unsigned *ret)
{
    struct slice s = slice_str(text);
    uint64_t scale = 1, v;
    char unit = s.n ? s.p[s.n - 1] : 0;
    if (unit == 's' || unit == 'm' || unit == 'h' || unit == 'd') {
        scale = unit == 'd' ? 86400 : unit == 'h' ? 3600 : unit == 'm' ? 60 : 1;
        s.n--;
    }
    if (slice_u64(s, max, &v) < 0 || v == 0 || v * scale > max)
        return -1;
    *ret = (unsigned)(v * scale);
    return 0;
}
