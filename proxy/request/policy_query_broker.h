/* policy_query.c's part for what brokers carry (broker/). */
#ifndef DURWARD_POLICY_QUERY_BROKER_H
#define DURWARD_POLICY_QUERY_BROKER_H

#include "policy_query.h"

/* 1: it is such a URL, and read; 0: it is another; -1 with err. */
int policy_query_broker_url(const char *url, struct policy_query *q, struct err *err) WUNUSED;
/* The method, and what stands behind the URL, go with its scheme. */
int policy_query_broker_check(const struct policy_query *q, struct err *err) WUNUSED;
void policy_query_broker_decide(const struct policy *p, const struct policy_query *q,
                                struct answer *ret);

#endif
