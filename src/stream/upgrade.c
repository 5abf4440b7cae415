/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/upgrade.h"

#include <string.h>
#include <strings.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "stream/channels.h"

#define PORTS_MAX ((CHANNEL_MAX + 1) / 2) /* two channels each */

struct protocol {
	const char *name;
	bool is_websocket, is_forward;
	enum upgrade_kind kind;
	unsigned version;
	bool is_base64;
};

static const struct protocol protocols[] = {
	{ "v4.channel.k8s.io", false, false, UPGRADE_SPDY, 4, false },
	{ "v3.channel.k8s.io", false, false, UPGRADE_SPDY, 3, false },
	{ "v2.channel.k8s.io", false, false, UPGRADE_SPDY, 2, false },
	{ "channel.k8s.io", false, false, UPGRADE_SPDY, 1, false },
	{ "portforward.k8s.io", false, true, UPGRADE_SPDY, 0, false },
	{ "v5.channel.k8s.io", true, false, UPGRADE_CHANNELS, 5, false },
	{ "v4.channel.k8s.io", true, false, UPGRADE_CHANNELS, 4, false },
	{ "v4.base64.channel.k8s.io", true, false, UPGRADE_CHANNELS, 4, true },
	{ "channel.k8s.io", true, false, UPGRADE_CHANNELS, 1, false },
	{ "base64.channel.k8s.io", true, false, UPGRADE_CHANNELS, 1, true },
	{ "", true, false, UPGRADE_CHANNELS, 1, false },
	{ "SPDY/3.1+portforward.k8s.io", true, true, UPGRADE_TUNNEL, 0, false },
	{ "v4.channel.k8s.io", true, true, UPGRADE_CHANNELS, 0, false },
	{ "v4.base64.channel.k8s.io", true, true, UPGRADE_CHANNELS, 0, true },
	{ "", true, true, UPGRADE_CHANNELS, 0, false },
};

const struct refusal refusal_of_request = {
	.status = "400 Bad Request",
	.fields = "",
	.words = "this is no request that can be answered here",
};
const struct refusal refusal_of_size = {
	.status = "431 Request Header Fields Too Large",
	.fields = "",
	.words = "the head of the request is longer than 16384 bytes, or its path than 255",
};
const struct refusal refusal_of_path = {
	.status = "404 Not Found",
	.fields = "",
	.words = "there is no such URL; it is good for one connection within a minute",
};
const struct refusal refusal_of_number = {
	.status = "503 Service Unavailable",
	.fields = "",
	.words = "1024 connections are in use, the limit; the URL is good for its minute all the "
		 "same",
};
static const struct refusal refusal_of_method = {
	.status = "405 Method Not Allowed",
	.fields = "Allow: GET, POST\r\n",
	.words = "GET or POST",
};
static const struct refusal refusal_of_upgrade = {
	.status = "400 Bad Request",
	.fields = "",
	.words = "the request does not ask for an upgrade to SPDY/3.1 or to a WebSocket",
};
static const struct refusal refusal_of_websocket = {
	.status = "400 Bad Request",
	.fields = "",
	.words = "a WebSocket begins with GET of HTTP/1.1",
};
static const struct refusal refusal_of_version = {
	.status = "426 Upgrade Required",
	.fields = "Sec-WebSocket-Version: 13\r\n",
	.words = "Sec-WebSocket-Version is not 13",
};
static const struct refusal refusal_of_key = {
	.status = "400 Bad Request",
	.fields = "",
	.words = "Sec-WebSocket-Key is not 16 bytes in base64",
};
static const struct refusal refusal_of_ports = {
	.status = "400 Bad Request",
	.fields = "",
	.words = "PortForward has to name 1 to 32 ports for this protocol; "
		 "SPDY/3.1+portforward.k8s.io needs none",
};

/* ---- the request ---- */

static const struct refusal *upgrade_check_websocket(const struct head *h, struct upgrade *ret)
{
	if (!str_eq(h->method, "GET") || h->is_old)
		return &refusal_of_websocket;
	if (!str_eq(h->websocket_version, "13"))
		return &refusal_of_version;
	return websocket_accept(h->websocket_key, ret->accept) < 0 ? &refusal_of_key : NULL;
}

const struct refusal *upgrade_check(const struct head *h, struct upgrade *ret)
{
	*ret = (struct upgrade){ .kind = UPGRADE_SPDY };
	if (!str_eq(h->method, "GET") && !str_eq(h->method, "POST"))
		return &refusal_of_method;
	if (h->is_upgrade && strcasecmp(h->upgrade, "websocket") == 0) {
		ret->is_websocket = true;
		return upgrade_check_websocket(h, ret);
	}
	if (h->is_upgrade && strcasecmp(h->upgrade, "SPDY/3.1") == 0)
		return NULL;
	return &refusal_of_upgrade;
}

/* ---- the protocol ---- */

static const struct protocol *protocol_find(const char *name, bool is_websocket, bool is_forward)
{
	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++)
		if (protocols[i].is_websocket == is_websocket &&
		    protocols[i].is_forward == is_forward && str_eq(protocols[i].name, name))
			return &protocols[i];
	return NULL;
}

#define SPDY_COMMANDS "v4.channel.k8s.io, v3.channel.k8s.io, v2.channel.k8s.io, channel.k8s.io"
#define SPDY_COMMANDS_WORDS "X-Stream-Protocol-Version names none of " SPDY_COMMANDS
#define SPDY_PORTS "portforward.k8s.io"
#define SPDY_PORTS_WORDS "X-Stream-Protocol-Version does not name " SPDY_PORTS
#define ACCEPTED(protocols) "X-Accepted-Stream-Protocol-Versions: " protocols "\r\n"
#define WEBSOCKET_COMMANDS                                                                         \
	"Sec-WebSocket-Protocol names none of v5.channel.k8s.io, v4.channel.k8s.io, "              \
	"v4.base64.channel.k8s.io, channel.k8s.io, base64.channel.k8s.io"
#define WEBSOCKET_PORTS                                                                            \
	"Sec-WebSocket-Protocol names none of SPDY/3.1+portforward.k8s.io, v4.channel.k8s.io, "    \
	"v4.base64.channel.k8s.io"

/* [is_websocket][is_forward][the client named one] */
static const struct refusal refusals_of_protocol[2][2][2] = {
	{ { { "400 Bad Request", "", SPDY_COMMANDS_WORDS },
	    { "403 Forbidden", ACCEPTED(SPDY_COMMANDS), SPDY_COMMANDS_WORDS } },
	  { { "400 Bad Request", "", SPDY_PORTS_WORDS },
	    { "403 Forbidden", ACCEPTED(SPDY_PORTS), SPDY_PORTS_WORDS } } },
	{ { { "400 Bad Request", "", WEBSOCKET_COMMANDS },
	    { "403 Forbidden", "", WEBSOCKET_COMMANDS } },
	  { { "400 Bad Request", "", WEBSOCKET_PORTS },
	    { "403 Forbidden", "", WEBSOCKET_PORTS } } },
};

const struct refusal *upgrade_choose(const struct head *h, bool is_forward, size_t n_ports,
				     struct upgrade *u)
{
	const struct head_words *named = u->is_websocket ? &h->subprotocols : &h->protocols;
	const struct protocol *p = NULL;

	for (size_t i = 0; i < named->n && !p; i++)
		p = protocol_find(named->words[i], u->is_websocket, is_forward);
	if (named->n == 0 && !named->is_cut)
		p = protocol_find("", u->is_websocket, is_forward);
	if (!p)
		return &refusals_of_protocol[u->is_websocket][is_forward]
					    [named->n > 0 || named->is_cut];
	if (is_forward && p->kind == UPGRADE_CHANNELS && (n_ports < 1 || n_ports > PORTS_MAX))
		return &refusal_of_ports;
	u->kind = p->kind;
	u->version = p->version;
	u->is_base64 = p->is_base64;
	u->protocol = p->name;
	return NULL;
}

/* ---- answers ---- */

int upgrade_put(const struct upgrade *u, struct buf *to)
{
	if (!u->is_websocket)
		return buf_addf(to,
				"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
				"Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: %s\r\n\r\n",
				u->protocol);
	return buf_addf(to,
			"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
			"Upgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n%s%s%s\r\n",
			u->accept, *u->protocol ? "Sec-WebSocket-Protocol: " : "", u->protocol,
			*u->protocol ? "\r\n" : "");
}

int refusal_put(const struct refusal *r, struct buf *to)
{
	return buf_addf(to,
			"HTTP/1.1 %s\r\n%sContent-Type: text/plain; charset=utf-8\r\n"
			"Content-Length: %zu\r\nConnection: close\r\n\r\n%s\n",
			r->status, r->fields, strlen(r->words) + 1, r->words);
}
