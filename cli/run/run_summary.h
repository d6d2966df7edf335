/* The line at the end of `durward run`: what was denied, and what failed at its origin. */
#ifndef DURWARD_RUN_SUMMARY_H
#define DURWARD_RUN_SUMMARY_H

#include <jansson.h>

#include "denials.h"

/* "durward: 2 denied: …; 1 failed: …" on stderr, without an end of line. false: nothing was, and
 * nothing is printed. */
bool run_summary_print(const struct denials *d);
/* Something was denied or failed for this reason. */
bool run_summary_has(const struct denials *d, const char *code);
/* What was refused or what failed, as they were counted. */
json_t *run_summary_json(const struct denials *d, bool failed);
/* A line of calls to models, where there were any. */
void run_summary_print_calls(const struct denials *d);
json_t *run_summary_calls_json(const struct denials *d);

#endif
