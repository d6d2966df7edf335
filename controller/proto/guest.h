/* What the guest of a microVM finds in its first files (microvm_initrd.c). */
#ifndef DURWARD_GUEST_H
#define DURWARD_GUEST_H

#define GUEST_PROGRAM "durward-guest" /* its /init */
#define GUEST_MODULE  "modules/%02u"  /* in the order in which they are loaded */
#define GUEST_WORDS                                                                           \
    "words" /* host name, number of tasks (0: any), files that the host serves at once, bytes \
               of /dev/shm, build, words of durward-init; a NUL after each */
#define GUEST_TAG  "root" /* of the file system */
#define GUEST_PORT "/dev/vport0p1"

#endif
