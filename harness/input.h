/*
 * Files that programs read: nothing that one could wait for, or that has no
 * end.
 */
#ifndef RG_HARNESS_INPUT_H
#define RG_HARNESS_INPUT_H

#include <stdio.h>

/* A regular file for reading; null, with errno set: it is none, or cannot be
 * opened. */
FILE *rg_input_open(const char *path);

#endif
