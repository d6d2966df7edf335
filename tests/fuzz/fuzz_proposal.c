/* What a program in a sandbox proposes: any bytes as the body. What is taken is bounded, printable
 * and of a form that a rule can be written with. */
#include "guide_proposal.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
    if (!right)
        abort();
}

static void printable(const char *s, char first)
{
    for (; *s; s++)
        require(*s >= first && *s < 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct guide_proposal p;
    if (size > GUIDE_PROPOSAL_MAX ||
        guide_proposal_read((struct slice){(const char *)data, size}, &p) != NULL)
        return 0;
    require(p.authority.host[0] && p.authority.port && p.method[0] && p.path[0] == '/');
    require(strpbrk(p.path, "?#\"'\\{}") == NULL);
    printable(p.path, 0x21);
    printable(p.method, 'A');
    printable(p.reason, 0x20);
    return 0;
}
