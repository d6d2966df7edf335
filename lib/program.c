/* Finds a program beside the one that runs (/proc/self/exe) or where it was installed, and executes
 * it by descriptor with execveat. */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "build_id.h"

const char program_build[] = PROGRAM_BUILD;

/* The folder of the program that runs. */
static int own_folder(char to[PATH_MAX], struct err *err)
{
    ssize_t n = readlink("/proc/self/exe", to, PATH_MAX - 1);
    if (n < 0)
        return err_sys(err, "/proc/self/exe");
    to[n] = 0;
    char *slash = strrchr(to, '/');
    if (slash)
        *slash = 0;
    return 0;
}

int program_path(const char *name, char *to, size_t size, struct err *err)
{
    /* of the command as installed; of a role; of either in a build tree */
    static const char *const places[] = {"/../libexec/durward/", "/", "/programs/", "/controller/",
                                         "/../controller/"};
    char folder[PATH_MAX];
    if (own_folder(folder, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        int n = snprintf(to, size, "%s%s%s", folder, places[i], name);
        if (n > 0 && (size_t)n < size && access(to, X_OK) == 0)
            return 0;
    }
    int n = snprintf(to, size, PKGLIBEXECDIR "/%s", name);
    if (n <= 0 || (size_t)n >= size || access(to, X_OK) < 0)
        return err_sys(err, "the program '%s' is not installed (%s)", name, PKGLIBEXECDIR);
    return 0;
}

int program_open(const char *name, struct err *err)
{
    char path[PATH_MAX + 64];
    if (program_path(name, path, sizeof path, err) < 0)
        return -1;
    int fd = open(path, O_PATH | O_CLOEXEC);
    return fd < 0 ? err_sys(err, "%s", path) : fd;
}

void program_exec(int fd, char *const argv[], char *const env[])
{
    syscall(SYS_execveat, fd, "", argv, env, AT_EMPTY_PATH);
}

bool program_debugs(int argc, char **argv)
{
    return argc == 3 && strcmp(argv[2], PROGRAM_DEBUG) == 0;
}

bool program_is_ours(int argc, char **argv)
{
    static const char alone[] = "durward: a role is only started by its parent\n";
    static const char other[] = "durward: the program was replaced by one of another build while "
                                "this was starting; start it again\n";
    bool shaped = argc == 2 || program_debugs(argc, argv);
    if (shaped && strcmp(argv[1], program_build) == 0)
        return true;
    ssize_t w = shaped ? write(STDERR_FILENO, other, sizeof other - 1)
                       : write(STDERR_FILENO, alone, sizeof alone - 1);
    (void)w; /* nowhere left to complain */
    return false;
}
