/* How durward-init is called as the two ends of MCP over stdio (controller/init/stdio_mcp.h). */
#ifndef DURWARD_STDIO_PROGRAM_H
#define DURWARD_STDIO_PROGRAM_H

enum { STDIO_PORT = 8377 }; /* of loopback, where the server's end answers */

#define STDIO_PROGRAM "durward-mcp"
#define STDIO_INSIDE  "/run/durward/" STDIO_PROGRAM
/* What the server's end writes to its standard output once it listens. */
#define STDIO_READY STDIO_PROGRAM ": listens\n"

#endif
