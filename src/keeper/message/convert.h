/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_CONVERT_H
#define NACRE_KEEPER_CONVERT_H

#include "api/instance.pb-c.h"
#include "base/log/error.h"
#include "cell/layer/keeper.h"
#include "cell/spec.h"
#include "isolate/cgroup/process.h"

/*
 * The only place where a message of nacre.instance.v1 meets a word of the domain. Nothing is copied
 * unless it says so: what comes out points into what went in.
 */

struct arena;

/* The version of the protocol that Hello agrees on. */
#define KEEPER_PROTOCOL 1U

/* The prefix of every method of the service. */
#define KEEPER_METHOD(name) "/nacre.instance.v1.InstanceService/" name

/* A string for a message, whose fields are not const although nobody writes to them. */
char *convert_str(const char *s);

void convert_status(Nacre__Instance__V1__ContainerStatus *to, const struct container_view *view);
void convert_user(Nacre__Instance__V1__ContainerUser *to, const struct process_identity *from);
/* A copy. -EPROTO for more groups than PROCESS_GROUPS_MAX. */
int convert_identity(struct process_identity *to, const Nacre__Instance__V1__ContainerUser *from);
/* Without its user. -EPROTO for a state that this version does not know. */
int convert_view(struct container_view *to, const Nacre__Instance__V1__ContainerStatus *from);

void convert_start_request(Nacre__Instance__V1__StartRequest *to, const struct cell_spec *cell,
			   const struct container_spec *spec);
/* Parts of that request, which are put into it by who has the memory; a mount but for its token. */
void convert_mount(Nacre__Instance__V1__Mount *to, const struct container_mount *from);
/* The lists of such a message: it must live as long. */
struct convert_security_lists {
	uint32_t groups[CONTAINER_GROUPS_MAX];
	Nacre__Instance__V1__Rlimit limits[ISOLATE_RLIMITS_MAX], *rlimits[ISOLATE_RLIMITS_MAX];
};

void convert_security_request(Nacre__Instance__V1__Security *to,
			      struct convert_security_lists *lists,
			      const struct container_spec *spec);
void convert_disk(Nacre__Instance__V1__Disk *to, const struct container_disk *from);
void convert_file(Nacre__Instance__V1__File *to, const struct container_file *from);
/* Lists are ended in the arena. ERROR_INVALID names the field. */
int convert_start(struct cell_spec *cell, struct container_spec *spec,
		  const Nacre__Instance__V1__StartRequest *from, struct arena *arena,
		  struct error *err);
int convert_exec(struct keeper_exec_spec *to, const Nacre__Instance__V1__ExecRequest *from,
		 struct arena *arena, struct error *err);
int convert_attach(struct keeper_attach_spec *to, const Nacre__Instance__V1__AttachRequest *from,
		   struct error *err);
/* NULL is 0 by 0. ERROR_INVALID names the field. */
int convert_size(struct terminal_size *to, const Nacre__Instance__V1__TerminalSize *from,
		 struct error *err);
/* SIGNAL of the request as a number: 1 to 64. */
int convert_signal(const Nacre__Instance__V1__SignalRequest *from, int *ret, struct error *err);

#endif
