/* The table of brokers. */
#include "broker.h"

static const struct broker brokers[BROKERS] = {
    {SCHEME_SSH, ROLE_SSH_FRONT, ROLE_SSH_BACK, false},
    {SCHEME_POSTGRES, ROLE_POSTGRES_FRONT, ROLE_POSTGRES_BACK, true},
    {SCHEME_REDIS, ROLE_REDIS_FRONT, ROLE_REDIS_BACK, true},
    {SCHEME_MYSQL, ROLE_MYSQL_FRONT, ROLE_MYSQL_BACK, true},
    {SCHEME_SMTP, ROLE_SMTP_FRONT, ROLE_SMTP_BACK, true},
    {SCHEME_IMAP, ROLE_IMAP_FRONT, ROLE_IMAP_BACK, true},
};

const struct broker *broker_at(size_t i)
{
    return i < BROKERS ? &brokers[i] : NULL;
}

const struct broker *broker_of(enum role r)
{
    for (size_t i = 0; i < BROKERS; i++)
        if (brokers[i].front == r || brokers[i].back == r)
            return &brokers[i];
    return NULL;
}

bool broker_is_back(enum role r)
{
    const struct broker *b = broker_of(r);
    return b && b->back == r;
}

bool broker_is_front(enum role r)
{
    const struct broker *b = broker_of(r);
    return b && b->front == r;
}
