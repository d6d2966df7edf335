/* Faults for tests/analyse/run: a tool that does not find its own would find nothing else. Never
 * linked. */
#include <stdlib.h>
#include <string.h>

int planted(const char *a, const char *b);

int planted(const char *a, const char *b)
{
    char *kept = malloc(16);
    if (kept == NULL)
        return -1;
    if (strcmp(a, b) == 1) /* clang-tidy */
        return 1;          /* cppcheck, scan-build: kept is lost */
    free(kept);
    return 0;
}
