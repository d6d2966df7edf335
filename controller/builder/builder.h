/* The builder role: makes local sandboxes and takes them down.
 *
 * For each W_BUILD of a controller it starts a launcher (launcher.h), passes the sandbox's
 * listeners to the parent (W_LISTENERS, before anything of the sandbox runs), lets the launcher go
 * on when the parent has them (W_LISTENERS_OK), waits for the self-test of durward-init and answers
 * W_BUILT with the descriptor to talk to it. A sandbox belongs to the channel that asked for it;
 * when that channel or the parent goes, so does the sandbox. One that is to be kept (W_KEEP)
 * outlives the channel for a while, so that a new controller can adopt it (W_ADOPT).
 *
 * W_INIT: state_dir:str, roots_dir:str, init_path:str (the program durward-init), binds:u8 (may
 * anything of the host be bound? The API cannot ask for it), n × (path:str, writable:u8): what MCP
 * servers are shown of it all the same; then what there is to know of a node's pods (pod.h) and of
 * a cluster (cluster.h). */
#ifndef DURWARD_BUILDER_H
#define DURWARD_BUILDER_H

enum { BUILDER_KEEP_SECONDS = 15 };

/* Runs until the parent is gone; the exit status. */
int builder_main(void);

#endif
