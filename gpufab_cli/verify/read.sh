# Prints what there is of a node and of its ports, a section each.
# Run as: sh -c SCRIPT read [clocks] [kernel] [numa] [stack] [nccl] [mpi] [limits:SERVICE,...] [packages] [PCI=PARAMETER,PARAMETER...]... [PCI]...
# It only looks. Every program has a time limit, and one that hangs is not asked again.
export LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin
hung=' '

# section NAME CODE: CODE is an exit status, "absent" (no such program or file) or "hung".
section() {
    printf '\n@@gpufab %s %s\n' "$1" "$2"
}

# probe NAME PROGRAM ARGUMENT...
probe() {
    name=$1
    shift
    case $hung in *" $1 "*)
        section "$name" hung
        return
        ;;
    esac
    if ! command -v "$1" >/dev/null; then
        section "$name" absent
        return
    fi
    output=$(timeout -k 1 5 "$@" 2>&1 </dev/null)
    code=$?
    if [ "$code" -eq 124 ] || [ "$code" -eq 137 ]; then
        hung="$hung$1 "
        code=hung
    fi
    section "$name" "$code"
    printf '%s\n' "$output"
}

# files NAME FILE...: all of them, or none.
files() {
    name=$1
    shift
    for path in "$@"; do
        if ! [ -e "$path" ]; then
            section "$name" absent
            return
        fi
    done
    probe "$name" cat "$@"
}

# The filled rows of a device's GID table: index, GID, type.
gids() {
    for path in "/sys/class/infiniband/$1/ports/1/gids/"*; do
        read -r gid <"$path" && [ "$gid" != 0000:0000:0000:0000:0000:0000:0000:0000 ] || continue
        read -r kind <"${path%/gids/*}/gid_attrs/types/${path##*/}" && printf '%s %s %s\n' "${path##*/}" "$gid" "$kind"
    done 2>/dev/null
}

rdma_cm() {
    base=/sys/kernel/config/rdma_cm
    if [ -d "$base" ]; then
        files "$1/rdma-cm" "$base/$2/ports/1/default_roce_tos" "$base/$2/ports/1/default_roce_mode"
    else
        section "$1/rdma-cm" unloaded
    fi
}

# Each file that there is: name, value.
named() {
    for path in "$@"; do
        [ -f "$path" ] && read -r value <"$path" && printf '%s %s\n' "${path##*/}" "$value"
    done 2>/dev/null
}

# Congestion control below the vendor's ecn/, or by the kernel's own driver, where the firmware has the mask of ECN.
dcqcn() {
    params=/sys/kernel/debug/mlx5/$1/cc_params
    if [ -d "$2" ]; then
        section "$1/dcqcn" 0
        named "$2/roce_rp/"* "$2/roce_np/"*
    elif [ -d "$params" ]; then
        section "$1/cc-params" 0
        named "$params/"*
        firmware "$1" "ROCE_CC_PRIO_MASK_P$((${1##*.} + 1))" "$1/cc-mask"
    fi
}

# Broadcom's bnxt_re shows it only once somebody has made the device's directory.
bnxt() {
    base=/sys/kernel/config/bnxt_re
    if [ -d "$base/$2" ]; then
        section "$1/bnxt" 0
        named "$base/$2/ports/1/cc/"*
    elif [ -d "$base" ]; then
        section "$1/bnxt" unmade
    fi
}

netdev() {
    ecn=/sys/class/net/$2/ecn
    probe "$1/link" ip -o link show dev "$2"
    probe "$1/pause" ethtool --json -a "$2"
    probe "$1/pfc" dcb pfc show dev "$2"
    probe "$1/dscp" dcb -N app show dev "$2" dscp-prio
    probe "$1/ets" dcb ets show dev "$2"
    probe "$1/buffers" dcb -j buffer show dev "$2" # the text rounds sizes
    command -v dcb >/dev/null || probe "$1/mlnx-qos" mlnx_qos -a -i "$2"
    for point in np rp; do
        enable=$ecn/roce_$point/enable
        files "$1/$point" "$enable/0" "$enable/1" "$enable/2" "$enable/3" "$enable/4" "$enable/5" "$enable/6" "$enable/7"
    done
    files "$1/cnp" "$ecn/roce_np/cnp_dscp" "$ecn/roce_np/cnp_802p_prio"
    dcqcn "$1" "$ecn"
}

rdma_device() {
    files "$1/traffic-class" "/sys/class/infiniband/$2/tc/1/traffic_class"
    rdma_cm "$1" "$2"
    bnxt "$1" "$2"
    section "$1/gids" 0
    gids "$2"
}

# The RDMA devices on a netdev, and the netdevs of the bond that it is part of: ports of a RoCE LAG share one device.
rdma_of() {
    printf '%s\n' "$output_rdma" | sed -n "s|^link \([^/]*\)/1 .* netdev $1 *\$|\1|p"
}

bonded() {
    for path in "/sys/class/net/$1/master/lower_"*; do
        [ -e "$path" ] && printf '%s\n' "${path##*/lower_}"
    done
}

# A port's bond: its name, its mode, and what it takes the port's link for.
bond() {
    [ -d "/sys/class/net/$2/master/bonding" ] || return
    master=$(readlink -f "/sys/class/net/$2/master")
    section "$1/bond" 0
    printf '%s\n' "${master##*/}"
    cat "$master/bonding/mode" "/sys/class/net/$2/bonding_slave/mii_status" 2>/dev/null
}

# What has a netdev is found from the netdevs, and what has an RDMA device from the tool that lists them.
port() {
    netdevs=$(for path in /sys/class/net/*; do
        device=$(readlink -f "$path/device")
        [ "${device##*/}" = "$1" ] && printf '%s\n' "${path##*/}"
    done)
    section "$1/netdevs" 0
    printf '%s\n' "$netdevs"
    [ "$(printf '%s\n' "$netdevs" | wc -w)" -eq 1 ] || return
    netdev "$1" "$netdevs"
    section "$1/bonded" 0
    bonded "$netdevs"
    bond "$1" "$netdevs"
    devices=$(rdma_of "$netdevs")
    [ -n "$devices" ] || devices=$(for name in $(bonded "$netdevs"); do rdma_of "$name"; done)
    [ "$(printf '%s\n' "$devices" | wc -w)" -eq 1 ] || return
    rdma_device "$1" "$devices"
}

# Every RDMA device, and every network interface of a device: fields with tabs between.
hcas() {
    for path in /sys/class/infiniband/*; do
        device=$(readlink -f "$path/device")
        read -r guid <"$path/node_guid" && read -r layer <"$path/ports/1/link_layer" &&
            read -r state <"$path/ports/1/state" && read -r rate <"$path/ports/1/rate" &&
            printf '%s\t%s\t%s\t%s\t%s\n' "${device##*/}" "$guid" "$layer" "$state" "$rate"
    done 2>/dev/null
}

# Of each physical function its address and its number of VFs, then what the kernel tells of their settings.
functions() {
    for path in /sys/class/net/*; do
        [ -e "$path/device/sriov_numvfs" ] || continue
        device=$(readlink -f "$path/device")
        read -r count <"$path/device/sriov_numvfs"
        printf '%s\t%s\t' "${device##*/}" "$count"
        timeout -k 1 5 ip -o link show dev "${path##*/}"
    done 2>/dev/null
}

interfaces() {
    for path in /sys/class/net/*; do
        [ -e "$path/device" ] || continue
        device=$(readlink -f "$path/device")
        read -r speed <"$path/speed" || speed=
        read -r mac <"$path/address" && read -r state <"$path/operstate" &&
            printf '%s\t%s\t%s\t%s\n' "${device##*/}" "$mac" "$state" "$speed"
    done 2>/dev/null
}

node() {
    units=/etc/systemd/system
    early=gpufab-restore@early.service
    late=gpufab-restore@late.service
    rule=/etc/udev/rules.d/90-gpufab-restore.rules
    probe program /usr/local/lib/gpufab/python -I /usr/local/lib/gpufab/gpufab.pyz
    files unit-files "$units/$early" "$units/$late" "$units/gpufab-restore-device@.service"
    probe units systemd-analyze verify --man=no "$units/$early" "$units/$late" "$units/gpufab-restore-device@.service"
    probe enabled systemctl is-enabled "$early" "$late"
    probe ended systemctl is-failed "$early" "$late"
    files rule "$rule"
    probe rule-verified udevadm verify --resolve-names=never "$rule"
    for path in /etc/gpufab/desired.d/*; do
        [ -e "$path" ] && files "desired/${path##*/}" "$path"
    done
}

# values NAME FILE...: what the files say, each once.
values() {
    name=$1
    shift
    if [ -e "$1" ]; then
        probe "$name" sort -u "$@"
    else
        section "$name" absent
    fi
}

# Of each idle state of any CPU: name, exit latency, whether it is forbidden.
idle() {
    for state in "$1"/cpu[0-9]*/cpuidle/state*; do
        [ -e "$state/name" ] || continue
        read -r label <"$state/name"
        read -r latency <"$state/latency"
        read -r disabled <"$state/disable"
        printf '%s %s %s\n' "$label" "$latency" "$disabled"
    done | sort -u
}

clocks() {
    base=/sys/devices/system/cpu
    probe gpus nvidia-smi -q -x
    for name in scaling_governor energy_performance_preference scaling_min_freq scaling_max_freq; do
        values "cpu/$name" "$base"/cpufreq/policy*/"$name"
    done
    values cpu/no_turbo "$base/intel_pstate/no_turbo"
    values cpu/boost "$base/cpufreq/boost"
    values cpu/pm_qos_resume_latency_us "$base"/cpu[0-9]*/power/pm_qos_resume_latency_us
    section cpu/idle 0
    idle "$base"
    values tuned /etc/tuned/active_profile
}

kernel() {
    probe cmdline cat /proc/cmdline
    probe vendor grep -m 1 vendor_id /proc/cpuinfo
    probe kernel-release uname -r
}

# Fields with tabs between. Interrupts are found from netdevs and RDMA devices; which CPUs are near a device, the kernel says.
numa() {
    for name in kernel/numa_balancing vm/zone_reclaim_mode; do
        files "numa/${name#*/}" "/proc/sys/$name"
    done
    files numa/transparent_hugepage /sys/kernel/mm/transparent_hugepage/enabled
    files numa/managed /run/gpufab/managed-irqs.json
    section numa/netdevs 0
    for path in /sys/class/net/*/device; do
        device=$(readlink -f "$path")
        name=${path%/device}
        [ -d "$path" ] && printf '%s\t%s\n' "${device##*/}" "${name##*/}"
    done
    section numa/interrupts 0
    for path in /sys/class/net/*/device/msi_irqs/* /sys/class/infiniband/*/device/msi_irqs/*; do
        device=$(readlink -f "${path%/msi_irqs/*}")
        read -r near <"$device/local_cpulist" && read -r cpus <"/proc/irq/${path##*/}/effective_affinity_list" &&
            printf '%s\t%s\t%s\t%s\n' "${device##*/}" "${path##*/}" "$near" "$cpus"
    done 2>/dev/null
    section numa/nodes 0
    for path in /sys/devices/system/node/node*; do
        read -r cpus <"$path/cpulist" && printf '%s\t%s\n' "${path##*/}" "$cpus"
    done 2>/dev/null
    section numa/hugepages 0
    for path in /sys/devices/system/node/node*/hugepages/hugepages-*; do
        node=${path%/hugepages/*}
        size=${path##*hugepages-}
        read -r count <"$path/nr_hugepages" && read -r cpus <"$node/cpulist"
        memory=$(sed -n 's/.*MemTotal: *\([0-9]*\).*/\1/p' "$node/meminfo")
        printf '%s\t%s\t%s\t%s\t%s\n' "${node##*/}" "${size%kB}" "$count" "$cpus" "$memory"
    done 2>/dev/null
    section numa/arp 0
    for path in /proc/sys/net/ipv4/conf/*; do
        read -r ignore <"$path/arp_ignore" && read -r announce <"$path/arp_announce" && read -r filter <"$path/rp_filter" &&
            printf '%s\t%s\t%s\t%s\n' "${path##*/}" "$ignore" "$announce" "$filter"
    done
    section numa/addresses 0
    ip -o -4 addr show | awk '{print $2 "\t" $4}'
    places
}

# GPUs, and where they and all NICs are in the tree of devices; then what lspci tells of functions and bridges.
places() {
    section numa/gpus 0
    for path in /sys/bus/pci/devices/*; do
        read -r kind <"$path/class" && read -r vendor <"$path/vendor"
        case $vendor$kind in 0x10de0x030000 | 0x10de0x030200) printf '%s\t\n' "${path##*/}" ;; esac
    done 2>/dev/null
    section numa/bridges 0
    for path in /sys/bus/pci/devices/*; do
        read -r kind <"$path/class" && read -r vendor <"$path/vendor" && read -r device <"$path/device"
        case $kind in 0x060400) printf '%s\t%s:%s\n' "${path##*/}" "${vendor#0x}" "${device#0x}" ;; esac
    done 2>/dev/null
    section numa/paths 0
    for path in /sys/bus/pci/devices/*; do
        device=$(readlink -f "$path")
        printf '%s\t%s\n' "${path##*/}" "${device#/sys/devices/}"
    done
    probe numa/lspci lspci -D -vv
}

# Which functions are NVSwitches, who uses the modules that GPUDirect RDMA takes, and which symbols of it there are.
stack() {
    probe driver cat /proc/driver/nvidia/version
    probe smi nvidia-smi -q -x
    section nvswitches 0
    for path in /sys/bus/pci/devices/*; do
        grep -qs '^PCI_ID=10DE:' "$path/uevent" && grep -qs '^PCI_CLASS=680' "$path/uevent" && printf '%s\n' "${path##*/}"
    done
    probe fabric-manager systemctl is-active nvidia-fabricmanager
    probe fabric-manager-version nv-fabricmanager --version
    section users 0
    for module in ib_core nvidia; do
        for path in "/sys/module/$module/holders/"*; do
            [ -e "$path" ] && printf '%s %s\n' "$module" "${path##*/}"
        done
    done
    files peermem /sys/module/nvidia_peermem/version
    probe symbols grep -owE 'ib_register_peer_memory_client|ib_umem_dmabuf_get' /proc/kallsyms
    probe release uname -r
}

# Locked memory: of this login in KiB; of each service as it starts next, and of its main process in bytes.
limits() {
    section memlock/login 0
    printf '%s %s\n' "$(ulimit -Sl)" "$(ulimit -Hl)"
    IFS=,
    for service in $1; do
        unset IFS
        output=
        probe "memlock/unit/$service" systemctl show --property=LoadState,MainPID,LimitMEMLOCK "$service"
        pid=$(printf '%s\n' "$output" | sed -n 's/^MainPID=//p')
        [ "${pid:-0}" -eq 0 ] || probe "memlock/now/$service" prlimit -p "$pid" --memlock --raw --noheadings -o SOFT,HARD
    done
    unset IFS
}

# Of each network function of the vendor's its address, its driver, and the version that the driver itself tells.
drivers() {
    for path in /sys/bus/pci/devices/*; do
        read -r vendor <"$path/vendor" && read -r class <"$path/class" || continue
        case $vendor$class in 0x15b30x02*) ;; *) continue ;; esac
        driver=$(readlink "$path/driver") # with -f a link that is not there would be its own name
        set -- "$path"/net/*
        version=
        [ -e "$1" ] && version=$(timeout -k 1 5 ethtool -i "${1##*/}" | sed -n 's/^version: *//p')
        printf '%s\t%s\t%s\n' "${path##*/}" "${driver##*/}" "$version"
    done 2>/dev/null
}

# Every package with its version, as the package manager lists them; what is held; keys; where NCCL is loaded from.
packages() {
    section drivers 0
    drivers
    probe ofed-info ofed_info -s
    probe kernel-release uname -r
    if command -v dpkg-query >/dev/null && ! [ -e /etc/redhat-release ]; then
        probe packages dpkg-query -W -f '${db:Status-Abbrev} ${Package} ${Version} ${Architecture}\n'
        probe architecture dpkg --print-architecture
        probe held apt-mark showhold
    else
        probe packages rpm -qa --qf 'ii  %{NAME} %{VERSION}-%{RELEASE}\n'
        files held /etc/dnf/plugins/versionlock.list
    fi
    for set in ofed nccl; do
        for path in "/etc/apt/keyrings/gpufab-$set.asc" "/etc/pki/rpm-gpg/gpufab-$set.asc"; do
            [ -e "$path" ] && files "key/$set" "$path"
        done
    done
    section nccl-library 0
    library=$(ldconfig -p 2>/dev/null | sed -n 's|.*libnccl\.so\.2 .*=> ||p' | head -n 1)
    [ -n "$library" ] && readlink -f "$library"
}

# The name of each RDMA device with a PCI address before it.
names() {
    section names 0
    for path in /sys/class/infiniband/*; do
        device=$(readlink -f "$path/device")
        [ -e "$path" ] && printf '%s %s\n' "${device##*/}" "${path##*/}"
    done
}

# What NCCL is told: on the node, in enroot containers, by environment file, and by Slurm's task prolog as it runs.
nccl() {
    names
    files nccl/conf /etc/nccl.conf
    files nccl/enroot /etc/enroot/environ.d/50-gpufab-nccl.env
    files nccl/env-file /etc/gpufab/nccl.env
    probe nccl/slurm /etc/slurm/gpufab-task-prolog.sh
    section nccl/libraries 0
    for library in /usr/lib/*-linux-gnu /usr/lib64 /usr/local/lib; do
        for library in "$library"/libnccl.so.*.*.*; do
            [ -e "$library" ] && printf '%s\n' "${library##*/libnccl.so.}"
        done
    done
}

# What UCX and each Open MPI are told, and whether the program that binds ranks runs.
mpi() {
    names
    files mpi/ucx /etc/ucx/ucx.conf
    section mpi/pml 0
    for library in /usr/lib/*-linux-gnu /usr/lib64/openmpi/lib /opt/hpcx/ompi/lib /usr/mpi/gcc/openmpi*/lib64; do
        case $library in
            /usr/lib/*) path=/etc/openmpi ;;
            /usr/lib64/*) path=/etc/openmpi-$(uname -m) ;;
            *) path=${library%/*}/etc ;;
        esac
        path=$path/openmpi-mca-params.conf
        set -- "$library"/libmpi.so.40*
        [ -e "$1" ] && printf '%s %s\n' "$path" "$(sed -n 's/^ *pml *= *//p' "$path" 2>/dev/null | tail -n 1)"
    done
    section mpi/libucp 0
    ls -d /usr/lib/*-linux-gnu/libucp.so.0 /usr/lib64/libucp.so.0 /usr/local/lib/libucp.so.0 \
        /opt/hpcx/ucx/lib/libucp.so.0 2>/dev/null
    probe mpi/bind /usr/local/bin/gpufab-bind --help
}

# firmware PCI PARAMETER,... [SECTION]: parameters of the card, by whichever of the two programs there is.
firmware() {
    tool=mstconfig
    command -v mlxconfig >/dev/null && tool=mlxconfig
    set -f # names of elements of arrays have brackets
    IFS=,
    # shellcheck disable=SC2086
    set -- "${3:-firmware/$1}" "$tool" -d "$1" -e q $2
    unset IFS
    set +f
    probe "$@"
}

# Of each RDMA device: PCI address, PSID, firmware version.
versions() {
    for path in /sys/class/infiniband/*; do
        device=$(readlink -f "$path/device")
        read -r psid <"$path/board_id" && read -r version <"$path/fw_ver" &&
            printf '%s\t%s\t%s\n' "${device##*/}" "$psid" "$version"
    done 2>/dev/null
}

section uid 0
id -u
section functions 0
functions
section hcas 0
hcas
section interfaces 0
interfaces
section versions 0
versions
probe rdma rdma link show
output_rdma=$output
node
for asked in "$@"; do
    case $asked in
        clocks) clocks ;;
        kernel) kernel ;;
        stack) stack ;;
        numa) numa ;;
        nccl) nccl ;;
        mpi) mpi ;;
        limits:*) limits "${asked#limits:}" ;;
        packages) packages ;;
        *=*) firmware "${asked%%=*}" "${asked#*=}" ;;
        *) port "$asked" ;;
    esac
done
section end 0
