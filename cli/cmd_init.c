/* durward init: a first configuration, from what is found here. Only names are looked at: of
 * programs on PATH, variables, remotes and lock files. Nothing is executed, and no value is read.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "commands.h"
#include "config.h"
#include "out.h"
#include "paths.h"
#include "slice.h"

enum { TEXT_MAX = 64 * 1024, GIT_CONFIG_MAX = 64 * 1024, HOSTS_MAX = 16, HOST_SIZE = 254 };

static int cmd_init(int argc, char **argv);

struct asked {
    const char *file;
    bool force;
};

static const struct arg_option options[] = {
    {'o', "output", "FILE", "write to this file (default: the user's durward.yaml; -: print it)",
     offsetof(struct asked, file)},
    {'f', "force", NULL, "in place of a file that is there", offsetof(struct asked, force)},
    {0},
};

const struct command command_init = {
    "init",
    "[-o FILE] [-f]",
    "Write a first configuration from what is found here.",
    options,
    "Looks for agents on PATH, names of tokens in the environment, the remotes of the git\n"
    "repository and lock files of the current directory, and explains each line that it writes.\n"
    "Only names are looked at: nothing is executed, no value is read. Read the file before you\n"
    "use it. Exit status 0, 1 when the file is there already or cannot be written.\n\n"
    "  durward init -o -\n",
    cmd_init,
};

/* ---- what there may be ---- */

static const struct agent {
    const char *program, *preset, *variable;
} agents[] = {
    {"claude", "anthropic", "ANTHROPIC_API_KEY"}, {"codex", "openai", "OPENAI_API_KEY"},
    {"gemini", "gemini", "GEMINI_API_KEY"},       {"opencode", "openrouter", "OPENROUTER_API_KEY"},
    {"aider", "openai", "OPENAI_API_KEY"},
};

static const struct token {
    const char *variable, *preset;
} tokens[] = {
    {"ANTHROPIC_API_KEY", "anthropic"},
    {"OPENAI_API_KEY", "openai"},
    {"GEMINI_API_KEY", "gemini"},
    {"OPENROUTER_API_KEY", "openrouter"},
    {"MISTRAL_API_KEY", "mistral"},
    {"CEREBRAS_API_KEY", "cerebras"},
    {"TOGETHER_API_KEY", "together"},
    {"GROQ_API_KEY", "groq"},
    {"DEEPSEEK_API_KEY", "deepseek"},
    {"XAI_API_KEY", "xai"},
    {"HF_TOKEN", "huggingface"},
    {"GITHUB_TOKEN", "github"},
    {"GH_TOKEN", "github"},
    {"GITLAB_TOKEN", "gitlab"},
};

/* Whose package manager will ask its registry: its preset, or, where there is none, the command
 * that tells which host that is. */
static const struct lock {
    const char *file, *preset, *ask;
} locks[] = {
    {"package-lock.json", "npm", NULL},
    {"pnpm-lock.yaml", "npm", NULL},
    {"yarn.lock", NULL, "yarn config get registry"},
    {"requirements.txt", "pip", NULL},
    {"poetry.lock", NULL, "poetry source show"},
    {"uv.lock", NULL, "pip config get global.index-url"},
    {"Cargo.lock", "cargo", NULL},
    {"go.sum", "go", NULL},
    {"pom.xml", "maven", NULL},
    {"Gemfile.lock", "rubygems", NULL},
};

/* ---- what is found ---- */

struct finds {
    const char *secret[ARRAY_LEN(tokens) + ARRAY_LEN(agents)]; /* presets, which name secrets too */
    const char *variable[ARRAY_LEN(tokens) + ARRAY_LEN(agents)];
    const char *agent[ARRAY_LEN(tokens) + ARRAY_LEN(agents)]; /* or NULL */
    bool set[ARRAY_LEN(tokens) + ARRAY_LEN(agents)];
    size_t n;
    char host[HOSTS_MAX][HOST_SIZE]; /* of git remotes */
    size_t n_hosts;
};

static bool on_path(const char *program)
{
    const char *path = getenv("PATH");
    char whole[PATH_MAX];
    for (const char *p = path ? path : ""; *p;) {
        size_t n = strcspn(p, ":");
        if (snprintf(whole, sizeof whole, "%.*s/%s", (int)n, p, program) < (int)sizeof whole &&
            access(whole, X_OK) == 0)
            return true;
        p += n + (p[n] == ':');
    }
    return false;
}

static bool is_set(const char *variable)
{
    const char *v = getenv(variable);
    return v && *v;
}

static void add_secret(struct finds *f, const char *preset, const char *variable, const char *agent)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->secret[i], preset) == 0) {
            f->agent[i] = f->agent[i] ? f->agent[i] : agent;
            return;
        }
    f->secret[f->n] = preset;
    f->variable[f->n] = variable;
    f->agent[f->n] = agent;
    f->set[f->n++] = is_set(variable);
}

/* "https://HOST/…", "git@HOST:…", "ssh://git@HOST/…" */
static void add_remote(struct finds *f, struct slice url)
{
    ssize_t at = slice_find_slice(url, SLICE("://"));
    struct slice s = at < 0 ? url : (struct slice){url.p + at + 3, url.n - (size_t)at - 3};
    ssize_t user = slice_find(s, '@');
    if (user >= 0 && memchr(s.p, '/', (size_t)user) == NULL)
        s = (struct slice){s.p + user + 1, s.n - (size_t)user - 1};
    size_t n = 0;
    while (n < s.n && (ascii_is_alnum(s.p[n]) || s.p[n] == '.' || s.p[n] == '-'))
        n++;
    if (n == 0 || n >= HOST_SIZE || memchr(s.p, '.', n) == NULL || n == s.n ||
        f->n_hosts == HOSTS_MAX)
        return; /* a path of this machine, or no host */
    for (size_t i = 0; i < f->n_hosts; i++)
        if (slice_eq_str((struct slice){s.p, n}, f->host[i]))
            return;
    memcpy(f->host[f->n_hosts], s.p, n);
    f->host[f->n_hosts++][n] = 0;
}

/* The url lines of .git/config; of each the host alone is used. */
static void find_remotes(struct finds *f)
{
    static char text[GIT_CONFIG_MAX];
    int fd = open(".git/config", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    for (char *at = text, *line; (line = strsep(&at, "\n")) != NULL;) {
        line += strspn(line, " \t");
        if (strncmp(line, "url", 3) == 0 && (line[3] == ' ' || line[3] == '='))
            add_remote(f, slice_str(line + 3 + strspn(line + 3, " =")));
    }
    explicit_bzero(text, sizeof text); /* a URL may hold somebody's token */
}

static void look(struct finds *f)
{
    for (size_t i = 0; i < ARRAY_LEN(tokens); i++)
        if (is_set(tokens[i].variable))
            add_secret(f, tokens[i].preset, tokens[i].variable, NULL);
    for (size_t i = 0; i < ARRAY_LEN(agents); i++)
        if (on_path(agents[i].program))
            add_secret(f, agents[i].preset, agents[i].variable, agents[i].program);
    find_remotes(f);
}

/* ---- what is written ---- */

static int put_secrets(struct buf *b, const struct finds *f)
{
    int bad = 0;
    if (f->n)
        bad |= buf_append_str(b, "\n# Where each credential is read from. The sandbox never holds "
                                 "one: it gets a placeholder,\n# and the proxy puts the value into "
                                 "requests that a rule gives it to.\nsecrets:\n");
    for (size_t i = 0; i < f->n; i++)
        bad |= buf_printf(b, "  %s: { env: %s }  # %s\n", f->secret[i], f->variable[i],
                          f->set[i] ? "is set in your environment"
                                    : "is not set yet: set it before 'durward run'");
    return bad;
}

static bool is_preset_host(const struct finds *f, const char *host)
{
    for (size_t i = 0; i < f->n; i++)
        if (strncmp(f->secret[i], host, strlen(f->secret[i])) == 0)
            return true;
    return false;
}

static int put_locks(struct buf *b)
{
    int bad = 0;
    for (size_t i = 0; i < ARRAY_LEN(locks); i++) {
        const struct lock *l = &locks[i];
        if (access(l->file, F_OK) != 0)
            continue;
        bad |= buf_printf(b, "      # %s is here. ", l->file);
        bad |= l->preset
                   ? buf_printf(b,
                                "'durward preset show %s' tells which hosts its packages come "
                                "from; then:\n      # - use: %s\n",
                                l->preset, l->preset)
                   : buf_printf(b,
                                "'%s' tells which host its packages come from; then:\n"
                                "      # - { allow: HOST/**, methods: [GET, HEAD] }\n",
                                l->ask);
    }
    return bad;
}

static int put_rules(struct buf *b, const struct finds *f)
{
    bool any = f->n > 0;
    int bad = buf_printf(b, "    # What no rule allows is denied.\n    rules:%s\n",
                         any ? "" : " []  # a rule looks so: - { allow: HOST/**, methods: [GET] }");
    for (size_t i = 0; i < f->n; i++)
        if (f->agent[i])
            bad |= buf_printf(b,
                              "      - use: %s  # %s is on your PATH: 'durward run %s' starts it; "
                              "'durward preset show %s' prints these rules\n",
                              f->secret[i], f->agent[i], f->agent[i], f->secret[i]);
        else
            bad |= buf_printf(b, "      - use: %s  # 'durward preset show %s' prints its rules\n",
                              f->secret[i], f->secret[i]);
    for (size_t i = 0; i < f->n_hosts; i++)
        if (!is_preset_host(f, f->host[i]))
            bad |= buf_printf(b,
                              "      # A remote of this repository, in a file that whoever writes "
                              "here can change. To allow reading:\n"
                              "      # - { allow: %s/**, methods: [GET, HEAD] }\n",
                              f->host[i]);
    return bad | put_locks(b);
}

static int put_env(struct buf *b, const struct finds *f)
{
    int bad = 0;
    if (f->n)
        bad |= buf_append_str(b, "    # What programs inside look for: placeholders in place of "
                                 "the values.\n    env:\n");
    for (size_t i = 0; i < f->n; i++)
        bad |= buf_printf(b, "      %s: \"{{placeholder %s}}\"\n", f->variable[i], f->secret[i]);
    return bad;
}

static int write_text(struct buf *b, const struct finds *f)
{
    int bad = buf_append_str(b, "# Written by 'durward init' from names that it found here. "
                                "durward.yaml(5) explains every key;\n# 'durward check' tells "
                                "what is wrong, 'durward explain METHOD URL' what would happen.\n"
                                "version: 1\n");
    bad |= put_secrets(b, f);
    bad |= buf_append_str(b, "\n# What a sandbox may reach. 'durward run --policy NAME' chooses "
                             "where there are several.\npolicies:\n  default:\n");
    return bad | put_env(b, f) | put_rules(b, f);
}

/* ---- where to ---- */

static char *default_file(struct err *err)
{
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    bool own = xdg && xdg[0] == '/';
    char *dir = NULL, *file = NULL;
    if (!own && !(home && home[0] == '/')) {
        err_set(err, ERR_UNREADY, "HOME is not set; say -o FILE");
        return NULL;
    }
    if (asprintf(&dir, "%s%s/durward", own ? xdg : home, own ? "" : "/.config") < 0)
        return NULL;
    if (access(dir, F_OK) == 0 || paths_make_private(dir, err) == 0)
        file = paths_join(dir, "durward.yaml");
    free(dir);
    return file;
}

static int save(const char *file, const struct buf *b, bool force, struct err *err)
{
    int r = out_file(file, 0644, force, buf_data(b), buf_len(b), err);
    if (r < 0 && errno == EEXIST)
        err_set(err, ERR_DENIED, "%s is there already; -f writes over it, -o - prints", file);
    return r;
}

static int put(const struct buf *b, const char *given, bool force, bool json)
{
    struct err err = {0};
    if (given && strcmp(given, "-") == 0) {
        fwrite(buf_data(b), 1, buf_len(b), stdout);
        return out_flush() < 0 ? EXIT_NO : EXIT_OK;
    }
    char *own = given ? NULL : default_file(&err);
    const char *file = given ? given : own;
    int code = EXIT_OK;
    if (file == NULL || save(file, b, force, &err) < 0)
        code = out_fail(&err);
    else if (json)
        code = out_json(json_pack("{s:s}", "file", file)) < 0 ? EXIT_NO : EXIT_OK;
    else
        printf("%s\nRead it, then: durward check; durward run CMD\n", file);
    free(own);
    return code == EXIT_OK && out_flush() < 0 ? EXIT_NO : code;
}

static int cmd_init(int argc, char **argv)
{
    struct args a = {.cmd = &command_init, .argc = argc, .argv = argv};
    struct finds f = {0};
    struct buf b;
    struct asked asked = {0};
    int code = args_into(&a, &asked);
    if (code != ARGS_END)
        return code;
    if (a.next < argc)
        return args_usage(a.cmd, "unexpected argument %s", argv[a.next]);
    look(&f);
    buf_init(&b, TEXT_MAX);
    if (write_text(&b, &f) < 0) {
        out_error("the configuration is too long");
        code = EXIT_NO;
    } else {
        code = put(&b, asked.file, asked.force, a.json);
    }
    buf_free(&b);
    return code;
}
