/* durward doctor: what on this host or in this sandbox would break, and the one-line fix. */
#include <stdlib.h>

#include "commands.h"
#include "doctor.h"
#include "out.h"
#include "settings.h"

static int cmd_doctor(int argc, char **argv);

enum { OPT_HOST = 256, OPT_SANDBOX, OPT_AGAINST, OPT_IMAGE };

static const struct arg_option options[] = {
    ARG_CONFIG,
    {OPT_HOST, "host", NULL, "look at the host only"},
    {OPT_SANDBOX, "sandbox", NULL, "look at clients in a sandbox only"},
    {'e', "env", "K[=V]", "set a variable in that sandbox, as `run` does"},
    {OPT_IMAGE, "image", "NAME", "an imported image for that sandbox"},
    {OPT_AGAINST, "against", "HOST", "try the clients right here, against HOST"},
    {0},
};

const struct command command_doctor = {
    "doctor",
    "[-c FILE] [--host|--sandbox|--against HOST] [-e K[=V]]... [--image NAME] [--json]",
    "Look for what would break here, and say how to mend it.",
    options,
    "Clients (the system's store, openssl, curl, wget, git, Python, Node, Go, Java, Deno, cargo,\n"
    "docker: those that are installed) each make a request over TLS in a sandbox of their own; "
    "the\n"
    "gate answers it by itself and nothing leaves this host. With --against HOST they run where\n"
    "the command runs, in a sandbox or a paired client, and HOST must be one that its policy\n"
    "allows.\n"
    "Exit status 0 when nothing would break (warnings do not count), 1 when something would,\n"
    "2 for a usage error.\n\n"
    "  durward doctor --host\n"
    "  durward sandbox exec ID -- durward doctor --against api.github.com\n",
    cmd_doctor,
};

struct wanted {
    const char *config, *against;
    bool host, sandbox;
    struct strlist more;
};

static int take(struct wanted *w, int id, const char *value)
{
    switch (id) {
    case 'c':
        w->config = value;
        return 0;
    case OPT_HOST:
        w->host = true;
        return 0;
    case OPT_SANDBOX:
        w->sandbox = true;
        return 0;
    case OPT_AGAINST:
        w->against = value;
        return 0;
    default:
        return strlist_add(&w->more, id == OPT_IMAGE ? "--image" : "-e") < 0 ||
                       strlist_add(&w->more, value) < 0
                   ? -1
                   : 0;
    }
}

/* The configuration where there is one: that it cannot be read is a finding, too. */
static struct config *configuration(struct findings *f, const char *file)
{
    struct err err = {0};
    char *found = file ? NULL : config_find(&err);
    struct config *c = NULL;
    if (file == NULL && found == NULL) {
        findings_add(f, "config", FINDING_NOTE, NULL,
                     "no configuration: defaults, and every "
                     "request denied but what flags allow");
        return NULL;
    }
    err = (struct err){0};
    c = config_load(file ? file : found, &err);
    if (c)
        findings_add(f, "config", FINDING_OK, NULL, "%s loads", file ? file : found);
    else
        findings_add(f, "config", FINDING_FAIL, "correct it; durward.yaml(5) has every key", "%s",
                     err.text);
    free(found);
    return c;
}

static void look(struct findings *f, const struct wanted *w, const char *socket)
{
    if (w->against) {
        doctor_here(f, w->against);
        return;
    }
    struct config *c = configuration(f, w->config);
    if (!w->sandbox) {
        doctor_host(f);
        doctor_files(f, c, socket);
    }
    if (w->host)
        ;
    else if (f->fails && !w->sandbox)
        findings_add(f, "clients", FINDING_NOTE, NULL,
                     "not tried: mend the above first, or try with --sandbox");
    else
        doctor_clients(f, c, &w->more);
    config_unref(c);
}

static int cmd_doctor(int argc, char **argv)
{
    struct args a = {.cmd = &command_doctor, .argc = argc, .argv = argv};
    struct wanted w = {0};
    struct findings f = {0};
    int id, code = EXIT_USAGE;
    while ((id = args_next(&a)) >= 0)
        if (take(&w, id, a.value) < 0) {
            args_usage(a.cmd, "too many -e or --image");
            goto out;
        }
    code = a.exit_code;
    if (id == ARGS_STOP)
        goto out;
    code = EXIT_USAGE;
    if (a.next < argc)
        args_usage(a.cmd, "unexpected argument %s", argv[a.next]);
    else if ((w.host && w.sandbox) || (w.against && (w.host || w.sandbox || w.more.n)))
        args_usage(a.cmd, "one of --host, --sandbox, --against; -e and --image are for a sandbox");
    else {
        look(&f, &w, a.socket);
        code = findings_print(&f, a.json) < 0 || f.fails ? EXIT_NO : EXIT_OK;
    }
out:
    findings_done(&f);
    strlist_done(&w.more);
    return code;
}
