/* The main of the SSH broker's back. */
#include "ssh_back.h"

#include "ssh_agent.h"

int ssh_back_main(void);

static int back_loaded(struct back *b, struct err *err UNUSED)
{
    static struct ssh_back s;
    s.back = b;
    LIST_INIT(&s.requests);
    LIST_INIT(&s.agent_requests);
    s.pushes = (struct quota){.total = SSH_PUSH_TOTAL, .each = SSH_PUSH_EACH};
    LIST_INIT(&s.pushes.owners);
    s.looking = (struct quota){.total = SSH_RECORDING_LOOKING, .each = SSH_RECORDING_LOOKING / 4};
    s.agents = (struct quota){.total = SSH_AGENT_REQUESTS_MAX, .each = SSH_AGENT_REQUESTS_OF_ONE};
    LIST_INIT(&s.agents.owners);
    LIST_INIT(&s.looking.owners);
    b->self = &s;
    return 0;
}

static int back_open(struct back *b, const struct back_asked *asked)
{
    return ssh_agent_is(&asked->at) ? ssh_agent_request_new(b->self, asked)
                                    : ssh_request_new(b->self, asked);
}

static void back_policy(struct back *b)
{
    ssh_requests_again(b->self);
    ssh_agent_requests_again(b->self);
}

int ssh_back_main(void)
{
    static const struct back_life life = {.role = ROLE_SSH_BACK,
                                          .scheme = SCHEME_SSH,
                                          .load = back_loaded,
                                          .open = back_open,
                                          .policy = back_policy};
    return back_main(&life);
}
