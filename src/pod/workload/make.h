/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_MAKE_H
#define NACRE_POD_MAKE_H

#include "pod/storage/volume.h"
#include "pod/workload/model.h"

/*
 * From what a client asked for to a workload: checks, looks the images up, and says what each
 * container will execute (OCI image specification, "Conversion to OCI Runtime Configuration").
 */

struct etc_wish;
struct image_store;
struct network_wish;

struct pod_container_spec {
	const char *name;
	const char
		*image; /* reference; NULL for an executable; of a vm what its disk was made of */
	char *const *command;
	char *const *args;
	char *const *env;
	const char *working_dir;
	const char *user;
	bool stdin_open;
	bool tty;
	struct terminal_size terminal;
	bool hold_output;
	bool is_init;                /* it ends before others begin (pod/workload/order.h) */
	bool is_debug;               /* for sandbox_create_container() alone */
	struct restart_rule restart; /* its own (pod/restart/container_restart.h) */
	struct pod_requires requires;
	const struct pod_mount_spec *mounts;
	size_t n_mounts; /* at most CONTAINER_MOUNTS_MAX */
	bool read_only_root;
	uint64_t disk;       /* bytes that its layer may take; 0: as the configuration says */
	char *const *limits; /* isolate/cgroup/limits_words.h; NULL: none */
	struct container_security security;
	struct container_masks masks;
	bool new_proc; /* of an executable in an instance: container_spec.new_proc */
	/* A seccomp profile as JSON: a text, or a file of the node. It is compiled into `filter`
	 * and security.own_filter by runtime/storage/volumes_call.h. */
	const char *profile_path, *profile_field; /* the field also for the text; NULL: none */
	const void *profile;
	size_t profile_len;
	struct container_filter filter;
	const char *settings; /* see struct pod_container; NULL: none */
	bool has_log;         /* of a sandbox: log_fd is its log, and is copied; else one is made */
	int log_fd;
	/* Where whoever fills in log_fd is to open it, and its name in the request; NULL: nowhere.
	 */
	const char *log_dir, *log_name, *log_field;
	/* Its first process, among its mounts: it executes the words behind "--". NULL: the program
	 * itself. */
	const char *init;
	/* Variables whose values are secrets; the last n_secret_env of `env` are theirs, which
	 * runtime/storage/volumes_call.h fills in. The field of the first. */
	const struct pod_secret_env *secret_env;
	size_t n_secret_env;
};

struct pod_secret_env {
	const char *secret, *variable, *field;
};

struct workload_spec {
	enum workload_kind kind;
	const char *name;
	struct instance *parent; /* NULL: the node */
	const char *network;     /* "pod", "none", "own", "host" */
	const struct network_wish
		*attach; /* for a pod or a cell of this kernel; NULL: to no network */
	const struct network_wish *further; /* and to these, behind it */
	size_t n_further;
	struct instance_choice choice;  /* for a pod: of what kind its instance is */
	const struct instance_nic *nic; /* of that; NULL: none */
	const struct etc_wish *etc;     /* NULL: nothing is asked of its files below /etc */
	bool auto_remove, drops_failed;
	bool lasts;          /* a sandbox (pod/workload/sandbox.h), which may have no container */
	const char *request; /* base/text/request.h; NULL: none */
	const char *comment; /* for people; NULL: none */
	const struct pod_container_spec *containers;
	size_t n_containers;
	char *const *limits;                /* of its own group */
	const char *cgroup_parent;          /* of a pod of kind cell: see struct instance_spec */
	char *const *sysctls;               /* likewise */
	bool host_pids, host_ipc, host_uts; /* likewise */
	/* Ids of pods of kind cell that run, whose namespaces it has in the place of its own (with
	 * network "none"); NULL: none. */
	const char *net_of, *uts_of;
	/* In a user namespace: with `ids`, or where these are not set with a range of its own,
	 * which workload_run() chooses (pod/workload/ids.h). */
	bool users;
	struct isolate_ids ids;
	struct instance_size size; /* for a pod: of its instance */
	const char *settings;      /* as those of a container */
	struct restart_rule restart;
	bool create_only; /* nothing of it is started: it is CREATED when its files are there */
	bool runs;        /* it has its namespaces: net_of and uts_of are not looked at any more */
	const char
		*wish; /* the request, kept for a start again; NULL: it cannot be started again */
	struct hosted_wish *machine; /* of a vm; workload_run() takes it over where it succeeds */
};

/* A workload that nobody knows yet, its images held. ERROR_INVALID names the field
 * ("containers[1].image"). */
int workload_make(const struct workload_spec *spec, const struct workloads_config *config,
		  struct workload **ret, struct error *err);
/* Whether the image of containers[n] is on this node: ERROR_NOT_FOUND says what to do. */
int workload_check_image(struct image_store *images, const char *image, size_t n,
			 struct error *err);
/*
 * Asks for the lower layers of the root file systems of its containers, where these are still to be
 * made: done is called once for each of w->n_roots, with w, unless workload_forget_roots() is
 * called before. An error may leave some of them asked for.
 */
int workload_await_roots(struct workload *w, struct image_store *images,
			 void (*done)(void *w, const struct error *err), struct error *err);
void workload_forget_roots(struct workload *w, struct image_store *images);
/* The log file and the root file system of each container; what was made stays in w. */
int workload_prepare(struct workload *w, struct image_store *images, int logs_fd,
		     struct error *err);

/* The same for one more container of a workload that has its instance, remote or not; n stands in
 * the names of fields. */
int pod_container_make(struct pod_container *c, const struct pod_container_spec *spec, size_t n,
		       bool remote, const struct workloads_config *config, struct error *err);
int pod_container_prepare(struct pod_container *c, struct image_store *images, int logs_fd,
			  struct error *err);

#endif
