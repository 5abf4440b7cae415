/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_PROGRAM_H
#define NACRE_CELL_PROGRAM_H

#include <stdbool.h>

#include "base/log/error.h"
#include "cell/spec.h"
#include "isolate/plan/plan.h"
#include "isolate/user/user.h"

/*
 * The program, its user, its environment and its isolation: the part of a plan that the first
 * program of a container and an exec have in common. Touches nothing on the machine but reads
 * passwd and group of an image.
 */

/* Everything that can be said about the words alone. ERROR_INVALID names the field. */
int program_check(char *const *argv, char *const *env, const char *cwd, const char *user,
		  struct error *err);
int program_check_container(const struct cell_spec *cell, const struct container_spec *spec,
			    struct error *err);

/* The user; root_fd is the container's root, and not looked at for CONTAINER_PROCESS. The error
 * names the field. */
int program_user(enum container_kind kind, int root_fd, const char *user, struct isolate_user *ret,
		 struct error *err);

/* A copy of env with what is missing of PATH, HOME, and (where hostname is not NULL) HOSTNAME. */
int program_env(char ***ret, char *const *env, const char *home, const char *hostname);
/* A TERM where it is missing, for a program with a terminal. */
int program_env_terminal(char ***env);
/* A copy of env with the entries of `over` put in their places. */
int program_env_over(char ***ret, char *const *env, char *const *over);

/* Privilege and signals: capabilities, filter, limits, session. Namespaces, root and stdio stay as
 * isolate_plan_init() made them. */
void program_plan(struct isolate_plan *plan, enum container_kind kind,
		  const struct isolate_user *user);
/* Applies the security settings that differ from that default, for a container from an image. */
void program_secure(struct isolate_plan *plan, const struct container_security *security);
/* Its groups, as `security` has them. */
void program_add_groups(struct isolate_user *user, const struct container_security *security);

#endif
