// SPDX-License-Identifier: GPL-2.0
/*
 * The DCB operations, with the answers of mlx5 (drivers/net/ethernet/mellanox/mlx5/core/en_dcbnl.c): one priority a
 * DSCP, trust follows the APP table, a change of PFC flaps the link. apptrust and rewr, which mlx5 lacks, are here so
 * that iproute2's commands can be held against a kernel. net/dcb calls all of these with RTNL held.
 */
#include <linux/rtnetlink.h>

#include "gpufab_dcb.h"

#define PRIORITIES IEEE_8021QAZ_MAX_TCS
#define MAX_CABLE_M 1000	/* MLX5E_MAX_CABLE_LENGTH */
#define BUFFER_BYTES 262144
#define BUFFER_CELL 128
#define MAX_RATE_KBPS 255000000ULL

void gf_port_factory(struct gf_port *port)
{
	int i;

	port->dcbx = DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_IEEE;
	port->ets.ets_cap = PRIORITIES;
	for (i = 0; i < PRIORITIES; i++) {
		port->ets.tc_tsa[i] = IEEE_8021QAZ_TSA_VENDOR;
		port->ets.prio_tc[i] = i > 1 ? i : 1 - i;
	}
	port->buffer.total_size = BUFFER_BYTES;
	port->buffer.buffer_size[0] = BUFFER_BYTES - BUFFER_CELL;
	port->trust[0] = DCB_APP_SEL_PCP;
	port->trusts = 1;
}

/* Forget the DSCP tables that net/dcb keeps by interface: it does so itself only for a netdev that goes. */
void gf_port_flush(struct gf_port *port)
{
	struct dcb_app app = { .selector = IEEE_8021QAZ_APP_SEL_DSCP };

	for (app.protocol = 0; app.protocol < ARRAY_SIZE(port->dscp_prio); app.protocol++) {
		app.priority = port->dscp_prio[app.protocol];
		dcb_ieee_delapp(port->dev, &app);
		for (app.priority = 0; app.priority < PRIORITIES; app.priority++)
			dcb_delrewr(port->dev, &app);
	}
}

static int faulted(struct net_device *dev, enum gf_op op, struct gf_port **port)
{
	*port = gf_port_of(dev);
	return *port ? gf_fault((*port)->faults, op) : -ENODEV;
}

static int get_ets(struct net_device *dev, struct ieee_ets *ets)
{
	struct gf_port *port;
	int err = faulted(dev, GF_GETETS, &port);

	if (err >= 0)
		*ets = port->ets;
	return min(err, 0);
}

static int set_ets(struct net_device *dev, struct ieee_ets *ets)
{
	struct gf_port *port;
	int i, sum = 0, err;
	bool shared = false;

	for (i = 0; i < PRIORITIES; i++) {
		if (ets->prio_tc[i] >= PRIORITIES)
			return -EINVAL;
		if (ets->tc_tsa[i] == IEEE_8021QAZ_TSA_CB_SHAPER)
			return -EOPNOTSUPP;
		if (ets->tc_tsa[i] == IEEE_8021QAZ_TSA_ETS) {
			shared = true;
			sum += ets->tc_tx_bw[i];
		}
	}
	if (shared && sum != 100)
		return -EINVAL;
	err = faulted(dev, GF_SETETS, &port);
	if (err)
		return min(err, 0);
	memcpy(port->ets.tc_tsa, ets->tc_tsa, sizeof(ets->tc_tsa));
	memcpy(port->ets.prio_tc, ets->prio_tc, sizeof(ets->prio_tc));
	for (i = 0; i < PRIORITIES; i++)
		port->ets.tc_tx_bw[i] = ets->tc_tsa[i] == IEEE_8021QAZ_TSA_ETS ? ets->tc_tx_bw[i] : 0;
	return 0;
}

static int get_maxrate(struct net_device *dev, struct ieee_maxrate *maxrate)
{
	struct gf_port *port;
	int err = faulted(dev, GF_GETMAXRATE, &port);

	if (err >= 0)
		*maxrate = port->maxrate;
	return min(err, 0);
}

static int set_maxrate(struct net_device *dev, struct ieee_maxrate *maxrate)
{
	struct gf_port *port;
	int i, err;

	for (i = 0; i < PRIORITIES; i++)
		if (maxrate->tc_maxrate[i] > MAX_RATE_KBPS)
			return -EINVAL;
	err = faulted(dev, GF_SETMAXRATE, &port);
	if (!err)
		port->maxrate = *maxrate;
	return min(err, 0);
}

static int get_pfc(struct net_device *dev, struct ieee_pfc *pfc)
{
	struct gf_port *port;
	int err = faulted(dev, GF_GETPFC, &port);

	if (err < 0)
		return err;
	pfc->pfc_cap = PRIORITIES;
	pfc->pfc_en = port->pfc_en;
	pfc->delay = port->cable_m;
	return 0;
}

static int set_pfc(struct net_device *dev, struct ieee_pfc *pfc)
{
	struct gf_port *port;
	int err = faulted(dev, GF_SETPFC, &port);

	if (err)
		return min(err, 0);
	if (pfc->pfc_en != port->pfc_en) {
		port->pfc_en = pfc->pfc_en;
		gf_flap(port);
	}
	/* mlx5 takes 0 and what is too long for "leave it" and says nothing. */
	if (pfc->delay && pfc->delay < MAX_CABLE_M)
		port->cable_m = pfc->delay;
	return 0;
}

static void trust_follows_table(struct gf_port *port)
{
	port->trust[0] = port->dscp_apps ? IEEE_8021QAZ_APP_SEL_DSCP : DCB_APP_SEL_PCP;
	port->trusts = 1;
}

static int set_app(struct net_device *dev, struct dcb_app *app)
{
	struct dcb_app old = *app;
	struct gf_port *port;
	int err;

	if (app->selector != IEEE_8021QAZ_APP_SEL_DSCP || app->protocol >= ARRAY_SIZE(port->dscp_prio))
		return -EINVAL;
	err = faulted(dev, GF_SETAPP, &port);
	if (err)
		return min(err, 0);
	old.priority = port->dscp_prio[app->protocol];
	if (!dcb_ieee_delapp(dev, &old))
		port->dscp_apps--;
	err = dcb_ieee_setapp(dev, app);
	if (!err) {
		port->dscp_prio[app->protocol] = app->priority;
		port->dscp_apps++;
	}
	trust_follows_table(port);
	return err;
}

static int del_app(struct net_device *dev, struct dcb_app *app)
{
	struct gf_port *port;
	int err;

	if (app->selector != IEEE_8021QAZ_APP_SEL_DSCP || app->protocol >= ARRAY_SIZE(port->dscp_prio))
		return -EINVAL;
	err = faulted(dev, GF_DELAPP, &port);
	if (err)
		return min(err, 0);
	if (!port->dscp_apps || app->priority != port->dscp_prio[app->protocol])
		return -ENOENT;
	err = dcb_ieee_delapp(dev, app);
	if (err)
		return err;
	port->dscp_prio[app->protocol] = 0;
	port->dscp_apps--;
	trust_follows_table(port);
	return 0;
}

static int get_buffer(struct net_device *dev, struct dcbnl_buffer *buffer)
{
	struct gf_port *port;
	int err = faulted(dev, GF_GETBUFFER, &port);

	if (err >= 0)
		*buffer = port->buffer;
	return min(err, 0);
}

static int set_buffer(struct net_device *dev, struct dcbnl_buffer *buffer)
{
	struct gf_port *port;
	u64 total = 0;
	int i, err;

	for (i = 0; i < DCBX_MAX_BUFFERS; i++) {
		total += buffer->buffer_size[i];
		if (buffer->prio2buffer[i] >= DCBX_MAX_BUFFERS)
			return -EINVAL;
	}
	if (total > BUFFER_BYTES)
		return -EINVAL;
	err = faulted(dev, GF_SETBUFFER, &port);
	if (err)
		return min(err, 0);
	memcpy(port->buffer.prio2buffer, buffer->prio2buffer, sizeof(buffer->prio2buffer));
	/* The card counts in cells. */
	for (i = 0; i < DCBX_MAX_BUFFERS; i++)
		port->buffer.buffer_size[i] = round_down(buffer->buffer_size[i], BUFFER_CELL);
	return 0;
}

static int get_apptrust(struct net_device *dev, u8 *selectors, int *count)
{
	struct gf_port *port;
	int err = faulted(dev, GF_GETAPPTRUST, &port);

	if (err < 0)
		return err;
	memcpy(selectors, port->trust, port->trusts);
	*count = port->trusts;
	return 0;
}

static int set_apptrust(struct net_device *dev, u8 *selectors, int count)
{
	struct gf_port *port;
	int err;

	if (count > (int)sizeof(port->trust))
		return -EINVAL;
	err = faulted(dev, GF_SETAPPTRUST, &port);
	if (err)
		return min(err, 0);
	memcpy(port->trust, selectors, count);
	port->trusts = count;
	return 0;
}

static int set_rewr(struct net_device *dev, struct dcb_app *app)
{
	struct gf_port *port;
	int err = faulted(dev, GF_SETREWR, &port);

	return err ? min(err, 0) : dcb_setrewr(dev, app);
}

static int del_rewr(struct net_device *dev, struct dcb_app *app)
{
	struct gf_port *port;
	int err = faulted(dev, GF_DELREWR, &port);

	return err ? min(err, 0) : dcb_delrewr(dev, app);
}

static u8 get_dcbx(struct net_device *dev)
{
	struct gf_port *port = gf_port_of(dev);

	return port ? port->dcbx : 0;
}

/* No flag gives DCBX to the firmware, anything else must be the host's. 1 is this interface's word for "no". */
static u8 set_dcbx(struct net_device *dev, u8 mode)
{
	struct gf_port *port;
	int err = faulted(dev, GF_SETDCBX, &port);

	if (err)
		return err < 0;
	if (mode && (mode & DCB_CAP_DCBX_LLD_MANAGED || !(mode & DCB_CAP_DCBX_HOST)))
		return 1;
	port->dcbx = mode ?: port->dcbx & ~DCB_CAP_DCBX_HOST;
	return 0;
}

const struct dcbnl_rtnl_ops gf_dcbnl_ops = {
	.ieee_getets = get_ets,
	.ieee_setets = set_ets,
	.ieee_getmaxrate = get_maxrate,
	.ieee_setmaxrate = set_maxrate,
	.ieee_getpfc = get_pfc,
	.ieee_setpfc = set_pfc,
	.ieee_setapp = set_app,
	.ieee_delapp = del_app,
	.getdcbx = get_dcbx,
	.setdcbx = set_dcbx,
	.dcbnl_getbuffer = get_buffer,
	.dcbnl_setbuffer = set_buffer,
	.dcbnl_getapptrust = get_apptrust,
	.dcbnl_setapptrust = set_apptrust,
	.dcbnl_setrewr = set_rewr,
	.dcbnl_delrewr = del_rewr,
};
