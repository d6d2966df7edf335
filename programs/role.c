/* The program of a role: libexec/durward/NAME. It holds what that role calls and nothing else, and
 * is only ever started by its parent (lib/proc.h). */
#include "program.h"
#include "trace.h"

int ROLE_MAIN(void);

int main(int argc, char **argv)
{
    if (!program_is_ours(argc, argv))
        return EXIT_STRANGER;
    trace_to_log(program_debugs(argc, argv));
    return ROLE_MAIN();
}
