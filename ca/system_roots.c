/* Lists where distributions keep their bundle and finds the first of these files that is not
 * empty. */
#include "system_roots.h"

#include <sys/stat.h>

const char *system_roots_path(void)
{
    static const char *const places[] = {
        "/etc/ssl/certs/ca-certificates.crt",                /* Debian, Ubuntu, Alpine, Arch */
        "/etc/pki/tls/certs/ca-bundle.crt",                  /* Fedora, RHEL */
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* the same, newer */
        "/etc/ssl/ca-bundle.pem",                            /* SUSE */
        "/etc/ssl/cert.pem",                                 /* Alpine without ca-certificates */
    };
    struct stat st;
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (stat(places[i], &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
            return places[i];
    return NULL;
}
