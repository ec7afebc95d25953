"""GPU models by the names that datasheets use, with their PCI device ids (vendor 10de) as pci.ids lists them.

One name may stand for several ids only if they are told apart by nothing that matters here.
"""

MODELS = {
    "V100-SXM2-16GB": "0x1db1",
    "V100-SXM2-32GB": "0x1db5",
    "V100-PCIE-16GB": "0x1db4",
    "V100-PCIE-32GB": "0x1db6",
    "T4": "0x1eb8",
    "A100-SXM4-40GB": "0x20b0",
    "A100-SXM4-80GB": "0x20b2",
    "A100-PCIE-40GB": "0x20f1",
    "A100-PCIE-80GB": "0x20b5",
    "A30": "0x20b7",
    "A40": "0x2235",
    "A10": "0x2236",
    "L4": "0x27b8",
    "L40": "0x26b5",
    "L40S": "0x26b9",
    "H100-SXM5-80GB": "0x2330",
    "H100-PCIE-80GB": "0x2331",
    "H100-NVL-94GB": "0x2321",
    "H20-SXM5-96GB": "0x2329",
    "H200-SXM5-141GB": "0x2335",
    "H200-NVL-141GB": "0x233b",
    "GH200-480GB": "0x2342",
    "B200-SXM6-180GB": "0x2901",
}
NVIDIA = "10de"


def device_id(model: str) -> str | None:
    """The PCI device id of a model's name, or of an id written as lspci does, such as 10de:2330; None if unknown."""
    vendor, _, device = model.partition(":")
    return f"0x{device}" if vendor == NVIDIA and device else MODELS.get(model)
