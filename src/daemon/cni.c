/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/cni.h"

#include <errno.h>
#include <string.h>

#include "base/text/str.h"
#include "daemon/config.h"
#include "daemon/place.h"
#include "network/plugins.h"

/* "/run/netns" for "/run/nacre". */
static char *cni_netns_dir(const char *run)
{
	size_t n = strlen(run);

	while (n > 1 && run[n - 1] == '/')
		n--;
	while (n > 0 && run[n - 1] != '/')
		n--;
	return str_format("%.*snetns", (int)n, run);
}

int cni_open(struct plugins **ret, struct loop *loop, const struct config *config, const char *root,
	     const char *run, struct error *err)
{
	_cleanup_str_ char *program = NULL, *state_dir = NULL, *netns_dir = NULL;

	if (!config->network.plugins)
		return 0;
	program = place_helper(config->libexec, "nacre-cni");
	state_dir = str_format("%s/cni", root);
	netns_dir = cni_netns_dir(run);
	if (!program || !state_dir || !netns_dir)
		return error_set(err, -ENOMEM, "networks of plugins");
	return plugins_new(ret,
			   &(struct plugins_config){ .loop = loop,
						     .program = program,
						     .conf_dir = config->network.conf_dir,
						     .bin_dirs = config->network.bin_dirs,
						     .state_dir = state_dir,
						     .netns_dir = netns_dir },
			   err);
}

int cni_network_ready(const struct config *config, const struct plugins *plugins,
		      const char **reason, struct error *err)
{
	if (config->cri.builtin_network)
		return 0;
	*reason = "NetworkPluginNotReady";
	if (config->cri.plugin_network)
		return plugins_is_ready(plugins, err);
	return error_refuse(
		err, ERROR_PRECONDITION,
		"no network is configured (`cri.network: builtin` in the configuration "
		"selects the networks of this node, `cri.network: cni` those of plugins)");
}
