/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm_machine.h"

#include <errno.h>

#include "base/fault/failpoint.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "instance/end.h"
#include "instance/model.h"
#include "provider/vm_pool.h"
#include "provider/vm_template.h"
#include "provider/vm_words.h"

#define MACHINE_CONSOLE_PATIENCE (2 * NSEC_PER_SEC)
/* From the word to its keeper to its power button. */
#define MACHINE_BUTTON_AFTER (10 * NSEC_PER_SEC)
#define MACHINE_STOP_FRAME_MAX 64

static void machine_over(struct machine *m, const char *console)
{
	struct instance *i = m->instance;
	char reason[INSTANCE_REASON_MAX];

	FAILPOINT_BEFORE("vm.over");
	loop_timer_stop(&m->patience);
	(void)str_printf(reason, sizeof(reason), "%.190s%s%s",
			 i->broken ? error_text(&i->last_error) : m->end,
			 *console ? "; its console ends: " : "", console);
	log_info("a machine has ended", LOG_STR("instance", i->path), LOG_INT("pid", i->pid),
		 LOG_STR("reason", reason));
	instance_ended(i, reason);
	FAILPOINT_AFTER("vm.over");
}

void machine_on_patience(struct loop_timer *t)
{
	machine_over(container_of(t, struct machine, patience), "");
}

static void machine_on_console(void *userdata, const uint8_t *last, size_t len, uint64_t total,
			       const struct error *err)
{
	char console[MACHINE_CONSOLE_MAX] = "";
	struct machine *m = userdata;

	(void)total;
	if (!m->instance || !m->end[0])
		return;
	if (!err)
		vm_words(last, len, console, sizeof(console));
	machine_over(m, console);
}

/* It could not go on from a template: that is not for whoever wanted it to suffer from. */
static bool machine_boot_instead(struct machine *m, const struct vm_end *end)
{
	char why[MACHINE_TEXT_MAX];
	struct error err = ERROR_INIT;

	if (end->cause == VM_END_ASKED || m->instance->broken ||
	    m->instance->state == INSTANCE_STOPPING) {
		machine_forget_lines(m);
		return false;
	}
	(void)str_printf(why, sizeof(why), "%.190s%s%.60s", end->text, end->words[0] ? ": " : "",
			 end->words);
	templates_drop(m->vms->templates, why);
	if (machine_start_cold(m, &err) < 0)
		log_error("a machine cannot boot", LOG_STR("instance", m->instance->path),
			  LOG_ERR(&err));
	return m->vm;
}

static void machine_on_end(struct vm *vm, const struct vm_end *end, void *owner)
{
	struct machine *m = owner;
	char why[MACHINE_TEXT_MAX];

	FAILPOINT_BEFORE("vm.end");
	m->vm = vm->driver->free(vm);
	FAILPOINT_AFTER("vm.end");
	vm_volumes_rest(&m->volumes);
	if (m->pooled)
		m->pool_ops->broken(m, end->words[0] ? end->words : end->text);
	if (!m->instance) {
		machine_check_gone(m);
		return;
	}
	if (m->warm && machine_boot_instead(m, end))
		return;
	(void)str_printf(why, sizeof(why), "%.190s%s%.60s", end->text, end->words[0] ? ": " : "",
			 end->words);
	if (machine_again(m, why))
		return;
	(void)str_copy(m->end, sizeof(m->end), why);
	/* What it was told to do needs no reason. */
	if (m->instance->state == INSTANCE_STOPPING || !m->gate ||
	    gate_console(m->gate, machine_on_console, m) < 0)
		machine_over(m, "");
	else
		loop_timer_set(&m->patience, MACHINE_CONSOLE_PATIENCE);
}

/* Its content is not to be had any more, and the guest gets errors in its place: better told by the
 * node, with the cause. */
static void machine_on_io_error(struct vm *vm, const struct vm_io_error *e, void *owner)
{
	struct machine *m = owner;
	char reason[MACHINE_TEXT_MAX];

	(void)vm;
	if (!m->instance || !e->slot || e->n >= MACHINE_SLOTS || m->asks_slots)
		return;
	(void)str_printf(reason, sizeof(reason), "the disk of the image %.80s cannot be read: %s",
			 m->slots.slot[e->n].name, e->text);
	machine_break(m, reason);
}

static void machine_on_panic(struct vm *vm, void *owner)
{
	struct machine *m = owner;

	(void)vm;
	if (m->instance)
		log_warn("the kernel of a guest has panicked",
			 LOG_STR("instance", m->instance->path));
}

static void machine_on_up(struct vm *vm, void *owner)
{
	struct machine *m = owner;

	(void)vm;
	FAILPOINT_BEFORE("vm.up");
	machine_forget_lines(m);
	if (m->pooled)
		m->pool_ops->up(m);
	if (m->instance && m->asks_slots)
		machine_learn_slots(m);
	FAILPOINT_AFTER("vm.up");
}

const struct vm_events machine_vm_events = {
	.on_up = machine_on_up,
	.on_panic = machine_on_panic,
	.on_io_error = machine_on_io_error,
	.on_end = machine_on_end,
};

/* ---- its end in order ---- */

void machine_stopping(struct machine *m)
{
	loop_timer_set(&m->button, MACHINE_BUTTON_AFTER);
}

/* Pid 1 of the guest hears both, and either does: one goes through the gate, the other through the
 * monitor. */
void machine_on_button(struct loop_timer *t)
{
	static const struct bootmsg stop = { .type = BOOTMSG_STOP };
	struct machine *m = container_of(t, struct machine, button);
	struct error err = ERROR_INIT;
	uint8_t frame[MACHINE_STOP_FRAME_MAX];
	int r;

	if (!m->instance || !m->vm)
		return;
	log_info("a keeper does not end its machine: its power button is pressed",
		 LOG_STR("instance", m->instance->path));
	r = m->gate ? bootmsg_encode(&stop, frame, &err) : 0;
	if (r > 0)
		(void)gate_send(m->gate, frame, (size_t)r);
	if (m->vm->driver->stop(m->vm, &err) < 0)
		log_warn("the power button of a machine cannot be pressed",
			 LOG_STR("instance", m->instance->path), LOG_ERR(&err));
}

void machine_kill(struct machine *m)
{
	if (m->vm)
		m->vm->driver->kill(m->vm);
}

void machine_on_volumes_lost(struct vm_volumes *v, const char *reason)
{
	struct machine *m = container_of(v, struct machine, volumes);

	if (m->instance && m->vm)
		instance_break(m->instance, reason);
}

/* ---- what its gate tells ---- */

static void machine_on_gate(void *userdata, enum gate_state state, const char *text)
{
	struct machine *m = userdata;
	char reason[MACHINE_TEXT_MAX];

	if (state != GATE_FAILED || machine_has_gone(m))
		return;
	(void)str_printf(reason, sizeof(reason), "its gate cannot go on: %.200s", text);
	machine_break(m, reason);
}

static void machine_take_ready(struct machine *m, const char *kernel)
{
	struct instance *i = m->instance;
	struct error err = ERROR_INIT;
	nsec_t now = clock_real();

	if (str_eq(i->kernel, kernel))
		return;
	FAILPOINT_BEFORE("vm.booted");
	(void)str_copy(i->kernel, sizeof(i->kernel), kernel);
	templates_make(m->vms->templates, i->all);
	vm_pool_open(m->vms->pool, i->all);
	vm_pool_rest(m->vms->pool, now > i->created_at ? now - i->created_at : 0);
	if (i->all->config.save(i->all->config.userdata, i, &err) < 0)
		log_error("cannot record an instance", LOG_STR("instance", i->path), LOG_ERR(&err));
	FAILPOINT_AFTER("vm.booted");
}

static void machine_on_frame(void *userdata, const uint8_t *frame, size_t len)
{
	struct machine *m = userdata;
	struct error err = ERROR_INIT;
	char reason[MACHINE_TEXT_MAX];
	struct bootmsg msg;

	if (m->pooled)
		m->pool_ops->broken(m, "its guest speaks before it was spoken to");
	if (!m->instance)
		return;
	if (bootmsg_next(&msg, frame, len, &err) <= 0)
		(void)str_printf(reason, sizeof(reason), "what the guest says is no frame: %.180s",
				 error_text(&err));
	else if (msg.type == BOOTMSG_READY) {
		machine_take_ready(m, msg.ready.kernel);
		return;
	} else if (msg.type == BOOTMSG_FAILED)
		(void)str_printf(reason, sizeof(reason), "the guest cannot go on: %.180s",
				 msg.failed.text);
	else
		(void)str_copy(reason, sizeof(reason), "the guest says what only a node may say");
	machine_break(m, reason);
}

static void machine_on_notice(void *userdata, const char *text)
{
	const struct machine *m = userdata;

	if (m->instance)
		log_warn("a gate has refused a connection", LOG_STR("instance", m->instance->path),
			 LOG_STR("reason", text));
}

static void machine_on_gate_end(void *userdata, const struct error *err)
{
	struct machine *m = userdata;
	char reason[MACHINE_TEXT_MAX];

	/* err is the gate's. */
	(void)str_printf(reason, sizeof(reason), "its gate has ended: %.200s",
			 err ? error_text(err) : "without a word");
	FAILPOINT_BEFORE("vm.gate_end");
	m->gate = gate_free(m->gate);
	FAILPOINT_AFTER("vm.gate_end");
	if (m->pooled)
		m->pool_ops->broken(m, reason);
	if (!m->instance) {
		machine_check_gone(m);
		return;
	}
	if (m->end[0])
		machine_over(m, "");
	else if (!machine_again(m, reason))
		instance_break(m->instance, reason);
}

const struct gate_events machine_gate_events = {
	.on_state = machine_on_gate,
	.on_frame = machine_on_frame,
	.on_notice = machine_on_notice,
	.on_end = machine_on_gate_end,
};
