/* CUnit suites, printed as TAP. One program a module: the test file defines tap_suites() and
 * tap_main.c supplies main(). */
#ifndef DURWARD_TAP_MAIN_H
#define DURWARD_TAP_MAIN_H

#include <CUnit/CUnit.h>

/* Supplied by the test file: registers its suites with CU_add_suite and CU_add_test. */
void tap_suites(void);

/* Called inside a test that cannot run here; the reason (a constant) is printed with the result.
 * A failed assertion of the same test still counts as a failure. */
void tap_skip(const char *reason);

#endif
