/* The packet log's readers: the input once as an IP packet, once as a netlink datagram. */
#include "nflog.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(void *arg, const struct nflog_packet *k)
{
    char text[NFLOG_TARGET_MAX];
    (void)arg;
    nflog_packet_text(k, text, sizeof text);
    for (const char *p = text; *p; p++)
        if (*p < ' ' || *p > '~')
            abort();
    if (strlen(text) + 1 >= sizeof text) /* never cut */
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nflog_packet k;
    struct nflog_seq seq = {0};
    if (nflog_packet_parse(data, size, &k) == 0)
        check(NULL, &k);
    unsigned char *aligned = malloc(size ? size : 1); /* exactly so much, as far as is known */
    if (aligned == NULL)
        return 0;
    if (size)
        memcpy(aligned, data, size);
    (void)nflog_datagram(aligned, size, &seq, check, NULL);
    free(aligned);
    return 0;
}
