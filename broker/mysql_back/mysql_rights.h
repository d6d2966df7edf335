/* What a login may do, by the server's own words: the lines of SHOW GRANTS. */
#ifndef DURWARD_MYSQL_RIGHTS_H
#define DURWARD_MYSQL_RIGHTS_H

#include "slice.h"

/* NULL, or what of this line goes beyond reading (read_only) or beyond the database (n 0: any). The
 * text is for people, and lies in `why`: nothing behind the line's TO, where hashes are. */
const char *mysql_rights_beyond(struct slice line, bool read_only, struct slice database, char *why,
                                size_t size);

#endif
