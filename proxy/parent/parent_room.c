/* Whether there is room for one sandbox more. Each takes a descriptor of the parent's for every
 * listener and one for its gate: more than of any other role, so that what holds here holds for
 * all. Without a bound the last one that was let in would take what gates need to be started again,
 * and others would lose their way out. */
#include "parent.h"

#include <dirent.h>
#include <sys/resource.h>

enum {
    KEPT = 64,    /* for roles that are started again, for reloads, for whoever asks the parent */
    PASSING = 16, /* ends of channels, and policies, on their way to its gate */
    OURS = 128    /* what the parent has open for no sandbox, where it cannot count */
};

/* And for policies, of which a reload may bring more. */
static size_t for_sandboxes(const struct parent *p)
{
    const struct sandbox *s;
    const struct child *c;
    size_t n = parent_policies_open(p);
    TAILQ_FOREACH(s, &p->sandboxes, link)
    n += s->n_listeners;
    TAILQ_FOREACH(c, &p->children, link)
    n += c->ch != NULL;
    return n;
}

/* Of all that is open; 0: nobody knows. */
static size_t count_open(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t n = 0;
    if (dir == NULL)
        return 0;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n - 1; /* the directory itself */
}

/* Its listeners are open already, in the message that brought them. */
int parent_room(struct parent *p, size_t listeners, struct err *err)
{
    size_t taken = for_sandboxes(p) + listeners, need = listeners + 1 + PASSING;
    struct rlimit r;
    if (p->mode == PARENT_RUN)
        return 0; /* there is one, and nobody beside it */
    if (p->files_ours == 0) {
        size_t open = count_open();
        p->files_ours = open > taken ? open - taken : OURS;
    }
    if (getrlimit(RLIMIT_NOFILE, &r) < 0 || p->files_ours + taken + need + KEPT <= r.rlim_cur)
        return 0;
    return err_set(
        err, ERR_LIMIT,
        "no room for another sandbox: the daemon has %zu of at most %llu files open, and "
        "keeps %d for those that run; raise LimitNOFILE of its unit (ulimit -Hn)",
        p->files_ours + taken, (unsigned long long)r.rlim_cur, KEPT);
}
