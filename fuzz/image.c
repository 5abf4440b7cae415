/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What nacre-fetch reads of an image. The first byte says what the rest is: 'T' an archive as it
 * is, 'D' documents of a `docker save`, else documents of an OCI layout. Documents end with NUL:
 * first manifest.json or index.json, then the blobs, which are also files named b0, b1 and so on.
 * In a document "@N" is the digest of blob N and "#N" its size, where it comes later.
 */

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/memory/buf.h"
#include "base/text/str.h"
#include "fetch/job/oci.h"
#include "fetch/unpack/docker.h"
#include "fetch/unpack/reading.h"
#include "fetch/unpack/source.h"
#include "fuzz.h"
#include "fuzz_tmpfs.h"
#include "wire/name/checksum.h"

#define BLOBS_MAX 10
#define BYTES_MAX (1 << 20)

struct blob {
	struct buf text;
	char digest[DIGEST_SIZE];
};

static struct blob blobs[BLOBS_MAX];
static size_t n_blobs;

static void put(int dir_fd, const char *name, const void *data, size_t len)
{
	_cleanup_fd_ int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	fuzz_need(fd >= 0 && fd_write_full(fd, data, len) == 0);
}

/* The text with what stands for digests and sizes put in, of the blobs behind number `after`. */
static void expand(struct buf *to, struct fuzz_input in, size_t after)
{
	char word[DIGEST_SIZE];

	while (in.len > 0) {
		char c = (char)fuzz_byte(&in);
		size_t n = in.len > 0 ? (size_t)(*in.at - '0') : BLOBS_MAX;

		if ((c != '@' && c != '#') || n >= n_blobs || n <= after) {
			fuzz_need(buf_add(to, &c, 1) == 0);
			continue;
		}
		(void)fuzz_byte(&in);
		if (c == '@')
			(void)str_copy(word, sizeof(word), blobs[n].digest);
		else
			(void)str_printf(word, sizeof(word), "%zu", blobs[n].text.len);
		fuzz_need(buf_add(to, word, strlen(word)) == 0);
	}
}

static void put_blob(int dir_fd, size_t i, struct fuzz_input text)
{
	struct checksum h;
	char name[DIGEST_SIZE + 32];

	expand(&blobs[i].text, text, i);
	checksum_start(&h);
	checksum_add(&h, buf_data(&blobs[i].text), blobs[i].text.len);
	checksum_end(&h, blobs[i].digest);
	(void)str_printf(name, sizeof(name), "blobs/sha256/%s", digest_hex(blobs[i].digest));
	put(dir_fd, name, buf_data(&blobs[i].text), blobs[i].text.len);
	(void)str_printf(name, sizeof(name), "b%zu", i);
	put(dir_fd, name, buf_data(&blobs[i].text), blobs[i].text.len);
}

static int make_folder(struct fuzz_input in, bool docker)
{
	static const char layout[] = "{\"imageLayoutVersion\":\"1.0.0\"}";
	struct fuzz_input top = fuzz_until(&in, '\0'), texts[BLOBS_MAX];
	struct buf b = BUF_INIT;
	int fd = fuzz_tmpfs();

	fuzz_need(mkdirat(fd, "blobs", 0755) == 0 && mkdirat(fd, "blobs/sha256", 0755) == 0);
	for (n_blobs = 0; in.len > 0 && n_blobs < BLOBS_MAX; n_blobs++) {
		texts[n_blobs] = fuzz_until(&in, '\0');
		blobs[n_blobs].text = (struct buf)BUF_INIT;
	}
	for (size_t i = n_blobs; i-- > 0;)
		put_blob(fd, i, texts[i]);
	expand(&b, top, (size_t)-1);
	for (size_t i = 0; i < n_blobs; i++)
		buf_done(&blobs[i].text);
	if (!docker)
		put(fd, "oci-layout", layout, sizeof(layout) - 1);
	put(fd, docker ? "manifest.json" : "index.json", buf_data(&b), b.len);
	buf_done(&b);
	return fd;
}

static int make_file(struct fuzz_input in)
{
	int fd = memfd_create("archive", MFD_CLOEXEC);

	fuzz_need(fd >= 0 && fd_write_full(fd, in.at, in.len) == 0);
	fuzz_need(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

static void read_image(int from_fd, int staging_fd, int sock_fd)
{
	struct reading r = {
		.staging = { .dir_fd = staging_fd,
			     .sock_fd = sock_fd,
			     .max_bytes = BYTES_MAX,
			     .blobs = MAP_INIT },
		.sock_fd = sock_fd,
		.architecture = "amd64",
		.choice = CHOICE_INIT("", "layout"),
	};
	struct error err = ERROR_INIT;
	int code = source_open(&r.source, from_fd, staging_fd, BYTES_MAX, &err);

	if (code == 0 && source_has(r.source, "oci-layout") && source_has(r.source, "index.json"))
		code = oci_read(&r, &err);
	else if (code == 0)
		code = docker_read(&r, &err);
	fuzz_need(code >= 0 || (err.code != 0 && err.text[0] != '\0'));
	if (r.source)
		(void)source_free(r.source);
	staging_done(&r.staging);
}

/* What the core would get is well-formed. */
static void check_messages(int sock_fd)
{
	static uint8_t packet[FETCHMSG_SIZE_MAX];
	struct error err = ERROR_INIT;
	struct fetchmsg m;
	ssize_t n;

	for (;;) {
		n = recv(sock_fd, packet, sizeof(packet), MSG_DONTWAIT);
		if (n < 0)
			return;
		fuzz_need(fetchmsg_decode(&m, packet, (size_t)n, &err) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	unsigned kind = fuzz_byte(&in);
	_cleanup_fd_ int from_fd = kind == 'T' ? make_file(in) : make_folder(in, kind == 'D');
	_cleanup_fd_ int staging_fd = fuzz_tmpfs();
	int fds[2];

	/* Where the socket is full, sending fails. */
	fuzz_need(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
	read_image(from_fd, staging_fd, fds[0]);
	check_messages(fds[1]);
	(void)fd_close(fds[0]);
	(void)fd_close(fds[1]);
	return 0;
}
