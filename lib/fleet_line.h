/* Bounds of what hosts of a fleet say of their audit logs: lines (audit/read/fleet_head.h) that the
 * logger makes and reads, and that the fleet's role keeps in the database without reading them. */
#ifndef DURWARD_FLEET_LINE_H
#define DURWARD_FLEET_LINE_H

enum {
    FLEET_LINE_HOSTS = 32,
    FLEET_LINE_NAME = 64,
    FLEET_LINE_MAX = 8 * 1024,
    FLEET_KEEP = 256, /* of each host's lines, the latest: these the database has */
    FLEET_PAGE = 24,  /* lines of an answer */
};

#endif
