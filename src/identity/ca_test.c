/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/ca.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "identity/openssl.h"
#include "scratch.h"
#include "unit.h"

#define NOW UINT64_C(1800000000)
#define NODE "spiffe://nacre.local/node/n1"
#define GUEST NODE "/instance/0123456789abcdef"

static char dir_path[] = "/tmp/identity-ca-XXXXXX";

static int dir_begin(void)
{
	memcpy(dir_path + sizeof(dir_path) - 7, "XXXXXX", 6);
	if (!mkdtemp(dir_path))
		return -1;
	return open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void dir_end(int fd)
{
	(void)close(fd);
	CHECK_INT(scratch_remove(dir_path), 0);
}

static int opens(struct ca **ret, int dir_fd, const char *domain, uint64_t now, struct error *err)
{
	const struct ca_config config = {
		.dir_fd = dir_fd, .domain = domain, .node = "n1", .now = now
	};

	return ca_open(ret, &config, err);
}

static bool is_there(int dir_fd, const char *name)
{
	return faccessat(dir_fd, name, F_OK, 0) == 0;
}

static void begins(void)
{
	CHECK_INT(identity_begin(NULL), 0);
}

static void is_made_once(void)
{
	int dir_fd = dir_begin();
	_cleanup_(ca_freep) struct ca *first = NULL, *again = NULL;
	struct error err = ERROR_INIT;
	struct stat st = { 0 };

	CHECK_INT(opens(&first, dir_fd, "nacre.local", NOW, &err), 0);
	CHECK_STR(err.text, "");
	CHECK_INT(fstatat(dir_fd, "ca", &st, AT_SYMLINK_NOFOLLOW), 0);
	CHECK_INT(st.st_mode, S_IFREG | 0600);
	CHECK(!is_there(dir_fd, "ca.new"));
	CHECK_INT(opens(&again, dir_fd, "nacre.local", NOW + 86400, &err), 0);
	if (first && again) {
		size_t len = 0, len_again = 0;
		const uint8_t *was = ca_bundle(first, &len), *is = ca_bundle(again, &len_again);

		CHECK_INT(len, len_again);
		CHECK(memcmp(was, is, len) == 0);
	}
	dir_end(dir_fd);
}

static void an_interrupted_start_is_forgotten(void)
{
	int dir_fd = dir_begin();
	_cleanup_fd_ int fd = openat(dir_fd, "ca.new", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	_cleanup_(ca_freep) struct ca *ca = NULL;

	CHECK(fd >= 0 && write(fd, "nacre-ca-1\nhalf", 15) == 15);
	CHECK_INT(opens(&ca, dir_fd, "nacre.local", NOW, NULL), 0);
	CHECK(!is_there(dir_fd, "ca.new"));
	CHECK(is_there(dir_fd, "ca"));
	dir_end(dir_fd);
}

/* Changes the file in one way; it is refused with a sentence, and left alone. */
static void refused_after(void (*change)(int fd), const char *domain, uint64_t now)
{
	int dir_fd = dir_begin();
	_cleanup_(ca_freep) struct ca *ca = NULL, *again = NULL;
	_cleanup_fd_ int fd = -1;
	struct error err = ERROR_INIT;
	struct stat before = { 0 }, after = { 0 };
	int r = opens(&ca, dir_fd, "nacre.local", NOW, NULL);

	CHECK_INT(r, 0);
	if (r == 0) {
		fd = openat(dir_fd, "ca", O_RDWR | O_CLOEXEC);
		if (change)
			change(fd);
		CHECK_INT(fstat(fd, &before), 0);
		CHECK(opens(&again, dir_fd, domain, now, &err) < 0);
		CHECK_INT(err.kind, ERROR_PRECONDITION);
		CHECK(strstr(err.text, "certificate authority"));
		CHECK_INT(fstatat(dir_fd, "ca", &after, 0), 0);
		CHECK(before.st_ino == after.st_ino && before.st_size == after.st_size);
	}
	dir_end(dir_fd);
}

static void cut(int fd)
{
	CHECK_INT(ftruncate(fd, 60), 0);
}

static void empty(int fd)
{
	CHECK_INT(ftruncate(fd, 0), 0);
}

static void lengthen(int fd)
{
	CHECK_INT(ftruncate(fd, 8192), 0);
}

static void append(int fd)
{
	CHECK(lseek(fd, 0, SEEK_END) > 0 && write(fd, "x", 1) == 1);
}

static void other_key(int fd)
{
	CHECK(pwrite(fd, "another secret", 14, 12) == 14);
}

static void other_bit(int fd)
{
	struct stat st;
	char c = 0;

	CHECK(fstat(fd, &st) == 0 && pread(fd, &c, 1, st.st_size - 1) == 1);
	c ^= 1;
	CHECK(pwrite(fd, &c, 1, st.st_size - 1) == 1);
}

static void a_broken_file_is_refused(void)
{
	refused_after(cut, "nacre.local", NOW);
	refused_after(empty, "nacre.local", NOW);
	refused_after(lengthen, "nacre.local", NOW);
	refused_after(append, "nacre.local", NOW);
	refused_after(other_key, "nacre.local", NOW);
	refused_after(other_bit, "nacre.local", NOW);
}

static void readable_by_a_group(int fd)
{
	CHECK_INT(fchmod(fd, 0640), 0);
}

static void writable_by_others(int fd)
{
	CHECK_INT(fchmod(fd, 0602), 0);
}

static void a_key_that_others_can_read_is_refused(void)
{
	refused_after(readable_by_a_group, "nacre.local", NOW);
	refused_after(writable_by_others, "nacre.local", NOW);
}

static void of_another_user(int fd)
{
	CHECK_INT(fchown(fd, 65534, (gid_t)-1), 0);
}

static void a_key_of_another_user_is_refused(void)
{
	if (geteuid() == 0)
		refused_after(of_another_user, "nacre.local", NOW);
}

static void what_is_no_file_is_refused(void)
{
	int dir_fd = dir_begin();
	_cleanup_(ca_freep) struct ca *ca = NULL;
	struct error err = ERROR_INIT;

	CHECK_INT(mkfifoat(dir_fd, "ca", 0600), 0);
	CHECK(opens(&ca, dir_fd, "nacre.local", NOW, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK(strstr(err.text, "not a regular file"));
	dir_end(dir_fd);
}

static void not_made_at(uint64_t now)
{
	int dir_fd = dir_begin();
	_cleanup_(ca_freep) struct ca *ca = NULL;
	struct error err = ERROR_INIT;

	CHECK(opens(&ca, dir_fd, "nacre.local", now, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK(strstr(err.text, "set the clock"));
	CHECK(!is_there(dir_fd, "ca"));
	/* With the right time it is made. */
	CHECK_INT(opens(&ca, dir_fd, "nacre.local", NOW, NULL), 0);
	dir_end(dir_fd);
}

static void is_not_made_with_a_wrong_clock(void)
{
	not_made_at(0);
	not_made_at(60);
	not_made_at(UINT64_C(1704067199));
	not_made_at(UINT64_C(253402214400));
	not_made_at(UINT64_MAX);
}

static void another_domain_is_refused(void)
{
	refused_after(NULL, "other.local", NOW);
}

static void an_expired_ca_is_refused(void)
{
	refused_after(NULL, "nacre.local", NOW + CERT_CA_SECONDS + 1);
}

static int try_issue(const struct ca *ca, const char *id, uint64_t from, uint64_t until)
{
	static const uint8_t key[KEY_SIZE] = { 9 };
	const struct cert_request q = { key, id, from, until };
	struct cert c;

	return ca_issue(ca, &q, NOW, &c, NULL);
}

static void issues_for_its_own(void)
{
	int dir_fd = dir_begin();
	_cleanup_(ca_freep) struct ca *ca = NULL;

	CHECK_INT(opens(&ca, dir_fd, "nacre.local", NOW, NULL), 0);
	if (ca) {
		CHECK_INT(try_issue(ca, NODE, NOW, NOW + 60), 0);
		CHECK_INT(try_issue(ca, GUEST, NOW, NOW + 60), 0);
		CHECK_INT(try_issue(ca, GUEST, NOW, NOW + CERT_LEAF_SECONDS_MAX), 0);
		CHECK_INT(try_issue(ca, GUEST, NOW, NOW + CERT_LEAF_SECONDS_MAX + 1), -EINVAL);
		CHECK_INT(try_issue(ca, GUEST, NOW, NOW), -EINVAL);
		CHECK_INT(try_issue(ca, NODE "1", NOW, NOW + 60), -EACCES);
		CHECK_INT(try_issue(ca, "spiffe://nacre.local/node/n2", NOW, NOW + 60), -EACCES);
		CHECK_INT(try_issue(ca, "spiffe://other/node/n1", NOW, NOW + 60), -EACCES);
		CHECK_INT(try_issue(ca, NODE "/../n2", NOW, NOW + 60), -EINVAL);
		CHECK_INT(try_issue(ca, GUEST, NOW + CERT_CA_SECONDS, NOW + CERT_CA_SECONDS + 9),
			  -EACCES);
	}
	dir_end(dir_fd);
}

static void says_what_it_was_asked(void)
{
	int dir_fd = dir_begin();
	_cleanup_(ca_freep) struct ca *ca = NULL;
	_cleanup_key_ struct key *key = NULL, *other = NULL;
	uint8_t public[KEY_SIZE];
	struct cert_request q = { public, GUEST, NOW, NOW + 60 };
	struct cert a = { .len = 0 }, b = { .len = 0 };
	uint64_t from = 0, until = 0;

	CHECK_INT(opens(&ca, dir_fd, "nacre.local", NOW, NULL), 0);
	CHECK_INT(key_new(&key, NULL), 0);
	CHECK_INT(key_new(&other, NULL), 0);
	if (ca && key && other) {
		CHECK_INT(key_public(key, public, NULL), 0);
		CHECK_INT(ca_issue(ca, &q, NOW, &a, NULL), 0);
		CHECK_INT(ca_issue(ca, &q, NOW, &b, NULL), 0);
		/* The serial numbers differ, and with them the signatures. */
		CHECK(a.len != b.len || memcmp(a.der, b.der, a.len) != 0);
		CHECK_INT(cert_times(a.der, a.len, &from, &until, NULL), 0);
		CHECK(from == NOW && until == NOW + 60);
		CHECK_INT(cert_check_key(a.der, a.len, key, NULL), 0);
		CHECK_INT(cert_check_key(a.der, a.len, other, NULL), -EINVAL);
		CHECK_INT(cert_times(a.der, a.len - 1, &from, &until, NULL), -EINVAL);
	}
	dir_end(dir_fd);
}

static struct ca *changed(int dir_fd, enum ca_change change, struct error *err)
{
	const struct ca_config config = { .dir_fd = dir_fd,
					  .domain = "nacre.local",
					  .node = "n1",
					  .now = NOW + 10,
					  .change = change,
					  .prepare = 100 };
	struct ca *ca = NULL;

	return ca_open(&ca, &config, err) == 0 ? ca : NULL;
}

/* Whether the root at that place of the bundle has signed a certificate for the id at that time. */
static bool signs(const struct ca *ca, const char *id, uint64_t now, size_t place)
{
	static const uint8_t key[KEY_SIZE] = { 9 };
	const struct cert_request q = { key, id, now, now + 60 };
	size_t len = 0, at = 0;
	const uint8_t *all = ca_bundle(ca, &len);
	_cleanup_(X509_free_p) X509 *leaf = NULL, *root = NULL;
	const unsigned char *p;
	struct cert c;

	for (; place > 0; place--)
		at += cert_length(all + at, len - at);
	if (ca_issue(ca, &q, now, &c, NULL) < 0)
		return false;
	p = c.der;
	leaf = d2i_X509(NULL, &p, (long)c.len);
	p = all + at;
	root = d2i_X509(NULL, &p, (long)(len - at));
	return leaf && root && X509_verify(leaf, X509_get0_pubkey(root)) == 1;
}

static void two_divide_the_work(void)
{
	int dir_fd = dir_begin();
	_cleanup_(ca_freep) struct ca *first = NULL, *two = NULL, *again = NULL, *last = NULL;
	struct error err = ERROR_INIT;

	CHECK_INT(opens(&first, dir_fd, "nacre.local", NOW, NULL), 0);
	CHECK(!changed(dir_fd, CA_RETIRE, &err));
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	two = changed(dir_fd, CA_ROTATE, NULL);
	CHECK(!changed(dir_fd, CA_ROTATE, &err));
	again = changed(dir_fd, CA_KEEP, NULL);
	for (size_t i = 0; two && again && i < 2; i++) {
		const struct ca *ca = i == 0 ? two : again;

		CHECK(ca_rotated_at(ca) == NOW + 10 && ca_active_at(ca) == NOW + 110);
		CHECK(signs(ca, NODE, NOW + 200, 0));
		CHECK(signs(ca, "spiffe://nacre.local/user/alice", NOW + 11, 1));
		CHECK(signs(ca, GUEST, NOW + 109, 0));
		CHECK(signs(ca, GUEST, NOW + 110, 1));
	}
	last = changed(dir_fd, CA_RETIRE, NULL);
	if (two && last) {
		size_t len = 0, len_last = 0;
		const uint8_t *both = ca_bundle(two, &len), *one = ca_bundle(last, &len_last);

		CHECK(ca_rotated_at(last) == 0);
		CHECK(memcmp(both + len - len_last, one, len_last) == 0 && len > len_last);
		CHECK(signs(last, NODE, NOW + 200, 0));
	}
	dir_end(dir_fd);
}

UNIT_MAIN({ "begins", begins, true }, { "two_divide_the_work", two_divide_the_work },
	  { "is_made_once", is_made_once },
	  { "an_interrupted_start_is_forgotten", an_interrupted_start_is_forgotten },
	  { "a_broken_file_is_refused", a_broken_file_is_refused },
	  { "a_key_that_others_can_read_is_refused", a_key_that_others_can_read_is_refused },
	  { "a_key_of_another_user_is_refused", a_key_of_another_user_is_refused },
	  { "what_is_no_file_is_refused", what_is_no_file_is_refused },
	  { "is_not_made_with_a_wrong_clock", is_not_made_with_a_wrong_clock },
	  { "another_domain_is_refused", another_domain_is_refused },
	  { "an_expired_ca_is_refused", an_expired_ca_is_refused },
	  { "issues_for_its_own", issues_for_its_own },
	  { "says_what_it_was_asked", says_what_it_was_asked })
