/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_SHARE_H
#define NACRE_VM_SHARE_H

#include <stdbool.h>

#include "base/log/error.h"
#include "isolate/spawn/spawn.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "vm/disk/share_jail.h"

/*
 * The volumes of a microVM: directories and files of the node that its guest reads and writes, by
 * virtiofs. One virtiofsd (Debian's, of QEMU) for each VM that may get any, as its devices are
 * fixed when it starts; it shows the guest one read-only directory, and in that directory each
 * volume by its name. Volumes come and go while the guest runs, as mounts that are put into
 * virtiofsd's mount namespace and taken away there. It is jailed (vm/disk/share_jail.h).
 *
 * A machine (vm/driver/driver.h) gets it as a struct vm_share with SHARE_TAG and the descriptor of
 * share_start(). By hand that is, with FD inherited and SIZE that of -m:
 *
 *   -object memory-backend-memfd,id=mem,size=SIZE,share=on -machine ...,memory-backend=mem
 *   -global virtio-mmio.force-legacy=false
 *   -chardev socket,id=share,fd=FD
 *   -device vhost-user-fs-device,queue-size=1024,chardev=share,tag=nacre
 *
 * (one virtio-mmio transport; not with a template or any other migration). virtiofsd ends when that
 * descriptor's last copy is closed, so QEMU must be the only one that has it. QEMU does not notice
 * an end of virtiofsd, and what the guest does with its volumes hangs then: end the machine.
 *
 * The guest (modules fuse, virtiofs) mounts "nacre" once: mount -t virtiofs nacre /run/share, and
 * binds /run/share/NAME into a container, with MS_REC and with the nosuid, nodev, noexec and
 * read-only of the container's mount: of these only read-only is enforced here too. A volume that
 * is a directory shows as a file system of its own there (an automount; so open it as a directory,
 * "NAME/", before it is bound). Before a volume is removed here, that is unmounted, and later
 * than SHARE_TIMEOUT afterwards stat() finds no /run/share/NAME: then the guest has forgotten it,
 * and virtiofsd has nothing of it open.
 *
 * How it differs from a bind mount in a cell:
 *   - names and attributes in a guest are at most SHARE_TIMEOUT seconds old, and so are bytes that
 *     were read of a file that stays open. Writes of the guest are on the node when write()
 *     returns.
 *   - a directory that is replaced by swapping a link to it is seen whole, the old one or the new
 *     one; but the link may be followed to where it pointed for SHARE_TIMEOUT, so the program that
 *     swaps must leave the old one for longer than that, or readers find nothing there for a
 *     moment. So small directories that are only read go another way (pod/storage/mirror.h).
 *   - mapped pages of an open file are not renewed; inotify tells of the own guest's changes alone.
 *   - locks (flock, fcntl) hold within one guest, neither on the node nor between guests.
 *   - no nodes of devices can be made, nor file capabilities set; trusted.* and security.* are
 *     refused. A symbolic link is resolved in the guest, never here.
 *   - the same directory twice, by two names, is two file systems: what is mapped, and locks, are
 *     not shared. So a directory that several containers of a pod mount is added once.
 *   - a guest that looks at more than SHARE_FILES_MAX files without forgetting any gets EMFILE.
 */

#define SHARE_PROGRAM "/usr/lib/qemu/virtiofsd"
#define SHARE_TAG "nacre"
#define SHARE_NAME_MAX 64
#define SHARE_SAYS_MAX 4096 /* bytes of what virtiofsd says that are kept: the first ones */

struct share;

struct share_ops {
	/* Volumes can be added from now on. Not after share_adopt(). */
	void (*on_up)(struct share *s);
	/* The process is gone, and all of it is given up. err: what went wrong; NULL where it was
	 * stopped, or ended by itself because QEMU has (which cannot be told after share_adopt()).
	 * Once; not after share_done(). */
	void (*on_end)(struct share *s, const struct error *err);
};

struct share_config {
	struct loop *loop;
	struct pool *pool;   /* for what may block; outlives the share */
	const char *program; /* SHARE_PROGRAM */
	int proc_fd;         /* a /proc of this process's pid namespace */
	int cgroup_fd;       /* the leaf that it is born in; -1: the daemon's */
	int dir_fd;          /* a directory of mode 0700, for a socket that is there for a moment */
};

/* A value; it must not move between start or adopt and on_end or done. */
struct share {
	const struct share_ops *ops;
	struct loop *loop;
	struct pool *pool;
	int proc_fd; /* not owned */
	struct isolate_child child;
	struct loop_fd report;
	struct loop_child watch;
	int says_fd; /* a file with its stdout and stderr; -1 after share_adopt() */
	bool running, up, killed;
	struct error err;
};

/* *ret_fd: for QEMU, connected. Write down child.pid and its start time for share_adopt(). */
int share_start(struct share *s, const struct share_config *config, const struct share_ops *ops,
		int *ret_fd, struct error *err);
/* Takes up the one of a daemon before, by what was written down. -ESRCH (ERROR_NOT_FOUND): it is
 * gone. Of the config only loop, pool and proc_fd count. */
int share_adopt(struct share *s, const struct share_config *config, const struct share_ops *ops,
		pid_t pid, unsigned long long start_time, struct error *err);
/* Kills it; on_end follows, with NULL. Nothing where none runs. */
void share_stop(struct share *s);
/* Lets go of it: it runs on. Twice is fine. */
void share_done(struct share *s);

/*
 * One volume on its way in or out: a value, the caller's, untouched until `done` is called (on the
 * loop, once). It may outlive the share.
 */
struct share_change;
/* r: 0, 1 (share_remove()), or negative with err. */
typedef void (*share_change_fn)(struct share_change *c, int r, const struct error *err);

struct share_change {
	struct pool_work work;
	share_change_fn done;
	char name[SHARE_NAME_MAX + 1];
	int proc_fd;
	pid_t pid;
	int pidfd;
	int mount_fd; /* -1: out */
	bool read_only;
	int r;
	struct error err;
};

/* A name that a volume may have: a letter or digit, then those, '.', '_', '-'; SHARE_NAME_MAX. */
bool share_name_is_valid(const char *name);

/*
 * mount_fd: a detached mount (pod/storage/volume.h: volume_open()), taken over, also where this
 * fails. Its attributes and its id map hold, and it becomes nosuid and nodev. When `done` says 0
 * the guest finds it. ERROR_PRECONDITION: it is not up. To `done` come ERROR_EXISTS, and
 * ERROR_EXHAUSTED for more than SHARE_VOLUMES_MAX.
 */
int share_add(struct share *s, struct share_change *c, const char *name, int mount_fd,
	      bool read_only, share_change_fn done, struct error *err);
/*
 * When `done` says 0, the volume is gone. 1: it is gone by its name, but the guest has something of
 * it in mind, at least the directory itself, until it looks for the name again or the VM ends. What
 * it keeps so it cannot write to any more, unless it has a file of it open for that.
 * ERROR_NOT_FOUND comes to `done`.
 */
int share_remove(struct share *s, struct share_change *c, const char *name, share_change_fn done,
		 struct error *err);

#endif
