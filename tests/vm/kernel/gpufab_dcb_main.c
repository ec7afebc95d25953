// SPDX-License-Identifier: GPL-2.0
/*
 * gpufab_dcb: gives the PF netdevs of one driver the DCB operations and the ecn/ folder of a ConnectX.
 *
 * No virtual NIC has dcbnl_rtnl_ops. This puts them on netdevs of the driver under test when they are registered, so
 * unbind and bind, or remove and rescan, bring factory values, as with a real card. Values are stored, not enforced.
 */
#include <linux/ethtool.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>

#include "gpufab_dcb.h"

static char *driver = "mlx5_core";
module_param(driver, charp, 0444);
MODULE_PARM_DESC(driver, "name of the PCI driver whose PFs get the operations");

static unsigned int flap_ms = 300;
module_param(flap_ms, uint, 0644);
MODULE_PARM_DESC(flap_ms, "how long the carrier is off after a change of PFC, in ms; 0: no flap");

static LIST_HEAD(ports);
static bool leaving;

struct gf_port *gf_port_of(struct net_device *dev)
{
	struct gf_port *port;

	ASSERT_RTNL();
	list_for_each_entry(port, &ports, list)
		if (port->dev == dev)
			return port;
	return NULL;
}

/* RTNL is only tried: detach() waits for this work with RTNL held. */
static void link_up(struct work_struct *work)
{
	struct gf_port *port = container_of(to_delayed_work(work), struct gf_port, link_up);
	const struct ethtool_ops *ops = port->dev->ethtool_ops;

	if (!rtnl_trylock()) {
		schedule_delayed_work(&port->link_up, msecs_to_jiffies(10));
		return;
	}
	/* The port may have been set down, or have lost its real link, meanwhile. */
	if (netif_running(port->dev) && (!ops->get_link || ops->get_link(port->dev)))
		netif_carrier_on(port->dev);
	rtnl_unlock();
}

/* mlx5 toggles the link when PFC changes (mlx5_toggle_port_link). */
void gf_flap(struct gf_port *port)
{
	if (!flap_ms)
		return;
	port->faults->flaps++;
	if (!netif_running(port->dev) || !netif_carrier_ok(port->dev))
		return;
	netif_carrier_off(port->dev);
	schedule_delayed_work(&port->link_up, msecs_to_jiffies(flap_ms));
}

static bool is_ours(struct net_device *dev)
{
	struct device *parent = dev->dev.parent;

	return parent && dev_is_pci(parent) && !to_pci_dev(parent)->is_virtfn && parent->driver &&
	       !strcmp(parent->driver->name, driver);
}

static void attach(struct net_device *dev)
{
	struct gf_port *port;

	if (leaving || !is_ours(dev) || gf_port_of(dev))
		return;
	if (dev->dcbnl_ops) {
		netdev_err(dev, "gpufab_dcb: the driver has DCB operations of its own\n");
		return;
	}
	port = kzalloc(sizeof(*port), GFP_KERNEL);
	if (!port)
		return;
	port->dev = dev;
	INIT_DELAYED_WORK(&port->link_up, link_up);
	port->faults = gf_faults_of(dev_name(dev->dev.parent));
	if (!port->faults || gf_ecn_create(port)) {
		netdev_err(dev, "gpufab_dcb: no memory\n");
		kfree(port);
		return;
	}
	gf_port_factory(port);
	list_add_tail(&port->list, &ports);
	dev->dcbnl_ops = &gf_dcbnl_ops;
}

static void detach(struct gf_port *port)
{
	cancel_delayed_work_sync(&port->link_up);
	gf_port_flush(port);
	port->dev->dcbnl_ops = NULL;
	gf_ecn_destroy(port);
	list_del(&port->list);
	kfree(port);
}

static int netdev_event(struct notifier_block *nb, unsigned long event, void *info)
{
	struct net_device *dev = netdev_notifier_info_to_dev(info);
	struct gf_port *port;

	if (event == NETDEV_REGISTER) {
		attach(dev);
	} else if (event == NETDEV_UNREGISTER && dev->reg_state != NETREG_REGISTERED) {
		/* A registered netdev is told off too when it moves to another namespace: it keeps its values. */
		port = gf_port_of(dev);
		if (port)
			detach(port);
	}
	return NOTIFY_DONE;
}

static struct notifier_block netdev_notifier = { .notifier_call = netdev_event };

static int __init gpufab_dcb_init(void)
{
	int err = gf_faults_init();

	if (err)
		return err;
	/* Tells of the netdevs that are there already, too. */
	err = register_netdevice_notifier(&netdev_notifier);
	if (err)
		gf_faults_exit();
	return err;
}

static void __exit gpufab_dcb_exit(void)
{
	struct gf_port *port, *next;

	/* First, while the notifier still tells of netdevs that go. */
	rtnl_lock();
	leaving = true;
	list_for_each_entry_safe(port, next, &ports, list)
		detach(port);
	rtnl_unlock();
	unregister_netdevice_notifier(&netdev_notifier);
	gf_faults_exit();
}

module_init(gpufab_dcb_init);
module_exit(gpufab_dcb_exit);
MODULE_DESCRIPTION("DCB and ECN settings of a ConnectX, stored and not enforced, for tests of gpufab");
MODULE_LICENSE("GPL");
