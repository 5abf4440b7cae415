/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/vsphere.h"

#include <errno.h>
#include <string.h>

#include "base/text/str.h"
#include "unit.h"

#define SOAP(body)                                                                                 \
	"<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/' "                         \
	"xmlns:i='http://www.w3.org/2001/XMLSchema-instance'><s:Body>" body                        \
	"</s:Body></s:Envelope>"

static const struct xml_node *parse(struct arena *a, const char *text)
{
	struct error err = ERROR_INIT;
	struct xml_node *root = NULL;

	CHECK_INT(xml_parse(&root, a, text, strlen(text), &err), 0);
	return root;
}

static void the_spec_of_a_clone(void)
{
	static const char words[] = "verb=create\0number=1\0token=nacre-1-2\0cpus=2\0memory=4096"
				    "\0user-data=H4sIxx\0tag=nacre-cluster=c<&\0tag=Name=web";
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	struct error err = ERROR_INIT;
	const char *text;
	struct cloudmsg q;

	CHECK_INT(cloudmsg_read(&q, words, sizeof(words)), 0);
	CHECK_INT(vsphere_put_clone(&b, &q, "resgroup-1", "", &err), 0);
	text = (const char *)buf_data(&b);
	CHECK(strstr(text, "<location><pool type=\"ResourcePool\">resgroup-1</pool></location>"));
	CHECK(strstr(text, "<numCPUs>2</numCPUs>"));
	CHECK(strstr(text, "<memoryMB>4096</memoryMB>"));
	CHECK(strstr(text, "<key>nacre.cluster</key><value xsi:type=\"xsd:string\">c&lt;&amp;<"));
	CHECK(strstr(text, "<key>nacre.Name</key>"));
	CHECK(strstr(text, "<key>nacre.token</key><value xsi:type=\"xsd:string\">nacre-1-2<"));
	CHECK(strstr(text, "gzip+base64"));
}

static void judge(int status, const char *text, enum error_kind kind, const char *code, bool again,
		  bool unknown)
{
	_cleanup_(arena_done) struct arena a = ARENA_INIT;
	const struct xml_node *response;
	struct error err = ERROR_INIT;
	struct cloud_fault f;
	bool got;

	CHECK(vsphere_judge(status, "Login", parse(&a, text), &response, &f, &got, &err) < 0);
	CHECK_INT((int)err.kind, (int)kind);
	CHECK_STR(f.code, code);
	CHECK(got == again && f.unknown == unknown);
}

static void what_answers_mean(void)
{
	_cleanup_(arena_done) struct arena a = ARENA_INIT;
	const struct xml_node *response;
	struct error err = ERROR_INIT;
	struct cloud_fault f;
	bool again;

	judge(500,
	      SOAP("<s:Fault><faultcode/><faultstring>no</faultstring><detail>"
		   "<NotAuthenticatedFault xmlns='urn:vim25' i:type='NotAuthenticated'/>"
		   "</detail></s:Fault>"),
	      ERROR_UNAVAILABLE, "NotAuthenticated", false, false);
	judge(500,
	      SOAP("<s:Fault><faultstring>no</faultstring><detail>"
		   "<v:NoPermissionFault xmlns:v='urn:vim25'><v:privilegeId>VM.X</v:privilegeId>"
		   "</v:NoPermissionFault></detail></s:Fault>"),
	      ERROR_PRECONDITION, "NoPermission", false, false);
	/* The same of another namespace is nothing of vCenter's. */
	judge(500, SOAP("<s:Fault><detail><NoPermissionFault xmlns='urn:x'/></detail></s:Fault>"),
	      ERROR_UNAVAILABLE, "", true, true);
	judge(200, SOAP("<LoginResponse xmlns='urn:x'/>"), ERROR_UNAVAILABLE, "", true, true);
	judge(200, SOAP("<OtherResponse xmlns='urn:vim25'/>"), ERROR_UNAVAILABLE, "", true, true);
	judge(503, "<html/>", ERROR_UNAVAILABLE, "", true, true);
	judge(429, "<html/>", ERROR_UNAVAILABLE, "", true, false);
	CHECK_INT(vsphere_judge(200, "Login", parse(&a, SOAP("<LoginResponse xmlns='urn:vim25'/>")),
				&response, &f, &again, &err),
		  0);
	CHECK(vsphere_judge(200, "Login", NULL, &response, &f, &again, &err) < 0 && f.unknown);
}

static const char *const machine =
	"<objects xmlns='urn:vim25' xmlns:i='http://www.w3.org/2001/XMLSchema-instance'>"
	"<obj type='VirtualMachine'>vm-7</obj><propSet><name>config.instanceUuid</name>"
	"<val>%s</val></propSet><propSet><name>runtime.powerState</name><val>poweredOn</val>"
	"</propSet><propSet><name>config.extraConfig</name><val>"
	"<OptionValue><key>nacre.token</key><value>nacre-1-2</value></OptionValue>"
	"<OptionValue><key>nacre.cluster</key><value>c</value></OptionValue>"
	"<OptionValue><key>nacre.Name</key><value>web</value></OptionValue>"
	"<OptionValue><key>guestinfo.nacre.address</key><value>10.2.0.7</value></OptionValue></"
	"val></propSet>"
	"</objects>";

static void a_machine(void)
{
	_cleanup_(arena_done) struct arena a = ARENA_INIT;
	char uuid[VSPHERE_UUID_SIZE], other[VSPHERE_UUID_SIZE], text[2048];
	struct error err = ERROR_INIT;
	struct cloud_machine m;

	vsphere_uuid("c", "nacre-1-2", uuid);
	vsphere_uuid("c", "nacre-1-3", other);
	CHECK(!str_eq(uuid, other) && strncmp(uuid, other, VSPHERE_PREFIX) == 0);
	CHECK(vsphere_is_uuid(uuid) && !vsphere_is_uuid("vm-7"));
	(void)str_printf(text, sizeof(text), machine, uuid);
	CHECK_INT(vsphere_read_machine(&m, parse(&a, text), &a, &err), 0);
	CHECK_STR(m.state, "running");
	CHECK_STR(m.token, "nacre-1-2");
	CHECK_INT(m.n_tags, 2);
	CHECK_STR(m.tags[0], "nacre-cluster=c");
	CHECK_STR(m.tags[1], "Name=web");
	CHECK_STR(m.address, "10.2.0.7");
	/* Somebody's copy of it has its settings, and an instanceUuid of its own. */
	(void)str_printf(text, sizeof(text), machine, other);
	CHECK(vsphere_read_machine(&m, parse(&a, text), &a, &err) < 0);
}

static void paths(void)
{
	char path[64];

	CHECK_INT(vsphere_path(path, sizeof(path), "My%20DC", "vm", "a/b"), 0);
	CHECK_STR(path, "/My DC/vm/a/b");
	CHECK_INT(vsphere_path(path, sizeof(path), "DC", "vm", ""), 0);
	CHECK_STR(path, "/DC/vm");
	CHECK_INT(vsphere_path(path, sizeof(path), "DC", "vm", "/x/vm/t"), 0);
	CHECK_STR(path, "/x/vm/t");
}

static void keys(void)
{
	static const char good[] = "# the node\nexport GOVC_USERNAME='n@v'\r\n"
				   "GOVC_PASSWORD=\"a b=\"\nGOVC_URL=x";
	struct error err = ERROR_INIT;
	struct vsphere_key k;
	uint8_t pin[HTTP_PIN_SIZE];

	CHECK_INT(vsphere_key_read(&k, good, strlen(good), &err), 0);
	CHECK_STR(k.name, "n@v");
	CHECK_STR(k.password, "a b=");
	CHECK(vsphere_key_read(&k, "GOVC_USERNAME=a", 15, &err) < 0);
	CHECK(vsphere_key_read(&k, "GOVC_USERNAME='a\n", 17, &err) < 0);
	CHECK(vsphere_key_read(&k, "x\n", 2, &err) < 0);
	CHECK(!http_read_pin(pin, "AA:BB"));
	CHECK(http_read_pin(pin, "00:01:02:03:04:05:06:07:08:09:0a:0B:0C:0D:0E:0F:10:11:12:13:14:"
				 "15:16:17:18:19:1A:1B:1C:1D:1E:fF"));
	CHECK(pin[1] == 1 && pin[31] == 255);
}

UNIT_MAIN({ "the spec of a clone", the_spec_of_a_clone },
	  { "what answers mean", what_answers_mean }, { "a machine", a_machine },
	  { "paths", paths }, { "keys", keys })
