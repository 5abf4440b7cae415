/* SPDX-License-Identifier: Apache-2.0 */

/* The unpacking of a layer, with the digests that the input has. The first byte: its compression.
 */

#include <errno.h>
#include <sys/mman.h>

#include "base/text/str.h"
#include "fetch/unpack/unpack.h"
#include "fuzz.h"
#include "fuzz_tmpfs.h"
#include "wire/name/checksum.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct checksum h;
	_cleanup_fd_ int root_fd = fuzz_tmpfs();
	_cleanup_fd_ int fd = memfd_create("layer", MFD_CLOEXEC);
	struct fuzz_input in = { data, size };
	struct fetchmsg request = { .type = FETCHMSG_UNPACK }, answer;
	struct error err = ERROR_INIT;

	request.unpack.compression = fuzz_byte(&in) % FETCH_COMPRESSION_COUNT;
	request.unpack.size = in.len;
	request.unpack.max_bytes = 1 << 20;
	request.unpack.max_entries = 100;
	checksum_start(&h);
	checksum_add(&h, in.at, in.len);
	checksum_end(&h, request.unpack.digest);
	(void)str_copy(request.unpack.diff_id, DIGEST_SIZE, request.unpack.digest);
	fuzz_need(fd >= 0 && fd_write_full(fd, in.at, in.len) == 0);
	fuzz_need(lseek(fd, 0, SEEK_SET) == 0);
	if (unpack_run(&request, fd, -1, root_fd, -1, &answer, &err) == 0)
		fuzz_need(answer.type == FETCHMSG_UNPACKED && answer.unpacked.n_entries <= 100);
	else
		fuzz_need(err.code != 0 && err.text[0] != '\0');
	return 0;
}
