/* The fields of a body into which a placeholder's secret may go: it is the sandbox's choice among
 * those that the rule names, and nowhere else, for what lies in another field an origin may show to
 * anybody. Reads strictly and refuses what could be read in two ways. Pure. */
#ifndef DURWARD_PLACEMENT_SLOTS_H
#define DURWARD_PLACEMENT_SLOTS_H

#include "placement.h"

/* Stands each of the marks in a field of c's? Always true where there is none of them. JSON: the
 * body is one text of RFC 8259, each mark in a string at one of the pointers, without escapes.
 * Forms: in the value of a field of that very name. */
bool placement_slots_hold(const struct credential *c, enum placement_body kind,
                          const struct injector_channel_marks *marks, struct slice body);

/* Are the fields beside it there, at the top of the body, with their very texts? Not where any
 * field of the top is there twice, or in another case: an origin may read either. */
bool placement_slots_beside(const struct credential *c, enum placement_body kind,
                            struct slice body);

#endif
