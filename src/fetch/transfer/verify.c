/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/transfer/verify.h"

#include "base/text/str.h"
#include "fetch/job/channel.h"
#include "fetch/transfer/remote.h"
#include "fetch/transfer/trust.h"

static int verify_resolve(struct network *n, int dir_fd, char ret[DIGEST_SIZE], struct error *err)
{
	_cleanup_(remote_done) struct remote m;
	int r;

	remote_init(&m, n, dir_fd, 0);
	r = remote_resolve(&m, err);
	if (r == 0)
		(void)str_copy(ret, DIGEST_SIZE, m.root.digest);
	return r;
}

/* The key takes the place of the node's policy, which was not read then. */
static int verify_take_key(struct network *n, struct error *err)
{
	int r;

	if (!*n->request.verify.key)
		return 0;
	n->policy = policy_free(n->policy);
	r = policy_read_key(&n->policy, n->request.verify.key, err);
	return r < 0 ? error_wrap(err, r, "key") : 0;
}

int verify_run(struct network *n, int dir_fd, struct error *err)
{
	struct fetchmsg done = { .type = FETCHMSG_DONE };
	char digest[DIGEST_SIZE];
	int r;

	r = verify_take_key(n, err);
	if (r < 0)
		return r;
	(void)str_copy(digest, sizeof(digest), n->request.verify.digest);
	if (!*digest)
		r = verify_resolve(n, dir_fd, digest, err);
	if (r == 0)
		r = trust_verify(n, digest, err);
	return r == 0 ? channel_send(n->sock_fd, &done, err) : r;
}
