/* What is noted of a sandbox's files when it begins, as `durward run` prints it. */
#ifndef DURWARD_RUN_NOTES_H
#define DURWARD_RUN_NOTES_H

/* Lines as the builder notes them (controller/rootfs/mask.h): the masked files are printed in one
 * line, however many there are, and every other note in a line of its own. */
void run_notes_print(const char *notes);

#endif
