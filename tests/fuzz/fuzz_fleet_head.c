/* Lines in which hosts of a fleet say how far their logs go, as a database brings them: what is
 * taken for one is within its bounds, and its host and number are what whoever only peeks sees. */
#include "fleet_head.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
    if (!right)
        abort();
}

static void check(const struct fleet_head *h, struct slice line)
{
    char host[FLEET_LINE_NAME + 1];
    uint64_t number;
    require(line.n <= FLEET_LINE_MAX && line.p[line.n - 1] != ' ');
    require(fleet_head_peek(line, host, &number) == 0);
    require(strcmp(host, h->host) == 0 && number == h->number && number > 0);
    require(h->n_seen <= FLEET_LINE_HOSTS && h->n_doubts <= FLEET_DOUBTS_MAX);
    require(strlen(h->time) < sizeof h->time && strlen(h->key) == FLEET_KEY_ID);
    for (size_t i = 0; i < h->n_seen; i++) {
        require(fleet_host_ok(slice_str(h->seen[i].host)) && h->seen[i].number > 0);
        require(i == 0 || strcmp(h->seen[i - 1].host, h->seen[i].host) < 0);
    }
    for (size_t i = 0; i < h->n_doubts; i++)
        require(fleet_host_ok(slice_str(h->doubt[i].host)) && h->doubt[i].kind > 0 &&
                h->doubt[i].kind < DOUBT_KINDS);
    for (size_t i = 0; i < line.n; i++)
        require(line.p[i] >= ' ' && line.p[i] <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fleet_head h;
    struct slice line = {(const char *)data, size};
    if (fleet_head_parse(line, &h) == 0)
        check(&h, line);
    return 0;
}
