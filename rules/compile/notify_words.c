/* The words of `audit.notify`, for whoever reads them and whoever tells of them: apart from the
 * reader, so that a role that only tells does not hold the compiler of configurations. */
#include "config.h"

static const char *const measures[] = {"bytes_up",      "hosts",           "denied",
                                       "names_refused", "packets_refused", "foreign_credentials",
                                       "cross_sandbox", "misplaced",       "reflected",
                                       "log_bytes"};
const char *const config_notify_thens[NOTIFY_THENS] = {"notify", "pause", "kill"};

_Static_assert(ARRAY_LEN(measures) == NOTIFY_MEASURES - 1, "a name each");

const char *config_notify_measure(enum notify_measure m)
{
    return m > 0 && m < NOTIFY_MEASURES ? measures[m - 1] : "";
}

const char *config_notify_then(enum notify_then t)
{
    return (unsigned)t < NOTIFY_THENS ? config_notify_thens[t] : "";
}
