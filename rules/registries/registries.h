/* Where package managers get their packages from: read from the user's and the system's
 * configuration of these programs on this host. Nothing is run, nothing is asked; a credential in a
 * URL is left out. */
#ifndef DURWARD_REGISTRIES_H
#define DURWARD_REGISTRIES_H

#include <jansson.h>

#include "buf.h"
#include "err.h"

enum {
    REGISTRY_FILE_MAX = 256 * 1024, /* bytes of a file that is read */
    REGISTRY_FILES_MAX = 256,       /* files of one client */
    REGISTRY_SETTINGS_MAX = 256,    /* settings of one client */
    REGISTRY_NOTES_MAX = 64,
    REGISTRY_TEXT_MAX = 16 * 1024, /* of what the client is given inside */
    REGISTRY_URL_MAX = 512,
};

/* What was found. All owned; zeroed is fine for registries_done. */
struct registries {
    json_t *places;   /* "HOST", "HOST:PORT", "http://HOST"; each once */
    json_t *files;    /* the names of those that were read */
    json_t *looked;   /* the names of all that would have been, and of the folders */
    json_t *notes;    /* what was left out, and why */
    json_t *settings; /* { SECTION: { KEY: { "text": TEXT, "urls": [URL] } } }, cleaned */
};

/* Is there a client of this name? */
bool registries_known(const char *client);
int registries_find(const char *client, struct registries *ret, struct err *err) WUNUSED;
void registries_done(struct registries *r);
/* The client's own configuration, reduced to where packages come from; empty where it has none. */
int registries_text(const char *client, const struct registries *r, struct buf *to) WUNUSED;

/* May a credential stand in the path of a URL? Something like "@HOST" (a password with a "/" in it
 * ends the name of the host too early), or a token as a part of the path, as some registries take
 * theirs: 16 or more letters and digits, mixed as no word is. */
bool registry_path_doubtful(const char *path);

#endif
