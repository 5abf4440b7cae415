/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/svid.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "daemon/model.h"
#include "daemon/place.h"
#include "gates/issuer.h"
#include "gates/svid_port.h"
#include "pod/workload/model.h"
#include "runtime/node/attest.h"

#define SVID_DIR "identity"
/* As whom nacre-svid runs: beside the gates of machines (microvms.c). */
#define SVID_UID 1879113722

int svid_open_dir(struct daemon *d, struct error *err)
{
	_cleanup_fd_ int fd = -1;

	if (!svid_port_is_possible())
		return 0;
	if (sysio_mkdirat(d->place.run_fd, SVID_DIR, 0755) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make a directory for the Workload API");
	fd = sysio_openat(d->place.run_fd, SVID_DIR, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
			  0);
	if (fd < 0)
		return error_set(err, -errno, "open the directory of the Workload API");
	d->identity_fd = TAKE_FD(fd);
	return 0;
}

/* Names are labels, and ids hexadecimal digits: each is a segment as it is. */
static int svid_attest(void *userdata, pid_t pid, struct svid_identity *ret, struct error *err)
{
	const struct daemon *d = userdata;
	const struct pod_container *c = NULL;
	char node[SPIFFE_SIZE];
	int r = attest_process(&d->workload, pid, &c, err);

	if (r == 0)
		r = issuer_node_id(d->microvms.issuer, node, err);
	if (r < 0)
		return r;
	if (str_printf(ret->id, sizeof(ret->id), "%s/workload/%s/ctr/%s", node, c->workload->path,
		       c->name) < 0 ||
	    str_printf(ret->instance_id, sizeof(ret->instance_id), "%s/%s/%s/ctr/%s/inst/%s", node,
		       workload_kind_word(c->workload->kind), c->workload->id, c->name, c->id) < 0)
		return error_refuse(err, ERROR_DENIED, "its id would be too long");
	return 0;
}

void svid_begin(struct daemon *d)
{
	char program[PATH_MAX];
	const struct svid_port_config config = { .loop = d->loop,
						 .issuer = d->microvms.issuer,
						 .program = program,
						 .dir_fd = d->identity_fd,
						 .uid = SVID_UID,
						 .gid = SVID_UID,
						 .life = d->config.svid_life,
						 .attest = svid_attest,
						 .userdata = d };
	struct error err = ERROR_INIT;

	if (d->identity_fd < 0)
		return;
	place_find_helper(d->config.libexec, "nacre-svid", program, sizeof(program));
	if (svid_port_new(&d->svids, &config, &err) < 0)
		log_error("workloads get no identities", LOG_ERR(&err));
}
