/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_SPEC_H
#define NACRE_CLI_SPEC_H

#include "api/runtime.pb-c.h"
#include "base/text/args.h"
#include "cli/options/health_options.h"
#include "cli/options/walls.h"
#include "cli/output/tty.h"

/* From the command line to the messages of the runtime core, and back from a status to an exit
 * status. */

/* A list of NAME=VALUE for a message. */
struct spec_env {
	char **list; /* ends with NULL */
	size_t n;
};

/* The variables of --env-file (has_files: the command has it) and --env, in this order; NAME alone
 * takes the value that it has here. ERROR_INVALID for another form. */
int spec_env_init(struct spec_env *e, const struct args *a, bool has_files, struct error *err);
void spec_env_done(struct spec_env *e);

/* The only container of a workload, by --user, --env, --cwd, --entrypoint, IMAGE and COMMAND, and
 * cli/options/walls.h. */
struct spec_container {
	Aurae__Runtime__V0__Container message;
	Aurae__Runtime__V0__Container *list[1]; /* for a request */
	char *entrypoint[1];
	struct spec_env env;
	struct walls walls;
	struct health_options health;
};

int spec_container_init(struct spec_container *s, const struct args *a, struct error *err);
void spec_container_done(struct spec_container *s);

/* Sets a field where there is a value. */
void spec_set(char **field, char *value);
/* All values of an option for a repeated field of a message: the caller frees the list alone. */
char **spec_values(const struct args *a, const char *name, size_t *ret_n);
/* The values of --nic as fields of a request, whose memory lasts as long as *n and the arguments.
 */
struct spec_nic {
	Aurae__Runtime__V0__Nic message;
	Aurae__Runtime__V0__Nic *list[1];
	char *words; /* NULL: none */
};

int spec_nic_init(struct spec_nic *n, const struct args *a, struct error *err);
void spec_nic_done(struct spec_nic *n);

/* The value of a --timeout or --time in milliseconds, `otherwise` where it was not given. */
int spec_milliseconds(const struct args *a, const char *name, uint64_t otherwise, uint64_t *ret,
		      struct error *err);

/* The value of --detach-keys; none without a terminal. */
int spec_detach(struct detach *d, const struct args *a, bool tty, struct error *err);

/* Tells the warnings of each container, and complains about each that could not be started. The
 * exit status for the first of them, 0 where there is none. */
int spec_report(Aurae__Runtime__V0__ContainerStatus *const *containers, size_t n);

#endif
