/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_BANNED_H
#define NACRE_BASE_BANNED_H

/*
 * Functions that this house does not call: unbounded copies, hidden state, surprises with signals
 * or descriptors. Every compilation includes this header first (see meson.build), after the libc
 * headers that declare them.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

/* Macros of glibc where clang compiles with _FORTIFY_SOURCE. */
#undef sprintf
#undef vsprintf
#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok atoi atol gets
#undef alloca
#pragma GCC poison alloca system popen select tmpnam mktemp
#pragma GCC poison localtime gmtime ctime asctime dup dup2 vfork

#endif
