/* The file of a cluster's objects (node.objects): when another takes its place, the configuration
 * is read again. */
#ifndef DURWARD_PARENT_OBJECTS_H
#define DURWARD_PARENT_OBJECTS_H

struct parent;
struct parent_objects;

/* NULL: there is none, or memory is out. */
struct parent_objects *parent_objects_new(struct parent *p);
void parent_objects_free(struct parent_objects *o); /* NULL is fine */

#endif
