/* Ports of this host that lead into sandboxes: the parent listens there and tells the dialer, which
 * never dials one of them. */
#ifndef DURWARD_PUBLISHED_H
#define DURWARD_PUBLISHED_H

enum { PUBLISHED_MAX = 8192 };

#endif
