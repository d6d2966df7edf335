/* Reads options with getopt_long by a command's table and the common one, and prints --help from
 * the same tables. */
#include "args.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nearest.h"
#include "slice.h"

enum { OPTIONS_MAX = 32, ID_JSON = 1001, ID_SOCKET, ID_PLACES };

static const struct arg_option common[] = {
    {'h', "help", NULL, "show this and exit"},
    {ID_JSON, "json", NULL, "answer in JSON"},
    {ID_SOCKET, "socket", "PATH|URL", "the daemon's API ($DURWARD_SOCKET, $DURWARD_URL)"},
    {0},
};

static bool is_letter(const struct arg_option *o)
{
    return o->id > 0 && o->id < 256;
}

static void help_options(const struct arg_option *o)
{
    for (; o && o->name; o++) {
        char left[64];
        bool letter = is_letter(o);
        snprintf(left, sizeof left, "%c%c%s--%s%s%s", letter ? '-' : ' ', letter ? o->id : ' ',
                 letter ? ", " : "  ", o->name, o->value ? " " : "", o->value ? o->value : "");
        printf("  %-28s %s\n", left, o->help);
    }
}

const struct command *args_verb(const struct command *verbs, const char *name)
{
    while (strcmp(verbs->name, name) != 0)
        verbs++;
    return verbs;
}

const char *args_verb_word(const struct command *verb)
{
    const char *space = strchr(verb->name, ' ');
    return space ? space + 1 : verb->name;
}

static void help_verbs(const struct command *cmd)
{
    if (cmd->verbs == NULL)
        return;
    printf("\nverbs:\n");
    for (const struct command *v = cmd->verbs; v->name; v++)
        printf("  %-10s %s\n", args_verb_word(v), v->summary);
    printf("\n'durward %s --help' and so on tell more of each.\n", cmd->verbs->name);
}

void args_help(const struct command *cmd)
{
    printf("usage: durward %s %s\n\n%s\n\noptions:\n", cmd->name, cmd->usage, cmd->summary);
    help_options(cmd->options);
    help_options(common);
    help_verbs(cmd);
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
    for (int place = 0; o && o->name && n < OPTIONS_MAX; o++, n++, place++) {
        longs[n] = (struct option){o->name, o->value ? required_argument : no_argument, NULL,
                                   o->id ? o->id : ID_PLACES + place};
        if (is_letter(o)) {
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

/* The options of a command, then the common ones. */
static const char *option_name(size_t i, const void *arg)
{
    const struct arg_option *o = ((const struct command *)arg)->options;
    for (; o && o->name; o++, i--)
        if (i == 0)
            return o->name;
    return common[i].name;
}

/* "--polcy" → "policy"; NULL. */
static const char *nearest_option(const struct command *cmd, const char *word)
{
    char name[64];
    size_t n = ARRAY_LEN(common) - 1;
    for (const struct arg_option *o = cmd->options; o && o->name; o++)
        n++;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    ssize_t best = nearest(name, n, option_name, cmd);
    return best < 0 ? NULL : option_name((size_t)best, cmd);
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
    const char *near = strncmp(word, "--", 2) == 0 ? nearest_option(a->cmd, word) : NULL;
    return stop(a, args_usage(a->cmd, "unknown option %s%s%s%s", word,
                              near ? "; did you mean --" : "", near ? near : "", near ? "?" : ""));
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

/* The row of what args_next returned. */
static const struct arg_option *row_of(const struct args *a, int id)
{
    const struct arg_option *o = a->cmd->options;
    for (int place = 0; (o->id ? o->id : ID_PLACES + place) != id; place++)
        o++;
    return o;
}

int args_into(struct args *a, void *asked)
{
    int id;
    while ((id = args_next(a)) >= 0) {
        const struct arg_option *o = row_of(a, id);
        if (o->value)
            *(const char **)((char *)asked + o->into) = a->value;
        else
            *(bool *)((char *)asked + o->into) = true;
    }
    return id == ARGS_STOP ? a->exit_code : ARGS_END;
}

/* How many words are left; ARGS_END, or a usage error. */
static int words_fit(const struct args *a, int least, int most, const char *what)
{
    int n = a->argc - a->next;
    if (n < least)
        return args_usage(a->cmd, "%s", what);
    if (n > most)
        return args_usage(a->cmd, "unexpected argument %s", a->argv[a->next + most]);
    return ARGS_END;
}

/* What is there of this key; if nothing is, `made`. */
static json_t *member(json_t *body, const char *key, json_t *made)
{
    json_t *there = json_object_get(body, key);
    if (there) {
        json_decref(made);
        return there;
    }
    json_object_set_new(body, key, made);
    return made;
}

static int put_pair(const struct args *a, const struct arg_option *o, json_t *body)
{
    char name[256];
    size_t n = strcspn(a->value, "=");
    json_t *pairs = member(body, o->key, json_object());
    if (n == 0 || n >= sizeof name || a->value[n] == 0)
        return is_letter(o) ? args_usage(a->cmd, "-%c must be NAME=VALUE", o->id)
                            : args_usage(a->cmd, "--%s must be NAME=VALUE", o->name);
    snprintf(name, sizeof name, "%.*s", (int)n, a->value);
    return json_object_set_new(pairs, name, json_string(a->value + n + 1));
}

static int put_time(const struct args *a, const struct arg_option *o, json_t *body)
{
    unsigned seconds = 0;
    bool none = o->member == ARG_TIME_OR_NONE && strcmp(a->value, "0") == 0;
    if (!none && args_duration(a->value, o->most, &seconds) < 0)
        return args_usage(a->cmd, "--%s: %s is not a time such as 90s, 15m or 24h, at most %uh",
                          o->name, a->value, o->most / 3600);
    return json_object_set_new(body, o->key, json_integer(seconds));
}

static int put_number(const struct args *a, const struct arg_option *o, json_t *body)
{
    uint64_t number;
    if (slice_u64(slice_str(a->value), o->most, &number) < 0)
        return args_usage(a->cmd, "--%s: %s is not a whole number of at most %u", o->name, a->value,
                          o->most);
    return json_object_set_new(body, o->key, json_integer((json_int_t)number));
}

static int put_size(const struct args *a, const struct arg_option *o, json_t *body)
{
    uint64_t bytes;
    if (args_size(a->value, &bytes) < 0)
        return args_usage(a->cmd, "--%s: %s is not a size such as 500MiB or 20GiB", o->name,
                          a->value);
    return json_object_set_new(body, o->key, json_integer((json_int_t)bytes));
}

static bool is_one_of(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = words; n && (at = strstr(at, word)) != NULL; at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == 0 || at[n] == ' '))
            return strchr(word, ' ') == NULL;
    return false;
}

static int put_item(const struct args *a, const struct arg_option *o, json_t *body)
{
    if (o->words && !is_one_of(o->words, a->value))
        return args_usage(a->cmd, "--%s: there is no '%s'; it is one of: %s", o->name, a->value,
                          o->words);
    return json_array_append_new(member(body, o->key, json_array()), json_string(a->value));
}

/* -1: the text is no UTF-8, which JSON wants. */
static int put(const struct args *a, const struct arg_option *o, json_t *body)
{
    if (o->put)
        return o->put(a, body);
    switch (o->member) {
    case ARG_PAIR:
        return put_pair(a, o, body);
    case ARG_NUMBER:
        return put_number(a, o, body);
    case ARG_SIZE:
        return put_size(a, o, body);
    case ARG_TIME:
    case ARG_TIME_OR_NONE:
        return put_time(a, o, body);
    case ARG_ITEM:
        return put_item(a, o, body);
    case ARG_FALSE:
        return json_object_set_new(body, o->key, json_false());
    default:
        return json_object_set_new(body, o->key, o->value ? json_string(a->value) : json_true());
    }
}

int args_body(struct args *a, json_t *body, int least, int most, const char *what)
{
    int id, code = EXIT_OK;
    while (code == EXIT_OK && (id = args_next(a)) >= 0)
        code = put(a, row_of(a, id), body);
    if (code < 0)
        return args_usage(a->cmd, "%s is not UTF-8", a->value);
    if (code != EXIT_OK)
        return code;
    return id == ARGS_STOP ? a->exit_code : words_fit(a, least, most, what);
}

int args_one(struct args *a, const char **value, int least, int most, const char *what)
{
    int id;
    while ((id = args_next(a)) >= 0)
        *value = a->value;
    return id == ARGS_STOP ? a->exit_code : words_fit(a, least, most, what);
}

int args_plain(struct args *a, int least, int most, const char *what)
{
    const char *none;
    return args_one(a, &none, least, most, what);
}

/* "ls, allow or deny?" */
static void verb_question(const struct command *cmd, char *to, size_t size)
{
    size_t at = 0;
    to[0] = 0;
    for (const struct command *v = cmd->verbs; v->name && at < size; v++)
        at += (size_t)snprintf(to + at, size - at, "%s%s%s",
                               v == cmd->verbs ? ""
                               : v[1].name     ? ", "
                                               : " or ",
                               args_verb_word(v), v[1].name ? "" : "?");
}

static const char *verb_name(size_t i, const void *arg)
{
    return args_verb_word((const struct command *)arg + i);
}

static int unknown_verb(const struct command *cmd, const char *word, const char *question)
{
    size_t n = 0;
    while (cmd->verbs[n].name)
        n++;
    ssize_t best = nearest(word, n, verb_name, cmd->verbs);
    if (best >= 0)
        return args_usage(cmd, "there is no '%s %s'; did you mean '%s %s'?", cmd->name, word,
                          cmd->name, verb_name((size_t)best, cmd->verbs));
    return args_usage(cmd, "there is no '%s %s'; %s", cmd->name, word, question);
}

int args_verbs(const struct command *cmd, int argc, char **argv)
{
    struct args a = {.cmd = cmd, .argc = argc, .argv = argv, .in_order = true};
    char question[256];
    for (const struct command *v = cmd->verbs; argc > 1 && v->name; v++)
        if (strcmp(argv[1], args_verb_word(v)) == 0)
            return v->run(argc - 1, argv + 1);
    if (args_next(&a) == ARGS_STOP)
        return a.exit_code;
    verb_question(cmd, question, sizeof question);
    if (a.next == argc)
        return args_usage(cmd, "%s", question);
    return unknown_verb(cmd, argv[a.next], question);
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

int args_size(const char *text, uint64_t *ret)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } units[] = {
        {"KB", 1000},        {"MB", 1000000},     {"GB", 1000000000},
        {"KiB", 1ull << 10}, {"MiB", 1ull << 20}, {"GiB", 1ull << 30},
    };
    const uint64_t most = 1ull << 50;
    size_t digits = strspn(text, "0123456789");
    uint64_t v;
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (strcmp(text + digits, units[i].name) == 0 &&
            slice_u64((struct slice){text, digits}, most / units[i].bytes, &v) == 0) {
            *ret = v * units[i].bytes;
            return 0;
        }
    return -1;
}
