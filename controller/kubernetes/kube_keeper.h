/* The keeper of a sandbox that is a pod (controller/proto/cluster.h): the builder's launcher became
 * this program. It has the API server make the pod, says when that runs, has a process of its own
 * for each command (kube_session.h), and deletes the pod in the end. */
#ifndef DURWARD_KUBE_KEEPER_H
#define DURWARD_KUBE_KEEPER_H

/* The exit status. */
int kube_keeper_main(int argc, char **argv);

#endif
