/* Memory goes back to the host after a crowd has gone. What a role frees stays in its heap when
 * anything stands behind it, and a heap that was large once would stay so: when many large things
 * were freed (a connection with its TLS is some 50 KB), its free pages are given back a moment
 * later. */
#ifndef DURWARD_SHED_H
#define DURWARD_SHED_H

struct event_base;
struct shed;

struct shed *shed_new(struct event_base *base); /* NULL: out of memory */
void shed_free(struct shed *s);                 /* NULL is fine */
/* One such thing goes. NULL is fine: then nothing is given back. */
void shed_note(struct shed *s);

#endif
