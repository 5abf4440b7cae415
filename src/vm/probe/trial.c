/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/probe/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "vm/guest/guest_set.h"
#include "vm/probe/probe.h"
#include "wire/message/bootmsg.h"

/*
 * The guest's pid 1 is told to end before it is told who it is: it switches the machine off, and
 * that it has come so far is all that is to be shown. The machine does not outlive the daemon, so
 * that nothing has to be found again but the directory of its sockets.
 */

#define TRIAL_DIR "trial"
#define TRIAL_MEMORY_MIB 128

struct trial {
	struct trial_config config;
	char *guest;
	struct probe *probe; /* under way */
	struct probe_record known;
	char of[PROBE_OF_MAX + 1]; /* the set that the probe is of */
	nsec_t look_at;
};

/* ---- its directory ---- */

static void trial_remove_dir(int run_fd)
{
	_cleanup_fd_ int dir_fd =
		sysio_openat(run_fd, TRIAL_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	_cleanup_strv_ char **names = NULL;

	if (dir_fd < 0 || fd_list_dir(dir_fd, &names) < 0)
		return;
	for (size_t i = 0; names && names[i]; i++)
		(void)sysio_unlinkat(dir_fd, names[i], 0);
	(void)sysio_unlinkat(run_fd, TRIAL_DIR, AT_REMOVEDIR);
}

static int trial_make_dir(int run_fd, struct error *err)
{
	int fd;

	if (sysio_mkdirat(run_fd, TRIAL_DIR, 0700) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make the directory of a trial machine");
	fd = sysio_openat(run_fd, TRIAL_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	return fd < 0 ? error_set(err, -errno, "open the directory of a trial machine") : fd;
}

/* ---- one trial ---- */

static void trial_on_end(struct probe *p, const struct probe_record *record, void *owner)
{
	struct trial *t = owner;
	struct error err = ERROR_INIT;

	t->probe = probe_free(p);
	t->known = *record;
	t->look_at = clock_mono() + TRIAL_LOOK;
	trial_remove_dir(t->config.run_fd);
	log_info("hardware virtualization was tried",
		 LOG_STR("works", record->verdict == PROBE_WORKS ? "yes" : "no"),
		 LOG_STR("seen", record->text));
	if (probe_write(record, t->config.root_fd, t->of, &err) < 0)
		log_warn("what was seen cannot be recorded: it is tried again", LOG_ERR(&err));
}

static int trial_start(struct trial *t, const struct guest_set *set, struct error *err)
{
	static const struct bootmsg stop = { .type = BOOTMSG_STOP };
	const char *words[VM_WORDS_MAX + 1];
	struct guest_desc desc = set->info.desc;
	struct vm_spec spec;
	struct probe_trial trial = { .driver = t->config.driver,
				     .machine = &spec,
				     .port = BOOTMSG_PORT };
	_cleanup_(buf_done) struct buf frame = BUF_INIT;
	_cleanup_fd_ int dir_fd = -1;
	uint8_t *room;
	int r;

	r = buf_reserve(&frame, BOOTMSG_FRAME_MAX, &room);
	if (r < 0)
		return error_set(err, r, "try a machine");
	r = bootmsg_encode(&stop, room, err);
	if (r < 0)
		return r;
	trial.hello = room;
	trial.n_hello = (size_t)r;
	dir_fd = trial_make_dir(t->config.run_fd, err);
	if (dir_fd < 0)
		return dir_fd;
	guest_desc_words(&desc, words, VM_WORDS_MAX);
	vm_spec_init(&spec);
	spec.title = "trial";
	spec.accel = VM_ACCEL_HARDWARE;
	spec.memory_mib = MAX((unsigned)TRIAL_MEMORY_MIB, desc.memory_mib);
	spec.kernel_fd = set->kernel_fd;
	spec.initrd_fd = set->initrd_fd;
	spec.words = words;
	spec.dir_fd = dir_fd;
	spec.uid = t->config.uid;
	spec.gid = t->config.gid;
	spec.fleeting = true;
	return probe_start(&t->probe, t->config.loop, &trial, trial_on_end, t, err);
}

static void trial_begin(struct trial *t, const struct guest_set *set)
{
	struct error err = ERROR_INIT;

	if (t->config.driver->check(&err) < 0 || trial_start(t, set, &err) < 0) {
		trial_remove_dir(t->config.run_fd);
		(void)str_printf(t->known.text, sizeof(t->known.text),
				 "KVM opens; whether a guest comes up cannot be tried: %.180s",
				 error_text(&err));
		return;
	}
	(void)str_printf(t->known.text, sizeof(t->known.text),
			 "KVM opens; whether a guest comes up is being tried");
}

/* ---- what is known ---- */

/* A set is never changed, but one of its name may come in its place. */
static int trial_name_set(const struct guest_set *set, char of[PROBE_OF_MAX + 1])
{
	struct stat kernel, initrd;

	if (fstat(set->kernel_fd, &kernel) < 0 || fstat(set->initrd_fd, &initrd) < 0)
		return -errno;
	(void)str_printf(of, PROBE_OF_MAX + 1,
			 "%s, %" PRIu64 " and %" PRIu64 " bytes, %" PRId64 " and %" PRId64,
			 set->info.name, (uint64_t)kernel.st_size, (uint64_t)initrd.st_size,
			 (int64_t)kernel.st_mtim.tv_sec, (int64_t)initrd.st_mtim.tv_sec);
	str_clean(of);
	return 0;
}

static void trial_look(struct trial *t)
{
	struct guest_set set = GUEST_SET_INIT;
	struct error err = ERROR_INIT;
	int r;

	probe_look(&t->known);
	if (t->known.verdict != PROBE_UNTRIED)
		return;
	r = guest_set_open(&set, t->config.root_fd, t->guest, &err);
	if (r == 0)
		r = trial_name_set(&set, t->of);
	if (r < 0) {
		(void)str_printf(t->known.text, sizeof(t->known.text),
				 "KVM opens; no guest can be tried: %.180s", error_text(&err));
	} else {
		probe_read(&t->known, t->config.root_fd, t->of);
		if (t->known.verdict == PROBE_UNTRIED)
			trial_begin(t, &set);
	}
	guest_set_done(&set);
}

const struct probe_record *trial_ask(struct trial *t)
{
	nsec_t now = clock_mono();

	if (t->config.never || t->probe || now < t->look_at)
		return &t->known;
	t->look_at = now + TRIAL_LOOK;
	trial_look(t);
	return &t->known;
}

struct trial *trial_free(struct trial *t)
{
	if (!t)
		return NULL;
	if (t->probe) {
		t->probe = probe_free(t->probe);
		trial_remove_dir(t->config.run_fd);
	}
	free(t->guest);
	free(t);
	return NULL;
}

int trial_new(struct trial **ret, const struct trial_config *config, struct error *err)
{
	struct trial *t = calloc(1, sizeof(*t));

	if (t)
		t->guest = strdup(config->guest);
	if (!t || !t->guest) {
		(void)trial_free(t);
		return error_set(err, -ENOMEM, "the trial of hardware virtualization");
	}
	t->config = *config;
	t->config.guest = t->guest;
	if (config->never)
		(void)str_copy(t->known.text, sizeof(t->known.text),
			       "the configuration does without (vm.hardware)");
	trial_remove_dir(config->run_fd);
	*ret = t;
	return 0;
}
