/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/ec2.h"

#include <errno.h>

#include "base/text/str.h"
#include "cloud/xml.h"
#include "unit.h"

static void the_form_of_a_create(void)
{
	static const char words[] = "verb=create\0number=1\0image=ami-1\0type=t3.micro\0token=tok"
				    "\0subnet=subnet-1\0group=sg-1\0group=sg-2\0tag=Name=a b"
				    "\0tag=k=v=w\0dry-run=yes\0spot=yes";
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	struct cloudmsg q;

	CHECK_INT(cloudmsg_read(&q, words, sizeof(words)), 0);
	CHECK_INT(ec2_create_form(&b, &q), 0);
	text = buf_take_str(&b);
	CHECK(text != NULL);
	if (!text)
		return;
	CHECK(str_has_prefix(text,
			     "Action=RunInstances&Version=2016-11-15&MinCount=1&MaxCount=1&"));
	CHECK(strstr(text, "&ClientToken=tok&SubnetId=subnet-1&SecurityGroupId.1=sg-1"
			   "&SecurityGroupId.2=sg-2&TagSpecification.1.ResourceType=instance"
			   "&TagSpecification.1.Tag.1.Key=Name&TagSpecification.1.Tag.1.Value=a%20b"
			   "&TagSpecification.1.Tag.2.Key=k&TagSpecification.1.Tag.2.Value=v%3Dw"
			   "&TagSpecification.2.ResourceType=volume"));
	CHECK(strstr(text, "&InstanceMarketOptions.MarketType=spot"
			   "&InstanceMarketOptions.SpotOptions.SpotInstanceType=one-time&"));
	CHECK(str_has_suffix(text, "&DryRun=true"));
}

static void judge(int status, const char *code, enum error_kind kind, bool again, bool unknown)
{
	_cleanup_(arena_done) struct arena a = ARENA_INIT;
	char text[512];
	struct xml_node *root = NULL;
	struct error err = ERROR_INIT;
	struct cloud_fault f;
	bool got;

	(void)str_printf(text, sizeof(text),
			 "<Response><Errors><Error><Code>%s</Code><Message>why</Message></Error>"
			 "</Errors><RequestID>1</RequestID></Response>",
			 code);
	CHECK_INT(xml_parse(&root, &a, text, strlen(text), NULL), 0);
	CHECK(ec2_judge(status, root, &f, &got, &err) < 0);
	CHECK_INT((int)err.kind, (int)kind);
	CHECK_STR(f.code, code);
	CHECK(got == again && f.unknown == unknown);
	CHECK(strstr(err.text, "why") != NULL);
}

static void what_errors_mean(void)
{
	struct error err = ERROR_INIT;
	struct cloud_fault f;
	bool again;

	judge(503, "RequestLimitExceeded", ERROR_UNAVAILABLE, true, false);
	judge(400, "Throttling", ERROR_UNAVAILABLE, true, false);
	judge(500, "InternalError", ERROR_UNAVAILABLE, true, true);
	judge(500, "SomethingNew", ERROR_UNAVAILABLE, true, true);
	judge(400, "ExpiredToken", ERROR_UNAVAILABLE, false, false);
	judge(403, "UnauthorizedOperation", ERROR_PRECONDITION, false, false);
	judge(500, "InsufficientInstanceCapacity", ERROR_EXHAUSTED, false, false);
	judge(400, "InvalidAMIID.NotFound", ERROR_INVALID, false, false);
	judge(400, "InvalidInstanceID.NotFound", ERROR_NOT_FOUND, false, false);
	judge(400, "IdempotentParameterMismatch", ERROR_PRECONDITION, false, false);
	CHECK(ec2_judge(502, NULL, &f, &again, &err) < 0);
	CHECK(again && f.unknown && err.kind == ERROR_UNAVAILABLE);
	/* A proxy's page. */
	CHECK(ec2_judge(200, NULL, &f, &again, &err) < 0);
	CHECK(again && f.unknown);
}

static int machine(struct arena *a, const char *text, struct cloud_machine *ret, struct error *err)
{
	struct xml_node *root = NULL;
	int r = xml_parse(&root, a, text, strlen(text), err);

	return r < 0 ? r : ec2_read_machine(ret, root, a, err);
}

static void machines(void)
{
	_cleanup_(arena_done) struct arena a = ARENA_INIT;
	struct error err = ERROR_INIT;
	struct cloud_machine m;

	CHECK_INT(machine(&a,
			  "<item><instanceId>i-0abc</instanceId><instanceState><code>16</code>"
			  "<name>running</name></instanceState><privateIpAddress>10.0.0.4"
			  "</privateIpAddress><placement><availabilityZone>eu-1a"
			  "</availabilityZone></placement><clientToken>tok</clientToken>"
			  "<tagSet><item><key>a</key><value>b\x01</value></item></tagSet></item>",
			  &m, &err),
		  -EINVAL);
	CHECK_INT(machine(&a,
			  "<item><instanceId>i-0abc</instanceId><instanceState><code>16</code>"
			  "<name>running</name></instanceState><privateIpAddress>10.0.0.4"
			  "</privateIpAddress><tagSet><item><key>a</key><value>b&#x7f;</value>"
			  "</item></tagSet><stateReason><code>c</code><message>why</message>"
			  "</stateReason></item>",
			  &m, &err),
		  0);
	CHECK_STR(m.id, "i-0abc");
	CHECK_STR(m.state, "running");
	CHECK_STR(m.address, "10.0.0.4");
	CHECK_STR(m.zone, "");
	CHECK_STR(m.reason, "why");
	CHECK_INT((int)m.n_tags, 1);
	CHECK_STR(m.tags[0], "a=b?");
	CHECK_INT(machine(&a, "<item><instanceId>i-../x</instanceId></item>", &m, &err), -EINVAL);
	CHECK_INT(machine(&a, "<item/>", &m, &err), -EINVAL);
}

static int account(const char *region, const char *endpoint, struct error *err)
{
	struct ec2_account a;
	int r;

	(void)setenv("AWS_ACCESS_KEY_ID", "A", 1);
	(void)setenv("AWS_SECRET_ACCESS_KEY", "S", 1);
	*err = (struct error)ERROR_INIT;
	r = ec2_account_open(&a, region, endpoint, "", err);
	ec2_account_close(&a);
	return r;
}

static void endpoints(void)
{
	struct error err;

	CHECK_INT(account("eu-central-1", "", &err), 0);
	CHECK_INT(account("eu-central-1", "http://127.0.0.1:5000", &err), 0);
	CHECK_INT(account("eu-central-1", "http://192.0.2.1/", &err), -EINVAL);
	CHECK(strstr(err.text, "loopback") != NULL);
	CHECK_INT(account("eu-central-1", "ftp://x", &err), -EINVAL);
}

UNIT_MAIN({ "the form of a create", the_form_of_a_create },
	  { "what errors mean", what_errors_mean }, { "machines", machines },
	  { "endpoints", endpoints })
