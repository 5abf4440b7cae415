/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/macros.h"
#include "base/text/json.h"
#include "base/text/str.h"
#include "isolate/seccomp/seccomp_profile.h"
#include "isolate/user/cap_name.h"
#include "oci/checkpoint/criu.h"
#include "oci/cmd/handlers.h"
#include "oci/config/convert.h"
#include "oci/config/words.h"
#include "wire/document/oci_config.h"

static void features_words(struct json *j, const char *key, const struct word *list)
{
	json_put_array(j, key);
	for (; list->name; list++)
		json_put_string(j, NULL, list->name);
	json_put_end(j);
}

static void features_strings(struct json *j, const char *key, const char *const *list)
{
	json_put_array(j, key);
	for (; *list; list++)
		json_put_string(j, NULL, *list);
	json_put_end(j);
}

static void features_enabled(struct json *j, const char *key, bool enabled)
{
	json_put_object(j, key);
	json_put_bool(j, "enabled", enabled);
	json_put_end(j);
}

static void features_capabilities(struct json *j)
{
	char word[32];

	json_put_array(j, "capabilities");
	for (unsigned cap = 0; cap_name(cap); cap++) {
		(void)str_printf(word, sizeof(word), "CAP_%s", cap_name(cap));
		json_put_string(j, NULL, word);
	}
	json_put_end(j);
}

static void features_linux(struct json *j)
{
	static const char *const namespaces[] = { "cgroup", "ipc",  "mount", "network", "pid",
						  "time",   "user", "uts",   NULL };

	json_put_object(j, "linux");
	features_strings(j, "namespaces", namespaces);
	features_capabilities(j);
	json_put_object(j, "cgroup");
	json_put_bool(j, "v1", false);
	json_put_bool(j, "v2", true);
	json_put_bool(j, "systemd", false);
	json_put_bool(j, "systemdUser", false);
	json_put_bool(j, "rdma", true);
	json_put_end(j);
	json_put_object(j, "seccomp");
	json_put_bool(j, "enabled", true);
	features_strings(j, "actions", seccomp_profile_actions);
	features_strings(j, "operators", seccomp_profile_ops);
	features_strings(j, "archs", seccomp_profile_archs);
	features_strings(j, "knownFlags", seccomp_profile_flags);
	features_strings(j, "supportedFlags", seccomp_profile_flags);
	json_put_end(j);
	features_enabled(j, "apparmor", true);
	features_enabled(j, "selinux", true);
	features_enabled(j, "intelRdt", false);
	json_put_object(j, "memoryPolicy");
	features_words(j, "modes", words_mem_modes);
	features_words(j, "flags", words_mem_flags);
	json_put_end(j);
	json_put_object(j, "mountExtensions");
	features_enabled(j, "idmap", true);
	json_put_end(j);
	features_enabled(j, "netDevices", false);
	json_put_end(j);
}

int oci_features(const struct oci *oci, const struct args *args, struct error *err)
{
	struct json j = JSON_INIT(stdout);
	struct criu criu = CRIU_INIT;

	(void)oci;
	(void)args;
	(void)err;
	json_put_object(&j, NULL);
	json_put_string(&j, "ociVersionMin", "1.0.0");
	json_put_string(&j, "ociVersionMax", "1.3.0");
	json_put_array(&j, "hooks");
	for (int i = 0; i < OCI_HOOK_KIND_COUNT; i++)
		json_put_string(&j, NULL, oci_hook_names[i]);
	json_put_end(&j);
	json_put_array(&j, "mountOptions");
	for (size_t i = 0; convert_mount_option(i); i++)
		json_put_string(&j, NULL, convert_mount_option(i));
	json_put_end(&j);
	features_linux(&j);
	json_put_object(&j, "annotations");
	json_put_string(&j, "org.nacre.version", NACRE_VERSION);
	/* The name under which callers look for it. */
	json_put_string(&j, "org.opencontainers.runc.checkpoint.enabled",
			criu_find(&criu) == 0 ? "true" : "false");
	json_put_end(&j);
	json_put_array(&j, "potentiallyUnsafeConfigAnnotations");
	json_put_end(&j);
	json_put_end(&j);
	return EXIT_SUCCESS;
}
