/* Command-line arguments: one table an option is parsed from, shown in --help and completed by the
 * shell. Every command has --help, --json and --socket without listing them. */
#ifndef DURWARD_ARGS_H
#define DURWARD_ARGS_H

#include <jansson.h>
#include <stddef.h>

#include "compiler.h"

enum { EXIT_OK = 0, EXIT_NO = 1, EXIT_USAGE = 2 }; /* 125..127: controller/proto/run.h */

struct args;

/* What an option is in the body of a request. */
enum arg_member {
    ARG_AS_IS, /* its text; one without a value: true */
    ARG_FALSE,
    ARG_ITEM,        /* a text more of a list */
    ARG_PAIR,        /* K=V, a member more of an object */
    ARG_NUMBER,      /* whole, from 0 to `most` */
    ARG_SIZE,        /* bytes */
    ARG_TIME,        /* seconds, from 1 to `most` */
    ARG_TIME_OR_NONE /* the same, and 0 */
};

struct arg_option {
    int id; /* a letter that is also the short option, or 256 to 999; 0: args_into and args_body */
    const char *name;  /* long name without dashes; NULL: the table ends */
    const char *value; /* what it takes ("FILE"), NULL if nothing */
    const char *help;  /* one line */
    size_t into;       /* of args_into: offset of a const char * for its value, else of a bool */
    const char *key;   /* of args_body: the member */
    enum arg_member member;
    unsigned most;
    const char *words; /* of ARG_ITEM: with blanks between them, all that it may be; NULL: any */
    int (*put)(const struct args *a, json_t *body); /* in place of `member`; EXIT_OK, or as usage */
};

/* Rows of several commands. */
#define ARG_CONFIG                                                                   \
    {                                                                                \
        'c', "config", "FILE",                                                       \
            "the configuration (default: $DURWARD_CONFIG, the user's, the system's)" \
    }
#define ARG_LABEL                                                                          \
    {                                                                                      \
        0, "label", "K=V", "a label; may be repeated", .key = "labels", .member = ARG_PAIR \
    }

struct command {
    const char *name;
    const char *usage;                 /* after the name: "[-c FILE] METHOD URL" */
    const char *summary;               /* one line, for the list of commands */
    const struct arg_option *options;  /* NULL: the command parses by itself */
    const char *more;                  /* further paragraphs of --help; NULL if none */
    int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the exit code */
    const struct command *verbs; /* "NAME VERB" each, ended by one without a name; then no run */
    int (*names)(
        void (*put)(const char *name)); /* of what it is about, for the shell's completion */
};

/* Reading side. Zero it, then fill cmd, argc and argv. */
struct args {
    const struct command *cmd;
    int argc;
    char **argv;
    bool in_order;      /* stop at the first word that is no option (run: the rest is CMD) */
    const char *value;  /* of the option just returned */
    bool json;          /* --json was given */
    const char *socket; /* --socket, $DURWARD_URL, $DURWARD_SOCKET; else NULL */
    int exit_code;      /* for ARGS_STOP */
    int next;           /* after ARGS_END: index of the first word that is left */
};

enum { ARGS_END = -1, ARGS_STOP = -2 };

/* The next option's id; ARGS_END when all are read; ARGS_STOP when the command must return
 * exit_code at once: help was printed, or a usage error was reported. */
int args_next(struct args *a);
/* All options, each into the struct that the command's table names offsets of. ARGS_END, or what
 * the command must return at once. */
int args_into(struct args *a, void *asked);
/* All options, each into a request's body as the command's table says, and how many words follow
 * them; as args_plain. */
int args_body(struct args *a, json_t *body, int least, int most, const char *what);
/* All options of a command that has none of its own, and how many words follow them. ARGS_END, or
 * what the command must return at once. `what` asks for a word that is missing ("which sandbox?").
 */
int args_plain(struct args *a, int least, int most, const char *what);
/* The same of a command with one option, which has a value: *value is set where it is given. */
int args_one(struct args *a, const char **value, int least, int most, const char *what);
/* Run the verb that argv[1] names; without one, help or a usage error that lists them. */
int args_verbs(const struct command *cmd, int argc, char **argv);
/* The verb of this whole name, which is there. */
const struct command *args_verb(const struct command *verbs, const char *name);
/* A verb's own word, without its command's. */
const char *args_verb_word(const struct command *verb);
/* Report a usage error of this command on stderr; returns EXIT_USAGE. */
int args_usage(const struct command *cmd, const char *fmt, ...) PRINTF(2, 3);
void args_help(const struct command *cmd);
/* "90", "90s", "15m", "1h", "7d" → seconds, 1..max. 0 or -1. */
int args_duration(const char *text, unsigned max, unsigned *ret);
/* "500MiB", "20GB" → bytes, at most 2^50. 0 or -1. */
int args_size(const char *text, uint64_t *ret);

#endif
