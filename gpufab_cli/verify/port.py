"""What was read of one port, and the reasons why some of it may not be known."""

from gpufab_cli.verify import parsers
from gpufab_cli.verify.expected import Port
from gpufab_cli.verify.reading import Reading, Section, UnreadableError


class PortReading:
    """What was read of one port."""

    def __init__(self, reading: Reading, port: Port) -> None:
        self._reading, self._port = reading, port

    def names(self) -> list[str]:
        """The netdevs of the port's PCI function."""
        return self._reading.section(f"{self._port.pci}/netdevs").require("sysfs").split()

    @property
    def netdev(self) -> str:
        """The one netdev."""
        names = self.names()
        if len(names) != 1:
            raise UnreadableError(f"{self._port.pci} has {len(names)} netdevs")
        return names[0]

    def text(self, name: str, tool: str) -> str:
        """The text of a section about the netdev, printed by a tool that may be missing."""
        _ = self.netdev
        return self._reading.section(f"{self._port.pci}/{name}").require(tool)

    def rdma_links(self) -> list[tuple[str, str, str]]:
        """(name, state, physical state) of the RDMA devices on the netdev, or on its bond: a RoCE LAG has one."""
        text = self._reading.section("rdma").require("rdma link")
        own = parsers.rdma_links(text, self.netdev)
        bonded = self.text("bonded", "sysfs").split()
        return own or [link for netdev in bonded for link in parsers.rdma_links(text, netdev)]

    def rdma_section(self, name: str) -> Section:
        """A section about the one RDMA device."""
        links = self.rdma_links()
        if len(links) != 1:
            raise UnreadableError(f"{len(links)} RDMA devices on the port")
        return self._reading.section(f"{self._port.pci}/{name}")
