/* YAML 1.2 core, strictly, into jansson values with the line of each (see node.h).
 *
 * Only `true` and `false` are booleans, only null, ~ and nothing are null, only decimal digits
 * without a leading zero (and with or without "-") are integers; every other plain scalar is text,
 * and so are all keys. Refused: duplicate keys, anchors, aliases, tags, directives, a second
 * document, a NUL, more than 1 MiB, more than 32 levels. */
#ifndef DURWARD_YAML_TREE_H
#define DURWARD_YAML_TREE_H

#include <jansson.h>

#include "err.h"
#include "slice.h"

enum { YAML_TREE_MAX = 1024 * 1024, YAML_TREE_DEPTH = 32 };

/* 0 and new references in *root and *lines, or -1. An empty text gives null. */
int yaml_tree_parse(struct slice text, const char *name, json_t **root, json_t **lines,
                    struct err *err);

#endif
