/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_CONFIG_H
#define NACRE_DAEMON_CONFIG_H

#include <stdbool.h>

#include "base/log/error.h"
#include "base/log/log.h"
#include "base/time/clock.h"
#include "cell/spec.h"
#include "clouds/plan.h"
#include "image/image.h"
#include "image/registry.h"
#include "init/system_config.h"
#include "instance/model.h"
#include "pod/workload/ids.h"

#define CONFIG_LISTEN_MAX 8

/*
 * The configuration of a node: a YAML file of these keys, all optional. Anything else in it is an
 * error that names file, line and key.
 *
 *   log:
 *     level: info        # debug, info, warn, error
 *     form: text         # text, json
 *     max_size: 16MiB    # of a container's log file; then a new one is begun
 *     max_files: 4       # of a container; the oldest goes
 *     when_full: block   # where a log cannot be written the container waits; or: drop
 *     block_for: 30s     # so long at most, then its output is lost; or: forever
 *   drain: 10s           # how long calls may go on after SIGTERM
 *   cgroup: /nacre       # where workloads live below the v2 root; default: the daemon's group
 *   libexec: DIR         # where the helpers are
 *   spare: yes           # whether a keeper is made ahead of need, for the next pod
 *   trust_domain: nacre.local  # of the identities (SPIFFE) that this node gives to instances
 *   listen: [ "0.0.0.0:7443", "[::]:7443" ]  # for remote users, who have certificates
 *   listen_names: [ node1.example ]          # by which they call it, besides its own
 *   identity:
 *     svid_life: 1h      # of the certificates that workloads get; renewed at half of it
 *     ca_key: /etc/nacre/ca.key          # an authority that is given, in PEM: its key (mode 0600),
 *     ca_certificate: /etc/nacre/ca.crt  # and its root; default: the node makes its own
 *   policy: /etc/nacre/access.yaml   # what they may call; without it, as their certificates say
 *   audit: /var/log/nacre/audit.log  # what was refused and what was changed, and by whom
 *   audit_full: log      # where that cannot be written: a line in the daemon's log, or: refuse,
 *                        # then nothing is changed
 *   images:
 *     reserve: 256MiB          # of the disk that images and containers leave free; 0: none
 *     root: overlay            # what roots lie upon: directories; or: erofs, auto
 *     registry_dirs: DIR:DIR   # HOST/hosts.toml below; default: certs.d of nacre, containerd
 *     policy: FILE             # who must have signed what; default: /etc/nacre/policy.json
 *     parallel_downloads: 6    # blobs of a pull at once
 *     parallel_unpacks: auto   # layers of an image at once; auto: a processor each, to 4
 *     no_progress_timeout: 60s # a silent download is given up
 *   network:
 *     default: default         # what a pod is on that names no network: default, or: none
 *     cni:                     # networks that plugins make; either key has them run
 *       conf_dir: /etc/cni/net.d             # of their configurations
 *       bin_dirs: /opt/cni/bin:/usr/lib/cni  # of their programs
 *   cri:
 *     network: cni             # of Kubernetes' pods: its plugins, or builtin: this node's networks
 *     streaming_address: 127.0.0.1:0  # of exec, attach: on loopback; port 0: any
 *   security:
 *     profile: baseline        # of containers that name none; or: restricted
 *   devices:
 *     cdi_dirs: /etc/cdi:/var/run/cdi  # where vendors describe them; the last one counts most
 *   cloud:
 *     cluster: nacre           # in the tags of machines in the cloud
 *     poll: 30s                # between two looks at them while nothing changes
 *     settle: 5m               # as long the cloud may not know what it has just made
 *     ec2:                     # Amazon's (doc/cloud.md); region switches it on
 *       region: eu-central-1
 *       endpoint: URL          # default: that of the region
 *       profile: NAME          # of ~/.aws/credentials; default: the environment, else "default"
 *       subnet: subnet-…
 *       security_groups: [ sg-… ]
 *       key_name: NAME         # of the key for SSH that the cloud puts into machines
 *       instance_profile: NAME # what machines may do in the cloud
 *       agent_image: ami-…     # of machines of kind ec2; default: there are none
 *       types: [ "t3.micro=2:1GiB:0.0104" ]  # NAME=CPUS:MEMORY:PRICE, to choose from
 *     boot_limit: 15m          # a machine of a pod that has not answered by then is ended
 *     lease: 24h               # a machine is the node's for so long, renewed at half of it
 *     gce:                     # Google's, in place of ec2; project and zone switch it on
 *       project: my-project
 *       zone: europe-west1-b
 *       endpoint: URL          # default: Google's
 *       credentials: PATH      # key of a service account; default: the environment, else metadata
 *       subnet: NAME           # of the zone's region; default: the network "default"
 *       tags: [ nacre ]        # network tags, by which firewall rules choose machines
 *       agent_image: PATH      # of machines of kind gce; default: there are none
 *       types: [ "e2-small=2:2GiB:0.0168" ]
 *     vsphere:                 # VMware's, in place of ec2; the first three switch it on
 *       endpoint: https://vcenter.example/sdk
 *       datacenter: DC         # %20 is a blank, here and in the next three
 *       resource_pool: cluster-1/Resources  # below the datacenter's hosts
 *       folder: nacre          # below the datacenter's machines; default: among them
 *       datastore: NAME        # default: that of the template
 *       agent_image: agent     # of machines of kind vsphere; default: there are none
 *       credentials: PATH      # lines of GOVC_USERNAME= and GOVC_PASSWORD=; default: environment
 *       ca_file: PATH          # that signed the vCenter's certificate; default: the system's
 *       thumbprint: AA:BB:…    # or the SHA-256 of that certificate
 *       types: [ "small=2:2GiB" ]  # names for sizes; default: what is asked for
 *   metrics:
 *     listen: 127.0.0.1:9464   # where Prometheus scrapes /metrics; default: nowhere
 *   storage:
 *     container_limit: none    # bytes that a container's writable layer may take
 *   system:                    # where `nacre daemon` is pid 1 (init/system_main.h)
 *     hostname: NAME           # default: as it is
 *     interfaces: [ "eth0 dhcp auto", "eth1 192.0.2.2/24 via 192.0.2.1 fd00::2/64 mtu 1400" ]
 *     dhcp_client: [ /sbin/udhcpc, -f, -i, "%i" ]  # default: the first that is installed
 *     network_within: 10s      # the daemon is started then, also where an address is missing
 *     dhcp_patience: 60s       # a client without an address for so long is started again
 *     stop_within: 60s         # all workloads have ended by then, when the machine is to end
 *   users:                     # ids that pods with a user namespace of their own get, 65,536 each
 *     first: 1879048192        # of users and of groups; those of /etc/subuid are left out
 *     count: 268304384
 *   vm:
 *     memory: 256MiB  # of a microVM that has no limit of its own
 *     cpus: 1         # likewise
 *     guest: default  # the guest set that it boots (nacre guest)
 *     templates: yes  # microVMs go on from one that has booted, and share pages with it
 *     pool: 0         # so many are loaded from that ahead of need
 *     pods: auto      # of what kind a pod's instance is where nobody says: auto, cell, vm,
 *                     # ec2, gce, vsphere
 *     heartbeat: 60s  # a guest that does not answer for so long is ended; no: none is
 *     nested: no      # guests may use hardware virtualization themselves
 *     hardware: auto  # no: without hardware virtualization, which is not even tried
 */
struct config {
	enum log_level log_level;
	enum log_form log_form;
	struct log_policy container_log;
	nsec_t drain;
	char cgroup[512]; /* "" : found out */
	char libexec[512];
	bool spare;
	char trust_domain[256];
	struct {
		char addresses[CONFIG_LISTEN_MAX][64];
		size_t n;
		char names[2048]; /* parted by commas */
	} listen;
	unsigned svid_life; /* seconds */
	char ca_key[512];   /* "": the node makes its authority */
	char ca_certificate[512];
	char policy[512]; /* "": roles of certificates alone */
	char audit[512];  /* "": none */
	bool audit_full_refuses;
	struct {
		uint64_t reserve;
		enum image_root root;
		char registry_dirs[IMAGE_REGISTRY_DIRS_SIZE];
		char policy[512];
		unsigned parallel_downloads;
		unsigned parallel_unpacks; /* 0: auto */
		nsec_t no_progress;
	} images;
	struct {
		bool by_default;
		bool plugins; /* are run */
		char conf_dir[512];
		char bin_dirs[1024];
	} network;
	struct {
		bool builtin_network;
		bool plugin_network; /* neither: pods of Kubernetes have none */
		char streaming_address[64];
	} cri;
	const char *security_profile; /* a constant */
	struct {
		char cdi_dirs[1024];
	} devices;
	struct cloud_settings cloud;
	struct {
		char listen[64]; /* "": nobody scrapes */
	} metrics;
	struct {
		uint64_t container_limit; /* 0: none */
	} storage;
	struct system_config sys;
	struct {
		uint32_t first, count;
	} users; /* pod/workload/ids.h */
	struct {
		uint64_t memory;
		unsigned cpus;
		bool nested;
		bool templates;
		unsigned pool;
		char guest[64];   /* "": the default one */
		nsec_t heartbeat; /* NSEC_NEVER: none */
		bool no_hardware;
		enum instance_kind pods; /* INSTANCE_KIND_COUNT: auto */
	} vm;
};

#define CONFIG_SVID_LIFE_MIN (2 * NSEC_PER_SEC)
#define CONFIG_SVID_LIFE_MAX (24 * 3600 * NSEC_PER_SEC)
#define CONFIG_RESERVE_MAX ((uint64_t)1 << 50)
#define CONFIG_IMAGES_PATIENCE_MIN NSEC_PER_SEC
#define CONFIG_IMAGES_PATIENCE_MAX (3600 * NSEC_PER_SEC)
#define CONFIG_VM_MEMORY_MIN ((uint64_t)64 << 20)
#define CONFIG_VM_MEMORY_MAX ((uint64_t)1 << 40)
#define CONFIG_VM_CPUS_MAX 64
#define CONFIG_VM_POOL_MAX 64
#define CONFIG_VM_HEARTBEAT_MIN (3 * NSEC_PER_SEC)

/* Sets the defaults, which hold without a file. */
void config_init(struct config *c);
/* missing_ok: a file that is not there is an empty one. */
int config_load(struct config *c, const char *path, bool missing_ok, struct error *err);

#endif
