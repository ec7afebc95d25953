"""What a dataclass cannot say of its module and role: a few words and an example."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """The words of one feature.

    Attributes:
        title: one line without a full stop.
        text: paragraphs.
        example: the module's options in an example task, as YAML.
    """

    feature: str
    title: str
    text: tuple[str, ...]
    example: str


_PAGES: tuple[Page, ...] = (
    Page(
        feature="node",
        title="What a node needs so that every other feature survives a reboot",
        text=(
            "Keeps gpufab's own program, systemd units and udev rule on the node. They bring back at boot, and when a "
            "driver is loaded anew, what the other features set: most of it the hardware forgets.",
            "Removes kept wishes of features that are no longer managed. Needs no consent: traffic is not touched.",
        ),
        example="features: [roce]\n",
    ),
    Page(
        feature="roce",
        title="Lossless, fair RoCE ports",
        text=(
            "Makes one lossless class out of what must agree on a port: global pause off, trust in DSCP, the DSCP map, "
            "PFC, ETS, ECN, CNP marking and the defaults of RDMA-CM. One port is one step: it is made whole and read "
            "back, or undone.",
            "A step that interrupts traffic or the link is made only with consent, on an idle node; else it is "
            "reported as refused. MTU, addresses and links are the site's own and only checked.",
            "A value that cannot be read is unknown: nothing is written over it, and a run that is no dry run fails.",
        ),
        example="""\
qos:
  dcqcn:
    # 64 numbers: the priority of each DSCP
    dscp_priority: "{{ [0] * 26 + [3] + [0] * 21 + [6] + [0] * 15 }}"
    pfc: [3]
    ecn: [3]
    cnp_dscp: 48
    cnp_priority: 6
ports:
  - {rail: compute/0, pci: "0000:18:00.0", qos: dcqcn}
allow: [traffic, link-flap]
""",
    ),
    Page(
        feature="links",
        title="InfiniBand and Ethernet ports that are looked at only",
        text=(
            "Reports ports that are missing, moved, replaced, down, slower than declared or of another link layer. "
            "Nothing is ever set there: QoS of InfiniBand is the subnet manager's, other Ethernet is the site's.",
        ),
        example="""\
ports:
  - {rail: compute/0, pci: "0000:18:00.0", transport: infiniband, speed_gbps: 400}
""",
    ),
    Page(
        feature="kernel",
        title="Arguments that the kernel is started with",
        text=(
            "Keeps arguments such as the IOMMU's mode in a file of the boot loader's own and has it make its "
            "configuration anew. They run from the next boot on; until then they are pending.",
            "Where `kernel_acs` is given, the node computes pci=config_acs from its PCI tree, so that the kernel sets "
            "access control services of bridges by itself; on kernels that do not have that, it is left out.",
            "Nothing is rebooted here, and nobody else's arguments are touched.",
        ),
        example="iommu: passthrough\n",
    ),
    Page(
        feature="ofed",
        title="The RDMA stack, of one version and held at it",
        text=(
            "Installs DOCA-OFED, MLNX_OFED or the distribution's own stack. A vendor's comes from a signed repository "
            "whose key is pinned, in one version, pinned and held with everything that comes with it.",
            "Before anything is touched a run rehearses it: it reads the sources, resolves, and downloads with all "
            "signatures and hashes checked, in folders of its own. What cannot be done whole is refused in one line.",
            "Nothing is built or installed for a kernel other than the one that will run. Services are not restarted. "
            "A vendor's packages come, change or go, and drivers are loaded anew, only with consent to driver-reload, "
            "link-flap, service-restart and traffic; with mlnx-fw-updater also to firmware-reset.",
        ),
        example="""\
stack: doca-ofed
version: 3.2.0
repository:
  url: https://mirror.example/doca/3.2.0/{release}/{arch}
  key: "{{ lookup('file', 'doca.asc') }}"
  fingerprint: 0123456789ABCDEF0123456789ABCDEF01234567
""",
    ),
    Page(
        feature="nccl",
        title="NCCL, of one version and one CUDA",
        text=(
            "Installs NCCL's library and headers as one pair: of the same version and the same CUDA, pinned and held, "
            "so that no later build for another CUDA replaces one of them. Or the distribution's own.",
            "A framework that brings its own NCCL does not use this one: that is reported.",
            "A run rehearses everything first, as that of the ofed module does.",
        ),
        example="""\
version: 2.27.5
cuda: "12.9"
repository:
  url: https://mirror.example/cuda/repos/{platform}/{arch}
  key: "{{ lookup('file', 'cuda.asc') }}"
  fingerprint: 0123456789ABCDEF0123456789ABCDEF01234567
""",
    ),
    Page(
        feature="firmware",
        title="Settings of NIC firmware",
        text=(
            "Sets parameters of the cards' firmware for the next reset, through mlxconfig or mstconfig. What the "
            "firmware has taken but does not run yet is pending.",
            "A card is reset (mlxfwreset, mstfwreset) only with consent to firmware-reset, link-flap and traffic, and "
            "to vf-loss where it has VFs, which are taken away first. A value that does not run after its reset is a "
            "failure, and no further reset is made for it. Nothing is rebooted here.",
            "Versions are only checked, never burned.",
        ),
        example="""\
ports:
  - rail: compute/0
    pci: "0000:18:00.0"
    parameters: {SRIOV_EN: "True", NUM_OF_VFS: "8"}
allow: [firmware-reset, link-flap, traffic]
""",
    ),
    Page(
        feature="sriov",
        title="SR-IOV virtual functions",
        text=(
            "Makes as many virtual functions on a port as are declared and sets what the port keeps of each: address, "
            "VLAN, rates, trust and link state.",
            "A number of VFs can only be changed by removing all of them: that needs consent to vf-loss, and is not "
            "done while one is in use. A driver takes a VF only once its address is set.",
            "A port in switchdev mode is left alone.",
        ),
        example="""\
ports:
  - rail: compute/0
    pci: "0000:18:00.0"
    vfs:
      - {mac: "02:00:00:00:18:10", trust: true, spoofchk: false}
      - {mac: "02:00:00:00:18:11", trust: true, spoofchk: false}
allow: [traffic, vf-loss]
""",
    ),
    Page(
        feature="dvfs",
        title="Clocks and power of GPUs and CPUs",
        text=(
            "Sets persistence, power limit, locked clocks, ECC and multi-instance mode of each GPU, and governor, "
            "frequencies, boost and idle states of the CPUs.",
            "Locked clocks cannot be read back from a GPU: gpufab knows them from its own record on the node.",
        ),
        example="""\
policies:
  training: {persistence: true, power_limit_w: 650, graphics_mhz: [1200, 1980]}
gpus:
  - {pci: "0000:1b:00.0", policy: training}
cpu: {governor: performance, max_cstate_us: 2}
""",
    ),
    Page(
        feature="gpu_stack",
        title="GPU driver, Fabric Manager and GPUDirect RDMA that are looked at only",
        text=(
            "Reports a driver whose kernel module and libraries differ, which a reboot or a repair of the packages "
            "brings together; a Fabric Manager of another version or not running where there are NVSwitches; and "
            "GPUDirect RDMA that does not work, by nvidia_peermem or by DMA-BUF, with the reason.",
            "Nothing is ever installed, loaded or started here.",
        ),
        example="""\
driver: 570.86.15
gpudirect: any
""",
    ),
    Page(
        feature="limits",
        title="Locked memory of logins and of the services that start jobs",
        text=(
            "Keeps a file for PAM's limits of logins, and a systemd drop-in for each of the services that the node "
            "has. What runs is read from the kernel, not from files.",
            "A service that runs with another limit needs a restart, which is pending until there is consent to "
            "service-restart.",
        ),
        example="""\
memlock: unlimited
services: [slurmd, sshd, containerd]
allow: [service-restart]
""",
    ),
    Page(
        feature="numa",
        title="Interrupts, memory and PCI Express next to GPUs and NICs",
        text=(
            "Places the interrupts of RDMA ports on CPUs of the port's own NUMA node and tells irqbalance to leave "
            "them. Sets NUMA balancing, zone reclaim, transparent and per-node huge pages, ARP settings of ports that "
            "share a subnet, and the largest PCI Express read request of ports.",
            "ACS of PCI Express bridges is computed for each from its place in the tree and from who uses the devices; "
            "setting it needs consent to traffic, as do ARP settings that get stricter. All is restored at boot.",
        ),
        example="""\
irq: local
irqbalance: true
balancing: false
max_read_request: 4096
use: bare-metal
set_acs: true
ports:
  - {rail: compute/0, pci: "0000:18:00.0", position: 0}
allow: [traffic]
""",
    ),
    Page(
        feature="nccl_env",
        title="What NCCL is told on the node and in containers",
        text=(
            "Keeps gpufab's lines of /etc/nccl.conf: the rails' RDMA devices by their exact names on this node, the "
            "traffic class of the fabric's lossless class, socket interfaces and tuning that the installed release "
            "knows. The same values go to enroot, a Slurm task prolog or an environment file where asked for.",
            "Lines of the site stay. Where they say otherwise the file is left alone, unless takeover is given.",
            "A traffic class is announced only once the NICs' maps lead it to the lossless priority; until then the "
            "file waits. Nothing here touches traffic: NCCL reads the file when a job starts.",
        ),
        example="""\
rails:
  - {rail: compute/0, pci: "0000:18:00.0", transport: roce}
roce: {traffic_class: 106, priority: 3, pfc: true}
socket_interfaces: [eno1]
variables: {NCCL_IB_QPS_PER_CONNECTION: "4"}
containers: [enroot]
""",
    ),
    Page(
        feature="mpi",
        title="What Open MPI and UCX are told, and the program that binds ranks",
        text=(
            "Keeps gpufab's lines of openmpi-mca-params.conf, prte-mca-params.conf and ucx.conf: UCX over the rails' "
            "devices, in the same traffic class as NCCL's, and how ranks are bound. Each Open MPI that is found gets "
            "what its release knows.",
            "Installs gpufab-bind, which runs a program on the CPUs and the memory next to its rank's GPU.",
        ),
        example="""\
implementation: openmpi
rails:
  - {rail: compute/0, pci: "0000:18:00.0", transport: roce}
roce: {traffic_class: 106, priority: 3, pfc: true}
tls: [rc, cuda, sm, self]
binding: none
""",
    ),
)
PAGES = {page.feature: page for page in _PAGES}
"""The page of each feature."""
