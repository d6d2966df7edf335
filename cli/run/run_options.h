/* The flags of `durward run`, read but not yet acted on. */
#ifndef DURWARD_RUN_OPTIONS_H
#define DURWARD_RUN_OPTIONS_H

#include "args.h"
#include "strlist.h"

extern const struct arg_option run_arg_options[];

struct run_options {
    const char *config;          /* -c, or NULL */
    const char *policy;          /* or NULL */
    const char *workdir;         /* or NULL */
    const char *backend, *image; /* or NULL */
    struct strlist allow, secret, binds, volumes, publish, env, use,
        login;                  /* as given; env: complete "K=V" */
    const char *profile, *home; /* or NULL */
    bool no_bind, view, ask, json, telemetry;
    unsigned inside;  /* enum profile_inside */
    bool plain;       /* "--" stood before CMD: it is a command, whatever it is called */
    bool own_command; /* the profile's command comes before CMD... */
    int argc;         /* CMD... */
    char **argv;
};

void run_options_done(struct run_options *o);
/* 0, or -1 with the exit code in *code: help was shown, or an error reported. */
int run_options_read(const struct command *cmd, int argc, char **argv, struct run_options *o,
                     int *code);

#endif
