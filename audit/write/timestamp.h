/* Points in time as text: RFC 3339, UTC, nine digits, fixed width (so they sort as text). */
#ifndef DURWARD_TIMESTAMP_H
#define DURWARD_TIMESTAMP_H

#include "err.h"
#include "slice.h"

enum { TIMESTAMP_MAX = 32 };

uint64_t timestamp_now(void); /* wall clock, ns since 1970 */
/* "2026-11-21T01:59:02.123456789Z" into buf (TIMESTAMP_MAX bytes); returns buf. */
char *timestamp_text(uint64_t ns, char *buf, size_t size);
/* "20261121T015902Z" for file names. */
char *timestamp_compact(uint64_t ns, char *buf, size_t size);
/* RFC 3339 with Z or an offset, fraction optional; a date alone is its midnight UTC; or a distance
 * back from `now`: "90s", "10m", "2h", "7d". 0 or -1 with err. */
int timestamp_parse(const char *text, uint64_t now, uint64_t *ret, struct err *err);

#endif
