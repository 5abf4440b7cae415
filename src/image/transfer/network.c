/* SPDX-License-Identifier: Apache-2.0 */
#include "image/transfer/network.h"

#include <linux/capability.h>
#include <string.h>

#include "base/text/str.h"
#include "image/content/model.h"

/* What nacre-transfer needs until it has closed its sandbox. It keeps none. */
#define CAP(name) (UINT64_C(1) << (name))
#define NETWORK_CAPS                                                                               \
	(CAP(CAP_SYS_ADMIN) | CAP(CAP_SETPCAP) | CAP(CAP_SETUID) | CAP(CAP_SETGID) |               \
	 CAP(CAP_DAC_READ_SEARCH) | CAP(CAP_DAC_OVERRIDE) | CAP(CAP_CHOWN))

#define NETWORK_DOWNLOADS 6

static int network_tell_limits(struct helper *h, const struct image_network *n, struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_NETWORK };
	uint64_t stall = n->no_progress / NSEC_PER_MSEC;

	m.network.connections = n->parallel_downloads ?: NETWORK_DOWNLOADS;
	m.network.stall_ms = (uint32_t)MIN(stall, (uint64_t)FETCH_MILLISECONDS_MAX);
	return helper_tell(h, &m, NULL, 0, err);
}

static int network_tell_proxy(struct helper *h, const struct image_network *n, struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_PROXY };

	if (str_empty(n->http_proxy) && str_empty(n->https_proxy))
		return 0;
	m.proxy.http = n->http_proxy ?: "";
	m.proxy.https = n->https_proxy ?: "";
	m.proxy.no_proxy = n->no_proxy ?: "";
	return helper_tell(h, &m, NULL, 0, err);
}

static int network_tell_dirs(struct helper *h, const struct image_network *n, struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_REGISTRY_DIR };
	char text[IMAGE_REGISTRY_DIRS_SIZE];
	char *at = text;
	int r = 0;

	if (str_empty(n->registry_dirs))
		return 0;
	if (str_copy(text, sizeof(text), n->registry_dirs) < 0)
		return error_refuse(err, ERROR_INVALID, "too many directories of registries");
	while (r == 0 && at) {
		m.registry_dir.path = strsep(&at, ":");
		r = helper_tell(h, &m, NULL, 0, err);
	}
	return r;
}

static int network_tell_policy(struct helper *h, const struct image_network *n, struct error *err)
{
	const struct fetchmsg m = { .type = FETCHMSG_POLICY, .policy = { .path = n->policy } };

	return str_empty(n->policy) ? 0 : helper_tell(h, &m, NULL, 0, err);
}

/* What asks for a key is not held up by a policy that is broken. */
static bool network_wants_policy(const struct fetchmsg *request)
{
	return request->type != FETCHMSG_VERIFY || !*request->verify.key;
}

static int network_tell_auths(struct helper *h, const struct image_auths *auths, struct error *err)
{
	static const enum fetch_auth kinds[] = {
		[IMAGE_AUTH_PASSWORD] = FETCH_AUTH_PASSWORD,
		[IMAGE_AUTH_IDENTITY] = FETCH_AUTH_IDENTITY,
		[IMAGE_AUTH_TOKEN] = FETCH_AUTH_TOKEN,
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < auths->n; i++) {
		const struct image_auth *a = &auths->list[i];
		struct fetchmsg m = { .type = FETCHMSG_AUTH };

		m.auth.host = a->host;
		m.auth.kind = kinds[a->kind];
		m.auth.user = a->user;
		m.auth.secret = a->secret;
		r = helper_tell(h, &m, NULL, 0, err);
	}
	return r;
}

int network_start(struct helper *h, const struct image_store *s, const char *command,
		  const struct fetchmsg *request, const struct image_auths *auths, int detached_fd,
		  const struct helper_ops *ops, struct error *err)
{
	const struct image_network *n = &s->config.network;
	int r;

	r = helper_start(h,
			 &(struct helper_config){ .loop = s->config.loop,
						  .path = s->transfer_path,
						  .command = command,
						  .caps = NETWORK_CAPS,
						  .from_fd = detached_fd,
						  .to_fd = detached_fd,
						  .more_fd = -1,
						  .net_ns_fd = -1,
						  .mount_ns_fd = -1,
						  .network = true,
						  .request = request },
			 ops, err);
	if (r < 0)
		return r;
	r = network_tell_limits(h, n, err);
	if (r == 0)
		r = network_tell_proxy(h, n, err);
	if (r == 0)
		r = network_tell_dirs(h, n, err);
	if (r == 0 && network_wants_policy(request))
		r = network_tell_policy(h, n, err);
	if (r == 0)
		r = network_tell_auths(h, auths, err);
	if (r < 0)
		helper_done(h);
	return r;
}

int network_go(struct helper *h, struct error *err)
{
	return helper_tell(h, &(struct fetchmsg){ .type = FETCHMSG_GO }, NULL, 0, err);
}
