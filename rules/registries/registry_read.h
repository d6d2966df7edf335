/* The readers of clients' files, and what they put what they read into. Internal to
 * rules/registries. */
#ifndef DURWARD_REGISTRY_READ_H
#define DURWARD_REGISTRY_READ_H

#include "registries.h"

struct registry_reading {
    struct registries *into;
    const char *file; /* that is read; notes name it */
};

/* text is NUL-terminated and taken apart; n: its length. */
typedef void (*registry_reader)(struct registry_reading *r, char *text, size_t n);
void registry_read_pip(struct registry_reading *r, char *text, size_t n);
void registry_read_npm(struct registry_reading *r, char *text, size_t n);
void registry_read_go(struct registry_reading *r, char *text, size_t n);
void registry_read_gem(struct registry_reading *r, char *text, size_t n);
void registry_read_bundle(struct registry_reading *r, char *text, size_t n);
void registry_read_apt_list(struct registry_reading *r, char *text, size_t n);
void registry_read_apt_sources(struct registry_reading *r, char *text, size_t n);
void registry_read_cargo(struct registry_reading *r, char *text, size_t n);
void registry_read_containers(struct registry_reading *r, char *text, size_t n);
void registry_read_docker(struct registry_reading *r, char *text, size_t n);
void registry_read_docker_daemon(struct registry_reading *r, char *text, size_t n);
void registry_read_maven(struct registry_reading *r, char *text, size_t n);
void registry_read_nuget(struct registry_reading *r, char *text, size_t n);

/* A note on the file that is read. */
void registry_note(struct registry_reading *r, const char *key, const char *what);

/* The URL without what is no place (credential, query, fragment), http or https only; "sparse+" and
 * "registry+" before it stay. false: it is none, which a note says where it could be meant. */
bool registry_url(struct registry_reading *r, const char *key, const char *url,
                  char to[REGISTRY_URL_MAX]);
/* Set a key to these URLs, separated by blanks; those that are none are left out. What an earlier
 * file or line said is replaced. */
void registry_set_urls(struct registry_reading *r, const char *section, const char *key,
                       const char *urls);
/* Set a key to a text that is no URL. One with signs that could end a value is left out. */
void registry_set_text(struct registry_reading *r, const char *section, const char *key,
                       const char *text);
/* Set it to a text and one URL more or less: GOPROXY and the like. urls may be "". */
void registry_set_both(struct registry_reading *r, const char *section, const char *key,
                       const char *text, const char *urls);
/* A host without a scheme, with a port or a path behind it. */
void registry_set_host(struct registry_reading *r, const char *section, const char *key,
                       const char *host);
void registry_drop_section(struct registry_reading *r, const char *section);
void registry_drop(struct registry_reading *r, const char *section, const char *key);

/* Blanks at both ends, and quotes around, cut off in place. */
char *registry_trim(char *s);
/* The next of words that blanks separate, cut off in place; NULL: no more. */
char *registry_word(char **at);

/* "HOST", "HOST:PORT" or "http://HOST" of a URL that registry_url made. */
void registry_place(const char *url, char to[REGISTRY_URL_MAX]);

#endif
