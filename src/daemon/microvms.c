/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/microvms.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/id.h"
#include "base/text/str.h"
#include "daemon/config.h"
#include "daemon/place.h"
#include "foreign/foreign.h"
#include "gates/issuer.h"
#include "provider/far.h"
#include "provider/vm.h"
#include "vm/disk/disks.h"
#include "vm/probe/trial.h"
#include "vm/qemu/qemu_driver.h"

#define MICROVMS_LIFE (3600 * NSEC_PER_SEC)
/* Beside those of the machines. */
#define MICROVMS_ISSUER_UID 1879113726
#define MICROVMS_TRIAL_UID 1879113727

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
	const struct probe_record *known = trial_ask(m->trial);

	(void)str_printf(ret, size, "%s%.140s",
			 known->verdict == PROBE_WORKS ? "hardware virtualization works here: "
						       : "",
			 known->text);
	return known->verdict == PROBE_WORKS;
}

static int microvms_open_trial(struct microvms *m, struct loop *l, const struct place *place,
			       const struct config *config, struct error *err)
{
	const struct trial_config c = {
		.loop = l,
		.driver = &vm_qemu,
		.root_fd = place->root_fd,
		.run_fd = place->run_fd,
		.guest = config->vm.guest,
		.uid = MICROVMS_TRIAL_UID,
		.gid = MICROVMS_TRIAL_UID,
		.never = config->vm.no_hardware,
	};

	return trial_new(&m->trial, &c, err);
}

void microvms_begin(struct microvms *m, struct instances *all)
{
	(void)trial_ask(m->trial);
	vms_begin(m->vms, all);
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
		.key_path = *config->ca_key ? config->ca_key : NULL,
		.cert_path = config->ca_certificate,
		.prepare = config->svid_life,
	};
	int r;

	r = microvms_node_id(m->identity_fd, node, err);
	return r < 0 ? r : issuer_new(&m->issuer, &c, err);
}

int microvms_open(struct microvms *m, struct loop *l, struct pool *pool, const struct place *place,
		  const struct config *config, struct error *err)
{
	char gate[PATH_MAX];
	struct vms_config c = {
		.loop = l,
		.pool = pool,
		.driver = &vm_qemu,
		.gate_program = gate,
		.root_fd = place->root_fd,
		.guest = config->vm.guest,
		.memory = config->vm.memory,
		.cpus = config->vm.cpus,
		.nested = config->vm.nested,
		.templates = config->vm.templates,
		.pool_size = config->vm.pool,
		.certificate_life = MICROVMS_LIFE,
		.heartbeat = config->vm.heartbeat,
		.is_fast = microvms_is_fast,
		.userdata = m,
	};
	int r;

	r = microvms_open_trial(m, l, place, config, err);
	if (r < 0)
		return r;
	place_find_helper(config->libexec, "nacre-gate", gate, sizeof(gate));
	if (sysio_mkdirat(place->root_fd, "identity", 0700) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make the directory of this node's identity");
	m->identity_fd = sysio_openat(place->root_fd, "identity",
				      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (m->identity_fd < 0)
		return error_set(err, -errno, "open the directory of this node's identity");
	r = microvms_open_issuer(m, l, config, gate, err);
	if (r < 0)
		return r;
	c.issuer = m->issuer;
	return vms_new(&m->vms, &c, err);
}

static bool microvms_foreign_is_fast(void *userdata)
{
	const struct microvms *m = userdata;

	return trial_ask(m->trial)->verdict == PROBE_WORKS;
}

int microvms_open_foreign(struct microvms *m, struct loop *l, struct pool *pool,
			  const struct place *place, const struct config *config, struct error *err)
{
	char gate[PATH_MAX];
	const struct foreigns_config c = {
		.loop = l,
		.pool = pool,
		.driver = &vm_qemu,
		.program = gate,
		.run_fd = place->run_fd,
		.cgroup_fd = place->cgroup_fd,
		.nested = config->vm.nested,
		.is_fast = microvms_foreign_is_fast,
		.userdata = m,
	};
	int r = disks_prepare(place->root_fd, err);

	if (r < 0)
		return r;
	place_find_helper(config->libexec, "nacre-gate", gate, sizeof(gate));
	return foreigns_new(&m->foreigns, &c, err);
}

int microvms_open_far(struct microvms *m, struct loop *l, struct pool *pool, struct clouds *clouds,
		      const struct config *config, struct error *err)
{
	char gate[PATH_MAX];
	const struct fars_config c = {
		.loop = l,
		.pool = pool,
		.clouds = clouds,
		.issuer = m->issuer,
		.gate_program = gate,
		.image = config->cloud.agent,
		.certificate_life = MICROVMS_LIFE,
		.boot_limit = config->cloud.boot_limit,
	};

	place_find_helper(config->libexec, "nacre-gate", gate, sizeof(gate));
	return fars_new(&m->fars, &c, err);
}

void microvms_close(struct microvms *m)
{
	m->fars = fars_free(m->fars);
	m->foreigns = foreigns_free(m->foreigns);
	m->vms = vms_free(m->vms);
	m->issuer = issuer_free(m->issuer);
	m->trial = trial_free(m->trial);
	if (m->identity_fd > 0)
		m->identity_fd = fd_close(m->identity_fd);
}

struct provider *microvms_provider(struct microvms *m)
{
	return vms_provider(m->vms);
}
