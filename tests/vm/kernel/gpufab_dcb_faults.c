// SPDX-License-Identifier: GPL-2.0
/*
 * Faults by PCI function and operation: /sys/kernel/debug/gpufab_dcb/PCI/OPERATION/{fail,hang_ms,silent,times,calls}.
 *
 * The parameter faults= sets the same before the first port comes, for faults during boot:
 * faults=0000:01:00.0/setpfc/fail=5,0000:02:00.0/writeecn/hang_ms=2000
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "gpufab_dcb.h"

static const char * const op_names[GF_OPS] = {
	[GF_GETETS] = "getets",		[GF_SETETS] = "setets",
	[GF_GETMAXRATE] = "getmaxrate",	[GF_SETMAXRATE] = "setmaxrate",
	[GF_GETPFC] = "getpfc",		[GF_SETPFC] = "setpfc",
	[GF_SETAPP] = "setapp",		[GF_DELAPP] = "delapp",
	[GF_GETBUFFER] = "getbuffer",	[GF_SETBUFFER] = "setbuffer",
	[GF_GETAPPTRUST] = "getapptrust", [GF_SETAPPTRUST] = "setapptrust",
	[GF_SETREWR] = "setrewr",	[GF_DELREWR] = "delrewr",
	[GF_SETDCBX] = "setdcbx",
	[GF_READECN] = "readecn",	[GF_WRITEECN] = "writeecn",
};

#define MAX_AT_LOAD 32
static char *faults[MAX_AT_LOAD];
static int faults_at_load;
module_param_array(faults, charp, &faults_at_load, 0444);
MODULE_PARM_DESC(faults, "faults from the beginning: PCI/OPERATION/FIELD=NUMBER, separated by commas");

static LIST_HEAD(all);
static DEFINE_MUTEX(all_lock);
static struct dentry *root;

/* The faults of a PCI function, made at the first call. NULL: no memory. */
struct gf_faults *gf_faults_of(const char *pci)
{
	struct gf_faults *found;
	int op;

	mutex_lock(&all_lock);
	list_for_each_entry(found, &all, list)
		if (!strcmp(found->pci, pci))
			goto out;
	found = kzalloc(struct_size(found, pci, strlen(pci) + 1), GFP_KERNEL);
	if (!found)
		goto out;
	strcpy(found->pci, pci);
	list_add_tail(&found->list, &all);
	found->dir = debugfs_create_dir(pci, root);
	debugfs_create_u32("flaps", 0444, found->dir, &found->flaps);
	for (op = 0; op < GF_OPS; op++) {
		struct dentry *dir = debugfs_create_dir(op_names[op], found->dir);
		struct gf_fault *fault = &found->ops[op];

		debugfs_create_u32("fail", 0644, dir, &fault->fail);
		debugfs_create_u32("hang_ms", 0644, dir, &fault->hang_ms);
		debugfs_create_u32("silent", 0644, dir, &fault->silent);
		debugfs_create_u32("times", 0644, dir, &fault->times);
		debugfs_create_u32("calls", 0644, dir, &fault->calls);
	}
out:
	mutex_unlock(&all_lock);
	return found;
}

/* Called at the start of each operation. Below 0: return it; 1: return success and do nothing; 0: go on. */
int gf_fault(struct gf_faults *of, enum gf_op op)
{
	struct gf_fault *fault = &of->ops[op];
	u32 fail = READ_ONCE(fault->fail), hang_ms = READ_ONCE(fault->hang_ms), silent = READ_ONCE(fault->silent);

	fault->calls++;
	if (!fail && !hang_ms && !silent)
		return 0;
	if (fault->times && !--fault->times)
		fault->fail = fault->hang_ms = fault->silent = 0;
	/* Not to be interrupted, as a command to a firmware that does not answer. */
	if (hang_ms)
		msleep(hang_ms);
	return fail ? -(int)fail : silent ? 1 : 0;
}

static u32 *field_of(struct gf_fault *fault, const char *name)
{
	if (!strcmp(name, "fail"))
		return &fault->fail;
	if (!strcmp(name, "hang_ms"))
		return &fault->hang_ms;
	if (!strcmp(name, "silent"))
		return &fault->silent;
	return strcmp(name, "times") ? NULL : &fault->times;
}

/* Take one PCI/OPERATION/FIELD=NUMBER. */
static int at_load(char *text)
{
	char *pci = strsep(&text, "/"), *op_name = strsep(&text, "/"), *name = strsep(&text, "=");
	struct gf_faults *of;
	u32 *field, value;
	int op, err;

	if (!text)
		return -EINVAL;
	op = match_string(op_names, GF_OPS, op_name);
	if (op < 0)
		return -EINVAL;
	err = kstrtou32(text, 10, &value);
	if (err)
		return err;
	of = gf_faults_of(pci);
	if (!of)
		return -ENOMEM;
	field = field_of(&of->ops[op], name);
	if (!field)
		return -EINVAL;
	*field = value;
	return 0;
}

int gf_faults_init(void)
{
	int i, err;

	root = debugfs_create_dir("gpufab_dcb", NULL);
	for (i = 0; i < faults_at_load; i++) {
		char *text = kstrdup(faults[i], GFP_KERNEL);

		err = text ? at_load(text) : -ENOMEM;
		kfree(text);
		if (err) {
			pr_err("gpufab_dcb: faults=%s is not PCI/OPERATION/FIELD=NUMBER\n", faults[i]);
			gf_faults_exit();
			return err;
		}
	}
	return 0;
}

void gf_faults_exit(void)
{
	struct gf_faults *found, *next;

	debugfs_remove_recursive(root);
	list_for_each_entry_safe(found, next, &all, list) {
		list_del(&found->list);
		kfree(found);
	}
}
