/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The programs of the stand-in images for critest, one by each name: "nginx", "httpd" and "hostnet"
 * serve a page, "nonewprivs" says whose rights it has, "pause" waits. Static, without anything
 * around it.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static const char page[] = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 8\r\n"
			   "Connection: close\r\n\r\nstandin\n";

static void answer(int fd)
{
	char request[4096];

	if (read(fd, request, sizeof(request)) > 0)
		(void)!write(fd, page, sizeof(page) - 1);
	(void)shutdown(fd, SHUT_WR);
	/* What a client leaves open is its own. */
	while (read(fd, request, sizeof(request)) > 0)
		;
	_exit(0);
}

static int serve(const char *name, unsigned short port)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int on = 1, fd = socket(AF_INET6, SOCK_STREAM, 0);

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 64) < 0) {
		perror("standin: listen");
		return 1;
	}
	(void)signal(SIGCHLD, SIG_IGN);
	(void)printf("%s: serving port %d\n", name, port);
	(void)fflush(stdout);
	for (;;) {
		int client = accept(fd, NULL, NULL);

		if (client >= 0 && fork() == 0)
			answer(client);
		(void)close(client);
	}
}

/* As a master of nginx calls itself, and with its file. */
static int serve_nginx(char **argv, unsigned short port)
{
	static char title[] = "nginx: master process nginx -g daemon off;";
	FILE *pid;

	if (strcmp(argv[0], title) != 0) {
		char *again[] = { title, NULL };

		(void)execv("/proc/self/exe", again);
		return 1;
	}
	(void)prctl(PR_SET_NAME, "nginx");
	pid = fopen("/var/run/nginx.pid", "w");
	if (pid) {
		(void)fprintf(pid, "%d\n", (int)getpid());
		(void)fclose(pid);
	}
	return serve("nginx", port);
}

static void end(int sig)
{
	(void)sig;
	_exit(0);
}

int main(int argc, char **argv)
{
	const char *port = getenv("STANDIN_PORT");
	const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];

	(void)argc;
	(void)signal(SIGTERM, end);
	(void)signal(SIGINT, end);
	(void)signal(SIGQUIT, end);
	if (strncmp(argv[0], "nginx:", 6) == 0 || strcmp(name, "nginx") == 0)
		return serve_nginx(argv, (unsigned short)(port ? atoi(port) : 80));
	if (strcmp(name, "httpd") == 0)
		return serve("httpd", 80);
	if (strcmp(name, "nonewprivs") == 0) {
		(void)printf("Effective uid: %d\n", (int)geteuid());
		return 0;
	}
	for (;;)
		(void)pause();
}
