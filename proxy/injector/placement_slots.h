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

/* Is the body one of those that the rule describes: at its top its fields alone, each once, with
 * their texts, and in the one with the secret a mark and nothing else in each of the slots? A name
 * that is not the rule's an origin may read as one that is (in another case, folded, cut). */
enum placement_described { PLACEMENT_NOT_DESCRIBED = 0, PLACEMENT_WITH_MARK, PLACEMENT_WITHOUT };
enum placement_described placement_slots_beside(const struct credential *c,
                                                enum placement_body kind,
                                                const struct injector_channel_marks *marks,
                                                struct slice body);

#endif
