// SPDX-License-Identifier: GPL-2.0
/*
 * gpufab_ib: makes an rxe device look like one of a card.
 *
 * It is moved below the PCI function of its netdev, as gpufab finds the RDMA device of a port there, and gets the
 * tc/1/traffic_class of MLNX_OFED, whose value is stored and forced on nobody. It goes before its function's driver
 * does, as with a real card. Load this before ib_uverbs: that takes the parent the device has when it comes to it.
 */
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

struct tc_dir {
	struct list_head list;
	struct ib_device *ibdev;
	struct device *parent;	/* the PCI function */
	struct kobject *tc, *port;
	struct kobj_attribute attr;
	int tclass;	/* -1: none is forced */
};

static LIST_HEAD(moved);
static DEFINE_MUTEX(moved_lock);
static bool leaving;
static struct ib_client client;

/* Without a forced class the file is empty. */
static ssize_t traffic_class_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	int tclass = READ_ONCE(container_of(attr, struct tc_dir, attr)->tclass);

	return tclass < 0 ? 0 : sysfs_emit(buf, "Global tclass=%d\n", tclass);
}

static ssize_t traffic_class_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf, size_t count)
{
	int tclass, err = kstrtoint(buf, 10, &tclass);

	if (err)
		return err;
	if (tclass < -1 || tclass > 255)
		return -EINVAL;
	WRITE_ONCE(container_of(attr, struct tc_dir, attr)->tclass, tclass);
	return count;
}

static void drop(struct kobject *folder)
{
	if (folder) {
		kobject_del(folder);
		kobject_put(folder);
	}
}

static int create_tc(struct tc_dir *dir)
{
	dir->tc = kobject_create_and_add("tc", &dir->ibdev->dev.kobj);
	dir->port = dir->tc ? kobject_create_and_add("1", dir->tc) : NULL;
	if (!dir->port)
		return -ENOMEM;
	sysfs_attr_init(&dir->attr.attr);
	dir->attr.attr.name = "traffic_class";
	dir->attr.attr.mode = 0644;
	dir->attr.show = traffic_class_show;
	dir->attr.store = traffic_class_store;
	return sysfs_create_file(dir->port, &dir->attr.attr);
}

/* The PCI function of the netdev below an RDMA device; NULL where there is none. The caller puts it. */
static struct device *pci_parent(struct ib_device *ibdev)
{
	struct net_device *netdev = ib_device_get_netdev(ibdev, 1);
	struct device *parent = NULL;

	if (!netdev)
		return NULL;
	if (netdev->dev.parent && dev_is_pci(netdev->dev.parent))
		parent = get_device(netdev->dev.parent);
	dev_put(netdev);
	return parent;
}

static int add_one(struct ib_device *ibdev)
{
	struct tc_dir *dir;
	int err;

	if (ibdev->ops.driver_id != RDMA_DRIVER_RXE)
		return -EOPNOTSUPP;
	dir = kzalloc(sizeof(*dir), GFP_KERNEL);
	if (!dir)
		return -ENOMEM;
	dir->ibdev = ibdev;
	dir->tclass = -1;
	dir->parent = pci_parent(ibdev);
	err = dir->parent ? device_move(&ibdev->dev, dir->parent, DPM_ORDER_NONE) : -EOPNOTSUPP;
	if (!err)
		err = create_tc(dir);
	if (err) {
		drop(dir->port);
		drop(dir->tc);
		put_device(dir->parent);
		kfree(dir);
		return err;
	}
	mutex_lock(&moved_lock);
	list_add_tail(&dir->list, &moved);
	mutex_unlock(&moved_lock);
	ib_set_client_data(ibdev, &client, dir);
	return 0;
}

static void remove_one(struct ib_device *ibdev, void *data)
{
	struct tc_dir *dir = data;

	mutex_lock(&moved_lock);
	list_del(&dir->list);
	mutex_unlock(&moved_lock);
	drop(dir->port);
	drop(dir->tc);
	/* Back where it came from, unless it is about to go. Below a function without a driver it may come to go too late. */
	if (leaving || !dir->parent->driver)
		device_move(&ibdev->dev, NULL, DPM_ORDER_NONE);
	put_device(dir->parent);
	kfree(dir);
}

static struct ib_client client = { .name = "gpufab_ib", .add = add_one, .remove = remove_one };

static struct ib_device *get_below(struct device *parent)
{
	struct ib_device *found = NULL;
	struct tc_dir *dir;

	mutex_lock(&moved_lock);
	list_for_each_entry(dir, &moved, list)
		if (dir->parent == parent && ib_device_try_get(dir->ibdev)) {
			found = dir->ibdev;
			break;
		}
	mutex_unlock(&moved_lock);
	return found;
}

/*
 * rxe itself only queues the end of its device when the netdev goes. By then the function's folder may be gone, and
 * the device's own with it.
 */
static int pci_event(struct notifier_block *nb, unsigned long event, void *data)
{
	struct ib_device *ibdev;

	if (event == BUS_NOTIFY_UNBIND_DRIVER)
		while ((ibdev = get_below(data)))
			ib_unregister_device_and_put(ibdev);
	return NOTIFY_DONE;
}

static struct notifier_block pci_notifier = { .notifier_call = pci_event };

static int __init gpufab_ib_init(void)
{
	int err = bus_register_notifier(&pci_bus_type, &pci_notifier);

	if (err)
		return err;
	err = ib_register_client(&client);
	if (err)
		bus_unregister_notifier(&pci_bus_type, &pci_notifier);
	return err;
}

static void __exit gpufab_ib_exit(void)
{
	leaving = true;
	ib_unregister_client(&client);
	bus_unregister_notifier(&pci_bus_type, &pci_notifier);
}

module_init(gpufab_ib_init);
module_exit(gpufab_ib_exit);
MODULE_DESCRIPTION("rxe devices below their PCI functions, for tests of gpufab");
MODULE_LICENSE("GPL");
