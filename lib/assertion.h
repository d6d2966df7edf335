/* Assertions, on in every build. One says what this program's own logic guarantees, never what
 * somebody else sends: that is checked and refused. Where it does not hold no further step can be
 * trusted, so the process says which one it was in one line on standard error, and ends; the parent
 * replaces a role and has it recorded (`role_ended`). */
#ifndef DURWARD_ASSERTION_H
#define DURWARD_ASSERTION_H

#include "compiler.h"

enum { EXIT_ASSERTION = 70 };

#define ASSERT(condition) \
    ((condition) ? (void)0 : assertion_failed(__FILE__, (unsigned)__LINE__, #condition))

NORETURN void assertion_failed(const char *file, unsigned line, const char *condition);

#endif
