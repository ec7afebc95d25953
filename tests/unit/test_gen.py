"""What is generated is up to date, and is what Ansible takes."""

import dataclasses
import re

import yaml

from gpufab_cli.gen import __main__ as gen
from gpufab_cli.gen.files import files
from gpufab_cli.intent.compile import FEATURES as MANAGED
from gpufab_cli.intent.needs import needs
from gpufab_cli.intent.roles import role
from gpufab_cli.module_utils.ansible_module import arguments
from gpufab_cli.module_utils.features import FEATURES
from gpufab_cli.module_utils.packages.work import Work


def test_nothing_is_stale(capsys):
    assert gen.main(["--check"]) == 0, capsys.readouterr().out


def test_a_stale_file_is_shown_and_then_written(tmp_path, capsys):
    gen.main([], tmp_path)
    readme = tmp_path / "roles" / "roce" / "README.md"
    readme.write_text(readme.read_text().replace("# Role roce", "# Role"))
    assert gen.main(["--check"], tmp_path) == 1
    assert "+# Role roce" in capsys.readouterr().out
    assert readme.read_text().splitlines()[1] == "# Role"
    assert gen.main([], tmp_path) == 0
    assert gen.main(["--check"], tmp_path) == 0


def parsed(suffix):
    return {str(path): yaml.safe_load(text) for path, text in files().items() if str(path).endswith(suffix)}


def bare(options):
    """Options without their documentation, as a module's argument spec has them."""
    plain = {}
    for name, option in options.items():
        plain[name] = {key: value for key, value in option.items() if key not in ("description", "options")}
        if "options" in option:
            plain[name]["options"] = bare(option["options"])
    return plain


def test_the_documentation_is_of_the_arguments_that_the_module_takes():
    for path, data in {**parsed("modules/roce.yml"), **parsed("modules/node.yml")}.items():
        feature = data["DOCUMENTATION"]["module"]
        assert bare(data["DOCUMENTATION"]["options"]) == bare(arguments(FEATURES[feature])), path
        (task,) = yaml.safe_load(data["EXAMPLES"])
        assert set(task[f"gpufab.fabric.{feature}"]) <= set(data["DOCUMENTATION"]["options"])


def test_role_variables_carry_the_role_s_prefix_and_reach_the_module(repository):
    for feature in FEATURES:
        specs = yaml.safe_load((repository / "roles" / role(feature) / "meta" / "argument_specs.yml").read_text())
        variables = set(specs["argument_specs"]["main"]["options"])
        assert all(name.startswith(f"{role(feature)}_") for name in variables)
        task, *others = yaml.safe_load((repository / "roles" / role(feature) / "tasks" / "main.yml").read_text())
        assert bool(others) is not hasattr(FEATURES[feature], "apply")
        used = {name: value.strip("{} ") for name, value in task[f"gpufab.fabric.{feature}"].items()}
        assert {f"{role(feature)}_{name}" for name in used} == variables
        assert set(used) == set(arguments(FEATURES[feature]))


def test_the_site_playbook_runs_every_role_that_a_fabric_can_need_in_order(repository):
    plays = yaml.safe_load((repository / "playbooks" / "site.yml").read_text())
    without = {name: "".join(f":!failed_{needed}" for needed in needs(name)) for name in MANAGED}
    expected = [f"{name}:!insync_{name}{without[name]}" for name in MANAGED]
    assert [play["hosts"] for play in plays] == [*expected, "failed_*"]
    imported = [play["tasks"][0]["block"][0]["ansible.builtin.import_role"]["name"] for play in plays[:-1]]
    assert imported == [f"gpufab.fabric.{role(name)}" for name in MANAGED]
    noted = [play["tasks"][0]["rescue"][0]["ansible.builtin.group_by"]["key"] for play in plays[:-1]]
    assert noted == [f"failed_{name}" for name in MANAGED]  # what is rescued fails in the last play


def test_a_role_of_packages_plans_works_where_there_is_work_and_proves_it(repository):
    for name in ("ofed", "nccl"):
        plan, work, proof = yaml.safe_load((repository / "roles" / name / "tasks" / "main.yml").read_text())
        assert plan["register"] == f"{name}_plan"
        assert work["when"] == proof["when"] == f"{name}_plan.todo"
        module = f"gpufab.fabric.{name}"
        assert proof[module] == {**plan[module], "made": f"{{{{ {name}_plan.work.steps }}}}"}


def test_the_role_of_the_work_is_given_what_the_modules_compute(repository):
    text = "".join(path.read_text() for path in (repository / "roles" / "packages" / "tasks").glob("*.yml"))
    used = set(re.findall(r"packages_work\.(\w+)", text))
    assert used == {field.name for field in dataclasses.fields(Work)} - {"steps", "files"}
