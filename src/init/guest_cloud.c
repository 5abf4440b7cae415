/* SPDX-License-Identifier: Apache-2.0 */
#include "init/guest_cloud.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "init/guest_vmware.h"
#include "net/netlink/address.h"
#include "net/netlink/netlink.h"
#include "net/port/interface.h"
#include "wire/format/base64.h"
#include "wire/message/dhcp.h"
#include "wire/message/metadata.h"

#define CLOUD_WORD "NACRE_CLOUD"
#define CLOUD_WITHIN (300 * NSEC_PER_SEC)
#define CLOUD_PAUSE (200 * NSEC_PER_MSEC)
#define CLOUD_DHCP_FIRST_MS 500
#define CLOUD_DHCP_MAX_MS 8000
#define CLOUD_HTTP_WITHIN (5 * NSEC_PER_SEC)
#define CLOUD_FRAME_MAX 2048
#define CLOUD_TOKEN_MAX 1024
/* Settings of a machine of vSphere. The cloud reads the second one, while no VMware Tools tell it
 * an address (cloud/vsphere.h). */
#define CLOUD_USER_DATA "guestinfo.userdata"
#define CLOUD_ADDRESS "guestinfo.nacre.address"

static const uint8_t cloud_service[4] = { 169, 254, 169, 254 };

static void cloud_pause(void)
{
	const struct timespec pause = { .tv_nsec = (long)CLOUD_PAUSE };

	(void)nanosleep(&pause, NULL);
}

static struct prefix cloud_prefix(const uint8_t address[4], uint32_t length)
{
	struct prefix p = { .family = AF_INET, .length = (uint8_t)length };

	memcpy(p.bytes, address, 4);
	return p;
}

/* ---- the address ---- */

/* A driver comes up on its own time. */
static int cloud_device(const struct interface_plan *plan, nsec_t until, struct error *err)
{
	for (;;) {
		int r = interface_up(plan, err);

		if (r != -ENODEV || clock_mono() > until)
			return r;
		cloud_pause();
	}
}

/* All packets of IPv4 of that device, and the MAC that it has. */
static int cloud_open_packets(int device, uint8_t mac[6], struct error *err)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(ETH_P_IP),
				  .sll_ifindex = device };
	_cleanup_fd_ int fd = sysio_socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_IP));
	socklen_t len = sizeof(at);

	if (fd < 0)
		return error_set(err, -errno, "make a socket for packets");
	if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) < 0)
		return error_set(err, -errno, "listen on the network device");
	memcpy(mac, at.sll_addr, 6);
	return TAKE_FD(fd);
}

static int cloud_say(int fd, int device, const struct dhcp_ask *ask)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(ETH_P_IP),
				  .sll_ifindex = device,
				  .sll_halen = ETH_ALEN };
	uint8_t packet[DHCP_PACKET_SIZE];

	memset(to.sll_addr, 0xff, ETH_ALEN);
	dhcp_encode(ask, packet);
	/* A device whose cable is not in yet is one that is tried again. */
	return sendto(fd, packet, sizeof(packet), 0, (const struct sockaddr *)&to, sizeof(to)) < 0
		       ? -errno
		       : 0;
}

static bool cloud_answer(int fd, const struct dhcp_ask *ask, nsec_t within, struct dhcp_answer *ret)
{
	nsec_t until = clock_mono() + within, now = clock_mono();

	for (; now < until; now = clock_mono()) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		uint8_t packet[CLOUD_FRAME_MAX];
		ssize_t n;

		if (poll(&p, 1, (int)((until - now) / NSEC_PER_MSEC) + 1) <= 0)
			continue;
		n = recv(fd, packet, sizeof(packet), MSG_DONTWAIT);
		if (n > 0 && dhcp_decode(ret, ask, packet, (size_t)n))
			return true;
	}
	return false;
}

static int cloud_lease(int fd, int device, const uint8_t mac[6], nsec_t until,
		       struct dhcp_answer *ret, struct error *err)
{
	nsec_t within = CLOUD_DHCP_FIRST_MS * NSEC_PER_MSEC;
	struct dhcp_ask ask = { .type = DHCP_DISCOVER };

	memcpy(ask.mac, mac, sizeof(ask.mac));
	/* Also where nothing random is to be had yet: it need not be secret. */
	if (getrandom(&ask.number, sizeof(ask.number), GRND_NONBLOCK) < 0)
		ask.number = (uint32_t)clock_mono();
	while (clock_mono() < until) {
		ask.type = DHCP_DISCOVER;
		(void)cloud_say(fd, device, &ask);
		if (cloud_answer(fd, &ask, within, ret)) {
			ask.type = DHCP_REQUEST;
			memcpy(ask.address, ret->address, sizeof(ask.address));
			memcpy(ask.server, ret->server, sizeof(ask.server));
			(void)cloud_say(fd, device, &ask);
			if (cloud_answer(fd, &ask, within, ret) && ret->type == DHCP_ACK)
				return 0;
		}
		within = MIN(within * 2, CLOUD_DHCP_MAX_MS * NSEC_PER_MSEC);
		ask.number++;
	}
	return error_set(err, -ETIMEDOUT, "get an address by DHCP");
}

static int cloud_get_address(nsec_t until, uint8_t address[4], struct error *err)
{
	static const uint8_t none[4];
	struct interface_plan plan = { .mtu = 0 };
	struct dhcp_answer lease;
	_cleanup_fd_ int fd = -1;
	uint8_t mac[6];
	int device, r;

	device = cloud_device(&plan, until, err);
	if (device < 0)
		return device;
	fd = cloud_open_packets(device, mac, err);
	if (fd < 0)
		return fd;
	r = cloud_lease(fd, device, mac, until, &lease, err);
	if (r < 0)
		return r;
	plan.mtu = lease.mtu;
	plan.address = cloud_prefix(lease.address, lease.prefix);
	memcpy(address, lease.address, sizeof(lease.address));
	if (memcmp(lease.gateway, none, sizeof(none)) != 0)
		plan.gateway = cloud_prefix(lease.gateway, 32);
	return interface_up(&plan, err);
}

/* ---- the metadata service ---- */

static int cloud_connect(struct error *err)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(80) };
	_cleanup_fd_ int fd = sysio_socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int fault = 0;

	if (fd < 0)
		return error_set(err, -errno, "make a socket");
	memcpy(&to.sin_addr, cloud_service, sizeof(cloud_service));
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS)
		return error_set(err, -errno, "reach the metadata service");
	if (poll(&p, 1, (int)(CLOUD_HTTP_WITHIN / NSEC_PER_MSEC)) != 1)
		return error_set(err, -ETIMEDOUT, "reach the metadata service");
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &fault, &len) < 0 || fault)
		return error_set(err, fault ? -fault : -errno, "reach the metadata service");
	return TAKE_FD(fd);
}

static int cloud_read(int fd, nsec_t until, struct buf *b, struct metadata_answer *ret,
		      struct error *err)
{
	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		uint8_t *room;
		ssize_t n;
		int r = metadata_answer(ret, buf_data(b), b->len);

		if (r != 0)
			return r < 0 ? error_set(err, r, "read what the metadata service says") : 0;
		r = buf_reserve(b, CLOUD_FRAME_MAX, &room);
		if (r < 0)
			return error_set(err, r, "read what the metadata service says");
		if (clock_mono() >= until ||
		    poll(&p, 1, (int)((until - clock_mono()) / NSEC_PER_MSEC) + 1) < 0)
			return error_set(err, -ETIMEDOUT, "read what the metadata service says");
		n = sysio_read(fd, room, CLOUD_FRAME_MAX);
		if (n == 0)
			return error_set(err, -EPIPE, "read what the metadata service says");
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return error_set(err, -errno, "read what the metadata service says");
		buf_added(b, n > 0 ? (size_t)n : 0);
	}
}

/* One question; the body of an answer with the status 200 into `ret`. */
static int cloud_ask(const char *question, struct buf *ret, struct error *err)
{
	_cleanup_(buf_done) struct buf b =
		BUF_INIT_LIMIT(METADATA_HEAD_MAX + METADATA_BODY_MAX + CLOUD_FRAME_MAX);
	nsec_t until = clock_mono() + CLOUD_HTTP_WITHIN;
	_cleanup_fd_ int fd = cloud_connect(err);
	struct metadata_answer a;
	int r;

	if (fd < 0)
		return fd;
	/* It is shorter than any buffer of a new connection. */
	if (send(fd, question, strlen(question), MSG_NOSIGNAL) != (ssize_t)strlen(question))
		return error_set(err, -EIO, "ask the metadata service");
	r = cloud_read(fd, until, &b, &a, err);
	if (r == 0 && a.status != 200)
		r = error_set(err, a.status == 404 ? -ENOENT : -EREMOTEIO,
			      "ask the metadata service, which answers %u", a.status);
	if (r == 0) {
		r = buf_add(ret, buf_data(&b) + a.body, a.len);
		if (r < 0)
			(void)error_set(err, r, "keep what the metadata service says");
	}
	if (b.base)
		explicit_bzero(b.base, b.size);
	return r;
}

/* A word of the service's that goes back to it in a header. */
static bool cloud_is_word(const struct buf *b)
{
	for (size_t i = 0; i < b->len; i++)
		if (buf_data(b)[i] <= ' ' || buf_data(b)[i] > '~')
			return false;
	return b->len > 0 && b->len <= CLOUD_TOKEN_MAX;
}

static int cloud_user_data_ec2(struct buf *ret, struct error *err)
{
	static const char put[] = "PUT /latest/api/token HTTP/1.1\r\nHost: 169.254.169.254\r\n"
				  "X-aws-ec2-metadata-token-ttl-seconds: 60\r\n"
				  "Content-Length: 0\r\nConnection: close\r\n\r\n";
	_cleanup_(buf_done) struct buf token = BUF_INIT;
	char get[CLOUD_TOKEN_MAX + 256];
	int r = cloud_ask(put, &token, err);

	if (r < 0)
		return r;
	if (!cloud_is_word(&token))
		return error_set(err, -EBADMSG, "get a token of the metadata service");
	r = str_printf(get, sizeof(get),
		       "GET /latest/user-data HTTP/1.1\r\nHost: 169.254.169.254\r\n"
		       "X-aws-ec2-metadata-token: %.*s\r\nConnection: close\r\n\r\n",
		       (int)token.len, (const char *)buf_data(&token));
	return r < 0 ? error_set(err, r, "ask the metadata service") : cloud_ask(get, ret, err);
}

static int cloud_user_data_gce(struct buf *ret, struct error *err)
{
	static const char get[] =
		"GET /computeMetadata/v1/instance/attributes/user-data HTTP/1.1\r\n"
		"Host: metadata.google.internal\r\nMetadata-Flavor: Google\r\n"
		"Connection: close\r\n\r\n";

	return cloud_ask(get, ret, err);
}

/* What was written for this machine is nobody's else in it. */
static int cloud_close_service(struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	const struct route route = { .to = cloud_prefix(cloud_service, 32), .forbidden = true };
	int r = netlink_open(&nl, err);

	return r < 0 ? r : route_add(&nl, &route, err);
}

/* ---- the host of vSphere ---- */

static int cloud_user_data_vsphere(struct buf *ret, struct error *err)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	uint8_t *room;
	size_t n;
	int r = guest_vmware_ask("info-get " CLOUD_USER_DATA, &text, err);

	if (r < 0)
		return r;
	r = buf_add(&text, "", 1);
	if (r == 0)
		r = buf_reserve(ret, text.len, &room);
	if (r == 0 && !base64_decode_lines((const char *)buf_data(&text), room, &n))
		r = -EBADMSG;
	if (r == 0)
		buf_added(ret, n);
	explicit_bzero(text.base, text.size);
	return r < 0 ? error_set(err, r, "read " CLOUD_USER_DATA) : 0;
}

/* Any process of this machine may ask the host. */
static int cloud_close_vsphere(struct error *err)
{
	_cleanup_(buf_done) struct buf said = BUF_INIT;

	return guest_vmware_ask("info-set " CLOUD_USER_DATA " -", &said, err);
}

static int cloud_tell_vsphere(const uint8_t address[4], struct error *err)
{
	_cleanup_(buf_done) struct buf said = BUF_INIT;
	char text[INET_ADDRSTRLEN], question[sizeof(CLOUD_ADDRESS) + INET_ADDRSTRLEN + 16];

	(void)inet_ntop(AF_INET, address, text, sizeof(text));
	(void)str_printf(question, sizeof(question), "info-set " CLOUD_ADDRESS " %s", text);
	return guest_vmware_ask(question, &said, err);
}

/* ---- the clouds ---- */

static const struct cloud_kind {
	const char *word;
	int (*user_data)(struct buf *ret, struct error *err);
	int (*close)(struct error *err);
	int (*tell)(const uint8_t address[4], struct error *err); /* NULL: the cloud knows it */
} cloud_kinds[] = {
	{ "ec2", cloud_user_data_ec2, cloud_close_service, NULL },
	{ "gce", cloud_user_data_gce, cloud_close_service, NULL },
	{ "vsphere", cloud_user_data_vsphere, cloud_close_vsphere, cloud_tell_vsphere },
};

static const struct cloud_kind *cloud_kind(void)
{
	const char *word = getenv(CLOUD_WORD);

	for (size_t i = 0; word && i < ARRAY_SIZE(cloud_kinds); i++)
		if (str_eq(cloud_kinds[i].word, word))
			return &cloud_kinds[i];
	return NULL;
}

int guest_cloud_is_asked(bool *ret, struct error *err)
{
	const char *word = getenv(CLOUD_WORD);

	*ret = word != NULL;
	if (!word || cloud_kind())
		return 0;
	return error_refuse(err, ERROR_INVALID,
			    CLOUD_WORD "=%.32s is no cloud that is known: ec2, gce, vsphere", word);
}

static int cloud_get_frame(nsec_t until, struct buf *frame, struct error *err)
{
	_cleanup_(buf_done) struct buf data = BUF_INIT;
	bool told = false;
	int r;

	for (;;) {
		*err = (struct error)ERROR_INIT;
		r = cloud_kind()->user_data(&data, err);
		if (r == 0 || r == -ENOMEM || clock_mono() > until)
			break;
		if (!told)
			log_warn("the user-data are asked for again", LOG_ERR(err));
		told = true;
		buf_clear(&data);
		cloud_pause();
	}
	if (r == 0) {
		r = metadata_frame(buf_data(&data), data.len, frame);
		if (r < 0)
			(void)error_set(err, r, "read the user-data of this machine");
	}
	if (data.base)
		explicit_bzero(data.base, data.size);
	return r;
}

int guest_cloud_hear(struct buf *frame, struct error *err)
{
	const struct cloud_kind *kind = cloud_kind();
	nsec_t until = clock_mono() + CLOUD_WITHIN;
	uint8_t address[4];
	int device = cloud_get_address(until, address, err), r;

	if (device < 0)
		return error_wrap(err, device, "the network of this machine");
	r = cloud_get_frame(until, frame, err);
	if (r == 0)
		r = kind->close(err);
	if (r == 0 && kind->tell)
		r = kind->tell(address, err);
	return r < 0 ? r : device;
}
