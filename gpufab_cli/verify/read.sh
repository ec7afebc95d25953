# Prints what there is of a node and of its ports, a section each.
# Run as: sh -c SCRIPT read [clocks] [kernel] [numa] [stack] [nccl] [mpi] [limits:SERVICE,...] [packages] [PCI=PARAMETER,PARAMETER...]... [PCI]...
# It only looks. Every program has a time limit, and one that hangs is not asked again.
export LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin
hung=' '
tab=$(printf '\t')

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

# listed NAME: a section of what comes on stdin. A list without an entry says so: one that says nothing was not read.
listed() {
    section "$1" 0
    awk '{ print } END { if (!NR) print "none" }'
}

# Takes paths, each with a NUL behind it. Of each file that can be read: path, tab, first line. Never read a file with
# the shell's `read`: that asks for a byte at a time, to which a file such as cpulist of /sys answers with its end.
first_lines() {
    xargs -0 -r grep -asHZ -d skip -m 1 '' -- 2>/dev/null | tr '\000' '\t'
}

# table FILE,... FOLDER...: of each folder that there is its path, and the first line of each of the files, or "?" where
# it cannot be read; tabs between.
table() {
    names=$1
    shift
    {
        for folder in "$@"; do
            [ -d "$folder" ] && printf '%s\n' "$folder"
        done
        IFS=,
        for folder in "$@"; do
            for name in $names; do
                printf '%s\0' "$folder/$name"
            done
        done | first_lines
    } | awk -v names="$names" '
        !/\t/ { folder[++count] = $0; next }
        { tab = index($0, "\t"); value[substr($0, 1, tab - 1)] = substr($0, tab + 1) }
        END {
            last = split(names, name, ",")
            for (row = 1; row <= count; row++) {
                printf "%s", folder[row]
                for (column = 1; column <= last; column++) {
                    file = folder[row] "/" name[column]
                    printf "\t%s", (file in value) ? value[file] : "?"
                }
                print ""
            }
        }'
}

# Rows of a table with the folder's name in place of its path.
by_name() {
    awk '{ tab = index($0, "\t"); path = substr($0, 1, tab - 1); sub(/.*\//, "", path); print path substr($0, tab) }'
}

# Rows of a table, of folders that have a device: its address in place of the path.
by_device() {
    while IFS= read -r row; do
        path=${row%%"$tab"*}
        [ -e "$path/device" ] || continue
        device=$(readlink -f "$path/device")
        printf '%s\t%s\n' "${device##*/}" "${row#*"$tab"}"
    done
}

# The filled rows of a device's GID table: index, GID, type.
gids() {
    printf '%s\0' "/sys/class/infiniband/$1/ports/1/gids/"* "/sys/class/infiniband/$1/ports/1/gid_attrs/types/"* |
        first_lines | awk -F '\t' '
            { row = $1; sub(/.*\//, "", row) }
            $1 ~ /\/types\/[0-9]+$/ { kind[row] = $2; next }
            $2 !~ /^[0:]*$/ { gid[row] = $2; order[++count] = row }
            END { for (n = 1; n <= count; n++) print order[n], gid[order[n]], (order[n] in kind) ? kind[order[n]] : "?" }'
}

rdma_cm() {
    base=/sys/kernel/config/rdma_cm
    if [ -d "$base" ]; then
        files "$1/rdma-cm" "$base/$2/ports/1/default_roce_tos" "$base/$2/ports/1/default_roce_mode"
    else
        section "$1/rdma-cm" unloaded
    fi
}

# Each file that can be read: name, value.
named() {
    printf '%s\0' "$@" | first_lines | by_name | tr '\t' ' '
}

# Congestion control below the vendor's ecn/, or by the kernel's own driver, where the firmware has the mask of ECN.
dcqcn() {
    params=/sys/kernel/debug/mlx5/$1/cc_params
    if [ -d "$2" ]; then
        named "$2/roce_rp/"* "$2/roce_np/"* | listed "$1/dcqcn"
    elif [ -d "$params" ]; then
        named "$params/"* | listed "$1/cc-params"
        firmware "$1" "ROCE_CC_PRIO_MASK_P$((${1##*.} + 1))" "$1/cc-mask"
    fi
}

# Broadcom's bnxt_re shows it only once somebody has made the device's directory.
bnxt() {
    base=/sys/kernel/config/bnxt_re
    if [ -d "$base/$2" ]; then
        named "$base/$2/ports/1/cc/"* | listed "$1/bnxt"
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
    gids "$2" | listed "$1/gids"
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
    if ! [ -d "/sys/class/net/$2/master/bonding" ]; then
        section "$1/bond" absent
        return
    fi
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
    printf '%s\n' "$netdevs" | sed '/^$/d' | listed "$1/netdevs"
    [ "$(printf '%s\n' "$netdevs" | wc -w)" -eq 1 ] || return
    netdev "$1" "$netdevs"
    bonded "$netdevs" | listed "$1/bonded"
    bond "$1" "$netdevs"
    devices=$(rdma_of "$netdevs")
    [ -n "$devices" ] || devices=$(for name in $(bonded "$netdevs"); do rdma_of "$name"; done)
    [ "$(printf '%s\n' "$devices" | wc -w)" -eq 1 ] || return
    rdma_device "$1" "$devices"
}

# Every RDMA device: address, GUID, link layer, state, rate.
hcas() {
    table node_guid,ports/1/link_layer,ports/1/state,ports/1/rate /sys/class/infiniband/* | by_device
}

# Every network interface of a device: address, MAC address, state, speed.
interfaces() {
    table address,operstate,speed /sys/class/net/* | by_device
}

# Of each network function its address and its number of VFs, or "none" where it can have none, then what the kernel
# tells of their settings.
functions() {
    for path in /sys/class/net/*; do
        [ -e "$path/device" ] || continue
        device=$(readlink -f "$path/device")
        if ! [ -e "$path/device/sriov_numvfs" ]; then
            printf '%s\tnone\t\n' "${device##*/}"
            continue
        fi
        printf '%s\t%s\t' "${device##*/}" "$(cat "$path/device/sriov_numvfs" 2>/dev/null)"
        timeout -k 1 5 ip -o link show dev "${path##*/}" 2>/dev/null || echo
    done
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
    section access 0
    access | sort -u
}

# Kind, mode and path of what jobs read or run in their users' names, and of the folders above it.
access() {
    for path in /etc/nccl.conf /etc/gpufab/nccl.env /etc/enroot/environ.d/50-gpufab-nccl.env \
        /etc/slurm/gpufab-task-prolog.sh /etc/ucx/ucx.conf /etc/openmpi*/openmpi-mca-params.conf \
        /etc/openmpi*/prte-mca-params.conf /usr/local/bin/gpufab-bind /usr/local/lib/gpufab/gpufab.pyz; do
        [ -e "$path" ] || continue
        while [ -n "$path" ]; do
            stat -Lc '%A %n' "$path"
            path=${path%/*}
        done
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

# Of each idle state of any CPU: name, exit latency, whether it is forbidden; tabs between.
idle() {
    table name,latency,disable "$1"/cpu[0-9]*/cpuidle/state* | cut -f 2- | sort -u
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
    idle "$base" | listed cpu/idle
    values tuned /etc/tuned/active_profile
}

kernel() {
    probe cmdline cat /proc/cmdline
    probe vendor grep -m 1 vendor_id /proc/cpuinfo
    probe kernel-release uname -r
}

# The interrupts of network and RDMA devices: address, number, CPUs near the device, CPUs that take it. "?": not told.
interrupts() {
    for path in /sys/class/net/*/device /sys/class/infiniband/*/device; do
        [ -d "$path/msi_irqs" ] && readlink -f "$path"
    done | sort -u | while IFS= read -r device; do
        near=$(cat "$device/local_cpulist" 2>/dev/null) || near='?'
        set --
        for path in "$device/msi_irqs/"*; do
            set -- "$@" "/proc/irq/${path##*/}"
        done
        table effective_affinity_list "$@" | by_name | sed "s|^|${device##*/}$tab|; s|\($tab[0-9]*\)$tab|\1$tab$near$tab|"
    done
}

# stacked INTERFACE ADDRESS: the address and the interface, then those on top of it, such as bonds and VLANs.
stacked() {
    printf '%s\t%s\n' "$2" "${1##*/}"
    for upper in "$1"/upper_*; do
        [ -e "$upper" ] && stacked "/sys/class/net/${upper##*/upper_}" "$2"
    done
}

# Every network interface of a device, and those stacked on it: address, name.
netdevs() {
    for path in /sys/class/net/*/device; do
        [ -d "$path" ] || continue
        device=$(readlink -f "$path")
        stacked "${path%/device}" "${device##*/}"
    done
}

# Of each NUMA node its name, its CPUs and its memory in KiB.
nodes() {
    table cpulist,meminfo /sys/devices/system/node/node[0-9]* | by_name |
        sed 's/Node [0-9]* MemTotal: *\([0-9]*\) kB.*/\1/'
}

# Of each NUMA node and size in KiB the number of huge pages.
hugepages() {
    for node in /sys/devices/system/node/node[0-9]*; do
        table nr_hugepages "$node/hugepages/"hugepages-* | by_name |
            sed "s/^hugepages-\([0-9]*\)kB/${node##*/}$tab\1/"
    done
}

# Fields with tabs between. Interrupts are found from netdevs and RDMA devices; which CPUs are near a device, the kernel says.
numa() {
    for name in kernel/numa_balancing vm/zone_reclaim_mode; do
        files "numa/${name#*/}" "/proc/sys/$name"
    done
    files numa/transparent_hugepage /sys/kernel/mm/transparent_hugepage/enabled
    files numa/managed /run/gpufab/managed-irqs.json
    netdevs | listed numa/netdevs
    interrupts | listed numa/interrupts
    nodes | listed numa/nodes
    hugepages | listed numa/hugepages
    table arp_ignore,arp_announce,rp_filter /proc/sys/net/ipv4/conf/* | by_name | listed numa/arp
    probe numa/addresses ip -o -4 addr show
    places
}

# What each PCI function is (class, vendor, device) and where it is in the tree of devices; then what lspci tells.
places() {
    table class,vendor,device /sys/bus/pci/devices/* | by_name | listed numa/functions
    for path in /sys/bus/pci/devices/*; do
        [ -e "$path" ] && printf '%s\0' "$path"
    done | xargs -0 -r readlink -f | awk '
        { path = $0; sub(/^.*\/devices\//, "", path); sub(/.*\//, ""); print $0 "\t" path }' | listed numa/paths
    probe numa/lspci lspci -D -vv
}

# Each PCI function with its class and its ids as the kernel names them to udev.
uevents() {
    printf '%s\0' /sys/bus/pci/devices/*/uevent | xargs -0 -r grep -asHZ '^PCI_[CI][LD][A=]' -- 2>/dev/null | tr '\000' '\t' |
        awk -F '\t' '
            { path = $1; sub(/\/uevent$/, "", path); sub(/.*\//, "", path) }
            !(path in seen) { seen[path] = 1; order[++count] = path }
            $2 ~ /^PCI_CLASS=/ { class[path] = substr($2, 11) }
            $2 ~ /^PCI_ID=/ { id[path] = substr($2, 8) }
            END { for (n = 1; n <= count; n++) print order[n] "\t" class[order[n]] "\t" id[order[n]] }'
}

# Which PCI functions there are, who uses the modules that GPUDirect RDMA takes, and which symbols of it there are.
stack() {
    probe driver cat /proc/driver/nvidia/version
    probe smi nvidia-smi -q -x
    uevents | listed uevents
    probe fabric-manager systemctl is-active nvidia-fabricmanager
    probe fabric-manager-version nv-fabricmanager --version
    for module in ib_core nvidia; do
        for path in "/sys/module/$module/holders/"*; do
            [ -e "$path" ] && printf '%s %s\n' "$module" "${path##*/}"
        done
    done | listed users
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
    table vendor,class /sys/bus/pci/devices/* | while IFS= read -r row; do
        path=${row%%"$tab"*}
        case ${row#*"$tab"} in "0x15b3${tab}0x02"*) ;; *) continue ;; esac
        driver=$(readlink "$path/driver") # with -f a link that is not there would be its own name
        set -- "$path"/net/*
        version=
        [ -e "$1" ] && version=$(timeout -k 1 5 ethtool -i "${1##*/}" | sed -n 's/^version: *//p')
        printf '%s\t%s\t%s\n' "${path##*/}" "${driver##*/}" "$version"
    done 2>/dev/null
}

# Every package with its version, as the package manager lists them; what is held; keys; where NCCL is loaded from.
packages() {
    drivers | listed drivers
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
    library=$(ldconfig -p 2>/dev/null | sed -n 's|.*libnccl\.so\.2 .*=> ||p' | head -n 1)
    { [ -z "$library" ] || readlink -f "$library"; } | listed nccl-library
}

# The name of each RDMA device with a PCI address before it.
names() {
    for path in /sys/class/infiniband/*; do
        device=$(readlink -f "$path/device")
        [ -e "$path" ] && printf '%s %s\n' "${device##*/}" "${path##*/}"
    done | listed names
}

# What NCCL is told: on the node, in enroot containers, by environment file, and by Slurm's task prolog as it runs.
nccl() {
    names
    files nccl/conf /etc/nccl.conf
    files nccl/enroot /etc/enroot/environ.d/50-gpufab-nccl.env
    files nccl/env-file /etc/gpufab/nccl.env
    probe nccl/slurm /etc/slurm/gpufab-task-prolog.sh
    for library in /usr/lib/*-linux-gnu /usr/lib64 /usr/local/lib; do
        for library in "$library"/libnccl.so.*.*.*; do
            [ -e "$library" ] && printf '%s\n' "${library##*/libnccl.so.}"
        done
    done | listed nccl/libraries
}

# What UCX and each Open MPI are told, and whether the program that binds ranks runs.
mpi() {
    names
    files mpi/ucx /etc/ucx/ucx.conf
    for library in /usr/lib/*-linux-gnu /usr/lib64/openmpi/lib /opt/hpcx/ompi/lib /usr/mpi/gcc/openmpi*/lib64; do
        case $library in
            /usr/lib/*) path=/etc/openmpi ;;
            /usr/lib64/*) path=/etc/openmpi-$(uname -m) ;;
            *) path=${library%/*}/etc ;;
        esac
        path=$path/openmpi-mca-params.conf
        set -- "$library"/libmpi.so.40*
        [ -e "$1" ] && printf '%s %s\n' "$path" "$(sed -n 's/^ *pml *= *//p' "$path" 2>/dev/null | tail -n 1)"
    done | listed mpi/pml
    ls -d /usr/lib/*-linux-gnu/libucp.so.0 /usr/lib64/libucp.so.0 /usr/local/lib/libucp.so.0 \
        /opt/hpcx/ucx/lib/libucp.so.0 2>/dev/null | listed mpi/libucp
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
    table board_id,fw_ver /sys/class/infiniband/* | by_device
}

# ---- from here on it looks; above are functions alone ----
for tool in awk cat cut grep readlink sed sort timeout tr wc xargs; do
    if ! command -v "$tool" >/dev/null; then
        printf 'there is no %s, without which nothing can be looked at\n' "$tool"
        exit 1
    fi
done
section uid 0
id -u
functions | listed functions
hcas | listed hcas
interfaces | listed interfaces
versions | listed versions
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
