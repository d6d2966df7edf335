/* Room for a parser that recurses: a text from a sandbox says how deep, the user's limit of the
 * stack (ulimit -s) how deep it may. On a stack of its own the second says nothing. */
#ifndef DURWARD_PARSER_STACK_H
#define DURWARD_PARSER_STACK_H

/* Runs fn(arg) on a stack of PARSER_STACK bytes, of which the host has what was touched. 0, or -1
 * without memory: fn was not run. Not within itself, and in one thread. */
enum { PARSER_STACK = 64 << 20 };
int parser_stack_run(void (*fn)(void *arg), void *arg);

#endif
