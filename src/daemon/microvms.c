/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/microvms.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/fd.h"
#include "base/id.h"
#include "base/str.h"
#include "base/sysio.h"
#include "daemon/config.h"
#include "daemon/place.h"
#include "provider/vm.h"
#include "vm/issuer.h"
#include "vm/qemu_driver.h"

#define MICROVMS_LIFE (3600 * NSEC_PER_SEC)
/* Beside those of the machines. */
#define MICROVMS_ISSUER_UID 1879113726

/* Who this node is among others of its trust domain: drawn at its first start. */
static int microvms_node_id(int dir_fd, char ret[ID_SIZE], struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_fd_ int fd = -1;
	int r;

	r = fd_read_file(dir_fd, "node", ID_SIZE, &b);
	if (r == 0 && b.len == ID_LEN) {
		memcpy(ret, buf_data(&b), ID_LEN);
		ret[ID_LEN] = '\0';
		return strspn(ret, "0123456789abcdef") == ID_LEN
			       ? 0
			       : error_set(err, -EBADMSG, "read the id of this node");
	}
	if (r == 0)
		r = -EBADMSG;
	if (r != -ENOENT)
		return error_set(err, r, "read the id of this node");
	r = id_new(ret);
	if (r < 0)
		return error_set(err, r, "draw the id of this node");
	fd = sysio_openat(dir_fd, "node.new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
			  0600);
	if (fd < 0)
		return error_set(err, -errno, "write the id of this node");
	r = fd_write_full(fd, ret, ID_LEN);
	if (r == 0 && (fsync(fd) < 0 || sysio_renameat(dir_fd, "node.new", dir_fd, "node") < 0))
		r = -errno;
	return r < 0 ? error_set(err, r, "write the id of this node") : 0;
}

static bool microvms_is_fast(void *userdata, char *ret, size_t size)
{
	const struct microvms *m = userdata;
	bool works = m->probe.verdict == PROBE_WORKS;

	(void)str_printf(ret, size, "%s: %.100s",
			 works ? "hardware virtualization has booted a guest here"
			       : "no guest has been booted by hardware virtualization here",
			 m->probe.text);
	return works;
}

static int microvms_open_issuer(struct microvms *m, struct loop *l, const struct config *config,
				const char *program, struct error *err)
{
	char node[ID_SIZE];
	struct issuer_config c = {
		.loop = l,
		.program = program,
		.dir_fd = m->identity_fd,
		.domain = config->trust_domain,
		.node = node,
		.uid = MICROVMS_ISSUER_UID,
		.gid = MICROVMS_ISSUER_UID,
	};
	int r;

	r = microvms_node_id(m->identity_fd, node, err);
	return r < 0 ? r : issuer_new(&m->issuer, &c, err);
}

int microvms_open(struct microvms *m, struct loop *l, struct pool *pool, int root_fd,
		  const struct config *config, struct error *err)
{
	char gate[PATH_MAX];
	struct vms_config c = {
		.loop = l,
		.pool = pool,
		.driver = &vm_qemu,
		.gate_program = gate,
		.root_fd = root_fd,
		.guest = config->vm.guest,
		.memory = config->vm.memory,
		.cpus = config->vm.cpus,
		.certificate_life = MICROVMS_LIFE,
		.is_fast = microvms_is_fast,
		.userdata = m,
	};
	int r;

	/* Once: who asks for an instance does not wait for the disk. */
	probe_read(&m->probe, root_fd);
	place_find_helper(config->libexec, "nacre-gate", gate, sizeof(gate));
	if (sysio_mkdirat(root_fd, "identity", 0700) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make the directory of this node's identity");
	m->identity_fd = sysio_openat(root_fd, "identity",
				      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (m->identity_fd < 0)
		return error_set(err, -errno, "open the directory of this node's identity");
	r = microvms_open_issuer(m, l, config, gate, err);
	if (r < 0)
		return r;
	c.issuer = m->issuer;
	return vms_new(&m->vms, &c, err);
}

void microvms_close(struct microvms *m)
{
	m->vms = vms_free(m->vms);
	m->issuer = issuer_free(m->issuer);
	if (m->identity_fd > 0)
		m->identity_fd = fd_close(m->identity_fd);
}

struct provider *microvms_provider(struct microvms *m)
{
	return vms_provider(m->vms);
}
