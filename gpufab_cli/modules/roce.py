"""Ansible module: lossless, fair RoCE ports."""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.ansible_module import run, spec
from ..module_utils.features import FEATURES


def main() -> None:
    """Converge the roce feature."""
    feature = FEATURES["roce"]
    run(AnsibleModule(argument_spec=spec(feature), supports_check_mode=True), feature)


if __name__ == "__main__":
    main()
