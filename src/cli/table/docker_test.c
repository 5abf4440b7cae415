/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/docker.h"

#include "unit.h"

#include "base/text/str.h"
#include "cli/output/alloc.h"
#include "cli/table/command_groups.h"

/* The words of a line, parted by blanks, as the words of ours, likewise; or what is wrong. The
 * caller frees it. */
static char *translated(const char *line)
{
	_cleanup_(docker_line_done) struct docker_line ours = { .words = NULL };
	_cleanup_str_ char *copy = xstrdup(line);
	char *rest = copy, *words[32] = { NULL }, *all;
	struct error err = ERROR_INIT;
	int n = 0;

	while (n < 31 && (words[n] = strsep(&rest, " ")))
		n++;
	if (docker_line_init(&ours, &command_table, n, words, &err) < 0)
		return xstrdup(error_text(&err));
	all = xstrdup("");
	for (size_t i = 1; i < ours.n; i++) {
		_cleanup_str_ char *before = all;

		all = xformat("%s%s%s", before, i > 1 ? " " : "", ours.words[i]);
	}
	return all;
}

static void lines(void)
{
	static const struct {
		const char *theirs, *ours;
	} cases[] = {
		{ "docker", "" },
		{ "docker --version", "version" },
		{ "docker --socket /s ps -aq", "--socket=/s ps --all --quiet" },
		{ "docker -H unix:///s ps -q", "--socket /s ps --quiet" },
		{ "docker container ls -q", "ps --quiet" },
		{ "docker stats --no-stream web", "stats web" },
		{ "docker stats web", "stats web --watch" },
		{ "podman pod ps -q", "ps --kind pod --quiet" },
		{ "podman pod rm -f a", "rm --force a" },
		{ "docker run -itw/x --name=a -h b img -w /y",
		  "run --interactive --tty --cwd /x --name=a --hostname b img -w /y" },
		{ "docker run --rm=false -d=true img", "docker run: unknown option -=" },
		{ "docker run --rm=false --detach=true img", "run --detach img" },
		{ "docker run --net none --no-such=1 img", "run --network none --no-such=1 img" },
		{ "docker run -- img -d", "run -- img -d" },
		{ "docker exec -u 1 -w /x web ls -u", "exec --user=1 --cwd /x web ls -u" },
		{ "docker save -o f a b", "image export a b f" },
		{ "docker save a", "image export a -" },
		{ "docker load", "image import -" },
		{ "docker image load -i f", "image import f" },
		{ "docker images -aq", "image ls --quiet --short" },
		{ "docker inspect -f x web", "inspect --docker --format x web" },
		{ "docker image inspect a", "image inspect --docker a" },
		{ "docker create -l a=b img", "create --label=a=b img" },
		{ "docker secret create -l a=b n f",
		  "docker secret create: --label: a secret has no labels" },
		{ "docker login -u a -p b h", "login --username=a --password=b h" },
		{ "podman login --tls-verify=false h",
		  "podman login: --tls-verify: hosts.toml says how a registry is reached" },
		{ "podman logout -a", "logout --all" },
		{ "docker network create -d macvlan -o parent=eth0 x",
		  "network create --driver=macvlan --opt parent=eth0 x" },
		{ "docker frobnicate -x", "frobnicate -x" },
		{ "docker run --gpus all img",
		  "docker run: --gpus: nacre passes no graphics processor on" },
		{ "podman rmi -f x",
		  "podman rmi: --force: remove what is made of the image first" },
		{ "docker run --workdir", "docker run: option --workdir needs a value" },
		{ "docker run -w", "docker run: option --workdir needs a value" },
		{ "docker rm --force=2 x", "docker rm: option --force is true or false" },
		{ "docker swarm init",
		  "docker swarm: nacre is one node, without a cluster of its own" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_str_ char *ours = translated(cases[i].theirs);

		CHECK_STR(ours, cases[i].ours);
	}
}

static void tables_of_theirs(void)
{
	_cleanup_str_ char *ps = translated("docker ps"), *images = translated("podman images");

	CHECK(str_has_prefix(ps, "ps --format table {{.ID}}\\t{{.Image}}"));
	CHECK(str_has_prefix(images, "image ls --format table {{.Repository}}\\t"));
}

static void names(void)
{
	CHECK(docker_is_name("docker"));
	CHECK(docker_is_name("/usr/bin/podman"));
	CHECK(!docker_is_name("nacre"));
	CHECK(!docker_is_name("/docker/nacre"));
	CHECK(!docker_is_name("dockerd"));
	CHECK(!docker_is_name(NULL));
}

UNIT_MAIN({ "lines", lines }, { "tables_of_theirs", tables_of_theirs }, { "names", names })
