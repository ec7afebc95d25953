/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of gpufab_dcb.ko share. Test code: settings are stored, nothing is enforced. */
#ifndef GPUFAB_DCB_H
#define GPUFAB_DCB_H

#include <linux/debugfs.h>
#include <linux/kobject.h>
#include <linux/netdevice.h>
#include <linux/workqueue.h>
#include <net/dcbnl.h>

/* Every operation that can be made to fail. Their names are those of the debugfs folders (faults.c). */
enum gf_op {
	GF_GETETS, GF_SETETS, GF_GETMAXRATE, GF_SETMAXRATE, GF_GETPFC, GF_SETPFC, GF_SETAPP, GF_DELAPP,
	GF_GETBUFFER, GF_SETBUFFER, GF_GETAPPTRUST, GF_SETAPPTRUST, GF_SETREWR, GF_DELREWR, GF_SETDCBX,
	GF_READECN, GF_WRITEECN, GF_OPS,
};

/* What is to go wrong with one operation on one PCI function. */
struct gf_fault {
	u32 fail;	/* errno to return, 0: none */
	u32 hang_ms;	/* time to sleep first */
	u32 silent;	/* return success and change nothing */
	u32 times;	/* how many calls are hit; 0: all */
	u32 calls;	/* how often it was called */
};

/* Lives until the module goes, so that a fault outlasts unbind and bind of its function. */
struct gf_faults {
	struct list_head list;
	struct dentry *dir;
	u32 flaps;	/* link flaps made */
	struct gf_fault ops[GF_OPS];
	char pci[];
};

struct gf_ecn;

/* One port: a netdev of the driver under test. Guarded by RTNL; made anew each time the netdev is registered. */
struct gf_port {
	struct list_head list;
	struct net_device *dev;
	struct gf_faults *faults;
	struct delayed_work link_up;
	struct gf_ecn *ecn;

	struct ieee_ets ets;
	struct ieee_maxrate maxrate;
	struct dcbnl_buffer buffer;
	u8 pfc_en;
	u16 cable_m;
	u8 dcbx;
	u8 trust[8];	/* as many kinds of selector as there are, net/dcb refuses doubles */
	int trusts;
	u8 dscp_prio[64];
	unsigned int dscp_apps;
};

extern const struct dcbnl_rtnl_ops gf_dcbnl_ops;

struct gf_port *gf_port_of(struct net_device *dev);
void gf_flap(struct gf_port *port);

void gf_port_factory(struct gf_port *port);
void gf_port_flush(struct gf_port *port);

int gf_ecn_create(struct gf_port *port);
void gf_ecn_destroy(struct gf_port *port);

int gf_faults_init(void);
void gf_faults_exit(void);
struct gf_faults *gf_faults_of(const char *pci);
int gf_fault(struct gf_faults *faults, enum gf_op op);

#endif
