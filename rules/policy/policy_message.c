/* Reads policies and limits out of the parent's messages, and maps the policies' images. */
#include "policy_message.h"

#include "policy_image.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int policy_message_get(struct msg *m, struct policy_message *ret)
{
    if (msg_get_str(m, ret->name, sizeof ret->name) < 0 || msg_get_u32(m, &ret->generation) < 0)
        return -1;
    return msg_get_fd(m, &ret->fd);
}

/* What may not change under our eyes, nor become shorter. */
static bool is_sealed(int fd)
{
    const int want = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & want) == want;
}

static void unmap(void *p, size_t n)
{
    munmap(p, n);
}

static struct policy *open_fd(int fd, struct err *err)
{
    struct stat st;
    if (!is_sealed(fd)) {
        err_set(err, ERR_PARSE, "the image of a policy is not sealed");
        return NULL;
    }
    if (fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > POLICY_IMAGE_MAX) {
        err_set(err, ERR_LIMIT, "the image of a policy is empty, or over its bound");
        return NULL;
    }
    size_t n = (size_t)st.st_size;
    /* private: a kernel before 6.7 refuses a shared map of a file sealed against writing */
    void *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) {
        err_sys(err, "mapping a policy");
        return NULL;
    }
    return policy_open(p, n, unmap, err);
}

struct policy *policy_message_load(const struct policy_message *p, struct err *err)
{
    struct policy *ret = open_fd(p->fd, err);
    close(p->fd);
    return ret;
}

int limits_get(struct msg *m, struct limits *ret)
{
    struct slice raw;
    if (msg_get_slice(m, sizeof *ret, &raw) < 0 || raw.n != sizeof *ret)
        return -1;
    memcpy(ret, raw.p, sizeof *ret);
    return 0;
}
