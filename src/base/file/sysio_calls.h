/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The bodies of sysio.h, once for both forms: before each call stands SYSIO_BEFORE(name, failed),
 * which may return `failed` with errno set. Included by sysio.c and sysio_fault.c only, so it has
 * no guard against a second inclusion.
 */

int sysio_openat(int dir_fd, const char *name, int flags, mode_t mode)
{
	SYSIO_BEFORE("openat", -1);
	return openat(dir_fd, name, flags, mode);
}

ssize_t sysio_read(int fd, void *data, size_t len)
{
	SYSIO_BEFORE("read", -1);
	return read(fd, data, len);
}

ssize_t sysio_pread(int fd, void *data, size_t len, off_t at)
{
	SYSIO_BEFORE("pread", -1);
	return pread(fd, data, len, at);
}

ssize_t sysio_write(int fd, const void *data, size_t len)
{
	SYSIO_BEFORE("write", -1);
	return write(fd, data, len);
}

int sysio_fsync(int fd)
{
	SYSIO_BEFORE("fsync", -1);
	return fsync(fd);
}

int sysio_syncfs(int fd)
{
	SYSIO_BEFORE("syncfs", -1);
	return syncfs(fd);
}

int sysio_ftruncate(int fd, off_t len)
{
	SYSIO_BEFORE("ftruncate", -1);
	return ftruncate(fd, len);
}

int sysio_mkdirat(int dir_fd, const char *name, mode_t mode)
{
	SYSIO_BEFORE("mkdirat", -1);
	return mkdirat(dir_fd, name, mode);
}

int sysio_unlinkat(int dir_fd, const char *name, int flags)
{
	SYSIO_BEFORE("unlinkat", -1);
	return unlinkat(dir_fd, name, flags);
}

int sysio_renameat(int old_fd, const char *old_name, int new_fd, const char *new_name)
{
	SYSIO_BEFORE("renameat", -1);
	return renameat(old_fd, old_name, new_fd, new_name);
}

/* A link at the end of the old name is not followed. */
int sysio_linkat(int old_fd, const char *old_name, int new_fd, const char *new_name)
{
	SYSIO_BEFORE("linkat", -1);
	return linkat(old_fd, old_name, new_fd, new_name, 0);
}

int sysio_symlinkat(const char *target, int dir_fd, const char *name)
{
	SYSIO_BEFORE("symlinkat", -1);
	return symlinkat(target, dir_fd, name);
}

int sysio_mknodat(int dir_fd, const char *name, mode_t mode, dev_t dev)
{
	SYSIO_BEFORE("mknodat", -1);
	return mknodat(dir_fd, name, mode, dev);
}

int sysio_socket(int domain, int type, int protocol)
{
	SYSIO_BEFORE("socket", -1);
	return socket(domain, type, protocol);
}

int sysio_mount(const char *source, const char *target, const char *fs, unsigned long flags,
		const char *options)
{
	SYSIO_BEFORE("mount", -1);
	return (int)syscall(SYS_mount, source, target, fs, flags, options);
}

int sysio_fsopen(const char *fs, unsigned flags)
{
	SYSIO_BEFORE("fsopen", -1);
	return (int)syscall(SYS_fsopen, fs, flags);
}

int sysio_fsconfig(int fd, unsigned cmd, const char *key, const void *value, int aux)
{
	SYSIO_BEFORE("fsconfig", -1);
	return (int)syscall(SYS_fsconfig, fd, cmd, key, value, aux);
}

int sysio_fsmount(int fd, unsigned flags, unsigned attrs)
{
	SYSIO_BEFORE("fsmount", -1);
	return (int)syscall(SYS_fsmount, fd, flags, attrs);
}

int sysio_open_tree(int dir_fd, const char *name, unsigned flags)
{
	SYSIO_BEFORE("open_tree", -1);
	return (int)syscall(SYS_open_tree, dir_fd, name, flags);
}

int sysio_move_mount(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	SYSIO_BEFORE("move_mount", -1);
	return (int)syscall(SYS_move_mount, from_fd, from, to_fd, to, flags);
}

int sysio_mount_setattr(int fd, const char *name, unsigned flags, struct mount_attr *attr)
{
	SYSIO_BEFORE("mount_setattr", -1);
	return (int)syscall(SYS_mount_setattr, fd, name, flags, attr, sizeof(*attr));
}

pid_t sysio_clone3(struct clone_args *args)
{
	SYSIO_BEFORE("clone3", -1);
	return (pid_t)syscall(SYS_clone3, args, sizeof(*args));
}
