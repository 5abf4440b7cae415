/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_STORE_ROOT_H
#define NACRE_STORE_ROOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"

/*
 * root.db, in the root directory: the images, networks, volumes, users' certificates and machines
 * in clouds of the node, and the workloads that can be started again after a reboot. Changes are
 * queued on the loop thread and written on the pool, as many as wait in one transaction with
 * synchronous=FULL; the caller hears of its own when it lies on the disk, or that it does not: each
 * change is made whole or not at all, and they are made in the order of the calls. A file
 * NAME-reserve keeps some room, so that removing an image (and opening the database) works on a
 * full disk too. src/image hides this behind image/image.h.
 */

struct pool;
struct root_store;

/* An unpacked layer, known by what it lies on and by its own content. */
struct root_layer {
	int64_t number;
	int64_t parent; /* number of the layer below, 0: none */
	const char *diff_id;
	uint64_t size;
};

struct root_image {
	const char *id;
	const char *digest;
	uint64_t size;
	uint64_t created;
	uint64_t pinned;    /* 0 or 1 */
	const char *source; /* where it came from; "" where that is not known */
	const char *user;
	const char *working_dir;
	const char *stop_signal;
	char *const *env; /* these lists may be NULL for empty */
	char *const *entrypoint;
	char *const *cmd;
	char *const *volumes; /* the paths of its VOLUME */
	char *const *health;  /* its HEALTHCHECK (wire/message/fetchmsg.h) */
	char *const *names;
	char *const *blobs;    /* digests of all that the content store holds for it */
	char *const *origins;  /* its names in registries: "HOST/PATH@sha256:HEX" */
	char *const *verdicts; /* of the policy about it (image/transfer/verdict.h) */
	const int64_t *layers; /* numbers, lowest first */
	size_t n_layers;
};

/* A network of pods (network/networks.h). Prefixes are texts, "" where there is none. */
struct root_network {
	const char *name;
	unsigned number;
	const char *pool4, *pool6, *gateway4;
	unsigned mtu; /* 0: that of the host */
	bool internal, node_open;
	uint64_t created_at;
	const char *driver, *parent, *mode; /* words (network/driver.h) */
	const char *range4, *gateway6;
};

/* A certificate that was issued for a user (gates/identities.h). */
struct root_identity {
	const char *serial; /* 32 hexadecimal digits */
	const char *name, *role;
	uint64_t issued_at, not_before, not_after; /* seconds since 1970 */
	uint64_t revoked_at;                       /* 0: it is not */
};

/* A volume of the node (volumes/volumes.h). */
struct root_volume {
	const char *id;
	const char *name;
	const char *labels; /* each with a newline behind it */
	bool anonymous;
	uint64_t created_at;
};

/* A machine in a cloud (clouds/clouds.h). Words are its own; "" where there is none. */
struct root_cloud_vm {
	const char *id, *name;
	const char *request; /* the create call, as it was first sent: words, each with a newline */
	const char *token;   /* of that call */
	const char *instance; /* its id in the cloud */
	const char *state, *wanted, *reason, *address, *zone;
	uint64_t created_at, ended_at; /* nanoseconds since 1970; 0: not yet */
};

/* A machine that a client of Aurae's daemon has allocated (aurae/vms.h). */
struct root_aurae_vm {
	const char *id;   /* a label */
	const char *text; /* its message, as runtime/start/settings.h writes one */
};

/* A workload that outlives a reboot. */
struct root_kept {
	const char *id;
	const char *text; /* run_kept_write() */
};

/* err is NULL where the change lies on the disk. -ENOSPC says that the disk is full. */
typedef void (*root_done_fn)(void *userdata, const struct error *err);

/* Errors as run_store_open(). */
int root_store_open(struct root_store **ret, struct pool *pool, int dir_fd, const char *name,
		    struct error *err);
/* To be called when the pool is gone: what waits is still written, nobody is told. */
struct root_store *root_store_close(struct root_store *s);

/*
 * Inserts or replaces the image by id, with its lists; a name that another image had is its own
 * from now on. `layers` are the layers it names (those that are recorded already are left as they
 * are). All arguments are copied. An error comes at once (-ENOMEM) or by done, never both; done may
 * be NULL.
 */
int root_store_put_image(struct root_store *s, const struct root_image *image,
			 const struct root_layer *layers, size_t n_layers, root_done_fn done,
			 void *userdata, struct error *err);
/* Takes the records of layers along that no image names any more. */
int root_store_drop_image(struct root_store *s, const char *id, root_done_fn done, void *userdata,
			  struct error *err);

/* Inserts or replaces it by name. As root_store_put_image(). */
int root_store_put_network(struct root_store *s, const struct root_network *network,
			   root_done_fn done, void *userdata, struct error *err);
int root_store_drop_network(struct root_store *s, const char *name, root_done_fn done,
			    void *userdata, struct error *err);

/* Inserts or replaces it by serial. As root_store_put_image(). */
int root_store_put_identity(struct root_store *s, const struct root_identity *identity,
			    root_done_fn done, void *userdata, struct error *err);
int root_store_drop_identity(struct root_store *s, const char *serial, root_done_fn done,
			     void *userdata, struct error *err);

/* Inserts or replaces it by id. As root_store_put_image(). */
int root_store_put_volume(struct root_store *s, const struct root_volume *volume, root_done_fn done,
			  void *userdata, struct error *err);
int root_store_drop_volume(struct root_store *s, const char *id, root_done_fn done, void *userdata,
			   struct error *err);
int root_store_put_cloud_vm(struct root_store *s, const struct root_cloud_vm *vm, root_done_fn done,
			    void *userdata, struct error *err);
int root_store_drop_cloud_vm(struct root_store *s, const char *id, root_done_fn done,
			     void *userdata, struct error *err);
/* Inserts or replaces it by id. As root_store_put_image(). */
int root_store_put_aurae_vm(struct root_store *s, const struct root_aurae_vm *vm, root_done_fn done,
			    void *userdata, struct error *err);
int root_store_drop_aurae_vm(struct root_store *s, const char *id, root_done_fn done,
			     void *userdata, struct error *err);
int root_store_put_kept(struct root_store *s, const struct root_kept *kept, root_done_fn done,
			void *userdata, struct error *err);
int root_store_drop_kept(struct root_store *s, const char *id, root_done_fn done, void *userdata,
			 struct error *err);

/* While an idle store is held, changes are queued and not written: a daemon that starts reads the
 * tables one by one, and changes records between two of them. */
void root_store_hold(struct root_store *s);
void root_store_release(struct root_store *s);
/* Nothing waits to be written, or is being written: what is read is all that was told. */
bool root_store_is_idle(const struct root_store *s);
/* Only while it is idle or held, and fn leaves it so: both use one connection. In order of
 * creation, of number. fn as run_store_each_*(). */
int root_store_each_image(struct root_store *s,
			  int (*fn)(void *data, const struct root_image *image), void *data,
			  struct error *err);
int root_store_each_layer(struct root_store *s,
			  int (*fn)(void *data, const struct root_layer *layer), void *data,
			  struct error *err);
int root_store_each_network(struct root_store *s,
			    int (*fn)(void *data, const struct root_network *network), void *data,
			    struct error *err);
/* In order of creation. */
int root_store_each_volume(struct root_store *s,
			   int (*fn)(void *data, const struct root_volume *volume), void *data,
			   struct error *err);
int root_store_each_kept(struct root_store *s, int (*fn)(void *data, const struct root_kept *kept),
			 void *data, struct error *err);
/* In order of issue. */
int root_store_each_identity(struct root_store *s,
			     int (*fn)(void *data, const struct root_identity *identity),
			     void *data, struct error *err);
/* In order of creation. */
int root_store_each_cloud_vm(struct root_store *s,
			     int (*fn)(void *data, const struct root_cloud_vm *vm), void *data,
			     struct error *err);
/* In order of creation. */
int root_store_each_aurae_vm(struct root_store *s,
			     int (*fn)(void *data, const struct root_aurae_vm *vm), void *data,
			     struct error *err);

#endif
