/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What machines are measured with, a static program. As pid 1 it is the least that a guest can be
 * (bench/vm boots it in QEMU without any of nacre): it loads the modules of /modules/list, mounts
 * the image on the disk vda with an overlay on it, sets the address, and serves. In a container of
 * a guest of nacre's it only serves, or does one of the other measurements:
 *
 *   vm-guest serve PORT          as below
 *   vm-guest forks N PROGRAM     median time of fork, exec and wait, in nanoseconds
 *
 * Whoever connects is answered with a line, and may then say, as often as he wants:
 *   e                            a byte is sent back
 *   f                            the median of FORKS forks of /image/bin/true, or of /bin/true
 *   r                            the file "data" is read, past the page cache: nanoseconds
 *   s N                          N bytes are taken: nanoseconds from the first to the last
 *   g N                          N bytes are sent
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/route.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define VG_PORT 7070
#define VG_ADDRESS "169.254.74.2"
#define VG_MASK "255.255.255.252"
#define VG_FORKS 60
#define VG_FORKS_MAX 10000
#define VG_PIECE (128 << 10)
#define VG_WAIT_MS 30000

static char vg_piece[VG_PIECE];
static bool vg_is_init;

static _Noreturn void vg_die(const char *what)
{
	printf("vm-guest: %s: %s\n", what, strerror(errno));
	(void)fflush(stdout);
	if (vg_is_init)
		(void)reboot(RB_POWER_OFF);
	_exit(1);
}

static int64_t vg_now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static void vg_pause(void)
{
	const struct timespec ts = { .tv_nsec = 1000000 };

	(void)nanosleep(&ts, NULL);
}

static int vg_compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int64_t vg_forks(size_t n, const char *program)
{
	static int64_t times[VG_FORKS_MAX];
	char *const argv[] = { (char *)(uintptr_t)program, NULL };
	char *const env[] = { NULL };

	for (size_t i = 0; i < n; i++) {
		int64_t began = vg_now();
		int status = 0;
		pid_t pid = fork();

		if (pid == 0) {
			(void)execve(program, argv, env);
			_exit(127);
		}
		if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
			vg_die(program);
		times[i] = vg_now() - began;
	}
	qsort(times, n, sizeof(times[0]), vg_compare);
	return times[n / 2];
}

/* ---- what it serves ---- */

static void vg_send(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);

		if (n <= 0)
			return;
		data += n;
		len -= (size_t)n;
	}
}

static void vg_answer(int fd, int64_t value)
{
	char line[32];
	int n = snprintf(line, sizeof(line), "%lld\n", (long long)value);

	vg_send(fd, line, (size_t)n);
}

static const char *vg_path(const char *in_image)
{
	return vg_is_init ? in_image : in_image + strlen("/image");
}

static int64_t vg_read_disk(void)
{
	int fd = open(vg_path("/image/data"), O_RDONLY | O_CLOEXEC);
	int64_t began = vg_now();
	ssize_t n = 1;

	if (fd < 0)
		vg_die("data");
	/* Nobody may have read it before. */
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	began = vg_now();
	while (n > 0)
		n = read(fd, vg_piece, sizeof(vg_piece));
	if (n < 0)
		vg_die("data");
	(void)close(fd);
	return vg_now() - began;
}

static void vg_take(int fd, long long left)
{
	int64_t began = 0;

	while (left > 0) {
		ssize_t n = read(fd, vg_piece, sizeof(vg_piece));

		if (n <= 0)
			return;
		if (!began)
			began = vg_now();
		left -= n;
	}
	vg_answer(fd, vg_now() - began);
}

static void vg_give(int fd, long long left)
{
	while (left > 0) {
		size_t n = left < VG_PIECE ? (size_t)left : VG_PIECE;

		vg_send(fd, vg_piece, n);
		left -= (long long)n;
	}
}

/* Up to the end of a line. */
static bool vg_line(int fd, char *line, size_t size)
{
	for (size_t n = 0; n + 1 < size; n++) {
		if (read(fd, line + n, 1) != 1)
			return false;
		if (line[n] == '\n') {
			line[n] = '\0';
			return true;
		}
	}
	return false;
}

static void vg_serve_one(int fd)
{
	char line[64];

	vg_send(fd, "up\n", 3);
	while (vg_line(fd, line, sizeof(line))) {
		long long n = strtoll(line + 1, NULL, 10);

		if (line[0] == 'e')
			vg_send(fd, "e", 1);
		else if (line[0] == 'f')
			vg_answer(fd, vg_forks(VG_FORKS, vg_path("/image/bin/true")));
		else if (line[0] == 'r')
			vg_answer(fd, vg_read_disk());
		else if (line[0] == 's')
			vg_take(fd, n);
		else if (line[0] == 'g')
			vg_give(fd, n);
	}
}

static _Noreturn void vg_serve(uint16_t port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port) };
	int listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (setsockopt(listen_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(listen_fd, (struct sockaddr *)&sin, sizeof(sin)) < 0 || listen(listen_fd, 64) < 0)
		vg_die("listen");
	for (;;) {
		int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			vg_die("accept");
		vg_serve_one(fd);
		(void)close(fd);
	}
}

/* ---- pid 1 ---- */

static void vg_load_modules(void)
{
	char *line = NULL, path[128];
	FILE *list = fopen("/modules/list", "re");
	size_t size = 0;
	int fd;

	while (list && getline(&line, &size, list) > 0) {
		line[strcspn(line, "\n")] = '\0';
		(void)snprintf(path, sizeof(path), "%s", line);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST))
			vg_die(path);
		(void)close(fd);
	}
	if (list)
		(void)fclose(list);
	free(line);
}

static void vg_mount(const char *fs, const char *from, const char *to, unsigned long flags,
		     const char *options)
{
	(void)mkdir(to, 0755);
	if (mount(from, to, fs, flags, options) < 0)
		vg_die(to);
}

static void vg_mount_image(void)
{
	for (int i = 0; access("/dev/vda", F_OK) < 0; i++) {
		if (i > VG_WAIT_MS)
			vg_die("/dev/vda");
		vg_pause();
	}
	vg_mount("erofs", "/dev/vda", "/lower", MS_RDONLY, NULL);
	vg_mount("tmpfs", "tmpfs", "/rw", 0, "mode=700");
	if (mkdir("/rw/upper", 0755) < 0 || mkdir("/rw/work", 0755) < 0)
		vg_die("/rw");
	vg_mount("overlay", "overlay", "/image", 0,
		 "lowerdir=/lower,upperdir=/rw/upper,workdir=/rw/work");
}

static void vg_set_address(void)
{
	struct ifreq ifr = { .ifr_name = "eth0" };
	struct sockaddr_in sin = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)inet_pton(AF_INET, VG_ADDRESS, &sin.sin_addr);
	memcpy(&ifr.ifr_addr, &sin, sizeof(sin));
	for (int i = 0; ioctl(fd, SIOCSIFADDR, &ifr) < 0; i++) {
		if (i > VG_WAIT_MS)
			vg_die("eth0");
		vg_pause();
	}
	(void)inet_pton(AF_INET, VG_MASK, &sin.sin_addr);
	memcpy(&ifr.ifr_netmask, &sin, sizeof(sin));
	if (ioctl(fd, SIOCSIFNETMASK, &ifr) < 0)
		vg_die("the mask of eth0");
	memset(&ifr.ifr_ifru, 0, sizeof(ifr.ifr_ifru));
	ifr.ifr_flags = IFF_UP;
	if (ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
		vg_die("eth0 up");
	(void)close(fd);
}

static _Noreturn void vg_init(void)
{
	vg_is_init = true;
	vg_mount("devtmpfs", "devtmpfs", "/dev", 0, NULL);
	vg_load_modules();
	vg_set_address();
	vg_mount_image();
	vg_serve(VG_PORT);
}

int main(int argc, char *argv[])
{
	if (getpid() == 1 && argc < 2)
		vg_init();
	if (argc == 3 && strcmp(argv[1], "serve") == 0)
		vg_serve((uint16_t)strtoul(argv[2], NULL, 10));
	if (argc == 4 && strcmp(argv[1], "forks") == 0) {
		size_t n = strtoul(argv[2], NULL, 10);

		if (n == 0 || n > VG_FORKS_MAX)
			return 2;
		(void)printf("%lld\n", (long long)vg_forks(n, argv[3]));
		return 0;
	}
	(void)fprintf(stderr, "usage: vm-guest serve PORT | forks N PROGRAM\n");
	return 2;
}
