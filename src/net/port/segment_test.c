/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port/segment.h"

#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop/loop.h"
#include "net/netlink/address.h"
#include "net/netlink/bed_test.h"
#include "net/port/inside.h"
#include "net/port/tap.h"

/* The namespace in which the program is now. */
static ino_t namespace_of(const char *path)
{
	struct stat st = { 0 };

	CHECK(stat(path, &st) == 0);
	return st.st_ino;
}

static int own_ns_fd = -1;

static void own_namespace(void)
{
	bed_enter();
	own_ns_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	CHECK(own_ns_fd >= 0);
}

/* ---- threads that stand elsewhere ---- */

static int looks_around(void *arg, struct error *err)
{
	sigset_t blocked;

	CHECK(pthread_sigmask(SIG_SETMASK, NULL, &blocked) == 0);
	CHECK(sigismember(&blocked, SIGTERM) == 1);
	*(ino_t *)arg = namespace_of("/proc/thread-self/ns/net");
	return 7;
}

static int fails(void *arg, struct error *err)
{
	return error_set(err, -EXDEV, "try it");
}

static void inside(void)
{
	ino_t before = namespace_of("/proc/thread-self/ns/net"), seen = 0;
	struct error err = ERROR_INIT;
	int descriptors = bed_descriptors();
	int uts_fd = open("/proc/thread-self/ns/uts", O_RDONLY | O_CLOEXEC);

	CHECK_INT(inside_run(INSIDE_NEW, looks_around, &seen, &err), 7);
	CHECK(seen != 0 && seen != before);
	CHECK_INT(inside_run(own_ns_fd, looks_around, &seen, &err), 7);
	CHECK(seen == before);
	CHECK(namespace_of("/proc/thread-self/ns/net") == before);
	CHECK_INT(inside_run(own_ns_fd, fails, NULL, &err), -EXDEV);
	CHECK(strstr(error_text(&err), "try it"));
	CHECK_INT(inside_run(bed_nl.fd, looks_around, &seen, &err), -EINVAL);
	CHECK_STR(error_text(&err), "enter a network namespace: Invalid argument");
	/* Nor one of another kind. */
	CHECK_INT(inside_run(uts_fd, looks_around, &seen, &err), -EINVAL);
	uts_fd = fd_close(uts_fd);
	CHECK_INT(bed_descriptors(), descriptors);
}

/* ---- devices ---- */

/* A process without any privilege: 0, or the number of what it could not do. */
static int as_nobody(int fd)
{
	int status = -1;
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		const int size = sizeof(struct virtio_net_hdr_mrg_rxbuf), all = INT_MAX;
		const unsigned long offloads = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
		struct ifreq request = { .ifr_flags = 0 };

		if (setgroups(0, NULL) < 0 || setresgid(65534, 65534, 65534) < 0 ||
		    setresuid(65534, 65534, 65534) < 0)
			_exit(1);
		if (ioctl(fd, TUNGETIFF, &request) < 0 || !(request.ifr_flags & IFF_VNET_HDR))
			_exit(2);
		if (ioctl(fd, TUNSETVNETHDRSZ, &size) < 0)
			_exit(3);
		if (ioctl(fd, TUNSETOFFLOAD, offloads) < 0 || ioctl(fd, TUNSETOFFLOAD, 0UL) < 0)
			_exit(4);
		if (ioctl(fd, TUNSETSNDBUF, &all) < 0)
			_exit(5);
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void taps(void)
{
	struct error err = ERROR_INIT;
	struct ifreq request = { .ifr_flags = 0 };
	int descriptors = bed_descriptors();
	int fd = tap_open("tap9", &err), other, size = 0;

	CHECK(fd >= 0);
	CHECK_INT(bed_link_number("tap9", "tun_flags"), IFF_TAP | IFF_NO_PI | IFF_VNET_HDR);
	/* What a machine monitor does with the descriptor alone, whoever it is. */
	CHECK(ioctl(fd, TUNGETVNETHDRSZ, &size) == 0 && size == sizeof(struct virtio_net_hdr));
	CHECK_INT(as_nobody(fd), 0);
	CHECK(ioctl(fd, TUNGETIFF, &request) == 0);
	CHECK_STR(request.ifr_name, "tap9");
	CHECK(request.ifr_flags & IFF_VNET_HDR);
	CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);

	other = tap_open("tap9", &err);
	CHECK_INT(other, -EBUSY);
	CHECK_STR(error_text(&err), "make the TAP device tap9: Device or resource busy");
	CHECK_INT(tap_open("lo", &err), -EBUSY);
	CHECK_INT(tap_open("tap%d", &err), -EINVAL);
	CHECK_INT(tap_open("", &err), -EINVAL);
	(void)fd_close(fd);
	CHECK(!bed_has_link("tap9"));
	CHECK_INT(bed_descriptors(), descriptors);
}

/* ---- a segment ---- */

static bool made(struct segment *s)
{
	struct segment_plan plan = segment_plan_usual();
	struct error err = ERROR_INIT;
	int r = segment_make(s, &plan, &err);

	/* Without memory there is no thread. */
	CHECK(r == 0 || (failmalloc_has_failed && failmalloc_has_failed()));
	if (r < 0)
		printf("# %s\n", error_text(&err));
	return r == 0;
}

/* Beside the bridge, and of no use to anybody who is not joined to it. */
static int looks_at_pod(void *arg, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct link tap = { 0 };
	char name[IF_NAMESIZE];

	(void)arg;
	CHECK_INT(netlink_open(&nl, err), 0);
	for (unsigned n = 0; n < SEGMENT_POD_TAPS; n++) {
		segment_pod_tap(n, name);
		CHECK_INT(link_find(&nl, name, &tap, err), 0);
		CHECK(tap.up && tap.running && tap.master == 0);
		CHECK(!bed_proc_has("if_inet6", name));
	}
	return 0;
}

static void with_a_pod(void)
{
	struct segment_plan plan = segment_plan_usual();
	int descriptors = bed_descriptors();
	struct segment s = SEGMENT_NONE;
	struct error err = ERROR_INIT;
	int r;

	plan.has_pod = true;
	r = segment_make(&s, &plan, &err);
	CHECK(r == 0 || (failmalloc_has_failed && failmalloc_has_failed()));
	if (r < 0)
		return;
	for (size_t n = 0; n < SEGMENT_POD_TAPS; n++)
		CHECK(s.pod_fds[n] >= 0 && fcntl(s.pod_fds[n], F_GETFD) & FD_CLOEXEC);
	CHECK_INT(inside_run(s.ns_fd, looks_at_pod, NULL, &err), 0);
	segment_done(&s);
	CHECK_INT(bed_descriptors(), descriptors);
}

static int looks_at_segment(void *arg, struct error *err)
{
	struct prefix node = segment_plan_usual().node;
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct link bridge = { 0 }, tap = { 0 }, lo = { 0 };
	char text[LINK_MAC_TEXT], address[PREFIX_TEXT_MAX];

	CHECK_INT(netlink_open(&nl, err), 0);
	CHECK_INT(link_find(&nl, "lo", &lo, err), 0);
	CHECK(lo.up);
	CHECK_INT(link_find(&nl, SEGMENT_BRIDGE, &bridge, err), 0);
	CHECK(bridge.up && bridge.running);
	link_print_mac(bridge.mac, text);
	CHECK_STR(text, SEGMENT_NODE_MAC);
	CHECK_INT(link_find(&nl, SEGMENT_TAP, &tap, err), 0);
	CHECK(tap.up && tap.running && tap.master == bridge.index);
	prefix_print_address(&node, address);
	CHECK(bed_proc_has("fib_trie", address));
	CHECK(bed_proc_has("arp", "169.254.74.2     0x1         0x6         02:6e:61:63:72:02"));
	/* No address that nobody gave. */
	CHECK(!bed_proc_has("if_inet6", SEGMENT_BRIDGE) && !bed_proc_has("if_inet6", SEGMENT_TAP));
	*(ino_t *)arg = namespace_of("/proc/thread-self/ns/net");
	return 0;
}

static void a_segment(void)
{
	int descriptors = bed_descriptors();
	struct segment s = SEGMENT_NONE;
	struct error err = ERROR_INIT;
	struct stat st = { 0 };
	ino_t seen = 0;

	if (!made(&s))
		return;
	CHECK_INT(bed_descriptors(), descriptors + 2);
	CHECK(fstat(s.ns_fd, &st) == 0 && st.st_ino != namespace_of("/proc/thread-self/ns/net"));
	CHECK_INT(inside_run(s.ns_fd, looks_at_segment, &seen, &err), 0);
	CHECK(seen == st.st_ino);
	CHECK(fcntl(s.ns_fd, F_GETFD) & FD_CLOEXEC && fcntl(s.tap_fd, F_GETFD) & FD_CLOEXEC);
	CHECK(!bed_has_link(SEGMENT_BRIDGE) && !bed_has_link(SEGMENT_TAP));
	segment_done(&s);
	segment_done(&s);
	CHECK_INT(bed_descriptors(), descriptors);
}

/* What the guest would see of a datagram that the node's end sends. */
static int sends(void *arg, struct error *err)
{
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_port = htons(7474),
					.sin_addr = { inet_addr("169.254.74.2") } };
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK_INT(sendto(fd, "hello", 5, 0, (const struct sockaddr *)&to, sizeof(to)), 5);
	return 0;
}

/* At once, whenever that is: nothing is sent again here. */
static void frame_crosses(const struct segment *s)
{
	struct pollfd ready = { .fd = s->tap_fd, .events = POLLIN };
	struct error err = ERROR_INIT;
	uint8_t frame[2048];
	ssize_t n;

	if (inside_run(s->ns_fd, sends, NULL, &err) < 0)
		return;
	CHECK_INT(poll(&ready, 1, 5000), 1);
	n = read(s->tap_fd, frame, sizeof(frame));
	/* Ten bytes about it, Ethernet to the guest's MAC from the node's, IP, UDP, the text:
	 * nobody was asked for the MAC first. */
	CHECK_INT(n, 10 + 14 + 20 + 8 + 5);
	CHECK(n > 22 && memcmp(frame + 10, "\x02nacr\x02\x02nacr\x01\x08\x00", 14) == 0);
	CHECK(n > 5 && memcmp(frame + n - 5, "hello", 5) == 0);
}

static void frames_cross(void)
{
	/* A bridge that goes up before it has a port loses one of ten. */
	for (int i = 0; i < 15; i++) {
		_cleanup_segment_ struct segment s = SEGMENT_NONE;

		if (made(&s))
			frame_crosses(&s);
	}
}

/* A router's advertisement of fd00:bad0::/64, from the guest to everybody, as it would come from a
 * TAP device. */
static size_t advertisement(uint8_t frame[256])
{
	static const uint8_t head[] = {
		/* About it: nothing. To ff02::1, from the guest, IPv6. */
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x33, 0x33, 0, 0, 0, 1, 2, 'n', 'a', 'c', 'r', 2,
		0x86, 0xdd,
		/* 48 bytes of ICMP, hop limit 255, from fe80::2 to ff02::1. */
		0x60, 0, 0, 0, 0, 48, 58, 255, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
		0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1
	};
	static const uint8_t body[48] = {
		/* An advertisement, a router for 1800 seconds, a prefix to make addresses of. */
		134, 0,    0, 0, 64, 0,  7, 8, 0,  0,  0, 0, 0, 0, 0,    0, 3,    4,
		64,  0xc0, 0, 0, 14, 16, 0, 0, 14, 16, 0, 0, 0, 0, 0xfd, 0, 0xba, 0xd0
	};
	uint32_t sum = 48 + 58;

	memcpy(frame, head, sizeof(head));
	memcpy(frame + sizeof(head), body, sizeof(body));
	/* Its checksum is that of the addresses, too. */
	for (size_t i = sizeof(head) - 32; i < sizeof(head) + sizeof(body); i += 2)
		sum += (uint32_t)frame[i] << 8 | frame[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	frame[sizeof(head) + 2] = (uint8_t)(~sum >> 8);
	frame[sizeof(head) + 3] = (uint8_t)~sum;
	return sizeof(head) + sizeof(body);
}

static int has_no_ipv6(void *arg, struct error *err)
{
	/* Its own namespace shows that the frame is one that a kernel would believe. */
	const char *believed = "fd00bad000000000";
	bool *seen = arg;
	const struct timespec pause = { .tv_nsec = 5000000 };

	for (int i = 0; i < 100 && !*seen; i++) {
		*seen = bed_proc_has("if_inet6", believed);
		(void)nanosleep(&pause, NULL);
	}
	return bed_proc_has("if_inet6", "nacre0") || bed_proc_has("if_inet6", "tap");
}

static void no_router_is_believed(void)
{
	const struct link_change up = { .power = LINK_UP };
	_cleanup_segment_ struct segment s = SEGMENT_NONE;
	struct error err = ERROR_INIT;
	struct link link = { 0 };
	uint8_t frame[256];
	size_t len = advertisement(frame);
	bool seen = false;
	int fd;

	/* A TAP device that nobody protects believes it. */
	fd = tap_open("tap8", &err);
	CHECK_INT(link_find(&bed_nl, "tap8", &link, &err), 0);
	CHECK_INT(link_set(&bed_nl, link.index, &up, &err), 0);
	CHECK_INT(write(fd, frame, len), len);
	(void)has_no_ipv6(&seen, &err);
	CHECK(seen);
	(void)fd_close(fd);

	if (!made(&s))
		return;
	CHECK_INT(write(s.tap_fd, frame, len), len);
	seen = false;
	CHECK_INT(inside_run(s.ns_fd, has_no_ipv6, &seen, &err), 0);
	CHECK(!seen);
}

/* ---- further devices ---- */

/* Whether the kernel, which does it in its own time, has taken the link away. */
static bool goes(const char *link)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	time_t since = unit_now();

	while (bed_has_link(link) && unit_now() - since < UNIT_PATIENCE)
		(void)nanosleep(&pause, NULL);
	return !bed_has_link(link);
}

/* Whether a frame of the guest's comes to the bridge, as the kernel counts there. */
static bool reaches(int tap_fd, const char *bridge)
{
	const struct link_change up = { .power = LINK_UP };
	const struct timespec pause = { .tv_nsec = 5000000 };
	/* To everybody, of a kind that is for trials. */
	uint8_t frame[10 + 60] = { 0 };
	time_t since = unit_now();
	struct link link = { 0 };
	long before;

	memcpy(frame + 10, "\xff\xff\xff\xff\xff\xff\x02nacr\x09\x88\xb5", 14);
	CHECK_INT(link_find(&bed_nl, bridge, &link, NULL), 0);
	CHECK_INT(link_set(&bed_nl, link.index, &up, NULL), 0);
	before = bed_link_number(bridge, "statistics/rx_packets");
	do {
		CHECK_INT(write(tap_fd, frame, sizeof(frame)), sizeof(frame));
		(void)nanosleep(&pause, NULL);
	} while (bed_link_number(bridge, "statistics/rx_packets") == before &&
		 unit_now() - since < UNIT_PATIENCE);
	return bed_link_number(bridge, "statistics/rx_packets") > before;
}

static void nothing_is_left(void)
{
	const struct cable_end far = { .ns_fd = own_ns_fd, .name = "guest1", .bridge = "pods0" };
	int descriptors = bed_descriptors(), tap_fd = -1;
	_cleanup_segment_ struct segment s = SEGMENT_NONE;
	struct error err = ERROR_INIT;
	uint32_t bridge = 0;
	int r;

	CHECK_INT(link_add_bridge(&bed_nl, "pods0", NULL, &bridge, &err), 0);
	if (made(&s)) {
		r = segment_add_device(s.ns_fd, 1, &far, 1400, &tap_fd, &err);
		CHECK_INT(r, 0);
		CHECK_INT(bed_link_number("guest1", "master/ifindex"), bridge);
		CHECK_INT(bed_link_number("guest1", "mtu"), 1400);
		CHECK(reaches(tap_fd, "pods0"));
		/* The one end of the cable is here: it goes with the namespace of the other. */
		(void)fd_close(tap_fd);
		CHECK(bed_has_link("guest1"));
		segment_done(&s);
		CHECK(goes("guest1"));
	}
	CHECK_INT(link_delete(&bed_nl, bridge, &err), 0);
	CHECK_INT(bed_descriptors(), descriptors);
}

static int has_no_device_one(void *arg, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct link link;

	CHECK_INT(netlink_open(&nl, err), 0);
	CHECK_INT(link_find(&nl, "nacre1", &link, err), -ENODEV);
	CHECK_INT(link_find(&nl, "tap1", &link, err), -ENODEV);
	CHECK_INT(link_find(&nl, "out1", &link, err), -ENODEV);
	return 0;
}

static void a_device_that_cannot_be(void)
{
	const struct cable_end nowhere = { .ns_fd = own_ns_fd, .name = "guest1", .bridge = "none" };
	const struct cable_end taken = { .ns_fd = own_ns_fd, .name = "lo" };
	const struct cable_end none = { .ns_fd = -1, .name = "guest1" };
	int descriptors = bed_descriptors(), tap_fd = -1, other_fd;
	struct segment s = SEGMENT_NONE;
	struct error err = ERROR_INIT;

	if (!made(&s))
		return;
	CHECK_INT(segment_add_device(s.ns_fd, 0, &taken, 0, &tap_fd, &err), -ERANGE);
	CHECK_INT(segment_add_device(s.ns_fd, SEGMENT_DEVICES_MAX + 1, &taken, 0, &tap_fd, &err),
		  -ERANGE);
	CHECK_INT(segment_add_device(s.ns_fd, 1, &nowhere, 0, &tap_fd, &err), -ENODEV);
	CHECK_STR(error_text(&err), "add device 1 of a guest: the other end of out1: find the link "
				    "none: No such device");
	CHECK_INT(inside_run(s.ns_fd, has_no_device_one, NULL, &err), 0);
	CHECK_INT(segment_add_device(s.ns_fd, 1, &taken, 0, &tap_fd, &err), -EEXIST);
	CHECK(segment_add_device(s.ns_fd, 1, &none, 0, &tap_fd, &err) < 0);
	CHECK_INT(inside_run(s.ns_fd, has_no_device_one, NULL, &err), 0);
	CHECK_INT(tap_fd, -1);
	CHECK(!bed_has_link("guest1"));
	/* Its name is taken there. */
	other_fd = tap_open_in(s.ns_fd, "tap1", &err);
	if (other_fd >= 0) {
		CHECK_INT(segment_add_device(s.ns_fd, 1, &taken, 0, &tap_fd, &err), -EBUSY);
		other_fd = fd_close(other_fd);
		CHECK_INT(inside_run(s.ns_fd, has_no_device_one, NULL, &err), 0);
	}
	segment_done(&s);
	CHECK_INT(bed_descriptors(), descriptors);
}

/* ---- by the pool ---- */

struct waiting {
	struct segment_job job;
	pthread_t thread;
	bool ended;
};

static void job_ended(struct segment_job *job)
{
	struct waiting *w = container_of(job, struct waiting, job);

	CHECK(pthread_equal(w->thread, pthread_self()));
	w->ended = true;
}

static void off_the_loop(void)
{
	struct segment_plan plan = segment_plan_usual();
	int descriptors = bed_descriptors();
	struct loop *loop = NULL;
	struct pool *pool = NULL;
	struct waiting w = { .job = SEGMENT_JOB_INIT, .thread = pthread_self() };
	time_t since = unit_now();

	if (loop_new(&loop) == 0 && pool_new(&pool, loop, 1) == 0) {
		segment_job_start(&w.job, pool, &plan, job_ended);
		while (!w.ended && unit_waits(since))
			loop_turn(loop, true);
		CHECK(w.ended);
		CHECK(w.job.r == 0 || (failmalloc_has_failed && failmalloc_has_failed()));
		CHECK(w.job.r < 0 || (w.job.made.ns_fd >= 0 && w.job.made.tap_fd >= 0));
		/* One that is refused tells why. */
		segment_job_done(&w.job);
		plan.node.family = 0;
		w.ended = false;
		segment_job_start(&w.job, pool, &plan, job_ended);
		while (!w.ended && unit_waits(since))
			loop_turn(loop, true);
		CHECK(w.job.r < 0 && w.job.made.ns_fd < 0);
		CHECK(strstr(error_text(&w.job.err), "make the network of a guest"));
		segment_job_done(&w.job);
	}
	pool = pool_free(pool);
	loop = loop_free(loop);
	CHECK_INT(bed_descriptors(), descriptors);
}

UNIT_MAIN({ "own_namespace", own_namespace, true }, { "inside", inside }, { "taps", taps },
	  { "a_segment", a_segment }, { "with_a_pod", with_a_pod },
	  { "frames_cross", frames_cross }, { "no_router_is_believed", no_router_is_believed },
	  { "nothing_is_left", nothing_is_left },
	  { "a_device_that_cannot_be", a_device_that_cannot_be }, { "off_the_loop", off_the_loop })
