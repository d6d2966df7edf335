/* Memory goes back to the host after a crowd has gone. What a role frees stays in its heap when
 * anything stands behind it, and a heap that was large once would stay so: when many large things
 * were freed (a connection with its TLS is some 50 KB), its free pages are given back a moment
 * later. */
#ifndef DURWARD_HEAP_TRIM_H
#define DURWARD_HEAP_TRIM_H

struct event_base;
struct heap_trim;

struct heap_trim *heap_trim_new(struct event_base *base); /* NULL: out of memory */
void heap_trim_free(struct heap_trim *s);                 /* NULL is fine */
/* One such thing goes. NULL is fine: then nothing is given back. */
void heap_trim_note(struct heap_trim *s);

#endif
