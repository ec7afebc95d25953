// SPDX-License-Identifier: GPL-2.0
/* A module by the name of the GPU driver, which does nothing: what waits for the driver can be seen to start. */
#include <linux/module.h>

static int __init nvidia_init(void)
{
	return 0;
}

static void __exit nvidia_exit(void)
{
}

module_init(nvidia_init);
module_exit(nvidia_exit);
MODULE_DESCRIPTION("Stands for the GPU driver in tests of gpufab");
MODULE_LICENSE("GPL");
