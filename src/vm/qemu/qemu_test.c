/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/qemu/qemu.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/macros.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "unit.h"
#include "vm/driver/tsc.h"
#include "vm/qemu/qemu_end.h"

static const struct qemu_place test_place = { .qmp_fd = 20, .firmware_fd = 21, .tsc_khz = 2400000 };

static void test_spec(struct vm_spec *s)
{
	vm_spec_init(s);
	s->title = "pod/web";
	s->memory_mib = 128;
	s->kernel_fd = 10;
	s->initrd_fd = 11;
	s->dir_fd = 5;
	s->uid = 60000;
	s->gid = 60000;
}

/* The words of a call, one a line; the caller frees them. */
static char *test_words(const struct qemu_call *call)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;

	for (char **w = call->argv; w && *w; w++)
		if (buf_addf(&b, "%s\n", *w) < 0)
			return NULL;
	return buf_take_str(&b);
}

static void check_call(const struct vm_spec *spec, const char *want, const int *fds, size_t n_fds)
{
	_cleanup_(qemu_call_done) struct qemu_call call = QEMU_CALL_INIT;
	_cleanup_str_ char *words = NULL;
	struct error err = ERROR_INIT;

	if (vm_spec_check(spec, &err) < 0 || qemu_call_make(&call, spec, &test_place, &err) < 0) {
		CHECK_STR(err.text, "");
		return;
	}
	words = test_words(&call);
	CHECK_STR(words, want);
	CHECK(call.n_fds == n_fds && memcmp(call.fds, fds, n_fds * sizeof(*fds)) == 0);
}

#define HEAD(machine)                                                                              \
	"/usr/bin/qemu-system-x86_64\n"                                                            \
	"-name\nguest=pod/web\n"                                                                   \
	"-nodefaults\n-no-user-config\n-no-reboot\n-display\nnone\n"                               \
	"-sandbox\non,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny\n"      \
	"-machine\nmicrovm,acpi=on,rtc=on,x-option-roms=off" machine "\n"

static void has_only_what_is_asked_for(void)
{
	struct vm_spec s;

	test_spec(&s);
	check_call(&s,
		   HEAD("") "-m\n128M\n-smp\n1\n-accel\ntcg,thread=multi,tb-size=128\n-cpu\nmax\n"
			    "-global\nvirtio-mmio.force-legacy=false\n"
			    "-bios\n/proc/self/fd/3\n-kernel\n/proc/self/fd/4\n"
			    "-initrd\n/proc/self/fd/5\n"
			    "-append\nreboot=t panic=-1 tsc_early_khz=2400000 tsc=reliable "
			    "no_timer_check mitigations=off\n"
			    "-chardev\nsocket,id=control,fd=6,server=on,wait=off\n"
			    "-mon\nchardev=control,mode=control\n"
			    "-device\npvpanic\n-device\nvirtio-rng-device\n",
		   (const int[]){ 21, 10, 11, 20 }, 4);
}

#define PC                                                                                         \
	"/usr/bin/qemu-system-x86_64\n"                                                            \
	"-name\nguest=pod/web\n"                                                                   \
	"-nodefaults\n-no-user-config\n-display\nnone\n"                                           \
	"-sandbox\non,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny\n"      \
	"-machine\nq35,graphics=off,smm=off,usb=off"
#define PC_CPU                                                                                     \
	"-m\n128M\n-smp\n1\n-accel\ntcg,thread=multi,tb-size=128\n-cpu\nmax\n"                     \
	"-global\napic-common.vapic=off\n"
#define FILE_NODE(n, ro)                                                                           \
	"-blockdev\n{\"driver\":\"file\",\"node-name\":\"file" n "\",\"filename\":\"/dev/fdset/" n \
	"\",\"locking\":\"off\",\"read-only\":" ro "}\n"

static void test_pc(struct vm_spec *s, enum vm_firmware firmware)
{
	test_spec(s);
	s->firmware = firmware;
	s->kernel_fd = s->initrd_fd = -1;
	s->reboots = true;
}

static void boots_a_disk_over_another(void)
{
	static const struct vm_disk base = { .fd = 41, .format = VM_DISK_QCOW2 };
	static const struct vm_disk disks[] = {
		{ .fd = 40, .format = VM_DISK_QCOW2, .writable = true, .base = &base },
		{ .fd = 42 },
	};
	const struct vm_nic nic = { .tap_fd = 30, .mac = { 2, 0x6e, 0x61, 0x63, 0x72, 2 } };
	struct vm_spec s;

	/* What is not to be written is not opened for it (V07). */
	test_pc(&s, VM_FIRMWARE_BIOS);
	s.disks = disks;
	s.n_disks = 2;
	s.nics = &nic;
	s.n_nics = 1;
	check_call(&s,
		   PC "\n" PC_CPU "-bios\n/proc/self/fd/3\n"
		      "-chardev\nsocket,id=control,fd=4,server=on,wait=off\n"
		      "-mon\nchardev=control,mode=control\n"
		      "-device\npvpanic\n-device\nvirtio-rng-pci\n"
		      "-add-fd\nfd=5,set=8\n" FILE_NODE(
			      "8",
			      "true") "-blockdev\n{\"driver\":\"qcow2\",\"node-name\":\"image8\","
				      "\"file\":"
				      "\"file8\",\"backing\":null,\"read-only\":true}\n"
				      "-add-fd\nfd=6,set=0\n" FILE_NODE(
					      "0",
					      "false") "-blockdev\n{\"driver\":\"qcow2\",\"node-"
						       "name\":\"image0\",\"file\":"
						       "\"file0\",\"backing\":\"image8\",\"read-"
						       "only\":false}\n"
						       "-device\nvirtio-blk-pci,drive=image0,"
						       "serial=disk0,bootindex=0\n"
						       "-add-fd\nfd=7,set=1\n" FILE_NODE(
							       "1",
							       "true") "-device\nvirtio-blk-pci,"
								       "drive=file1,serial=disk1\n"
								       "-netdev\ntap,id=nic0,fd=8\n"
								       "-device\nvirtio-net-pci,"
								       "netdev=nic0,mac=02:6e:61:"
								       "63:72:02,romfile=\n",
		   (const int[]){ 21, 20, 41, 40, 42, 30 }, 6);
}

static void has_flash_for_uefi(void)
{
	struct vm_spec s;

	test_pc(&s, VM_FIRMWARE_UEFI);
	s.vars_fd = 43;
	check_call(
		&s,
		PC
		",pflash0=file16,pflash1=file17\n" PC_CPU
		"-add-fd\nfd=3,set=16\n" FILE_NODE("16", "true") "-add-fd\nfd=4,set=17\n" FILE_NODE(
			"17", "false") "-chardev\nsocket,id=control,fd=5,server=on,wait=off\n"
				       "-mon\nchardev=control,mode=control\n"
				       "-device\npvpanic\n-device\nvirtio-rng-pci\n",
		(const int[]){ 21, 43, 20 }, 3);
}

/* Is there an argument of that text? */
static bool call_has(const struct qemu_call *call, const char *text)
{
	for (char **word = call->argv; *word; word++)
		if (strstr(*word, text))
			return true;
	return false;
}

static void counts_where_it_is_emulated_twice(void)
{
	_cleanup_(qemu_call_done) struct qemu_call call = QEMU_CALL_INIT;
	struct qemu_place place = test_place;
	struct vm_spec s;

	test_spec(&s);
	s.accel = VM_ACCEL_EMULATED_TWICE;
	place.tsc_khz = QEMU_COUNTED_KHZ;
	CHECK_INT(vm_spec_check(&s, NULL), 0);
	CHECK_INT(qemu_call_make(&call, &s, &place, NULL), 0);
	CHECK(call_has(&call, "shift=5,align=off,sleep=on"));
	CHECK(call_has(&call, "tcg,thread=single"));
	CHECK(call_has(&call, "tsc_early_khz=1000000 tsc=reliable"));
}

/* Off in all machines, but where it was asked for. */
static void has_nested_virtualization_on_request_only(void)
{
	_cleanup_(qemu_call_done) struct qemu_call plain = QEMU_CALL_INIT, nested = QEMU_CALL_INIT;
	struct vm_spec s;

	test_spec(&s);
	s.accel = VM_ACCEL_HARDWARE;
	CHECK_INT(qemu_call_make(&plain, &s, &test_place, NULL), 0);
	CHECK(call_has(&plain, "host,vmx=off,svm=off"));
	s.nested = true;
	CHECK_INT(qemu_call_make(&nested, &s, &test_place, NULL), 0);
	CHECK(call_has(&nested, "host") && !call_has(&nested, "host,vmx=off,svm=off"));
}

static void has_all_that_is_asked_for(void)
{
	static const char *const words[] = { "quiet", "a=b", NULL };
	const struct vm_nic nic = { .tap_fd = 30, .mac = { 2, 0x6e, 0x61, 0x63, 0x72, 2 } };
	const struct vm_port port = { .name = "org.nacre.boot", .fd = 31 };
	const struct vm_share share = { .tag = "volume0", .fd = 32 };
	const struct vm_disk disk = { .fd = 33, .format = VM_DISK_QCOW2, .writable = true };
	struct vm_spec s;

	test_spec(&s);
	s.accel = VM_ACCEL_HARDWARE;
	s.cpus = 2;
	s.console_fd = 34;
	s.words = words;
	s.nics = &nic;
	s.ports = &port;
	s.shares = &share;
	s.disks = &disk;
	s.n_nics = s.n_ports = s.n_shares = s.n_disks = 1;
	s.n_slots = 2;
	s.writable_slots = 2;
	check_call(
		&s,
		HEAD(",memory-backend=memory") "-m\n128M\n"
					       "-object\nmemory-backend-memfd,id=memory,size="
					       "128M,share=on\n"
					       "-smp\n2\n-accel\nkvm\n-cpu\nhost,vmx=off,svm=off\n"
					       "-global\nvirtio-mmio.force-legacy=false\n"
					       "-bios\n/proc/self/fd/3\n-kernel\n/proc/self/fd/"
					       "4\n-initrd\n/proc/self/fd/5\n"
					       "-append\nreboot=t panic=-1 console=ttyS0 quiet "
					       "a=b\n"
					       "-chardev\nsocket,id=control,fd=6,server=on,wait="
					       "off\n"
					       "-mon\nchardev=control,mode=control\n"
					       "-chardev\nsocket,id=console,fd=7\n-"
					       "serial\nchardev:console\n"
					       "-device\npvpanic\n-device\nvirtio-rng-device\n-"
					       "device\nvirtio-serial-device\n"
					       "-chardev\nsocket,id=port0,fd=8\n"
					       "-device\nvirtserialport,chardev=port0,name=org."
					       "nacre.boot\n"
					       "-add-fd\nfd=9,set=0\n"
					       "-blockdev\n{\"driver\":\"file\",\"node-name\":"
					       "\"file0\",\"filename\":\"/dev/fdset/0\","
					       "\"locking\":\"off\",\"read-only\":false}\n"
					       "-blockdev\n{\"driver\":\"qcow2\",\"node-name\":"
					       "\"image0\",\"file\":\"file0\","
					       "\"backing\":null,\"read-only\":false}\n"
					       "-device\nvirtio-blk-device,drive=image0,serial="
					       "disk0\n"
					       "-blockdev\ndriver=null-co,node-name=none0,size="
					       "1099511627776,read-zeroes=on\n"
					       "-blockdev\ndriver=raw,node-name=slot0,file="
					       "none0,read-only=on\n"
					       "-device\nvirtio-blk-device,drive=slot0,serial="
					       "slot0\n"
					       "-blockdev\ndriver=null-co,node-name=none1,size="
					       "1099511627776,read-zeroes=on\n"
					       "-blockdev\ndriver=raw,node-name=slot1,file="
					       "none1,read-only=off\n"
					       "-device\nvirtio-blk-device,drive=slot1,serial="
					       "slot1\n"
					       "-netdev\ntap,id=nic0,fd=10\n"
					       "-device\nvirtio-net-device,netdev=nic0,mac=02:"
					       "6e:61:63:72:02\n"
					       "-chardev\nsocket,id=share0,fd=11\n"
					       "-device\nvhost-user-fs-device,chardev=share0,"
					       "tag=volume0,queue-size=1024\n",
		(const int[]){ 21, 10, 11, 20, 34, 31, 33, 30, 32 }, 9);
}

/* The one that is saved, and one that goes on: the guest of the first is told its words, and the
 * second changes nothing of the file. */
static void has_the_memory_that_it_is_given(void)
{
	struct vm_spec s;

	test_spec(&s);
	s.memory_fd = 12;
	check_call(&s,
		   HEAD(",memory-backend=memory") "-m\n128M\n"
						  "-object\nmemory-backend-file,id=memory,size="
						  "128M,mem-path=/proc/self/fd/3,share=on\n"
						  "-smp\n1\n-accel\ntcg,thread=multi,tb-size=128\n-"
						  "cpu\n"
						  "max\n-global\nvirtio-mmio.force-"
						  "legacy=false\n"
						  "-bios\n/proc/self/fd/4\n-kernel\n/proc/self/fd/"
						  "5\n-initrd\n/proc/self/fd/6\n"
						  "-append\nreboot=t panic=-1 "
						  "tsc_early_khz=2400000 tsc=reliable "
						  "no_timer_check mitigations=off\n"
						  "-chardev\nsocket,id=control,fd=7,server=on,wait="
						  "off\n-mon\nchardev=control,mode=control\n"
						  "-device\npvpanic\n-device\nvirtio-rng-device\n",
		   (const int[]){ 12, 21, 10, 11, 20 }, 5);
	s.state_fd = 13;
	check_call(&s,
		   HEAD(",memory-backend=memory") "-m\n128M\n"
						  "-object\nmemory-backend-file,id=memory,size="
						  "128M,mem-path=/proc/self/fd/3,share=off\n"
						  "-smp\n1\n-accel\ntcg,thread=multi,tb-size=128\n-"
						  "cpu\n"
						  "max\n-global\nvirtio-mmio.force-"
						  "legacy=false\n"
						  "-bios\n/proc/self/fd/4\n-incoming\ndefer\n"
						  "-chardev\nsocket,id=control,fd=6,server=on,wait="
						  "off\n-mon\nchardev=control,mode=control\n"
						  "-device\npvpanic\n-device\nvirtio-rng-device\n",
		   (const int[]){ 12, 21, 10, 20 }, 4);
}

/* A title cannot add an option. */
static void quotes_the_title(void)
{
	_cleanup_(qemu_call_done) struct qemu_call call = QEMU_CALL_INIT;
	struct vm_spec s;

	test_spec(&s);
	s.title = "a,process=b,";
	if (qemu_call_make(&call, &s, &test_place, NULL) < 0) {
		CHECK(false);
		return;
	}
	CHECK_STR(call.argv[2], "guest=a,,process=b,,");
}

static void puts_disks_into_words(void)
{
	static const char want[] =
		"{\"driver\":\"file\",\"node-name\":\"file64\",\"filename\":\"/dev/fdset/64\","
		"\"locking\":\"off\",\"read-only\":true,"
		"\"options\":[{\"driver\":\"raw\",\"node-name\":\"slot0\","
		"\"file\":\"file64\",\"read-only\":true}],"
		"\"options\":[{\"driver\":\"raw\",\"node-name\":\"slot3\","
		"\"file\":\"none3\",\"read-only\":false}],"
		"\"driver\":\"host_device\",\"node-name\":\"file65\",\"filename\":\"/dev/fdset/"
		"65\","
		"\"locking\":\"off\",\"cache\":{\"direct\":true},\"read-only\":true}\n";
	const struct vm_disk disk = { .fd = 3, .format = VM_DISK_RAW };
	const struct vm_disk device = { .fd = 3, .format = VM_DISK_RAW, .device = true };
	_cleanup_str_ char *text = NULL;
	size_t len = 0;
	struct json j = { .compact = true };

	j.to = open_memstream(&text, &len);
	CHECK(j.to != NULL);
	if (!j.to)
		return;
	json_put_object(&j, NULL);
	qemu_put_file(&j, 64, &disk);
	qemu_put_slot(&j, 0, 64, &disk, false);
	qemu_put_slot(&j, 3, 0, NULL, true);
	qemu_put_file(&j, 65, &device);
	json_put_end(&j);
	CHECK(fclose(j.to) == 0);
	CHECK_STR(text, want);
}

/* 120 bytes: the end of a longer line, which is what counts of it. */
#define SIXTEEN "sixteen letters "
#define LONG_END SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN "and more"

static void tells_how_it_ended(void)
{
	static const struct {
		struct qemu_seen seen;
		const char *words;
		enum vm_end_cause cause;
		const char *text;
	} cases[] = {
		{ { .up = true, .reason = "guest-shutdown", .code = CLD_EXITED },
		  "",
		  VM_END_POWERED_OFF,
		  "the guest powered off" },
		{ { .up = true, .reason = "guest-reset", .code = CLD_EXITED },
		  "x",
		  VM_END_RESET,
		  "the guest asked for a reset" },
		{ { .up = true, .panicked = true, .code = CLD_KILLED, .status = 9 },
		  "",
		  VM_END_PANIC,
		  "the guest's kernel panicked" },
		{ { .up = true, .asked = true, .code = CLD_KILLED, .status = SIGKILL },
		  "",
		  VM_END_ASKED,
		  "the machine was ended" },
		{ { .up = true, .code = CLD_KILLED, .status = SIGKILL },
		  "",
		  VM_END_CRASHED,
		  "the machine's monitor died: it was killed by signal 9" },
		{ { .up = true, .code = CLD_EXITED, .status = 1 },
		  "a\nthe reason",
		  VM_END_CRASHED,
		  "the machine's monitor died: it ended with status 1 (\"the reason\")" },
		{ { .code = CLD_EXITED, .status = 1 },
		  "bad word",
		  VM_END_NOT_STARTED,
		  "the machine could not be started: it ended with status 1 (\"bad word\")" },
		{ { .code = CLD_EXITED, .status = 1 },
		  "before\nqemu-system-x86_64: -blockdev " LONG_END,
		  VM_END_NOT_STARTED,
		  "the machine could not be started: it ended with status 1 (\"" LONG_END "\")" },
		{ { .up = true, .reason = "host-signal", .code = CLD_EXITED },
		  "",
		  VM_END_CRASHED,
		  "the machine's monitor died: it ended for \"host-signal\"" },
		{ { .up = true, .broken = { .code = -5, .text = "it lies" }, .code = CLD_KILLED },
		  "",
		  VM_END_BROKEN,
		  "the machine's monitor broke the protocol and was killed: it lies" },
		{ { .failed = { .code = -2, .text = "no program" }, .code = CLD_EXITED },
		  "",
		  VM_END_NOT_STARTED,
		  "the machine could not be started: no program" },
		{ { .up = true },
		  "",
		  VM_END_UNSEEN,
		  "the machine's monitor ended while nobody saw it" },
	};
	struct vm_end end;
	const char *rest;
	bool quoted;
	size_t len;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		qemu_end_judge(&end, &cases[i].seen, cases[i].words);
		CHECK_INT(end.cause, cases[i].cause);
		CHECK_STR(end.text, cases[i].text);
		quoted = strstr(end.text, "(\"") != NULL;
		rest = quoted ? strrchr(cases[i].words, '\n') : NULL;
		len = !quoted ? strlen(cases[i].words) : rest ? (size_t)(rest - cases[i].words) : 0;
		CHECK_INT(strlen(end.words), len);
		CHECK(strncmp(end.words, cases[i].words, len) == 0);
	}
}

static void measures_the_counter_once(void)
{
	unsigned khz = tsc_khz();

	CHECK(khz > 100000 && khz < 20000000);
	CHECK(tsc_khz() == khz);
}

UNIT_MAIN({ "has only what is asked for", has_only_what_is_asked_for },
	  { "boots a disk over another", boots_a_disk_over_another },
	  { "has flash for UEFI", has_flash_for_uefi },
	  { "has all that is asked for", has_all_that_is_asked_for },
	  { "has the memory that it is given", has_the_memory_that_it_is_given },
	  { "counts where it is emulated twice", counts_where_it_is_emulated_twice },
	  { "has nested virtualization on request only",
	    has_nested_virtualization_on_request_only },
	  { "quotes the title", quotes_the_title },
	  { "puts disks into words", puts_disks_into_words },
	  { "tells how it ended", tells_how_it_ended },
	  { "measures the counter once", measures_the_counter_once })
