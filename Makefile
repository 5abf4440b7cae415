# SPDX-License-Identifier: Apache-2.0
# The front door; meson does the work.
#
#   make                the program and its helpers, in build/
#   make install        PREFIX=/usr/local, DESTDIR= for packagers
#   make bench          ratios against the bare kernel; fails where a target is missed
#   make lint           arrows, headers, style, comments of the API, clang-format, clang-tidy, cppcheck
#   make analyze        clang's analyser over all sources (half an hour; make lint does without it)
#   make format         lays the code out
#   make api            renews doc/api.txt, what server reflection tells of the API
#   make conformance    other people's clients against a private daemon; six of the workloads below
#   make kubernetes     a kubelet on a node, with pods from files and with a kube-apiserver (or NAMES="logs streams"); builds both once (ten minutes)
#   make workloads      thirty kinds of Debian's software (or NAMES="nginx redis") in pods: work, graceful end, data (half an hour); KIND=vm: in microVMs
#   make guest          what needs cgroup v2 alone, in a virtual machine with Debian's kernel (part of ./check)
#   make guest-kernel   the small kernel for guests, from Debian's linux-source, in build/guest-kernel (ten minutes)
#   make sweep          each failpoint, store write and failing call there is (some of them are part of ./check)
#   make mutants        shows that no weakened wall (tests/mutants/*.patch, or NAMES=...) passes the tests
#   make load           1,000 calls a second over mutual TLS for 15 minutes, while all certificates are replaced
#   make races          what a workload does at the same moment, 20,000 times each
#   make nightly        ./check five times, in which no test may be flaky; then what is too slow for ./check: tsan, failmalloc, races, load, kubernetes
#   make sanitizer      build/asan: clang, ASan and UBSan, test hooks
#   make tsan           build/tsan: clang, ThreadSanitizer: unit tests, and modules of a whole daemon that work with threads, without a report
#   make failmalloc     unit tests with each allocation failing in turn, in build/asan
#   make fuzz           every fuzz target (or TARGETS=...) for FUZZ_SECONDS=60, in build/libfuzzer
#   make coverage       the branches that the tests take, by area, in build/coverage; fails below the goal
#   make clang          build/clang: the programs by the second compiler (it makes the tests in build/asan)
#   make clean
#
# ./demo and ./check install what they need; `make` only says what is missing.

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
PYTHON = /usr/bin/python3
MESON_FLAGS ?=
JOBS ?= $(shell nproc)

bindir = $(PREFIX)/bin
libexecdir = $(PREFIX)/libexec/nacre
unitdir = $(PREFIX)/lib/systemd/system
mandir = $(PREFIX)/share/man/man1
sources = $(shell find src libexec tests bench fuzz -name '*.[ch]' 2>/dev/null)

.PHONY: all
all: $(BUILD)/build.ninja
	@tools/layers
	ninja -C $(BUILD)
	@tools/layers --objects $(BUILD)
	@tools/headers --if-changed $(BUILD)

$(BUILD)/build.ninja:
	@tools/install --check build
	meson setup $(MESON_FLAGS) $(BUILD)

.PHONY: sanitizer
sanitizer: $(BUILD)/asan/build.ninja
	@tools/layers
	ninja -C $(BUILD)/asan

$(BUILD)/asan/build.ninja:
	@tools/install --check build test
	CC=clang meson setup -Dstatic=false -Dfaults=true -Db_sanitize=address,undefined -Db_lundef=false \
		--buildtype=debugoptimized $(BUILD)/asan

# Modules in which daemons, keepers and helpers work with threads: the worker pool, prepared namespaces, the log pump, streams of unpacking.
# (Not daemon/test_volumes.py: the strict sandbox of the reader of a volume's archive leaves the sanitizer no mmap(2).)
TSAN_MODULES ?= daemon/test_attach.py,daemon/test_cell.py,daemon/test_logs.py,daemon/test_pod.py,daemon/test_pull.py,$\
	daemon/test_spare.py,daemon/test_upgrade_output.py,image/test_store.py,network/test_pods.py

.PHONY: tsan
tsan: $(BUILD)/tsan/build.ninja
	@tools/layers
	ninja -C $(BUILD)/tsan
	tests/run -v --no-flaky -j $(JOBS) --only '$(BUILD)/tsan=$(TSAN_MODULES)' $(BUILD)/tsan

$(BUILD)/tsan/build.ninja:
	@tools/install --check build test
	CC=clang meson setup -Dstatic=false -Dfaults=true -Db_sanitize=thread -Db_lundef=false \
		--buildtype=debugoptimized $(BUILD)/tsan

.PHONY: failmalloc
failmalloc: sanitizer
	tests/run -v --no-flaky -j $(JOBS) --failmalloc $(BUILD)/asan

.PHONY: races
races: all
	NACRE_RACES=20000 tests/run --no-retry --timeout 14400 --module-timeout 14400 -k test_walls_races -k test_mount_races -k isolate-spawn_race $(BUILD)
	NACRE_RACES=20000 tests/conformance/callers.py $(BUILD) races

# All five are run, whatever fails. Two tests at a time for each processor, as in ./check.
# A quarter of an hour of calls over mutual TLS while every certificate is replaced.
.PHONY: load
load: all
	NACRE_LOAD=900 tests/run -v --no-retry --timeout 1800 --module-timeout 1800 -k test_identity_load $(BUILD)

.PHONY: nightly
nightly: all clang sanitizer
	tools/guest-kernel $(BUILD)
	@failed=; for i in 1 2 3 4 5; do \
		echo "run $$i of 5"; \
		NACRE_RACES=500 tests/run --no-flaky -j $$((2 * $(JOBS))) --guest $(BUILD) $(BUILD) $(BUILD)/asan \
			--failmalloc $(BUILD)/asan=5 || failed="$$failed $$i"; \
	done; \
	if [ -n "$$failed" ]; then echo "tests failed or were flaky in run$$failed"; exit 1; fi
	$(MAKE) tsan failmalloc races load kubernetes

.PHONY: mutants
mutants:
	@tools/install --check build test
	tests/mutants/run $(NAMES)

.PHONY: sweep
sweep: all sanitizer
	@tools/guest-kernel $(BUILD) || echo "Without a guest's kernel no machine is killed."
	NACRE_SWEEP=1 tests/run -v --whole --no-flaky --timeout 600 --module-timeout 14400 -j $(JOBS) -k test_killed -k test_faults \
		--parts 'daemon/test_faults.py=40' --parts 'daemon/test_killed*.py=8' \
		--parts 'vm/test_killed*.py=4' $(BUILD)/asan

.PHONY: fuzz
fuzz: $(BUILD)/libfuzzer/build.ninja
	ninja -C $(BUILD)/libfuzzer $(patsubst fuzz/%.c,fuzz/fuzz-%,$(filter-out fuzz/replay.c,$(wildcard fuzz/*.c)))
	fuzz/run $(BUILD)/libfuzzer $(TARGETS)

$(BUILD)/libfuzzer/build.ninja:
	@tools/install --check build test
	CC=clang meson setup -Dfuzz=true -Dstatic=false -Dfaults=true -Db_sanitize=address,undefined -Db_lundef=false \
		--buildtype=debugoptimized $(BUILD)/libfuzzer

.PHONY: coverage
coverage: $(BUILD)/coverage/build.ninja
	ninja -C $(BUILD)/coverage
	rm -rf $(BUILD)/coverage/raw && mkdir -m 1777 $(BUILD)/coverage/raw
	$(BUILD)/coverage/nacre version && chmod 0666 $(BUILD)/coverage/raw/*
	tests/run -v -j $(JOBS) --except 'daemon/test_static.py' --failmalloc $(BUILD)/coverage=5 $(BUILD)/coverage; \
		tests=$$?; tools/coverage $(BUILD)/coverage && exit $$tests

$(BUILD)/coverage/build.ninja:
	@tools/install --check build test coverage
	CC=clang meson setup -Dcoverage=true -Dstatic=false -Dfaults=true --buildtype=debugoptimized $(BUILD)/coverage

# The generated header is for those who read the tests (make lint).
.PHONY: clang
clang: $(BUILD)/clang/build.ninja
	ninja -C $(BUILD)/clang nacre nacre-oci $(addprefix libexec/nacre/nacre-,fetch transfer gate svid) src/rpc/rpc_test.pb-c.h

$(BUILD)/clang/build.ninja:
	@tools/install --check build test
	CC=clang meson setup $(BUILD)/clang

.PHONY: install
install: all
	install -d $(DESTDIR)$(bindir) $(DESTDIR)$(libexecdir) $(DESTDIR)$(unitdir) $(DESTDIR)$(mandir) \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	install -m 0755 $(BUILD)/nacre $(DESTDIR)$(bindir)/nacre
	ln -sfn nacre $(DESTDIR)$(bindir)/nacre-oci
	find $(BUILD)/libexec/nacre -maxdepth 1 -type f -perm -u+x -exec install -m 0755 {} $(DESTDIR)$(libexecdir)/ ';'
	sed 's,@bindir@,$(bindir),' dist/nacre.service.in >$(DESTDIR)$(unitdir)/nacre.service
	chmod 0644 $(DESTDIR)$(unitdir)/nacre.service
	test -e $(DESTDIR)/etc/nacre/config.yaml || install -D -m 0644 dist/config.yaml $(DESTDIR)/etc/nacre/config.yaml
	$(BUILD)/nacre man >$(DESTDIR)$(mandir)/nacre.1
	$(BUILD)/nacre oci man >$(DESTDIR)$(mandir)/nacre-oci.1
	$(BUILD)/nacre completion bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/nacre
	$(BUILD)/nacre completion zsh >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_nacre
	$(BUILD)/nacre completion fish >$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/nacre.fish

.PHONY: bench
bench: all
	$(PYTHON) bench/run; status=$$?; $(PYTHON) bench/network || status=$$?; $(PYTHON) bench/images || status=$$?; $(PYTHON) bench/vm && exit $$status

.PHONY: lint
lint: all clang
	@tools/install --check lint
	tools/layers
	tools/headers $(BUILD)/clang
	tools/style
	tools/apidoc
	clang-format --dry-run -Werror $(sources)
	cppcheck --quiet --enable=warning,performance,portability --inline-suppr --suppressions-list=tools/cppcheck.allow \
		--error-exitcode=1 --std=c11 -D__linux__ -I src -j $(JOBS) src libexec
	tools/tidy $(BUILD)/clang

.PHONY: analyze
analyze: clang
	@tools/install --check lint
	tools/tidy --analyze $(BUILD)/clang

.PHONY: format
format:
	@command -v clang-format >/dev/null || { echo "clang-format is missing; install it with: tools/install lint"; exit 1; }
	clang-format -i $(sources)

.PHONY: api
api: all
	$(PYTHON) tools/apidump $(BUILD)

.PHONY: conformance
conformance: all
	tests/conformance/run $(BUILD)
	tests/conformance/callers.py $(BUILD)
	tests/workloads/run --together $(BUILD) nginx postgresql redis sshd busybox zombies

.PHONY: kubernetes
kubernetes: all
	tests/kubernetes/run $(BUILD) $(NAMES)

.PHONY: workloads
workloads: all
	@tools/install --check build workloads
	tests/workloads/run $(if $(KIND),--kind $(KIND)) $(WORKLOADS_FLAGS) $(BUILD) $(NAMES)

.PHONY: guest
guest: all
	@tools/install --check build guest
	tools/guest-kernel $(BUILD)
	tests/run -v --guest $(BUILD)

.PHONY: guest-kernel
guest-kernel:
	@tools/install --check build guest-kernel
	JOBS=$(JOBS) tools/build-guest-kernel $(BUILD)

.PHONY: clean
clean:
	rm -rf $(BUILD)
