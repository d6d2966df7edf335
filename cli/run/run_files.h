/* Files of the sandbox's home that `durward run` writes: steps of a request. */
#ifndef DURWARD_RUN_FILES_H
#define DURWARD_RUN_FILES_H

#include "err.h"
#include "config.h"
#include "run.h"

struct buf;

/* A bind lies around the path, or (below) in it: what is there is not ours to change. */
bool run_files_meet_bind(const struct run_request *r, const char *path, bool below);
/* The text with {{mcp_servers json}} (members of an object) and {{mcp_servers toml}} (tables)
 * filled in: the servers that the policy names. */
int run_files_servers(const struct config *c, const char *policy, const char *text, struct buf *to);
/* path: below the home; text: {{project}} is filled in here, placeholders by the controller. op:
 * INSIDE_WRITE or INSIDE_WRITE_NEW. Where a bind is, nothing is written. */
int run_files_add(struct run_request *r, int op, const char *path, const char *text,
                  struct err *err) WUNUSED;

/* The configuration of package managers whose presets the policy uses, where the home has none.
 * What was left out of it is told. */
int run_files_found(struct run_request *r, const struct config *c, struct err *err) WUNUSED;

#endif
