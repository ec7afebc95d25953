"""Over random files: what is planned is all there is to plan, the lines of others stay, and nothing is argued with."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpufab_cli.module_utils import settings_file
from gpufab_cli.module_utils.change import Step
from gpufab_cli.module_utils.mpi import files as mpi
from gpufab_cli.module_utils.nccl_env import files as nccl
from tests.fakes import FakeHost

FORMS = {path: nccl.form(path) for path in (nccl.NCCL_CONF, nccl.TASK_PROLOG)}
FORMS |= {path: mpi.form(path) for path in ("/etc/openmpi/openmpi-mca-params.conf", mpi.UCX_CONF)}
NAMES = ("NCCL_IB_TC", "NCCL_DEBUG", "UCX_TLS", "pml", "btl")
names, values = st.sampled_from(NAMES), st.sampled_from(("106", "ucx", "=mlx5_0:1", "^ucx", ""))
noise = st.sampled_from(("", "# comment", "nonsense", "[section]", settings_file.BEGIN, settings_file.END))


@st.composite
def cases(draw):
    path = draw(st.sampled_from(sorted(FORMS)))
    form = FORMS[path]
    line = st.builds(lambda name, value: form.line.format(name=name, value=value), names, values)
    lines = draw(st.lists(line | noise, max_size=12))
    wanted = draw(st.dictionaries(names.filter(lambda n: form.parse(form.line.format(name=n, value="1"))), values))
    return path, "\n".join(lines) + "\n" if lines else None, wanted


def counts(form, text):
    """What the program that reads the file takes each name for."""
    pairs = [pair for pair in map(form.parse, text.splitlines()) if pair is not None]
    return dict(reversed(pairs) if form.first else pairs)


@settings(max_examples=400)
@example((nccl.NCCL_CONF, f"{settings_file.BEGIN}\nbtl=106\nbtl=ucx\n", {"btl": "ucx"}))
@given(cases())
def test_a_file_as_wanted_plans_nothing_and_says_what_is_wanted(case):
    path, text, wanted = case
    form, host = FORMS[path], FakeHost({path: text} if text is not None else {})
    before = settings_file.take_apart(form, host.read(path))
    changes = settings_file.changes(path, form, host.read(path), wanted, "c.d")
    assert all(change.current != change.desired for change in changes)
    if changes:
        settings_file.apply(Step("x", changes), host, form)
    after = host.read(path)
    assert settings_file.changes(path, form, after, wanted, "c.d") == ()
    assert settings_file.conflicts(form, after, wanted.items()) == ()
    if wanted:
        assert {name: counts(form, after)[name] for name in wanted} == wanted
    kept = [line for line in before.lines if (form.parse(line) or ("", ""))[0] not in wanted and line.strip()]
    left = settings_file.take_apart(form, after).lines if isinstance(after, str) else ()
    assert [line for line in kept if line not in form.head] == [
        line for line in left if line in kept and line not in form.head
    ]


@settings(max_examples=200)
@given(cases())
def test_an_undo_brings_the_file_back(case):
    path, text, wanted = case
    form, host = FORMS[path], FakeHost({path: text} if text is not None else {})
    before = host.read(path)
    changes = settings_file.changes(path, form, before, wanted, "c.d")
    if changes:
        settings_file.apply(Step("x", changes), host, form)
        settings_file.apply(Step("x", changes, undoes=True), host, form)
    assert host.read(path) == before
