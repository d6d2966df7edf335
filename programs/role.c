/* The program of a role: libexec/durward/NAME. It holds what that role calls and nothing else, and
 * is only ever started by its parent (lib/proc.h). */
#include "program.h"
#include "trace.h"

#include <unistd.h>

int ROLE_MAIN(void);
void __gcov_dump(void) __attribute__((weak)); /* of a build that measures coverage */

int main(int argc, char **argv)
{
    if (!program_is_ours(argc, argv))
        return EXIT_STRANGER;
    trace_to_log(program_debugs(argc, argv));
    int status = ROLE_MAIN();
    if (SANITIZED) /* which reports at exit */
        return status;
    if (__gcov_dump)
        __gcov_dump();
    /* what libraries would tidy up goes with the process */
    _exit(status);
}
