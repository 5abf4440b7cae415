/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/handover.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"

/*
 * On the way: a head, then fields, each a tag and a length (32 bits, in the order of this machine,
 * which the state never leaves) and that many bytes. Numbers are 64 bits wide, so that a member can
 * change its type.
 */

#define HANDOVER_MAGIC 0x6e61637265737431ULL
#define HANDOVER_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

struct handover_head {
	uint64_t magic;
	uint32_t version;
	uint32_t reserved;
	uint64_t len;
};

struct handover_tag {
	uint32_t tag;
	uint32_t len;
};

/* ---- numbers of any size ---- */

static int64_t int_load(const void *from, size_t size)
{
	int64_t n = 0;

	/* The high end of a little-endian number comes last; a shift back spreads the sign. */
	memcpy(&n, from, size);
	return (int64_t)((uint64_t)n << (64 - 8 * size)) >> (64 - 8 * size);
}

static uint64_t uint_load(const void *from, size_t size)
{
	uint64_t n = 0;

	memcpy(&n, from, size);
	return n;
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers begin with their low end");

/* ---- writing ---- */

void handover_writer_done(struct handover_writer *w)
{
	buf_done(&w->data);
	free(w->fds);
	*w = (struct handover_writer)HANDOVER_WRITER_INIT;
}

static int writer_add(struct handover_writer *w, uint32_t tag, const void *data, size_t len)
{
	struct handover_tag head = { .tag = tag, .len = (uint32_t)len };
	int r;

	if (len > HANDOVER_MAX)
		return -ENOBUFS;
	r = buf_add(&w->data, &head, sizeof(head));
	if (r == 0 && len > 0)
		r = buf_add(&w->data, data, len);
	return r;
}

static int writer_add_number(struct handover_writer *w, uint32_t tag, uint64_t n)
{
	return n ? writer_add(w, tag, &n, sizeof(n)) : 0;
}

static int writer_add_fd(struct handover_writer *w, uint32_t tag, int fd)
{
	uint64_t number = (uint64_t)fd;

	if (fd < 0)
		return 0;
	if (w->n_fds == w->fds_size) {
		size_t size = w->fds_size ? w->fds_size * 2 : 64;
		int *more = realloc(w->fds, size * sizeof(*more));

		if (!more)
			return -ENOMEM;
		w->fds = more;
		w->fds_size = size;
	}
	w->fds[w->n_fds++] = fd;
	return writer_add(w, tag, &number, sizeof(number));
}

static int writer_add_strv(struct handover_writer *w, uint32_t tag, char *const *v)
{
	size_t at;
	int r;

	if (!v)
		return 0;
	r = handover_begin(w, tag, &at);
	for (; r == 0 && *v; v++)
		r = buf_add(&w->data, *v, strlen(*v) + 1);
	if (r == 0)
		handover_end(w, at);
	return r;
}

static int writer_add_field(struct handover_writer *w, const struct handover_field *f,
			    const void *at)
{
	const struct buf *buf = at;
	const char *s;

	switch (f->kind) {
	case HANDOVER_INT:
		return writer_add_number(w, f->tag, (uint64_t)int_load(at, f->size));
	case HANDOVER_UINT:
		return writer_add_number(w, f->tag, uint_load(at, f->size));
	case HANDOVER_TEXT:
		s = at;
		return *s ? writer_add(w, f->tag, s, strnlen(s, f->size)) : 0;
	case HANDOVER_BYTES:
		return writer_add(w, f->tag, at, f->size);
	case HANDOVER_STR:
		s = *(char *const *)at;
		return s ? writer_add(w, f->tag, s, strlen(s)) : 0;
	case HANDOVER_STRV:
		return writer_add_strv(w, f->tag, *(char *const *const *)at);
	case HANDOVER_BUF:
		return buf->len ? writer_add(w, f->tag, buf_data(buf), buf->len) : 0;
	case HANDOVER_FD:
		return writer_add_fd(w, f->tag, *(const int *)at);
	}
	return -EINVAL;
}

int handover_write(struct handover_writer *w, const struct handover_field *fields, size_t n,
		   const void *object)
{
	assert(n <= HANDOVER_FIELDS_MAX);
	for (size_t i = 0; i < n; i++) {
		int r = writer_add_field(w, &fields[i], (const uint8_t *)object + fields[i].offset);

		if (r < 0)
			return r;
	}
	return 0;
}

int handover_begin(struct handover_writer *w, uint32_t tag, size_t *ret_at)
{
	*ret_at = w->data.len;
	return writer_add(w, tag, NULL, 0);
}

void handover_end(struct handover_writer *w, size_t at)
{
	struct handover_tag head;
	uint8_t *place = w->data.base + w->data.head + at;

	memcpy(&head, place, sizeof(head));
	head.len = (uint32_t)(w->data.len - at - sizeof(head));
	memcpy(place, &head, sizeof(head));
}

int handover_seal(const struct handover_writer *w, struct error *err)
{
	struct handover_head head = { .magic = HANDOVER_MAGIC,
				      .version = HANDOVER_VERSION,
				      .len = w->data.len };
	_cleanup_fd_ int fd = memfd_create("nacre-keeper", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0)
		return error_set(err, -errno, "make a memfd for the state");
	r = fd_write_full(fd, &head, sizeof(head));
	if (r == 0)
		r = fd_write_full(fd, buf_data(&w->data), w->data.len);
	if (r < 0)
		return error_set(err, r, "write the state");
	if (fcntl(fd, F_ADD_SEALS, HANDOVER_SEALS) < 0)
		return error_set(err, -errno, "seal the state");
	return TAKE_FD(fd);
}

/* ---- reading ---- */

int handover_open(int fd, bool trial, struct buf *to, struct handover_reader *ret,
		  struct error *err)
{
	struct handover_head head;
	int r;

	if ((fcntl(fd, F_GET_SEALS) & HANDOVER_SEALS) != HANDOVER_SEALS)
		return error_refuse(err, ERROR_INVALID, "descriptor %d is no sealed state", fd);
	/* Its offset is where the one who wrote it stopped. */
	if (lseek(fd, 0, SEEK_SET) < 0)
		return error_set(err, -errno, "go to the beginning of the state");
	r = fd_read_all(fd, HANDOVER_MAX + sizeof(head), to);
	if (r < 0)
		return error_set(err, r, "read the state");
	if (to->len < sizeof(head))
		return error_refuse(err, ERROR_INVALID, "state: it is cut");
	memcpy(&head, buf_data(to), sizeof(head));
	if (head.magic != HANDOVER_MAGIC)
		return error_refuse(err, ERROR_INVALID, "state: it is something else");
	if (head.version != HANDOVER_VERSION)
		return error_refuse(err, ERROR_UNSUPPORTED,
				    "state: its form is number %u, this program reads %u",
				    head.version, HANDOVER_VERSION);
	if (head.len != to->len - sizeof(head))
		return error_refuse(err, ERROR_INVALID, "state: it is cut");
	*ret = (struct handover_reader){ .data = buf_data(to) + sizeof(head),
					 .len = to->len - sizeof(head),
					 .trial = trial };
	return 0;
}

static int read_uint(const struct handover_field *f, const uint8_t *data, size_t len, void *at)
{
	uint64_t most =
		f->size == sizeof(uint64_t) ? UINT64_MAX : ((uint64_t)1 << (8 * f->size)) - 1;
	uint64_t n;

	if (len != sizeof(n))
		return -EBADMSG;
	memcpy(&n, data, sizeof(n));
	if (n > most || (f->max && n > f->max))
		return -ERANGE;
	memcpy(at, &n, f->size);
	return 0;
}

static int read_int(const struct handover_field *f, const uint8_t *data, size_t len, void *at)
{
	int64_t n;

	if (len != sizeof(n))
		return -EBADMSG;
	memcpy(&n, data, sizeof(n));
	if (int_load(&n, f->size) != n)
		return -ERANGE;
	memcpy(at, &n, f->size);
	return 0;
}

/* A descriptor that is closed on exec was opened here, or taken from the state before. */
static int read_fd(const struct handover_reader *r, const uint8_t *data, size_t len, int *at)
{
	uint64_t n;
	int flags;

	if (len != sizeof(n))
		return -EBADMSG;
	memcpy(&n, data, sizeof(n));
	if (n < HANDOVER_FD_MIN || n > INT32_MAX)
		return -ERANGE;
	if (r->trial)
		return 0;
	flags = fcntl((int)n, F_GETFD);
	if (flags < 0 || (flags & FD_CLOEXEC))
		return -EBADF;
	*at = (int)n;
	return fd_set_cloexec(*at, true);
}

static int read_text(const struct handover_field *f, const uint8_t *data, size_t len, char *at)
{
	if (len >= f->size || memchr(data, '\0', len))
		return -EBADMSG;
	memcpy(at, data, len);
	at[len] = '\0';
	return 0;
}

static int read_str(const uint8_t *data, size_t len, char **at)
{
	char *s;

	if (memchr(data, '\0', len))
		return -EBADMSG;
	s = malloc(len + 1);
	if (!s)
		return -ENOMEM;
	memcpy(s, data, len);
	s[len] = '\0';
	free(*at);
	*at = s;
	return 0;
}

static int read_strv(const uint8_t *data, size_t len, char ***at)
{
	_cleanup_strv_ char **v = strv_copy(NULL);

	if (!v)
		return -ENOMEM;
	if (len && data[len - 1])
		return -EBADMSG;
	while (len) {
		const char *s = (const char *)data;
		size_t n = strlen(s) + 1;

		if (strv_add(&v, s) < 0)
			return -ENOMEM;
		data += n;
		len -= n;
	}
	strv_free(*at);
	*at = TAKE_PTR(v);
	return 0;
}

static int read_field(const struct handover_reader *r, const struct handover_field *f,
		      const uint8_t *data, size_t len, void *at)
{
	switch (f->kind) {
	case HANDOVER_INT:
		return read_int(f, data, len, at);
	case HANDOVER_UINT:
		return read_uint(f, data, len, at);
	case HANDOVER_TEXT:
		return read_text(f, data, len, at);
	case HANDOVER_BYTES:
		if (len != f->size)
			return -EBADMSG;
		memcpy(at, data, len);
		return 0;
	case HANDOVER_STR:
		return read_str(data, len, at);
	case HANDOVER_STRV:
		return read_strv(data, len, at);
	case HANDOVER_BUF:
		return buf_add(at, data, len);
	case HANDOVER_FD:
		return read_fd(r, data, len, at);
	}
	return -EINVAL;
}

static int reader_next(struct handover_reader *r, struct handover_tag *head, const uint8_t **data)
{
	if (r->len < sizeof(*head))
		return -EBADMSG;
	memcpy(head, r->data, sizeof(*head));
	if (head->len > r->len - sizeof(*head))
		return -EBADMSG;
	*data = r->data + sizeof(*head);
	r->data += sizeof(*head) + head->len;
	r->len -= sizeof(*head) + head->len;
	return 0;
}

int handover_read(struct handover_reader *r, const char *what, const struct handover_field *fields,
		  size_t n, void *object, handover_nested_fn nested, void *userdata,
		  struct error *err)
{
	bool seen[HANDOVER_FIELDS_MAX] = { false };

	assert(n <= HANDOVER_FIELDS_MAX);
	while (r->len) {
		struct handover_tag head;
		const uint8_t *data;
		size_t i = 0;
		int ret = reader_next(r, &head, &data);

		if (ret < 0)
			return error_set(err, ret, "state: %s is cut", what);
		while (i < n && fields[i].tag != head.tag)
			i++;
		if (i < n && seen[i])
			return error_refuse(err, ERROR_INVALID, "state: %s has two of %s", what,
					    fields[i].name);
		if (i < n) {
			seen[i] = true;
			ret = read_field(r, &fields[i], data, head.len,
					 (uint8_t *)object + fields[i].offset);
			if (ret < 0)
				return error_set(err, ret, "state: %s of %s", fields[i].name, what);
			continue;
		}
		ret = -ENOENT;
		if (head.tag >= HANDOVER_NESTED && nested)
			ret = nested(userdata, head.tag,
				     &(struct handover_reader){
					     .data = data, .len = head.len, .trial = r->trial },
				     err);
		if (ret == -ENOENT)
			return error_refuse(err, ERROR_UNSUPPORTED,
					    "state: %s has a field with number %u, which this "
					    "program does not know",
					    what, head.tag);
		if (ret < 0)
			return ret;
	}
	return 0;
}
