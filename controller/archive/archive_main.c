/* The program `archive`: the only one that is linked with libarchive and with what that brings.
 * Does one piece of work (archive_call.h) in a process that was confined for it, and ends. */
#include "archive_work.h"

#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "layer_archive.h"
#include "program.h"
#include "slice.h"

static const int parts[2] = {ARCHIVE_FIRST, ARCHIVE_SECOND};

static int tell(bool ok, const struct err *err)
{
    struct archive_report said = {.ok = ok, .err = *err};
    return write(ARCHIVE_SAY, &said, sizeof said) == sizeof said && ok ? ARCHIVED_WELL
                                                                       : ARCHIVED_NOT;
}

static int export_layer(char **words UNUSED)
{
    struct err err = {0};
    return tell(layer_pack(ARCHIVE_STREAM, parts, &err) == 0, &err);
}

static int import_layer(char **words)
{
    struct err err = {0};
    uint64_t bytes;
    int r = slice_u64(slice_str(words[0]), UINT64_MAX, &bytes);
    if (r < 0)
        err_set(&err, ERR_INTERNAL, "the archive's bound is not a number");
    else
        r = layer_lay_out(ARCHIVE_STREAM, parts, bytes, &err);
    return tell(r == 0, &err);
}

static int unpack(char **words)
{
    struct err err = {0};
    uint64_t budget[2];
    for (size_t i = 0; i < ARRAY_LEN(budget); i++)
        if (slice_u64(slice_str(words[i]), UINT64_MAX, &budget[i]) < 0) {
            err_set(&err, ERR_INTERNAL, "the image's bounds are not numbers");
            return tell(false, &err);
        }
    return archive_unpack_image(budget);
}

static int pack(char **words UNUSED)
{
    return archive_pack_directory(ARCHIVE_FIRST, ARCHIVE_STREAM) == 0 ? ARCHIVED_WELL
                                                                      : ARCHIVED_NOT;
}

static const struct {
    const char *name;
    int words; /* behind it */
    int (*fn)(char **words);
} works[] = {
    {ARCHIVE_EXPORT, 0, export_layer},
    {ARCHIVE_IMPORT, 1, import_layer},
    {ARCHIVE_UNPACK, 2, unpack},
    {ARCHIVE_PACK, 0, pack},
};

int main(int argc, char **argv)
{
    enum { FIXED = 3 }; /* name, build, work */
    if (!program_is_ours(argc < FIXED ? 1 : 2, argv))
        return EXIT_STRANGER;
    /* as whoever started it, which an exec takes back */
    if (prctl(PR_SET_DUMPABLE, SANITIZED) < 0)
        return ARCHIVED_NOT;
    for (size_t i = 0; i < ARRAY_LEN(works); i++)
        if (strcmp(argv[2], works[i].name) == 0 && argc == FIXED + works[i].words)
            return works[i].fn(argv + FIXED);
    return EXIT_STRANGER;
}
