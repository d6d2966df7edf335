/* Lays out the descriptors of the program `archive` and becomes it. */
#define _GNU_SOURCE 1
#include "archive_call.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "program.h"

enum { PARKED = 16, PROGRAM = ARCHIVE_FDS };

static int arrange(const struct archive_call *c)
{
    int from[] = {c->stream, c->first, c->second, c->say, c->program};
    /* first out of the way, as one may lie where another has to go */
    for (size_t i = 0; i < ARRAY_LEN(from); i++)
        if (from[i] >= 0 && (from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, PARKED)) < 0)
            return -1;
    for (int i = 0; i < (int)ARRAY_LEN(from); i++) {
        int to = ARCHIVE_STREAM + i;
        if (from[i] < 0)
            close(to);
        else if (dup3(from[i], to, to == PROGRAM ? O_CLOEXEC : 0) < 0)
            return -1;
    }
    return (int)syscall(SYS_close_range, PROGRAM + 1, ~0U, 0);
}

void archive_become(const struct archive_call *c)
{
    static char name[] = "durward: archive", build[64];
    char *none[] = {NULL}, *argv[] = {name,
                                      build,
                                      (char *)c->work,
                                      (char *)c->words[0],
                                      c->words[0] ? (char *)c->words[1] : NULL,
                                      NULL};
    struct archive_report failed = {.ok = false};
    int say = c->say;
    for (size_t i = 0; i + 1 < sizeof build && program_build[i]; i++)
        build[i] = program_build[i];
    if (arrange(c) == 0) {
        say = c->say < 0 ? -1 : ARCHIVE_SAY;
        program_exec(PROGRAM, argv, none);
    }
    err_sys(&failed.err, "cannot start the program that reads and writes archives");
    ssize_t said = say < 0 ? 0 : write(say, &failed, sizeof failed);
    (void)said; /* then nobody listens */
    _exit(ARCHIVED_NOT);
}
