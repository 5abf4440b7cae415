/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_NET_WORDS_H
#define NACRE_CLI_NET_WORDS_H

#include "api/nacre.pb-c.h"
#include "api/runtime.pb-c.h"
#include "base/memory/buf.h"
#include "base/text/args.h"

/* The options of a pod's network as the message of the API; and its ports as text. */

/* Rows for the options of a command. */
#define OPTIONS_NET                                                                                \
	{ "network", 0, "NAME[:ip=ADDRESS]",                                                       \
	  "a network (nacre network), with ip=, ip6=, mac= there, none (loopback alone), host or " \
	  "container:NAME; may be given again for further networks" },                             \
		{ "publish", 'p', "[IP:][HOST:]POD[/udp]",                                         \
		  "lead a port of the host to it, or a range: 8080:80; may be given again" },      \
		{ "ip", 0, "ADDRESS", "its address of IPv4, else the network's next" },            \
		{ "ip6", 0, "ADDRESS", "the same of IPv6" },                                       \
		{ "mac-address", 0, "MAC", "of its device, else made from its address" },          \
		{ "dns", 0, "ADDRESS", "ask this name server; may be given again" },               \
		{ "dns-search", 0, "DOMAIN", "look short names up there; '.': nowhere" },          \
		{ "dns-option", 0, "OPTION", "of resolv.conf, such as ndots:2" },                  \
		{ "add-host", 0, "NAME:ADDRESS", "a line of /etc/hosts; may be given again" },     \
		{ "hostname", 0, "NAME", "what it calls itself, else its name" },                  \
		{ "metadata", 0, NULL,                                                             \
		  "its name, labels and addresses at http://169.254.169.254, with tokens" },       \
		{ "user-data", 0, "FILE", "told there as well, at most 16k; implies --metadata" }, \
		{ "metadata-identity", 0, NULL,                                                    \
		  "a certificate with its key is told there as well; implies --metadata" },        \
	{                                                                                          \
		"bandwidth", 0, "TO[:FROM]", "bits per second to and from it: 100m, 1g:50m"        \
	}

struct net_words {
	Aurae__Runtime__V0__PodNetwork message;
	Aurae__Runtime__V0__Metadata metadata;
	struct buf user_data;
	Aurae__Runtime__V0__PublishedPort *ports;
	Aurae__Runtime__V0__HostName *hosts;
	Aurae__Runtime__V0__FurtherNetwork *networks, **further;
	char **words; /* texts that the messages point to */
	size_t n_words;
};

/* ret_message: NULL where no such option was given. ERROR_INVALID names the option. */
int net_words_init(struct net_words *n, const struct args *a,
		   Aurae__Runtime__V0__PodNetwork **ret_message, struct error *err);
/* Puts the values of --network into the request and its pod_network (behind net_words_init()). */
int net_words_networks(struct net_words *n, const struct args *a,
		       Aurae__Runtime__V0__RunPodRequest *q, struct error *err);
void net_words_done(struct net_words *n);

/* "10.0.0.1:8080-8082->80-82/tcp, 5353->53/udp"; "" where there is none. The caller frees it. */
char *net_words_ports(Aurae__Runtime__V0__PublishedPort *const *ports, size_t n);
/* "10.0.0.1:8080", "[::1]:8080"; of each address "0.0.0.0:8080". The caller frees it. */
char *net_words_host(const Aurae__Runtime__V0__PublishedPort *p);

#endif
