/* durward image import|ls|rm: root file systems for sandboxes. No daemon is asked. */
#include "commands.h"
#include "image.h"
#include "out.h"
#include "paths.h"
#include "program.h"
#include "settings.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OPT_MAX_SIZE = 256, OPT_MAX_FILES, DEFAULT_MIB = 16 * 1024, DEFAULT_FILES = 1000000 };

static int run_import(int argc, char **argv);
static int run_ls(int argc, char **argv);
static int run_rm(int argc, char **argv);

static const struct arg_option import_options[] = {
    ARG_CONFIG,
    {OPT_MAX_SIZE, "max-size", "MIB", "refuse what is larger when unpacked (default: 16384)"},
    {OPT_MAX_FILES, "max-files", "N", "refuse what has more files (default: 1000000)"},
    {0},
};

static const struct arg_option options[] = {
    ARG_CONFIG,
    {0},
};

const struct command image_verbs[] = {
    {"image import", "[-c FILE] [--json] [--max-size MIB] DIR|TAR|- NAME",
     "Import a root file system.", import_options,
     "From a directory, a tar archive (plain, gzip, bzip2, xz, zstd; - is standard input), an OCI\n"
     "image layout, or what 'docker save IMAGE' wrote. Devices, set-uid bits, capabilities and\n"
     "owners are left out: all files belong to the sandbox's root.\n",
     run_import},
    {"image ls", "[-c FILE] [--json]", "List the images.", options, NULL, run_ls},
    {"image rm", "[-c FILE] NAME...", "Remove images that no sandbox uses.", options, NULL, run_rm},
    {0},
};

/* The daemon's state directory, as the parent finds it; malloc'd. A missing configuration is an
 * error only when it was named. */
static char *state_dir(const char *file)
{
    struct err err = {0};
    struct config *c = NULL;
    char *found = file ? NULL : config_find(NULL), *dir = NULL;
    if (file || found)
        c = settings_load(file, &err);
    const char *given = c ? config_controller_state(c) : NULL;
    if (err.code == ERR_NONE)
        dir = given ? strdup(given) : paths_state_dir(&err);
    if (dir == NULL)
        out_error("%s", err.code != ERR_NONE ? err.text : "out of memory");
    config_unref(c);
    free(found);
    return dir;
}

/* ---- import ---- */

static void print_progress(void *arg, const struct unpack_count *done)
{
    const bool *wanted = arg;
    if (!*wanted)
        return;
    fprintf(stderr, "\r%" PRIu64 " files, %" PRIu64 " MiB\033[K", done->entries, done->bytes >> 20);
}

static json_t *as_json(const struct image *i)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "name", i->name, "id", i->id,
                     "source", i->source, "kind", i->kind, "created", (json_int_t)i->created,
                     "bytes", (json_int_t)i->bytes, "files", (json_int_t)i->entries, "left_out",
                     (json_int_t)i->special, "set_id_dropped", (json_int_t)i->set_id);
}

static int import(const char *dir, struct image_import *how, bool json)
{
    struct image i;
    struct err err = {0};
    bool show = !json && isatty(STDERR_FILENO);
    how->progress = print_progress;
    how->arg = &show;
    how->archive = program_open(ARCHIVE_PROGRAM, &err);
    int r = how->archive < 0 ? -1 : image_import(dir, how, &i, &err);
    if (how->archive >= 0)
        close(how->archive);
    if (show)
        fputs("\r\033[K", stderr);
    if (r < 0) {
        char clean[sizeof err.text];
        out_error("%s", out_clean(err.text, clean, sizeof clean));
        return EXIT_NO;
    }
    if (json)
        return out_json(as_json(&i)) < 0 ? EXIT_NO : EXIT_OK;
    if (i.special || i.set_id)
        fprintf(stderr,
                "durward: left out %" PRIu64 " devices, pipes or sockets, and %" PRIu64
                " set-uid or set-gid bits\n",
                i.special, i.set_id);
    printf("%s\n", i.name);
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

static int number(const struct args *a, const char *flag, unsigned long max, uint64_t *ret)
{
    char *end;
    unsigned long v = a->value[0] >= '0' && a->value[0] <= '9' ? strtoul(a->value, &end, 10) : 0;
    if (v == 0 || *end || v > max)
        return args_usage(a->cmd, "--%s takes a number from 1 to %lu", flag, max);
    *ret = v;
    return EXIT_OK;
}

static int run_import(int argc, char **argv)
{
    struct args a = {.cmd = &image_verbs[0], .argc = argc, .argv = argv};
    struct image_import how = {.max_entries = DEFAULT_FILES};
    uint64_t mib = DEFAULT_MIB;
    const char *file = NULL;
    int id, bad = EXIT_OK;
    while (bad == EXIT_OK && (id = args_next(&a)) >= 0) {
        if (id == 'c')
            file = a.value;
        else if (id == OPT_MAX_SIZE)
            bad = number(&a, "max-size", 1u << 30, &mib);
        else
            bad = number(&a, "max-files", 1u << 30, &how.max_entries);
    }
    if (bad != EXIT_OK)
        return bad;
    if (id == ARGS_STOP)
        return a.exit_code;
    if (argc - a.next != 2)
        return args_usage(a.cmd, "what is to be imported, and under which name?");
    how.source = argv[a.next];
    how.name = argv[a.next + 1];
    how.max_bytes = mib << 20;
    char *dir = state_dir(file);
    int code = dir ? import(dir, &how, a.json) : EXIT_NO;
    free(dir);
    return code;
}

/* ---- ls ---- */

struct listing {
    json_t *json;
    struct out_table *table;
};

static int list_one(void *arg, const struct image *i)
{
    struct listing *l = arg;
    char text[64], source[IMAGE_SOURCE_MAX];
    struct tm tm;
    time_t t = (time_t)i->created;
    if (l->json) {
        json_array_append_new(l->json, as_json(i));
        return 0;
    }
    out_table_cell(l->table, i->name);
    snprintf(text, sizeof text, "%" PRIu64 " MiB", i->bytes >> 20);
    out_table_cell(l->table, text);
    snprintf(text, sizeof text, "%" PRIu64, i->entries);
    out_table_cell(l->table, text);
    if (gmtime_r(&t, &tm) == NULL || strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        text[0] = '\0';
    out_table_cell(l->table, text);
    out_table_cell(l->table, out_clean(i->source, source, sizeof source));
    return 0;
}

static void list_host(struct listing *l)
{
    if (l->json) {
        json_array_append_new(l->json, json_pack("{s:s, s:s, s:s}", "name", "host", "source",
                                                 "/usr", "kind", "built in"));
        return;
    }
    const char *const cells[] = {"host", "-", "-", "-", "the host's /usr (built in)"};
    for (size_t i = 0; i < ARRAY_LEN(cells); i++)
        out_table_cell(l->table, cells[i]);
}

static int run_ls(int argc, char **argv)
{
    static const char *const titles[] = {"NAME", "SIZE", "FILES", "IMPORTED", "FROM", NULL};
    struct args a = {.cmd = &image_verbs[1], .argc = argc, .argv = argv};
    struct listing l = {0};
    struct err err = {0};
    const char *file = NULL;
    int code = args_one(&a, &file, 0, 0, "");
    if (code != ARGS_END)
        return code;
    char *dir = state_dir(file);
    if (dir == NULL)
        return EXIT_NO;
    l.json = a.json ? json_array() : NULL;
    l.table = a.json ? NULL : out_table_new(titles);
    list_host(&l);
    int r = image_list(dir, list_one, &l, &err);
    free(dir);
    if (r < 0)
        out_error("%s", err.text);
    if (l.table)
        out_table_print(l.table);
    int shown = l.json ? out_json(l.json) : out_flush();
    return r < 0 || shown < 0 ? EXIT_NO : EXIT_OK;
}

/* ---- rm ---- */

static int run_rm(int argc, char **argv)
{
    struct args a = {.cmd = &image_verbs[2], .argc = argc, .argv = argv};
    const char *file = NULL;
    int code = args_one(&a, &file, 1, INT_MAX, "which image?");
    if (code != ARGS_END)
        return code;
    char *dir = state_dir(file);
    if (dir == NULL)
        return EXIT_NO;
    json_t *removed = json_array();
    code = EXIT_OK;
    for (int i = a.next; i < argc; i++) {
        struct err err = {0};
        char clean[sizeof err.text];
        if (image_remove(dir, argv[i], &err) == 0) {
            json_array_append_new(removed, json_string(argv[i]));
            continue;
        }
        out_error("%s", out_clean(err.text, clean, sizeof clean));
        code = EXIT_NO;
    }
    if (a.json && out_json(json_pack("{s:O}", "removed", removed)) < 0)
        code = EXIT_NO;
    json_decref(removed);
    free(dir);
    return code;
}

static int put_name(void *arg, const struct image *i)
{
    (*(void (**)(const char *))arg)(i->name);
    return 0;
}

static int names(void (*put)(const char *name))
{
    struct err err = {0};
    char *dir = state_dir(NULL);
    if (dir == NULL)
        return -1;
    put("host");
    int r = image_list(dir, put_name, &put, &err);
    free(dir);
    return r;
}

const struct command command_image = {
    .name = "image",
    .usage = "import|ls|rm [OPTION...]",
    .summary = "Import, list or remove root file systems for sandboxes.",
    .verbs = image_verbs,
    .names = names,
};
