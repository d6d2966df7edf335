/* How bad a record is for whoever watches many: a credential that is not the sandbox's own is not a
 * host that no rule names. One table, by code, by kind and by event. */
#ifndef DURWARD_SEVERITY_H
#define DURWARD_SEVERITY_H

#include "record.h"

enum severity {
    SEVERITY_INFO = 0,
    SEVERITY_LOW,      /* refused, and usual: a rule is missing, a request malformed */
    SEVERITY_MEDIUM,   /* tried what it was not made for */
    SEVERITY_HIGH,     /* a way around a rule was tried, or a part of the product failed */
    SEVERITY_CRITICAL, /* a secret was where it must not be, or on its way there */
};

/* Of a record of this kind with this code; a code that says nothing leaves it to the kind. */
enum severity severity_of(enum record_kind kind, const char *code);
/* Of a lifecycle record. */
enum severity severity_of_event(const char *event);
const char *severity_name(enum severity s); /* "info" ... "critical" */
/* The codes and events that the tables name; NULL past the end. */
const char *severity_code_at(size_t i);
const char *severity_event_at(size_t i);

#endif
