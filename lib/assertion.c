/* The end of a process whose own logic has failed. Only write and exit are called: a role may do
 * both under its filter, whatever state it is in. */
#include "assertion.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void assertion_failed(const char *file, unsigned line, const char *condition)
{
    char text[512];
    while (strncmp(file, "../", 3) == 0) /* of a build folder */
        file += 3;
    /* a role's name is "durward: gate TAG" (proc.h) */
    int n = snprintf(text, sizeof text, "%s: assertion failed at %s:%u: %s",
                     program_invocation_name, file, line, condition);
    size_t length = n < 0 ? 0 : (size_t)n < sizeof text - 1 ? (size_t)n : sizeof text - 2;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            text[i] = '?';
    text[length++] = '\n';
    ssize_t w = write(STDERR_FILENO, text, length);
    (void)w; /* nowhere left to complain */
    _exit(EXIT_ASSERTION);
}
