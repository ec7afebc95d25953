// SPDX-License-Identifier: GPL-2.0
/*
 * The ecn/ folder of a netdev, as MLNX_OFED's mlx5 driver shows it: names, defaults and ranges of its en_sysfs.c.
 *
 * Reading and writing take no RTNL: the folder is removed with RTNL held, and that waits for both.
 */
#include <linux/slab.h>

#include "gpufab_dcb.h"

#define PRIORITIES 8

struct knob {
	const char *name;
	u32 value, low, high;
};

static const struct knob np_knobs[] = {
	{ "cnp_dscp", 48, 0, 63 },
	{ "cnp_802p_prio", 6, 0, 7 },
	{ "min_time_between_cnps", 4, 0, U32_MAX },
};

static const struct knob rp_knobs[] = {
	{ "clamp_tgt_rate", 0, 0, 1 },
	{ "clamp_tgt_rate_after_time_inc", 1, 0, 1 },
	{ "dce_tcp_g", 1019, 0, 1023 },
	{ "dce_tcp_rtt", 1, 1, 131071 },
	{ "initial_alpha_value", 1023, 1, 1023 },
	{ "rate_reduce_monitor_period", 4, 0, U32_MAX },
	{ "rate_to_set_on_first_cnp", 0, 0, U32_MAX },
	{ "rpg_ai_rate", 5, 0, U32_MAX },
	{ "rpg_byte_reset", 32767, 0, U32_MAX },
	{ "rpg_gd", 11, 10, 11 },
	{ "rpg_hai_rate", 50, 0, U32_MAX },
	{ "rpg_max_rate", 0, 0, U32_MAX },
	{ "rpg_min_dec_fac", 50, 0, 100 },
	{ "rpg_min_rate", 1, 0, U32_MAX },
	{ "rpg_threshold", 1, 0, 31 },
	{ "rpg_time_reset", 300, 0, U32_MAX },
};

static const struct knob enable_knobs[PRIORITIES] = {
	{ "0", 1, 0, 1 }, { "1", 1, 0, 1 }, { "2", 1, 0, 1 }, { "3", 1, 0, 1 },
	{ "4", 1, 0, 1 }, { "5", 1, 0, 1 }, { "6", 1, 0, 1 }, { "7", 1, 0, 1 },
};

struct value {
	struct kobj_attribute attr;
	struct gf_faults *faults;
	const struct knob *knob;
	u32 value;
};

struct gf_ecn {
	struct kobject *ecn, *np, *rp, *np_enable, *rp_enable;
	unsigned int used;
	struct value values[ARRAY_SIZE(np_knobs) + ARRAY_SIZE(rp_knobs) + 2 * PRIORITIES];
};

static ssize_t value_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct value *value = container_of(attr, struct value, attr);
	int err = gf_fault(value->faults, GF_READECN);

	return err < 0 ? err : sysfs_emit(buf, "%u\n", READ_ONCE(value->value));
}

static ssize_t value_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf, size_t count)
{
	struct value *value = container_of(attr, struct value, attr);
	u32 wanted;
	int err = kstrtou32(buf, 10, &wanted);

	if (err)
		return err;
	if (wanted < value->knob->low || wanted > value->knob->high)
		return -EINVAL;
	err = gf_fault(value->faults, GF_WRITEECN);
	if (err)
		return err < 0 ? err : count;
	WRITE_ONCE(value->value, wanted);
	return count;
}

static int fill(struct gf_port *port, struct kobject *folder, const struct knob *knobs, unsigned int count)
{
	struct gf_ecn *ecn = port->ecn;
	unsigned int i;
	int err;

	for (i = 0; i < count; i++) {
		struct value *value = &ecn->values[ecn->used++];

		sysfs_attr_init(&value->attr.attr);
		value->attr.attr.name = knobs[i].name;
		value->attr.attr.mode = 0644;
		value->attr.show = value_show;
		value->attr.store = value_store;
		value->faults = port->faults;
		value->knob = &knobs[i];
		value->value = knobs[i].value;
		err = sysfs_create_file(folder, &value->attr.attr);
		if (err)
			return err;
	}
	return 0;
}

static int fill_all(struct gf_port *port)
{
	struct gf_ecn *ecn = port->ecn;

	ecn->ecn = kobject_create_and_add("ecn", &port->dev->dev.kobj);
	if (!ecn->ecn)
		return -ENOMEM;
	ecn->np = kobject_create_and_add("roce_np", ecn->ecn);
	ecn->rp = kobject_create_and_add("roce_rp", ecn->ecn);
	if (!ecn->np || !ecn->rp)
		return -ENOMEM;
	ecn->np_enable = kobject_create_and_add("enable", ecn->np);
	ecn->rp_enable = kobject_create_and_add("enable", ecn->rp);
	if (!ecn->np_enable || !ecn->rp_enable)
		return -ENOMEM;
	return fill(port, ecn->np, np_knobs, ARRAY_SIZE(np_knobs)) ?:
	       fill(port, ecn->rp, rp_knobs, ARRAY_SIZE(rp_knobs)) ?:
	       fill(port, ecn->np_enable, enable_knobs, PRIORITIES) ?:
	       fill(port, ecn->rp_enable, enable_knobs, PRIORITIES);
}

int gf_ecn_create(struct gf_port *port)
{
	int err;

	port->ecn = kzalloc(sizeof(*port->ecn), GFP_KERNEL);
	if (!port->ecn)
		return -ENOMEM;
	err = fill_all(port);
	if (err)
		gf_ecn_destroy(port);
	return err;
}

/* kobject_del() waits for readers and writers: after it nobody uses the values. */
static void drop(struct kobject *folder)
{
	if (folder) {
		kobject_del(folder);
		kobject_put(folder);
	}
}

void gf_ecn_destroy(struct gf_port *port)
{
	struct gf_ecn *ecn = port->ecn;

	drop(ecn->np_enable);
	drop(ecn->rp_enable);
	drop(ecn->np);
	drop(ecn->rp);
	drop(ecn->ecn);
	kfree(ecn);
	port->ecn = NULL;
}
