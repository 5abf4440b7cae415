/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/command_groups.h"

#include "base/text/str.h"
#include "cli/cmd/handlers.h"

static const struct arg_option options_import[] = {
	{ "name", 'n', "NAME", "the name to give it, else those that the archive carries" },
	{ "ref", 0, "REF", "of several images, the one that FILE names so" },
	{ "root", 0, NULL, "FILE is the tar of a root file system" },
	{ "cmd", 0, "COMMAND", "what it runs: a line for its shell, or [\"words\", \"in JSON\"]" },
	{ "entrypoint", 0, "COMMAND", "what it runs in front of that, likewise" },
	{ "env", 'e', "NAME=VALUE", "set a variable" },
	{ "workdir", 0, "DIR", "where it runs" },
	{ "user", 0, "USER[:GROUP]", "as whom" },
	{ "label", 'l', "NAME=VALUE", "set a label" },
	{ "platform", 0, "ARCH[/VARIANT]", "what it is for, else this machine" },
	OPTION_END,
};

static const struct arg_option options_export[] = {
	{ "format", 0, "FORM", "oci-dir, oci-archive or docker-archive" },
	OPTION_END,
};

static const struct arg_option options_ls[] = {
	{ "digests", 0, NULL,
	  "show the digest that its registry has it by, and where it came from, too" },
	{ "dangling", 0, NULL, "only images without a name" },
	{ "unused", 0, NULL, "only images that no container is made of" },
	{ "pinned", 0, NULL, "only pinned images" },
	{ "quiet", 'q', NULL, "ids alone" },
	{ "short", 0, NULL, "their first digits" },
	{ "no-trunc", 0, NULL, "whole ids in templates" },
	{ "format", 'F', "TEXT", "a line of this form: '{id} {size}', or '{{.ID}} {{.Size}}'" },
	OPTION_END,
};

static const struct arg_option options_inspect[] = {
	{ "format", 'F', "TEXT", "a line of this form, such as '{config.architecture}'" },
	{ "referrers", 0, NULL, "also what refers to it in its registry, which is asked" },
	{ "docker", 0, NULL, "in the form of docker, which its templates are about" },
	OPTION_END,
};

static const struct arg_option options_prune[] = {
	{ "all", 'a', NULL, "also images that have a name and that no container is made of" },
	{ "older-than", 0, "TIME", "only what came so long ago: 24h, 10m" },
	{ "dry-run", 'n', NULL, "only tell what would go" },
	OPTION_END,
};

#define AUTHFILE_OPTION                                                                            \
	{                                                                                          \
		"authfile", 0, "FILE", "the file of credentials"                                   \
	}

#define CREDS_OPTION                                                                               \
	{                                                                                          \
		"creds", 0, "USER:PASSWORD", "of the registry; seen by all users of this machine"  \
	}

static const struct arg_option options_push[] = {
	{ "quiet", 'q', NULL, "tell nothing of how far it is" },
	AUTHFILE_OPTION,
	CREDS_OPTION,
	OPTION_END,
};

static const struct arg_option options_pull[] = {
	{ "all-tags", 'a', NULL, "all images of a repository, IMAGE without a tag" },
	{ "quiet", 'q', NULL, "tell nothing of how far it is" },
	{ "platform", 0, "ARCH[/VARIANT]", "of the image, else that of this machine" },
	AUTHFILE_OPTION,
	CREDS_OPTION,
	OPTION_END,
};

static const struct arg_option options_copy[] = {
	{ "platform", 0, "ARCH[/VARIANT]", "of an image for several, that one alone" },
	{ "referrers", 0, NULL, "also what refers to it: signatures, SBOMs, provenance" },
	OPTION_END,
};

static const struct arg_option options_login[] = {
	{ "username", 'u', "NAME", "as whom, else it is asked for" },
	{ "password", 'p', "TEXT", "seen by all users of this machine" },
	{ "password-stdin", 0, NULL, "the password is standard input" },
	{ "get-login", 0, NULL, "only print as whom one is logged in" },
	AUTHFILE_OPTION,
	OPTION_END,
};

static const struct arg_option options_logout[] = {
	{ "all", 'a', NULL, "of all registries" },
	AUTHFILE_OPTION,
	OPTION_END,
};

static const struct arg_option options_verify[] = {
	{ "key", 'k', "FILE", "a public key in PEM that must have signed, in place of the policy" },
	OPTION_END,
};

static const struct command image_commands[] = {
	{
		.name = "image import",
		.operands = "FILE",
		.summary = "take an image into the node's store",
		.help = "FILE is an OCI layout (a tar, or a directory) or the tar of `docker "
			"save`, read by the\n"
			"daemon; \"-\" is standard input. Prints the names of each image.\n"
			"\n"
			"A name that is a tag alone there, as skopeo and umoci write it, comes "
			"behind the name of\n"
			"FILE: `1.27` of nginx.tar, or of a directory nginx, is nginx:1.27. REF is "
			"the\n"
			"org.opencontainers.image.ref.name of an image, or one of its RepoTags. "
			"What is no image\n"
			"(SBOMs, signatures) is passed over.\n"
			"\n"
			"With --root it is the tar of a root file system (also compressed), of "
			"which an image of\n"
			"one layer is made, as `docker import` does; the options behind --root "
			"are for that. The\n"
			"same tar with the same options is the same image. Without a name its id "
			"is printed.\n"
			"\n"
			"    docker save busybox -o busybox.tar\n"
			"    nacre image import busybox.tar\n"
			"    nacre image import --ref 1.27 --name nginx ./layout\n"
			"    tar -C rootfs -c . | nacre image import --root --name tools "
			"--cmd '[\"/bin/sh\"]' -",
		.options = options_import,
		.n_min = 1,
		.n_max = 1,
		.run = cmd_image_import,
	},
	{
		.name = "image export",
		.operands = "IMAGE… FILE|DIR",
		.summary = "write images to a file or a directory",
		.help = "FORM is `docker-archive` where nothing else is said: an OCI layout as a "
			"tar, with the\n"
			"manifest.json of `docker save`, so that Docker, podman, skopeo, umoci and "
			"`nacre image\n"
			"import` take it. `oci-archive` is the layout alone, `oci-dir` the same as "
			"a directory,\n"
			"which is meant too where DIR is there or ends with a slash; it must be "
			"empty. A FILE\n"
			"that is there is replaced when the new one is whole; \"-\" is standard "
			"output.\n"
			"\n"
			"An image that is named by a name has that name there, else all that it "
			"has. Layers are\n"
			"written as they came, and verified on the way; a manifest in Docker's "
			"form becomes one\n"
			"in OCI's, with another digest.\n"
			"\n"
			"    nacre image export busybox nginx images.tar && docker load -i "
			"images.tar\n"
			"    nacre image export busybox - | ssh other docker load\n"
			"    nacre image export busybox ./layout/ && umoci unpack --image "
			"layout:latest bundle",
		.options = options_export,
		.n_min = 2,
		.n_max = CLI_OPERANDS_ANY,
		.run = cmd_image_export,
	},
	{
		.name = "image pull",
		.operands = "IMAGE",
		.summary = "load an image from its registry",
		.help = "IMAGE is a reference: HOST/PATH with a tag, a digest or both. Layers are "
			"unpacked while\n"
			"they are loaded; what the node has is not loaded again, and a pull that "
			"was cut is gone\n"
			"on with. Prints the id of the image.\n"
			"\n"
			"Credentials are those of $REGISTRY_AUTH_FILE, "
			"$DOCKER_CONFIG/config.json,\n"
			"$XDG_RUNTIME_DIR/containers/auth.json or ~/.docker/config.json, the first "
			"that has an\n"
			"entry for the registry or names a program that has one (credHelpers, "
			"credsStore:\n"
			"docker-credential-NAME, run as you). Mirrors and certificates are the "
			"node's:\n"
			"/etc/nacre/certs.d/HOST/hosts.toml (see images.registry_dirs in its "
			"configuration).\n"
			"\n"
			"    nacre image pull docker.io/library/nginx:1.27\n"
			"    nacre image pull --platform arm64/v8 quay.io/a/b@sha256:…",
		.options = options_pull,
		.n_min = 1,
		.n_max = 1,
		.run = cmd_image_pull,
	},
	{
		.name = "image push",
		.operands = "IMAGE [DEST]",
		.summary = "send an image to a registry",
		.help = "To DEST, HOST/PATH with a tag, or without it to where the name of IMAGE "
			"says. The\n"
			"image goes as it came, and has the same digest there, which is printed: "
			"of "
			"an image for\n"
			"several platforms that is the one for this machine. What the registry has "
			"is not sent\n"
			"again, an upload that was cut is gone on with, and the manifest comes "
			"last. Credentials\n"
			"as those of `nacre image pull`.\n"
			"\n"
			"    nacre image push registry.local/tools/busybox:stable\n"
			"    nacre image push busybox registry.local/tools/busybox",
		.options = options_push,
		.n_min = 1,
		.n_max = 2,
		.run = cmd_image_push,
	},
	{
		.name = "login",
		.operands = "[REGISTRY]",
		.summary = "keep credentials for a registry",
		.help = "REGISTRY is its host, with a port if it has one, else docker.io. It is "
			"asked "
			"whether it\n"
			"takes the credentials (how it is reached, hosts.toml says), and then they "
			"are kept as\n"
			"docker and podman keep them, readable for you alone: where your files "
			"have "
			"some for it\n"
			"already, else in $REGISTRY_AUTH_FILE, $DOCKER_CONFIG/config.json or\n"
			"~/.docker/config.json. Where such a file names a credential helper, that "
			"keeps them.\n"
			"What is not given is asked for at the terminal; without --username what "
			"is kept\n"
			"already is tried first.\n"
			"\n"
			"    nacre login registry.local:5000\n"
			"    nacre login -u ci --password-stdin quay.io < token",
		.options = options_login,
		.n_max = 1,
		.run = cmd_login,
	},
	{
		.name = "logout",
		.operands = "[REGISTRY]",
		.summary = "forget the credentials for a registry",
		.help = "In all files that are read for it, or the one of --authfile. Helpers are "
			"told to forget\n"
			"theirs. The registry is not asked.\n"
			"\n"
			"    nacre logout registry.local:5000\n"
			"    nacre logout --all",
		.options = options_logout,
		.n_max = 1,
		.alone = true,
		.run = cmd_logout,
	},
	{
		.name = "image copy",
		.operands = "SOURCE DEST",
		.summary = "copy an image from registry to registry",
		.help = "Both are HOST/PATH with a tag (else `latest`) or a digest. The node "
			"keeps "
			"nothing of it:\n"
			"what goes there is what came, byte by byte, verified on the way, an image "
			"for several\n"
			"platforms with all of them. Blobs that DEST has are not sent; within one "
			"registry\n"
			"it is asked to take them over from SOURCE. A copy that was cut goes on "
			"where it was\n"
			"when it is asked for again. Signatures are wanted as the node's policy "
			"says of\n"
			"SOURCE. Prints the digest. Credentials, for both, as those of `nacre "
			"image "
			"pull`.\n"
			"\n"
			"    nacre image copy docker.io/library/nginx:1.27 "
			"registry.local/nginx:1.27\n"
			"    nacre image copy --referrers quay.io/a/signed:1 "
			"registry.local/signed:1\n"
			"    nacre image copy --platform arm64 quay.io/a/b:1 registry.local/b:1",
		.options = options_copy,
		.n_min = 2,
		.n_max = 2,
		.run = cmd_image_copy,
	},
	{
		.name = "image tags",
		.operands = "REPOSITORY",
		.summary = "list the tags that a registry has of a repository",
		.help = "In the registry's order, all its pages; at most 20000. Credentials as "
			"those "
			"of\n"
			"`nacre image pull`.\n"
			"\n"
			"    nacre image tags quay.io/prometheus/busybox",
		.n_min = 1,
		.n_max = 1,
		.run = cmd_image_tags,
	},
	{
		.name = "image verify",
		.operands = "IMAGE",
		.summary = "ask whether an image may be had, and who signed it",
		.help = "By the node's policy of signatures as it is now, of the digest that its "
			"image had when\n"
			"it was pulled by that name; where it has none by that name, of the one "
			"that the\n"
			"registry has. No layer is loaded. What was said at the pull is in `nacre "
			"image\n"
			"inspect`. With --key that key must have signed the digest for this "
			"repository, as\n"
			"`cosign sign --key` does, and the policy does not count. Exit status: 0 "
			"it may be had,\n"
			"1 it may not (the reason is on standard error), 125 it could not be "
			"asked.\n"
			"\n"
			"The policy is a file of the node, /etc/nacre/policy.json (see "
			"images.policy in its\n"
			"configuration; where it is missing all is accepted), in the form of\n"
			"containers-policy.json(5). The longest scope that fits counts: a "
			"reference, a\n"
			"repository, the beginning of its path, a host, *.DOMAIN, \"\" for all, "
			"else the default.\n"
			"All of its rules must be kept: insecureAcceptAnything, reject, "
			"sigstoreSigned. What it\n"
			"does not know or cannot read refuses every image.\n"
			"\n"
			"    {\"default\": [{\"type\": \"reject\"}],\n"
			"     \"transports\": {\"docker\": {\n"
			"       \"docker.io/library\": [{\"type\": \"insecureAcceptAnything\"}],\n"
			"       \"quay.io/a\": [{\"type\": \"sigstoreSigned\", \"keyPath\": "
			"\"/etc/nacre/a.pub\",\n"
			"         \"signedIdentity\": {\"type\": \"matchRepository\"}}]}}}\n"
			"\n"
			"    nacre image verify quay.io/a/b:1\n"
			"    nacre image verify --key a.pub quay.io/a/b@sha256:…",
		.options = options_verify,
		.n_min = 1,
		.n_max = 1,
		.run = cmd_image_verify,
	},
	{
		.name = "image ls",
		.operands = "[PREFIX]",
		.summary = "list the images of the node",
		.help = "One line for each name; an image that lost its names shows \"-\". With "
			"PREFIX "
			"only those\n"
			"with a name that begins so. SIZE is that of what was downloaded; `nacre "
			"image "
			"df` tells\n"
			"what images take here.\n"
			"\n"
			"    nacre image ls --unused quay.io/\n"
			"    nacre image ls -o json | jq '.[] | select(.pinned) | .names[]'",
		.options = options_ls,
		.n_max = 1,
		.run = cmd_image_ls,
	},
	{
		.name = "image rm",
		.operands = "IMAGE…",
		.summary = "remove images by name, digest or id",
		.help = "A name goes, and with the last one the image; a digest or an id takes the "
			"image "
			"with all\n"
			"its names. One that a workload still uses is not removed, nor one that is "
			"pinned.",
		.n_min = 1,
		.n_max = CLI_OPERANDS_ANY,
		.run = cmd_image_rm,
	},
	{
		.name = "image inspect",
		.operands = "IMAGE…",
		.summary = "tell all about images, as JSON",
		.help = "Under \"image\" what the node knows of it; \"manifest\" and \"config\" "
			"are its documents:\n"
			"layers and their digests, platform, environment, labels. Its \"verdicts\" "
			"are what the\n"
			"policy of signatures said at each pull, and who had signed; `nacre image "
			"verify` asks\n"
			"anew. With --referrers also \"referrers\": what says in the registry that "
			"it is about\n"
			"this image, or the index that it is of: SBOMs, provenance, signatures, "
			"with what\n"
			"its list says of them. The registry is asked each time.\n"
			"\n"
			"    nacre image inspect --format '{config.os}/{config.architecture}' "
			"busybox\n"
			"    nacre image inspect --referrers --format '{referrers.list}' busybox",
		.options = options_inspect,
		.n_min = 1,
		.n_max = CLI_OPERANDS_ANY,
		.run = cmd_image_inspect,
	},
	{
		.name = "image history",
		.operands = "IMAGE",
		.summary = "tell how an image was made, step by step",
		.help = "As its configuration has it, the oldest step first. SIZE is that of the "
			"layer as it\n"
			"came; \"-\" where the step made none.",
		.n_min = 1,
		.n_max = 1,
		.run = cmd_image_history,
	},
	{
		.name = "image df",
		.operands = "",
		.summary = "tell what images take on the disk",
		.help = "As du(1) counts it. OWN is what no other image needs, SHARED what others "
			"need too.\n"
			"Beside the images: what containers have written over them, unfinished "
			"downloads, and\n"
			"records.",
		.run = cmd_image_df,
	},
	{
		.name = "image prune",
		.operands = "",
		.summary = "remove images that nobody uses",
		.help = "Images without a name, or with --all every image, where no container is "
			"made "
			"of it (one\n"
			"that has ended counts until it is removed) and it is not pinned. With "
			"them "
			"unfinished\n"
			"downloads go that nobody goes on with, and files that belong to nothing.\n"
			"\n"
			"    nacre image prune --all --older-than 24h --dry-run",
		.options = options_prune,
		.run = cmd_image_prune,
	},
	{
		.name = "image tag",
		.operands = "IMAGE NAME",
		.summary = "give an image one more name",
		.help = "Another image that has the name loses it.\n"
			"\n"
			"    nacre image tag busybox registry.local/tools/busybox:stable",
		.n_min = 2,
		.n_max = 2,
		.run = cmd_image_tag,
	},
	{
		.name = "image pin",
		.operands = "IMAGE…",
		.summary = "keep images from being removed or pruned",
		.help = "Until `nacre image unpin`. Its names can be moved and taken away, but for "
			"the "
			"last one.",
		.n_min = 1,
		.n_max = CLI_OPERANDS_ANY,
		.run = cmd_image_pin,
	},
	{
		.name = "image unpin",
		.operands = "IMAGE…",
		.summary = "let images be removed and pruned again",
		.help = "Nothing is removed by that.",
		.n_min = 1,
		.n_max = CLI_OPERANDS_ANY,
		.run = cmd_image_unpin,
	},
};

const struct command_group command_group_image = { image_commands, ARRAY_SIZE(image_commands) };
