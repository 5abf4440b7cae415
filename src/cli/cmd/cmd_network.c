/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/nacre.pb-c.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/options/net_words.h"
#include "cli/options/spec.h"
#include "cli/output/alloc.h"
#include "cli/output/table.h"
#include "cli/output/view.h"
#include "cli/remote/client.h"
#include "cli/remote/each.h"
#include "cli/table/command.h"

/* ---- as JSON ---- */

/* The members of an object that is open. */
static void network_members(struct json *j, const Nacre__V1__Network *n)
{
	json_put_string(j, "name", n->name);
	json_put_string(j, "state", n->state);
	view_words(j, "subnets", n->subnets, n->n_subnets);
	json_put_word(j, "gateway", n->gateway);
	json_put_word(j, "gateway6", n->gateway6);
	json_put_unsigned(j, "mtu", n->mtu);
	json_put_bool(j, "internal", n->internal);
	json_put_bool(j, "node_open", n->node_open);
	json_put_time(j, "created_at", n->created_at);
	json_put_unsigned(j, "pods", n->pods);
	json_put_string(j, "driver", n->driver);
	json_put_word(j, "parent", n->parent);
	json_put_word(j, "mode", n->mode);
	json_put_word(j, "ip_range", n->ip_range);
	json_put_word(j, "bridge", n->bridge);
}

static void network_json(struct json *j, const Nacre__V1__Network *n)
{
	json_put_object(j, NULL);
	network_members(j, n);
	json_put_end(j);
}

static void network_pod_json(struct json *j, const Nacre__V1__NetworkPod *p)
{
	json_put_object(j, NULL);
	json_put_string(j, "id", p->id);
	json_put_string(j, "name", p->name);
	json_put_word(j, "ip", p->ip);
	json_put_word(j, "ip6", p->ip6);
	json_put_word(j, "mac", p->mac);
	json_put_end(j);
}

/* ---- network create ---- */

static int network_mtu(const char *option, const char *text, uint32_t *ret, struct error *err)
{
	if (!text || parse_u32(text, ret) == 0)
		return 0;
	return error_refuse(err, ERROR_INVALID, "--%s: \"%s\" is no number of bytes", option, text);
}

/* What docker and podman call an option of a driver, and what it sets. */
static int network_opt(char *word, Nacre__V1__CreateNetworkRequest *q, struct error *err)
{
	static const char *const dockers[] = { "com.docker.network.driver.", "macvlan_",
					       "ipvlan_" };
	const struct {
		const char *name;
		char **to;
	} opts[] = { { "parent=", &q->parent }, { "mode=", &q->mode } };

	for (size_t i = 0; i < ARRAY_SIZE(dockers); i++)
		if (str_has_prefix(word, dockers[i]))
			word += strlen(dockers[i]);
	if (str_has_prefix(word, "mtu="))
		return network_mtu("opt", word + strlen("mtu="), &q->mtu, err);
	for (size_t i = 0; i < ARRAY_SIZE(opts); i++) {
		if (!str_has_prefix(word, opts[i].name))
			continue;
		spec_set(opts[i].to, word + strlen(opts[i].name));
		return 0;
	}
	/* Networks are isolated from each other whatever is asked for. */
	if (str_eq(word, "isolate=true"))
		return 0;
	return error_refuse(err, ERROR_INVALID,
			    "--opt: \"%s\" is none of mtu=BYTES, parent=DEVICE, mode=MODE and "
			    "isolate=true",
			    word);
}

/* One of each family may be named. */
static int network_gateways(const struct args *args, Nacre__V1__CreateNetworkRequest *q,
			    struct error *err)
{
	size_t pos = 0;

	for (;;) {
		char *word = args_next(args, "gateway", &pos);
		char **to;

		if (!word)
			return 0;
		to = strchr(word, ':') ? &q->gateway6 : &q->gateway;
		if (!str_empty(*to))
			return error_refuse(err, ERROR_INVALID,
					    "--gateway: \"%s\" is a second one of its family",
					    word);
		spec_set(to, word);
	}
}

static int network_options(const struct args *args, Nacre__V1__CreateNetworkRequest *q,
			   struct error *err)
{
	const char *ipv6 = args_value(args, "ipv6");
	size_t pos = 0;
	int r = network_mtu("mtu", args_value(args, "mtu"), &q->mtu, err);

	while (r == 0) {
		char *word = args_next(args, "opt", &pos);

		if (!word)
			break;
		r = network_opt(word, q, err);
	}
	if (r == 0)
		r = network_gateways(args, q, err);
	if (r < 0)
		return r;
	q->no_ipv6 = ipv6 && str_eq(ipv6, "false");
	if (ipv6 && !q->no_ipv6 && !str_eq(ipv6, "true"))
		return error_refuse(err, ERROR_INVALID, "--ipv6: \"%s\" is neither true nor false",
				    ipv6);
	q->internal = args_flag(args, "internal");
	q->node_open = args_flag(args, "node");
	spec_set(&q->driver, args_value(args, "driver"));
	spec_set(&q->ip_range, args_value(args, "ip-range"));
	if (args_value(args, "parent"))
		spec_set(&q->parent, args_value(args, "parent"));
	return 0;
}

int cmd_network_create(const struct cli *cli, const struct args *args)
{
	Nacre__V1__CreateNetworkRequest request = NACRE__V1__CREATE_NETWORK_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__CreateNetworkResponse *answer = NULL;
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;

	if (network_options(args, &request, &err) < 0)
		return cli_fail(&err);
	request.name = args->operands[0];
	request.subnets = spec_values(args, "subnet", &request.n_subnets);
	answer = client_ask_once(&cli->daemon, "/nacre.v1.NetworkService/CreateNetwork",
				 &request.base, &nacre__v1__create_network_response__descriptor, 0,
				 &err);
	free(request.subnets);
	if (!answer)
		return cli_fail(&err);
	if (!answer->network)
		return cli_complain("the daemon's answer has no network");
	if (cli->json)
		network_json(&j, answer->network);
	else
		(void)puts(answer->network->name);
	return 0;
}

/* ---- network ls, inspect, rm ---- */

static void network_table(const struct cli *cli, const Nacre__V1__ListNetworksResponse *list)
{
	static const char *const heads[] = { "NAME", "DRIVER", "SUBNET", "IPV6",
					     "MTU",  "PODS",   "KIND" };
	struct table t = TABLE_INIT(ARRAY_SIZE(heads));

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		table_add_color(&t, TABLE_BOLD, heads[i]);
	for (size_t i = 0; i < list->n_networks; i++) {
		const Nacre__V1__Network *n = list->networks[i];
		_cleanup_str_ char *mtu = xformat("%u", n->mtu), *pods = xformat("%u", n->pods);

		table_add(&t, n->name);
		table_add(&t, n->driver);
		table_add(&t, n->n_subnets > 0 ? n->subnets[0] : "");
		table_add(&t, n->n_subnets > 1 ? n->subnets[1] : "");
		table_add(&t, mtu);
		table_add(&t, pods);
		table_add(&t, n->internal ? "internal" : str_empty(n->parent) ? "" : n->parent);
	}
	table_write(&t, stdout, cli->color);
	table_done(&t);
}

int cmd_network_ls(const struct cli *cli, const struct args *args)
{
	Nacre__V1__ListNetworksRequest request = NACRE__V1__LIST_NETWORKS_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__ListNetworksResponse *list = NULL;
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;

	list = client_ask_once(&cli->daemon, "/nacre.v1.NetworkService/ListNetworks", &request.base,
			       &nacre__v1__list_networks_response__descriptor, 0, &err);
	if (!list)
		return cli_fail(&err);
	if (args_flag(args, "quiet")) {
		for (size_t i = 0; i < list->n_networks; i++)
			(void)puts(list->networks[i]->name);
		return 0;
	}
	if (!cli->json) {
		network_table(cli, list);
		return 0;
	}
	json_put_array(&j, NULL);
	for (size_t i = 0; i < list->n_networks; i++)
		network_json(&j, list->networks[i]);
	json_put_end(&j);
	return 0;
}

int cmd_network_inspect(const struct cli *cli, const struct args *args)
{
	Nacre__V1__InspectNetworkRequest request = NACRE__V1__INSPECT_NETWORK_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__InspectNetworkResponse *answer = NULL;
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;

	request.name = args->operands[0];
	answer = client_ask_once(&cli->daemon, "/nacre.v1.NetworkService/InspectNetwork",
				 &request.base, &nacre__v1__inspect_network_response__descriptor, 0,
				 &err);
	if (!answer)
		return cli_fail(&err);
	if (!answer->network)
		return cli_complain("the daemon's answer has no network");
	json_put_object(&j, NULL);
	network_members(&j, answer->network);
	json_put_array(&j, "attached");
	for (size_t i = 0; i < answer->n_pods; i++)
		network_pod_json(&j, answer->pods[i]);
	json_put_end(&j);
	json_put_end(&j);
	return 0;
}

int cmd_network_rm(const struct cli *cli, const struct args *args)
{
	Nacre__V1__RemoveNetworkRequest request = NACRE__V1__REMOVE_NETWORK_REQUEST__INIT;

	return each_operand(cli, args,
			    &(struct each_call){ "/nacre.v1.NetworkService/RemoveNetwork",
						 &request.base, &request.name,
						 &nacre__v1__remove_network_response__descriptor });
}

/* ---- network connect, disconnect ---- */

int cmd_network_connect(const struct cli *cli, const struct args *args)
{
	Nacre__V1__ConnectNetworkRequest request = NACRE__V1__CONNECT_NETWORK_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__ConnectNetworkResponse *answer = NULL;
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;

	request.name = args->operands[0];
	request.target = args->operands[1];
	spec_set(&request.ip, args_value(args, "ip"));
	spec_set(&request.ip6, args_value(args, "ip6"));
	spec_set(&request.mac, args_value(args, "mac-address"));
	answer = client_ask_once(&cli->daemon, "/nacre.v1.NetworkService/Connect", &request.base,
				 &nacre__v1__connect_network_response__descriptor, 0, &err);
	if (!answer)
		return cli_fail(&err);
	if (!answer->attachment)
		return cli_complain("the daemon's answer has no attachment");
	if (cli->json)
		view_network(&j, answer->attachment);
	else
		(void)puts(answer->attachment->ip);
	return 0;
}

int cmd_network_disconnect(const struct cli *cli, const struct args *args)
{
	Nacre__V1__DisconnectNetworkRequest request = NACRE__V1__DISCONNECT_NETWORK_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__DisconnectNetworkResponse *answer = NULL;
	struct error err = ERROR_INIT;

	request.name = args->operands[0];
	request.target = args->operands[1];
	request.force = args_flag(args, "force");
	answer = client_ask_once(&cli->daemon, "/nacre.v1.NetworkService/Disconnect", &request.base,
				 &nacre__v1__disconnect_network_response__descriptor, 0, &err);
	return answer ? 0 : cli_fail(&err);
}

/* ---- port ---- */

/* Whether "80" or "80/udp" means this one; tcp goes without saying. */
static bool port_is(const Aurae__Runtime__V0__PublishedPort *p, const char *wanted)
{
	_cleanup_str_ char *name = xformat("%u/%s", p->port, p->protocol);

	return !wanted || str_eq(name, wanted) ||
	       (!strchr(wanted, '/') && str_eq(p->protocol, "tcp") &&
		strncmp(name, wanted, strlen(wanted)) == 0 && name[strlen(wanted)] == '/');
}

static void port_line(const Aurae__Runtime__V0__PublishedPort *p, const char *wanted)
{
	_cleanup_str_ char *host = net_words_host(p);

	if (wanted)
		(void)puts(host);
	else
		(void)printf("%u/%s -> %s\n", p->port, p->protocol, host);
}

int cmd_port(const struct cli *cli, const struct args *args)
{
	Nacre__V1__InspectRequest request = NACRE__V1__INSPECT_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__InspectResponse *answer = NULL;
	const char *wanted = args->n_operands > 1 ? args->operands[1] : NULL;
	const Nacre__V1__WorkloadNetwork *m;
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;
	size_t n_found = 0;

	request.target = args->operands[0];
	answer = client_ask_once(&cli->daemon, "/nacre.v1.WorkloadService/Inspect", &request.base,
				 &nacre__v1__inspect_response__descriptor, 0, &err);
	if (!answer)
		return cli_fail(&err);
	m = answer->workload ? answer->workload->attachment : NULL;
	if (cli->json)
		json_put_array(&j, NULL);
	for (size_t i = 0; m && i < m->n_publish; i++) {
		if (!port_is(m->publish[i], wanted))
			continue;
		n_found++;
		if (cli->json)
			view_port(&j, m->publish[i]);
		else
			port_line(m->publish[i], wanted);
	}
	if (cli->json)
		json_put_end(&j);
	if (wanted && n_found == 0)
		return cli_complain("%s: no port of the host leads to %s", request.target, wanted);
	return 0;
}
