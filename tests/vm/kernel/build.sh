#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Build the kernel modules of the VM tests. Run inside a Debian 13 with linux-headers-amd64 and linux-source-6.12.
#
#   build.sh SOURCE_DIR OUT_DIR     SOURCE_DIR is left as it is; OUT_DIR gets mlx5_core.ko and the others
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@"
set -euo pipefail

source_dir=$(realpath "$1")
out_dir=$(realpath -m "$2")
headers=(/lib/modules/*/build)
[ "${#headers[@]}" = 1 ] && [ -e "${headers[0]}" ] ||
    { echo "build.sh: the headers of one kernel are needed, there are: ${headers[*]}" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$source_dir"/*.[ch] "$source_dir/Makefile" "$work"
tar -xJf /usr/src/linux-source-6.12.tar.xz -C "$work" --strip-components=5 \
    linux-source-6.12/drivers/net/ethernet/intel/igb

# Replace OLD by NEW in a file of igb. OLD must be there just once: another release of the source fails here.
swap() {
    local file=$work/igb/$1 old=$2 new=$3 text
    text=$(cat "$file")
    [ "$(grep -cF -- "$old" "$file")" = 1 ] || { echo "build.sh: igb/$1 has not exactly one: $old" >&2; exit 1; }
    printf '%s\n' "${text/"$old"/"$new"}" >"$file"
}

# The name by which gpufab knows a ConnectX.
swap Makefile 'obj-$(CONFIG_IGB) += igb.o' 'obj-m := mlx5_core.o'
swap Makefile 'igb-y :=' 'mlx5_core-y :='
swap igb_main.c 'igb_driver_name[] = "igb"' 'igb_driver_name[] = "mlx5_core"'
# Pause as mlx5 has it: on from the factory, never negotiated, and what was set stands. igb on QEMU always negotiates
# "on", so `ethtool -A … rx off tx off` changed nothing.
swap igb_main.c 'adapter->fc_autoneg = true;' 'adapter->fc_autoneg = false;'
swap igb_main.c 'hw->fc.requested_mode = e1000_fc_default;' 'hw->fc.requested_mode = e1000_fc_full;'
swap igb_ethtool.c 'adapter->fc_autoneg = pause->autoneg;' 'if (pause->autoneg)
		return -EINVAL;'
swap e1000_mac.c 'if ((hw->phy.media_type == e1000_media_type_copper) && mac->autoneg) {' \
    'if ((hw->phy.media_type == e1000_media_type_copper) && mac->autoneg && false) {'

# No type information for tracing (BTF): it costs a third of the time and most of the size.
make -C "${headers[0]}" M="$work" -j"$(nproc)" CONFIG_DEBUG_INFO_BTF_MODULES= CONFIG_DEBUG_INFO_BTF= modules
mkdir -p "$out_dir"
find "$work" -name '*.ko' -exec cp {} "$out_dir" \;
for module in mlx5_core gpufab_dcb gpufab_ib nvidia; do
    [ -f "$out_dir/$module.ko" ] || { echo "build.sh: $module.ko was not built" >&2; exit 1; }
    strip --strip-debug "$out_dir/$module.ko"
done
